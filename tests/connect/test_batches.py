"""Groups that nobody listed come some at a time: the same groups, each once, and few of them are held together."""

import datetime as dt
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect import Aggregation, Clamped, Persons, Rows, Schema, Truncate, Type, Unbounded, answer, col, private
from mosha.connect.engines import duckdb, mariadb, postgresql, spark
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.duckdb_fields import arrow_array
from mosha.connect.engines.source import answer_in_batches
from mosha.core.errors import DataError
from mosha.tables import Budget, protect
from mosha.tables.parts import shown_groups

SCHEMA = Schema(
    {
        "who": Type.INTEGER,
        "ward": Type.TEXT,
        "day": Type.DATE,
        "at": Type.TIMESTAMP,
        "ill": Type.BOOLEAN,
        "x": Type.REAL,
    }
)
START = dt.datetime(2024, 2, 29, 12, 30, 0, 5)
ROWS = [
    (
        number % 11,
        None if number % 5 == 0 else f"ward {number % 5}",
        None if number % 7 == 0 else START.date() + dt.timedelta(days=number % 7),
        None if number % 3 == 0 else START + dt.timedelta(hours=number % 3),
        None if number % 4 == 0 else number % 4 == 1,
        None if number % 6 == 0 else number % 6 / 4,
    )
    for number in range(300)
]
VALUES = {"n": Rows(), "s": Clamped(col("x"), (-2, 2), exponent=4)}
KEYS = [["ward"], ["day"], ["at"], ["ill"], ["x"], ["who"], ["ward", "day", "ill"]]
BOUNDS = {"rows": Unbounded(), "groups": Truncate(bytes(16), groups=3, per_group=2)}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (duckdb, mariadb, postgresql, spark):
        monkeypatch.setattr(module, "BATCH", 2)


def collect(question: Any) -> Any:
    batches: list[Any] = []
    answer_in_batches(question, batches.append)
    return batches


@pytest.mark.parametrize("bound", BOUNDS)
def test_batches_hold_every_group_of_the_answer_once(place: Any, bound: Any, small_batches: Any) -> None:
    table = place.load(SCHEMA, ROWS)
    for keys in KEYS:
        relation = private(table, person="who")
        question = Aggregation(relation, {key: col(key) for key in keys}, VALUES, bound=BOUNDS[bound])
        expected = answer(question).to_dict()
        batches = collect(question)
        found = [row for batch in batches for row in batch.rows()]
        assert len(batches) > 1
        assert len(found) == len(expected)
        assert dict(found) == expected


def test_a_table_without_groups_is_one_batch_without_any(place: Any) -> None:
    question = Aggregation(private(place.load(SCHEMA, [])), {"ward": col("ward")}, {"n": Rows()}, bound=Unbounded())
    assert [list(batch.rows()) for batch in collect(question)] == [[]]


def test_what_takes_two_statements_comes_whole(small_batches: Any) -> None:
    from mosha.connect import NormBound, source

    table = source(pa.table({"who": [1, 1, 2], "g": [1, 2, 3]}))
    bound = NormBound(1, {"n": 2, "p": 2}, 4)
    question = Aggregation(private(table, person="who"), {"g": col("g")}, {"n": Rows(), "p": Persons()}, bound=bound)
    (whole,) = collect(question)
    assert whole.to_dict() == answer(question).to_dict()


def test_an_engine_that_runs_out_of_memory_at_once_answers_in_slices_and_later_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mosha.connect.engines.duckdb_plans import OutOfMemory

    table = pa.table({"who": np.arange(100), "g": np.arange(100) % 10})
    engine = DuckDB()
    question = Aggregation(
        private(engine.frame(table), person="who"), {"g": col("g")}, {"n": Rows()}, bound=BOUNDS["groups"]
    )
    part = answer(question)

    def fail(query: Any, asked: Any, use: Any) -> NoReturn:
        raise OutOfMemory("connect.duckdb_unfinished")

    def fail_later(query: Any, asked: Any, use: Any) -> NoReturn:
        use((list(part.keys), list(part.values.values())))
        raise OutOfMemory("connect.duckdb_unfinished")

    monkeypatch.setattr(engine, "run_in_batches", fail)
    (whole,) = collect(question)
    assert whole.to_dict() == part.to_dict()
    monkeypatch.setattr(engine, "run_in_batches", fail_later)
    with pytest.raises(DataError) as failure:
        collect(question)
    assert not isinstance(failure.value, OutOfMemory)
    assert failure.value.__context__ is None


