"""Cells near some ranks of each group: every engine and the kernel find those of the definition, and not many."""

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mosha.connect import Aggregation, Clamped, NormBound, Rows, Schema, Type, Unbounded, answer, col, private
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import answer_in_batches
from mosha.connect.plan.aggregation import NearRanks
from tests.connect.places import arrow_table

SCHEMA = Schema({"who": Type.TEXT, "ward": Type.TEXT, "x": Type.REAL})
CELL = Clamped(col("x"), (0, 64), exponent=2)
BOUNDS = {"people": NormBound(1, {"rows": 3}, 8), "rows": Unbounded()}
NEAR = [(1, 2, 40), (9, 10, 7), (0, 1, 0)]


def make_rows(size: Any) -> list[Any]:
    pick = random.Random()
    who = [None, *(f"p{k % 5}" for k in range(9)), *(f"q{k}" for k in range(size // 3))]
    xs = [None, float("nan"), -5.0, 1e9, *(pick.uniform(0, 64) for _ in range(60))]
    return [(pick.choice(who), pick.choice(["A", "B", None, "Z"]), pick.choice(xs)) for _ in range(size)]


def define(relation: Any, only: Any, bound: Any, near: Any) -> Any:
    """The definition, from the weight of each cell."""
    known = relation.where(~CELL.known.is_null())
    if only is not None:
        wards = [ward for ward in only if ward is not None]
        known = known.where(
            col("ward").is_in(*wards) | col("ward").is_null() if None in only else col("ward").is_in(*wards)
        )
    keys = {"ward": col("ward"), "cell": CELL.known}
    weights = answer(Aggregation(known, keys, {"rows": Rows()}, bound=bound)).to_dict()
    found = set()
    for ward in {ward for ward, _ in weights}:
        mine = sorted((cell, rows) for (w, cell), (rows,) in weights.items() if w == ward)
        total, upto = sum(rows for _, rows in mine), 0
        for cell, rows in mine:
            upto += rows
            if rows and any(b * upto >= t * total - r and b * (upto - rows) <= t * total + r for t, b, r in near):
                found.add((ward, cell, rows, upto, total))
    return found


def ask(relation: Any, only: Any, bound: Any, near: Any) -> list[Any]:
    known = relation.where(~CELL.known.is_null())
    listed = None if only is None else [(ward,) for ward in only]
    question = NearRanks(known, {"ward": col("ward")}, only=listed, cell=CELL, near=tuple(near), bound=bound)  # type: ignore[arg-type]
    return [(*key, *numbers) for key, numbers in answer(question).rows()]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("only", [None, ["A", None, "Q"], [*"ABCDEFGHIJKLMNOPQRSTUVWXY"]])
def test_every_engine_finds_the_cells_of_the_definition(place: Any, bound: Any, only: Any) -> None:
    relation = private(place.load(SCHEMA, make_rows(300)), person="who" if bound == "people" else None)
    for near in ([NEAR[0]], NEAR):
        found = ask(relation, only, BOUNDS[bound], near)
        assert len(found) == len(set(found))
        assert set(found) == define(relation, only, BOUNDS[bound], near)


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_kernel_finds_them_too(bound: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mosha.connect.kernels.near_rows.COARSE_BITS", random.choice([0, 2, 5]))
    relation = private(DuckDB(compiled_from=1).frame(arrow_table(SCHEMA, make_rows(2000))), person="who")
    assert set(ask(relation, None, BOUNDS[bound], NEAR)) == define(relation, None, BOUNDS[bound], NEAR)


def test_what_comes_back_does_not_grow_with_the_rows() -> None:
    sizes = []
    for rows in (5_000, 50_000):
        pick = random.Random()
        table = [(f"p{i}", "A", pick.uniform(0, 64)) for i in range(rows)]
        fine = Clamped(col("x"), (0, 64), exponent=14)
        relation = private(DuckDB(compiled_from=None).frame(arrow_table(SCHEMA, table)), person="who")
        question = NearRanks(relation, {}, cell=fine, near=((1, 2, 100),), bound=NormBound(1, {"rows": 1}))  # type: ignore[arg-type]
        sizes.append(len(answer(question)))
    assert max(sizes) <= 102


def test_the_kernel_tells_some_groups_at_a_time_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fine grid, on which few rows share a cell, and of a coarse one; few cells are held together."""
    pytest.importorskip("numba")
    rows, groups = 60_000, 300
    source = np.random.default_rng()
    columns = {
        "who": np.arange(rows) % 20_000,
        "ward": source.integers(0, groups, rows),
        "x": source.uniform(0, 64, rows),
    }
    relations = [private(DuckDB(compiled_from=start).frame(pa.table(columns)), person="who") for start in (1, None)]
    monkeypatch.setattr("mosha.connect.kernels.near_rows.AT_ONCE", 1000)
    for again, exponent in itertools.product((1, 2**21), (-2, 14)):
        monkeypatch.setattr("mosha.connect.engines.compiled_path.RANKS_AGAIN_FROM", again)
        cell = Clamped(col("x"), (0, 64), exponent=exponent)
        ask_all = lambda relation, cell=cell: NearRanks(
            relation.where(~cell.known.is_null()), (("ward", col("ward")),), cell=cell, near=((1, 2, 10**6),),
            bound=NormBound(1, {"rows": 3}, 8),
        )  # fmt: skip
        found: list[Any] = []
        answer_in_batches(ask_all(relations[0]), found.append)
        assert len(found) > 20
        assert all(len(part) <= 2000 for part in found)
        told = [set(part.keys[0].tolist()) for part in found]
        assert sum(map(len, told)) == len(set().union(*told)) == groups
        exact = sorted((*key, *numbers) for key, numbers in answer(ask_all(relations[1])).rows())
        assert sorted((*key, *numbers) for part in found for key, numbers in part.rows()) == exact
