"""Means and distributions of numbers: unbiased, as precise as theory says, refused where they mean nothing."""

import math
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.local import Distribution, Frequency, Mean, Several
from mosha.local.distribution import half_width
from mosha.local.protocols.numeric import METHODS, numeric_by_name, worst_variance
from tests.local import golden


@pytest.mark.parametrize(("name", "method"), [("mean Duchi", "duchi"), ("mean PM", "piecewise"), ("mean HM", "hybrid")])
def test_golden_worst_variances(name: str, method: str) -> None:
    """The window has 65534 cells, which moves its variance by less than a ten-thousandth."""
    for parameters, expected in golden.rows("ldp", name):
        assert worst_variance(numeric_by_name(method, parameters["eps"])) == pytest.approx(expected, rel=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "expected"), [(0.5, 16.67), (1, 4.289), (2, 1.042), (4, 0.2190)])
def test_the_hybrid_keeps_its_worst_case(epsilon: float, expected: float) -> None:
    assert worst_variance(numeric_by_name("hybrid", epsilon)) == pytest.approx(expected, rel=5e-4)


def test_golden_half_widths_of_square_waves() -> None:
    for parameters, expected in golden.rows("ldp", "square wave"):
        assert half_width(parameters["eps"]) == pytest.approx(expected, rel=1e-9)
    assert half_width(0.0099) == pytest.approx(half_width(0.0101), abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [-3.0, 0.0, 4.5, 7.0])
def test_means_are_unbiased_with_the_variance_of_theory(method: Any, value: float) -> None:
    """Seven deviations: false alarm 3e-12. The variance of 60,000 bounded estimates is within 8% (ten deviations)."""
    survey = Mean(between=(-3, 7), epsilon=1.5, method=method)
    average = survey.estimate(survey.reports(np.full(60_000, value)))
    share = (value + 3) / 10
    variance = 100 * survey.randomizer.variance_at(share)
    assert abs(average.value - value) < 7 * math.sqrt(variance / 60_000)
    assert average.deviation**2 == pytest.approx(variance, rel=0.08)
    one_by_one = survey.estimate([survey.report(value) for _ in range(3_000)])
    assert abs(one_by_one.value - value) < 7 * math.sqrt(variance / 3_000)


@pytest.mark.parametrize("shift", [-0.2, 0.2])
def test_the_test_of_means_can_fail(shift: float) -> None:
    survey = Mean(between=(-3, 7), epsilon=1.5)
    average = survey.estimate(survey.reports(np.full(400_000, 4.5 + shift)))
    variance = 100 * survey.randomizer.variance_at(0.75)
    assert abs(average.value - 4.5) > 7 * math.sqrt(variance / 400_000)


def test_numbers_beyond_the_range_are_clamped() -> None:
    survey = Mean(between=(0, 1), epsilon=10.0)
    assert survey.estimate(survey.reports([1e300] * 400)).value == pytest.approx(1, abs=0.2)
    assert survey.estimate(survey.reports([-math.inf] * 400)).value == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("survey", [Mean(between=(0, 1), epsilon=1), Distribution(between=(0, 1), epsilon=1)])
@pytest.mark.parametrize("value", [math.nan, "0.5", None, [0.5], True, 1j])
def test_what_is_no_number_is_refused_without_telling_it(survey: Any, value: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        survey.report(value)
    assert "nothing was drawn" in str(caught.value)
    with pytest.raises(InvalidParameter):
        survey.reports([[0.1], [math.nan]])


@pytest.mark.parametrize("between", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), 5, (1, 2, 3), ("a", "b"), None])
def test_a_range_that_means_nothing_is_refused(between: Any) -> None:
    for kind in (Mean, Distribution):
        with pytest.raises(InvalidParameter):
            kind(between=between, epsilon=1.0)


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        Mean(between=(0, 1), epsilon=1, method="laplace")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Distribution(between=(0, 1), epsilon=1, smoothing="none")  # type: ignore[arg-type]


