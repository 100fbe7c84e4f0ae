"""Files that say of themselves that they are synthetic."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosha._version import __version__
from mosha.core.errors import InvalidParameter
from mosha.core.language import make_note, phrase
from mosha.core.names.extras import load_guest
from mosha.files.atomic import replace_file
from mosha.synth.computing import arrow_table
from mosha.synth.fitted import Fitted

__all__ = ["check_place", "label_of", "save_table"]


def label_of(made: Fitted) -> dict[str, Any]:
    """What every file says: that its rows are synthetic, by which promise and by which method."""
    receipt = None if made.receipt is None else made.receipt.to_dict()
    return {
        "synthetic": True,
        "made_by": f"mosha {__version__}",
        "method": made.method,
        "rows": made.rows,
        "hidden": made.unit.describe(),
        "receipt": receipt,
        "warning": make_note("synth.drawn_from_model"),
    }


def check_place(place: Path) -> str:
    """The ending of a file that a table can be saved as, or a refusal; to be asked before anything is paid."""
    ending = place.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise InvalidParameter("synth.unknown_ending", parameter="place", ending=ending)
    if not place.parent.is_dir():
        raise InvalidParameter("synth.no_folder", parameter="place", folder=str(place.parent))
    if ending == ".parquet":
        load_guest("pyarrow.parquet", extra="arrow", needed_for=phrase("synth.parquet_file"))
    return ending


def save_table(made: Fitted, table: Mapping[str, list[object]], place: Path) -> Path:
    """Write a CSV file (the label is a comment in its first line) or a Parquet file (the label is in its metadata).

    The label stands in full beside it, in NAME.synthetic.json.
    """
    ending = check_place(place)
    label = label_of(made) | {"rows": len(next(iter(table.values()), []))}
    if ending == ".csv":
        text = io.StringIO(newline="")
        text.write(f"# synthetic table, made by mosha {__version__}, {made.method}; no row is a person\n")
        writer = csv.writer(text)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        replace_file(place, [text.getvalue().encode("utf-8")])
    else:
        parquet = load_guest("pyarrow.parquet", extra="arrow", needed_for=phrase("synth.parquet_file"))
        rows = arrow_table(table, made.columns)
        parquet.write_table(rows.replace_schema_metadata({"mosha.synthetic": json.dumps(label, default=str)}), place)
    described = json.dumps(label, indent=2, default=str).encode("utf-8")
    replace_file(place.with_name(f"{place.stem}.synthetic.json"), [described])
    return place
