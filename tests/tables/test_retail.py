"""Twenty questions about a retailer's sales by public dimensions, after TPC-DS: which are answered, and how well."""

from typing import Any

import duckdb
import pytest

import mosha
from mosha import errors
from tests.tables.retail import QUERIES, SAID, make_schema, make_tables

REFUSED = {
    "several half hours at once": "groups by the person",
    "years beside their year before": "groups by the person",
}
RATIOS = {"margin", "revenueratio"}
ANSWERED = [name for name in QUERIES if name not in REFUSED]


@pytest.fixture(scope="module")
def tables() -> Any:
    return make_tables()


@pytest.fixture(scope="module")
def engine(tables: Any) -> Any:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection


@pytest.fixture
def database(tables: Any) -> Any:
    account = mosha.Ledger.memory().account("retail", unit=mosha.Person("customer"), rho=1e15, delta=1e-3)
    return mosha.protect_database(tables, schema=make_schema(), account=account)


def test_at_least_fifteen_of_twenty_questions_are_answered() -> None:
    assert len(QUERIES) == 20
    assert set(REFUSED) < set(QUERIES)
    assert len(ANSWERED) >= 15


@pytest.mark.parametrize("name", ANSWERED)
def test_a_question_is_answered_as_the_engine_answers_it(database: Any, engine: Any, name: Any) -> None:
    rows = engine.execute(QUERIES[name])
    titles = [column[0] for column in rows.description]
    answer = database.query(QUERIES[name], rho=1e8, **SAID.get(name, {}))
    plain = [dict(zip(titles, row, strict=True)) for row in rows.fetchall()]
    expected = {tuple(row[key] for key in answer.keys): row for row in plain}
    assert len(expected) == len(plain)
    bars = answer.error(1 - 1e-13)  # false alarms: 1e-13 a cell, below 1e-10 in all
    matched = 0
    for i, row in enumerate(answer):
        exact = expected.pop(tuple(row[key] for key in answer.keys), None)
        for title in (title for title in row if title not in {*answer.keys, "place"}):
            wanted = None if exact is None else exact[title]
            if wanted is not None:
                assert abs(row[title] - float(wanted)) <= bars[title][i] + 1e-6 * abs(float(wanted))
                matched += 1
            elif title not in RATIOS:  # of a group without rows
                assert abs(row[title]) <= bars[title][i] + 1e-6
    assert matched
    assert not expected


@pytest.mark.parametrize("name", REFUSED)
def test_a_question_that_is_not_answered_names_one_that_is_and_costs_nothing(database: Any, name: Any) -> None:
    with pytest.raises(errors.Refused, match=REFUSED[name]) as refusal:
        database.query(QUERIES[name], rho=1)
    assert database["store_sales"].account.spent == 0
    assert database.query(refusal.value.nearest, rho=1).receipt.cost > 0


def test_written_numbers_are_put_together_in_lists_and_are_keys(database: Any) -> None:
    sql = (
        "SELECT d_year, COUNT(*) AS n FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE {} GROUP BY 1"
    )
    listed = database.query(sql.format("d_year IN (1999, 1999 + 1, 2 * 1000 + 1)"), rho=1)
    assert [row["d_year"] for row in listed] == [1999, 2000, 2001]
    assert [row["d_year"] for row in database.query(sql.format("d_year = 1998 + 1"), rho=1)] == [1999]
    with pytest.raises(errors.Refused, match="constant"):
        database.query(sql.format("d_year IN (1999, d_moy + 1)"), rho=1)
