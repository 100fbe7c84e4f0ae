"""What can be opened and what its columns mean; what cannot is refused in a sentence that holds no data."""

import datetime as dt
import gzip
import random
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from mosha.connect import Aggregation, Clamped, Rows, Type, Unbounded, answer, col, private, source, when
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.errors import DataError, Interrupted, InvalidParameter, SourceUnavailable


def rows(opened: Any, *names: Any) -> list[Any]:
    """The rows of a source, as keys of a count."""
    keys = {name: col(name) for name in names or opened.schema}
    found = answer(Aggregation(private(opened), keys, {"n": Rows()}, bound=Unbounded()))
    return sorted((key for key, (n,) in found.rows() for _ in range(n)), key=repr)


def refused(kind: Any, *data: Any, **options: Any) -> str:
    """The error's sentence; nothing of the engine's own words may hang on it."""
    with pytest.raises(kind) as caught:
        source(*data, **options)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return str(caught.value)


TABLE = pa.table({"who": [1, 2, None], "ward": ["A", None, "B"], "x": [1.5, float("nan"), -2.0]})


@pytest.mark.parametrize("first", ["whole.parquet", "real.parquet"])
def test_columns_in_which_the_files_of_a_folder_differ_cannot_be_used(tmp_path: Path, first: str) -> None:
    # DuckDB would read both files with the types of the first one: the persons 1 and 1.4 would be one person.
    second = {"whole.parquet": "real.parquet", "real.parquet": "whole.parquet"}[first]
    same = {"ward": ["A"], "pair": [{"who": 1.5}]}
    tables = {
        "whole.parquet": pa.table({"pair": same["pair"], "who": [1], "ward": ["A"], "extra": [1]}),
        "real.parquet": pa.table({**same, "who": [1.4]}),
    }
    pq.write_table(tables[first], tmp_path / "a.parquet")
    pq.write_table(tables[second], tmp_path / "b.parquet")
    opened = source(tmp_path)
    assert set(opened.schema) == {"ward"}
    assert {"who", "extra"} & set(opened.skipped) == {"who"} | ({"extra"} if first == "whole.parquet" else set())
    assert rows(opened, "ward") == [("A",), ("A",)]
    with pytest.raises(DataError, match="not the same type in every row or file"):
        opened.schema["who"]


def test_a_nested_column_of_the_same_name_does_not_hide_that_files_differ(tmp_path: Path) -> None:
    whole = pa.table({"pair": [{"who": "1"}], "who": [1], "n": [1]})
    words = pa.table({"who": ["01"], "pair": [{"who": 1}], "n": [1]})
    pq.write_table(whole, tmp_path / "a.parquet")
    pq.write_table(words, tmp_path / "b.parquet")
    assert set(source(tmp_path).schema) == {"n"}
    (tmp_path / "b.parquet").unlink()
    pq.write_table(whole, tmp_path / "c.parquet")
    assert set(source(tmp_path).schema) == {"who", "n"}


def test_files_of_a_folder_may_order_their_columns_as_they_like(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": [1], "ward": ["A"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"ward": ["B"], "who": [2]}), tmp_path / "b.parquet")
    assert rows(source(tmp_path / "*.parquet"), "who", "ward") == [(1, "A"), (2, "B")]


def test_the_name_of_a_folder_may_tell_a_column(tmp_path: Path) -> None:
    for ward in "AB":
        (tmp_path / f"ward={ward}").mkdir()
        pq.write_table(pa.table({"who": [1]}), tmp_path / f"ward={ward}" / "part.parquet")
    assert rows(source(tmp_path), "who", "ward") == [(1, "A"), (1, "B")]


EXPECTED = sorted([(1, "A", 1.5), (2, None, None), (None, "B", -2.0)], key=repr)


def test_files_and_frames_give_the_same_rows(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 1), tmp_path / "parts" / "a.parquet")
    pq.write_table(TABLE.slice(1, 2), tmp_path / "parts" / "deep" / "b.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.register("frame", TABLE)
        database.execute("CREATE TABLE visits AS SELECT * FROM frame")
        database.execute("CREATE SCHEMA other")
        database.execute("CREATE VIEW other.seen AS SELECT * FROM main.visits")
    opened = [
        source(tmp_path / "t.parquet"),
        source(str(tmp_path / "parts")),
        source(str(tmp_path / "parts" / "**" / "*.parquet")),
        source(tmp_path / "t.duckdb", table="visits"),
        source(tmp_path / "t.duckdb", table="other.seen"),
        source(TABLE),
        source(ds.dataset(tmp_path / "t.parquet")),
        source(TABLE.to_pandas()),
        source(pl.from_arrow(TABLE)),
        source(pl.from_arrow(TABLE).lazy()),  # type: ignore[union-attr]
    ]
    for one in opened:
        seen = [tuple(None if cell is None else cell for cell in row) for row in rows(one)]
        assert seen == EXPECTED, one


def test_a_pandas_column_of_integers_with_gaps_stays_whole() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "c": pd.Categorical(["u", None])})
    assert rows(source(frame)) == [(1, "u"), (None, None)]


