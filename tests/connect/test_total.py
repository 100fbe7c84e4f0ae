"""No admitted expression raises for any row: constants are refused when built, and rows without a value are NULL."""

from contextlib import suppress
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    NormBound,
    Operator,
    Product,
    Rows,
    Schema,
    Truncate,
    Type,
    Unbounded,
    answer,
    col,
    lit,
    private,
    when,
)
from mosha.connect.language.checking import result_type
from mosha.connect.language.expression import Call
from mosha.connect.language.limits import LIMITS, MOST_PARTS, MOST_PLACES, WIDEST_BIN
from mosha.connect.language.schema import LONGEST_TEXT
from mosha.connect.plan.aggregation import _MAKERS, MOST_TEXTS, texts_in
from mosha.core.errors import DataError, InvalidParameter
from tests.function_table import MEANINGS, PAGE, read_prose, write_table

SCHEMA = Schema({"id": Type.INTEGER, "i": Type.INTEGER, "x": Type.REAL, "t": Type.TEXT})
LONG = "a" * LONGEST_TEXT
ROWS = [
    (0, 2**63 - 1, 2.0**499, "Alice"),
    (1, -(2**63), -(2.0**499), ""),
    (2, 2**62 + 5, 5e-324, LONG),
    (3, -(2**62) - 5, float("nan"), LONG + "a"),
    (4, 0, float("inf"), "é" * (LONGEST_TEXT // 2) + "é"),
    (5, None, None, None),
]


@pytest.fixture(scope="module")
def extremes(place: Any) -> Any:
    return private(place.load(SCHEMA, ROWS), person="id")


def column_of(relation: Any, expression: Any) -> list[Any]:
    keys = {"id": col("id"), "k": expression}
    found = answer(Aggregation(relation, keys, {"n": Rows()}, bound=Unbounded()))
    return [value for _, value in sorted(zip(*(column.tolist() for column in found.keys), strict=True))]


def test_every_operator_has_limits_and_says_why_it_is_total() -> None:
    assert set(LIMITS) == set(Operator)
    assert all(entry.total and 0 < entry.least <= entry.most for entry in LIMITS.values())


AT_THE_EDGE = {
    Operator.SUBSTRING: [lambda a=a, b=b: col("t").substring(a, b) for a in (1, MOST_PLACES) for b in (0, MOST_PLACES)],
    Operator.TAIL: [lambda a=a: Call(Operator.TAIL, (col("t"),), (a,)) for a in (0, 3, MOST_PLACES)],
    Operator.SPLIT: [
        lambda a=a, n=n: Call(Operator.SPLIT, (col("t"),), (a, n))
        for a in ("a", "aa", "\\", "%", "é")
        for n in (1, 2, 3, 1000)
    ],
    Operator.BIN: [
        *[lambda o=o: col("i").bin(WIDEST_BIN, o) for o in (0, 2**63 - 1, -(2**63) + 1)],
        *[lambda o=o: col("i").bin(WIDEST_BIN - 1, o) for o in (1, 2**62, -(2**62))],
        *[lambda w=w, o=o: col("x").bin(w, o) for w in (2.0**-500, 2.0**499) for o in (0, 2.0**499, -(2.0**499))],
    ],
    Operator.ROUND: [lambda d=d, c=c: col(c).round(d) for d in (-15, -1, 0, 1, 15) for c in "ix"],
    Operator.CLAMP: [lambda: col("i").clamp(-(2**63) + 1, 2**63 - 1), lambda: col("i").clamp(5, 5)],
    Operator.CONCAT: [lambda: col("t").concat(*[col("t")] * (MOST_PARTS - 1)), lambda: col("t").concat(*[LONG] * 60)],
    Operator.LIKE: [lambda p=p: col("t").like(p) for p in ("_" * 1000, "%_" * 500, "%a" * 499 + "%b")],
    Operator.REPLACE: [
        lambda a=a: Call(Operator.REPLACE, (col("t"),), a) for a in [("a", "b" * 8), ("a" * 1000, ""), ("é", "e" * 16)]
    ],
    Operator.POSITION: [lambda a=a: Call(Operator.POSITION, (col("t"),), (a,)) for a in ("a", "a" * 999 + "b", "\\")],
    Operator.SQUARE_ROOT: [lambda c=c: Call(Operator.SQUARE_ROOT, (col(c),)) for c in "ix"],
    Operator.LOGARITHM: [
        lambda c=c, b=b: Call(Operator.LOGARITHM, (col(c),), b) for c in "ix" for b in [(), (2.0**499,), (2.0**-500,)]
    ],
    Operator.EXPONENTIAL: [lambda c=c: Call(Operator.EXPONENTIAL, (col(c),)) for c in "ix"],
    Operator.POWER: [
        lambda a=a, b=b: Call(Operator.POWER, (a, b))
        for a, b in [
            *[(col(c), lit(e)) for c in "ix" for e in (0.5, -0.5, 2.0**499, -(2.0**499), 2.0**-500, 0)],
            *[(lit(base), col(c)) for c in "ix" for base in (2.0**499, 2.0**-500, 0.0, -1.0, 1)],
            (col("x"), col("i")),
            (col("i"), col("x")),
        ]
    ],
    Operator.IN: [lambda: col("i").is_in(*range(2**10)), lambda: col("t").is_in(LONG)],
}
BEYOND = [
    *[lambda a=a, b=b: col("t").substring(a, b) for a, b in [(1, 2**31), (2**31, 1), (1, 2**32), (1, 2**63)]],
    *[lambda a=a: col("t").substring(a, 1) for a in (0, -1, 1.5, True, "1", 10**30)],
    *[lambda a=a: Call(Operator.REPLACE, (col("t"),), a) for a in [("", "b"), ("a", "b" * 9), ("a",), ("a", 1)]],
    *[lambda a=a: Call(Operator.POSITION, (col("t"),), a) for a in [("",), ("a" * 1001,), (1,), ()]],
    *[lambda a=a: Call(Operator.SHIFT_DATE, (col("d"),), a) for a in [(1, "hour"), (2**40, "day"), (1.5, "day"), (1,)]],
    *[lambda a=a: Call(Operator.SPLIT, (col("t"),), a) for a in [("", 1), ("a", 0), ("a", 1001), ("a",), (1, 1)]],
    *[lambda a=a: Call(Operator.TAIL, (col("t"),), (a,)) for a in (-1, 2**31, True, "1")],
    lambda: Call(Operator.TRIM, (col("t"),), ("both",)),
    *[lambda b=b: Call(Operator.LOGARITHM, (col("x"),), (b,)) for b in (0.0, 1.0, -2.0, 2, 2.0**500, float("nan"))],
    *[lambda w=w: col("i").bin(w) for w in (WIDEST_BIN + 1, 2**62 + 1, 2**63 - 1)],
    *[lambda w=w: col("x").bin(w) for w in (5e-324, 2.0**-501, 2.0**500)],
    *[lambda: col("x").bin(1, 2.0**500), lambda: Call(Operator.BIN, (col("i"), col("i"), lit(0)))],
    *[lambda d=d: col("x").round(d) for d in (16, -16, 300, 0.5)],
    *[lambda: col("t").like("a" * 1001), lambda: col("t").ilike("a\\")],
    *[lambda: lit(LONG + "a"), lambda: col("t").concat("é" * (LONGEST_TEXT // 2 + 1)), lambda: col("t") == LONG + "a"],
    *[lambda: Call(Operator.CONCAT, (col("t"),) * (MOST_PARTS + 1)), lambda: Call(Operator.AND, (col("b"),))],
    *[lambda: col("i").clamp(2**63 - 1, 2**63 - 2), lambda: Call(Operator.ADD, (col("i"), col("i")), (1,))],
    *[lambda: Call(Operator.CAST, (col("i"),), ("money",)), lambda: Truncate(bytes(16), rows=2**53 + 1)],
]


@pytest.mark.parametrize("make", BEYOND)
def test_a_constant_that_some_engine_could_not_take_is_refused_when_the_expression_is_built(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("operator", AT_THE_EDGE)
def test_constants_at_the_edge_of_their_range_raise_for_no_row(extremes: Any, operator: Any) -> None:
    for make in AT_THE_EDGE[operator]:  # type: ignore[attr-defined]
        assert len(column_of(extremes, make())) == len(ROWS)


def test_a_substring_reaches_as_far_as_any_text(extremes: Any) -> None:
    assert column_of(extremes, col("t").substring(1, MOST_PLACES)) == ["Alice", "", LONG, None, None, None]


def test_bins_as_wide_as_they_may_be_are_right(extremes: Any) -> None:
    found = column_of(extremes, col("i").bin(WIDEST_BIN, 7))
    expected = [None if i is None else i - (i - 7) % WIDEST_BIN for _, i, _, _ in ROWS]
    assert found == [None if e is None or e < -(2**63) else e for e in expected]


def test_text_that_doubles_without_end_becomes_missing_and_not_an_error(extremes: Any) -> None:
    grown = extremes.compute(y=when(col("t") == "Alice", "a" * 10).else_(""))
    for _ in range(9):
        grown = grown.compute(y=col("y").concat(*[col("y")] * 7))
    assert column_of(grown, col("y").length()) == [None, 0, 0, 0, 0, 0]
    assert column_of(extremes, col("t").concat(col("t")).length()) == [10, 0, None, None, None, None]


def test_text_beyond_the_longest_is_missing_whoever_asks(extremes: Any) -> None:
    assert column_of(extremes, col("t").is_null()) == [False, False, False, True, True, True]
    kept = extremes.where(col("t").length() == LONGEST_TEXT)
    assert answer(Aggregation(kept, {}, {"n": Rows()}, bound=NormBound(1, {"n": 1}))).to_dict() == {(): (1,)}


@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%b", "%a_%a_%a_%a_%b", "%a%_a%_a%_a%c%", "a%a%a%a%a%a%_b"])
def test_no_pattern_is_slow_on_a_text_made_for_it(extremes: Any, pattern: str) -> None:
    """A matcher that tries every way would take 2**18 to the power of four steps: it would never come back."""
    for test in (col("t").like(pattern), col("t").ilike(pattern)):
        assert column_of(extremes, test)[:3] == [False, False, False]


def test_a_question_that_makes_too_many_texts_is_refused_before_it_is_sent(extremes: Any) -> None:
    many = col("t").like("a")
    for _ in range(9):
        many = when(many | many, True).else_(False)
    assert texts_in(many) == MOST_TEXTS
    Aggregation(extremes, {"k": many}, {"n": Rows()}, bound=Unbounded())
    with pytest.raises(DataError, match="texts of every row"):
        Aggregation(extremes, {"k": many, "l": col("t").lower()}, {"n": Rows()}, bound=Unbounded())
    with pytest.raises(DataError, match="texts of every row"):
        Aggregation(extremes.where(many).compute(l=col("t").lower()), {}, {"n": Rows()}, bound=Unbounded())


def test_a_product_that_follows_a_count_does_not_overflow_for_a_person_below_the_limit(extremes: Any) -> None:
    """The value in full is 10**18 * 2**10: beyond 64 bits, which only rows that are not scaled down would reach."""
    wide = Clamped(when(col("id") == 0, 1e9).else_(-1e9), (-1e9, 1e9), exponent=0)
    bound = NormBound(1, {("n", "xx"): 4}, fraction=10)
    found = answer(Aggregation(extremes, {}, {"n": Rows(), "xx": Product(wide, wide)}, bound=bound))
    assert found.to_dict() == {(): (6 << 10, (6 * 10**18) << 10)}


def test_dates_at_the_ends_of_their_range_have_parts_and_first_days(place: Any) -> None:
    schema = Schema({"id": Type.INTEGER, "d": Type.DATE, "w": Type.TIMESTAMP})
    ends = [(date(1, 1, 1), datetime(1, 1, 1)), (date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999))]
    relation = private(place.load(schema, [(k, *pair) for k, pair in enumerate(ends)]))
    for unit in ("year", "quarter", "month", "week", "day"):
        assert column_of(relation, col("d").truncate(unit))[0] == date(1, 1, 1)
    assert column_of(relation, col("d").truncate("week"))[1] == date(9999, 12, 27)
    assert column_of(relation, col("w").truncate("minute"))[1] == datetime(9999, 12, 31, 23, 59)
    assert column_of(relation, col("d").days_since(date(9999, 12, 31))) == [-3652058, 0]
    assert column_of(relation, col("d").cast("timestamp").cast("date").cast("text")) == ["0001-01-01", "9999-12-31"]


def test_the_page_of_functions_has_the_table_that_the_ranges_say() -> None:
    assert set(MEANINGS) == set(Operator)
    assert PAGE.read_text() == read_prose() + write_table(), "python -m tests.function_table writes it anew"


def test_every_operator_that_makes_a_text_is_counted() -> None:
    """RIGHT and SPLIT_PART were not: 500 parts of one long text took 4 GB, of no row with such a text nothing."""
    made = set()
    for operator in Operator:
        call = SimpleNamespace(operator=operator, options=(Type.TEXT,), arguments=(col("t"),))
        with suppress(DataError):
            made |= {operator} if result_type(call, [Type.TEXT]) is Type.TEXT else set()  # type: ignore[arg-type]
    shown = {Operator.CAST, Operator.COALESCE}  # 26 characters, and no text that is not there already
    assert made == {*_MAKERS} | shown
    assert texts_in(col("t").ilike("%" + "".join(map(chr, range(0x400, 0x460))) + "%")) > 10
    assert texts_in(col("t").like("%ABC%")) == 1


def test_so_many_parts_of_texts_are_refused_as_would_fill_the_memory(extremes: Any) -> None:
    parts = [Call(Operator.SPLIT, (col("t"),), ("a", place)) for place in range(1, 200)]
    ends = [Call(Operator.TAIL, (col("t"),), (place,)) for place in range(1, 600)]
    for several in (parts, ends):
        with pytest.raises(DataError, match="texts of every row"):
            Aggregation(extremes, {f"k{n}": k for n, k in enumerate(several)}, {"n": Rows()}, bound=Unbounded())
