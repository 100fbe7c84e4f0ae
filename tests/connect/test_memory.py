"""More rows and more groups than the memory holds: an answer, or a refusal in one sentence."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect import Aggregation, Clamped, Distinct, NormBound, Rows, Truncate, Unbounded, answer, col, private
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.errors import DataError

ROWS, CELLS, LIMIT = 6_000_000, 3, 14
VALUES = {"n": Rows(), "s": Clamped(col("v"), (0, 100), exponent=4)}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three columns of eight bytes: ten times what the engine may use."""
    assert ROWS * CELLS * 8 >= 10 * LIMIT * 10**6
    path = tmp_path_factory.mktemp("large") / "t.parquet"
    columns = "(hash(i * 7) % 400000)::BIGINT AS u, i % 100 AS g, (i % 50)::DOUBLE AS v"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({ROWS}) t(i)) TO '{path}' (FORMAT parquet)")
    return path


def asked(engine: Any, path: Any, bound: Any) -> Any:
    return answer(Aggregation(private(engine.file(path), person="u"), {"g": col("g")}, VALUES, bound=bound)).to_dict()


BOUNDS = [
    Unbounded(),
    NormBound(1, {("n", "s"): 5}, 4),
    NormBound(2, {("n", "s"): 3}, 4),
    Truncate(bytes(16), groups=3, per_group=2),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=["rows", "order 1", "order 2", "truncation"])
def test_a_table_ten_times_the_memory_is_answered(large: Any, tmp_path: Path, bound: Any) -> None:
    narrow = DuckDB(memory_limit=f"{LIMIT}MB", threads=1, spill=tmp_path)
    assert asked(narrow, large, bound) == asked(DuckDB(threads=1), large, bound)


def test_what_cannot_be_sliced_is_answered_or_refused_in_one_sentence(large: Any, tmp_path: Path) -> None:
    """Distinct pairs of every person can outgrow what the engine spills."""
    narrow = DuckDB(memory_limit=f"{LIMIT}MB", threads=1, spill=tmp_path)
    relation = private(narrow.file(large), person="u")
    question = Distinct(relation, {"g": col("g")}, of=col("v"), at_most=3, key=bytes(16))  # type: ignore[arg-type]
    try:
        found = answer(question)
    except DataError as error:
        assert str(error) == "the engine could not finish: too little memory or disk, or the table has changed."  # noqa: PT017
        assert error.__context__ is None  # noqa: PT017
    else:
        assert len(found) == 100


def test_a_million_private_keys_are_looked_at_and_the_rare_ones_stay_hidden() -> None:
    keys = np.arange(1_000_000)
    frame = pa.table({"who": keys, "key": np.where(keys < 5000, 0, keys)})
    person = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("many", unit=person, epsilon=30, delta=1e-6)
    question = mosha.protect(frame, unit=person, account=account).group_by("key").count()
    shown = question.release(epsilon=1, delta=1e-9)
    assert 0 in [row[0] for row in shown.rows]
    assert len(shown) < 10  # each key of one person is shown with a chance below 1e-9: a false alarm of 1e-24