def test_columns_of_every_kind_have_one_of_seven_types() -> None:
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    table = pa.table(
        {
            "small": pa.array([5], pa.int8()),
            "unsigned": pa.array([2**64 - 1], pa.uint64()),
            "single": pa.array([0.5], pa.float32()),
            "money": pa.array([Decimal("12.34")], pa.decimal128(12, 2)),
            "long_money": pa.array([Decimal("1234567890123456.7")], pa.decimal128(30, 1)),
            "whole_money": pa.array([Decimal(7)], pa.decimal128(30, 0)),
            "huge_money": pa.array([Decimal(10**25)], pa.decimal128(30, 0)),
            "coded": pa.array(["x"]).dictionary_encode(),
            "large": pa.array(["y"], pa.large_string()),
            "day": pa.array([dt.date(2024, 2, 29)], pa.date64()),
            "nano": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")),
            "zoned": pa.array([moment], pa.timestamp("s", tz="Asia/Shanghai")),
            "flag": pa.array([True]),
            "list": pa.array([[1]]),
            "bytes": pa.array([b"x"]),
        }
    )
    opened = source(table)
    assert opened.skipped == ("list", "bytes")
    assert dict(opened.schema) == {
        **dict.fromkeys(["small", "unsigned", "whole_money", "huge_money"], Type.INTEGER),
        **dict.fromkeys(["single", "money", "long_money"], Type.REAL),
        **dict.fromkeys(["coded", "large"], Type.TEXT),
        "day": Type.DATE,
        "nano": Type.TIMESTAMP,
        "zoned": Type.INSTANT,
        "flag": Type.BOOLEAN,
    }
    clock = dt.datetime(2023, 11, 14, 22, 13, 20, 123457)  # to the nearest microsecond
    expected = (5, None, 0.5, 12.34, 1234567890123456.7, 7, None, "x", "y", dt.date(2024, 2, 29))
    assert rows(opened) == [(*expected, clock, dt.datetime(2024, 1, 1, 12), True)]
    with pytest.raises(DataError, match="type that no expression can use"):
        private(opened).where(col("list") == 1)


def test_infinite_and_ancient_dates_are_missing() -> None:
    engine = DuckDB()
    engine._connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('infinity'::DATE), ('0044-03-15 (BC)'::DATE)) v(d)"
    )
    engine._connection.execute("CREATE TABLE u AS SELECT 'infinity'::TIMESTAMP w, 'infinity'::TIMESTAMPTZ z")
    frames = [engine._connection.sql(f"SELECT * FROM {name}") for name in "tu"]
    from sqlglot import exp

    from mosha.connect.engines.duckdb import LocalSource
    from mosha.connect.engines.duckdb_fields import field_of

    for frame, name in zip(frames, "tu", strict=True):
        fields = tuple(field_of(column, str(kind)) for column, kind in zip(frame.columns, frame.types, strict=True))
        opened = LocalSource(engine, fields, (), exp.Table(this=exp.to_identifier(name)).copy)
        assert {cell for row in rows(opened) for cell in row} == {None}


