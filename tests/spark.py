"""A real Spark session for the tests: local, two threads, nothing on the network but the loopback."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small tables: compile quickly
    "spark.sql.parser.parserDfaCacheFlushRatio": "5",  # percent of the driver: what its parser learned is let go of
    "spark.sql.ui.retainedExecutions": "5",  # plans that are kept for pages which nobody sees
    "spark.sql.session.timeZone": "Asia/Shanghai",  # a zone that is not UTC: answers must not depend on it
}


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A running session; skipped only where Java or pyspark is not installed."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed (Debian: apt-get install default-jre-headless)")
    sql = pytest.importorskip("pyspark.sql", reason="the extra 'spark' is not installed")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tempfile.mkdtemp(prefix="mosha-spark-")
    builder = sql.SparkSession.builder.master("local[2]").appName("mosha tests")
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": folder, "spark.local.dir": folder}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
