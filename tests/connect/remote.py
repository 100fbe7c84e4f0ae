"""Questions on a Spark server that is asked over the network (Spark Connect): a program that tells its answers as JSON.

    python -m tests.connect.remote FOLDER

FOLDER holds `visits.parquet`. A process has either a context of its own or a remote session, so this is a process of
its own.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import mosha
from mosha.connect.engines import spark
from mosha.connect.engines.source import stop_at
from mosha.tables import Budget, protect
from tests.connect import cluster
from tests.server.house import opened
from tests.spark import SETTINGS

SLOW = "SELECT count(*) AS who FROM range(1000000000000) WHERE sha2(CAST(id AS STRING), 256) < '0'"  # needs no memory


def begin(folder: Any) -> Any:
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ["SPARK_TESTING"] = "1"  # a free port, and not the one that all such servers have
    own = {"spark.driver.memory": "700m", "spark.sql.warehouse.dir": str(folder), "spark.local.dir": str(folder)}
    builder = SparkSession.builder.remote("local[1]")
    for name, value in {**SETTINGS, **own}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def tell_error(work: Any) -> list[Any] | None:
    try:
        work()
    except mosha.errors.MoshaError as error:
        return [type(error).__name__, error.code, error.__context__ is None]
    return None


def serve(url: Any, folder: Any) -> Any:
    """What Mosha's server answers about a table of the catalogue, and what it says of one that is not there."""
    os.environ["VISITS_OF_SPARK"] = url
    columns = {"who": "integer", "ward": "text", "days": "real"}
    unit = {"person": "who", "at_most": 30}
    source = {"url": "env:VISITS_OF_SPARK", "table": "visits_of_spark"}
    with opened(folder / "server") as place:
        absent = place.call("wang", "POST", "/sources/columns", {"source": source | {"table": "nowhere"}})
        found = place.call("wang", "POST", "/sources/columns", {"source": source})
        dataset = {"name": "spark", "source": source, "title": "Visits", "promise": {"epsilon": 50.0}}
        made = place.call("wang", "POST", "/datasets", dataset | {"declaration": {"unit": unit, "columns": columns}})
        signed = place.call("zhao", "POST", "/datasets/spark/countersign", {})
        grant = {"principal": "li", "epsilon": 45.0, "expires": "2099-01-01"}
        granted = place.call("wang", "POST", "/datasets/spark/grants", grant)
        steps = [found.status_code, made.status_code, signed.status_code, granted.status_code]
        if steps != [200, 201, 200, 201]:
            return {"steps": steps, "said": [found.text, made.text, signed.text, granted.text]}
        asked = place.answer("li", "SELECT COUNT(*) AS n FROM spark", key="one", epsilon=40.0, dataset="spark")
        codes = {}
        for table in ("default.VISITS_of_spark", "spark_catalog.default.visits_of_spark", "seen", "other_visits"):
            again = dataset | {"name": "again", "source": source | {"table": table}}
            reply = place.call("wang", "POST", "/datasets", again | {"declaration": {"unit": unit, "columns": columns}})
            codes[table] = reply.json().get("code", reply.status_code)
        return {"columns": found.json(), "absent": absent.json()["code"], "answer": asked, "again": codes}


def main(folder: Any) -> None:
    from pyspark import SparkContext

    session = begin(folder)
    frame = session.read.parquet(str(folder / "visits.parquet"))
    frame.write.saveAsTable("visits_of_spark")
    frame.write.saveAsTable("other_visits")
    session.sql("CREATE VIEW seen AS SELECT * FROM visits_of_spark")
    url = f"sc://{session.client._builder.endpoint}"
    typed = protect(url, table="visits_of_spark", unit=mosha.Row(), schema={"columns": {"days": "real"}}).count()
    told = {"by address": typed.measurement(Budget(epsilon=50)).step(None, None, None, mosha.noise.secure())[0]}
    told["nobody"] = tell_error(lambda: protect("sc://127.0.0.1:9", table="x", unit=mosha.Row()))
    told["served"] = serve(url, folder)
    told |= {"answers": {name: cluster.answer(question) for name, question in cluster.questions(frame)}}
    slow = protect(session.sql(SLOW), unit=mosha.Row()).count().measurement(Budget(epsilon=1))

    def ask_with_deadline(seconds: Any) -> Any:
        with stop_at(seconds):
            return tell_error(lambda: slow.step(None, None, None, mosha.noise.secure()))

    told["late"] = ask_with_deadline(1.0)
    told["afterwards"] = cluster.answer(next(cluster.questions(frame))[1])
    spark.GRACE = 1.0
    java = SparkContext._gateway.proc.pid
    threading.Timer(0.5, os.kill, (java, signal.SIGKILL)).start()
    told["gone"] = ask_with_deadline(3.0)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)  # to say goodbye to a server that is gone takes as long as to ask it


if __name__ == "__main__":
    main(Path(sys.argv[1]))
