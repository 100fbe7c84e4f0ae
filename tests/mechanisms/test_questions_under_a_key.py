"""A key finds the answer to its own question, and to no other one of the same price."""

from typing import Any

import pytest

import mosha
from mosha.errors import InvalidParameter
from mosha.mechanisms import (
    ClippedSum,
    Count,
    Histogram,
    Quantile,
    VectorSum,
    above_threshold,
    exponential,
    gaussian,
    laplace,
    mean,
    permute_and_flip,
    propose_test_release,
    randomized_response,
    report_noisy_max,
    smooth_sensitivity,
    top_k,
)
from tests.mechanisms.every_measurement import every_measurement

ROW, SELF = mosha.Row(), mosha.Own()
HERE, THERE = Histogram(keys=["a", "b", "c"]), Histogram(keys=["a", "b", "d"])
LOW, HIGH = Quantile(at=0.25, between=(0, 8)), Quantile(at=0.75, between=(0, 8))

PAIRS = {
    "laplace, another column": (
        lambda: laplace(Count(column="age"), unit=ROW, epsilon=1),
        lambda: laplace(Count(column="weight"), unit=ROW, epsilon=1),
    ),
    "laplace, other bounds": (
        lambda: laplace(ClippedSum(between=(0, 8)), unit=ROW, epsilon=1),
        lambda: laplace(ClippedSum(between=(1, 8)), unit=ROW, epsilon=1),
    ),
    "gaussian, other keys": (lambda: gaussian(HERE, unit=ROW, rho=0.1), lambda: gaussian(THERE, unit=ROW, rho=0.1)),
    "gaussian, another column of vectors": (
        lambda: gaussian(VectorSum(norm=1, coordinates=2, column="x"), unit=ROW, rho=0.1),
        lambda: gaussian(VectorSum(norm=1, coordinates=2, column="y"), unit=ROW, rho=0.1),
    ),
    "mean, other bounds": (
        lambda: mean(between=(0, 8), unit=ROW, epsilon=1),
        lambda: mean(between=(0, 4), unit=ROW, epsilon=1),
    ),
    "mean, what is missing": (
        lambda: mean(between=(0, 8), unit=ROW, epsilon=1),
        lambda: mean(between=(0, 8), unit=ROW, epsilon=1, missing="middle"),
    ),
    "exponential": (lambda: exponential(HERE, unit=ROW, epsilon=1), lambda: exponential(THERE, unit=ROW, epsilon=1)),
    "permute_and_flip": (
        lambda: permute_and_flip(HERE, unit=ROW, epsilon=1),
        lambda: permute_and_flip(THERE, unit=ROW, epsilon=1),
    ),
    "report_noisy_max, another top": (
        lambda: report_noisy_max(HERE, unit=ROW, epsilon=1, top=1),
        lambda: report_noisy_max(HERE, unit=ROW, epsilon=1, top=2),
    ),
    "top_k": (lambda: top_k(HERE, unit=ROW, k=2, epsilon=1), lambda: top_k(THERE, unit=ROW, k=2, epsilon=1)),
    "above_threshold, another threshold": (
        lambda: above_threshold(Count(), unit=ROW, epsilon=1, threshold=4, horizon=2),
        lambda: above_threshold(Count(), unit=ROW, epsilon=1, threshold=5, horizon=2),
    ),
    "randomized_response": (
        lambda: randomized_response(["a", "b"], unit=SELF, epsilon=1),
        lambda: randomized_response(["a", "c"], unit=SELF, epsilon=1),
    ),
    "smooth_sensitivity": (
        lambda: smooth_sensitivity(LOW, unit=ROW, epsilon=1),
        lambda: smooth_sensitivity(HIGH, unit=ROW, epsilon=1),
    ),
    "propose_test_release, another proposal": (
        lambda: propose_test_release(LOW, unit=ROW, epsilon=1, delta=1e-6, sensitivity=1),
        lambda: propose_test_release(LOW, unit=ROW, epsilon=1, delta=1e-6, sensitivity=2),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_another_question_under_the_same_key_is_refused_and_nothing_is_spent(name: Any) -> None:
    first, second = PAIRS[name]
    account = mosha.Ledger.memory().account("test", unit=first().unit, epsilon=500, delta=1e-3)
    account.open(first(), key="monday")
    spent = account.spent
    account.open(first(), key="monday")  # made anew, the same question is the same
    with pytest.raises(InvalidParameter, match="paid for another"):
        account.open(second(), key="monday")
    assert account.spent == spent


@pytest.mark.parametrize("case", every_measurement(), ids=str)
def test_every_measurement_says_what_it_asks(case: Any) -> None:
    assert case.make(1.0).question
    assert case.make(1.0).question == case.make(1.0).question


class OwnCount:
    """A statistic without a text of its own."""

    grid, labels = 1.0, None

    def sensitivity(self, unit: Any) -> Any:
        return Count().sensitivity(unit)

    def evaluate(self, data: Any, unit: Any) -> Any:
        return Count().evaluate(data, unit)


def test_a_statistic_without_a_text_of_its_own_is_found_again() -> None:
    assert laplace(OwnCount(), unit=ROW, epsilon=1).question == laplace(OwnCount(), unit=ROW, epsilon=1).question


def test_a_class_in_place_of_a_statistic_is_told_to_call_it() -> None:
    with pytest.raises(InvalidParameter, match=r"call it, such as Count\(\.\.\.\)"):
        laplace(Count, unit=ROW, epsilon=1)  # type: ignore[arg-type]


def test_a_quantile_in_the_wrong_place_is_told_its_mechanisms() -> None:
    with pytest.raises(InvalidParameter, match="smooth_sensitivity"):
        laplace(LOW, unit=ROW, epsilon=1)


def test_a_release_whose_width_is_private_says_so() -> None:
    account = mosha.Ledger.memory().account("test", unit=ROW, epsilon=5)
    release = account.open(smooth_sensitivity(LOW, unit=ROW, epsilon=1)).step([1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameter, match="private"):
        release.error()
