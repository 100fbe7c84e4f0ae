"""A large table is read several times and none of its rows kept: the same integers, or none where it has changed."""

import random
import secrets
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mosha.connect import Aggregation, Clamped, NormBound, Norms, Persons, Rows, Unbounded, answer, col, private
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.kernels.near_rows import NearRows
from mosha.connect.plan.aggregation import NearRanks
from tests.connect.places import arrow_table
from tests.connect.test_kernel import BOUNDS, KEYS, X, people
from tests.connect.test_near_ranks import BOUNDS as RANK_BOUNDS
from tests.connect.test_near_ranks import NEAR, SCHEMA, ask, define, make_rows
from tests.connect.test_rows_read_again import count_while_replaced

pytest.importorskip("numba")

LIMITS: Any = BOUNDS
LISTED: Any = KEYS

ONE_LEADER = [name for name, (values, bound) in LIMITS.items() if bound.order == 1 and "p" not in values]


@pytest.fixture(autouse=True)
def reading(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every table counts as large; whether readings gave an answer, and how many there were."""
    from mosha.connect.kernels.passes import Passes

    for name in ("AGAIN_FROM", "RANKS_AGAIN_FROM"):
        monkeypatch.setattr(f"mosha.connect.engines.compiled_path.{name}", 1)
    read: list[Any] = []
    original = Passes.answer

    def follow(self: Any) -> Any:
        readings = []
        for name in ("first", "again"):
            inner = getattr(self, name)
            object.__setattr__(self, name, lambda inner=inner, name=name: readings.append(name) or inner())
        found = original(self)
        read.append((found is not None, len(readings)))
        return found

    monkeypatch.setattr(Passes, "answer", follow)
    return read


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    path = tmp_path_factory.mktemp("passes") / "people.parquet"
    pq.write_table(people(6000, secrets.randbits(60)), path)
    return DuckDB(threads=1, compiled_from=1).file(path), DuckDB(threads=1, compiled_from=None).file(path)


def both(sources: Any, make: Any, person: str) -> Any:
    found, expected = (answer(make(private(source, person=person))).to_dict() for source in sources)
    assert found == expected


@pytest.mark.parametrize("bound", ONE_LEADER)
@pytest.mark.parametrize("keys", KEYS)
def test_bounded_sums_are_those_of_sql_from_two_readings(sources: Any, keys: Any, bound: Any, reading: Any) -> None:
    values, norm = LIMITS[bound]
    for person in ("who", "name", "wide"):
        both(sources, lambda rows: Aggregation(rows, LISTED[keys], values, bound=norm), person)
    assert reading == [(True, 2)] * 3


@pytest.mark.parametrize("only", [[("A",), ("C",), (None,), ("Q",)], [(k,) for k in range(-2, 9)], [(0,), (2**40,)]])
def test_listed_groups_and_filters_are_those_of_sql(sources: Any, only: Any, reading: Any) -> None:
    keys = {"k": col("letter" if isinstance(only[0][0], str) else "group")}
    values, norm = LIMITS["order 1"]
    ask_all = lambda rows: Aggregation(rows, keys, values, bound=norm, only=only)
    both(sources, ask_all, "who")
    both(sources, lambda rows: ask_all(rows.where(col("n") > 3)), "name")
    assert reading == [(True, 2)] * 2


@pytest.mark.parametrize("value", [Rows(), Rows(of=col("x")), X])
def test_people_are_counted_by_their_norms_in_one_reading(sources: Any, value: Any, reading: Any) -> None:
    marks = (0, 1, 2, 5, 100, 1000, 10**6)
    both(sources, lambda rows: Norms(rows, value=value, order=1, thresholds=marks), "who")
    assert reading == [(True, 1)]


def test_what_needs_pairs_of_person_and_group_is_not_asked_for(sources: Any, reading: Any) -> None:
    for values, bound in (({"n": Rows()}, NormBound(2, {"n": 3})), ({"p": Persons()}, NormBound(1, {"p": 2}))):
        both(sources, lambda rows, v=values, b=bound: Aggregation(rows, {"g": col("group")}, v, bound=b), "who")
    assert reading == []


@pytest.mark.parametrize("only", [None, ["A", None, "Q"], [*"ABCDEFGHIJKLMNOPQRSTUVWXY"]])
@pytest.mark.parametrize("bound", RANK_BOUNDS)
def test_cells_near_ranks_are_those_of_the_definition(
    bound: Any, only: Any, monkeypatch: pytest.MonkeyPatch, reading: Any
) -> None:
    monkeypatch.setattr("mosha.connect.kernels.near_rows.COARSE_BITS", random.choice([0, 2, 5]))
    rows = arrow_table(SCHEMA, make_rows(6000))
    relations = [private(DuckDB(compiled_from=start).frame(rows), person="who") for start in (1, None)]
    expected = define(relations[1], only, RANK_BOUNDS[bound], NEAR)
    reading.clear()
    assert set(ask(relations[0], only, RANK_BOUNDS[bound], NEAR)) == expected
    assert reading == [(True, 3)]


def test_where_most_rows_are_near_a_rank_columns_are_not_kept_either(reading: Any) -> None:
    rows = arrow_table(SCHEMA, make_rows(2000))
    relations = [private(DuckDB(compiled_from=start).frame(rows), person="who") for start in (1, None)]
    wide, only = [(1, 2, 2000 * 256)], ["A", "B"]
    expected = define(relations[1], only, RANK_BOUNDS["people"], wide)
    reading.clear()
    assert set(ask(relations[0], only, RANK_BOUNDS["people"], wide)) == expected
    assert reading == [(True, 3)]


def tell(first: Any, *again: Any, question: Any = None) -> Any:
    """The answer from readings whose rows are (person, group, value), each its own."""
    from mosha.connect.engines.labels import KeyLabels
    from mosha.connect.kernels.columns import choose_columns
    from mosha.connect.kernels.passes import Passes

    frame = pa.table({"who": [1], "g": [1], "x": [1.0]})
    relation = private(DuckDB().frame(frame), person="who")
    limit = NormBound(1, {("n", "s"): 2}, fraction=4)
    value = Clamped(col("x"), (0, 15), exponent=0)
    if question is None:
        question = Aggregation(relation, {"g": col("g")}, {"n": Rows(), "s": value}, bound=limit)
    else:
        near = ((1, 2, 0),)
        question = NearRanks(relation, (("g", col("g")),), cell=value, near=near, bound=NormBound(1, {"rows": 2}, 4))

    def batches(rows: Any) -> Any:
        columns = zip(*rows, strict=True)
        kinds = {"p": np.int64, "g": np.int64, "r0": np.float64}
        return iter(
            [dict(zip(kinds, (np.array(c, k) for c, k in zip(columns, kinds.values(), strict=True)), strict=True))]
        )

    later = iter(again)
    keys = KeyLabels(1, True, {}, ()).keys
    found = Passes(
        question, choose_columns(question), lambda: batches(first), lambda: batches(next(later)), None, keys,
        lambda labels: False, 100, 10**9,
    ).answer()  # fmt: skip
    if isinstance(found, NearRows):
        found = found.join()
    return None if found is None else found.to_dict()


ROWS = [(1, 7, 3.0), (1, 7, 4.0), (1, 8, 5.0), (2, 8, 6.0)]


def test_the_answer_is_that_of_the_last_reading() -> None:
    weight = 2 * 16 // 3
    assert tell(ROWS, ROWS) == {(7,): (2 * weight, 32 * 3 // 3 + 32 * 4 // 3), (8,): (weight + 16, 32 * 5 // 3 + 96)}
    others = [(1, 8, 1.0), (2, 7, 2.0), (1, 8, 1.0), (1, 8, 1.0)]
    assert tell(ROWS, others) == {(7,): (16, 32), (8,): (3 * weight, 3 * (32 // 3))}


def test_a_group_without_rows_in_the_last_reading_is_none() -> None:
    found = tell(ROWS, [(1, 8, 1.0), (2, 8, 2.0), (1, 8, 1.0), (1, 8, 1.0)])
    assert found is not None
    assert set(found) == {(8,)}


@pytest.mark.parametrize(
    "changed",
    [
        [*ROWS, (1, 7, 0.0)],
        [*ROWS, (3, 7, 0.0)],
        [*ROWS, (10**15, 7, 0.0)],
        ROWS[1:],
        [*ROWS[:3], (2, 9, 6.0)],
        [*ROWS[:3], (1, 8, 6.0)],
        ROWS * 1000,
    ],
)
def test_there_is_no_answer_where_a_person_has_other_rows_in_the_next_reading(changed: Any) -> None:
    assert tell(ROWS, changed) is None
    assert tell(changed, ROWS) is None or changed[-1] == (2, 9, 6.0)
    assert tell(ROWS, ROWS, changed, question="ranks") is None
    assert tell(ROWS, changed, ROWS, question="ranks") is None


def test_ranks_have_no_answer_where_other_cells_came_near() -> None:
    near = [(1, 7, 3.0), (1, 7, 4.0), (2, 7, 5.0)]
    assert tell(near, near, near, question="ranks")
    assert tell(near, near, [(1, 7, 13.0), (1, 7, 14.0), (2, 7, 15.0)], question="ranks") is None


def test_a_total_that_wraps_around_64_bits_is_not_the_one_that_was_counted() -> None:
    """64 rows of 2**58 are 2**64: with the weight of a total of 5 each of them would have counted whole."""
    from mosha.connect.kernels.people import Leader

    for rows, unchanged in (([5], True), ([*[2**58] * 64, 5], False), ([2**58] * 64, False), ([2, 2], False)):
        leader = Leader(0, np.array([5]), None, np.zeros(1, np.int64))
        leader.follow(np.zeros(len(rows), np.int32), np.array(rows).reshape(-1, 1))
        assert leader.is_unchanged() is unchanged


def test_a_reading_of_more_rows_than_counts_have_bits_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, answered in ((4, True), (3, False)):
        monkeypatch.setattr("mosha.connect.kernels.passes.MOST_ROWS", most)
        assert (tell(ROWS, ROWS) is not None) is answered
        assert (tell(ROWS, ROWS, ROWS, question="ranks") is not None) is answered
    monkeypatch.setattr("mosha.connect.kernels.passes.MOST_ROWS", 4)
    assert tell(ROWS, [*ROWS, (1, 7, 0.0)]) is None


@pytest.mark.parametrize("least", [1, 2**24], ids=["readings", "columns"])
def test_a_key_that_comes_while_a_question_runs_makes_no_question_fail(
    least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that was not there when keys were listed had no name: a KeyError, and the question stayed paid."""
    from mosha.connect.engines import compiled_path
    from mosha.connect.engines.labels import key_labels

    monkeypatch.setattr(compiled_path, "AGAIN_FROM", least)
    place, exported = tmp_path / "t.parquet", tmp_path / "new"
    wards = ["A", "B"] * 500
    pq.write_table(pa.table({"who": [*range(1000)], "ward": wards}), place)
    pq.write_table(pa.table({"who": [*range(1001)], "ward": [*wards, "C"]}), exported)
    table = private(DuckDB(threads=1, compiled_from=1).file(place), person="who")

    def list_then_export(*given: Any) -> Any:
        found = key_labels(*given)
        exported.replace(place)
        return found

    monkeypatch.setattr(compiled_path, "key_labels", list_then_export)
    question = Aggregation(table, {"ward": col("ward")}, {"n": Rows()}, bound=NormBound(1, {"n": 1}, fraction=0))
    assert answer(question).to_dict() == {("A",): (500,), ("B",): (500,), ("C",): (1,)}


def test_nobody_exceeds_the_limit_where_a_file_is_replaced_between_two_readings(tmp_path: Path, reading: Any) -> None:
    assert count_while_replaced(tmp_path, DuckDB(threads=1, compiled_from=1), 300_000) <= 2 << 4
    assert reading


def test_what_two_readings_draw_differently_is_left_to_sql(tmp_path: Path, reading: Any) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE worked (who INT, luck DOUBLE GENERATED ALWAYS AS (random()))")
        connection.execute("INSERT INTO worked SELECT 1 FROM range(1000)")
    table = private(DuckDB(compiled_from=1).database(tmp_path / "t.duckdb", "worked"), person="who")
    rows = table.where(col("luck") < 0.5)
    question = Aggregation(rows, {}, {"rows": Rows()}, bound=NormBound(1, {"rows": 500}, fraction=4))
    for _ in range(6):
        [(count,)] = answer(question).to_dict().values()
        assert count <= 500 << 4
    assert not all(answered for answered, _ in reading)  # 1,000 coins fall alike twice once in 40 times


def test_people_that_do_not_fit_the_memory_are_left_to_sql(tmp_path: Path, reading: Any) -> None:
    who = np.arange(50_000) * 10**12
    pq.write_table(pa.table({"who": np.repeat(who, 2)}), tmp_path / "t.parquet")
    question = lambda engine: Aggregation(
        private(engine.file(tmp_path / "t.parquet"), person="who"), {}, {"n": Rows()}, bound=NormBound(1, {"n": 1}, 2)
    )
    narrow = DuckDB(memory_limit="8MB", threads=1, compiled_from=1)
    assert narrow._compiled.answer(question(narrow), 100_000, None) is None
    assert reading == [(False, 1)]
    assert answer(question(DuckDB(compiled_from=1))).to_dict() == {(): (50_000 * 4,)}
    assert reading[1:] == [(True, 2)]


def test_labels_that_spread_and_jump_are_told_apart() -> None:
    """A window that grows to both sides, then labels too far apart for any window."""
    from mosha.connect.kernels.people import People

    pick = np.random.default_rng()
    near, wide = pick.integers(-3000, 5000, 4000), pick.choice([-(2**63), 2**63 - 1, 0, 10**17], 100)
    for labels in (near, np.concatenate([near, wide])):
        found = People([], len(labels), 10**9)
        for batch in np.array_split(labels, 7):
            found.add(batch, None, None)
        _, counts = np.unique(labels, return_counts=True)
        assert sorted(found.totals(-1).tolist()) == sorted(counts.tolist())
        assert found.most_rows == counts.max()
        leader = found.lead(-1)
        places = found.find(labels)
        assert places is not None
        exact = dict(zip(*np.unique(labels, return_counts=True), strict=True))
        assert leader.totals[leader.follow(places, places)].tolist() == [exact[label] for label in labels]
        assert leader.is_unchanged()


@pytest.mark.parametrize("kind", ["sums", "ranks"])
def test_memory_does_not_grow_with_the_rows(kind: str, tmp_path: Path, reading: Any) -> None:
    """Four times the rows of the same people: what Python and NumPy hold stays as it is."""
    peaks, pick = [], np.random.default_rng()
    for rows in (400_000, 400_000, 1_600_000):  # the first one loads the kernels
        path = tmp_path / f"{rows}.parquet"
        columns = {"who": pick.integers(0, 3000, rows), "g": pick.integers(0, 8, rows), "x": pick.uniform(0, 50, rows)}
        pq.write_table(pa.table(columns), path)
        relation = private(DuckDB(threads=1, compiled_from=1).file(path), person="who")
        value: Any = Clamped(col("x"), (0, 50), exponent=13)
        if kind == "sums":
            question: Any = Aggregation(
                relation, {"g": col("g")}, {"n": Rows(), "x": value}, bound=NormBound(1, {("n", "x"): 9}, 3)
            )
        else:
            question = NearRanks(relation, (("g", col("g")),), cell=value, near=((1, 2, 99),), bound=Unbounded())
        tracemalloc.start()
        answer(question)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert all(answered for answered, _ in reading)
    assert peaks[2] < 1.5 * peaks[1]
