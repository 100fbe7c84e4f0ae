"""Synthetic tables over the wire: asked for as data, paid for once, drawn from as often as one likes.

The ledger keeps what was released, under the key of its request, and the model follows from that alone: a sample of
other rows, or the file once more, is post-processing, costs nothing and reads no row of a person.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosha.core.errors import MoshaError
from mosha.core.language import phrase, phrase_to_dict
from mosha.server.asking.answers import LEVELS, plain_number
from mosha.server.errors import BadRequest
from mosha.synth import Synthetic, ask_synthesis
from mosha.synth.saving import label_of, save_table
from mosha.synth.synthesis import SynthesisQuestion
from mosha.tables import Table

__all__ = ["MOST_ROWS", "build_synthesis", "draw_file", "forecast_synthesis", "synthetic_to_dict"]

MOST_ROWS = 1_000_000
SHOWN = 20
_OPTIONS: dict[str, type[Any]] = {"columns": list, "keys": dict, "between": dict, "bins": dict, "hierarchy": dict}
_OPTIONS |= {"nulls": list, "rows": int, "rows_per_person": int, "method": str, "target": str}


def build_synthesis(table: Table, said: object) -> SynthesisQuestion:
    """Check what is asked for: options of `table.synthesize` that are data."""
    if not isinstance(said, Mapping):
        raise BadRequest("server.field_wrong", parameter="plan.synthesize", expected="object")
    for name, value in said.items():
        if name not in _OPTIONS:
            raise BadRequest("server.field_unknown", parameter=f"plan.synthesize.{name}"[:200])
        if not isinstance(value, _OPTIONS[name]) or isinstance(value, bool):
            kind = _OPTIONS[name].__name__
            raise BadRequest("server.field_wrong", parameter=f"plan.synthesize.{name}", expected=kind)
    if said.get("rows", 1) > MOST_ROWS:
        expected = phrase("server.at_most_rows", most=MOST_ROWS)
        raise BadRequest("server.field_wrong", parameter="plan.synthesize.rows", expected=expected)
    options: dict[str, Any] = dict(said)
    try:
        if "between" in options:
            options["between"] = {name: tuple(ends) for name, ends in options["between"].items()}
        return ask_synthesis(table, **options)
    except MoshaError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError):  # data of a shape that nothing has
        raise BadRequest("server.field_wrong", parameter="plan.synthesize", expected="object") from None


def forecast_synthesis(
    question: SynthesisQuestion, price: Mapping[str, Any], rows: float | None, confidence: float
) -> dict[str, list[float | None]]:
    """How far the count of one cell of each column may be off."""
    found = question.forecast(**price, rows=rows, confidence=confidence)
    bars = {name: [plain_number(float(bar))] for name, bar in found["cell of a column"].items()}
    return bars | {"rows": [plain_number(float(found["number of rows"]))]}


def synthetic_to_dict(made: Synthetic) -> dict[str, Any]:
    """The first rows, what every file says of itself, and how good the table is by a look that the fit never saw."""
    table = made.sample(min(SHOWN, made.rows))
    names = list(table)
    label = label_of(made)
    assert made.receipt is not None
    return {
        "columns": [{"name": name, "role": "key", "type": _type_of(table[name])} for name in names],
        "rows": [[plain_number(value) for value in row] for row in zip(*table.values(), strict=True)],
        "errors": {str(level): {} for level in LEVELS},
        "in_rows": [],
        "notes": [label["warning"]],
        "note_codes": [phrase_to_dict(label["warning"])],
        "receipt": made.receipt.to_dict(),
        "synthetic": {part: label[part] for part in ("method", "rows", "hidden", "made_by", "warning")},
        "report": str(made.report()),
    }


def _type_of(values: list[object]) -> str:
    found = next((value for value in values if value is not None), "")
    return {bool: "boolean", int: "integer", float: "real"}.get(type(found), "text")


def draw_file(made: Synthetic, *, rows: int | None, seed: int, form: str) -> bytes:
    """A file of rows that says of itself that it is synthetic: CSV or Parquet."""
    count = made.rows if rows is None else rows
    with tempfile.TemporaryDirectory() as folder:
        place = save_table(made, made.sample(max(1, min(count, MOST_ROWS)), seed=seed), Path(folder) / f"table.{form}")
        return place.read_bytes()
