"""An error bar at 90% holds nine times out of ten: not less, and not much more. False alarm of each test: 1e-10."""

import math
from typing import Any

import numpy as np
import pytest

from mosha import Row
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
    propose_test_release,
    randomized_response,
    report_noisy_max,
    smooth_forecast,
    smooth_sensitivity,
    top_k,
)
from mosha.mechanisms.choice import exponential_regret, permute_and_flip_regret
from mosha.mechanisms.error_bars import gaussian_width, laplace_tail, laplace_width
from mosha.mechanisms.mean_error import box_tail, box_width
from mosha.noise.cauchy import find_cauchy_width
from tests.mechanisms.draws import answers, runs
from tests.noise.goodness import gaussian_below, rejects

ROW = Row()
CONFIDENCES = [0.5, 0.9, 0.99]


@pytest.mark.parametrize("confidence", CONFIDENCES[:2])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_bars_of_additive_noise_cover_as_often_as_they_say(noise: str, confidence: Any) -> None:
    wide = Histogram(keys=tuple(range(10_000)))
    measurement = laplace(wide, unit=ROW, epsilon=0.05) if noise == "laplace" else gaussian(wide, unit=ROW, rho=0.1)
    (errors,) = answers(measurement, [], 1)
    width = measurement.error(confidence, errors)[0]
    within = int((np.abs(errors) <= width).sum())
    exact = 1 - laplace_tail(20, width) if noise == "laplace" else confidence
    assert not rejects([(within, 10_000, exact)])
    assert rejects([(int((np.abs(errors) <= 0.7 * width).sum()), 10_000, exact)])
    assert rejects([(int((np.abs(errors) <= 1.4 * width).sum()), 10_000, exact)])


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 7.7, 1000.0, 2.0**40])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999999])
def test_the_width_of_laplace_noise_is_the_least_that_holds(scale: Any, confidence: float) -> None:
    width = laplace_width(scale, confidence)
    assert laplace_tail(scale, width) <= (1 - confidence) * (1 + 1e-9)
    if 0 < width < 2**30:
        assert laplace_tail(scale, width - 1) > 1 - confidence


def test_the_tail_of_laplace_noise_is_the_sum_of_its_probabilities() -> None:
    for scale in (0.5, 3.0, 20.0):
        x = np.arange(-4000, 4001)
        p = np.exp(-np.abs(x) / scale)
        for width in (0, 1, 2.5, 10):
            assert laplace_tail(scale, width) == pytest.approx(p[np.abs(x) > width].sum() / p.sum(), rel=1e-9)
    assert laplace_tail(3.0, -1) == 1


@pytest.mark.parametrize("sigma", [1.5, 10.0, 1024.0])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_width_of_gaussian_noise_holds_and_is_at_most_a_step_too_wide(sigma: float, confidence: Any) -> None:
    width, below = gaussian_width(sigma, confidence), gaussian_below(sigma)
    inside = lambda w: float(below(w) - below(-w - 1))
    assert inside(width) >= confidence - 1e-9
    assert width <= 2 or inside(width - 2) < confidence


