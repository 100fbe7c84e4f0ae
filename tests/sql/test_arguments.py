"""Whatever stands in a query is read or refused, never passed over; what is read means what SQL says."""

import math
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

import mosha
from mosha.core.errors import InvalidParameter, Refused
from mosha.sql import query
from mosha.tables.sql import aggregate, output, scalar
from mosha.tables.sql.parsing import READ, check_arguments

HANDLED = {*scalar._BINARY, *scalar._UNARY, *scalar._SPECIAL, *aggregate.AGGREGATES, *output._KINDS}


def test_every_kind_of_sql_that_is_handled_says_what_is_read_of_it() -> None:
    assert HANDLED - set(READ) == set()
    for kind, read in READ.items():
        assert set(read) <= set(kind.arg_types), kind.__name__


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.__name__)
def test_an_argument_that_nobody_reads_is_refused(kind: Any) -> None:
    for name in set(kind.arg_types) - set(READ[kind]):
        node = kind(this=exp.column("x"))
        node.args[name] = exp.Literal.number(1)
        with pytest.raises(Refused):
            check_arguments(node)


UNREAD = [
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B') GROUP BY ward LIMIT 50%",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B') GROUP BY ward LIMIT 50 PERCENT",
    "SELECT COUNT(*) FROM visits WHERE CEIL(days, 2) > 1",
    "SELECT COUNT(*) FROM visits WHERE TRIM(BOTH 'x' FROM ward) = 'A'",
    "SELECT COUNT(*) FROM (SELECT * EXCLUDE (age) FROM visits) AS v",
    "SELECT COUNT(*) FROM (SELECT * REPLACE (1 AS age) FROM visits) AS v",
    "SELECT COUNT(*) FROM visits AS v(a, b, c, d, e, f)",
    "SELECT MAX(CLAMP(age, 0, 100), 3) FROM visits",
]


@pytest.mark.parametrize("sql", UNREAD)
def test_a_query_with_something_unread_is_refused_and_costs_nothing(tables: Any, sql: Any) -> None:
    account = tables["visits"].account
    before = account.spent
    with pytest.raises((Refused, InvalidParameter)):
        query(sql, rho=1, **tables)
    assert account.spent == before


MEANINGS = [
    "COUNT(*) FILTER (WHERE age BETWEEN SYMMETRIC 60 AND 30)",
    "COUNT(*) FILTER (WHERE age BETWEEN SYMMETRIC 30 AND 60)",
    "COUNT(*) FILTER (WHERE NOT age BETWEEN SYMMETRIC 60 AND 30)",
    "COUNT(*) FILTER (WHERE ward NOT LIKE 'A%')",
    "COUNT(*) FILTER (WHERE ward NOT ILIKE 'a%')",
    "COUNT(*) FILTER (WHERE days IS NOT NULL)",
    "COUNT(*) FILTER (WHERE (age > 40) IS NOT TRUE)",
    "COUNT(*) FILTER (WHERE age NOT IN (20, 30))",
    "COUNT(*) FILTER (WHERE CONCAT(ward, NULL) = 'A')",
    "COUNT(*) FILTER (WHERE CONCAT(ward, CASE WHEN age > 50 THEN 'x' END) = 'B')",
    "COUNT(*) FILTER (WHERE (ward || CASE WHEN age > 50 THEN 'x' END) IS NULL)",
    "COUNT(*) FILTER (WHERE CASE WHEN age > 50 THEN 'É' ELSE 'é1' END ILIKE 'É%')",
    "COUNT(*) FILTER (WHERE CASE WHEN age > 50 THEN 'ÉA' ELSE 'e' END ILIKE 'é%')",
    "COUNT(*) FILTER (WHERE ROUND(age / 2) = 26)",
    "COUNT(*) FILTER (WHERE ROUND(-age / 2) = -26)",
    "COUNT(*) FILTER (WHERE ROUND(age, -1) = 50)",
    "COUNT(*) FILTER (WHERE ROUND(-2.5 + age * 0) = -3)",
    "COUNT(*) FILTER (WHERE CAST(age / 8 AS DECIMAL(5, 1)) = 6.3)",
    "COUNT(*) FILTER (WHERE CAST(age / 8 AS DECIMAL) = 6.375)",
    "COUNT(*) FILTER (WHERE SUBSTRING(ward, 1, 2147483647) = 'A')",
    "SUM(CLAMP(age, 5, 5))",
    "SUM(CLAMP(age, 0, 0))",
    "SUM(CLAMP(age, -3, -3))",
    "SUM(LEAST(GREATEST(age, 7), 7))",
]


@pytest.mark.parametrize("sql", MEANINGS)
def test_sql_means_what_the_database_means(tables: Any, database: Any, sql: Any) -> None:
    found = query(f"SELECT {sql} AS x FROM visits", rho=1e6, **tables).value  # type: ignore[union-attr]
    said = sql.replace("SYMMETRIC 60 AND 30", "30 AND 60").replace("SYMMETRIC", "")  # which DuckDB itself does not know
    [(expected,)] = database.execute(f"SELECT {said} FROM visits").fetchall()
    assert abs(found - float(expected)) < 0.4


RESULTS = [
    ("ROUND(-2.5)", -3), ("ROUND(2.5)", 3), ("ROUND(0.125, 2)", 0.13), ("ROUND(-1250, -2)", -1300),
    ("CAST(2.675 AS DECIMAL(5, 1))", 2.7), ("CAST(-2.5 AS INTEGER)", -3), ("CAST(123456 AS DECIMAL(5, 1))", None),
    ("2 BETWEEN SYMMETRIC 3 AND 1", True), ("2 BETWEEN 3 AND 1", False),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), RESULTS)
