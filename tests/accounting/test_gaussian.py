"""The Gaussian curve is exact, errs to the safe side only and survives the far tails."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha.accounting.measures import gaussian
from mosha.core.errors import InvalidParameter
from mosha.events import DiscreteGaussian, Gaussian, Group, Matrix, Pure, Tree
from tests.accounting import golden


def exact_delta(mu: Any, epsilon: Any) -> Any:
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        near, far = (epsilon / mu - mu / 2) / mpmath.sqrt(2), (epsilon / mu + mu / 2) / mpmath.sqrt(2)
        return (mpmath.erfc(near) - mpmath.exp(epsilon) * mpmath.erfc(far)) / 2


@st.composite
def points(draw: Any) -> tuple[Any, ...]:
    """A mu and an epsilon whose delta lies between 1e-300 and 1."""
    mu = 10 ** draw(st.floats(-7, 2.5))
    return mu, max(0.0, mu * mu / 2 + mu * draw(st.floats(-6, 37)))


@given(points())
def test_delta_is_right_to_a_millionth_of_a_millionth_and_never_below(point: Any) -> None:
    mu, epsilon = point
    truth = exact_delta(mu, epsilon)
    assert truth <= gaussian.delta(mu, epsilon) <= truth * (1 + mpmath.mpf("1.1e-12"))


@given(st.floats(-4, 2), st.floats(-300, -0.5))
def test_epsilon_undoes_delta_and_rounds_up(log_mu: Any, log_delta: Any) -> None:
    mu, delta = 10**log_mu, 10**log_delta
    epsilon = gaussian.epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(mu, epsilon * (1 - 1e-12)) >= delta * (1 - 1e-12)


@given(st.floats(-4, 4), st.floats(-300, -0.5))
def test_mu_undoes_epsilon_and_rounds_down(log_epsilon: Any, log_delta: Any) -> None:
    epsilon, delta = 10**log_epsilon, 10**log_delta
    mu = gaussian.mu_from_epsilon(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-11), epsilon) > delta


def test_extreme_arguments_stay_on_the_safe_side() -> None:
    assert gaussian.delta(1.0, 1e6) > 0
    assert gaussian.delta(1e-3, 1e308) > 0
    assert gaussian.delta(1e200, 1.0) == 1.0
    assert gaussian.delta(0.0, 0.0) == 0.0
    assert gaussian.epsilon(0.0, 1e-300) == 0.0
    assert gaussian.epsilon(1e3, 1e-300) > 5e5
    assert gaussian.mu_from_epsilon(0.0, 0.3) > 0


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "1", None, True])
def test_numbers_that_make_no_sense_are_refused(wrong: Any) -> None:
    for call in (gaussian.delta, gaussian.epsilon, gaussian.mu_from_epsilon, gaussian.noise_multiplier):
        with pytest.raises(InvalidParameter):
            call(wrong, 0.5)
        with pytest.raises(InvalidParameter):
            call(0.5, wrong)
    for call in (gaussian.epsilon, gaussian.mu_from_epsilon, gaussian.classic_noise_multiplier):
        for delta in (0.0, 1.0):
            with pytest.raises(InvalidParameter):
                call(0.5, delta)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gaussian_delta"))
def test_golden_delta(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    mu = inputs["sensitivity"] / inputs["sigma"]
    assert gaussian.delta(mu, inputs["eps"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gaussian_eps"))
def test_golden_epsilon(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert gaussian.epsilon(1 / inputs["sigma"], inputs["delta"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gaussian_sigma_analytic"))
def test_golden_noise_multiplier(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert gaussian.noise_multiplier(inputs["eps"], inputs["delta"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gaussian_sigma_classic"))
def test_golden_classic_noise_multiplier(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert gaussian.classic_noise_multiplier(inputs["eps"], inputs["delta"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("group_gdp"))
def test_golden_group(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    mu, _ = gaussian.mu(Group(Gaussian(1 / inputs["mu"]), inputs["k"]))
    assert gaussian.epsilon(mu, inputs["delta"]) == pytest.approx(expected, rel=tolerance)


@given(st.floats(-12, 2.8))
def test_the_mu_of_a_pure_mechanism_covers_randomized_response(log_epsilon: Any) -> None:
    epsilon = 10**log_epsilon
    with mpmath.workdps(60):
        corner = 1 / (1 + mpmath.exp(epsilon))
        tail = lambda x: mpmath.erfc(mpmath.mpf(x) / 2 / mpmath.sqrt(2)) / 2
        mu = gaussian.mu_of_pure(epsilon)
        assert tail(mu) <= corner
        if 1e-4 < epsilon < 500:
            assert tail(mu * (1 - 1e-8)) > corner


def test_gaussian_like_events_add_their_squares() -> None:
    parts = Gaussian(4) * 3 + Matrix(2, 0.5) + Tree(8, 4)
    expected = 3 / Fraction(16) + Fraction(1, 16) + Fraction(4, 64)
    assert gaussian.mu(parts)[0] == pytest.approx(math.sqrt(expected), rel=1e-12)
    assert gaussian.mu(parts)[1] == 0


def smoothed(sigma: Any, smoothing: Any, point: Any) -> float:
    """The probability of a point under a discrete Gaussian around a real Gaussian of the rest of the variance."""
    rest, whole = math.sqrt(sigma**2 - smoothing**2), np.arange(-200, 201)
    y = np.arange(-150, 150, 1 / 64)
    weight = np.exp(-(y**2) / (2 * rest**2)) / (rest * math.sqrt(2 * math.pi)) / 64
    kernel = np.exp(-((whole[:, None] - y) ** 2) / (2 * smoothing**2))
    return float(np.sum(weight * kernel[whole == point][0] / kernel.sum(axis=0)))


def test_a_discrete_gaussian_is_a_rounded_gaussian_but_for_the_stated_probability() -> None:
    cost = gaussian.cost_of(DiscreteGaussian(3.0, 4.0))
    sigma = mpmath.mpf(12)
    rest = 16 / mpmath.mpf(cost.amount)  # the variance that is left to the real Gaussian, in grid steps
    smoothing = mpmath.sqrt(sigma**2 - rest)
    with mpmath.workdps(60):
        decay = mpmath.exp(-2 * mpmath.pi**2 * smoothing**2)
        theta = 2 * decay / (1 - decay**3)
        assert mpmath.log((1 + theta) / (1 - theta)) <= cost.delta
    norm = sum(math.exp(-(z**2) / (2 * 12**2)) for z in range(-500, 501))
    decay = 2 * math.exp(-2 * math.pi**2 * 0.6**2)
    for point in (0, 5, 30):
        ratio = smoothed(12, 0.6, point) / (math.exp(-(point**2) / (2 * 12**2)) / norm)
        assert 0 < abs(math.log(ratio)) <= math.log((1 + decay) / (1 - decay))


def test_a_grid_too_coarse_for_gaussian_accounting_has_no_mu() -> None:
    assert math.isinf(gaussian.mu(DiscreteGaussian(1))[0])
    assert math.isfinite(gaussian.mu(DiscreteGaussian(1, 100.0))[0])


def test_what_is_pure_is_gaussian_private() -> None:
    assert gaussian.mu(Pure(0.0)) == (0.0, 0.0)
    assert gaussian.mu(Pure(1.0))[0] == pytest.approx(1.2320353, rel=1e-6)
