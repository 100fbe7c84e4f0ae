"""Truncation: what stays of a person is a function of that person's rows, within the limits, and no more is lost."""

import random
import secrets
from collections import Counter, defaultdict
from typing import Any

import pytest
from scipy import stats

from mosha.connect import (
    Aggregation,
    Clamped,
    Distinct,
    Persons,
    Rows,
    Schema,
    Truncate,
    Type,
    Unbounded,
    answer,
    col,
    private,
)

SCHEMA = Schema({"who": Type.INTEGER, "ward": Type.TEXT, "x": Type.INTEGER})
WARDS = ["A", "B", "C", "D", None]


def marked(persons: Any = 6, most: Any = 12) -> list[Any]:
    """Rows whose value 2**k tells which row of the person it is: a sum tells exactly which rows were kept."""
    sizes = [random.randrange(1, most + 1) for _ in range(persons)]
    return [(who, random.choice(WARDS), 2**k) for who, size in enumerate(sizes) for k in range(size)]


MARK = Clamped(col("x"), (0, 2**20), exponent=0)
BOUNDS = {
    "rows": {"rows": 3},
    "groups": {"groups": 2},
    "rows in each group": {"per_group": 2},
    "groups and rows in each": {"groups": 2, "per_group": 1},
    "all three": {"groups": 2, "per_group": 2, "rows": 3},
    "rows in each and in all": {"per_group": 2, "rows": 4},
}


def kept(relation: Any, bound: Any, where: Any = None, **values: Any) -> Any:
    values = values or {"n": Rows(), "x": MARK}
    chosen = relation if where is None else relation.where(where)
    return answer(Aggregation(chosen, {"ward": col("ward")}, values, bound=bound)).to_dict()


def added(*tables: Any) -> dict[Any, Any]:
    total: Any = defaultdict(lambda: (0, 0))
    for table in tables:
        for key, (n, x) in table.items():
            total[key] = (total[key][0] + n, total[key][1] + x)
    return {key: sums for key, sums in total.items() if sums != (0, 0)}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_person_keeps_as_much_as_the_limits_allow_and_the_rest_of_the_table_does_not_matter(
    place: Any, name: Any
) -> None:
    rows = marked()
    relation = private(place.load(SCHEMA, rows), person="who")
    bound = Truncate(secrets.token_bytes(16), **BOUNDS[name])
    singles = []
    for who in range(6 if place.name == "duckdb" else 2):
        mine = Counter(ward for person, ward, _ in rows if person == who)
        marks = {x: ward for person, ward, x in rows if person == who}
        single = kept(relation, bound, col("who") == who)
        singles.append(single)
        for (ward,), (count, total) in single.items():
            bits = [bit for bit in marks if total & bit]
            assert sum(bits) == total
            assert len(bits) == count
            assert {marks[bit] for bit in bits} <= {ward}
        allowed = [min(count, bound.per_group or count) for count in mine.values()]
        if bound.groups is None:
            most = sum(allowed)
            assert sum(count for count, _ in single.values()) == min(most, bound.rows or most)
        else:
            assert len(single) <= min(bound.groups, len(mine))
            most = sum(sorted(allowed)[-bound.groups :])
            assert sum(count for count, _ in single.values()) <= min(most, bound.rows or most)
            if bound.rows is None:
                assert len(single) == min(bound.groups, len(mine))
                assert all(n == min(mine[w], bound.per_group or n) for (w,), (n, _) in single.items())
    others = kept(relation, bound, col("who") >= len(singles))
    assert added(*singles, others) == added(kept(relation, bound))


def test_the_same_key_keeps_the_same_rows_in_any_order(place: Any) -> None:
    rows = marked(12)
    bound = Truncate(secrets.token_bytes(16), groups=2, per_group=2)
    tables = [rows, random.sample(rows, len(rows))]
    first, second = (kept(private(place.load(SCHEMA, table), person="who"), bound) for table in tables)
    assert first == second


def test_a_count_alone_is_cut_as_a_count_beside_a_sum_is(place: Any) -> None:
    rows = marked(20)
    relation = private(place.load(SCHEMA, rows), person="who")
    bound = Truncate(secrets.token_bytes(16), groups=2, per_group=2)
    alone = kept(relation, bound, n=Rows(), people=Persons())
    beside = kept(relation, bound)
    assert {key: n for key, (n, _) in alone.items()} == {key: n for key, (n, _) in beside.items()}


def test_distinct_values_are_limited_for_each_person_and_the_rest_does_not_matter(place: Any) -> None:
    rows = [(who, ward, random.randrange(6)) for who in range(5) for ward in "AB" for _ in range(5)]
    relation, key = private(place.load(SCHEMA, rows), person="who"), secrets.token_bytes(16)

    def distinct(where: Any, at_most: Any) -> Any:
        question = Distinct(relation.where(where), {"w": col("ward")}, of=col("x"), at_most=at_most, key=key)  # type: ignore[arg-type]
        return answer(question).to_dict()

    everyone = col("who") >= 0
    true = {(w,): (len({x for _, ward, x in rows if ward == w}),) for w in "AB"}
    assert distinct(everyone, 100) == true
    assert sum(n for (n,) in distinct(col("who") == 1, 3).values()) == 3
    with_one, without = distinct(everyone, 2), distinct(col("who") != 1, 2)
    moved = sum(abs(with_one.get((w,), (0,))[0] - without.get((w,), (0,))[0]) for w in "AB")
    assert moved <= 2


def test_without_persons_distinct_values_are_counted_in_full(place: Any) -> None:
    rows = [(1, "A", 3), (1, "A", 3), (2, "A", 4), (3, None, None)]
    relation = private(place.load(SCHEMA, rows))
    found = answer(Distinct(relation, {"w": col("ward")}, of=col("x"), at_most=1, key=bytes(16))).to_dict()  # type: ignore[arg-type]
    assert found == {("A",): (2,)}


def test_every_group_of_a_person_is_equally_likely_to_stay(place: Any) -> None:
    """False alarms: 1e-9 for each engine (chi-square, 3 degrees of freedom, 4000 persons)."""
    rows = [(who, ward, 1) for who in range(4000) for ward in "ABCD"]
    relation = private(place.load(SCHEMA, rows), person="who")
    bound = Truncate(secrets.token_bytes(16), groups=1)
    found = kept(relation, bound, people=Persons(), n=Rows())
    counts = [n for n, _ in found.values()]
    assert sum(counts) == 4000
    assert len(counts) == 4
    assert stats.chisquare(counts).pvalue > 1e-9
    assert stats.chisquare([n + 250 * sign for n, sign in zip(counts, (1, -1, 1, -1), strict=True)]).pvalue < 1e-9


def test_another_key_keeps_other_groups() -> None:
    from tests.connect.places import DuckDBPlace

    rows = [(who, ward, random.randrange(2**20)) for who in range(200) for ward in "ABCD"]  # equal by chance: 1e-20
    relation = private(DuckDBPlace().load(SCHEMA, rows), person="who")
    answers = [kept(relation, Truncate(secrets.token_bytes(16), groups=1)) for _ in range(2)]
    assert answers[0] != answers[1]


def test_without_a_bound_nothing_is_cut(place: Any) -> None:
    rows = marked(8)
    relation = private(place.load(SCHEMA, rows), person="who")
    assert added(kept(relation, Truncate(bytes(16)))) == added(kept(relation, Unbounded()))