def test_results_are_rounded_as_rows_are(sql: Any, expected: Any) -> None:
    assert output.evaluate(sqlglot.parse_one(sql, dialect="duckdb"), {})[0] == expected  # type: ignore[arg-type]


NUMBERS = ["-100000", "-2.5", "-1", "0", "0.5", "2", "16", "NULL"]
TRUTHS = ["TRUE", "FALSE", "NULL"]
OF_RESULTS = [
    *(f"{name}({n})" for name in ("SQRT", "ABS", "FLOOR", "CEIL", "LN", "ROUND") for n in NUMBERS),
    *(f"POWER({n}, 3)" for n in NUMBERS),
    *(f"CAST({n} AS {kind})" for kind in ("INTEGER", "DOUBLE", "DECIMAL(5, 1)") for n in NUMBERS),
    *(f"{a} {sign} {b}" for sign in ("+", "/", "<", "=", "<>") for a in NUMBERS for b in ("-1", "0", "2", "NULL")),
    *(f"{f}({a}, {b})" for f in ("LEAST", "GREATEST", "COALESCE", "NULLIF") for a in NUMBERS for b in ("2", "NULL")),
    *(f"NOT ({a} {word} {b})" for word in ("AND", "OR") for a in TRUTHS for b in TRUTHS),
    *(f"NOT ({a} {word} ({b} IS NULL))" for word in ("AND", "OR") for a in TRUTHS for b in TRUTHS),
    *(f"NOT ({n} IN ({items}))" for n in ("2", "3", "NULL") for items in ("2, 4", "2, NULL", "NULL")),
    *(f"NOT ({n} BETWEEN {a} AND {b})" for n in ("2", "NULL") for a in ("1", "3", "NULL") for b in ("1", "3", "NULL")),
    *(f"CASE WHEN {t} THEN 1 WHEN {u} THEN 2 END" for t in TRUTHS for u in TRUTHS),
    *(f"CASE {n} WHEN 2 THEN 'a' ELSE 'b' END" for n in NUMBERS),
]  # fmt: skip


def test_functions_of_results_mean_what_the_database_means(database: Any) -> None:
    """Where the database says infinity, no number or an error, there is nothing, as for rows."""
    wrong = []
    for sql in OF_RESULTS:
        [(expected,)] = database.execute(f"SELECT TRY({sql})").fetchall()
        if isinstance(expected, float) and not math.isfinite(expected):
            expected = None
        found = output.evaluate(sqlglot.parse_one(sql, dialect="duckdb"), {})[0]  # type: ignore[arg-type]
        same = found == expected or (None not in (found, expected) and found == pytest.approx(float(expected)))
        wrong += [] if same else [(sql, found, expected)]
    assert not wrong


def test_nulls_come_last_unless_they_are_wanted_first(tables: Any) -> None:
    asked = "SELECT ward, NULLIF(ward, 'A') AS other, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B') GROUP BY ward"
    assert [row["ward"] for row in query(asked + " ORDER BY other", rho=1e6, **tables)] == ["B", "A"]  # type: ignore[index]
    assert [row["ward"] for row in query(asked + " ORDER BY other DESC", rho=1e6, **tables)] == ["B", "A"]  # type: ignore[index]
    assert [row["ward"] for row in query(asked + " ORDER BY other NULLS FIRST", rho=1e6, **tables)] == ["A", "B"]  # type: ignore[index]


SCHEMA = {"id": "integer", "name": "text", "load": "integer"}
ORACLES = [
    "SELECT COUNT(*) FROM t WHERE CASE WHEN {} THEN SUBSTRING(name, 1, 4294967296) = '' ELSE FALSE END",
    "SELECT COUNT(*) FROM t WHERE CASE WHEN {} THEN SUBSTRING(name, 2147483648, 1) = '' ELSE FALSE END",
    "SELECT COUNT(*) FROM t WHERE BIN(CASE WHEN {} THEN 4611686018427387909 ELSE 0 END, 9223372036854775807) = 0",
]


@pytest.mark.parametrize("sql", ORACLES)
def test_no_query_fails_for_one_person_alone(tmp_path: Path, sql: Any) -> None:
    """A row that makes a question fail is told by the failure, whatever the price."""
    (tmp_path / "t.csv").write_text(
        "id,name,load\n" + "\n".join(f"{i},n{i},{i}" for i in range(50)) + "\n99,Alice,83\n"
    )
    unit = mosha.Person("id", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1)
    table = mosha.protect(tmp_path / "t.csv", unit=unit, account=account, schema=SCHEMA)
    for condition in ("name = 'Alice' AND load >= 50", "name = 'Alice' AND load >= 90"):
        with pytest.raises(InvalidParameter, match="whole number from"):
            mosha.query(sql.format(condition), t=table, epsilon=1e-6)
    assert account.remaining == 1


def test_text_that_doubles_for_one_person_fails_for_nobody(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name\n" + "\n".join(f"{i},n{i}" for i in range(50)) + "\n99,Alice\n")
    unit = mosha.Person("id", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1e9)
    table = mosha.protect(tmp_path / "t.csv", unit=unit, account=account)
    inner = "SELECT CASE WHEN name = 'Alice' THEN 'aaaaaaaaaa' ELSE '' END AS x FROM t"
    for i in range(9):
        inner = f"SELECT CONCAT({', '.join(['x'] * 8)}) AS x FROM ({inner}) AS s{i}"
    doubled = mosha.query(f"SELECT COUNT(*) FROM ({inner}) AS s WHERE LENGTH(x) = 0", t=table, epsilon=100)
    assert abs(doubled.value - 50) < 1.5  # type: ignore[union-attr]
