"""The compiled kernels give the answers of the SQL plan, number for number, on every kind of question."""

import random
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mosha.connect import (
    Aggregation,
    Clamped,
    NormBound,
    Norms,
    Persons,
    Product,
    Rows,
    Truncate,
    answer,
    col,
    private,
)
from mosha.connect.engines.duckdb import DuckDB

pytest.importorskip("numba")


def people(rows: Any, seed: Any) -> Any:
    """A few busy persons and many quiet ones, with missing and odd values."""
    pick = np.random.default_rng(seed)
    who = np.minimum(pick.zipf(1.3, rows), 400) * 7 - 3
    text = [None if n % 97 == 0 else f"person {n}" for n in who]
    x = pick.normal(5, 30, rows)
    x[pick.integers(0, rows, 5)] = [np.nan, np.inf, -np.inf, 1e300, -0.0]
    wide = pick.choice([-(2**62), 0, 3, 2**62, 2**63 - 1], rows)
    return pa.table(
        {
            "who": pa.array(who, mask=who % 53 == 0),
            "name": pa.array(text),
            "wide": pa.array(np.where(who % 2, who * 2**50, -who * 2**49)),
            "group": pa.array(pick.integers(-4, 6, rows), mask=pick.random(rows) < 0.1),
            "letter": pa.array([None if k == 0 else "ABCDE"[k - 1] for k in pick.integers(0, 6, rows)]),
            "x": pa.array(x),
            "n": pa.array(pick.integers(-9, 60, rows)),
            "far": pa.array(wide),
        }
    )


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    path = tmp_path_factory.mktemp("kernel") / "people.parquet"
    pq.write_table(people(6000, secrets.randbits(60)), path)
    compiled, plain = DuckDB(threads=1, compiled_from=1), DuckDB(threads=1, compiled_from=None)
    return compiled, [engine.file(path) for engine in (compiled, plain)]


X = Clamped(col("x"), (-20, 50), exponent=6)
N = Clamped(col("n"), (0, 40), exponent=0)
FINE = Clamped(col("x"), (-20, 50), exponent=40)
VALUES = {"rows": Rows(), "known": Rows(of=col("x")), "x": X, "n": N, "product": Product(X, N)}
LIMITS = {"rows": 5, "known": 3, "x": 9000, "n": 100, "product": 40_000}
SHARED = {"rows": Rows(), "x": Clamped(col("x"), (-20, 50), exponent=4, center=240)}
KEYS = {
    "no keys": {},
    "integer": {"g": col("group")},
    "far integers": {"g": col("far")},
    "text": {"l": col("letter")},
    "two": {"l": col("letter"), "g": col("group")},
    "real": {"x": col("x").bin(10)},
}
BOUNDS = {
    "order 1": (VALUES, NormBound(1, LIMITS, fraction=7)),  # type: ignore[arg-type]
    "order 2": (VALUES, NormBound(2, LIMITS, fraction=7)),  # type: ignore[arg-type]
    "fine grid, order 1": ({"x": FINE}, NormBound(1, {"x": 2**47 - 5}, fraction=4)),
    "fine grid, order 2": ({"x": FINE}, NormBound(2, {"x": 2**46 - 5}, fraction=5)),
    "shared weight, order 1": (SHARED, NormBound(1, {("rows", "x"): 4}, fraction=10)),
    "shared weight, order 2": (SHARED, NormBound(2, {("rows", "x"): 2}, fraction=10)),
    "persons": ({"rows": Rows(), "p": Persons()}, NormBound(1, {"rows": 9, "p": 2}, fraction=9)),
    "persons, order 2": ({"p": Persons()}, NormBound(2, {"p": 1}, fraction=20)),
}
TRUNCATIONS = [
    {"rows": 3},
    {"groups": 2},
    {"per_group": 2},
    {"groups": 2, "per_group": 3},
    {"groups": 40, "per_group": 3},
    {"groups": 3, "per_group": 100},
    {"groups": 3, "per_group": 2, "rows": 4},
    {"per_group": 1, "rows": 2},
    {},
]


