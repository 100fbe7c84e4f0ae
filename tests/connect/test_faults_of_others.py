"""Faults that were found in other libraries, each on every engine here: a neighbor must not show."""

import math
from typing import Any

import pytest

from mosha.connect import Aggregation, Clamped, NormBound, Rows, Schema, Type, Unbounded, answer, col, private
from mosha.core.errors import InvalidParameter

SCHEMA = Schema({"who": Type.INTEGER, "g": Type.INTEGER, "x": Type.REAL, "y": Type.REAL})


def ask(
    place: Any, rows: Any, values: Any, keys: Any = None, bound: Any = None, change: Any = lambda relation: relation
) -> Any:
    relation = change(private(place.load(SCHEMA, rows), person=None if bound is None else "who"))
    return answer(Aggregation(relation, keys or {}, values, bound=bound or Unbounded())).to_dict()


def row(x: Any, y: float = 0.0, who: Any = 1, g: Any = 1) -> tuple[Any, ...]:
    return (who, g, x, y)


def test_opendp_2936_filling_a_null_with_nan_does_not_blow_up_a_sum(place: Any) -> None:
    """There a NULL filled with NaN made the whole sum NaN, which then came out as a plain number."""
    with pytest.raises(InvalidParameter, match="finite"):
        col("x").coalesce(math.nan)
    value = {"s": Clamped(col("x").coalesce(col("y")), (0, 1), exponent=0)}
    with_null = [row(None, math.nan)] + [row(1.0)] * 9
    assert ask(place, with_null, value) == {(): (9,)}
    assert ask(place, [row(1.0)] * 10, value) == {(): (10,)}


def test_opendp_2938_and_2939_a_cast_or_a_bin_that_fails_is_one_row_less_and_no_more(place: Any) -> None:
    """There a count of a column that "cannot be NULL" was free, and NaN made it NULL."""
    values = {"bin": Rows(of=col("x").bin(1.5)), "cast": Rows(of=col("x").coalesce(0.0).cast("integer"))}
    assert ask(place, [row(math.nan)] + [row(1.0)] * 15, values) == {(): (15, 16)}
    assert ask(place, [row(1.0)] * 16, values) == {(): (16, 16)}
    assert ask(place, [row(1e300)] + [row(1.0)] * 15, values) == {(): (15, 16)}


def test_opendp_2941_single_precision_and_the_order_of_rows_do_not_change_a_sum(place: Any) -> None:
    """There a sum of 32-bit floats overflowed on its way, depending on the order of rows."""
    value = {"s": Clamped(col("x"), (-1e38, 1e38), exponent=-80)}
    (one,) = ask(place, [row(1e38)], value).values()
    up, down = [row(1e38)] * 4, [row(-1e38)] * 7
    assert ask(place, up + down, value) == ask(place, down + up, value) == {(): (-3 * one[0],)}


def test_opendp_2944_the_bin_of_a_row_does_not_depend_on_other_rows(place: Any) -> None:
    """There bins were numbered in the order in which they appeared."""
    keys, values = {"bin": col("x").bin(1.0)}, {"n": Rows()}
    alone = ask(place, [row(0.5)] * 100, values, keys)
    beside = ask(place, [row(2.0)] + [row(0.5)] * 100, values, keys)
    assert alone == {(0.0,): (100,)}
    assert beside == {(0.0,): (100,), (2.0,): (1,)}


def test_opendp_2949_redefining_a_column_cannot_undo_a_bound(place: Any) -> None:
    """There groups were merged after they had been cut, and one person moved the merged group by all of them."""
    rows = [row(1.0, who=who, g=g) for who in (0, 1) for g in range(100)]
    merged = lambda relation: relation.compute(g=col("g") * 0)
    bound = NormBound(2, {"n": 10}, fraction=10)
    keys, values = {"g": col("g")}, {"n": Rows()}
    both, one = (ask(place, part, values, keys, bound, merged) for part in (rows, rows[100:]))
    assert both[(0,)][0] - one[(0,)][0] <= 10 << 10
    apart, alone = (ask(place, part, values, keys, bound) for part in (rows, rows[100:]))
    change = [apart[key][0] - alone.get(key, (0,))[0] for key in apart]
    assert sum(part**2 for part in change) <= (10 << 10) ** 2


def test_a_comparison_with_a_missing_value_is_neither_true_nor_false(place: Any) -> None:
    """A filter and its opposite lose the rows whose value is missing, on every engine alike."""
    rows = [row(x) for x in (None, math.nan, math.inf, 1.0, 3.0)]
    for predicate, kept in ((col("x") > 2, 1), (~(col("x") > 2), 1), (col("x") != 1, 1), (col("x").is_null(), 3)):
        found = ask(place, rows, {"n": Rows()}, change=lambda relation, p=predicate: relation.where(p))
        assert found == {(): (kept,)}
