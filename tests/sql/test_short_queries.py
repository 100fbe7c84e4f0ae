"""A short query never takes hours: what is written once and read in many places is counted before it is written out.

A web server checks a question while others wait, so this holds before payment too, and for previews.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import mosha
from mosha import col
from mosha.connect.language.limits import LARGEST_EXPRESSION
from mosha.core.errors import MoshaError
from mosha.tables.functions.text_functions import TEXT_FUNCTIONS
from mosha.tables.sql import scalar
from mosha.tables.sql.parsing import read_statements
from mosha.tables.sql.scope import Scope
from mosha.tables.sql.spellings import reading, respell
from tests.sql.test_functions_against_duckdb import SCHEMA

RELATION: Any = type("Relation", (), {"schema": SCHEMA})
SCOPE = Scope(RELATION, {"": {name: name for name in SCHEMA}}, None)
SECONDS = 20.0  # of CPU; the worst of these takes two on a slow machine, and took days
NESTED = {
    "x": [
        *["POWER({}, 8)", "POWER({}, -8)", "POWER({}, 0)", "POWER({}, 1.5)", "POWER(2, {})", "CBRT({})"],
        *["SQRT({})", "TRUNC({})", "SIGN({})", "ABS({})", "FLOOR({})", "CEIL({})", "-({})", "({})", "EXP({})"],
        "LN({})",
        "LOG2({})",
        *["ROUND({}, 1)", "GREATEST({}, 1)", "LEAST(({}) + 1, y)", "CLAMP({}, 0, 1)", "BIN({}, 2)", "NULLIF({}, y)"],
        *["COALESCE({}, y)", "IF(({}) > 1, ({}), ({}) + 1)", "CASE WHEN ({}) > 1 THEN ({}) ELSE 2 END", "({}) + ({})"],
        *["({}) - ({})", "({}) * ({})", "({}) / ({})", "CAST({} AS DOUBLE)", "TRY_CAST({} AS DECIMAL(9, 2))"],
        *["LEAST(GREATEST({}, 0), 9)", "LENGTH(LPAD(CAST(CAST({} AS BIGINT) AS TEXT), 32))"],
    ],
    "i": ["({}) % 7", "({}) // 7", "MOD({}, 3)"],
    "b": [
        *["({}) IS DISTINCT FROM b", "({}) IS NOT DISTINCT FROM NULL", "({}) = ({})", "({}) <> ({})", "NOT ({})"],
        *["({}) AND ({})", "({}) OR ({})", "({}) IS TRUE", "({}) IS NULL", "({}) IN (TRUE)"],
        "(({}), b) IN ((TRUE, TRUE))",
        *["IF({}, 1, 2) BETWEEN SYMMETRIC 2 AND 1", "IF({}, x, y) < IF({}, y, x)", "IF({}, x, y) <= 2"],
        *["IF({}, x, y) > 2", "IF({}, x, y) >= 2", "IF({}, 'a', t) ~ '(a|b|c)(d|e|f)'", "IF({}, 'a', t) ILIKE 'a%'"],
        *["IF({}, t, s) SIMILAR TO 'a|b|c'", "STARTS_WITH(IF({}, t, s), 'a')", "CONTAINS(IF({}, t, s), 'a')"],
        *["ENDS_WITH(IF({}, t, s), 'a')", "IF({}, t, s) LIKE 'a%'", "POSITION('a' IN IF({}, t, s)) = 1"],
        "REGEXP_ILIKE(IF({}, t, s), 'a')",
    ],
    "t": [
        *["LPAD({}, 32, '-')", "RPAD({}, 32)", "LEFT({}, 9)", "RIGHT({}, 9)", "SUBSTRING({}, 2)"],
        *["TRIM({})", "LTRIM({})", "LOWER({})", "UPPER({})", "REPLACE({}, 'a', 'b')", "SPLIT_PART({}, 'a', 1)"],
        *["CONCAT({}, {})", "({}) || ({})"],
    ],
    "d": [
        *["LAST_DAY({})", "({}) + 3", "({}) + INTERVAL 1 MONTH", "DATE_TRUNC('week', {})", "CAST({} AS DATE)"],
        *["CAST(STRFTIME({}, '%Y-%m-%d') AS DATE)", "CAST(MONTHNAME({}) AS DATE)", "CAST(DAYNAME({}) AS DATE)"],
        *[f"d + CAST({part}({{}}) AS BIGINT)" for part in ("YEAR", "QUARTER", "MONTH", "DAY")],
        *[f"IF(EXTRACT({part} FROM ({{}})) = 1, d, e)" for part in ("DOW", "ISODOW", "DOY", "WEEK")],
        *["IF(DATEDIFF('quarter', {}, d) = 1, d, e)", "IF(WEEKOFYEAR({}) = 1, d, e)", "IF(DAYOFYEAR({}) = 1, d, e)"],
        *["IF(ISODOW({}) = 1, d, e)", "DATE({})"],
    ],
    "w": ["IF(HOUR({}) = 1, w, d)", "IF(MINUTE({}) = 1, w, d)", "DATE_TRUNC('hour', {})", "TIMESTAMP_TRUNC({}, HOUR)"],
}  # fmt: skip
PAIRS = [(base, template) for base, templates in NESTED.items() for template in templates]


def took(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def nested(base: str, template: str) -> Iterator[str]:
    """A function in itself; where it names itself several times, the text itself grows, and ends at 5,000 letters."""
    text = base
    for _ in range(24):
        text = template.format(*[text] * template.count("{}"))
        if len(text) > 5_000:
            return
        yield text


@pytest.mark.parametrize(("base", "template"), PAIRS)
def test_a_function_of_itself_of_itself_is_small_or_refused_at_once(base: str, template: str) -> None:
    def read_all() -> None:
        for text in nested(base, template):
            try:
                with reading():
                    size = scalar.scalar(respell(read_statements(text)[0]), SCOPE).size
            except MoshaError:
                return
            assert size <= LARGEST_EXPRESSION

    assert took(read_all) < SECONDS


def test_every_function_of_rows_is_nested_in_itself_somewhere() -> None:
    tried = {type(part) for base, template in PAIRS for part in sqlglot.parse_one(
        template.format(*[base] * template.count("{}")), dialect="duckdb").walk()}  # fmt: skip
    tried |= {exp.RegexpILike, exp.DateTrunc}  # which other names and dialects write; the same as ~* and the above
    known = {*scalar._UNARY, *scalar._SPECIAL, *scalar._BINARY, *scalar._CONNECTIVES, *TEXT_FUNCTIONS}
    names = {exp.Column, exp.Literal, exp.Boolean, exp.Null}
    assert known - tried - names == set()


@pytest.fixture
def table() -> Any:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("id", at_most=2), epsilon=9)
    rows = {"id": [1, 2], "x": [1.5, 2.5], "t": ["a", "b"]}
    return mosha.protect(pa.table(rows), unit=mosha.Person("id", at_most=2), account=account)


def pairs_of(step: str, times: int) -> str:
    text = "WITH a0 AS (SELECT id, x, t FROM v)"
    for place in range(times):
        text += f", a{place + 1} AS ({step.format(place=place, last=f'a{place}')})"
    return f"{text} SELECT COUNT(*) AS n FROM a{times}"


SHORT = [
    "SELECT COUNT(*) AS n FROM v WHERE " + "LPAD(" * 5 + "t" + ", 32)" * 5 + " = 'a'",
    "SELECT COUNT(*) AS n FROM v WHERE " + "TRUNC(" * 11 + "x" + ")" * 11 + " = 1",
    "SELECT AVG(CLAMP(" + "POWER(" * 7 + "x" + ", 8)" * 7 + ", 0, 1)) AS n FROM v",
    "SELECT " + ", ".join(f"MEDIAN(CLAMP({'TRUNC(' * 6}x + {i}{')' * 6}, 0, 9))" for i in range(40)) + " FROM v",
    pairs_of("SELECT p.id, p.x + q.x AS x FROM {last} p JOIN {last} q ON p.id = q.id", 30),
    pairs_of("SELECT id, x FROM {last} WHERE id IN (SELECT id FROM {last} WHERE x > {place})", 30),
    pairs_of("SELECT id, x FROM {last} UNION ALL SELECT id, x FROM {last}", 30),
]


@pytest.mark.parametrize("sql", SHORT)
def test_a_short_query_that_would_be_long_is_refused_unpaid(table: Any, sql: str) -> None:
    def ask() -> None:
        with pytest.raises(MoshaError, match=r"compute a part of it|too large"):
            mosha.query(sql, v=table, epsilon=1)

    assert took(ask) < SECONDS
    assert table.account.spent == table.account.failures == 0


def test_products_with_themselves_are_refused_in_python_too() -> None:
    def multiply() -> None:
        x: Any = col("x")
        for _ in range(40):
            x = x * x

    with pytest.raises(MoshaError, match="8192 operators"):
        multiply()


@pytest.mark.parametrize(
    "word", ["DATE({})", "DECIMAL({}, 1)", "VARCHAR({})[1]", "ARRAY[{}]", "STRUCT({})[1]", "INT(x, {})"]
)
def test_the_parser_reads_no_word_twice_and_twice_again(table: Any, word: str) -> None:
    """What stands behind the name of a type is read as its size first: 40 of them would be read 2**40 times."""
    text = "x"
    for _ in range(40):
        text = word.format(text)

    def ask() -> None:
        with pytest.raises(MoshaError):
            mosha.query(f"SELECT COUNT(*) AS n FROM v WHERE {text} = 1", v=table, epsilon=1)

    assert took(ask) < SECONDS
    few = "CAST(DATE(DATE(DATE(t))) AS DATE) = DATE('2024-01-01') AND x > CAST(x AS DECIMAL(9, 2))"
    assert mosha.query(f"SELECT COUNT(*) AS n FROM v WHERE {few}", v=table, epsilon=1)
    assert table.account.failures == 0


ODD = ["MAX()", "MIN()", "MODE()", "MATCH_AGAINST(x, 1)", "VAR_MAP(x)", "SUM()", "LOG()", "SPLIT_PART(t)", "LPAD()"]


@pytest.mark.parametrize("text", ODD)
def test_a_function_without_its_arguments_is_refused_by_a_typed_error(table: Any, text: str) -> None:
    for sql in (f"SELECT {text} AS n FROM v", f"SELECT COUNT(*) AS n FROM v WHERE {text} = 1"):
        with pytest.raises(MoshaError):
            mosha.query(sql, v=table, epsilon=1)
        with pytest.raises(MoshaError):
            mosha.sql.explain(sql, v=table, epsilon=1)
    assert table.account.spent == 0