def test_fake_devices_move_a_mean_no_further_than_the_bound() -> None:
    survey = Mean(between=(0, 1), epsilon=1.0)
    rows = survey.reports([0.5] * 1000).rows.copy()
    clean = survey.decode(survey.randomizer.tally(rows), 1000)
    rows[:50] = 0xFF  # the upper end
    attacked = survey.decode(survey.randomizer.tally(rows), 1000)
    assert abs(attacked.value - clean.value) <= attacked.bound_poisoning(50)


def wasserstein(density: Any, values: Any) -> float:
    grid = np.linspace(*density.between, 2001)  # type: ignore[call-overload]
    told = np.array([density.below(x) for x in grid])
    return float(np.mean(np.abs(told - np.searchsorted(np.sort(values), grid, side="right") / len(values))))


@pytest.mark.parametrize("smoothing", ["averaged", "em"])
def test_distributions_are_close_to_the_truth(smoothing: str) -> None:
    """W1 of 0.02 is several times what is measured (0.003 to 0.007); a flat guess is off by 0.21."""
    values = np.random.default_rng().beta(5, 2, 100_000)
    survey = Distribution(between=(0, 1), epsilon=1.0, smoothing=smoothing)  # type: ignore[arg-type]
    density = survey.estimate(survey.reports(values))
    assert wasserstein(density, values) < 0.02
    assert density.shares.sum() == pytest.approx(1)
    assert density.shares.min() >= 0
    assert density.quantile(density.below(0.7)) == pytest.approx(0.7, abs=0.01)
    assert density.mean == pytest.approx(5 / 7, abs=0.03)


def test_error_bars_of_a_distribution_hold_the_truth_and_are_of_its_size() -> None:
    """Bars of twice 6.1 deviations: false alarm far below 1e-9; those of a sixteenth of the reports are wider."""
    survey, widths = Distribution(between=(0, 1), epsilon=1.0), []
    for count in (4_000, 64_000):
        density = survey.estimate(survey.reports(np.random.default_rng().beta(5, 2, count)))
        for value, truth in ((0.5, 7 / 64), (0.75, 0.53393554), (0.9, 0.885735)):
            interval = density.below_interval(value, confidence=1 - 1e-9)
            assert abs(interval.value - truth) < 2 * interval.error
        mean = density.mean_interval(confidence=1 - 1e-9)
        assert abs(mean.value - 5 / 7) < 2 * mean.error
        assert density.error()[0] == density.error()[-1] == 0
        assert np.array_equal(density.error(), density.error())
        widths.append(density.error().max())
    assert 0.001 < widths[1] < widths[0] < 0.2


def test_each_of_several_questions_is_estimated_from_those_who_were_asked() -> None:
    rng = np.random.default_rng()
    questions = {"age": Mean(between=(0, 100), epsilon=2.0), "pet": Frequency(["cat", "dog", "none"], epsilon=2.0)}
    survey = Several(questions)
    count = 40_000
    ages, pets = rng.normal(40, 10, count), rng.choice(["cat", "dog", "none"], count, p=[0.5, 0.3, 0.2])
    found = survey.estimate(survey.reports({"age": ages, "pet": pets}))
    assert abs(found["age"].value - 40) < 2 * found["age"].error(1 - 1e-9)
    assert abs(found["pet"].raw[0] - 0.5) < 2 * found["pet"].error(1 - 1e-9)[0]
    assert found["age"].reports + found["pet"].reports == count


def test_questions_that_do_not_fit_are_refused() -> None:
    one = Mean(between=(0, 1), epsilon=1.0)
    for wrong in (
        {},
        {"x": one, "y": Mean(between=(0, 1), epsilon=2.0)},
        {"x": 1},
        [one],
        {1: one},
        {"x": Several({"x": one})},
    ):
        with pytest.raises(InvalidParameter):
            Several(wrong)  # type: ignore[arg-type]
    survey = Several({"x": one})
    for value in ({}, {"x": math.nan}, {"x": 1, "y": 2}, 3, None):
        with pytest.raises(InvalidParameter, match="nothing was drawn"):
            survey.report(value)
