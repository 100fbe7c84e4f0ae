"""Above threshold: alarms, questions and the split of epsilon."""

import math
from typing import Any

import pytest

import mosha
from mosha import Row
from mosha.accounting.measures import pure
from mosha.core.errors import InvalidParameter
from mosha.events import SparseVector
from mosha.mechanisms import ClippedSum, Count, Histogram, above_threshold
from mosha.mechanisms.sparse_vector import split_epsilon
from mosha.noise import secure

ROW = Row()


def test_after_the_last_alarm_nothing_is_read_any_more() -> None:
    measurement = above_threshold(Count(), unit=ROW, epsilon=50, threshold=10, horizon=5, alarms=2)
    state, answers = measurement.init(), []
    for data in ([1] * 5, [1] * 100, [1] * 100, "unread", object()):
        answer, state = measurement.step(state, data, None, secure())
        answers.append(answer)
    assert answers == [False, True, True, None, None]


def test_other_questions_may_be_asked_if_they_move_no_further() -> None:
    young = Count(between=(0, 30))
    measurement = above_threshold(Count(), unit=ROW, epsilon=50, threshold=10, horizon=3, alarms=3)
    state = measurement.init()
    answer, state = measurement.step(state, [20] * 50, young, secure())
    assert answer is True
    answer, state = measurement.step(state, [70] * 50, young, secure())
    assert answer is False


@pytest.mark.parametrize("ask", [
    ClippedSum(between=(0, 10), grid=1), ClippedSum(between=(-1, 1), grid=1), ClippedSum(between=(0, 1)),
    Histogram(keys=[1, 2]), "all", 3, Count,
], ids=repr)  # fmt: skip
def test_a_question_that_moves_further_or_the_other_way_is_refused_unread(ask: Any) -> None:
    measurement = above_threshold(Count(), unit=ROW, epsilon=1, threshold=10, horizon=3)
    with pytest.raises(InvalidParameter):
        measurement.step(measurement.init(), object(), ask, secure())


def test_a_refused_question_passes_the_door_as_itself() -> None:
    measurement = above_threshold(Count(), unit=ROW, epsilon=1, threshold=10, horizon=3)
    account = mosha.Ledger.memory().account("a", unit=ROW, epsilon=2)
    with account.open(measurement) as run, pytest.raises(InvalidParameter):
        run.step([1], Histogram(keys=[1, 2]))


@pytest.mark.parametrize("alarms", [1, 3, 50])
@pytest.mark.parametrize("monotone", [True, False])
def test_the_split_has_the_least_variance_and_adds_up(alarms: int, monotone: bool) -> None:
    epsilon, factor = 0.7, alarms * (1 if monotone else 2)
    variance = lambda first: 1 / first**2 + factor**2 / (epsilon - first) ** 2
    first, second = split_epsilon(epsilon, alarms, monotone=monotone)
    assert variance(first) <= min(variance(first * 1.01), variance(first * 0.99))
    assert pure.epsilon(SparseVector(first, second, alarms)) <= epsilon
    assert first + second == pytest.approx(epsilon)


def test_monotone_questions_need_half_the_noise() -> None:
    counted = above_threshold(Count(), unit=ROW, epsilon=1, threshold=0, horizon=1).error
    summed = above_threshold(ClippedSum(between=(-1, 1), grid=1), unit=ROW, epsilon=1, threshold=0, horizon=1).error
    assert counted.answer == pytest.approx(2.0)  # type: ignore[attr-defined]
    assert summed.answer == pytest.approx(2 / split_epsilon(1, 1, monotone=False)[1])  # type: ignore[attr-defined]
    assert counted.answer < summed.answer  # type: ignore[attr-defined]


def test_the_price_does_not_depend_on_the_number_of_questions() -> None:
    few, many = (above_threshold(Count(), unit=ROW, epsilon=1, threshold=0, horizon=horizon) for horizon in (1, 10**6))
    assert few.event == many.event
    assert few.forecast(0.9) < many.forecast(0.9)


@pytest.mark.parametrize("bad", [
    {"threshold": float("nan")}, {"threshold": None}, {"horizon": 0}, {"horizon": 1.5}, {"alarms": 0}, {"alarms": -1},
    {"epsilon": 0}, {"statistic": Histogram(keys=[1, 2])},
], ids=str)  # fmt: skip
def test_bad_declarations_are_refused(bad: Any) -> None:
    good = {"unit": ROW, "epsilon": 1, "threshold": 5, "horizon": 3, "alarms": 1, "statistic": Count()} | bad
    with pytest.raises(InvalidParameter):
        above_threshold(good.pop("statistic"), **good)


def test_thresholds_between_two_steps_are_rounded_up() -> None:
    # a count of 10 is below 10.5: with hardly any noise it says so
    measurement = above_threshold(Count(), unit=ROW, epsilon=200, threshold=10.5, horizon=1)
    assert measurement.step(None, [1] * 10, None, secure())[0] is False
    assert measurement.step(None, [1] * 12, None, secure())[0] is True
    assert math.isfinite(measurement.forecast(0.9))
