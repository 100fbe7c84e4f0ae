"""No person moves an answer by more than the bound says: tables with and without a person, on every kind of bound."""

import math
import random
import secrets
from typing import Any

import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    Distinct,
    NormBound,
    Norms,
    Persons,
    Rows,
    Schema,
    Truncate,
    Type,
    answer,
    col,
    private,
)
from mosha.connect.engines.duckdb import DuckDB
from tests.connect.places import arrow_table

SCHEMA = Schema({"who": Type.INTEGER, "ward": Type.TEXT, "x": Type.REAL})
SIGNED = Clamped(col("x"), (-8, 8), exponent=3)


def table() -> Any:
    """Mostly one very busy person beside others, signs mixed, some cells missing."""
    rows = []
    for who, size in [(0, random.randrange(1, 60)), *((k, random.randrange(1, 8)) for k in range(1, 6))]:
        wards = random.sample(["A", "B", "C", "D", "E", None], random.randrange(1, 7))
        rows += [(who, random.choice(wards), random.choice([random.gauss(0, 5), math.nan, 1e12])) for _ in range(size)]
    return rows


def moved(question: Any, rows: Any, who: Any) -> Any:
    """The change of every group's sums when a person leaves, by the SQL plan and by the kernel (which must agree)."""
    changes = []
    for compiled_from in (None, 1):
        engine = DuckDB(threads=1, compiled_from=compiled_from)
        parts = (rows, [row for row in rows if row[0] != who])
        sources = [engine.frame(arrow_table(SCHEMA, part)) for part in parts]
        both = [answer(question(private(source, person="who"))).to_dict() for source in sources]
        width = len(next(iter(both[0].values())))
        nothing = (0,) * width
        keys = set(both[0]) | set(both[1])
        changes.append(
            {
                k: tuple(a - b for a, b in zip(both[0].get(k, nothing), both[1].get(k, nothing), strict=True))
                for k in keys
            }
        )
    assert changes[0] == changes[1]
    return changes[0]


def column(change: Any, place: Any) -> list[Any]:
    return [abs(sums[place]) for sums in change.values()]


WARD = {"ward": col("ward")}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("trial", range(4))
def test_a_norm_bound_holds_for_every_value(order: int, trial: Any) -> None:
    limits, fraction = {"n": random.randrange(1, 6), "x": random.randrange(1, 200), "p": random.randrange(1, 3)}, 6
    bound = NormBound(order, limits, fraction=fraction)  # type: ignore[arg-type]
    change = moved(lambda r: Aggregation(r, WARD, {"n": Rows(), "x": SIGNED, "p": Persons()}, bound=bound), table(), 0)
    for place, limit in enumerate(limits.values()):
        assert sum(part**order for part in column(change, place)) <= (limit << fraction) ** order


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("trial", range(3))
def test_followers_of_a_count_move_by_their_magnitude_times_its_weight(order: int, trial: Any) -> None:
    limit, fraction = random.randrange(1, 6), 8
    bound = NormBound(order, {("n", "x"): limit}, fraction=fraction)
    change = moved(lambda r: Aggregation(r, WARD, {"n": Rows(of=col("x")), "x": SIGNED}, bound=bound), table(), 0)
    reach = limit << fraction
    assert sum(part**order for part in column(change, 0)) <= reach**order
    assert sum(part**order for part in column(change, 1)) <= (SIGNED.magnitude * reach) ** order
    worst = sum(
        max(n, x / SIGNED.magnitude) ** order for n, x in zip(column(change, 0), column(change, 1), strict=True)
    )
    assert worst <= (reach + len(change)) ** order  # one rounding in each group


@pytest.mark.parametrize(
    "limits", [{"groups": 2, "per_group": 3}, {"rows": 4}, {"groups": 1}, {"per_group": 2}], ids=str
)
def test_truncation_holds(limits: Any) -> None:
    bound = Truncate(secrets.token_bytes(16), **limits)
    values = {"n": Rows(), "x": SIGNED, "p": Persons()}
    change = moved(lambda r: Aggregation(r, WARD, values, bound=bound), table(), 0)
    counts = column(change, 0)
    assert sum(n > 0 for n in counts) <= limits.get("groups", 99)
    assert max(counts) <= limits.get("per_group", 99)
    assert sum(counts) <= limits.get("rows", 999)
    assert all(x <= SIGNED.magnitude * n for n, x, _ in (map(abs, sums) for sums in change.values()))
    assert max(column(change, 2)) <= 1


def test_bounds_are_reached_and_not_vacuous() -> None:
    rows = [(0, "A", 8.0)] * 50 + [(1, "A", 1.0)]
    values = {"n": Rows(), "x": SIGNED}
    change = moved(lambda r: Aggregation(r, WARD, values, bound=NormBound(1, {"n": 10, "x": 320})), rows, 0)
    assert change == {("A",): (0, 6 * 50)}  # 10 // 50 rounds to nothing without a fraction; 64 * 320 // 3200 = 6
    fine = NormBound(1, {"n": 10, "x": 320}, fraction=16)
    (change,) = moved(lambda r: Aggregation(r, WARD, values, bound=fine), rows, 0).values()
    assert [part / 2**16 for part in change] == pytest.approx([10, 320], rel=1e-3)


@pytest.mark.parametrize("trial", range(3))
def test_norms_and_distinct_values_move_by_what_they_say(trial: Any) -> None:
    rows, key = table(), secrets.token_bytes(16)
    thresholds = (1, 2, 4, 8, 16, 32)
    change = moved(lambda r: Norms(r, WARD, value=Rows(), order=2, thresholds=thresholds), rows, 0)  # type: ignore[arg-type]
    assert sum(column(change, 0)) == 1
    change = moved(lambda r: Distinct(r, WARD, of=col("x").floor(), at_most=3, key=key), rows, 0)  # type: ignore[arg-type]
    assert sum(column(change, 0)) <= 3
