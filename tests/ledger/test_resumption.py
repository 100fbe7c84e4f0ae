"""A run whose state can be found again goes on in another process; one whose state is lost does not."""

import dataclasses
from typing import Any, NoReturn

import pytest

from mosha import errors, events
from mosha.core.measurement import StatePolicy
from tests.ledger.place import PERSON, asking

KILLED = object()


def counting(horizon: Any = 4, resume: Any = lambda state, answer: answer) -> Any:
    """Each step answers with the sum so far: the state is the last answer."""

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        if data is KILLED:
            raise KeyboardInterrupt
        return state + data, state + data

    return dataclasses.replace(asking(step=step, horizon=horizon), init=lambda: 0, state=StatePolicy(resume=resume))


def account(place: Any) -> Any:
    return place.open().account("visits", unit=PERSON, epsilon=10)


def test_a_run_goes_on_after_its_last_answer_without_a_second_payment(place: Any) -> None:
    first = account(place)
    run = first.open(counting(), key="k")
    assert [run.step(n).value for n in (1, 10)] == [1, 11]
    spent = first.spent
    again = account(place).open(counting(), key="k")
    unread = object()
    assert [again.step(unread).value for _ in range(2)] == [1, 11]
    assert [again.step(n).value for n in (100, 1000)] == [111, 1111]
    assert account(place).spent == spent
    assert place.open().verify().ok


def test_the_earlier_holder_can_no_longer_release(place: Any) -> None:
    run = account(place).open(counting(), key="k")
    run.step(1)
    again = account(place).open(counting(), key="k")
    again.step(None)
    again.step(10)
    with pytest.raises(errors.AlreadyReleased):
        run.step(20)


def test_without_a_way_to_find_the_state_again_the_run_has_ended(place: Any) -> None:
    made = counting(resume=None)
    run = account(place).open(made, key="k")
    run.step(1)
    again = account(place).open(made, key="k")
    again.step(None)
    with pytest.raises(errors.RunClosed):
        again.step(10)


def end_process(run: Any, steps: int = 1) -> None:
    """Read what is answered, and be gone without a word in the middle of the step after it."""
    for _ in range(steps - 1):
        run.step(None)
    with pytest.raises(KeyboardInterrupt):
        run.step(KILLED)


def test_a_step_that_was_lost_twice_is_given_up_and_the_run_goes_on_after_it(place: Any) -> None:
    first = account(place).open(counting(), key="k")
    assert first.step(1).value == 1
    spent = account(place).spent
    end_process(first)
    end_process(account(place).open(counting(), key="k"), steps=2)
    again = account(place).open(counting(), key="k")
    assert again.step(None).value == 1
    with pytest.raises(errors.StepGivenUp, match="lost each time") as lost:
        again.step(10)
    assert lost.value.spent == "paid"
    assert [again.step(n).value for n in (100, 1000)] == [101, 1101]
    with pytest.raises(errors.HorizonExceeded):
        again.step(1)
    assert account(place).spent == spent
    assert account(place).failures == 1
    assert place.open().verify().ok
    later = account(place).open(counting(), key="k")
    assert [later.step(None).value for _ in range(3)] == [1, 101, 1101]  # what was released, and nothing anew


def give_up_first(place: Any, noise: Any = 2) -> Any:
    """Two processes that were killed in the first step, and a third one, which goes on."""
    made = dataclasses.replace(counting(), event=events.Laplace(noise) * 4)
    for _ in range(2):
        end_process(account(place).open(made, key="k"))
    run = account(place).open(made, key="k")
    with pytest.raises(errors.StepGivenUp):
        run.step(1)
    return run


def test_the_step_after_one_that_was_given_up_survives_a_crash_like_any_other(place: Any) -> None:
    third = give_up_first(place)
    end_process(third)
    assert account(place).open(third.measurement, key="k").step(1).value == 1
    assert place.open().verify().ok


def test_whoever_still_works_on_a_step_that_was_given_up_cannot_release_it(place: Any) -> None:
    """A holder that was thought to be dead comes back: no answer of its own leaves, whatever it drew."""
    met = []

    def sleep(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        met.append(data)
        with pytest.raises(errors.StepGivenUp):
            account(place).open(counting(), key="k").step(1)
        return state + data, state + data

    end_process(account(place).open(counting(), key="k"))
    second = account(place).open(dataclasses.replace(counting(), step=sleep), key="k")
    for _ in range(2):
        with pytest.raises(errors.AlreadyReleased):
            second.step(5)
    assert met == [5]
    assert [row.kind for row in place.open().entries()][-3:] == ["claim", "fail", "failure"]
    assert place.open().verify().ok


def test_a_step_that_was_given_up_stays_paid_when_the_run_is_closed(place: Any) -> None:
    give_up_first(place, noise=4).close()
    assert account(place).event() == events.Laplace(4)
    assert place.open().verify().ok


def test_three_steps_that_are_given_up_freeze_the_account(place: Any) -> None:
    run = give_up_first(place)
    for failures in (2, 3):
        end_process(run)
        end_process(account(place).open(run.measurement, key="k"))
        run = account(place).open(run.measurement, key="k")
        with pytest.raises(errors.StepGivenUp):
            run.step(1)
        assert account(place).failures == failures
    with pytest.raises(errors.AccountFrozen):
        run.step(1)
    account(place).lift()
    assert run.step(1).step == 4
    assert place.open().verify().ok


def test_a_single_question_that_was_lost_twice_is_refused_with_advice(place: Any) -> None:
    """There is nothing to go on with, and another process may still be at it: nothing is written."""
    made = counting(horizon=1, resume=None)
    for _ in range(2):
        end_process(account(place).open(made, key="k"))
    rows = place.open().entries()
    for _ in range(2):
        with pytest.raises(errors.StepFailed, match="ask under a new key") as refused:
            account(place).open(made, key="k").step(1)
        assert type(refused.value) is errors.StepFailed
    assert place.open().entries() == rows
    assert account(place).open(made, key="another").step(1).value == 1


def test_an_answer_that_waited_moves_the_state_once(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = account(place).open(counting(), key="k")
    note = type(run._reservation)._note

    def unavailable(self: Any) -> NoReturn:
        raise errors.LedgerUnavailable("the disk is full")

    monkeypatch.setattr(type(run._reservation), "_note", unavailable)
    with pytest.raises(errors.LedgerUnavailable):
        run.step(1)
    monkeypatch.setattr(type(run._reservation), "_note", note)
    assert [run.step(5).value, run.step(10).value] == [1, 11]
