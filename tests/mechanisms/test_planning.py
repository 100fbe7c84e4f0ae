"""From accuracy to epsilon and back."""

import math
from typing import Any

import numpy as np
import pytest

from mosha import Own, Person, Row
from mosha.core.errors import InvalidParameter
from mosha.mechanisms import (
    ClippedSum,
    Count,
    Histogram,
    Quantile,
    above_threshold,
    exponential,
    gaussian,
    laplace,
    mean,
    partition_selection,
    permute_and_flip,
    planning,
    propose_test_release,
    randomized_response,
    report_noisy_max,
    smooth_forecast,
    smooth_sensitivity,
    top_k,
)
from mosha.mechanisms.error_bars import laplace_tail

ROW = Row()
LETTERS = Histogram(keys=["a", "b", "c", "d"])


@pytest.mark.parametrize("deviation", [0.05, 0.5, 1.0, 10.0, 1e6])
@pytest.mark.parametrize("sensitivity", [1.0, 100.0])
def test_the_least_epsilon_for_a_standard_deviation(deviation: float, sensitivity: float) -> None:
    epsilon = planning.laplace_epsilon(sensitivity, standard_deviation=deviation)
    assert planning.laplace_deviation(sensitivity, epsilon) <= deviation
    assert planning.laplace_deviation(sensitivity, epsilon * (1 - 1e-6)) > deviation


@pytest.mark.parametrize("within", [0.5, 1.0, 100.0, 12345.6])
@pytest.mark.parametrize("confidence", [0.5, 0.99, 0.999999])
def test_the_least_epsilon_for_a_width(within: float, confidence: float) -> None:
    epsilon = planning.laplace_epsilon(3, within=within, confidence=confidence)
    assert planning.laplace_exceeds(3, epsilon, within) <= 1 - confidence
    assert planning.laplace_exceeds(3, epsilon * (1 - 1e-6), within) > 1 - confidence
    assert planning.laplace_within(3, epsilon * (1 + 1e-9), confidence) <= within


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("accuracy", [{"standard_deviation": 7.0}, {"within": 7.0, "confidence": 0.99}], ids=str)
def test_the_gaussian_of_a_plan_is_as_accurate_as_planned_and_hardly_more(delta: float, accuracy: Any) -> None:
    statistic = ClippedSum(between=(0, 10))
    epsilon = planning.gaussian_epsilon(10, delta=delta, **accuracy)
    reached = gaussian(statistic, unit=ROW, epsilon=epsilon, delta=delta).error
    least = gaussian(statistic, unit=ROW, epsilon=epsilon * 0.99, delta=delta).error
    if "within" in accuracy:
        assert reached(0.99) <= 7.0 < least(0.99)  # type: ignore[call-arg]
    else:
        assert reached.standard_deviation <= 7.0 < least.standard_deviation  # type: ignore[attr-defined]


def test_error_and_epsilon_turn_each_other_around() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        deviation = planning.gaussian_deviation(2, epsilon, 1e-6)
        assert planning.gaussian_epsilon(2, delta=1e-6, standard_deviation=deviation) == pytest.approx(
            epsilon, rel=1e-4
        )
        width = planning.gaussian_within(2, epsilon, 1e-6, 0.9)
        assert planning.gaussian_epsilon(2, delta=1e-6, within=width, confidence=0.9) == pytest.approx(
            epsilon, rel=5e-3
        )


def test_a_finer_grid_tends_to_the_continuous_law() -> None:
    fine = planning.laplace_epsilon(1, standard_deviation=10, grid=2.0**-30)
    assert fine == pytest.approx(math.sqrt(2) / 10, rel=1e-9)
    assert planning.laplace_within(1, 0.5, 0.95, grid=2.0**-30) == pytest.approx(-math.log(0.05) / 0.5, rel=1e-6)


PLANS = {
    "laplace": lambda e: laplace(Count(), unit=ROW, epsilon=e),
    "laplace histogram": lambda e: laplace(LETTERS, unit=ROW, epsilon=e),
    "gaussian": lambda e: gaussian(Count(), unit=ROW, epsilon=e, delta=1e-6),
    "exponential": lambda e: exponential(LETTERS, unit=ROW, epsilon=e),
    "permute_and_flip": lambda e: permute_and_flip(LETTERS, unit=ROW, epsilon=e),
    "report_noisy_max": lambda e: report_noisy_max(LETTERS, unit=ROW, epsilon=e),
    "top_k": lambda e: top_k(LETTERS, unit=ROW, k=2, epsilon=e),
    "above_threshold": lambda e: above_threshold(Count(), unit=ROW, epsilon=e, threshold=5, horizon=10),
    "propose_test_release": lambda e: propose_test_release(
        Quantile(at=0.5, between=(0, 1000)), unit=ROW, epsilon=e, delta=1e-6, sensitivity=3
    ),
    "partition_selection": lambda e: partition_selection(unit=Person("who", groups=2), epsilon=e, delta=1e-6),
}


