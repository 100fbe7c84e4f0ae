"""Where a declared key says that a person has one row, one is counted: no more noise than that, and never more rows."""

from typing import Any

import pyarrow as pa
import pytest

import mosha
from fuzz import _noise_inputs as noise_inputs
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.budget import Budget
from mosha.tables.databases.database import protect_database
from mosha.tables.sql.parsing import parse
from mosha.tables.sql.query import read_statement
from tests.tables.test_databases import SCHEMA

KEYS = {"customer": "id", "country": "code", "orders": "id"}
TABLES = {
    "country": pa.table({"code": list("abc"), "name": list("ABC")}),
    "customer": pa.table({"id": range(60), "country": list("abc") * 20}),
    "orders": pa.table({"id": range(600), "customer_id": [i % 60 for i in range(600)], "day": [0] * 600}),
    "line": pa.table({"order_id": [i % 600 for i in range(2400)], "amount": [1.0] * 2400, "n": [1] * 2400}),
}
ONE_ROW = [
    "SELECT COUNT(*) AS n FROM customer",
    "SELECT country, COUNT(*) AS n FROM customer WHERE id > 3 GROUP BY country",
    "SELECT name, COUNT(*) AS n FROM customer JOIN country ON country.code = customer.country GROUP BY name",
    "SELECT COUNT(*) AS n FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
    "SELECT AVG(CLAMP(k, 0, 20)) AS m FROM (SELECT customer_id, COUNT(*) AS k FROM orders GROUP BY customer_id) AS t",
    """WITH t AS (SELECT customer_id, COUNT(*) AS k FROM orders GROUP BY customer_id)
    SELECT COUNT(*) AS n FROM customer c JOIN t ON t.customer_id = c.id WHERE k > 2""",
    "SELECT COUNT(DISTINCT id) AS n FROM customer",
    "SELECT COUNT(*) AS n FROM customer a, customer b WHERE a.id = b.id AND a.country = b.country",
]
SEVERAL = [
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(*) AS n FROM customer JOIN orders ON orders.customer_id = customer.id",
    "SELECT COUNT(*) AS n FROM orders JOIN customer ON orders.customer_id = customer.id",
    "SELECT COUNT(*) AS n FROM customer LEFT JOIN orders ON orders.customer_id = customer.id",
    "SELECT COUNT(*) AS n FROM line JOIN orders ON orders.id = line.order_id",
    "SELECT COUNT(*) AS n FROM (SELECT id FROM customer UNION ALL SELECT customer_id FROM orders) AS u",
    "SELECT COUNT(*) AS n FROM (SELECT customer_id, day, COUNT(*) AS k FROM orders GROUP BY customer_id, day) AS t",
]


def declare(keys: Any = KEYS, **person: Any) -> dict[str, Any]:
    tables = {
        name: {**said, "primary_key": keys[name]} if name in keys else said
        for name, said in SCHEMA["tables"].items()  # type: ignore[attr-defined]
    }
    return {"persons": {"customer": {"key": "customer.id", **person}}, "tables": tables}


def open_shop(tables: Any = TABLES, **options: Any) -> Any:
    account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), epsilon=1e6, delta=1e-3)
    return protect_database(tables, schema=declare(**options), account=account)


def find_limits(shop: Any, sql: Any) -> Any:
    question = read_statement(parse(sql, results=True)[0], shop.tables).question
    return question.parts(Budget(epsilon=1, delta=1e-6))[0].limits  # type: ignore[attr-defined]


@pytest.mark.parametrize("person", [{"at_most": 200}, {}, {"groups": 9, "per_group": 9}], ids=repr)
@pytest.mark.parametrize("sql", ONE_ROW)
def test_a_person_counts_for_one_row_where_keys_say_that_there_is_one(sql: Any, person: Any) -> None:
    limits = find_limits(open_shop(**person), sql)
    assert (limits.norm, limits.automatic) == (1, False)


@pytest.mark.parametrize("sql", SEVERAL)
def test_joins_and_other_tables_keep_the_limit_of_the_person(sql: Any) -> None:
    assert find_limits(open_shop(at_most=200), sql).norm == 200