def test_a_nan_counts_as_missing_although_the_file_does_not_count_it(tmp_path: Path) -> None:
    """Parquet leaves NaN out of a column's least and largest value, and DuckDB concludes that all rows lie between."""
    pq.write_table(pa.table({"x": [1.5, float("nan"), -2.0], "y": [2.0, 1.0, float("nan")]}), tmp_path / "t.parquet")
    relation = private(source(tmp_path / "t.parquet"))
    x, y = col("x"), col("y")
    values = {"x": Clamped(x, (-10, 10), exponent=1), "xy": Clamped(x + y, (-9, 9), exponent=1), "n": Rows(of=x)}
    assert answer(Aggregation(relation, {}, values, bound=Unbounded())).to_dict() == {(): (-1, 7, 2)}
    for kept, predicate in ((2, x <= 5), (0, ~(x <= 5)), (1, x.is_null()), (2, x.clamp(-1, 1) >= -1), (1, (x * y) > 0)):
        question = Aggregation(relation.where(predicate), {}, {"n": Rows()}, bound=Unbounded())
        assert answer(question).to_dict() == {(): (kept,)}


CELLS = [("1", "A", "1.5"), ("2", None, "nan"), (None, "B", "-2.0")]


def test_a_csv_file_has_text_in_every_cell_whatever_its_wrapping(tmp_path: Path) -> None:
    text = "who,ward,x\n1,A,1.5\n2,,nan\n,B,-2.0\n"
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "marked.csv").write_text("\ufeff" + text)
    (tmp_path / "t.tsv").write_text(text.replace(",", "\t"))
    (tmp_path / "t.txt").write_text(text.replace(",", ";"))
    (tmp_path / "quoted.csv").write_text('"who","ward","x"\n"1","A","1.5"\n"2",,nan\n,B,-2.0\n')
    with gzip.open(tmp_path / "z.csv.gz", "wt") as packed:
        packed.write(text)
    with pa.output_stream(str(tmp_path / "z.csv.zst"), compression="zstd") as packed:
        packed.write(text.encode())
    names = ("t.csv", "marked.csv", "t.tsv", "quoted.csv", "z.csv.gz", "z.csv.zst")
    opened = [source(tmp_path / name) for name in names]
    opened.append(source(tmp_path / "t.txt", separator=";"))
    for one in opened:
        assert dict(one.schema) == dict.fromkeys(("who", "ward", "x"), Type.TEXT)
        assert one.schema.loose == {"who", "ward", "x"}
        assert sorted(rows(one), key=str) == sorted(CELLS, key=str)


@pytest.mark.parametrize("separator", ["|", "^", ".", "$", "*", "]", "\\", " ", "¦", "→", "é", "\uff0c"])
def test_any_character_can_separate(tmp_path: Path, separator: str) -> None:
    (tmp_path / "t.csv").write_text(f'a{separator}b\n1{separator}2\n"3{separator}4"{separator}5\n', encoding="utf-8")
    assert rows(source(tmp_path / "t.csv", separator=separator)) == [("1", "2"), (f"3{separator}4", "5")]


def test_a_line_ends_at_a_line_feed_or_a_carriage_return(tmp_path: Path) -> None:
    """As the documentation says: cells that hold them need `multiline`."""
    (tmp_path / "t.csv").write_bytes(b'a,b\n1,"x\r2,3"\n4,5\r\n')
    assert sorted(a for a, _ in rows(source(tmp_path / "t.csv"))) == ["1", "2", "4"]
    assert ("1", "x\r2,3") in rows(source(tmp_path / "t.csv", multiline=True))


