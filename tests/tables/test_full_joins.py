"""FULL JOIN of the tables of a database, and the schemas that engines look in by themselves."""

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import mosha
from mosha import errors

PEOPLE, ORDERS = 30, 60
SCHEMA: dict[str, Any] = {
    "persons": {"customer": {"key": "customer.id", "at_most": 200}},
    "tables": {
        "country": {"public": True},
        "customer": {"rows_of": "customer"},
        "orders": {"rows_of": "customer", "foreign_keys": {"customer_id": "customer.id"}},
        "line": {
            "rows_of": "customer",
            "foreign_keys": {"order_id": "orders.id"},
            "columns": {"x": {"between": [0, 9]}},
        },
        "refund": {
            "rows_of": "customer",
            "foreign_keys": {"order_id": "orders.id"},
            "columns": {"x": {"between": [0, 9]}},
        },
    },
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    g = random.Random(7)
    rows: dict[str, list[tuple[Any, ...]]] = {
        "country (code TEXT)": [("fr",), ("cn",)],
        "customer (id BIGINT, code TEXT)": [(i, g.choice(["fr", "cn"])) for i in range(PEOPLE)],
        "orders (id BIGINT, customer_id BIGINT)": [(i, g.randrange(PEOPLE)) for i in range(ORDERS)],
        "line (order_id BIGINT, x INT)": [(g.randrange(ORDERS // 2), g.randrange(10)) for _ in range(90)],
        "refund (order_id BIGINT, x INT)": [(g.randrange(ORDERS), g.randrange(10)) for _ in range(40)],
    }
    with duckdb.connect(str(file)) as connection:
        for table, values in rows.items():
            connection.execute(f"CREATE TABLE {table}")
            marks = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table.split()[0]} VALUES ({marks})", values)
    return file


@pytest.fixture
def shop(place: Path) -> Any:
    account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), rho=1e12, delta=1e-3)
    return mosha.protect_database(place, schema=SCHEMA, account=account)


FULL = [
    "SELECT COUNT(*), COUNT(l.x), COUNT(r.x) FROM line l FULL JOIN refund r ON l.order_id = r.order_id",
    "SELECT SUM(l.x), SUM(r.x) FROM line l FULL OUTER JOIN refund r ON r.order_id = l.order_id",
    "SELECT COUNT(*) FROM line l FULL JOIN refund r ON l.order_id = r.order_id WHERE l.order_id IS NULL",
    "SELECT COUNT(*) FROM line l FULL JOIN refund r ON l.order_id = r.order_id WHERE r.x IS NULL OR l.x > r.x",
    "SELECT COUNT(*) FROM customer c FULL JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL",
    "SELECT COUNT(*) FROM customer FULL JOIN orders ON customer_id = customer.id",
    "SELECT COUNT(r.x) FROM refund r FULL JOIN orders o ON o.id = r.order_id JOIN customer c ON c.id = customer_id",
    "SELECT COUNT(*) FROM (SELECT l.x AS a FROM line l FULL JOIN refund r ON l.order_id = r.order_id) t WHERE a > 3",
    "SELECT COUNT(l.x) FROM main.line l JOIN main.orders o ON o.id = l.order_id JOIN customer c ON c.id = customer_id",
    "SELECT main.customer.code, COUNT(*) FROM main.customer WHERE main.customer.code IN ('fr') GROUP BY 1",
    "SELECT COUNT(*) FROM main.country",
]


@pytest.mark.parametrize("sql", FULL)
def test_it_is_answered_as_duckdb_answers_it(sql: str, shop: Any, place: Path) -> None:
    with duckdb.connect(str(place), read_only=True) as connection:
        wanted = connection.execute(sql).fetchall()
    found = shop.query(sql, rho=1e8)
    rounded = [tuple(round(v) if isinstance(v, float) else v for v in row.values()) for row in found.exact]
    assert rounded == [tuple(row) for row in wanted]


REFUSED = {
    "SELECT COUNT(*) FROM customer c FULL JOIN country k ON k.code = c.code": "two protected ones",
    "SELECT COUNT(*) FROM line l FULL JOIN refund r USING (order_id)": "two protected ones",
    "SELECT COUNT(*) FROM line l FULL JOIN refund r ON l.x = r.x": "same",
    "SELECT COUNT(*) FROM line l JOIN orders o ON o.id = l.order_id FULL JOIN refund r ON r.order_id = o.id": "FULL",
    "SELECT COUNT(*) FROM archive.line": "under this name",
    "SELECT COUNT(*) FROM public.line": "under this name",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_mean_something_else_is_refused_with_a_query_that_is_answered(sql: str, shop: Any) -> None:
    with pytest.raises(errors.Refused, match=REFUSED[sql]) as refusal:
        shop.query(sql, rho=1)
    assert refusal.value.nearest is not None
    assert shop.query(refusal.value.nearest, rho=1e6).receipt.cost > 0
