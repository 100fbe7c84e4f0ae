"""Questions on a Spark cluster of two executors, each a process of its own: a program that tells its answers as JSON.

    python -m tests.connect.cluster FOLDER

FOLDER holds `visits.parquet`. A process has one Spark context, so the cluster cannot be that of the other tests.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mosha
from mosha import tables
from mosha.connect.engines.spark import Spark
from mosha.graphs import protect as protect_graph
from mosha.tables import Budget, count, distinct, mean, median, persons, protect
from tests.spark import SETTINGS

WARDS = ["a", "b", "c"]
PEOPLE = mosha.Person("who", at_most=3)
ROOMY = mosha.Person("who", at_most=4000)  # nothing is cut: engines have hashes of their own


def begin(folder: Any) -> Any:
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    own = {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "4", "spark.sql.warehouse.dir": str(folder)}
    own["spark.executor.extraJavaOptions"] = SETTINGS["spark.driver.extraJavaOptions"]
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("mosha cluster")
    for name, value in {**SETTINGS, "spark.driver.memory": "700m", **own}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def questions(data: Any) -> Iterator[tuple[Any, ...]]:
    """Every kind of question whose answer does not depend on an engine's own hashes."""
    bounded, roomy = (protect(data, unit=unit) for unit in (PEOPLE, ROOMY))
    numbers = {"n": count(), "sum": tables.sum("days", between=(0, 10)), "mean": mean("days", between=(0, 10))}
    yield "sums", bounded.group_by("ward", keys=WARDS).aggregate(people=persons(), **numbers)
    yield "quantiles", bounded.group_by("ward", keys=WARDS).aggregate(middle=median("days", between=(0, 10)))
    yield "distinct", roomy.group_by("ward", keys=WARDS).aggregate(days=distinct("days"))
    yield "correlation", bounded.correlation(("days", "who"), between=((0, 10), (0, 400)))
    yield "top", bounded.top("ward", k=2, candidates=WARDS)
    yield "synthetic", bounded.synthesize(keys={"ward": WARDS}, between={"days": (0, 10)}, bins={"days": 5})
    yield "keys from the data", protect(data, unit=mosha.Row()).group_by("ward").count()


def answer(question: Any) -> str:
    if hasattr(question, "measurement_for"):  # a table, which plans its own shares
        measurement = question.measurement_for(epsilon=50, delta=1e-6)
    else:
        measurement = question.measurement(Budget(epsilon=50, delta=1e-6))
    return repr(measurement.step(None, None, None, mosha.noise.SeededRandom(5))[0])


VERTICES = 401


def count_graph(graph: Any) -> list[Any]:
    """Every exact statistic of a graph that Spark counts."""
    degrees = graph.degree_counts(VERTICES).tolist()
    return [graph.edge_count, degrees, graph.stars(2), graph.triangles, graph.components]


def lose_an_executor(folder: Any, name: str = "lost") -> Any:
    """A function of a column that kills the executor of the first task that uses it."""
    marker = str(folder / name)

    def pass_through(value: Any) -> Any:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return value
        process = os.getpid()
        while b"java" not in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]:
            process = int(re.search(r"PPid:\s*(\d+)", Path(f"/proc/{process}/status").read_text())[1])
        os.kill(process, signal.SIGKILL)
        return value

    return pass_through


def main(folder: Any) -> None:
    from pyspark.sql.functions import col, udf

    session = begin(folder)
    frame = session.read.parquet(str(folder / "visits.parquet")).repartition(4)
    told, statements = {}, {}
    run, run_in_batches = Spark.run, Spark.run_in_batches

    def run_and_note(self: Any, found: Any, question: Any) -> Any:
        noted.extend(self.dialect.sql(query.statement) for query in found)
        return run(self, found, question)

    def note_and_run_in_batches(self: Any, query: Any, question: Any, use: Any) -> None:
        noted.append(self.dialect.sql(query.statement))
        run_in_batches(self, query, question, use)

    Spark.run, Spark.run_in_batches = run_and_note, note_and_run_in_batches
    for adaptive in ("true", "false"):
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
        for name, question in questions(frame):
            noted: list[str] = []
            told[f"{name}, adaptive {adaptive}"] = answer(question)
            statements[name] = [session.sql(text)._jdf.queryExecution().executedPlan().toString() for text in noted]
    fragile = frame.withColumn("days", udf(lose_an_executor(folder), "double")(col("days")))
    account = mosha.Ledger.memory().account("visits", unit=PEOPLE, epsilon=5)
    asked = protect(fragile, unit=PEOPLE, account=account).group_by("ward", keys=WARDS).mean("days", between=(0, 10))
    noted = []
    release = asked.release(epsilon=1, key="again")
    lost = (folder / "lost").exists()
    told["sums, an executor lost"] = answer(next(questions(fragile))[1])
    again = asked.release(epsilon=1, key="again")
    edges = frame.selectExpr("who AS source", "CAST(days * 40 AS BIGINT) AS target")
    whole = edges.withColumn("target", udf(lose_an_executor(folder, "lost again"), "bigint")(col("target")))
    graphs = []
    for adaptive, found in (("true", whole), ("false", edges)):
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
        graphs.append(count_graph(protect_graph(found, unit=mosha.Edge(), vertices=VERTICES).graph))
    lost = lost and (folder / "lost again").exists()
    paid = {"spent": account.spent, "failures": account.failures, "same": again.table == release.table, "lost": lost}
    said = {"told": told, "plans": statements, "paid": paid, "graphs": graphs}
    sys.stdout.write(json.dumps(said) + "\n")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
