"""Deadlines: they strike wherever an engine is just then, and nobody else."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mosha.connect import Aggregation, NormBound, Rows, Unbounded, answer, private, source
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.postgresql import PostgreSQL
from mosha.connect.engines.source import stop_at, stopping
from mosha.connect.sql.norms import queries
from mosha.core.errors import DeadlineExceeded


def test_a_deadline_strikes_again_where_it_has_met_nothing_to_break_off() -> None:
    """Between two statements, or while one is planned, an engine has nothing to cancel: the next one ran to its end."""
    strikes, enough = [], threading.Event()  # type: ignore[var-annotated]

    def interrupt() -> None:
        strikes.append(None)
        if len(strikes) == 3:
            enough.set()

    with stop_at(0.01), stopping(interrupt) as struck:
        assert enough.wait(60)
        assert struck()


def test_a_deadline_strikes_nobody_once_the_question_is_over() -> None:
    """A strike that is on its way when the answer comes would break off the next question on the same connection."""
    begun, striking = threading.Event(), []  # type: ignore[var-annotated]

    def interrupt() -> None:
        striking.append(None)
        begun.set()
        time.sleep(0.1)
        striking.pop()

    with stop_at(0.01), stopping(interrupt):
        assert begun.wait(60)
    assert not striking
    with stop_at(60), stopping(interrupt) as struck:
        pass
    assert not struck()
    assert not striking


def test_a_deadline_breaks_off_compiled_kernels_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a million rows and more are read in batches, which no deadline ended."""
    pytest.importorskip("numba")
    engine = DuckDB(compiled_from=1, threads=2)
    rows = pa.table({"id": np.arange(200_000) % 1000, "ward": np.arange(200_000) % 7})
    visits = private(source(rows, engine=engine), person="id")
    question = Aggregation(visits, {}, {"rows": Rows()}, bound=NormBound(1, {"rows": 500}))
    read = engine._compiled._batches

    def stall(statement: Any) -> Iterator[Any]:
        for batch in read(statement):
            time.sleep(0.3)
            yield batch

    monkeypatch.setattr(engine._compiled, "_batches", stall)
    with stop_at(0.2), pytest.raises(DeadlineExceeded) as told:
        answer(question)
    assert told.value.__cause__ is told.value.__context__ is None
    monkeypatch.undo()
    assert answer(question).to_dict() == {(): (200_000,)}
    assert engine._connection.execute("SELECT current_setting('threads')").fetchall() == [(2,)]


class _Cursor:
    """Takes a while for each statement, and keeps them all."""

    def __init__(self) -> None:
        self.said = []  # type: ignore[var-annotated]

    def execute(self, statement: Any) -> Any:
        self.said.append(statement)
        time.sleep(0.05)
        return self

    def fetchall(self) -> list[Any]:
        return []


def test_all_statements_of_a_question_share_one_deadline_on_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server counts for each statement anew: with three of them a deadline was three times as long."""
    cursor, engine = _Cursor(), PostgreSQL("postgresql://nowhere")
    monkeypatch.setattr(engine, "_in_snapshot", lambda work, **_: work(cursor))
    visits = private(source(pa.table({"id": [1]}), engine=DuckDB()))
    question = Aggregation(visits, {}, {"rows": Rows()}, bound=Unbounded())
    found = queries(question, engine.dialect) * 3
    with stop_at(60):
        engine.analyze(found, question)
        engine.run(found, question)
    limits = [int(text.split()[-1]) for text in cursor.said if "statement_timeout" in str(text)]
    assert len(limits) == 6
    assert all(later < earlier for earlier, later in itertools.pairwise(limits))
