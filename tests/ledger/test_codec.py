"""What is kept comes back bit for bit, or is not kept."""

import json
import math
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mosha.ledger.paying.codec import Unkept, decode, encode
from mosha.ledger.storage.chain import canonical

KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
LEAVES = KEYS | st.floats() | st.binary() | st.fractions() | st.decimals(allow_nan=False) | st.frozensets(st.integers())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def through_json(value: Any) -> Any:
    return decode(json.loads(canonical(encode(value))))


def same(a: Any, b: Any) -> Any:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return a == b


@given(VALUES)
def test_plain_values_come_back_the_same(value: Any) -> None:
    assert same(through_json(value), value)


DTYPES = arrays.boolean_dtypes() | arrays.integer_dtypes() | arrays.floating_dtypes() | arrays.complex_number_dtypes()
TEXTS = arrays.byte_string_dtypes() | arrays.unicode_string_dtypes() | arrays.datetime64_dtypes()


@given(arrays.arrays(DTYPES | TEXTS, arrays.array_shapes(min_dims=0, min_side=0)))
def test_arrays_come_back_with_their_bits_shape_and_type(array: Any) -> None:
    back = through_json(array)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("scalar", [np.float64(0.1), np.float32("nan"), np.int8(-3), np.bool_(True), np.str_("é")])
def test_numpy_scalars_keep_their_type(scalar: Any) -> None:
    back = through_json([scalar])[0]
    assert type(back) is type(scalar)
    assert back.tobytes() == scalar.tobytes()


def test_large_whole_numbers_and_strange_floats_survive() -> None:
    value = [10**5000, -(10**5000), -0.0, math.inf, -math.inf, math.nan, 5e-324]
    assert same(through_json(value), value)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Text("x"),
        "\ud800",
        [1, {2: object()}],
        np.array([object()]),
        np.zeros(2, dtype=[("a", "i4")]),
        np.ma.masked_array([1, 2], [0, 1]),  # type: ignore[arg-type]
        lambda: 1,
        range(3),
    ],
)
def test_what_would_come_back_changed_is_not_kept(value: Any) -> None:
    with pytest.raises(Unkept):
        encode(value)


def test_a_list_that_holds_itself_is_not_kept() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(Unkept):
        encode(knot)


def test_golden_text() -> None:
    value = {"a": (1, 2.5), "b": [b"x", Fraction(1, 3), Decimal("1.10")], 3: {4}}
    expected = (
        '{"dict":[["a",{"tuple":[1,2.5]}],["b",[{"bytes":"eA=="},{"Fraction":"1/3"},{"Decimal":"1.10"}]],'
        '[3,{"set":[4]}]]}'
    )
    assert canonical(encode(value)) == expected
