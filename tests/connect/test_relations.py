"""Joins and limits: what a relation holds on every engine, and how far one unit can change it."""

import functools
import itertools
import random
import secrets
from collections import Counter
from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    NormBound,
    Rows,
    Schema,
    Stability,
    Type,
    Unbounded,
    answer,
    col,
    private,
    public,
)
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from tests.connect.places import DuckDBPlace

VISITS = Schema({"patient": Type.INTEGER, "ward": Type.TEXT, "days": Type.INTEGER})
WARDS = Schema({"ward": Type.TEXT, "floor": Type.INTEGER})
PEOPLE = Schema({"person": Type.INTEGER, "age": Type.INTEGER})
ROWS = [(1, "A", 3), (1, "B", 5), (2, "A", 7), (3, "C", 2), (4, None, 9), (None, "A", 1), (2, "A", 7)]
FLOORS = [("A", 1), ("A", 1), ("B", 2), ("D", 3), (None, 4)]
AGES = [(1, 30), (1, 31), (2, 40), (9, 50), (None, 60)]


def listed(relation: Any, *names: Any) -> Any:
    """The rows of a relation as a multiset, through the front door."""
    keys = {name: col(name) for name in names}
    return Counter(
        {key: n for key, (n,) in answer(Aggregation(relation, keys, {"n": Rows()}, bound=Unbounded())).rows()}
    )


def test_a_public_table_adds_its_facts_to_each_row(place: Any) -> None:
    visits, wards = private(place.load(VISITS, ROWS)), public(place.load(WARDS, FLOORS))
    joined = listed(visits.join_public(wards, on="ward"), "ward", "floor")
    assert joined == {("A", 1): 4, ("B", 2): 1}  # the second ("A", 1) is one too many
    kept = listed(visits.join_public(wards, on="ward", how="left"), "ward", "floor")
    assert kept == {("A", 1): 4, ("B", 2): 1, ("C", None): 1, (None, None): 1}
    twice = listed(visits.join_public(wards, on={"ward": "ward"}, at_most=2), "ward", "floor")
    assert twice == {("A", 1): 8, ("B", 2): 1}


def test_private_tables_meet_on_the_person(place: Any) -> None:
    visits = private(place.load(VISITS, ROWS), person="patient")
    people = private(place.load(PEOPLE, AGES), person="person")
    joined = visits.join_person(people)
    assert joined.person == "patient"
    assert listed(joined, "patient", "ward", "age") == {
        (1, "A", 30): 1,
        (1, "A", 31): 1,
        (1, "B", 30): 1,
        (1, "B", 31): 1,
        (2, "A", 40): 2,
    }
    kept = listed(visits.join_person(people, how="left"), "patient", "age")
    assert kept[(3, None)] == 1
    assert (None, None) not in kept  # a row of nobody is never counted where persons are


def test_a_bounded_join_cuts_both_sides_of_every_key(place: Any) -> None:
    rows = [(1, "A", d) for d in range(5)] + [(2, "B", 1)]
    left = private(place.load(VISITS, rows))
    right = private(place.load(WARDS, [("A", f) for f in range(4)] + [("B", 9)]))
    joined = left.join_bounded(right, on="ward", at_most=(3, 2), key=secrets.token_bytes(16))
    counts = listed(joined, "ward")
    assert counts == {("A",): 6, ("B",): 1}


def test_steps_after_a_join_see_both_sides(place: Any) -> None:
    visits, wards = private(place.load(VISITS, ROWS), person="patient"), public(place.load(WARDS, FLOORS))
    relation = visits.join_public(wards, on="ward").compute(weight=col("days") * col("floor")).where(col("weight") > 3)
    question = Aggregation(
        relation,
        {"floor": col("floor")},
        {"w": Clamped(col("weight"), (0, 8), exponent=0)},
        bound=NormBound(1, {"w": 100}),
    )
    assert answer(question).to_dict() == {(2,): (8,), (1,): (14,)}


def test_a_computed_column_may_build_on_another_and_replace_an_old_one(place: Any) -> None:
    relation = private(place.load(VISITS, ROWS)).compute(days=col("days") + 1, double=col("days") * 2)
    assert listed(relation, "double") == Counter((2 * (days + 1),) for _, _, days in ROWS)


def test_limited_rows_are_a_function_of_the_person(place: Any) -> None:
    rows = [(who, ward, days) for who in range(4) for ward in "AB" for days in range(3)]
    visits, key = private(place.load(VISITS, rows), person="patient"), secrets.token_bytes(16)
    cut = visits.limit_rows(2, key=key)
    everyone = listed(cut, "patient", "ward", "days")
    assert Counter(p for p, _, _ in everyone.elements()) == dict.fromkeys(range(4), 2)
    alone = listed(visits.where(col("patient") == 2).limit_rows(2, key=key), "patient", "ward", "days")
    assert alone == {row: n for row, n in everyone.items() if row[0] == 2}


