"""Correlated noise after a crash: the run goes on with the very state it had, pays once, and shows no noise twice."""

import hashlib
import math
import stat
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha import errors
from mosha.exact.grid import LARGEST_STEPS
from mosha.federated import Ask, ServerSide, train
from mosha.federated.clipping import STEPS, bounded_steps
from mosha.federated.noise_secret import MarkedNoise, load_secret
from mosha.federated.plans.correlated_rounds import _LARGEST_SUM, MOST_BANDS
from mosha.mechanisms.plans.correlated import encoder
from mosha.noise import secure
from tests.federated.parties import Listed, purse, unit_vectors

BANDS = 3
NAMES = [f"c{i}" for i in range(12)]
SENT = dict(zip(NAMES, unit_vectors(12, 4), strict=True))


def plan(**changes: Any) -> Any:
    return ServerSide(
        **({"rounds": 6, "clients": 12, "period": 3, "bands": BANDS, "clip": 1.0, "noise_multiplier": 1.0} | changes)
    )


def exact_sum(number: Any) -> Any:
    mine = [SENT[name] for name in plan().sampling.draw(NAMES, 12, number, secure())]
    return bounded_steps(np.array(mine).reshape(-1, 4), 1.0)[0].sum(axis=0, dtype=np.int64)


@pytest.mark.parametrize("memory", [{}, {"bands": 1, "buffers": 2}], ids=["bands", "buffers"])
def test_the_state_after_an_answer_is_the_state_that_the_step_left(memory: Any) -> None:
    measurement = plan(**memory).measurement(4, secret=secure().bytes(32))
    state = again = measurement.init()
    for number in range(1, 7):
        answer, state = measurement.step(state, Listed(SENT), Ask(number, np.zeros(4)), secure())
        again = measurement.state.resume(again, answer)
        assert all((one == other).all() for one, other in zip(state[0], again[0], strict=True))
        if not memory:
            assert (again[0][0] == exact_sum(number)).all()
        assert state[1].number == again[1].number == number + 1


