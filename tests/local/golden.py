"""The shared reference values, by what they are called."""

import csv
from pathlib import Path
from typing import Any


def rows(area: Any, name: Any) -> list[Any]:
    """(parameters, value) of the reference rows whose name starts so."""
    with (Path(__file__).parent / "golden.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["area"] == area and row["name"].startswith(name)]
    assert found, name
    return [(parameters(row["params"]), float(row["value"])) for row in found]


def parameters(text: Any) -> dict[Any, Any]:
    pairs = (part.split("=") for part in text.split(",") if "=" in part)
    return {name.strip(): float(value) for name, value in pairs}
