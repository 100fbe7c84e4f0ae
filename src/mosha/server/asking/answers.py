"""Answers as JSON and CSV: noisy numbers, error bars at several levels, the receipt, and nothing else."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from mosha.core.language import Language, Phrase, phrase, phrase_from_dict, phrase_to_dict, translate
from mosha.core.names.extras import load_guest
from mosha.server.catalogue.grants import is_beneath

__all__ = [
    "LEVELS",
    "MARK",
    "answer_to_dict",
    "harmless_cell",
    "notes_in",
    "own_receipt",
    "plain_number",
    "to_arrow",
    "to_csv",
]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
"""The confidences at which error bars are kept; in between, the next higher one is an honest bar."""


def plain_number(value: object) -> Any:
    """A value that JSON has: what is not finite, or was never there, is null."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


def answer_to_dict(answer: Any) -> dict[str, Any]:
    """What the client makes the same Answer of again (`mosha.client`)."""
    table = answer.exact.table
    columns = [{"name": name, "role": "key" if name in answer.keys else "value"} for name in table]
    for column in columns:
        column["type"] = _type_of(table[column["name"]])
    rows = [[plain_number(table[name][place]) for name in table] for place in range(len(answer))]
    errors = {}
    for level in LEVELS:
        bars = answer.error(level)
        errors[str(level)] = {name: [plain_number(bar) for bar in bars[name]] for name in answer.columns}
    return {
        "columns": columns,
        "rows": rows,
        "errors": errors,
        "in_rows": list(answer.in_rows),
        "whole": list(answer.whole),
        "estimated": list(answer.estimated),
        "notes": list(answer.notes),
        "note_codes": [phrase_to_dict(note) if isinstance(note, Phrase) else None for note in answer.notes],
        "receipt": answer.receipt.to_dict(),
    }


def notes_in(answer: Mapping[str, Any], language: Language) -> list[str]:
    """The notes of a stored answer in a language; one without a code stays as it was written."""
    codes = answer.get("note_codes") or [None] * len(answer["notes"])
    return [
        translate(phrase_from_dict(code), language) if code else text
        for text, code in zip(answer["notes"], codes, strict=True)
    ]


def _type_of(values: Sequence[object]) -> str:
    found: Any = next((value for value in values if value is not None), "")
    found = found.item() if hasattr(found, "item") else found
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "real"), (datetime, "timestamp"), (date, "date")):
        if isinstance(found, kind):
            return name
    return "text"


def own_receipt(receipt: Mapping[str, Any], own: str) -> dict[str, Any]:
    """The receipt as the holder of a grant sees it: other accounts by what they paid, not by what they have left."""
    payers = []
    mine: Mapping[str, Any] = {}
    for share in receipt["payers"]:
        if is_beneath(share["account"], own):
            payers.append(share)
            mine = share
        else:
            payers.append({part: share[part] for part in ("account", "measure", "cost", "delta")})
    numbers = {part: mine.get(part) for part in ("measure", "cost", "delta", "spent", "limit")}
    kept = {part: receipt[part] for part in ("entry", "unit", "event")}
    left = {"remaining": mine.get("left"), "left_as": mine.get("left_as")}
    return kept | numbers | {"account": own, "payers": payers} | left


MARK = "\ufeff"
"""What a CSV file begins with, so that spreadsheets read it as UTF-8 when somebody opens it with a double click."""


def to_csv(answer: Mapping[str, Any], level: str = "0.95") -> str:
    """The table with a column of error bars beside each number; no cell can be taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    values = [column["name"] for column in answer["columns"] if column["role"] == "value"]
    writer.writerow(
        [harmless_cell(c["name"]) for c in answer["columns"]] + [harmless_cell(f"{n} ±{level}") for n in values]
    )
    bars = answer["errors"][level]
    for place, row in enumerate(answer["rows"]):
        writer.writerow([harmless_cell(cell) for cell in row] + [harmless_cell(bars[name][place]) for name in values])
    return out.getvalue()


def to_arrow(answer: Mapping[str, Any], level: str, form: str) -> bytes:
    """The same table as a file of Arrow or Parquet, with the receipt's entry in its metadata."""
    arrow = load_guest("pyarrow", extra="arrow", needed_for=phrase("server.answer_as_arrow"))
    names = [column["name"] for column in answer["columns"]]
    kinds = {"boolean": arrow.bool_(), "integer": arrow.int64(), "real": arrow.float64(), "text": arrow.string()}
    columns, labels = [], []
    for place, column in enumerate(answer["columns"]):
        cells = [row[place] for row in answer["rows"]]
        kind = kinds.get(column["type"], arrow.string())
        if column["type"] == "integer" and any(isinstance(cell, float) for cell in cells):
            kind = arrow.float64()
        columns.append(arrow.array(cells, type=kind))
        labels.append(names[place])
        if column["role"] == "value":
            columns.append(arrow.array(answer["errors"][level][column["name"]], type=arrow.float64()))
            labels.append(f"{column['name']} ±{level}")
    table = arrow.Table.from_arrays(columns, names=labels)
    table = table.replace_schema_metadata({"mosha.entry": str(answer["receipt"]["entry"]), "mosha.confidence": level})
    out = arrow.BufferOutputStream()
    if form == "parquet":
        load_guest("pyarrow.parquet", extra="arrow", needed_for=phrase("server.answer_as_arrow")).write_table(
            table, out
        )
    else:
        with arrow.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    return bytes(out.getvalue().to_pybytes())


def harmless_cell(cell: object) -> Any:
    """A cell that no program for tables takes for a formula."""
    if cell is None:
        return ""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
