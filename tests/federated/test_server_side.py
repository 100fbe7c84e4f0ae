"""Noise at the server: prices before data, sensitivity on neighbors, adaptive clips, weights, dropouts, faults."""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import accounting, errors, events
from mosha.federated import AdaptiveClip, Ask, Block, ClientSide, Distributed, ServerSide, Weights, train
from mosha.federated.clipping import STEPS
from mosha.federated.round_number import Turn
from mosha.mechanisms.plans.correlated import SCALE
from mosha.mechanisms.plans.optimized_bands import mean_error
from mosha.noise import SeededRandom, secure
from tests.federated.parties import Listed, purse, unit_vectors

ASK = Ask(1, np.zeros(3))


def exact(plan: Any, federation: Any, clip: Any = None, seed: Any = 7) -> Any:
    """The answer of one round; the same seed gives the same draw and the same noise."""
    measurement = plan.measurement(3)
    state = measurement.init() if clip is None else (clip, Turn())
    return measurement.step(state, federation, ASK, SeededRandom(seed))


def everybody(**changes: Any) -> Any:
    return ServerSide(**({"rounds": 5, "clients": 10, "clip": 1.0, "noise_multiplier": 1.0} | changes))


def test_one_client_moves_the_sum_by_at_most_the_clip() -> None:
    plan = everybody()
    base = {f"c{i}": row for i, row in enumerate(unit_vectors(9, 3))}
    without = exact(plan, Listed(base))[0]["steps"]
    for new in ([5.0, 0, 0], [0.1, 0.1, 0], [1e30, -1e30, 0], [math.nan, 1, 1], [math.inf, 0, 0], [0, 0, 0]):
        moved = exact(plan, Listed(base | {"new": np.array(new, float)}))[0]["steps"] - without
        assert sum(int(m) ** 2 for m in moved) <= STEPS**2


def test_probe_1_noise_is_not_the_global_generator_of_numpy() -> None:
    plan = everybody()
    answers = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002  (the point)
        answers.append(plan.measurement(3).step((1.0, Turn()), Listed({}), ASK, secure())[0]["steps"])
    assert (answers[0] != answers[1]).any()


def test_probe_2_an_unchanged_model_is_an_ordinary_update() -> None:
    answer = exact(everybody(), Listed({"a": np.zeros(3)}))[0]["steps"]
    assert (answer == exact(everybody(), Listed({}))[0]["steps"]).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_probe_3_what_is_no_number_counts_as_nothing(bad: Any) -> None:
    answer = exact(everybody(), Listed({"a": np.array([bad, 1e6, 0.0])}))[0]["steps"]
    assert (answer == exact(everybody(), Listed({}))[0]["steps"]).all()


def test_probe_4_integers_are_clipped_and_noised_like_any_number() -> None:
    federation = Listed({"a": np.array([3, 4, 0])})
    moved = exact(everybody(), federation)[0]["steps"] - exact(everybody(), Listed({}))[0]["steps"]
    assert np.allclose(moved / STEPS, [0.6, 0.8, 0.0], atol=1e-5)


def test_probe_5_the_norm_is_at_most_the_clip_in_exact_integers() -> None:
    for _ in range(20):
        row = unit_vectors(1, 4810).astype(np.float32)[0]
        plan = everybody()
        measurement = plan.measurement(4810)
        one = measurement.step((1.0, Turn()), Listed({"a": row}), ASK, SeededRandom(1))[0]["steps"]
        none = measurement.step((1.0, Turn()), Listed({}), ASK, SeededRandom(1))[0]["steps"]
        assert sum(int(s) ** 2 for s in one - none) <= STEPS**2


@pytest.mark.parametrize(("length", "way"), [(10.0, 1), (0.01, -1)])
def test_probe_6_an_adaptive_clip_moves_towards_the_lengths(length: float, way: int) -> None:
    """Noise on the count is 1 of 100 here: the direction of 20 rounds is wrong with probability below 1e-100."""
    clip = AdaptiveClip(start=1.0, quantile=0.5, rate=0.2, count_noise=1.0)
    plan = ServerSide(rounds=20, clients=100, clip=clip, noise_multiplier=0.5, delta=1e-4)
    federation = Listed(dict(enumerate(unit_vectors(100, 3, length))))
    rounds = list(train(plan, federation, np.zeros(3), account=purse(epsilon=1e4)))
    assert way * (rounds[-1].clip - 1.0) > 0.5 * way if way > 0 else rounds[-1].clip < 0.3
    assert rounds[0].clip == 1.0


