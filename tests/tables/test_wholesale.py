"""Questions after the 22 of TPC-H, some shortened, with customers protected: which are answered, and how well."""

import duckdb
import pytest

import mosha
from mosha import errors
from tests.tables.wholesale import QUERIES, SAID, make_schema, make_tables

ANSWERED = {1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 19, 21}
REFUSED = {
    2: "ON or USING",
    3: "one person each",
    10: "one person each",
    11: "public tables alone",
    15: "groups by the person",
    16: "public tables alone",
    17: "groups by the person",
    18: "one person each",
    20: "groups by the person",
    22: "private too",
}


@pytest.fixture(scope="module")
def tables():
    return make_tables()


@pytest.fixture
def database(tables):
    account = mosha.Ledger.memory().account("wholesale", unit=mosha.Person("customer"), rho=1e15, delta=1e-3)
    return mosha.protect_database(tables, schema=make_schema(tables), account=account)


def test_every_question_is_answered_or_refused():
    assert ANSWERED | set(REFUSED) == set(QUERIES)


@pytest.mark.parametrize("number", sorted(ANSWERED))
def test_a_question_is_answered_as_the_engine_answers_it(database, tables, number):
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    plain = connection.execute(QUERIES[number]).fetchall()
    answer = database.query(QUERIES[number], rho=1e8, **SAID.get(number, {}))
    names = len(answer.keys)
    bars = answer.error(1 - 1e-13)  # false alarms: 1e-13 a cell, below 1e-10 in all
    columns = [name for name in next(iter(answer)) if name not in answer.keys]
    expected = {row[:names]: row[names:] for row in plain}
    for i, row in enumerate(answer):
        exact = expected.pop(tuple(row.values())[:names], None)
        for place, column in enumerate(columns):
            wanted = 0.0 if exact is None else float(exact[place])
            assert abs(row[column] - wanted) <= bars[column][i] + 1e-6 * abs(wanted)
    assert not expected


@pytest.mark.parametrize("number", sorted(REFUSED))
def test_a_question_that_cannot_be_answered_is_refused_unpaid(database, number):
    with pytest.raises(errors.MoshaError, match=REFUSED[number]):
        database.query(QUERIES[number], rho=1, delta=1e-6)
    assert database["orders"].account.spent == 0
