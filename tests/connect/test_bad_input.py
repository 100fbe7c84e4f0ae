"""Bad input is refused in one sentence, before any engine is asked; the sentence names public things only."""

import math
from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    Distinct,
    NormBound,
    Norms,
    Persons,
    Product,
    Rows,
    Schema,
    Truncate,
    Type,
    Unbounded,
    answer,
    col,
    grid,
    lit,
    null,
    private,
    type_of,
    when,
)
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from tests.connect.places import DuckDBPlace

SCHEMA = Schema({"who": Type.INTEGER, "t": Type.TEXT, "x": Type.REAL, "d": Type.DATE, "b": Type.BOOLEAN})
KEY = bytes(16)


@pytest.fixture(scope="module")
def relation() -> Any:
    return private(DuckDBPlace().load(SCHEMA, []), person="who")


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 2.0**500, 2**63, -(2**70), "a\x00", b"x", [1], None, object()]
)
def test_a_constant_that_no_engine_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        lit(value)


@pytest.mark.parametrize(
    "expression",
    [
        lambda: col("t") + 1,
        lambda: col("t") > 1,
        lambda: col("d") == 5,
        lambda: col("b") < True,
        lambda: col("b") & col("x"),
        lambda: ~col("x"),
        lambda: col("x").lower(),
        lambda: col("t").year(),
        lambda: col("d").hour(),
        lambda: col("d").truncate("minute"),
        lambda: col("x").cast("text"),
        lambda: col("t").cast("boolean"),
        lambda: when(col("x"), 1),
        lambda: when(col("b"), 1).else_("a"),
        lambda: col("x").coalesce("a"),
        lambda: col("x").is_in("a"),
        lambda: col("nobody") + 1,
        lambda: grid(col("t"), (0, 1), 0),
        lambda: null("text") + 1,
    ],
)
def test_a_type_that_does_not_fit_is_refused(expression: Any) -> None:
    with pytest.raises(DataError):
        type_of(expression(), SCHEMA)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bool(col("x")),
        lambda: col("x") and col("b"),  # type: ignore[unreachable]
        lambda: 1 < col("x") < 2,
        lambda: col(""),
        lambda: col(5),  # type: ignore[arg-type]
        lambda: col("x").is_in(),
        lambda: col("x").clamp(2, 1),
        lambda: col("x").clamp(math.nan, 1),
        lambda: col("x").bin(0),
        lambda: col("x").bin(-1),
        lambda: col("x").round(-16),
        lambda: col("x").round(16),
        lambda: col("x").round(1.5),  # type: ignore[arg-type]
        lambda: col("t").substring(0, 1),
        lambda: col("t").substring(1, -1),
        lambda: col("t").like("a\\"),
        lambda: col("t").like(5),  # type: ignore[arg-type]
        lambda: col("d").truncate("century"),  # type: ignore[arg-type]
        lambda: col("x").cast("money"),
        lambda: grid(col("x"), (0, math.inf), 0),
        lambda: grid(col("x"), (0, 1), 1.5),  # type: ignore[arg-type]
        lambda: grid(col("x"), (0, 1), 401),
        lambda: grid(col("x"), (0, 1), 51),
        lambda: grid(col("x"), (0, 1), 5, center=2**51),
        lambda: grid(col("x"), (0, 1), 5, center=0.5),  # type: ignore[arg-type]
        lambda: Clamped(col("x"), (0, 1), exponent=3, center=1.5),  # type: ignore[arg-type]
        lambda: Product(Clamped(col("x"), (0, 1), exponent=31), Clamped(col("x"), (0, 1), exponent=31)),
        lambda: NormBound(3, {"n": 1}),
        lambda: NormBound(1, {"n": 0}),
        lambda: NormBound(1, {"n": 1.5}),  # type: ignore[dict-item]
        lambda: NormBound(1, {"n": 1}, fraction=40),
        lambda: NormBound(1, {"n": 2**40}, fraction=20),
        lambda: NormBound(1, {("n", "n"): 1}).leaders(),
        lambda: Truncate(b"short", groups=1),
        lambda: Truncate("k" * 16, groups=1),  # type: ignore[arg-type]
        lambda: Truncate(KEY, groups=0),
        lambda: Truncate(KEY, rows=1.5),  # type: ignore[arg-type]
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda r: Aggregation(r, {}, {}, bound=Unbounded()),
        lambda r: Aggregation(r, {}, {"n": 1}, bound=Unbounded()),  # type: ignore[dict-item]
        lambda r: Aggregation(r, {}, [("n", Rows()), ("n", Rows())], bound=Unbounded()),
        lambda r: Aggregation(r, {}, {"n": Rows()}, bound="none"),  # type: ignore[arg-type]
        lambda r: Aggregation(r, {}, {"p": Persons()}, bound=Unbounded()),
        lambda r: Aggregation(r, {}, {"n": Rows()}, bound=NormBound(1, {"m": 1})),
        lambda r: Aggregation(r, {}, {"n": Rows(), "m": Rows()}, bound=NormBound(1, {"n": 1})),
        lambda r: Aggregation(r, {}, {"n": Rows(), "p": Persons()}, bound=NormBound(1, {("n", "p"): 1})),
        lambda r: Aggregation(r, {}, {"n": Rows()}, bound=Unbounded(), only=[]),
        lambda r: Aggregation(r, {"t": col("t")}, {"n": Rows()}, bound=Unbounded(), only=[("a", "b")]),
        lambda r: Norms(r, {}, value=Rows(), order=3, thresholds=(1,)),  # type: ignore[arg-type]
        lambda r: Norms(r, {}, value=Rows(), order=1, thresholds=()),  # type: ignore[arg-type]
        lambda r: Norms(r, {}, value=Rows(), order=1, thresholds=(2, 1)),  # type: ignore[arg-type]
        lambda r: Norms(r, {}, value=Rows(), order=1, thresholds=(0.5,)),  # type: ignore[arg-type]
        lambda r: Distinct(r, {}, of=col("t"), at_most=0, key=KEY),  # type: ignore[arg-type]
        lambda r: Distinct(r, {}, of=col("t"), at_most=1, key=b""),  # type: ignore[arg-type]
    ],
)
def test_a_question_that_makes_no_sense_is_refused(relation: Any, make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make(relation)


def test_a_key_of_another_type_and_an_unknown_column_are_refused(relation: Any) -> None:
    with pytest.raises(DataError, match="integer"):
        Aggregation(relation, {"t": col("t")}, {"n": Rows()}, bound=Unbounded(), only=[5])
    with pytest.raises(DataError, match="'who', 't', 'x', 'd' and 'b'"):
        Aggregation(relation, {"k": col("ward")}, {"n": Rows()}, bound=Unbounded())
    with pytest.raises(DataError, match="condition"):
        relation.where(col("x") + 1)
    with pytest.raises(DataError, match="no column"):
        private(relation.source, person="patient")


def test_a_value_may_follow_only_a_count_that_bounds_it(relation: Any) -> None:
    """A count of other rows would leave rows of the follower without a weight: one person could move it at will."""
    x, other = Clamped(col("x"), (0, 9), exponent=0), Clamped(col("x") + 1, (0, 9), exponent=0)
    known, everything = Rows(of=col("x")), Rows()
    for count, follower in ((known, other), (x, other), (Rows(of=col("t")), x), (known, Rows())):
        with pytest.raises(InvalidParameter, match="cannot follow"):
            Aggregation(relation, {}, {"n": count, "v": follower}, bound=NormBound(1, {("n", "v"): 2}))
    for count, follower in ((known, x), (everything, x), (everything, known), (known, Product(x, other))):  # type: ignore[assignment]
        Aggregation(relation, {}, {"n": count, "v": follower}, bound=NormBound(2, {("n", "v"): 2}))


def test_without_a_person_a_person_cannot_be_bounded() -> None:
    rows = private(DuckDBPlace().load(SCHEMA, []))
    for bound in (NormBound(1, {"n": 1}), Truncate(KEY, groups=1)):
        with pytest.raises(UnboundedError):
            Aggregation(rows, {}, {"n": Rows()}, bound=bound)
    with pytest.raises(UnboundedError):
        Norms(rows, {}, value=Rows(), order=1, thresholds=(1,))  # type: ignore[arg-type]


def test_an_expression_that_is_too_deep_is_refused() -> None:
    deep = col("x")
    for _ in range(200):
        deep = deep + 1  # type: ignore[assignment]
    with pytest.raises(DataError, match="deep"):
        type_of(deep, SCHEMA)


def test_a_deep_but_allowed_expression_is_answered(place: Any) -> None:
    deep = col("x")
    for _ in range(4 if place.name == "spark" else 11):  # Spark answers slowly, not wrongly
        deep = deep * 1.5 / 1.25  # type: ignore[assignment]
    relation = private(place.load(Schema({"x": Type.REAL}), [(0.5,)]))
    found = answer(Aggregation(relation.where(deep > 0), {}, {"n": Rows()}, bound=Unbounded())).to_dict()
    assert found == {(): (1,)}