def test_an_adaptive_clip_finds_the_median_length() -> None:
    """After 60 rounds at most one step of exp(0.1) away, plus noise of a hundredth: within a factor of 1.5."""
    clip = AdaptiveClip(start=1.0, quantile=0.5, rate=0.2, count_noise=2.0)
    plan = ServerSide(rounds=60, clients=100, clip=clip, noise_multiplier=1.0, delta=1e-4)
    rows = unit_vectors(100, 3) * np.linspace(1.0, 9.0, 100)[:, None]
    rounds = list(train(plan, Listed(dict(enumerate(rows))), np.zeros(3), account=purse(epsilon=1e4)))
    assert 5 / 1.5 < rounds[-1].clip < 5 * 1.5


def test_probe_7_noise_follows_the_clip_in_force_and_not_the_next_one() -> None:
    plan = ServerSide(rounds=5, clients=100, clip=AdaptiveClip(start=2.0), noise_multiplier=1.0)
    measurement = plan.measurement(3)
    answer, after = measurement.step(measurement.init(), Listed({}), ASK, secure())
    assert answer["clip"] == 2.0 != after[0]
    assert plan.decoder()({"steps": np.full(3, STEPS), "clip": 2.0})[0] == pytest.approx(2.0 / 100)
    assert measurement.state.resume(measurement.init(), answer) == after


def test_the_bit_of_an_adaptive_clip_is_inside_the_sensitivity() -> None:
    plan = ServerSide(rounds=5, clients=100, clip=AdaptiveClip(start=1.0), noise_multiplier=1.0)
    event = plan.event_after(1)
    measurement = plan.measurement(3)
    answers = [
        measurement.step((1.0, Turn()), Listed(sent), ASK, SeededRandom(3))[0]
        for sent in ({}, {"a": np.array([5.0, 0.0, 0.0])})
    ]
    moved = [int(s) for s in answers[1]["steps"] - answers[0]["steps"]] + [answers[1]["within"] - answers[0]["within"]]
    assert STEPS**2 < sum(m * m for m in moved) <= event.sensitivity**2  # type: ignore[attr-defined]


def test_probe_8_dropouts_change_no_noise_and_no_divisor() -> None:
    plan = everybody(clients=100)
    rows = dict(enumerate(unit_vectors(100, 3)))
    half = {i: (row if i % 2 else None) for i, row in rows.items()}
    for federation in (Listed(rows), Listed(half), Listed({})):
        expected = np.sum([np.asarray(v) for v in federation.sent.values() if v is not None], axis=0)
        noise = exact(plan, federation)[0]["steps"] / STEPS - expected
        assert np.allclose(noise, exact(plan, Listed({}))[0]["steps"] / STEPS, atol=1e-3)
    assert plan.decoder()({"steps": np.full(3, STEPS), "clip": 1.0})[0] == pytest.approx(1 / 100)


def test_probe_9_a_claimed_weight_moves_no_more_than_the_clip() -> None:
    class Claiming(Listed):
        def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
            yield Block(list(chosen), np.array([self.sent[c] for c in chosen]), [1e6] * len(chosen))

    row = np.array([0.6, 0.8, 0.0])
    for weights in (None, Weights(at_most=100, typical=20)):
        plan = everybody(weights=weights)
        empty = exact(plan, Listed({}))[0]["steps"]
        moved = exact(plan, Claiming({"a": row}))[0]["steps"] - empty
        assert STEPS**2 * 0.99 < sum(int(m) ** 2 for m in moved) <= STEPS**2


@pytest.mark.parametrize(("claim", "share"), [(0, 0), (50, 0.5), (100, 1), (-3, 0), (math.nan, 0), ("x", 0), (None, 0)])
def test_weights_are_bounded_shares(claim: Any, share: float) -> None:
    class Claiming(Listed):
        def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
            yield Block(list(chosen), np.array([self.sent[c] for c in chosen]), [claim])

    plan = everybody(weights=Weights(at_most=100, typical=20))
    moved = exact(plan, Claiming({"a": np.array([1.0, 0, 0])}))[0]["steps"] - exact(plan, Listed({}))[0]["steps"]
    assert moved[0] / STEPS == pytest.approx(share, abs=1e-5)


