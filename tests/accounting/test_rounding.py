"""Sums, products and quotients are rounded up exactly; folding counts in one place."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha.accounting.numerics.price import (
    NO_COST,
    Cost,
    add_up,
    bound_above,
    bound_below,
    divide_up,
    fold,
    most_expensive,
    round_down,
    round_up,
    times_up,
)
from mosha.events import NOTHING, Gaussian, Laplace

finite = st.floats(0, 1e300)
positive = st.floats(1e-300, 1e300)


def is_least_above(found: Any, exact: Any) -> Any:
    return Fraction(found) >= exact and (found == 0 or Fraction(math.nextafter(found, -math.inf)) < exact)


@given(finite, finite)
def test_a_sum_is_the_least_float_above(first: Any, second: Any) -> None:
    found = add_up(first, second)
    assert math.isinf(found) or is_least_above(found, Fraction(first) + Fraction(second))


@given(finite, st.integers(1, 10**12))
def test_a_multiple_is_the_least_float_above(value: Any, count: Any) -> None:
    found = times_up(value, count)
    assert math.isinf(found) or is_least_above(found, Fraction(value) * count)


@given(positive, positive, st.integers(1, 2))
def test_a_quotient_is_the_least_float_above(numerator: Any, denominator: Any, power: Any) -> None:
    exact = (Fraction(numerator) / Fraction(denominator)) ** power
    found = divide_up(numerator, denominator, power=power)
    assert math.isinf(found) or is_least_above(found, exact)


@given(positive)
def test_margins_point_outward(value: Any) -> None:
    assert bound_below(value) < value < bound_above(value)
    assert bound_above(value) <= value * (1 + 1e-13) or value < 1e-290


def test_infinity_stays_infinite() -> None:
    assert math.isinf(add_up(math.inf, 1.0))
    assert math.isinf(times_up(math.inf, 3))
    assert math.isinf(round_up(Fraction(10) ** 400))
    assert round_down(Fraction(-(10**400))) == -math.inf
    assert math.isinf((Cost(math.inf) * 3).amount)


def test_a_fold_multiplies_counts_once() -> None:
    seen = []

    def one(part: Any) -> Any:
        seen.append(part)
        return Cost(1.0, 0.125)

    assert fold(Laplace(1) * 3 + Gaussian(2) * 5, one, NO_COST) == Cost(8.0, 1.0)
    assert len(seen) == 2
    assert fold(NOTHING, one, NO_COST) == NO_COST


def test_a_cost_with_certain_failure_is_not_finite() -> None:
    assert Cost(1.0, 0.5).is_finite
    assert not (Cost(1.0, 0.5) * 2).is_finite
    assert not Cost(math.inf).is_finite
    assert most_expensive([Cost(1.0, 0.2), Cost(2.0, 0.1)]) == Cost(2.0, 0.2)


@pytest.mark.parametrize("count", [10**30, 10**400])
def test_absurd_counts_do_not_break(count: Any) -> None:
    assert times_up(0.5, count) >= 1e29
