"""Quantiles of groups that come some at a time: each group its own answer, whatever the order and the blocks."""

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.engines.duckdb import DuckDB
from mosha.tables import Budget, protect, quantile
from mosha.tables.mechanisms import rank_choice

pytest.importorskip("numba")

SURE = Budget(epsilon=10**9)
"""So little noise that a cell more or less is the most that an answer strays."""


def answer_all(table: Any, keys: Any, name: str, **asked: Any) -> Any:
    question = table.group_by(name, keys=keys).aggregate(**asked)
    plan = question.plan_release(SURE)
    value, _ = question.measurement(SURE).step(None, None, None, mosha.noise.secure())
    return plan.answers(value), plan.errors(value, 0.95)


@pytest.mark.parametrize("again_from", [1, 2**21])
@pytest.mark.parametrize("name", ["number", "text"])
def test_each_group_has_its_own_quantiles(name: Any, again_from: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed in another order than they come, with groups that have no rows, and rows of groups that are not listed."""
    monkeypatch.setattr("mosha.connect.engines.compiled_path.RANKS_AGAIN_FROM", again_from)
    monkeypatch.setattr("mosha.connect.kernels.near_rows.AT_ONCE", 500)
    monkeypatch.setattr(rank_choice, "BLOCK", 200)
    source = np.random.default_rng()
    rows, groups = 20_000, 50
    owner, values = source.integers(0, groups, rows), source.uniform(0, 1, rows)
    values = values + owner  # the values of group g lie between g and g + 1
    columns = {"who": np.arange(rows), "number": owner, "text": [f"g{g:02}" for g in owner.tolist()], "x": values}
    table = protect(DuckDB(compiled_from=1).frame(pa.table(columns)), unit=mosha.Person("who", at_most=1))
    shown = source.permutation(np.concatenate([np.arange(0, groups, 2), np.arange(100, 140)]))
    keys = [int(g) if name == "number" else f"g{g:02}" for g in shown.tolist()]
    answers, errors = answer_all(
        table, keys, name,
        middle=quantile("x", 0.5, between=(0, 64), bars="values"), low=quantile("x", 0.1, between=(0, 64)),
    )  # fmt: skip
    for place, group in enumerate(shown.tolist()):
        mine = np.sort(values[owner == group])
        for column, share in (("middle", 0.5), ("low", 0.1)):
            if len(mine):
                at = np.searchsorted(mine, answers[column][place])
                assert abs(at - share * len(mine)) <= 2
        if len(mine):
            assert errors["middle"][place] < 1
        else:
            assert errors["middle"][place] > 1


def test_what_is_held_does_not_grow_with_the_cells_that_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a small epsilon every row lies near a median; four bytes are kept of each, and the cells of some groups."""
    monkeypatch.setattr("mosha.connect.engines.compiled_path.RANKS_AGAIN_FROM", 1)
    monkeypatch.setattr("mosha.connect.kernels.near_rows.AT_ONCE", 2**13)
    monkeypatch.setattr(rank_choice, "BLOCK", 2**13)
    source = np.random.default_rng()
    rows, groups = 1_000_000, 200
    columns = {"who": np.arange(rows) % 1000, "g": source.integers(0, groups, rows), "x": source.uniform(0, 64, rows)}
    engine = DuckDB(threads=1, compiled_from=1)
    table = protect(engine.frame(pa.table(columns)), unit=mosha.Person("who", at_most=50))
    question = table.group_by("g", keys=range(groups)).median("x", between=(0, 64))
    measurement = question.measurement(Budget(epsilon=0.1))
    measurement.step(None, None, None, mosha.noise.secure())  # kernels and imports
    tracemalloc.start()
    measurement.step(None, None, None, mosha.noise.secure())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * rows  # all cells alone would take 32 bytes each, and more where they are put in order
