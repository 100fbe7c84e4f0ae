"""What bounding along foreign keys costs: lines -> orders -> customers in DuckDB, against the same query unprotected.

The database has the sizes of TPC-H at scale 1: 6 million lines, 4 an order, and 10 orders a customer. The bar is 6
times the CPU time of the query as it stands, and is not kept yet.
"""

from __future__ import annotations

import tempfile
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
        account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), rho=1e3)
        shop = mosha.protect_database(place, schema=SCHEMA, account=account, engine=DuckDB())
        plain = duckdb.connect()
        plain.execute(f"ATTACH '{place}' AS shop (READ_ONLY); USE shop")
        for name, sql in QUERIES.items():
            work = [partial(_ask_plainly, plain, sql), partial(shop.query, sql, rho=0.01)]
            bare, bounded = best_cpu(work, repeats=3)
            ratio = bare / bounded
            rows.append(Row(name, "DuckDB, unprotected", ratio, 1 / 6, f"{bounded:.2f} s", f"{bare:.2f} s"))
    return rows


def _ask_plainly(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    return connection.execute(sql).fetchall()
