"""Advanced composition is exact where it can be, and stable for any number of steps."""

import math
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosha.accounting.measures import advanced
from mosha.core.errors import InvalidParameter
from mosha.events import Approx, Gaussian, Laplace, RandomizedResponse
from tests.accounting import golden


def exact_delta(step: Any, count: Any, total: Any) -> Any:
    """The binomial sum of Kairouz, Oh and Viswanath's theorem 3.3."""
    with mpmath.workdps(60):
        e = mpmath.mpf(step)
        truth = 1 / (1 + mpmath.exp(-e))
        terms = (
            mpmath.binomial(count, j)
            * truth**j
            * (1 - truth) ** (count - j)
            * -mpmath.expm1(total - (2 * j - count) * e)
            for j in range(count + 1)
            if (2 * j - count) * e > total
        )
        return mpmath.fsum(terms)


@settings(max_examples=60)
@given(st.floats(-4, 1.5), st.integers(1, 300), st.floats(0, 1.1))
def test_the_optimal_delta_is_the_binomial_sum_rounded_up(log_step: Any, count: Any, share: Any) -> None:
    step = 10**log_step
    total = share * step * count
    truth = exact_delta(step, count, mpmath.mpf(total))
    found = advanced.optimal_delta(step, count, total)
    assert truth <= found
    if truth > mpmath.mpf(10) ** -290 and total < step * count * (1 - 1e-6):
        assert advanced.optimal_delta(step, count, total + 1e-9 * (1 + total)) <= truth * (1 + 1e-9)


@pytest.mark.parametrize("count", [2, 17, 300])
@pytest.mark.parametrize("step", [10**1.125, 0.1, 1e-4])
def test_a_loss_that_rounding_hides_is_counted(step: Any, count: int) -> None:
    """At the largest loss, and one float below and above it."""
    for total in (count * step, math.nextafter(count * step, 0.0), math.nextafter(count * step, math.inf)):
        assert exact_delta(step, count, mpmath.mpf(total)) <= advanced.optimal_delta(step, count, total)
        between = (count - 2) * step
        assert exact_delta(step, count, mpmath.mpf(between)) <= advanced.optimal_delta(step, count, between)