def both(engines: Any, ask: Any, person: str = "who") -> tuple[Any, ...]:
    """The same question on both engines; also whether the kernel answered it."""
    compiled, sources = engines
    answers, used = [], []
    original = compiled._compiled.answer
    compiled._compiled.answer = lambda *args: used.append(original(*args)) or used[-1]
    try:
        answers = [answer(ask(private(source, person=person))) for source in sources]
    finally:
        compiled._compiled.answer = original
    assert used
    return answers[0].to_dict(), answers[1].to_dict(), used[0] is not None


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_norm_bounds_are_the_same_integers(engines: Any, keys: Any, bound: Any) -> None:
    values, rule = BOUNDS[bound]
    compiled, plain, used = both(engines, lambda r: Aggregation(r, KEYS[keys], values, bound=rule))  # type: ignore[arg-type]
    assert used
    assert compiled == plain


@pytest.mark.parametrize("person", ["who", "name", "wide"])
def test_persons_of_any_type_are_told_apart(engines: Any, person: str) -> None:
    values, rule = BOUNDS["order 2"]
    compiled, plain, used = both(engines, lambda r: Aggregation(r, KEYS["two"], values, bound=rule), person)  # type: ignore[arg-type]
    assert used
    assert compiled == plain


@pytest.mark.parametrize("limits", TRUNCATIONS, ids=str)
@pytest.mark.parametrize(
    "values",
    [{"rows": Rows(), "x": X, "known": Rows(of=col("x"))}, {"rows": Rows(), "p": Persons(), "q": Persons()}],
    ids=["rows and x", "rows and persons"],
)
def test_truncation_keeps_the_same_rows(engines: Any, limits: Any, values: Any) -> None:
    """A tie of 32 bits, which is left to SQL, comes with one key in 200,000: with three keys in a row below 1e-15."""
    keys = KEYS[random.choice(["integer", "two", "text"])]
    for _ in range(3):
        bound = Truncate(secrets.token_bytes(16), **limits)
        compiled, plain, used = both(engines, lambda r, bound=bound: Aggregation(r, keys, values, bound=bound))  # type: ignore[arg-type]
        assert compiled == plain
        if used:
            break
    assert used


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("value", [Rows(), Rows(of=col("x")), N, Persons()], ids=["rows", "known", "n", "persons"])
def test_norms_fall_into_the_same_buckets(engines: Any, order: int, value: Any) -> None:
    thresholds = (0, 1, 2, 5, 10, 100, 1000)
    ask = lambda r: Norms(r, KEYS["two"], value=value, order=order, thresholds=thresholds)  # type: ignore[arg-type]
    compiled, plain, used = both(engines, ask)
    assert used
    assert compiled == plain


def test_public_keys_and_filters_go_through_the_kernel(engines: Any) -> None:
    bound = NormBound(1, LIMITS, fraction=3)  # type: ignore[arg-type]
    only = [("A", 1), (None, 2), ("B", None), ("Z", 0)]
    ask = lambda r: Aggregation(r.where(col("n") > 3), KEYS["two"], VALUES, bound=bound, only=only)  # type: ignore[arg-type]
    compiled, plain, used = both(engines, ask)
    assert used
    assert compiled == plain
    assert list(compiled) == only


def test_what_may_leave_64_bits_is_left_to_sql(engines: Any) -> None:
    huge = Clamped(col("x"), (-(2.0**40), 2.0**40), exponent=10)
    ask = lambda r: Aggregation(r, {}, {"r": Rows(), "x": huge}, bound=NormBound(1, {("r", "x"): 2**20}, fraction=30))
    compiled, plain, used = both(engines, ask)
    assert not used
    assert compiled == plain


