"""Engines that are newer than what was tried are used with a warning."""

import importlib.metadata
import re
import warnings
from typing import Any

import pytest

from mosha.connect.engines import tried
from mosha.connect.engines.tried import NEWEST, UntriedEngine, warn_if_untried
from tests.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "_warned", set())


@pytest.mark.parametrize(("engine", "package"), [("DuckDB", "duckdb"), ("Spark", "pyspark")])
def test_the_list_names_the_version_that_these_tests_run_on(engine: str, package: str) -> None:
    """After an upgrade the tests must pass, and then the list is changed."""
    found = re.findall(r"\d+", importlib.metadata.version(package))
    assert NEWEST[engine] == tuple(map(int, found[: len(NEWEST[engine])]))


def test_the_list_names_the_server_that_these_tests_run_on(postgres_server: Any) -> None:  # noqa: F811
    import psycopg

    with psycopg.connect(postgres_server.url("postgres")) as connection:
        assert NEWEST["PostgreSQL"] == (connection.info.server_version // 10000,)


@pytest.mark.parametrize(
    ("engine", "version"), [("DuckDB", "2.1.0"), ("DuckDB", "3.0"), ("PostgreSQL", "18"), ("Spark", "5")]
)
def test_a_newer_version_is_told_once(engine: str, version: str) -> None:
    with pytest.warns(UntriedEngine, match=f"{engine} {version[:2]}"):
        warn_if_untried(engine, version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untried(engine, version)


@pytest.mark.parametrize(
    ("engine", "version"), [("DuckDB", "1.4.1"), ("DuckDB", "2.0.9"), ("PostgreSQL", "14"), ("Spark", "4.3.2")]
)
def test_what_was_tried_and_what_is_older_is_used_without_a_word(engine: str, version: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untried(engine, version)


def test_opening_an_engine_looks_at_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    from mosha.connect.engines import duckdb as engine

    monkeypatch.setattr(engine.duckdb, "__version__", "9.9.9")  # type: ignore[attr-defined]
    with pytest.warns(UntriedEngine, match=r"DuckDB 9\.9"):
        engine.DuckDB()
