"""Zero-concentrated prices are the least ones, and conversions err to the safe side."""

import math
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosha.accounting.measures import concentrated, renyi
from mosha.core.errors import InvalidParameter
from mosha.events import Approx, DiscreteLaplace, Exponential, Laplace, Pure, RandomizedResponse, Renyi
from tests.accounting import golden

small_to_large = st.floats(-6, 2).map(lambda x: 10**x)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("zcdp_classic"))
def test_the_conversion_is_below_the_classic_one(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert 0 < concentrated.epsilon_from_rho(inputs["rho"], inputs["delta"]) < expected * (1 + tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("zcdp_cks"))
def test_golden_tight_conversion(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert concentrated.epsilon_from_rho(inputs["rho"], inputs["delta"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("expmech_zcdp"))
def test_golden_exponential_mechanism(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert concentrated.rho(Exponential(inputs["eps"]) * inputs["k"])[0] == pytest.approx(expected, rel=tolerance)


def divergence_of(event: Any, order: Any) -> Any:
    with mpmath.workdps(80):
        a = mpmath.mpf(order)
        if isinstance(event, Laplace):
            e = 1 / mpmath.mpf(event.noise_multiplier)
            moment = (a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)) / (2 * a - 1)
        elif isinstance(event, DiscreteLaplace):
            s, e = event.sensitivity, 1 / mpmath.mpf(event.noise_multiplier)
            h = e / s
            middle = mpmath.fsum(mpmath.exp(-a * h * x + (a - 1) * h * (s - x)) for x in range(1, s))
            ends = (mpmath.exp((a - 1) * e) + mpmath.exp(-a * e)) / (1 - mpmath.exp(-h))
            moment = mpmath.tanh(h / 2) * (ends + middle)
        else:
            e, k = mpmath.mpf(event.epsilon), event.categories
            moment = (mpmath.exp(a * e) + mpmath.exp((1 - a) * e) + k - 2) / (mpmath.exp(e) + k - 1)
        return mpmath.log(moment) / (a - 1)


events_with_noise = st.one_of(
    small_to_large.map(Laplace),
    st.builds(DiscreteLaplace, small_to_large, st.sampled_from([1, 2, 3, 17])),
    st.builds(RandomizedResponse, small_to_large, st.sampled_from([2, 3, 5, 50, 10_000])),
)


@given(events_with_noise, st.floats(-5, 4))
def test_no_order_costs_more_than_rho(event: Any, log_excess: Any) -> None:
    order = 1 + 10**log_excess
    assert divergence_of(event, order) <= order * mpmath.mpf(concentrated.rho(event)[0])


@settings(max_examples=40)
@given(events_with_noise)
def test_some_order_costs_nearly_rho(event: Any) -> None:
    rho = concentrated.rho(event)[0]
    orders = [1 + 1e-9, *(1 + 10 ** (x / 50) for x in range(-100, 450))]
    best = max(renyi.divergence(event, order) / order for order in orders)
    assert rho <= best * 1.005


@given(small_to_large, st.floats(-300, -0.1))
def test_epsilon_and_rho_undo_each_other_on_the_safe_side(rho: Any, log_delta: Any) -> None:
    delta = 10**log_delta
    epsilon = concentrated.epsilon_from_rho(rho, delta)
    if epsilon > 0:
        back = concentrated.rho_from_epsilon(epsilon, delta)
        assert rho * (1 - 1e-9) <= back <= rho * (1 + 1e-12)
        assert concentrated.epsilon_from_rho(back, delta) <= epsilon


@given(small_to_large, st.floats(-300, -0.1))
def test_no_order_converts_better_than_the_chosen_one(rho: Any, log_delta: Any) -> None:
    delta = 10**log_delta
    epsilon = concentrated.epsilon_from_rho(rho, delta)
    with mpmath.workdps(50):
        at = lambda u: rho * (1 + u) + mpmath.log(u / (1 + u)) - (mpmath.log(mpmath.mpf(delta)) + mpmath.log(1 + u)) / u
        values = [at(mpmath.mpf(10) ** (mpmath.mpf(x) / 4)) for x in range(-20, 40)]
        assert epsilon <= max(0, min(values)) * (1 + mpmath.mpf("1e-12")) + mpmath.mpf("1e-12")


@given(small_to_large, st.floats(0, 50))
def test_delta_and_epsilon_undo_each_other_on_the_safe_side(rho: Any, epsilon: Any) -> None:
    delta = concentrated.delta_from_rho(rho, epsilon)
    if 1e-300 < delta < 0.99:
        assert concentrated.epsilon_from_rho(rho, delta) <= epsilon * (1 + 1e-9) + 1e-9


def test_extreme_conversions_do_not_break() -> None:
    assert concentrated.epsilon_from_rho(0.0, 1e-300) == 0.0
    assert concentrated.epsilon_from_rho(1e300, 1e-6) >= 1e300
    assert concentrated.epsilon_from_rho(1e-300, 1e-6) == 0.0  # its total variation is below this delta
    assert concentrated.rho_from_epsilon(1e-12, 1e-300) >= 0.0
    assert concentrated.delta_from_rho(1e-3, 1e6) > 0.0


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "1", None, True])
def test_numbers_that_make_no_sense_are_refused(wrong: Any) -> None:
    for call in (concentrated.epsilon_from_rho, concentrated.rho_from_epsilon):
        for arguments in ((wrong, 0.5), (0.5, wrong), (0.5, 0.0), (0.5, 1.0)):
            with pytest.raises(InvalidParameter):
                call(*arguments)


def test_what_may_fail_is_approximately_concentrated() -> None:
    assert concentrated.rho(Approx(0.5, 1e-6)) == (concentrated.rho(Pure(0.5))[0], 1e-6)


def test_renyi_divergences_at_some_orders_are_no_rho() -> None:
    assert math.isinf(concentrated.rho(Renyi((2.0, 8.0), (0.1, 0.5)))[0])
