"""Synthetic tables: mean two-way distance to the private table, beside the bars, in CPU seconds.

Tables are read from the folder that MOSHA_DATA names (adult, flights, randhie, coded, with their domains).
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import mosha
from benchmarks._peers import PeerUnavailable
from benchmarks._rows import Row
from mosha.noise import secure
from mosha.tables import Budget

DELTA = 1e-9
RUNS = 5
BARS = {
    "adult": {0.1: 0.076, 1.0: 0.035, 10.0: 0.016},
    "flights": {0.1: 0.090, 1.0: 0.026, 10.0: 0.010},
    "randhie": {0.1: 0.075, 1.0: 0.058, 10.0: 0.020},
}
LARGEST = {"adult": 0.15, "flights": 0.12, "randhie": 0.25}
ADULT = {"age": (0, 17, 1, 85), "fnlwgt": (2, 0, 15000, 100), "education-num": (4, 1, 1, 16),
         "capital-gain": (10, 0, 1000, 100), "capital-loss": (11, 0, 45, 100),
         "hours-per-week": (12, 1, 1, 99)}  # fmt: skip
NAMED = {"workclass": 1, "marital-status": 5, "occupation": 6, "relationship": 7, "race": 8, "sex": 9,
         "native-country": 13, "income": 14}  # fmt: skip


def folder() -> Path:
    place = Path(os.environ.get("MOSHA_DATA", "data"))
    if not (place / "adult").is_dir():
        raise PeerUnavailable("MOSHA_DATA names no folder with adult/ and tables/")
    return place


def adult() -> tuple[dict[str, np.ndarray], dict[str, int]]:
    lines = []
    for name in ("adult.data.gz", "adult.test.gz"):
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


def coded(name: str) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    sizes = json.loads((folder() / "tables" / f"{name}.json").read_text())["dom"]
    with gzip.open(folder() / "tables" / f"{name}.csv.gz", "rt") as file:
        head = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return {column: rows[:, head.index(column)] for column in sizes}, sizes


def pairs(columns: list[np.ndarray], sizes: list[int]) -> Iterator[np.ndarray]:
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            yield np.bincount(columns[a] * sizes[b] + columns[b], minlength=sizes[a] * sizes[b]) / len(columns[a])


def distances(truth: list[np.ndarray], table: dict[str, list], names: list[str], sizes: list[int]) -> np.ndarray:
    made = [np.array([-1 if v is None else v for v in table[name]], np.int64) for name in names]
    kept = np.all([column >= 0 for column in made], axis=0)
    found = pairs([column[kept] for column in made], sizes)
    return np.array([0.5 * np.abs(p - q).sum() for p, q in zip(truth, found, strict=True)])


def measure(name: str) -> list[Row]:
    columns, domain = adult() if name == "adult" else coded(name)
    names, sizes = list(domain), list(domain.values())
    table = mosha.protect(pa.table(columns), unit=mosha.Row())
    truth = list(pairs([columns[n] for n in names], sizes))
    keys = {n: range(size) for n, size in domain.items()}
    rows = []
    for epsilon, bar in BARS[name].items():
        means = {}
        for method in ("automatic", "independent"):
            question = table.synthesize(keys=keys, method=method, nulls=[])
            found, largest, start = [], [], time.process_time()
            for _ in range(RUNS):
                noises = question.noises(Budget(epsilon=epsilon, delta=DELTA))
                value = question.measurement_for(epsilon=epsilon, delta=DELTA).step(None, None, None, secure())[0]
                made = question.read(value, noises)
                each = distances(truth, made.table, names, sizes)
                found.append(each.mean())
                largest.append(each.max())
            seconds = (time.process_time() - start) / RUNS
            means[method] = float(np.mean(found))
            if method == "automatic":
                said = f"{means[method]:.4f} (largest {np.mean(largest):.3f}), {seconds:.1f} s"
                rows.append(Row(f"{name}, epsilon {epsilon:g}", "bar", bar / means[method], 1.0, said, f"{bar}"))
        ratio, theirs = means["independent"] / means["automatic"], f"{means['independent']:.4f}"
        rows.append(Row(f"{name}, epsilon {epsilon:g}", "independent columns", ratio, 0.97, theirs=theirs))
    return rows


PIECES = {name: lambda name=name: measure(name) for name in BARS}