UNITS = {
    "a count by people": (mosha.Person("who", at_most=3), "count"),
    "people of few groups": (mosha.Person("who", groups=2, per_group=1), "mean"),
    "people of many groups": (mosha.Person("who", at_most=9), "mean"),
}


def ask(case: Any, size: Any) -> Any:
    unit, verb = UNITS[case]
    rows = {"who": np.arange(size), "g": np.arange(size) // 3, "x": np.ones(size)}
    rows["g"][: size // 50] = -1
    table = protect(DuckDB(threads=1).frame(pa.table(rows)), unit=unit)
    grouped = table.group_by("g")
    return grouped.count() if verb == "count" else grouped.mean("x", between=(0, 2))


@pytest.mark.parametrize("case", UNITS)
def test_the_memory_of_a_release_does_not_grow_with_the_groups_that_stay_hidden(case: Any) -> None:
    """The memory of Python and NumPy: twice the groups, the same peak."""
    peaks = []
    for size in (300_000, 600_000):
        measurement = ask(case, size).measurement(Budget(epsilon=1, delta=1e-9))
        measurement.step(None, None, None, mosha.noise.secure())
        tracemalloc.start()
        try:
            value, _ = measurement.step(None, None, None, mosha.noise.secure())
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert value["keys"][0] == [-1]
    assert peaks[1] <= 1.4 * peaks[0]


def test_no_more_groups_are_held_than_may_be_shown_and_those_are_the_first_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shown_groups, "MOST_KEYS", 5)
    monkeypatch.setattr(duckdb, "BATCH", 2)
    keys = np.repeat(np.arange(40)[::-1], 500)
    table = pa.table({"who": np.arange(len(keys)), "g": keys})
    question = protect(table, unit=mosha.Person("who", at_most=1)).group_by("g").count()
    value, _ = question.measurement(Budget(epsilon=50, delta=1e-3)).step(None, None, None, mosha.noise.secure())
    assert value["keys"] == [[0], [1], [2], [3], [4]]
    assert np.allclose(value["parts"][0]["channels"][0], 500, atol=5)  # by chance less often than 1e-100


def test_what_is_raised_while_a_batch_is_used_is_no_failure_of_the_engine(place: Any) -> None:
    class Own(Exception):
        """Of whoever asked."""

    def use(totals: Any) -> NoReturn:
        raise Own

    question = Aggregation(private(place.load(SCHEMA, ROWS)), {"ward": col("ward")}, {"n": Rows()}, bound=Unbounded())
    with pytest.raises(Own):
        answer_in_batches(question, use)
    assert sum(len(list(totals.rows())) for totals in collect(question)) == 5  # and the engine goes on


COLUMNS = [
    ("int64", [1, -2, 2**62]), ("int64", []), ("int64", [1, None]), ("int32", [7]), ("uint32", [2**32 - 1]),
    ("uint64", [2**64 - 1]), ("float64", [0.5, float("inf")]), ("float64", [None, 0.5]), ("string", ["a", "岁", ""]),
    ("string", []), ("string", [None, "x"]), ("bool", [True, False]), ("bool", [None, True]), ("date32", [1, 2]),
]  # fmt: skip


def test_columns_are_read_without_pandas_as_arrow_reads_them_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    columns = [pa.array(values, kind) for kind, values in COLUMNS]
    columns += [pa.array(range(9))[4:7], pa.array(["a", "b", "c"])[1:], pa.array([True, False, True])[1:]]
    slow = [arrow_array(column) for column in columns]
    monkeypatch.delitem(sys.modules, "pandas")
    quick = [arrow_array(column) for column in columns]
    for one, other in zip(quick, slow, strict=True):
        assert (one.dtype, type(one)) == (other.dtype, type(other))
        assert one.tolist() == other.tolist()


COLD = """
import sys
from mosha.cli import main
code = main(sys.argv[1:])
assert not {"pandas", "numba", "torch"} & set(sys.modules)
sys.exit(code)
"""


def test_a_first_question_about_groups_that_nobody_listed_loads_no_pandas(tmp_path: Path) -> None:
    data = tmp_path / "visits.csv"
    data.write_text("who,ward\n" + "".join(f"{who},{'ab'[who % 2]}\n" for who in range(400)))
    asked = ["query", str(data), "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--unit", "who"]
    words = [sys.executable, "-c", COLD, *asked, "--at-most", "1", "--epsilon", "1", "--delta", "1e-7", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