@pytest.mark.parametrize("factory", PLANS.values(), ids=PLANS.keys())
def test_a_plan_is_the_least_epsilon_that_is_enough(factory: Any) -> None:
    width = lambda e: float(np.max(factory(e).forecast(0.95)))
    epsilon = planning.plan(factory, within=40, confidence=0.95)
    assert width(epsilon) <= 40 < width(epsilon * (1 - 1e-5))


@pytest.mark.parametrize("name", ["laplace", "laplace histogram", "gaussian"])
def test_a_plan_for_a_standard_deviation(name: str) -> None:
    epsilon = planning.plan(PLANS[name], standard_deviation=10)
    assert PLANS[name](epsilon).error.standard_deviation <= 10  # type: ignore[attr-defined]
    assert PLANS[name](epsilon * (1 - 1e-5)).error.standard_deviation > 10  # type: ignore[attr-defined]


def test_five_percent_of_a_mean_with_95_percent_confidence() -> None:
    ages = lambda e: mean(between=(0, 100), unit=ROW, epsilon=e)
    guess = {"mean": 40.0, "count": 10_000.0, "sum": 400_000.0}
    epsilon = planning.plan(ages, within=0.05 * 40, confidence=0.95, like=guess, part="mean")
    assert ages(epsilon).error(0.95, guess)["mean"] <= 2 < ages(epsilon * 0.999).error(0.95, guess)["mean"]
    with pytest.raises(InvalidParameter, match="part"):
        planning.plan(ages, within=2, confidence=0.95, like=guess)


def test_a_plan_for_lies_and_for_public_data_like_the_private_ones() -> None:
    lies = lambda e: randomized_response(["a", "b"], unit=Own(), epsilon=e)
    epsilon = planning.plan(lies, within=0.25, confidence=0.5)
    assert epsilon == pytest.approx(math.log(3), rel=1e-5)
    ages, median = np.linspace(0, 100, 2001), Quantile(at=0.5, between=(0, 100))
    wide, narrow = (smooth_forecast(median, ages, unit=ROW, epsilon=e, confidence=0.9) for e in (0.5, 2))
    assert wide > narrow > 0


@pytest.mark.parametrize("accuracy", [
    {}, {"within": 1}, {"confidence": 0.9}, {"standard_deviation": 1, "confidence": 0.9}, {"standard_deviation": 0},
    {"within": -1, "confidence": 0.9}, {"within": 1, "confidence": 1}, {"within": 1, "confidence": 0},
    {"standard_deviation": float("nan")}, {"within": "wide", "confidence": 0.9},
], ids=str)  # fmt: skip
def test_an_accuracy_that_is_none_is_refused(accuracy: Any) -> None:
    for ask in (
        lambda: planning.laplace_epsilon(1, **accuracy),
        lambda: planning.gaussian_epsilon(1, delta=1e-6, **accuracy),
        lambda: planning.plan(PLANS["laplace"], **accuracy),
    ):
        with pytest.raises(InvalidParameter):
            ask()


def test_an_accuracy_that_cannot_be_had_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="cannot be reached"):
        planning.plan(PLANS["report_noisy_max"], within=1e-12, confidence=0.95)
    with pytest.raises(InvalidParameter, match="depends on the data"):
        planning.plan(
            lambda e: smooth_sensitivity(Quantile(at=0.5, between=(0, 1)), unit=ROW, epsilon=e),
            within=1,
            confidence=0.9,
        )
    with pytest.raises(InvalidParameter, match="standard deviation"):
        planning.plan(PLANS["exponential"], standard_deviation=1)


def test_nothing_about_a_plan_needs_data() -> None:
    assert laplace_tail(1.0, 0) == pytest.approx(2 * math.exp(-1) / (1 + math.exp(-1)))
    assert planning.laplace_exceeds(1, 1, 0) == pytest.approx(laplace_tail(1.0, 0))