def test_no_row_of_a_csv_changes_the_meaning_of_another(tmp_path: Path) -> None:
    """Types, separator and header come from the question and the first line: a row more changes one row."""
    plain = [f"{k},2024-01-{k % 28 + 1:02d},{k}.5" for k in range(300)]
    odd = [
        "many,someday,none",
        "7",
        "",
        ";;;",
        "8;2024-01-01;2",
        "8,2024-01-01,2,extra,cells",
        '9,"2024-01-01,1',
        '"',
        '9,2024-01-01,"',
        '9,"2024-01-01"",1',
        '"9"9,2024-01-01,1',
        "9,2024-01-01,\x1f1",
        "1e400,0000-00-00,inf",
        "NULL,NaN,1_000",
        "9" * 40 + ",9999-99-99,0x10",
    ]
    values = {
        "all": Rows(),
        "n": Clamped(col("n"), (0, 1000), exponent=0),
        "days": Clamped(col("d").day(), (0, 31), exponent=0),
        "late": Clamped(when(col("d") > dt.date(2024, 1, 15), 1).else_(0), (0, 1), exponent=0),
        "x": Clamped(col("x") * 2 + col("n"), (0, 10_000), exponent=0),
        "known": Rows(of=col("x").coalesce(0)),
    }

    def sums(lines: Any) -> Any:
        (tmp_path / "t.csv").write_text("n,d,x\n" + "\n".join(lines) + "\n")
        question = Aggregation(private(source(tmp_path / "t.csv")), {}, values, bound=Unbounded())
        return np.array(answer(question).to_dict()[()])

    before = sums(plain)
    assert before[:3].tolist() == [300, sum(range(300)), sum(k % 28 + 1 for k in range(300))]
    for line in odd:
        for place in (0, 150, 300):
            moved = sums([*plain[:place], line, *plain[place:]]) - before
            assert moved[0] in {0, 1}
            assert (abs(moved) <= [1, 1000, 31, 1, 10_000, 1]).all(), line


BYTES = [b"a", b"1", b",", b'"', b'""', b" ", b"\t", b"\\", b"'", b"\x00", b"\x1f", b"\xff", b"\xc3", b"\xc3\xa9"]
BYTES += [
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
    b"#",
    b";",
    b"|",
    b"NULL",
    b"\x1a",
    b"\xef\xbb\xbf",
    b"\x0b",
    b"\xe2\x80\xa8",
    b"?",
]


def test_any_bytes_in_a_line_are_that_record_alone(tmp_path: Path) -> None:
    """One line more, whatever is in it and wherever it stands, is one record more or none."""

    def draw_line() -> Any:
        return b"".join(random.choices(BYTES, k=random.randrange(25)))

    def count(lines: Any, end: Any) -> Any:
        (tmp_path / "t.csv").write_bytes(b"\n".join([b"id,ward,days", *lines]) + end)
        return Counter(rows(source(tmp_path / "t.csv")))

    for _ in range(12):
        lines = [random.choice([draw_line(), b"%d,x,%d" % (n, n)]) for n in range(random.choice([1, 3, 20]))]
        place, end = random.randrange(len(lines) + 1), random.choice([b"", b"\n"])
        before, after = count(lines, end), count([*lines[:place], draw_line(), *lines[place:]], end)
        assert not before - after
        assert (after - before).total() <= 1


def test_an_open_quote_ends_with_its_line(tmp_path: Path) -> None:
    """Neighbors: one person's line with an open quote changes that record alone, unless cells may hold line breaks."""
    lines = ["1,A,1", "2,B,1", '3,"C, or ""D""",1', "4,E,1"]
    path = tmp_path / "t.csv"

    def cells(found: Any, **options: Any) -> Any:
        path.write_text("who,ward,x\n" + "\n".join(found) + "\n")
        return rows(source(path, **options))

    before = cells(lines)
    assert sorted(before) == [("1", "A", "1"), ("2", "B", "1"), ("3", 'C, or "D"', "1"), ("4", "E", "1")]
    for place in range(5):
        after = cells([*lines[:place], '5,"F,1', *lines[place:]])
        assert sorted(after) == sorted([*before, ("5", '"F', "1")])
    assert len(cells(['5,"F,1', *lines], multiline=True)) < len(before)  # what saying it costs
    assert ("5", "F\nG", "1") in cells(['5,"F', 'G",1', *lines], multiline=True)
    assert "for CSV files" in refused(InvalidParameter, TABLE, multiline=True)
    (tmp_path / "t.parquet").touch()
    assert "for CSV files" in refused(InvalidParameter, tmp_path / "t.parquet", multiline=True)