def test_stability_is_what_one_unit_can_change() -> None:
    place = DuckDBPlace()
    visits, wards = private(place.load(VISITS, ROWS), person="patient"), public(place.load(WARDS, FLOORS))
    people = private(place.load(PEOPLE, AGES), person="person")
    key = bytes(16)
    assert visits.stability == Stability(1, None)
    assert wards.stability == Stability(0, 0)
    assert visits.where(col("days") > 1).compute(x=col("days")).stability == Stability(1, None)
    assert visits.join_public(wards, on="ward", at_most=3).stability == Stability(3, None)
    assert visits.join_person(people).stability == Stability(None, None)
    limited = visits.limit_rows(5, key=key)
    assert limited.stability == Stability(2, 5)
    assert limited.join_person(people.limit_rows(2, key=key)).stability == Stability(None, 10)
    bounded = limited.join_bounded(people.limit_rows(2, key=key), on={"days": "age"}, at_most=(3, 4), key=key)
    assert bounded.stability == Stability(2 * (4 * 2 + 3 * 2), 2 * (4 * 5 + 3 * 2))
    assert bounded.person is None


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_no_neighbor_changes_a_bounded_join_by_more_than_its_stability(side: str) -> None:
    place = DuckDBPlace()
    for _ in range(8):
        left = [(random.randrange(4), random.choice("ABC"), random.randrange(3)) for _ in range(14)]
        right = [(random.choice("ABC"), random.randrange(3)) for _ in range(10)]
        key, limits = secrets.token_bytes(16), (random.randrange(1, 4), random.randrange(1, 4))

        def joined(left_rows: Any, right_rows: Any, key: Any = key, limits: Any = limits) -> Any:
            a, b = private(place.load(VISITS, left_rows)), private(place.load(WARDS, right_rows))
            return a.join_bounded(b, on="ward", at_most=limits, key=key)

        whole = joined(left, right)
        fewer = joined(left[1:] if side != "right" else left, right[1:] if side != "left" else right)
        before, after = (listed(relation, "patient", "ward", "days", "floor") for relation in (whole, fewer))
        moved = sum(((before - after) + (after - before)).values())
        allowed = {"left": 2 * limits[1], "right": 2 * limits[0], "both": whole.stability.per_row}[side]
        assert moved <= allowed


def test_the_person_cannot_be_computed_away_and_is_needed_for_bounds() -> None:
    place = DuckDBPlace()
    visits = private(place.load(VISITS, ROWS), person="patient")
    with pytest.raises(DataError, match="identif"):
        visits.compute(patient=col("days"))
    rowwise = private(place.load(VISITS, ROWS))
    with pytest.raises(UnboundedError):
        Aggregation(rowwise, {}, {"n": Rows()}, bound=NormBound(1, {"n": 1}))
    with pytest.raises(DataError):
        rowwise.limit_rows(3, key=bytes(16))
    with pytest.raises(DataError, match="real"):
        private(place.load(Schema({"x": Type.REAL}), [(1.0,)]), person="x")


def test_joins_that_would_leak_or_mislead_are_refused() -> None:
    place = DuckDBPlace()
    visits = private(place.load(VISITS, ROWS), person="patient")
    people = private(place.load(PEOPLE, AGES), person="person")
    with pytest.raises(DataError, match="private"):
        visits.join_public(people, on={"patient": "person"})
    with pytest.raises(DataError, match="both sides"):
        visits.join_person(private(place.load(VISITS, ROWS), person="patient"))
    with pytest.raises(DataError, match="text"):
        visits.join_public(public(place.load(WARDS, FLOORS)), on={"days": "ward"})
    with pytest.raises(DataError, match="no column"):
        visits.join_public(public(place.load(WARDS, FLOORS)), on={"ward": "storey"})
    with pytest.raises(InvalidParameter, match="inner"):
        visits.join_public(public(place.load(WARDS, FLOORS)), on="ward", how="cross")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        visits.join_public(public(place.load(WARDS, FLOORS)), on="ward", at_most=0)
    with pytest.raises(InvalidParameter, match="16 random bytes"):
        visits.limit_rows(1, key=b"short")


@pytest.mark.parametrize(
    "step",
    [
        lambda visits: visits.where(col("days") > 1),
        lambda visits: visits.compute(days=col("days") + 1),
        lambda visits: visits.limit_rows(2, key=bytes(16)),
    ],
    ids=["where", "compute", "limit"],
)
def test_a_chain_of_any_step_is_refused_before_it_is_too_deep(step: Any) -> None:
    relation = private(DuckDBPlace().load(VISITS, [(1, "A", 3)]), person="patient")
    with pytest.raises(InvalidParameter) as refused:
        functools.reduce(lambda under, _: step(under), range(2000), relation)
    assert refused.value.code == "connect.plan_too_deep"


def test_tables_on_different_engines_do_not_join() -> None:
    from mosha.connect.engines.duckdb import DuckDB
    from tests.connect.places import arrow_table

    here, there = (DuckDB().frame(arrow_table(VISITS, ROWS)), DuckDB().frame(arrow_table(WARDS, FLOORS)))
    joined = private(here).join_public(public(there), on="ward")
    with pytest.raises(DataError, match="different engines"):
        listed(joined, "ward")


def test_every_pair_of_steps_keeps_names_apart(place: Any) -> None:
    """Columns that engines would take for one another, or for SQL, keep their own values through joins."""
    odd = ['a"b', "a`b", "a'b", "a;b -- x", "_1", "K0", "p", "v0", "rows", "選"]
    left = Schema({"id": Type.INTEGER} | dict.fromkeys(odd[:5], Type.INTEGER))
    right = Schema({"id": Type.INTEGER} | dict.fromkeys(odd[5:], Type.INTEGER))
    a = private(place.load(left, [(k, *range(k, k + 5)) for k in range(3)]))
    b = public(place.load(right, [(k, *range(10 * k, 10 * k + 5)) for k in range(3)]))
    relation = a.join_public(b, on="id").compute(total=col(odd[0]) + col(odd[9])).where(col("total") >= 0)
    found = listed(relation, *odd, "total")
    assert found == {
        (*range(k, k + 5), *range(10 * k, 10 * k + 5), k + 10 * k + 4): 1 for k in itertools.chain(range(3))
    }
