"""The 22 questions of TPC-H with customers protected: which are answered, and how well."""

from typing import Any

import duckdb
import pytest

import mosha
from mosha import errors
from tests.tables.wholesale import QUERIES, SAID, make_schema, make_tables

ANSWERED = {1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 19, 21, 22}
PUBLIC = {2, 11, 16}
REFUSED = {
    3: "one person each",
    10: "one person each",
    15: "groups by the person",
    17: "groups by the person",
    18: "one person each",
    20: "groups by the person",
}


@pytest.fixture(scope="module")
def tables() -> Any:
    return make_tables()


@pytest.fixture
def database(tables: Any) -> Any:
    account = mosha.Ledger.memory().account("wholesale", unit=mosha.Person("customer"), rho=1e15, delta=1e-3)
    return mosha.protect_database(tables, schema=make_schema(tables), account=account)


def test_every_question_is_answered_or_refused() -> None:
    assert ANSWERED | PUBLIC | set(REFUSED) == set(QUERIES)
    assert len(ANSWERED | PUBLIC) >= 16


def ask_plainly(tables: Any, sql: Any) -> Any:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection.execute(sql).fetchall()


@pytest.mark.parametrize("number", sorted(PUBLIC))
def test_a_question_about_public_tables_alone_is_answered_exactly_and_free(
    database: Any, tables: Any, number: Any
) -> None:
    answer = database.query(QUERIES[number])
    plain = ask_plainly(tables, QUERIES[number])
    found = [tuple(row.values()) for row in answer]
    assert plain
    assert len(found) == len(plain)
    for mine, theirs in zip(found, plain, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9) if isinstance(mine[-1], float) else mine == theirs
    assert answer.public
    assert answer.receipt.cost == 0
    assert "public" in answer.notes[0]
    assert database["orders"].account.spent == 0


@pytest.mark.parametrize("number", sorted(ANSWERED))
def test_a_question_is_answered_as_the_engine_answers_it(database: Any, tables: Any, number: Any) -> None:
    plain = ask_plainly(tables, QUERIES[number])
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
def test_a_question_that_cannot_be_answered_is_refused_unpaid(database: Any, number: Any) -> None:
    with pytest.raises(errors.Refused, match=REFUSED[number]) as refusal:
        database.query(QUERIES[number], rho=1, delta=1e-6)
    assert database["orders"].account.spent == 0
    nearest = refusal.value.nearest
    assert " COUNT(*) " not in nearest  # it asks for what the question asks for
    assert database.query(nearest, rho=1, delta=1e-6).receipt.cost > 0


def test_a_number_about_all_people_is_asked_and_paid_first(database: Any) -> None:
    account = database["orders"].account
    answer = database.query(QUERIES[22], rho=1e8, **SAID[22])  # type: ignore[index]
    assert account.spent == pytest.approx(1e8)
    assert answer.receipt.cost == pytest.approx(1e8)
    assert "SELECT AVG(c_acctbal)" in answer.notes[0]
    said = database.explain(QUERIES[22], rho=1, **SAID[22])  # type: ignore[index]
    assert "asked first" in said
    assert account.spent == pytest.approx(1e8)


def test_several_questions_are_paid_together_or_not_at_all(tables: Any) -> None:
    account = mosha.Ledger.memory().account("wholesale", unit=mosha.Person("customer"), epsilon=1)
    shop = mosha.protect_database(tables, schema=make_schema(tables), account=account)
    with pytest.raises(errors.Refused, match="cannot pay for all"):
        shop.query(QUERIES[22], epsilon=1.5, **SAID[22])  # type: ignore[index]
    with pytest.raises(errors.Refused, match="several questions"):
        shop.query(QUERIES[22], within=5.0, **SAID[22])  # type: ignore[index]
    assert account.spent == 0
    shop.query(QUERIES[22], epsilon=1, **SAID[22])  # type: ignore[index]
    assert account.spent == pytest.approx(1)


def test_a_number_that_is_asked_first_is_explained_with_the_paths_of_both_questions(database: Any) -> None:
    said = database.explain(QUERIES[22], rho=1, **SAID[22])  # type: ignore[index]
    assert said.count("a row of orders belongs to the customer that orders.o_custkey leads to") == 1
    assert said.count("a row of customer belongs to the customer") == 1


JOINS = {
    "SELECT COUNT(*) FROM lineitem l JOIN orders o ON l.l_partkey = o.o_orderkey": (
        "SELECT COUNT(*) FROM lineitem AS l JOIN orders AS o ON l.l_orderkey = o.o_orderkey"
    ),
    "SELECT COUNT(*) FROM customer c, orders o WHERE c.c_nationkey = o.o_shippriority": (
        "SELECT COUNT(*) FROM customer AS c JOIN orders AS o ON c.c_custkey = o.o_custkey "
        "WHERE c.c_nationkey = o.o_shippriority"
    ),
    "SELECT COUNT(*) FROM customer LEFT JOIN lineitem ON c_nationkey = l_partkey": "SELECT COUNT(*) FROM customer",
}


@pytest.mark.parametrize("sql", JOINS)
def test_a_join_that_mixes_people_is_refused_with_the_keys_on_which_it_is_answered(database: Any, sql: Any) -> None:
    with pytest.raises(errors.Refused) as refusal:
        database.query(sql, rho=1)
    assert refusal.value.nearest == JOINS[sql]
    assert "person of" not in str(refusal.value)  # a name of the plan, which no query may say
    assert database.query(refusal.value.nearest, rho=1).receipt.cost > 0


def test_a_subquery_groups_by_the_name_that_it_gives_a_column(database: Any) -> None:
    named = "SELECT AVG(n) AS a FROM (SELECT c_custkey AS who, COUNT(*) AS n FROM customer GROUP BY {}) AS t"
    answers = [database.query(named.format(key), rho=1e8).exact for key in ("who", "c_custkey")]
    assert [answer["a"][0] for answer in answers] == pytest.approx([1.0, 1.0], abs=0.1)
    sales = "SELECT l_suppkey AS maker, SUM(l_quantity) AS sold FROM lineitem GROUP BY maker"
    with pytest.raises(errors.Refused, match=REFUSED[15]) as refusal:
        database.query(f"WITH t AS ({sales}) SELECT s_name, sold FROM supplier, t WHERE maker = s_suppkey", rho=1)
    assert refusal.value.nearest == sales


HIDDEN = [
    "SELECT * FROM customer, (WITH customer AS (SELECT n_name FROM nation) SELECT * FROM customer) AS x",
    "SELECT c_name FROM (WITH customer AS (SELECT n_name FROM nation) SELECT * FROM customer) AS x CROSS JOIN customer",
    "WITH nation AS (SELECT * FROM customer) SELECT c_name FROM nation",
    "SELECT n_name FROM nation WHERE n_nationkey IN (SELECT c_nationkey FROM customer)",
    "SELECT n_name, (SELECT MAX(c_name) FROM customer WHERE c_nationkey = n_nationkey) AS m FROM nation",
]


@pytest.mark.parametrize("sql", HIDDEN)
def test_no_row_of_a_person_is_shown_as_public(database: Any, sql: Any) -> None:
    with pytest.raises(errors.MoshaError):
        database.query(sql, rho=1, delta=1e-6)
    assert database["orders"].account.spent == 0
