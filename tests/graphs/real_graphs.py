"""The real graphs that golden numbers are about: read from $MOSHA_DATA, or from beside the repository."""

import csv
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mosha.graphs import read

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MOSHA_DATA", HERE.parents[2] / "shared" / "data")) / "graphs"
GOLDEN = {row["graph"]: row for row in csv.DictReader((HERE / "golden.csv").read_text(encoding="utf-8").splitlines())}


@cache
def real(name: Any) -> Any:
    path = DATA / f"{name}.edges.gz"
    if not path.exists():
        pytest.skip(f"the graph {name} is not in $MOSHA_DATA/graphs")
    return read(path, vertices=int(GOLDEN[name]["n"]))