def test_the_least_integer_as_a_key_is_not_taken_for_a_missing_key(tmp_path: Path) -> None:
    table = pa.table({"who": [1, 2, 3], "g": pa.array([-(2**63), None, 5])})
    pq.write_table(table, tmp_path / "t.parquet")
    source = DuckDB(compiled_from=1).file(tmp_path / "t.parquet")
    question = Aggregation(private(source, person="who"), {"g": col("g")}, {"n": Rows()}, bound=NormBound(2, {"n": 1}))
    assert answer(question).to_dict() == {(-(2**63),): (1,), (None,): (1,), (5,): (1,)}


def test_columns_are_kept_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"who": [1, 2], "g": [1, 1]}), path)
    engine = DuckDB(compiled_from=1)
    relation = private(engine.file(path), person="who")

    def count(limit: Any) -> Any:
        question = Aggregation(relation, {"g": col("g")}, {"n": Rows()}, bound=NormBound(1, {"n": limit}))
        return answer(question).to_dict()

    reads = []
    original = engine._compiled._read
    engine._compiled._read = lambda *args, **named: reads.append(1) or original(*args, **named)
    assert count(1) == count(2) == {(1,): (2,)}
    assert len(reads) == 1
    pq.write_table(pa.table({"who": [1, 2, 3], "g": [1, 1, 1]}), path)
    assert count(1) == {(1,): (3,)}
    assert len(reads) == 2


def test_a_pandas_frame_may_change_and_is_read_again() -> None:
    pandas = pytest.importorskip("pandas")
    engine = DuckDB(compiled_from=1)
    frame = pandas.DataFrame({"who": [1, 2], "g": [1, 1]})
    relation = private(engine.frame(frame), person="who")
    question = Aggregation(relation, {"g": col("g")}, {"n": Rows()}, bound=NormBound(1, {"n": 1}))
    answer(question)
    assert engine._compiled._kept is None