def test_the_first_line_of_a_csv_names_every_column_once(tmp_path: Path) -> None:
    for head in ("a,b,a", "a,,b", "a,A"):
        (tmp_path / "t.csv").write_text(f"{head}\n1,2,3\n")
        assert "must name every column" in refused(DataError, tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a\n1\n")
    for separator in ("", ";;", '"', "\n", 5):
        assert "one character" in refused(InvalidParameter, tmp_path / "t.csv", separator=separator)
    assert "for CSV files" in refused(InvalidParameter, TABLE, separator=";")
    (tmp_path / "t.parquet").touch()
    assert "for CSV files" in refused(InvalidParameter, tmp_path / "t.parquet", separator=";")


def test_a_row_that_is_no_text_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"name,n\nANNA,1\n" + "SECRÉT,2\n".encode("latin-1") + b"BERTA,4\n")
    relation = private(source(tmp_path / "t.csv"))
    values = {"n": Clamped(col("n"), (0, 9), exponent=0)}
    found = answer(Aggregation(relation, {"name": col("name")}, values, bound=Unbounded())).to_dict()
    assert found == {("ANNA",): (1,), ("BERTA",): (4,)}
    [(total,)] = answer(Aggregation(relation, {}, values, bound=Unbounded())).to_dict().values()
    assert total in {5, 7}  # a cell that nobody asks for may be anything


def test_what_is_absent_or_broken_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(TABLE, whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "text.parquet").write_text("who,ward\n1,SECRET\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "latin.csv").write_bytes("SECRÉT\n1\n".encode("latin-1"))
    (tmp_path / "junk.duckdb").write_bytes(b"SECRET" * 2000)
    for name in ("cut.parquet", "text.parquet", "absent.parquet", "absent.csv", "empty.csv", "latin.csv", "*.pq"):
        sentence = refused(DataError, tmp_path / name)
        assert name in sentence
        assert "SECR" not in sentence
    assert "not a DuckDB database" in refused(DataError, tmp_path / "junk.duckdb", table="t")
    assert "there is no file or folder" in refused(DataError, tmp_path / "absent.duckdb", table="t")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
    assert "no table 'u'" in refused(DataError, tmp_path / "d.duckdb", table="u")
    assert "needs table=" in refused(InvalidParameter, tmp_path / "d.duckdb")
    assert "goes with a database" in refused(InvalidParameter, whole, table="t")
    assert "goes with a database" in refused(InvalidParameter, TABLE, table="t")
    for nothing in (None, 5, [1], object()):
        assert "not a table that Mosha can read" in refused(DataError, nothing)
    assert "must be a list of values" in refused(DataError, {"a": 1})  # a dict of columns is a table
    assert "only postgresql://, mariadb:// and sc://" in refused(InvalidParameter, "s3://bucket/key.parquet")


def test_a_parquet_file_that_breaks_after_it_was_opened_fails_without_a_word_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["SECRET"] * 10_000}), path, compression=None, use_dictionary=False)
    opened = source(path)
    broken = bytearray(path.read_bytes())
    broken[100:60_000] = b"\xff" * (60_000 - 100)
    path.write_bytes(broken)
    with pytest.raises(DataError) as caught:
        rows(opened)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None


def test_frames_that_can_be_read_once_or_mix_time_zones_are_refused() -> None:
    batches = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    assert "only once" in refused(DataError, batches)
    east = dt.timezone(dt.timedelta(hours=8))
    mixed = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=east), dt.datetime(2024, 1, 1)]
    for pair in ([mixed[0], mixed[1]], [mixed[0], mixed[2]]):
        frame = pd.DataFrame({"seen": pd.Series(pair, dtype=object)})
        assert "mixes time zones" in refused(DataError, frame)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_arrow_text_that_is_no_utf_8_is_refused_before_anything_is_asked(kind: Any) -> None:
    """One such row made questions fail after payment, and the engine answered nobody any more."""
    data = pa.array([b"fine", b"\xff\xfe"], pa.binary()).buffers()
    text = pa.StringArray.from_buffers(2, *data[1:])
    if pa.types.is_dictionary(kind):
        text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), text)
    elif kind == pa.large_string():
        text = pa.LargeStringArray.from_buffers(2, *pa.array([b"fine", b"\xff\xfe"], pa.large_binary()).buffers()[1:])
    assert "not UTF-8" in refused(DataError, pa.table({"a": text}))
    assert "not UTF-8" in refused(DataError, pa.record_batch({"a": text}))
    assert rows(source(TABLE), "who") == [(1,), (2,), (None,)]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_moments_that_no_engine_can_count_are_refused_before_anything_is_asked(unit: str) -> None:
    """One such row made every question about its column fail once it was paid for."""
    far = pa.table({"z": pa.array([0, 2**63 - 1], pa.timestamp(unit, tz="UTC"))})
    assert "beyond the year 290,000" in refused(DataError, far)
    near = source(pa.table({"z": pa.array([0, 10**9], pa.timestamp(unit, tz="UTC"))}))
    assert near.schema["z"] is Type.INSTANT


