"""Reserved, released, failed; keys, retries, takeovers; nothing twice."""

from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha import errors, events
from tests.ledger.place import PERSON, asking


@pytest.fixture
def account(ledger: Any) -> Any:
    return ledger.account("visits", unit=PERSON, epsilon=10)


def kinds(ledger: Any) -> Any:
    return [entry.kind for entry in ledger.entries()][2:]


class Flaky:
    """A step that breaks in the given ways, one after the other, and then answers with its number of calls."""

    def __init__(self, *troubles: Any) -> None:
        self.troubles, self.calls = list(troubles), 0

    def __call__(self, state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        self.calls += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return self.calls, state


def test_a_payment_is_in_the_book_before_the_data_is_touched(account: Any, ledger: Any) -> None:
    seen = []
    step = lambda state, data, ask, rng: (seen.append(kinds(ledger)), state)
    account.open(asking(step=step)).step(None)
    assert seen == [["pay"]]
    assert kinds(ledger) == ["pay", "release"]


def test_one_release_flushes_the_disk_twice_and_no_more(account: Any, ledger: Any) -> None:
    before = ledger.head.sequence
    with account.open(asking()) as run:
        run.step(None)
    assert ledger.head.sequence == before + 2


def test_a_retry_with_the_same_key_is_free_and_answers_the_same(place: Any) -> None:
    first = place.open().account("visits", unit=PERSON, epsilon=10)
    answer = first.open(asking(answer=lambda data: data), key="k").step([1, 2.5]).value
    again = place.open().account("visits")
    release = again.open(asking(answer=lambda data: pytest.fail("data was read")), key="k").step(None)
    assert release.value == answer == [1, 2.5]
    assert again.spent == first.spent == 1.0
    assert release.receipt.entry.startswith("3-")


def test_an_array_comes_back_bit_for_bit(account: Any) -> None:
    array = np.array([[0.1, np.nan], [-0.0, np.inf]], dtype=">f4")
    account.open(asking(answer=array), key="k").step(None)
    again = account.open(asking(answer=array), key="k").step(None).value
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    again[0, 0] = 7  # it is the caller's own


def test_an_answer_that_cannot_be_kept_is_never_drawn_again(account: Any) -> None:
    step = Flaky()
    account.open(asking(answer=object()), key="k").step(None)
    with pytest.raises(errors.AlreadyReleased, match="kept"):
        account.open(asking(step=step), key="k").step(None)
    assert step.calls == 0


@pytest.mark.parametrize(
    "other",
    [
        asking(events.Laplace(2), name="question"),
        asking(name="another question"),
        asking(events.Laplace(1), horizon=2),
    ],
)
def test_a_key_belongs_to_one_measurement(account: Any, other: Any) -> None:
    account.open(asking(), key="k").step(None)
    with pytest.raises(errors.InvalidParameter, match="key"):
        account.open(other, key="k")
    assert account.spent == 1.0


def test_a_key_belongs_to_one_account(ledger: Any, account: Any) -> None:
    other = ledger.account("stays", unit=PERSON, epsilon=10)
    account.open(asking(answer=1), key="k").step(None)
    assert other.open(asking(answer=2), key="k").step(None).value == 2
    assert other.spent == 1.0


def test_a_failure_stays_paid_and_stays_a_failure(account: Any) -> None:
    with pytest.raises(errors.StepFailed):
        account.open(asking(step=Flaky(ValueError("secret"))), key="k").step(None)
    step = Flaky()
    with pytest.raises(errors.StepFailed):
        account.open(asking(step=step), key="k").step(None)
    assert step.calls == 0
    assert account.spent == 1.0


def test_unreachable_data_may_be_asked_again_as_often_as_needed(place: Any) -> None:
    for _ in range(5):
        account = place.open().account("visits", unit=PERSON, epsilon=10)
        run = account.open(asking(step=Flaky(*[errors.SourceUnavailable("away.")] * 3)), key="k")
        for _ in range(3):
            with pytest.raises(errors.SourceUnavailable):
                run.step(None)
    assert account.open(asking(answer=7), key="k").step(None).value == 7
    assert account.spent == 1.0
    assert place.open().verify().ok


def test_a_crash_may_be_retried_once_for_the_same_payment(place: Any) -> None:
    account = place.open().account("visits", unit=PERSON, epsilon=10)
    account.open(asking(), key="k")  # and the process is gone
    step = Flaky(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        place.open().account("visits").open(asking(step=step), key="k").step(None)
    with pytest.raises(errors.StepFailed, match="started 2 times"):
        place.open().account("visits").open(asking(step=step), key="k").step(None)
    assert step.calls == 1
    assert account.spent == 1.0


def test_an_interrupted_step_is_started_once_more_and_then_never(account: Any) -> None:
    step = Flaky(KeyboardInterrupt(), KeyboardInterrupt(), KeyboardInterrupt())
    run = account.open(asking(step=step))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run.step(None)
    with pytest.raises(errors.StepFailed):
        run.step(None)
    assert step.calls == 2


def test_who_was_overtaken_can_no_longer_release(place: Any) -> None:
    first = place.open().account("visits", unit=PERSON, epsilon=10).open(asking(answer="first"), key="k")
    second = place.open().account("visits").open(asking(answer="second"), key="k")
    second._reservation.note_start(1)
    with pytest.raises(errors.AlreadyReleased, match="taken over"):
        first.step(None)
    second._reservation.note_answer(1, "second")
    assert place.open().account("visits").open(asking(), key="k").step(None).value == "second"
    assert place.open().verify().ok


def test_who_comes_late_finds_the_answer_of_the_first(place: Any) -> None:
    first = place.open().account("visits", unit=PERSON, epsilon=10).open(asking(answer="first"), key="k")
    second = place.open().account("visits").open(asking(answer="second"), key="k")
    assert first.step(None).value == "first"
    assert second.step(None).value == "first"


def test_an_answer_that_could_not_be_noted_waits_and_is_not_drawn_again(
    account: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Flaky()
    run = account.open(asking(step=step))
    write = ledger._storage.write
    monkeypatch.setattr(ledger._storage, "write", unavailable)
    for _ in range(3):
        with pytest.raises(errors.LedgerUnavailable):
            run.step(None)
    monkeypatch.setattr(ledger._storage, "write", write)
    assert run.step(None).value == 1
    assert step.calls == 1
    assert kinds(ledger) == ["pay", "release"]


def test_a_commit_whose_confirmation_was_lost_counts_once(
    account: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = account.open(asking(answer=5))
    write = ledger._storage.write

    def deaf(operation: Any) -> None:
        write(operation)
        unavailable(operation)

    monkeypatch.setattr(ledger._storage, "write", deaf)
    with pytest.raises(errors.LedgerUnavailable):
        run.step(None)
    monkeypatch.setattr(ledger._storage, "write", write)
    assert run.step(None).value == 5
    assert kinds(ledger) == ["pay", "release"]


def unavailable(operation: Any) -> NoReturn:
    raise errors.LedgerUnavailable("the disk is full.")


def counter(horizon: Any = 10, **changes: Any) -> Any:
    """A stream whose state counts its steps."""
    step = lambda state, data, ask, rng: ((state or 0) + 1, (state or 0) + 1)
    return asking(events.Laplace(10) * horizon, horizon=horizon, step=changes.pop("step", step), **changes)


def test_steps_that_were_never_taken_are_handed_back(account: Any, ledger: Any) -> None:
    with account.open(counter(10)) as run:
        assert [run.step(None).value for _ in range(3)] == [1, 2, 3]
        assert account.spent == pytest.approx(1.0)
    assert account.spent == pytest.approx(0.3)
    assert account.event() == events.Laplace(10) * 3
    assert ledger.verify().ok


def test_a_run_that_was_never_stepped_costs_nothing_and_frees_its_key(account: Any, ledger: Any) -> None:
    for _ in range(3):
        with account.open(counter(10), key="k"):
            pass
        assert account.spent == 0
    assert account.open(asking(), key="k").step(None).value == 0
    assert ledger.verify().ok


def test_a_step_that_may_have_met_the_data_is_not_handed_back(account: Any) -> None:
    run = account.open(counter(10, step=Flaky(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        run.step(None)
    run.close()
    assert account.spent == pytest.approx(0.1)


def test_a_step_that_a_lost_holder_may_have_started_is_not_handed_back(place: Any) -> None:
    place.open().account("visits", unit=PERSON, epsilon=10).open(counter(10), key="k")  # and the process is gone
    account = place.open().account("visits")
    run = account.open(counter(10, step=Flaky(errors.SourceUnavailable("away."))), key="k")
    with pytest.raises(errors.SourceUnavailable):
        run.step(None)
    run.close()
    assert account.spent == pytest.approx(0.1)


def test_a_failed_step_is_not_handed_back(account: Any) -> None:
    run = account.open(counter(10, step=Flaky(ValueError())))
    with pytest.raises(errors.StepFailed):
        run.step(None)
    run.close()
    assert account.spent == pytest.approx(0.1)


def test_a_price_that_is_not_a_repetition_is_kept_whole(account: Any) -> None:
    with account.open(asking(events.Laplace(1), horizon=10)) as run:
        run.step(None)
    assert account.spent == 1.0


def test_a_run_whose_holder_is_gone_gives_its_answers_and_no_new_ones(place: Any) -> None:
    account = place.open().account("visits", unit=PERSON, epsilon=10)
    run = account.open(counter(10), key="k")
    answers = [run.step(None).value for _ in range(3)]
    again = place.open().account("visits").open(counter(10), key="k")
    assert [again.step(None).value for _ in range(3)] == answers
    with pytest.raises(errors.RunClosed, match="state"):
        again.step(None)
    assert run.step(None).value == 4  # the holder itself was not disturbed
    assert place.open().verify().ok


def test_a_closed_run_stays_closed(account: Any) -> None:
    with account.open(counter(10), key="k") as run:
        run.step(None)
    again = account.open(counter(10), key="k")
    assert again.step(None).value == 1
    with pytest.raises(errors.RunClosed):
        again.step(None)


def test_handing_back_is_refused_to_who_was_overtaken(place: Any) -> None:
    first = place.open().account("visits", unit=PERSON, epsilon=10).open(counter(10), key="k")
    second = place.open().account("visits").open(counter(10), key="k")
    second.step(None)
    first.close()
    account = place.open().account("visits")
    assert account.spent == pytest.approx(1.0)
    second.close()
    assert account.spent == pytest.approx(0.1)
    assert place.open().verify().ok


def test_a_rule_that_keeps_what_was_paid_hands_nothing_back(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(account.rule), "returns_unused", False)
    with account.open(counter(10)) as run:
        run.step(None)
    assert account.spent == pytest.approx(1.0)


def test_a_seeded_generator_is_refused(account: Any) -> None:
    with pytest.raises(errors.InsecureRandomness):
        account.open(asking(), rng=mosha.noise.SeededRandom(1))
    assert account.spent == 0


def test_a_receipt_in_another_measure_says_what_all_spending_means() -> None:
    ledger = mosha.Ledger.memory()
    counted = ledger.account("counted", unit=PERSON, epsilon=3, delta=1e-6)
    receipts = [counted.open(asking(events.Gaussian(20))).receipt for _ in range(2)]
    assert receipts[1].spent_as == counted.spent_as
    assert receipts[0].spent_as.epsilon < receipts[1].spent_as.epsilon  # type: ignore[attr-defined]
    assert f"(all spending so far: {counted.spent_as})" in str(receipts[1])
    assert receipts[1].to_dict()["spent_as"] == counted.spent_as.to_dict()


@pytest.mark.parametrize("limit", [{"epsilon": 3}, {"rho": 0.5}], ids=["epsilon itself", "no delta"])
def test_a_receipt_says_no_more_where_there_is_no_other_epsilon(limit: Any) -> None:
    receipt = mosha.Ledger.memory().account("a", unit=PERSON, **limit).open(asking(events.Laplace(20))).receipt
    assert receipt.spent_as is None
    assert "so far" not in str(receipt)
