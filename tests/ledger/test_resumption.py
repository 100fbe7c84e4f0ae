"""A run whose state can be found again goes on in another process; one whose state is lost does not."""

import dataclasses

import pytest

from mosha import errors
from mosha.core.measurement import StatePolicy
from tests.ledger.place import PERSON, asking


def counting(horizon=4, resume=lambda state, answer: answer):
    """Each step answers with the sum so far: the state is the last answer."""
    step = lambda state, data, ask, rng: (state + data, state + data)
    return dataclasses.replace(asking(step=step, horizon=horizon), init=lambda: 0, state=StatePolicy(resume=resume))


def account(place):
    return place.open().account("visits", unit=PERSON, epsilon=10)


def test_a_run_goes_on_after_its_last_answer_without_a_second_payment(place):
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


def test_the_earlier_holder_can_no_longer_release(place):
    run = account(place).open(counting(), key="k")
    run.step(1)
    again = account(place).open(counting(), key="k")
    again.step(None)
    again.step(10)
    with pytest.raises(errors.AlreadyReleased):
        run.step(20)


def test_without_a_way_to_find_the_state_again_the_run_has_ended(place):
    made = counting(resume=None)
    run = account(place).open(made, key="k")
    run.step(1)
    again = account(place).open(made, key="k")
    again.step(None)
    with pytest.raises(errors.RunClosed):
        again.step(10)


def test_each_step_survives_one_crash_and_not_two(place):
    def killed(state, data, ask, rng):
        raise KeyboardInterrupt

    broken = dataclasses.replace(counting(), step=killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            account(place).open(broken, key="k").step(None)
    with pytest.raises(errors.StepFailed):
        account(place).open(counting(), key="k").step(1)


def test_an_answer_that_waited_moves_the_state_once(place, monkeypatch):
    run = account(place).open(counting(), key="k")
    note = type(run._reservation)._note

    def unavailable(self):
        raise errors.LedgerUnavailable("the disk is full")

    monkeypatch.setattr(type(run._reservation), "_note", unavailable)
    with pytest.raises(errors.LedgerUnavailable):
        run.step(1)
    monkeypatch.setattr(type(run._reservation), "_note", note)
    assert [run.step(5).value, run.step(10).value] == [1, 11]