@settings(max_examples=60)
@given(st.floats(-3, 1), st.integers(1, 300), st.floats(-250, -0.2))
def test_the_optimal_epsilon_is_reached_and_not_undershot(log_step: Any, count: Any, log_delta: Any) -> None:
    step, delta = 10**log_step, 10**log_delta
    total = advanced.optimal_epsilon(step, count, delta)
    assert exact_delta(step, count, mpmath.mpf(total)) <= delta * (1 + mpmath.mpf(10) ** -40)
    if total > 0:
        assert exact_delta(step, count, mpmath.mpf(total) * (1 - 1e-7) - 1e-11) >= delta * (1 - mpmath.mpf("1e-6"))


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("kov_optimal_pure"))
def test_golden_optimal(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    found = advanced.optimal_epsilon(inputs["eps0"], inputs["k"], inputs["delta"])
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("advanced_DRV"))
def test_golden_dwork_rothblum_vadhan(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    found = advanced.dwork_rothblum_vadhan([(inputs["eps0"], inputs["k"])], inputs["delta"])
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("advanced_KOV_closed"))
def test_golden_kairouz_oh_viswanath(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    """Row 42 is the formula alone, 19.795; ten steps of epsilon 1 never cost more than 10."""
    step, count = inputs["eps0"], inputs["k"]
    found = advanced.kairouz_oh_viswanath([(step, count)], inputs["delta"])
    assert found == pytest.approx(min(expected, step * count), rel=tolerance)


@pytest.mark.parametrize("count", [950, 10_000, 10**6])
@pytest.mark.parametrize("step", [1e-3, 0.1, 3.0])
def test_a_million_steps_do_not_overflow(count: Any, step: float) -> None:
    found = advanced.optimal_epsilon(step, count, 1e-6)
    assert 0 < found <= advanced.kairouz_oh_viswanath([(step, count)], 1e-6) <= step * count * (1 + 1e-9)
    assert advanced.optimal_delta(step, count, found) == pytest.approx(1e-6, rel=1e-3)


def test_splitting_a_step_changes_no_closed_form() -> None:
    whole = [(0.1, 100), (0.3, 10)]
    split = [(0.1, 40), (0.3, 10), (0.1, 60)]
    for bound in (advanced.dwork_rothblum_vadhan, advanced.kairouz_oh_viswanath):
        assert bound(whole, 1e-6) == pytest.approx(bound(split, 1e-6), rel=1e-12)


@given(st.floats(0.01, 3), st.integers(1, 200), st.floats(-12, -2))
def test_the_bounds_are_ordered(step: Any, count: Any, log_delta: Any) -> None:
    delta = 10**log_delta
    best = advanced.optimal_epsilon(step, count, delta)
    closed = advanced.kairouz_oh_viswanath([(step, count)], delta)
    classic = advanced.dwork_rothblum_vadhan([(step, count)], delta)
    assert best <= closed * (1 + 1e-12)
    assert closed <= classic * (1 + 1e-12) or closed == pytest.approx(step * count, rel=1e-9)


def test_deltas_of_the_steps_are_taken_off_first() -> None:
    alone = advanced.optimal_epsilon(0.1, 100, 1e-6)
    with_own = advanced.optimal_epsilon(0.1, 100, 1e-6, delta_each=5e-9)
    assert alone < with_own
    left = 1 - (1 - 1e-6) / (1 - 5e-9) ** 100
    assert with_own == pytest.approx(advanced.optimal_epsilon(0.1, 100, left), rel=1e-9)
    assert advanced.optimal_delta(0.1, 100, with_own, delta_each=5e-9) == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(InvalidParameter):
        advanced.optimal_epsilon(0.1, 100, 1e-7, delta_each=5e-9)


def test_an_event_is_composed_by_the_best_bound_for_it() -> None:
    assert advanced.epsilon(Laplace(10) * 1000, 1e-6) == advanced.optimal_epsilon(0.1, 1000, 1e-6)
    mixed = Laplace(10) * 500 + RandomizedResponse(0.05) * 500
    steps = [(0.1, 500), (0.05, 500)]
    assert advanced.epsilon(mixed, 1e-6) == pytest.approx(advanced.kairouz_oh_viswanath(steps, 1e-6), rel=1e-12)
    assert advanced.epsilon(Laplace(10) * 2, 1e-6) <= 0.2 * (1 + 1e-12)
    assert math.isinf(advanced.epsilon(Gaussian(5), 1e-6))
    assert math.isinf(advanced.epsilon(Approx(0.1, 1e-6) * 2, 1e-6))
    assert advanced.epsilon(Approx(0.1, 1e-8) * 50, 1e-6) == pytest.approx(
        advanced.optimal_epsilon(0.1, 50, 5e-7), rel=1e-9
    )


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "1", None])
def test_numbers_that_make_no_sense_are_refused(wrong: Any) -> None:
    for call in (
        lambda: advanced.optimal_epsilon(wrong, 10, 1e-6),
        lambda: advanced.optimal_epsilon(0.1, 10, wrong),
        lambda: advanced.optimal_epsilon(0.1, 2.5, 1e-6),  # type: ignore[arg-type]
        lambda: advanced.optimal_epsilon(0.1, 0, 1e-6),
        lambda: advanced.optimal_delta(0.1, 10, wrong),
        lambda: advanced.kairouz_oh_viswanath([(wrong, 10)], 1e-6),
        lambda: advanced.dwork_rothblum_vadhan([(0.1, 10)], wrong),
    ):
        with pytest.raises(InvalidParameter):
            call()
