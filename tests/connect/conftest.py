"""One suite for all engines: a test that takes `place` runs on each of them."""

from typing import Any

import psycopg
import pytest

from tests.connect.places import DuckDBPlace, MariaDBPlace, PostgreSQLPlace, SparkPlace
from tests.mariadb import mariadb_server as mariadb_server  # noqa: PLC0414
from tests.postgres import postgres_server as postgres_server  # noqa: PLC0414
from tests.spark import spark_session as spark_session  # noqa: PLC0414

ENGINES = ["duckdb", "postgresql", "mariadb", "spark"]


@pytest.fixture(scope="session")
def connect_database(postgres_server: Any) -> Any:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE connect")
    return postgres_server.url("connect")


@pytest.fixture(scope="session", params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "postgresql":
        return PostgreSQLPlace(request.getfixturevalue("connect_database"))
    if request.param == "mariadb":
        return MariaDBPlace(request.getfixturevalue("mariadb_server"), "connect")
    if request.param == "spark":
        return SparkPlace(request.getfixturevalue("spark_session"), tmp_path_factory.mktemp("spark"))
    return DuckDBPlace()
