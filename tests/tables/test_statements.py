"""How many statements read the data for one release: as the documentation says, on every road through SQL."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.engines.duckdb import DuckDB
from mosha.tables import Budget, protect, quantile

LIMITED, FREE = mosha.Person("who", at_most=3), mosha.Person("who")
RANGE: dict[str, Any] = {"between": (0, 100)}
QUESTIONS = {
    "count": (LIMITED, lambda g: g.count(), 1),
    "sum": (LIMITED, lambda g: g.sum("x", **RANGE), 1),
    "mean": (LIMITED, lambda g: g.mean("x", **RANGE), 1),
    "count, sum, mean and variance": (
        LIMITED,
        lambda g: g.aggregate(
            n=mosha.tables.count(),
            s=mosha.tables.sum("x", **RANGE),
            m=mosha.tables.mean("x", **RANGE),
            v=mosha.tables.variance("x", **RANGE),
        ),
        1,
    ),
    "mean beside a median": (
        LIMITED, lambda g: g.aggregate(m=mosha.tables.mean("x", **RANGE), q=mosha.tables.median("x", **RANGE)), 2,
    ),
    "median": (LIMITED, lambda g: g.median("x", **RANGE), 1),
    "median of rows": (mosha.Row(), lambda g: g.median("x", **RANGE), 1),
    "seven quantiles": (
        LIMITED, lambda g: g.aggregate(**{f"q{i}": quantile("x", i / 8, **RANGE) for i in range(1, 8)}), 1,
    ),
    "median with bars in values": (LIMITED, lambda g: g.median("x", bars="values", **RANGE), 1),
    "mean, limit bought": (FREE, lambda g: g.mean("x", **RANGE), 2),
    "median, limit bought": (FREE, lambda g: g.median("x", **RANGE), 2),
    "mean, limit and range bought": (FREE, lambda g: g.mean("x", between="automatic"), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_reads_the_data_as_often_as_it_is_said(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unit, ask, expected = QUESTIONS[name]
    pick = np.random.default_rng()
    table = pa.table({"who": pick.integers(0, 99, 500), "g": pick.integers(0, 4, 500), "x": pick.uniform(0, 100, 500)})
    engine = DuckDB(compiled_from=None)
    question = ask(protect(engine.frame(table), unit=unit).group_by("g", keys=range(4)))
    original, statements = engine.run, []

    def run(found: Any, asked: Any) -> Any:
        statements.extend(found)
        return original(found, asked)

    monkeypatch.setattr(engine, "run", run)
    question.measurement(Budget(epsilon=1)).step(None, None, None, mosha.noise.secure())
    assert len(statements) == expected
