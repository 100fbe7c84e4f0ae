"""Until the outcome of a paid step is in the book, nobody can see whether it is an answer, a failure or a break."""

import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from mosha.core.measurement import Measurement, StatePolicy
from tests.ledger.place import PERSON, asking

CHEAP = events.Laplace(10_000)
OUTCOMES = {"answer": None, "failure": ValueError, "interruption": errors.DeadlineExceeded, "refusal": errors.DataError}


def ending(before: Any, kind: Any, covers: Any = len, **more: Any) -> Any:
    """A measurement that does `before()` and then answers, or breaks by an error of this kind."""

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        before()
        if kind is not None:
            raise kind("one row did this.")
        return "answer", state + len(data)

    options: dict[str, Any] = {"unit": PERSON, "event": CHEAP * 5, "horizon": 5, "init": lambda: 0}
    return Measurement(step=step, state=StatePolicy(passed=lambda state: state, covers=covers), **options | more)


def see(run: Any, data: str = "ab", times: Any = 3) -> Any:
    """All that a caller sees of a run whose step is under way, or over."""
    seen = []
    for _ in range(times):
        try:
            seen.append(("told", run.step(data).value, run.remaining))
        except errors.MoshaError as error:
            seen.append((type(error).__name__, str(error), run.remaining))
        data = "abcdef"  # more steps than were paid for
    run.close()
    return seen


def fail(account: Any, times: Any = 3) -> None:
    for _ in range(times):
        with pytest.raises(errors.StepFailed):
            account.open(ending(lambda: None, ValueError)).step("a")


def cancelled_once(run: Any) -> Any:
    """A run whose step was broken off by its caller, so that this is its last start."""
    with pytest.raises(KeyboardInterrupt):
        run.step("ab")
    return run


def away(ledger: Any) -> None:
    def refuse(operation: Any) -> NoReturn:
        raise errors.LedgerUnavailable("the disk is full.")

    ledger._storage.write = refuse


def frozen(kind: Any) -> Any:
    account = mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=10)
    return see(account.open(ending(lambda: fail(account), kind)))


def frozen_at_the_last_start(kind: Any) -> Any:
    account, starts = mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=10), []

    def before() -> None:
        starts.append(1)
        if len(starts) == 1:
            raise KeyboardInterrupt
        fail(account)

    return see(cancelled_once(account.open(ending(before, kind))))


def out_of_reach(kind: Any) -> Any:
    ledger = mosha.Ledger.memory()
    run = ledger.account("visits", unit=PERSON, epsilon=10).open(ending(lambda: away(ledger), kind))
    run.close = lambda: None  # which needs the ledger
    return see(run)


def lease_frozen_by_another_failure(kind: Any) -> Any:
    account = mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=10)
    lease = account.lease(CHEAP * 20)

    def before() -> None:
        fail(account)
        with pytest.raises(errors.AccountFrozen):
            lease.open(ending(lambda: None, ValueError)).step("a")

    return see(lease.open(ending(before, kind)))


def lease_behind_a_failure_that_is_not_counted(kind: Any) -> Any:
    ledger = mosha.Ledger.memory()
    lease = ledger.account("visits", unit=PERSON, epsilon=10).lease(CHEAP * 20)

    def before() -> None:
        away(ledger)
        with pytest.raises(errors.LedgerUnavailable):
            lease.open(ending(lambda: None, ValueError)).step("a")

    return see(lease.open(ending(before, kind)))


OBSTACLES = (
    frozen,
    frozen_at_the_last_start,
    out_of_reach,
    lease_frozen_by_another_failure,
    lease_behind_a_failure_that_is_not_counted,
)


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_waits_to_be_noted_looks_the_same_whatever_it_is(obstacle: Any) -> None:
    """Errors that are seen and not counted would be an oracle without an end."""
    sights = {name: obstacle(kind) for name, kind in OUTCOMES.items()}
    assert all(sight == sights["answer"] for sight in sights.values()), sights
    assert not any(told == "told" for told, *_ in sights["answer"])


@pytest.mark.parametrize("horizon", [1, 5])
def test_whoever_was_overtaken_cannot_see_how_its_step_ended(tmp_path: Path, horizon: int) -> None:
    def overtaken(name: Any, kind: Any) -> Any:
        place = tmp_path / f"{name}.db"
        account, other = (mosha.Ledger(place).account("visits", unit=PERSON, epsilon=10) for _ in range(2))

        def overtake() -> None:
            answering = ending(lambda: None, None, event=CHEAP * horizon, horizon=horizon)
            assert other.open(answering, key="k").step("a").value == "answer"

        return see(account.open(ending(overtake, kind, event=CHEAP * horizon, horizon=horizon), key="k"), data="a")

    sights = {name: overtaken(name, kind) for name, kind in OUTCOMES.items()}
    assert all(sight == sights["answer"] for sight in sights.values()), sights
    assert sights["answer"][0][0] == "AlreadyReleased"


@pytest.mark.parametrize(
    ("outcome", "left", "counted"), [("answer", 3, 0), ("failure", 1, 1), ("interruption", 3, 1), ("refusal", 1, 1)]
)
def test_what_waited_is_told_and_counted_when_the_ledger_is_back(outcome: str, left: int, counted: int) -> None:
    """A failure is passed by, as it is where it could be noted; an interruption may be started once more."""
    ledger = mosha.Ledger.memory()
    account, kinds = ledger.account("visits", unit=PERSON, epsilon=10), [OUTCOMES[outcome]]

    def before() -> None:
        if kinds:
            away(ledger)
            if (kind := kinds.pop()) is not None:
                raise kind("one row did this.")

    run = account.open(ending(before, None))
    with pytest.raises(errors.LedgerUnavailable):
        run.step("ab")
    del ledger._storage.write
    assert run.step("ab").value == "answer"
    assert (run.remaining, account.failures) == (left, counted)
    assert ledger.verify().ok


def test_a_failure_of_the_only_step_is_told_when_the_ledger_is_back() -> None:
    ledger = mosha.Ledger.memory()
    account = ledger.account("visits", unit=PERSON, epsilon=10)
    for purse in (account, account.lease(CHEAP * 20)):

        def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
            away(ledger)
            raise ValueError

        run, counted = purse.open(asking(CHEAP, step=step)), account.failures
        with pytest.raises(errors.LedgerUnavailable):
            run.step(None)
        del ledger._storage.write
        with pytest.raises(errors.StepFailed, match="stays paid"):
            run.step(None)
        with pytest.raises(errors.HorizonExceeded):
            run.step(None)
        assert account.failures == counted + 1
    assert ledger.verify().ok


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_inside_a_step_of_a_lease_gets_no_second_answer(tmp_path: Path) -> None:
    account = mosha.Ledger(tmp_path / "privacy.db").account("visits", unit=PERSON, epsilon=10)
    lease, processes = account.lease(CHEAP * 5), []

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        processes.append(os.fork())
        return 1, state

    run = lease.open(asking(CHEAP, step=step))
    try:
        code = 0 if run.step(None).value == 1 else 1
    except errors.RunClosed:
        code = 7
    finally:
        if processes == [0]:
            os._exit(code)
    assert code == 0
    assert os.waitstatus_to_exitcode(os.waitpid(processes[0], 0)[1]) == 7
