"""Public numbers are checked where they enter: bad ones are refused with a reason, never repaired."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.core import number
from mosha.core.errors import InvalidParameter

CHECKS = [number.real, number.positive, number.non_negative, number.probability, number.strict_probability]
NO_NUMBERS = [None, "1", b"1", True, np.bool_(True), 1j, [1.0], (), {}, Decimal(1), object(), np.array([0.5, 0.5])]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), 10**400, -(10**400)]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("bad", NO_NUMBERS + NOT_FINITE, ids=lambda bad: repr(bad)[:15])
def test_what_is_not_a_finite_number_is_refused_and_the_message_names_it(check: Any, bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        check("epsilon", bad)


@pytest.mark.parametrize("good", [0.5, Fraction(1, 2), np.float32(0.5), np.float64(0.5)], ids=repr)
@pytest.mark.parametrize("check", CHECKS)
def test_every_kind_of_real_number_becomes_a_float(check: Any, good: Any) -> None:
    checked = check("epsilon", good)
    assert type(checked) is float
    assert checked == 0.5


@pytest.mark.parametrize(
    ("check", "inside", "outside"),
    [
        (number.real, [-1e308, 0, 1e308], []),
        (number.positive, [5e-324, 1e308], [0, -0.0, -5e-324]),
        (number.non_negative, [0, 1e308], [-5e-324]),
        (number.probability, [0, math.nextafter(1, 0)], [-5e-324, 1, 1.5]),
        (number.strict_probability, [5e-324, math.nextafter(1, 0)], [0, 1, -1]),
        (number.positive_integer, [1, 10**30, np.int64(3), np.uint8(3)], [0, -1, np.int64(0)]),
    ],
)
def test_the_edges_are_where_they_are_said_to_be(check: Any, inside: Any, outside: Any) -> None:
    for value in inside:
        assert check("x", value) == value
    for value in outside:
        with pytest.raises(InvalidParameter, match=r"^x must"):
            check("x", value)


@pytest.mark.parametrize(
    "bad", [*NO_NUMBERS, 1.0, 2.5, math.nan, Fraction(4, 2), np.float64(2)], ids=lambda b: repr(b)[:15]
)
def test_a_whole_number_is_never_rounded_from_another(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="whole number"):
        number.positive_integer("horizon", bad)