class _Odd:
    def __str__(self) -> NoReturn:
        raise ValueError


@pytest.mark.parametrize(
    ("usual", "odd"),
    [(1, True), (1, dt.date(2024, 1, 1)), (dt.date(2024, 1, 1), 3), ("a", "\ud800"), ("a", _Odd())],
    ids=lambda value: ascii(value) if isinstance(value, (int, str)) else type(value).__name__,
)
def test_a_column_in_which_an_object_does_not_read_cannot_be_used(usual: Any, odd: Any) -> None:
    """Questions about it would fail after payment, because of one row."""
    frame = pd.DataFrame({"a": pd.Series([usual] * 50 + [odd], dtype=object), "b": range(51)})
    opened = source(frame)
    with pytest.raises(DataError, match="not the same type in every row or file"):
        opened.schema["a"]
    assert len(rows(opened)) == 51
    clean = source(frame.iloc[:50])
    assert len(rows(clean, "a")) == 50


def test_a_column_of_mixed_objects_is_text_even_when_the_odd_one_is_rare() -> None:
    frame = pd.DataFrame({"a": pd.Series([1] * 5000 + ["x"], dtype=object)})
    assert source(frame).schema["a"] is Type.TEXT


def test_a_moment_and_a_wall_clock_do_not_compare() -> None:
    table = pa.table(
        {"z": pa.array([0], pa.timestamp("us", tz="UTC")), "w": pa.array([0], pa.timestamp("us")), "x": [1.0]}
    )
    relation = private(source(table))
    for expression in (col("z") == col("w"), col("z") < dt.datetime(2024, 1, 1), col("z").days_since(col("w"))):
        with pytest.raises(DataError, match="time zone"):
            relation.compute(c=expression)


