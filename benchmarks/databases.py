"""What bounding along foreign keys costs: lines -> orders -> customers in DuckDB, against the same query unprotected.

The database has the sizes of TPC-H at scale 1: 6 million lines, 4 an order, and 10 orders a customer. The bar is 6
times the CPU time of the query as it stands: for the first question of a database that was just opened, over the first
query of a connection that was just opened, which reads the file as well; and for a question that is new to a database
about whose lines something else was asked before, over a query that was run before. Beside it, without a bar: the same
question once more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb

import mosha
from benchmarks._rows import Row, best_cpu
from mosha.connect.engines.duckdb import DuckDB

LINES = 6_000_000

QUERIES = {
    "count and sum of lines by flag": "SELECT flag, COUNT(*) AS n, SUM(amount) AS s FROM line GROUP BY flag",
    "lines of a year of orders": (
        "SELECT flag, COUNT(*) AS n FROM line, orders WHERE order_id = orders.id AND day >= '1995-01-01' "
        "AND day < '1996-01-01' GROUP BY flag"
    ),
}
OTHER = "SELECT COUNT(*) AS n FROM line WHERE amount > 50000"
SCHEMA = {
    "persons": {"customer": {"key": "customer.id", "at_most": 100}},
    "tables": {
        "customer": {"rows_of": "customer"},
        "orders": {"rows_of": "customer", "foreign_keys": {"customer_id": "customer.id"}},
        "line": {
            "rows_of": "customer",
            "foreign_keys": {"order_id": "orders.id"},
            "columns": {"amount": {"between": [0, 100_000]}, "flag": {"keys": ["A", "N", "R"]}},
        },
    },
}


def make_database(place: str, lines: int) -> None:
    """A DuckDB file of that size."""
    with duckdb.connect(place) as shop:
        shop.execute(f"CREATE TABLE customer AS SELECT i AS id FROM range({lines // 40}) t(i)")
        shop.execute(
            f"CREATE TABLE orders AS SELECT i AS id, (hash(i) % {lines // 40})::BIGINT AS customer_id, "
            f"DATE '1992-01-01' + (hash(i + 1) % 2500)::INT AS day FROM range({lines // 4}) t(i)"
        )
        shop.execute(
            f"CREATE TABLE line AS SELECT (i // 4)::BIGINT AS order_id, (hash(i) % 10000000) / 100 AS amount, "
            f"['A', 'N', 'R'][1 + (hash(i + 7) % 3)::INT] AS flag FROM range({lines}) t(i)"
        )


def main() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "shop.duckdb")
        make_database(place, LINES)
        _open(place).query(OTHER, rho=0.01)  # compiled code is loaded once in a process
        for name, sql in QUERIES.items():
            cold, warm = (min(_measure_plainly(place, sql, times) for _ in range(5)) for times in (1, 2))
            for when, bare, bar, before in (
                ("first", cold, 1 / 6, ()), ("later", warm, 1 / 6, (OTHER,)), ("again", warm, None, (OTHER, sql)),
            ):  # fmt: skip
                bounded = min(_measure(place, sql, before) for _ in range(4))
                what = f"{name}, {when}"
                rows.append(Row(what, "DuckDB, unprotected", bare / bounded, bar, f"{bounded:.3f} s", f"{bare:.3f} s"))
    return rows


def _open(place: str) -> mosha.tables.Database:
    account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), rho=1e3)
    return mosha.protect_database(place, schema=SCHEMA, account=account, engine=DuckDB())


def _measure(place: str, sql: str, before: Sequence[str]) -> float:
    """The CPU seconds of a question, after others in a database that was just opened."""
    shop = _open(place)
    for other in before:
        shop.query(other, rho=0.01)
    (found,) = best_cpu([partial(shop.query, sql, rho=0.01)], repeats=1)
    return found


def _measure_plainly(place: str, sql: str, times: int) -> float:
    """The CPU seconds of the last of so many runs of a query in a connection that was just opened."""
    with duckdb.connect() as plain:
        plain.execute(f"ATTACH '{place}' AS shop (READ_ONLY); USE shop")
        return [best_cpu([lambda: plain.execute(sql).fetchall()], repeats=1)[0] for _ in range(times)][-1]