@pytest.mark.parametrize("killed_after", [1, 2, 5])
def test_a_killed_training_goes_on_pays_once_and_encodes_the_true_sums(tmp_path: Path, killed_after: int) -> None:
    """With the secret and all answers, the exact sums of all rounds come out again: also of those after the crash."""
    place = tmp_path / "privacy.db"

    def again() -> tuple[Any, ...]:
        account = purse(ledger=mosha.Ledger(place), epsilon=1e6)
        federation = Listed(SENT)
        how = {"account": account, "key": "k", "secret": tmp_path / "secret"}
        return train(plan(delta=1e-4), federation, np.zeros(4), **how), federation, account

    rounds, _, account = again()
    before = [next(rounds) for _ in range(killed_after)]
    spent = account.spent
    del rounds
    rounds, federation, account = again()
    after = list(rounds)
    assert [(a.weights == b.weights).all() for a, b in zip(before, after, strict=False)] == [True] * killed_after
    assert len(after) == 6
    assert len(federation.asked) == 6 - killed_after
    assert account.spent == spent
    ledger = mosha.Ledger(place)
    assert [entry.kind for entry in ledger.entries()].count("pay") == 1
    assert ledger.verify().ok
    run = account.open(plan(delta=1e-4).measurement(4, about=about(), secret=load_secret(tmp_path / "secret")), key="k")
    marked, found = MarkedNoise(load_secret(tmp_path / "secret")), []  # type: ignore[var-annotated]
    for number in range(1, 7):
        answer = run.step(None).value
        noise = run.measurement.step.__self__._draw(marked.source(answer["mark"]))
        rest = answer["steps"] - noise - sum(c * x for c, x in zip(encoder(BANDS)[1:], reversed(found), strict=False))
        found.append(rest // encoder(BANDS)[0])
        assert (found[-1] == exact_sum(number)).all()


def about() -> Any:
    return hashlib.sha256(np.zeros(4).tobytes()).hexdigest()


def test_another_secret_is_refused_before_any_client_is_asked(tmp_path: Path) -> None:
    account = purse(epsilon=1e6)
    how = {"account": account, "key": "k"}
    next(train(plan(delta=1e-4), Listed(SENT), np.zeros(4), secret=tmp_path / "one", **how))
    spent, federation = account.spent, Listed(SENT)
    with pytest.raises(errors.StateRefused):
        next(train(plan(delta=1e-4), federation, np.zeros(4), secret=tmp_path / "other", **how))
    assert federation.asked == []
    assert account.spent == spent
    rounds = train(plan(delta=1e-4), federation, np.zeros(4), secret=tmp_path / "one", **how)
    assert len(list(rounds)) == 6


def test_noise_from_a_secret_has_the_spread_that_is_charged_and_is_never_used_twice() -> None:
    """20,000 coordinates, 7 sd of a chi-square are 0.07; noise of 0.85 and 1.18 of it is 27 sd away and more."""
    made = plan(period=6).measurement(20_000, secret=secure().bytes(32))
    answers = [made.step(made.init(), Listed({}), Ask(1, np.zeros(20_000)), secure())[0] for _ in range(2)]
    assert answers[0]["mark"] != answers[1]["mark"]
    sigma = plan(period=6).noise_multiplier * plan(period=6).event.sensitivity
    tolerance = 7 * math.sqrt(2 / 20_000)
    for noise in (answers[0]["steps"], (answers[0]["steps"] - answers[1]["steps"]) / math.sqrt(2)):
        ratio = float((noise.astype(float) ** 2).mean()) / sigma**2
        assert abs(ratio - 1) < tolerance
        assert abs(ratio / 0.85**2 - 1) > tolerance
        assert abs(ratio / 1.18**2 - 1) > tolerance


def test_the_secret_is_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    place = tmp_path / "secret"
    first = load_secret(place)
    assert load_secret(place) == first
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    place.chmod(0o644)
    with pytest.raises(errors.InvalidParameter, match="Others may read"):
        load_secret(place)


def shortened(folder: Any) -> Any:
    (folder / "s").write_bytes(b"short")
    (folder / "s").chmod(0o600)
    return folder / "s"


@pytest.mark.parametrize(
    "how",
    [
        lambda folder: {"key": "k"},
        lambda folder: {"key": "k", "secret": folder},
        lambda folder: {"key": "k", "secret": folder / "nowhere" / "s"},
        lambda folder: {"key": "k", "secret": shortened(folder)},
        lambda folder: {"key": "k", "secret": 3},
        lambda folder: {"key": "k", "secret": "a\0b"},
        lambda folder: {"plan": plan(bands=1), "secret": folder / "s"},
    ],
    ids=["none", "folder", "nowhere", "short", "number", "zero", "not needed"],
)
def test_bad_secrets_are_refused_and_nothing_is_spent(tmp_path: Path, how: Any) -> None:
    given, account, federation = how(tmp_path), purse(epsilon=1e6), Listed(SENT)
    with pytest.raises(errors.InvalidParameter, match="Nothing was spent"):
        train(given.pop("plan", plan()), federation, np.zeros(4), account=account, **given)
    assert account.spent == 0
    assert federation.asked == []


def test_encoded_sums_never_leave_the_room_for_numbers() -> None:
    assert sum(encoder(MOST_BANDS)) * _LARGEST_SUM < LARGEST_STEPS
    assert _LARGEST_SUM == STEPS << 24  # sixteen million clients, all in one direction


@pytest.mark.parametrize("memory", [{}, {"bands": 1}], ids=["correlated", "independent"])
def test_a_federation_that_was_killed_twice_in_one_round_goes_on_without_it(tmp_path: Path, memory: Any) -> None:
    class Killing(Listed):
        def updates(self, chosen: Any, ask: Any) -> NoReturn:
            raise KeyboardInterrupt

    account = purse(epsilon=1e6)
    how = {"account": account, "key": "k"} | ({} if memory else {"secret": tmp_path / "secret"})
    begin = lambda federation: train(plan(delta=1e-4, **memory), federation, np.zeros(4), **how)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            next(begin(Killing(SENT)))
    spent, rounds = account.spent, list(begin(Listed(SENT)))
    assert [done.number for done in rounds] == [1, 2, 3, 4, 5]
    assert [(done.weights == again.weights).all() for done, again in zip(rounds, begin(Listed({})), strict=True)]
    assert (account.failures, account.spent) == (1, spent)
    assert account._ledger.verify().ok