def test_a_frame_is_let_go_with_its_source() -> None:
    engine = DuckDB()
    opened = engine.frame(pd.DataFrame({"a": np.arange(3)}))
    assert rows(opened) == [(0,), (1,), (2,)]
    del opened
    other = engine.frame(pd.DataFrame({"b": [1]}))
    names = {name for (name,) in engine._connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
    assert "frame_1" not in names
    assert rows(other) == [(1,)]


def test_a_public_name_never_reaches_python_variables() -> None:
    secret = pa.table({"a": [42]})  # noqa: F841
    engine = DuckDB()
    with pytest.raises(duckdb.Error):
        engine._connection.sql("SELECT * FROM secret").fetchall()


def test_an_engine_refuses_bad_settings() -> None:
    for settings in ({"memory_limit": "lots"}, {"memory_limit": 5}, {"threads": 0}, {"threads": 1.5}):
        with pytest.raises(InvalidParameter):
            DuckDB(**settings)


ODD = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN score AS numeric(6, 2);
CREATE TABLE odd (small smallint, single real, exact numeric(20, 0), free numeric, points score, feeling mood,
                  code char(4), id uuid, day date, clock timestamp, moment timestamptz, tags text[], data jsonb);
INSERT INTO odd VALUES
 (1, 0.5, 12345678901234567890, 'NaN', 1.25, 'happy', 'ab', '6ecd8c99-4036-403d-bf84-cf8400f67836',
  'infinity', '-infinity', 'infinity', '{a}', '{}'),
 (-1, 'Infinity', 42, 1e300, 9999.99, 'sad', 'abcd', NULL, '0044-03-15 BC', '2024-01-01 10:00', '2024-01-01 10:00+08',
  NULL, NULL),
 (NULL, 'NaN', -7, 1e-310, NULL, NULL, NULL, NULL, '2024-02-29', NULL, NULL, NULL, NULL);
CREATE VIEW seen AS SELECT small, free FROM odd;
"""


@pytest.fixture
def odd(connect_database: Any) -> Any:
    with psycopg.connect(connect_database) as connection:
        connection.execute("DROP SCHEMA IF EXISTS strange CASCADE")
        connection.execute("CREATE SCHEMA strange")
        connection.execute("SET search_path TO strange")
        connection.execute(ODD)
    return connect_database


def test_columns_of_postgresql_have_the_same_seven_types(odd: Any) -> None:
    opened = source(odd, table="strange.odd")
    assert opened.skipped == ("tags", "data")
    expected = ["integer", "real", "integer", "real", "real", "text", "text", "text", "date", "timestamp", "instant"]
    assert list(opened.schema.values()) == expected
    found = set(rows(opened))
    assert found == {
        (1, 0.5, None, None, 1.25, "happy", "ab", "6ecd8c99-4036-403d-bf84-cf8400f67836", None, None, None),
        (
            -1,
            None,
            42,
            None,
            9999.99,
            "sad",
            "abcd",
            None,
            None,
            dt.datetime(2024, 1, 1, 10),
            dt.datetime(2024, 1, 1, 2),
        ),
        (None, None, -7, 0.0, None, None, None, None, dt.date(2024, 2, 29), None, None),
    }
    assert rows(source(odd, table="strange.seen"), "small") == [(-1,), (1,), (None,)]


def test_a_server_or_table_that_is_not_there_is_refused(odd: Any) -> None:
    assert "no table 'strange.none'" in refused(DataError, odd, table="strange.none")
    assert "no table" in refused(DataError, odd, table='odd"; DROP TABLE odd; --')
    assert "needs table=" in refused(InvalidParameter, odd)
    assert "did not answer" in refused(SourceUnavailable, "postgresql://nobody@127.0.0.1:1/none", table="t")
    assert rows(source(odd, table="strange.seen"), "small")


def test_a_connection_lost_in_the_middle_can_be_tried_again(odd: Any) -> None:
    """The backend is ended while it works; the error is one that keeps a payment open, and the next try succeeds."""
    with psycopg.connect(odd, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW strange.slow AS SELECT small, pg_sleep(20) IS NULL AS b FROM strange.odd"
        )
    slow, errors = source(odd, table="strange.slow"), []

    def ask() -> None:
        try:
            rows(slow)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    with psycopg.connect(odd, autocommit=True) as connection:
        busy = "query LIKE '%slow%' AND state = 'active' AND pid <> pg_backend_pid()"
        find = f"SELECT pid FROM pg_stat_activity WHERE {busy}"
        while not (found := connection.execute(find).fetchall()) and asking.is_alive():
            time.sleep(0.02)
        connection.execute("SELECT pg_terminate_backend(%s)", found[0])
    asking.join()
    assert [type(error) for error in errors] == [Interrupted]  # a row may have killed the server: it counts
    assert errors[0].__context__ is None
    assert rows(source(odd, table="strange.seen"), "small")


def test_nothing_is_written_to_a_server(odd: Any) -> None:
    opened = source(odd, table="strange.odd")
    with pytest.raises(DataError):
        opened.engine._in_snapshot(lambda cursor: cursor.execute("DELETE FROM strange.odd"))  # type: ignore[attr-defined]
    assert len(rows(opened)) == 3


def test_a_spark_frame_is_read_by_its_types(spark_session: Any) -> None:
    statement = """
        SELECT * FROM VALUES
          (1S, CAST('NaN' AS FLOAT), CAST(12 AS DECIMAL(30, 0)), 1.25BD, 'x', DATE'2024-02-29', ARRAY(1),
           TIMESTAMP'2024-01-01 08:00:00', TIMESTAMP_NTZ'2024-01-01 08:00:00'),
          (NULL, 0.5F, CAST('1e25' AS DECIMAL(30, 0)), NULL, NULL, DATE'-0044-03-15', NULL, NULL, NULL)
        AS t(small, single, exact, money, name, day, tags, moment, clock)"""
    opened = source(spark_session.sql(statement))
    assert opened.skipped == ("tags",)
    assert rows(opened) == [
        (1, None, 12, 1.25, "x", dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 0), dt.datetime(2024, 1, 1, 8)),
        (None, 0.5, None, None, None, None, None, None),
    ]
