"""SUM(DISTINCT x): what it adds up, by how much one person moves it, and that its bars hold."""

import random
from typing import Any

import pyarrow as pa
import pytest

import mosha
from mosha.connect import answer, col, private, source
from mosha.connect.plan.aggregation import Distinct
from mosha.errors import DataError, InvalidParameter
from mosha.tables.aggregates import distinct_sum
from tests.searches import draw_seeds

ROWS = {
    "who": [1, 1, 2, 2, 3, 3, 3],
    "ward": ["a", "a", "a", "b", "b", "b", "a"],
    "x": [1.0, 1.0, 1.0, 4.0, 9.0, None, 99.0],
}


def protect(**limits: Any) -> Any:
    unit = mosha.Person("who", **limits)
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1e9)
    return mosha.protect(pa.table(ROWS), unit=unit, account=account, schema={
        "columns": {"x": {"between": [0, 10]}, "ward": {"keys": ["a", "b", "c"]}}})  # fmt: skip


def test_different_values_are_clamped_and_added_up_once() -> None:
    visits = protect(at_most=9)
    sql = "SELECT ward, SUM(DISTINCT x) AS s, COUNT(DISTINCT x) AS n FROM visits GROUP BY ward ORDER BY ward"
    # False alarms: noise of scale 90 / 5e4 strays by a twentieth with probability e**-27.
    rows = [
        (row["ward"], round(row["s"], 1), round(row["n"], 1))  # type: ignore[arg-type, index]
        for row in mosha.query(sql, epsilon=1e5, visits=visits)
    ]
    assert rows == [("a", 11, 2), ("b", 13, 2), ("c", 0, 0)]
    bars = visits.aggregate(s=distinct_sum("x", between=(0, 10))).release(epsilon=1).error(1 - 1e-9)["s"]
    assert 90 * 20 < bars[0] < 90 * 22  # the scale is 9 values of at most 10, and ln 1e9 is 20.7


def test_one_person_moves_the_sums_by_no_more_than_their_values() -> None:
    moved = []
    for seed in [*range(3), *(seed for seed, _ in zip(draw_seeds("distinct sums"), range(12), strict=False))]:
        g = random.Random(seed)
        rows = [(g.randrange(5), g.choice("ab"), g.randrange(4)) for _ in range(25)]
        kept = [row for row in rows if row[0] != 0]
        tables = [
            private(source(dict(zip("wgx", zip(*part, strict=True), strict=True))), person="w") for part in (rows, kept)
        ]
        key = g.randbytes(32)
        one, other = (
            answer(Distinct(table, {"g": col("g")}, of=col("x"), at_most=2, key=key, add=True, only=["a", "b"]))[  # type: ignore[arg-type]
                "distinct"
            ]
            for table in tables
        )
        moved.append(sum(abs(a - b) for a, b in zip(one.tolist(), other.tolist(), strict=True)))
    assert max(moved) <= 2 * 3
    alone = private(source({"w": [1, 1, 2], "g": ["a", "b", "a"], "x": [3, 3, 0]}), person="w")
    most = Distinct(alone, {"g": col("g")}, of=col("x"), at_most=2, key=bytes(16), add=True)  # type: ignore[arg-type]
    assert answer(most)["distinct"].sum() == 6  # and so by two values where both are the person's own


def test_it_survives_json_and_needs_a_range() -> None:
    visits = protect(at_most=2)
    asked = visits.aggregate(s=distinct_sum("x"))
    assert asked.to_dict()["aggregates"] == [
        {"name": "s", "kind": "distinct_sum", "column": "x", "between": [0.0, 10.0]}
    ]
    with pytest.raises(InvalidParameter, match="range that is known"):
        distinct_sum("x", between="automatic")
    with pytest.raises(DataError, match="whole numbers"):
        Distinct(private(source({"x": [1.5]})), of=col("x"), at_most=1, key=bytes(16), add=True)