def test_probe_10_poisson_sampling_is_priced_as_that() -> None:
    """z = 1, q = 0.01, 100 rounds, delta 1e-6: 100.7 without amplification, 1.51 by Rényi divergences."""
    plan = ServerSide(rounds=100, clients=1000, rate=0.01, clip=1.0, noise_multiplier=1.0)
    assert plan.epsilon(1e-6) == pytest.approx(0.954, abs=1e-3)
    low, high = accounting.bounds(events.Gaussian(1.0).sample(0.01) * 100, delta=1e-6)
    assert low <= plan.epsilon(1e-6) <= high * 1.0001
    everyone = ServerSide(rounds=100, clients=1000, clip=1.0, noise_multiplier=1.0)
    assert everyone.epsilon(1e-6) == pytest.approx(96.5, rel=0.05)


def test_probe_11_the_price_of_a_round_is_not_computed_from_all_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The odometer adds one event a round: as many calls at round 400 as at round 2 (time: benchmarks/federated.py)."""
    from mosha.federated.training import Spending

    plan = ServerSide(rounds=500, clients=1000, rate=0.05, clip=1.0, noise_multiplier=1.0, delta=1e-6)
    spending = Spending(plan)
    added = []
    monkeypatch.setattr(spending._odometer, "add", lambda event, count=1: added.append(count))
    monkeypatch.setattr(spending._odometer, "epsilon", lambda delta: 0.0)
    for number in range(1, 401):
        spending.after(number)
    assert added == [1] * 400


def test_a_replayed_or_duplicated_client_counts_once_and_a_stranger_never() -> None:
    class Duplicating(Listed):
        def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
            row = np.array([[1.0, 0.0, 0.0]])
            yield Block(["a", "a"], np.repeat(row, 2, axis=0))
            yield Block(["a"], row)
            yield Block(["stranger"], row)

    moved = exact(everybody(), Duplicating({"a": None}))[0]["steps"] - exact(everybody(), Listed({}))[0]["steps"]
    assert moved[0] / STEPS == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    "bad", [np.ones((1, 2)), np.ones((1, 4)), np.ones((1, 3), complex), np.array([["a", "b", "c"]])]
)
def test_wrong_shapes_and_types_are_left_out(bad: Any) -> None:
    class Bad(Listed):
        def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
            yield Block(list(chosen), bad)

    assert (exact(everybody(), Bad({"a": None}))[0]["steps"] == exact(everybody(), Listed({}))[0]["steps"]).all()


def test_nothing_is_asked_when_the_account_cannot_pay() -> None:
    federation = Listed({"a": np.ones(3)})
    plan = everybody(delta=1e-4)
    with pytest.raises(errors.BudgetExceeded):
        train(plan, federation, np.zeros(3), account=purse(epsilon=0.1))
    assert federation.asked == []


def test_all_rounds_are_paid_before_the_first() -> None:
    account = purse()
    plan = everybody(noise_multiplier=2.0, delta=1e-4)
    training = train(plan, Listed({"a": np.ones(3)}), np.zeros(3), account=account)
    paid = account.spent
    assert paid == pytest.approx(plan.epsilon(), rel=1e-6)
    rounds = list(training)
    assert account.spent == paid
    assert len(rounds) == 5
    assert rounds[-1].epsilon == pytest.approx(plan.epsilon(), rel=0.01)
    assert [r.epsilon for r in rounds] == sorted(r.epsilon for r in rounds)


def test_a_killed_training_goes_on_where_it_was_and_pays_nothing_more(tmp_path: Path) -> None:
    plan = everybody(delta=1e-4, clip=AdaptiveClip(start=1.0), noise_multiplier=2.0)
    federation = Listed(dict(enumerate(unit_vectors(10, 3))))

    def begin() -> tuple[Any, ...]:
        account = purse(ledger=mosha.Ledger(tmp_path / "privacy.db"))
        return account, train(plan, federation, np.zeros(3), account=account, key="run-1")

    account, training = begin()
    first = [next(training) for _ in range(3)]
    spent = account.spent
    asked = len(federation.asked)
    account, training = begin()
    again = list(training)
    assert account.spent == spent
    assert len(federation.asked) == asked + 2
    for one, other in zip(first, again, strict=False):
        assert (one.weights == other.weights).all()
        assert one.clip == other.clip
    assert len(again) == 5


def test_another_model_under_the_same_key_is_refused() -> None:
    account = purse()
    plan = everybody(delta=1e-4, noise_multiplier=4.0)
    train(plan, Listed({}), np.zeros(3), account=account, key="k")
    with pytest.raises(errors.InvalidParameter):
        train(plan, Listed({}), np.ones(3), account=account, key="k")


class Breaking(Listed):
    """A federation that breaks, or cannot be reached, in some of its rounds."""

    def __init__(self, sent: Any, faults: Any) -> None:
        super().__init__(sent)
        self.faults = list(faults)

    def updates(self, chosen: Any, ask: Any) -> Iterator[Any]:
        yield from super().updates(chosen, ask)
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault


PERIODIC = {
    "server": lambda **more: ServerSide(rounds=6, clients=30, clip=1.0, period=3, noise_multiplier=1.0, **more),
    "client": lambda **more: ClientSide(rounds=6, clients=30, clip=1.0, period=3, noise_multiplier=1.0, **more),
    "shares": lambda **more: Distributed(
        rounds=6, clients=30, clip=1.0, period=3, survivors=2, noise_multiplier=1.0, **more
    ),
}


def cohorts(plan: Any, asks: Any, faults: Any = (), resumed: Any = 0) -> list[Any]:
    names = [f"client {i}" for i in range(60)]
    federation = Breaking({name: np.zeros(3) for name in names}, faults)
    account = mosha.Ledger.memory().account("a", unit=plan.unit, epsilon=1e6, delta=1e-3)
    run: dict[str, Any] = account.open(plan.measurement(3), key="k")  # type: ignore[assignment]
    for i, ask in enumerate(asks):
        if resumed and i == resumed:
            run = account.open(plan.measurement(3), key="k")  # type: ignore[assignment]
            for _ in range(resumed):
                run.step(None, Ask(1, np.zeros(3)))  # type: ignore[attr-defined]
        with contextlib.suppress(errors.MoshaError):
            run.step(federation, ask)  # type: ignore[attr-defined]
    return [sorted(chosen) for chosen, _ in federation.asked]


@pytest.mark.parametrize("kind", sorted(PERIODIC))
def test_whose_turn_it_is_follows_from_the_run_and_not_from_what_is_asked(kind: Any) -> None:
    plan = PERIODIC[kind]()
    turns = [sorted(plan.sampling.draw([f"client {i}" for i in range(60)], 30, t, secure())) for t in range(1, 7)]  # type: ignore[type-var]
    assert turns[0] != turns[1]
    assert cohorts(plan, [Ask(1, np.zeros(3))] * 6) == turns
    assert cohorts(plan, [None] * 6) == turns
    assert cohorts(plan, [Ask(1, np.zeros(3))] * 6, resumed=4) == turns
    broken = [None, RuntimeError("x"), None]
    assert cohorts(plan, [Ask(1, np.zeros(3))] * 6, broken) == turns
    away = [None, errors.SourceUnavailable("away"), None]
    assert cohorts(plan, [Ask(9, np.zeros(3))] * 7, away) == [turns[0], *turns[1:2], *turns[1:]]


def test_correlated_rounds_end_with_one_that_breaks() -> None:
    plan = PERIODIC["server"](bands=3)
    assert len(cohorts(plan, [ASK] * 6)) == 6
    assert len(cohorts(plan, [ASK] * 6, [None, RuntimeError("x")])) == 2


@pytest.mark.parametrize("memory", [{"bands": 4}, {"buffers": 2}], ids=["bands", "buffers"])
def test_correlated_noise_moves_all_rounds_by_no_more_than_its_sensitivity(memory: Any) -> None:
    plan = ServerSide(rounds=12, clients=10, period=4, clip=1.0, noise_multiplier=1.0, **memory)
    measurement = plan.measurement(3)
    names = [f"c{i}" for i in range(10)]
    base = dict(zip(names, unit_vectors(10, 3), strict=True))
    first = next(name for name in (f"d{i}" for i in range(100)) if plan.sampling.place(name) == 0)  # type: ignore[attr-defined]  # no column is cut

    def answers(sent: Any) -> Any:
        state, found, rng = measurement.init(), [], SeededRandom(5)
        for number in range(1, 13):
            answer, state = measurement.step(state, Listed(sent), Ask(number, np.zeros(3)), rng)
            found.append(answer["steps"])
        return np.concatenate(found)

    moved = answers(base | {first: np.array([9.0, 9.0, 9.0])}) - answers(base)
    square = sum(int(m) ** 2 for m in moved)
    assert 0.99 * plan.event.sensitivity**2 < square <= plan.event.sensitivity**2  # type: ignore[attr-defined]


def test_one_buffer_takes_back_nearly_what_twelve_bands_do() -> None:
    """The same price for both: sensitivity times what the noise of one round adds to sums of rounds."""
    run: dict[str, Any] = {"rounds": 60, "clients": 100, "period": 12, "clip": 1.0, "noise_multiplier": 1.0}
    banded, buffered = ServerSide(**run, bands=12), ServerSide(**run, buffers=1)
    plain = math.sqrt(5) * mean_error((SCALE,), 60) * STEPS * SCALE
    errors_of_sums = [
        banded.event.sensitivity * mean_error(banded.encoding, 60),  # type: ignore[arg-type, attr-defined]
        buffered.event.sensitivity * buffered.encoding.error_of_sums(60),  # type: ignore[attr-defined, union-attr]
    ]
    assert errors_of_sums[1] < 1.1 * errors_of_sums[0] < 0.55 * plain
    with pytest.raises(errors.InvalidParameter, match=r"2\*\*30"):
        buffered.measurement((1 << 30) + 1)


def test_correlated_noise_cancels_over_rounds() -> None:
    """60 rounds of noise alone: its sum has 0.45 of the spread of independent noise; the bar is 10 sd away."""
    spread = {}
    for bands in (1, 12):
        plan = ServerSide(rounds=60, clients=12, period=12, bands=bands, clip=1.0, noise_multiplier=1.0)
        measurement, decode, state = plan.measurement(300), plan.decoder(), None
        state, total = measurement.init(), np.zeros(300)
        for number in range(1, 61):
            answer, state = measurement.step(state, Listed({}), Ask(number, np.zeros(300)), secure())
            total += decode(answer)
        fair = math.sqrt(plan.sampling.participations(60)) if bands == 1 else 1.0
        spread[bands] = total.std() * fair  # the same price: independent noise composes over five turns
    assert spread[12] < 0.75 * spread[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 0},
        {"clients": -1},
        {"clip": 0},
        {"clip": math.nan},
        {"clip": math.inf},
        {"noise_multiplier": 0},
        {"noise_multiplier": math.nan},
        {"noise_multiplier": 1e-9},
        {"noise_multiplier": 1e30},
        {"rate": 0},
        {"rate": 1.5},
        {"rate": 0.1, "cohort": 3},
        {"cohort": 11},
        {"cohort": 2.5},
        {"delta": 1.0},
        {"delta": -1e-5},
        {"bands": 4},
        {"bands": 4, "period": 3},
        {"buffers": 2},
        {"buffers": 9, "period": 3},
        {"buffers": 0, "period": 3},
        {"buffers": 2, "period": 3, "bands": 2},
        {"buffers": 2, "period": 3, "noise": "laplace"},
        {"buffers": 2, "period": 3, "clip": AdaptiveClip(start=1.0)},
        {"proximal": -1},
        {"weights": 3},
        {"clip": AdaptiveClip(start=1.0, count_noise=0.1)},
    ],
    ids=str,
)
def test_bad_plans_are_refused(changes: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        everybody(**changes)


@pytest.mark.parametrize("initial", [np.array([]), np.ones((2, 2)), np.array([1.0, math.nan])])
def test_bad_models_are_refused_and_nothing_is_spent(initial: Any) -> None:
    account = purse()
    with pytest.raises(errors.InvalidParameter):
        train(everybody(), Listed({}), initial, account=account)
    assert account.spent == 0


def test_a_plan_without_noise_is_refused() -> None:
    with pytest.raises(errors.InvalidParameter, match="no noise yet"):
        train(everybody(noise_multiplier=None), Listed({}), np.zeros(3), account=purse())


def test_another_unit_is_refused() -> None:
    with pytest.raises(errors.WrongUnit):
        train(everybody(), Listed({}), np.zeros(3), account=purse(unit=mosha.Example()))


def test_calibrated_plans_keep_their_promise_and_no_more() -> None:
    plan = ServerSide(rounds=50, clients=100, rate=0.2, clip=1.0).calibrate(epsilon=3, delta=1e-5)
    assert 3 * 0.999 < plan.epsilon() <= 3
    account = purse(epsilon=3, delta=1e-5)
    train(plan, Listed({}), np.zeros(3), account=account)
    assert account.spent <= 3 * (1 + 1e-12)
