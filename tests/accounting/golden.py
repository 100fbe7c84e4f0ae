"""The table of reference numbers, with its own tolerances."""

import csv
import json
from pathlib import Path
from typing import Any


def rows(*categories: Any) -> list[Any]:
    """The rows of these categories: (id, inputs, expected value, relative tolerance)."""
    with (Path(__file__).parent / "golden.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["category"] in categories]
    assert found, f"no reference row is of {categories}"
    return [(row["id"], json.loads(row["inputs"]), float(row["expected"]), tolerance(row)) for row in found]


def tolerance(row: Any) -> Any:
    """`exact` means: to the ten digits that the table shows."""
    return 1e-9 if row["tolerance"] == "exact" else float(row["tolerance"].removesuffix(" rel"))