def test_the_tail_of_a_box_agrees_with_a_simulation_and_with_itself() -> None:
    rng, n = np.random.default_rng(), 200_000
    r, u, v = rng.gamma(3.0, size=n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    for ratio in (0.0, 1e-6, 0.3, 0.99, 1.0):
        for width in (0.5, 2.0, 5.0):
            assert not rejects([(int((r * np.abs(u + ratio * v) > width).sum()), n, box_tail(ratio, width))])
        for confidence in CONFIDENCES:
            assert box_tail(ratio, box_width(ratio, confidence)) == pytest.approx(1 - confidence, rel=1e-6)
    assert box_tail(1e-9, 3.0) == pytest.approx(box_tail(0.0, 3.0), rel=1e-6)
    assert box_tail(1 - 1e-9, 3.0) == pytest.approx(box_tail(1.0, 3.0), rel=1e-6)


@pytest.mark.parametrize("values", [[4.0, 5.0, 6.0] * 30, [8.0] * 40], ids=["middle", "edge"])
def test_bars_of_a_mean_cover(values: Any) -> None:
    measurement, n = mean(between=(0, 8), unit=ROW, epsilon=1), 1000  # half a bar is missed with probability 1e-16
    drawn = answers(measurement, np.array(values), n)
    truth = {"mean": np.mean(values), "sum": np.sum(values), "count": len(values)}
    for confidence in (0.5, 0.9):
        bars = [measurement.error(confidence, answer) for answer in drawn]
        for part, value in truth.items():
            relative = np.array([abs(a[part] - value) / bar[part] for a, bar in zip(drawn, bars, strict=True)])
            inside = int((relative <= 1).sum())
            assert inside > confidence * n or not rejects([(inside, n, confidence)])
            if part != "mean":  # exact; the bar of a mean may be wider, not narrower
                assert not rejects([(inside, n, confidence)])
                assert rejects([(int((relative <= 0.5).sum()), n, confidence)])
                assert rejects([(int((relative <= 2.2).sum()), n, confidence)])


def test_the_bar_of_a_mean_without_rows_is_the_whole_range() -> None:
    measurement = mean(between=(0, 8), unit=ROW, epsilon=1)
    assert measurement.forecast(0.95)["mean"] == 8
    assert measurement.error(0.95, {"mean": 4.0, "count": -3.0, "sum": 0.0})["mean"] == 8


def test_the_bar_of_a_mean_whose_count_is_public_is_that_of_laplace_noise() -> None:
    unit = Row(neighbors="replace-one")  # type: ignore[arg-type]
    measurement = mean(between=(0, 8), unit=unit, epsilon=1, missing="middle")
    values, n = [3.0, 5.0] * 20, 1200  # half a bar is missed with probability below 1e-15
    drawn = answers(measurement, values, n)
    for confidence in (0.5, 0.9):
        width = measurement.error(confidence, drawn[0])["sum"]
        assert not rejects([(sum(abs(a["sum"] - 160) <= width for a in drawn), n, confidence)])
        assert rejects([(sum(abs(a["sum"] - 160) <= width / 2 for a in drawn), n, confidence)])
    assert measurement.error(0.9, drawn[0])["count"] == 0


@pytest.mark.parametrize(
    ("factory", "regret"), [(exponential, exponential_regret), (permute_and_flip, permute_and_flip_regret)]
)
def test_the_regret_of_a_choice_is_exact_in_the_worst_case(factory: Any, regret: Any) -> None:
    # the best label is t + 1 above all others, where more than t is forbidden: the worst data there are
    labels, confidence, n = 10, 0.8, 1500
    measurement = factory(Histogram(keys=range(labels)), unit=ROW, epsilon=0.01)
    width = measurement.error(confidence)
    assert width == pytest.approx(regret(labels, confidence) * 100)
    worst = answers(measurement, [0] * (math.floor(width) + 1), n)
    assert not rejects([(sum(chosen == 0 for chosen in worst), n, confidence)])
    easier = answers(measurement, [0] * math.floor(0.5 * width), n)
    assert rejects([(sum(chosen == 0 for chosen in easier), n, confidence)])
    assert exponential_regret(labels, confidence) >= permute_and_flip_regret(labels, confidence)


def test_the_bars_of_gaps_and_of_top_k_hold() -> None:
    gaps = report_noisy_max(Histogram(keys=["a", "b"]), unit=ROW, epsilon=1)
    signed = [y[0]["gap"] * (1 if y[0]["choice"] == "a" else -1) - 20 for y in answers(gaps, ["a"] * 20, 500)]
    within = sum(abs(error) <= gaps.error(0.8)[0] for error in signed)  # type: ignore[call-arg, misc]
    assert not (rejects([(within, 500, 0.8)]) and within < 400)
    best = top_k(Histogram(keys=range(4)), unit=ROW, k=4, epsilon=1)
    assert best.error(0.9)[-1] == 0  # type: ignore[call-arg, misc]  # a single label is left
    assert (np.diff(best.error(0.9)) <= 0).all()  # type: ignore[call-arg, misc]


def test_the_bar_of_above_threshold_holds_for_all_answers_together() -> None:
    measurement = above_threshold(Count(), unit=ROW, epsilon=1, threshold=100, horizon=10, alarms=1)
    alpha = measurement.error(0.9)  # type: ignore[call-arg, misc]
    below = [1] * math.floor(100 - alpha - 1)
    wrong = sum(any(run) for run in runs(measurement, below, 300))
    assert not (rejects([(wrong, 300, 0.1)]) and wrong > 30)
    assert sum(any(run) for run in runs(measurement, [1] * 99, 100)) > 20  # near the threshold it does go wrong


def test_bars_of_the_median() -> None:
    median, n = Quantile(at=0.5, between=(0, 8), grid=2.0**-10), 1200
    values = np.linspace(0, 8, 401)
    smooth = smooth_sensitivity(median, unit=ROW, epsilon=2)
    width = smooth_forecast(median, values, unit=ROW, epsilon=2, confidence=0.8)
    truth = median.evaluate_with_reaches(values, ROW)[0] * median.grid
    errors = np.abs(np.array(answers(smooth, values, n)) - truth)
    assert not rejects([(int((errors <= width).sum()), n, 0.8)])
    assert rejects([(int((errors <= width / 2.5).sum()), n, 0.8)])
    assert rejects([(int((errors <= width * 4).sum()), n, 0.8)])
    assert smooth.error is None
    proposed = propose_test_release(median, unit=ROW, epsilon=4, delta=1e-3, sensitivity=1)
    released = [y for y in answers(proposed, values, n) if y is not None]
    within = sum(abs(y - truth) <= proposed.error(0.8) for y in released)  # type: ignore[call-arg, misc]
    assert len(released) > n / 2
    assert not rejects([(within, len(released), 0.8)])


def test_the_width_of_cauchy_noise_covers() -> None:
    for scale in (8.0, 100.0):
        x = np.arange(-2_000_000, 2_000_001)
        p = scale * math.tanh(math.pi * scale) / math.pi / (scale**2 + x**2.0)
        for confidence in (0.5, 0.9):
            width = find_cauchy_width(scale, 1 - confidence)
            assert p[np.abs(x) <= width].sum() >= confidence - 1e-4  # beyond the last x is less than 1e-4


def test_the_people_needed_for_a_key_and_the_share_of_lies() -> None:
    keys = partition_selection(unit=ROW, epsilon=1, delta=1e-6)
    assert keys.forecast(0.95) == 16
    assert keys.forecast(0.5) < keys.forecast(0.999)
    from mosha import Own

    assert randomized_response(["a", "b"], unit=Own(), epsilon=math.log(3)).forecast(0.9) == pytest.approx(0.25)


def test_rounding_to_the_grid_is_below_the_noise() -> None:
    statistic = ClippedSum(between=(0, 1))
    values = np.full(100_000, 1 / 3)
    assert abs(int(statistic.evaluate(values, ROW)[0]) * statistic.grid - 100_000 / 3) < 1e-3
