"""Any history at all: whatever is opened, stepped, broken, lost, retried and closed, no unit's loss exceeds a limit.

`make fuzz` runs thousands of them.
"""

import random
from itertools import islice
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from tests.ledger.model import KINDS, live
from tests.ledger.place import PERSON, asking
from tests.searches import draw_seeds


def test_no_history_overspends_or_gives_anything_away() -> None:
    """In four histories each kind of row is written about a hundred times: one that is missing was never tried."""
    kinds = set()
    for seed in islice(draw_seeds("histories"), 4):
        history = live(random.Random(seed), actions=120, checks=5)
        kinds |= {row.kind for row in history.ledger.entries()}
        history.ledger.close()
    assert kinds == KINDS


class Told:
    """A measurement that does what it is told, and counts how often each step met the data."""

    def __init__(self, horizon: Any) -> None:
        self.met = []  # type: ignore[var-annotated]
        self.measurement = asking(events.Laplace(12) * horizon, horizon=horizon, step=self.step)

    def step(self, state: Any, data: Any, trouble: Any, rng: Any) -> tuple[Any, ...]:
        if trouble == "away":
            raise errors.SourceUnavailable("away.")
        self.met.append(trouble)
        if trouble == "broken":
            raise ValueError
        if trouble == "interrupted":
            raise KeyboardInterrupt
        return 1, state


def take(run: Any, trouble: Any) -> Any:
    try:
        run.step(None, ask=trouble)
    except (errors.MoshaError, KeyboardInterrupt) as error:
        return type(error)


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("visits", unit=PERSON, epsilon=6)


@pytest.mark.parametrize(("horizon", "second"), [(2, ["interrupted"]), (3, ["away", "none"])])
def test_a_step_that_breaks_for_a_holder_who_was_overtaken_opens_no_further_step(
    account: Any, horizon: int, second: Any
) -> None:
    """The first holder may start the step it paid for; what came of it is not told, and it leads no further."""
    told = Told(horizon)
    first, other = (account.open(told.measurement, key="k") for _ in range(2))
    for trouble in second:
        take(other, trouble)
    assert [take(first, "broken") for _ in range(3)] == [errors.AlreadyReleased] * 3
    assert len(told.met) == 2
    other.close()
    assert account.event() == events.Laplace(12)
    assert account._ledger.verify().ok


@pytest.mark.parametrize("ended", ["none", "broken"])
def test_who_was_overtaken_hears_the_same_whether_its_step_broke_or_was_answered(account: Any, ended: str) -> None:
    told = Told(2)
    first, other = (account.open(told.measurement, key="k") for _ in range(2))
    other.step(None)
    with pytest.raises(errors.AlreadyReleased, match="another holder has taken over step 1") as refused:
        first.step(None, ask=ended)
    assert refused.value.__cause__ is refused.value.__context__ is None


def test_a_failure_that_could_not_be_noted_waits_and_is_noted_before_the_next_step(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(3)
    run = account.open(told.measurement, key="k")
    storage = account._ledger._storage

    def unavailable(operation: Any) -> NoReturn:
        raise errors.LedgerUnavailable("the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write", unavailable)
        assert take(run, "broken") is errors.LedgerUnavailable
        assert take(run, "none") is errors.LedgerUnavailable  # no data is read before the failure is noted
    assert told.met == ["broken"]
    take(run, "none")
    assert [row.kind for row in account._ledger.entries()][3:] == ["fail", "failure", "release"]


def test_what_another_holder_released_is_never_handed_back(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder whose own count is too small asks the book."""
    told = Told(3)
    run = account.open(told.measurement, key="k")
    take(run, "none"), take(run, "none")
    run._taken = run._met = run._reservation._touched = 0
    run.close()
    assert account.event() == events.Laplace(12) * 2
