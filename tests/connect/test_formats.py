"""One suite for every format that can be read: the same rows, the same counts, and errors that say what can be read."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.core.errors import InvalidParameter, MoshaError

SAID = {"who": "integer", "ward": "text", "days": "real", "day": "date"}
ROWS = [(n, "内科" if n % 3 else "surgery", n % 7 + 0.5, f"2026-01-{n % 28 + 1:02d}") for n in range(240)]
NAMES = list(SAID)


def write_csv(folder: Any, encoding: str = "utf-8") -> tuple[Any, ...]:
    text = "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in ROWS)])
    (folder / "t.csv").write_bytes(text.encode(encoding))
    return folder / "t.csv", {} if encoding == "utf-8" else {"encoding": encoding}


def write_json_lines(folder: Any) -> tuple[Any, ...]:
    lines = [json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=False) for row in ROWS]
    (folder / "t.jsonl").write_text("\n".join([*lines, "{broken", "[1]", "3"]), encoding="utf-8")
    return folder / "t.jsonl", {}


def write_excel(folder: Any) -> tuple[Any, ...]:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (NAMES, *ROWS):
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx", {}


def write_sqlite(folder: Any) -> tuple[Any, ...]:
    with contextlib.closing(sqlite3.connect(folder / "t.db")) as book, book:
        book.execute("CREATE TABLE visits (who INTEGER, ward TEXT, days REAL, day DATE)")
        book.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
    return folder / "t.db", {"table": "visits"}


def make_arrow() -> Any:
    from datetime import date

    import pyarrow as pa

    columns = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
    return pa.table(columns | {"day": [date.fromisoformat(day) for day in columns["day"]]})


def write_delta(folder: Any) -> tuple[Any, ...]:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder / "t"), make_arrow())
    return folder / "t", {}


def write_iceberg(folder: Any) -> tuple[Any, ...]:
    pytest.importorskip("pyiceberg")
    catalogs = pytest.importorskip("pyiceberg.catalog.memory")
    catalog = catalogs.InMemoryCatalog("local", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=make_arrow().schema)
    table.append(make_arrow())
    return next(path.parent.parent for path in folder.rglob("*.metadata.json")), {}


def open_lazy_frame(folder: Any) -> tuple[Any, ...]:
    import polars as pl

    return pl.from_arrow(make_arrow()).lazy(), {}  # type: ignore[union-attr]


def make_columns(folder: Any) -> tuple[Any, ...]:
    return {name: make_arrow().column(name).to_pylist() for name in NAMES}, {}


FORMATS = {
    "csv": write_csv, "gbk": lambda folder: write_csv(folder, "gbk"),
    "gb18030": lambda folder: write_csv(folder, "gb18030"),
    "json lines": write_json_lines, "excel": write_excel, "sqlite": write_sqlite, "delta": write_delta,
    "iceberg": write_iceberg, "lazy frame": open_lazy_frame, "dict": make_columns,
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_rows_give_the_same_counts(kind: Any, tmp_path: Path) -> None:
    source, options = FORMATS[kind](tmp_path)
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=1e6)
    unit = mosha.Person("who", at_most=1)
    table = mosha.protect(source, unit=unit, account=account, schema=SAID, **options)
    assert {name: str(kind) for name, kind in table.schema.items()} == SAID
    answer = table.group_by("ward", keys=["内科", "surgery"]).agg(
        n=mosha.tables.count(), s=mosha.tables.sum("days", between=(0, 8))
    )
    found = answer.release(epsilon=300).table
    assert [round(n) for n in found["n"]] == [160, 80]
    assert found["s"] == pytest.approx([sum(r[2] for r in ROWS if r[1] == w) for w in found["ward"]], abs=5)
    early = table.filter("day < DATE '2026-01-03'").count().release(epsilon=300)
    assert round(early.value) == sum(row[3] < "2026-01-03" for row in ROWS)


@pytest.mark.parametrize("ending", [".json", ".xls", ".feather", ".pkl", ".data"])
def test_what_cannot_be_read_is_told_what_can(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"t{ending}").write_text("x")
    with pytest.raises(MoshaError, match="Parquet") as refusal:
        mosha.protect(tmp_path / f"t{ending}", unit=mosha.Row())
    assert refusal.value.code == "connect.format_unreadable"


def test_columns_of_json_lines_and_names_of_tables_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(MoshaError) as refusal:
        mosha.protect(write_json_lines(tmp_path)[0], unit=mosha.Row())
    assert refusal.value.code == "connect.json_needs_columns"
    with pytest.raises(MoshaError, match="visits"):
        mosha.protect(write_sqlite(tmp_path)[0], unit=mosha.Row(), table="other")
    with pytest.raises(InvalidParameter) as refusal:
        mosha.protect(write_csv(tmp_path)[0], unit=mosha.Row(), encoding="utf-16")
    assert refusal.value.code == "connect.unknown_encoding"
    with pytest.raises(InvalidParameter):
        mosha.protect({"x": [1]}, unit=mosha.Row(), table="t")


def test_lines_that_are_no_text_of_the_encoding_do_not_count_and_change_no_other(tmp_path: Path) -> None:
    place, options = write_csv(tmp_path, "gbk")
    plain = place.read_bytes()
    place.write_bytes(plain + b"\n\xff\xff\xff,\xff,1,2026-01-01\n1,2,3,4,5,6,7\n")
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=1e6)
    table = mosha.protect(place, unit=mosha.Row(), account=account, schema=SAID, **options)
    assert round(table.count().release(epsilon=300).value) == len(ROWS)


def test_an_empty_file_of_texts_has_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("")
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=1e6)
    table = mosha.protect(tmp_path / "t.jsonl", unit=mosha.Row(), account=account, schema=SAID)
    assert round(table.count().release(epsilon=300).value) == 0


def test_a_damaged_database_is_told_without_a_word_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").write_bytes(b"SQLite format 3\x00" + b"secret" * 400)
    with pytest.raises(MoshaError) as refusal:
        mosha.protect(tmp_path / "t.sqlite", unit=mosha.Row(), table="visits")
    assert refusal.value.code == "connect.file_absent"
    assert refusal.value.__context__ is None
