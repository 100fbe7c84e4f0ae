"""One unit moves the channels of a release by no more than its noise was made for: searched on random tables."""

import itertools
import math
import random
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import answer
from mosha.core.budget import Budget
from mosha.tables import aggregates as ask
from mosha.tables.mechanisms.joint_noise import BoxNoise
from mosha.tables.protecting import protect

WARDS = ["A", "B", "C"]
UNITS = [
    mosha.Row(),
    mosha.Row(at_most=3),
    mosha.Row(neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Row(at_most=3, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", at_most=2),
    mosha.Person("who", at_most=2, neighbors="replace-one"),  # type: ignore[arg-type]
    mosha.Person("who", groups=2, per_group=3),
    mosha.Person("who", at_most=4, groups=2, per_group=3),
]
BUDGETS = [Budget(epsilon=1), Budget(rho=0.5)]


def rows_of(person: Any, generator: Any) -> list[Any]:
    """What one person may have: many rows or few, in one group or many, of every kind of value."""
    values = [None, math.nan, math.inf, -math.inf, -1e300, -1e9, 1e9, -3.0, -0.0, 0.0, 5e-324, 7.5, 30.0, 31.0]
    count = generator.choice([1, 1, 2, 5, 20])
    wards = generator.choice([["A"], WARDS, [None, "Z", "B"]])
    return [(person, generator.choice(wards), generator.choice(values), generator.choice(values)) for _ in range(count)]


def as_table(rows: Any) -> Any:
    names = ["who", "ward", "days", "cost"]
    types = [pa.int64(), pa.string(), pa.float64(), pa.float64()]
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4  # type: ignore[list-item]
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


def neighbors(unit: Any, generator: Any) -> tuple[Any, ...]:
    others = [row for person in range(6) for row in rows_of(person, generator)]
    owned = [rows_of(99, generator) for _ in range(2)]
    if isinstance(unit, mosha.Row):
        others = [(i, *row[1:]) for i, row in enumerate(others)]
        owned = [rows[: unit.at_most] for rows in owned]
    if unit.neighbors == "replace-one":
        return others + owned[0], others + owned[1]
    return others + owned[0], others


def questions(table: Any) -> Iterator[Any]:
    grouped = table.group_by("ward", keys=WARDS)
    numbers = {
        "n": ask.count(),
        "d": ask.mean("days", between=(0, 30)),
        "s": ask.sum("days", between=(-5, 30)),
        "v": ask.covariance(["days", "cost"], between=[(0, 30), (-5, 5)]),
    }
    yield grouped.aggregate(**numbers)
    yield table.aggregate(**numbers)
    yield grouped.sum("cost", between=(-10, 5))
    yield table.mean("days", between=(0, 30))
    yield table.compute(days=mosha.col("days").coalesce(3)).mean("days", between=(-5, 30))
    if isinstance(table.unit, mosha.Person):
        yield grouped.persons()


def moved(first: Any, second: Any, budget: Any, key: Any) -> Iterator[Any]:
    """How far two neighbors are apart in each part of a release, as a share of what its noise was made for."""
    for part in first.parts(budget):
        exact = []
        groups = first.frame.groups
        for question in (first, second):
            totals = answer(part.question(question.frame, part.limits.norm, key)[0])
            columns = [np.asarray(totals[name]).astype(object) for name in part.values]
            exact.append(np.array([c if len(c) == groups else [0] * groups for c in columns]))
        change = np.abs(exact[0] - exact[1]).astype(float)
        reach = np.array(part.reach(first.frame, part.limits.norm), float)
        assert not change[reach == 0].any()
        share = change[reach > 0] / reach[reach > 0][:, None]
        together = None if part.noise.shared else 1
        if isinstance(part.noise, BoxNoise):
            yield share.sum() if part.noise.shared else share.max(axis=0, initial=0.0).sum()
        else:
            yield math.sqrt((share**2).sum(axis=together).max(initial=0.0))


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
def test_one_unit_moves_the_channels_within_their_reach(unit: Any, budget: Any) -> None:
    generator = random.Random()
    for _ in range(4):
        pair = neighbors(unit, generator)
        tables = [protect(as_table(rows), unit=unit) for rows in pair]
        key = generator.randbytes(32)
        for first, second in zip(*(questions(table) for table in tables), strict=True):
            assert all(share <= 1 + 1e-12 for share in moved(first, second, budget, key))


IDS = {
    "text": (pa.string(), "text", ["A", "a", "A ", "", "é", "e\u0301", None, "NaN", "0", "00"]),
    "integers": (pa.int64(), "bigint", [0, 2**63 - 1, -(2**63), None, 2**53, 2**53 + 1]),
    "decimals": (pa.decimal128(30, 0), "numeric(30, 0)", [Decimal(1), Decimal(10**18), Decimal(10**18 + 1), None]),
    "dates": (pa.date32(), "date", [date(1, 1, 1), date(9999, 12, 31), None, date(2024, 2, 29)]),
    "booleans": (pa.bool_(), "boolean", [True, False, None]),
}
NAMES = itertools.count()


def in_postgresql(url: Any, kind: Any, rows: Any) -> tuple[Any, ...]:
    import psycopg

    name = f"odd{next(NAMES)}"
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (who {IDS[kind][1]}, ward text, days float8, cost float8)")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return url, {"table": name}


@cache
def engine(compiled_from: Any) -> Any:
    return DuckDB(compiled_from=compiled_from)


def in_arrow(kind: Any, rows: Any, compiled_from: Any) -> tuple[Any, ...]:
    types = [IDS[kind][0], pa.string(), pa.float64(), pa.float64()]
    columns = zip(["who", "ward", "days", "cost"], zip(*rows, strict=True), types, strict=True)
    return pa.table({name: pa.array(c, t) for name, c, t in columns}), {"engine": engine(compiled_from)}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("place", ["compiled", "SQL", "postgresql"])
def test_odd_ids_and_values_move_no_more_on_any_engine(kind: Any, place: str, request: Any) -> None:
    generator = random.Random()
    people = IDS[kind][2]
    rows = [row for person in people for row in rows_of(person, generator)]  # type: ignore[attr-defined]
    generator.shuffle(rows)
    gone = generator.choice([person for person in people if person is not None])  # type: ignore[attr-defined]
    pair = rows, [row for row in rows if row[0] != gone]
    if place == "postgresql":
        url = request.getfixturevalue("postgres_server").url("postgres")
        places = [in_postgresql(url, kind, part) for part in pair]
    else:
        places = [in_arrow(kind, part, 0 if place == "compiled" else None) for part in pair]
    units = (mosha.Person("who", at_most=2), mosha.Person("who", groups=2, per_group=1))
    for unit, budget in zip(units, generator.sample(BUDGETS, 2), strict=True):
        tables = [protect(data, unit=unit, **options) for data, options in places]
        for first, second in zip(*(questions(table) for table in tables), strict=True):
            assert all(share <= 1 + 1e-12 for share in moved(first, second, budget, bytes(range(32))))


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=0.3, delta=1e-6), Budget(rho=0.2)], ids=repr)
@pytest.mark.parametrize("unit", [mosha.Person("who", at_most=2), mosha.Person("who")], ids=repr)
def test_a_release_costs_what_was_said(budget: Any, unit: Any) -> None:
    table = protect(as_table([]), unit=unit)
    for question in questions(table):
        event = question.measurement(budget).event
        if budget.rho is not None:
            assert mosha.accounting.concentrated.cost_of(event).amount <= budget.rho * (1 + 1e-9)
        else:
            assert mosha.accounting.epsilon(event, budget.delta) <= budget.epsilon * (1 + 1e-9)