def test_a_dict_of_columns_is_answered_by_kernels_and_in_slices_and_may_change_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its rows are those of its columns: it was taken for a table of as many rows as it has columns."""
    who, g = np.repeat(np.arange(500), 3), np.tile(np.arange(5), 300)
    kernels, plain = DuckDB(compiled_from=1000), DuckDB(compiled_from=None)
    tables = {engine: private(engine.frame({"who": who, "g": g}), person="who") for engine in (kernels, plain)}

    def ask(engine: Any) -> Any:
        bound = NormBound(1, {"n": 1}, fraction=3)
        return answer(Aggregation(tables[engine], {"g": col("g")}, {"n": Rows()}, bound=bound)).to_dict()

    used: list[Any] = []
    run = kernels._compiled.answer
    monkeypatch.setattr(kernels._compiled, "answer", lambda *given: used.append(given[1]) or run(*given))
    first = ask(kernels)
    assert used == [who.size]
    assert first == ask(plain)
    g[:] = 0  # what the caller still holds may change, and nothing of it is kept
    assert kernels._compiled._kept is None
    assert ask(kernels) == ask(plain) != first
    sliced: list[Any] = []
    monkeypatch.setattr("mosha.connect.engines.duckdb.slices_for", lambda _, size, __: sliced.append(size) or 4)
    assert ask(plain) == ask(kernels)
    assert sliced == [who.size]


def test_too_little_memory_leaves_the_question_to_sql(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(people(20_000, 1), path)
    engine = DuckDB(memory_limit="1MB", compiled_from=1)
    question = Aggregation(
        private(engine.file(path), person="who"), {}, {"n": Rows()}, bound=NormBound(2, {"n": 1}, fraction=2)
    )
    assert engine._compiled.answer(question, 20_000, None) is None


def test_a_tie_of_hashes_is_left_to_sql(engines: Any) -> None:
    """With all first bits equal the kernel cannot choose, and says so instead of choosing."""
    from mosha.connect.kernels.truncation_kernels import TIE, truncate

    records = np.array([[5, 0, 7, 1], [5, 1, 7, 1], [5, 2, 7, 1]], dtype=np.int32)
    starts, codes = np.array([0, 3]), np.array([0])
    assert truncate(starts, records, codes, (-1, 2, -1), (3, -1, 3), 3)[2] == TIE
    assert truncate(starts, records, codes, (9, 2, -1), (3, -1, 3), 3)[2] == TIE
    assert truncate(starts, records, codes, (-1, 3, -1), (3, -1, 3), 3)[2] == 0
    same = np.array([[5, 0, 7, 1], [5, 0, 7, 1], [5, 0, 7, 1]], dtype=np.int32)
    sums, _, flag = truncate(starts, same, codes, (2, -1, -1), (3, 3, 3), 1)
    assert (flag, sums.tolist()) == (0, [[14]])


def words_of(rows: Any) -> tuple[Any, ...]:
    """Rows (person, group, hash, value) as the kernel for a few groups takes them."""
    from mosha.connect.kernels.group_kernels import into_words

    persons, groups, hashes, values = (np.array(column) for column in zip(*rows, strict=True))
    columns = persons.astype(np.int32), groups.astype(np.int32), hashes.astype(np.uint32), values.astype(np.int32)
    words, moved = np.empty(len(rows), np.uint64), np.empty(len(rows), np.int32)
    starts = into_words(columns, int(persons.max()) + 1, words, moved)
    return starts, words, moved.reshape(-1, 1)


def test_groups_that_share_the_hash_of_the_last_place_are_left_to_sql() -> None:
    from mosha.connect.kernels.group_kernels import BUSY, TIE, truncate_groups

    codes = np.array([0])
    tied = words_of([(5, 0, 7, 1), (5, 1, 9, 1), (5, 2, 9, 1)])
    assert truncate_groups(*tied, codes, (2, 10), 3)[2] == TIE  # type: ignore[call-arg]
    assert truncate_groups(*tied, codes, (1, 10), 3)[2] == 0  # type: ignore[call-arg]
    assert truncate_groups(*tied, codes, (3, 10), 3)[2] == 0  # type: ignore[call-arg]
    busy = words_of([(5, 0, 7, 1)] * 11)
    assert truncate_groups(*busy, codes, (2, 10), 3)[2] == BUSY  # type: ignore[call-arg]
    assert truncate_groups(*busy, codes, (2, 11), 3)[0].tolist() == [[11, 0, 0]]  # type: ignore[call-arg]


@pytest.mark.parametrize("most", [1, 2, 5, 32])
def test_a_few_groups_are_chosen_as_in_plain_python(most: int) -> None:
    """Persons of several blocks, many with the same group again and again, hashes at both ends."""
    from mosha.connect.kernels.group_kernels import truncate_groups

    pick = random.Random(secrets.randbits(60))
    hashes = pick.sample([0, 2**32 - 1, *(pick.randrange(2**32) for _ in range(60))], 50)
    rows = []
    for person in [0, 4095, 4096, 9000, *pick.sample(range(12_000), 300)]:
        for _ in range(pick.choice([1, 3, 8, 120])):
            group = pick.randrange(50)
            rows.append((person, group, hashes[group], pick.randrange(-99, 99)))
    pick.shuffle(rows)
    chosen: dict[Any, Any] = {}
    for person, group, bits, _ in rows:
        chosen.setdefault(person, set()).add((bits, group))
    kept = {person: {group for _, group in sorted(found)[:most]} for person, found in chosen.items()}
    expected = np.zeros((3, 50), np.int64)
    for person, group, _, value in rows:
        if group in kept[person]:
            expected[0, group] += value
            expected[1, group] += 1
    for groups in kept.values():
        for group in groups:
            expected[2, group] += 1
    sums, present, flag = truncate_groups(*words_of(rows), np.array([0, -1, -2]), (most, 4094), 50)  # type: ignore[call-arg]
    assert flag == 0
    assert (sums == expected).all()
    assert (present == expected[1]).all()