@pytest.mark.parametrize("sql", ONE_ROW[:3])
def test_without_declared_keys_nothing_is_known(sql: Any) -> None:
    assert find_limits(open_shop(at_most=200, keys={}), sql).norm == 200


def test_a_public_table_without_a_key_may_repeat_rows() -> None:
    keys = {name: key for name, key in KEYS.items() if name != "country"}
    assert find_limits(open_shop(at_most=200, keys=keys), ONE_ROW[2]).norm == 200


@pytest.mark.parametrize(("sql", "exact"), [(ONE_ROW[0], 60), (ONE_ROW[3], 60), (ONE_ROW[4], 10), (SEVERAL[1], 600)])
def test_answers_are_those_of_all_rows(sql: Any, exact: int) -> None:
    (row,) = open_shop(at_most=200).query(sql, epsilon=1e4)
    assert next(iter(row.values())) == pytest.approx(exact, abs=5)  # noise of scale 0.02 at most: off by 5 with e^-250


def test_a_key_that_repeats_is_enforced_and_not_believed() -> None:
    """Fifty rows of one person count for one."""
    tables = {**TABLES, "customer": pa.table({"id": [7] * 50 + [8], "country": ["a"] * 51})}
    (row,) = open_shop(tables, at_most=200).query(ONE_ROW[0], epsilon=1e3)
    assert row["n"] == pytest.approx(2, abs=1)  # scale 0.001: off by 1 with e^-1000


def test_a_key_of_columns_that_are_not_there_is_refused() -> None:
    with pytest.raises(mosha.errors.DataError, match="identity"):
        open_shop(keys={"customer": "identity"})
    with pytest.raises(mosha.errors.InvalidParameter, match="primary_key"):
        open_shop(keys={"customer": ["id"]})


def test_explain_says_one_row() -> None:
    said = open_shop(at_most=200).explain(ONE_ROW[0], epsilon=1)
    assert "at most 1" in said
    assert "at most 200" in open_shop(at_most=200).explain(SEVERAL[0], epsilon=1)


FALSE = [
    "SELECT country, COUNT(*) AS n FROM customer GROUP BY country",
    "SELECT COUNT(*) AS n, AVG(CLAMP(id, 0, 9)) AS m FROM customer",
    "SELECT MEDIAN(CLAMP(id, 0, 9)) AS m FROM customer",
    "SELECT COUNT(DISTINCT country) AS n FROM customer",
    """SELECT name, SUM(CASE WHEN id < 5 THEN 1 ELSE 0 END) AS a, COUNT(CASE WHEN id >= 5 THEN 1 END) AS b
    FROM customer JOIN country ON country.code = customer.country GROUP BY name""",
    "SELECT COUNT(*) AS n FROM customer a, customer b WHERE a.id = b.id AND a.country = b.country",
]


@pytest.mark.parametrize("budget", [Budget(epsilon=1, delta=1e-6), Budget(rho=0.5, delta=1e-6)], ids=repr)
@pytest.mark.parametrize("sql", FALSE)
def test_a_person_with_many_rows_under_a_false_key_moves_no_more_than_was_charged(sql: Any, budget: Any) -> None:
    """The keys of persons and of the public table repeat; person 7 comes, with thirty rows."""

    def ask(ids: Any) -> Any:
        named = pa.table({"code": list("aabc"), "name": list("ABCD")})
        people = pa.table({"id": ids, "country": [list("abc")[i % 3] for i in range(len(ids))]})
        engine = DuckDB(threads=1, compiled_from=None)  # which has all groups in one batch
        tables = {**TABLES, "customer": people, "country": named}
        shop = open_shop({name: engine.frame(table) for name, table in tables.items()}, at_most=200)
        return read_statement(parse(sql, results=True)[0], shop.tables).question

    def run(question: Any, listener: Any) -> Any:
        return noise_inputs.run(question, budget, bytes(32), listener)

    used, *_ = noise_inputs.compare(ask([*range(6), *range(6), *[7] * 30]), ask([*range(6), *range(6)]), run, 1)
    assert max(share for kind, share in used.items()) <= 1 + noise_inputs.SLACK
