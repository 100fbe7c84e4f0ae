"""Other ways to write a query, and functions put together from others: they mean what DuckDB takes them for."""

from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha
from mosha import errors

DAYS = [
    date(year, month, day) + timedelta(days=step)
    for year in (2015, 2020, 2021, 2024, 2026)
    for month, day in ((1, 1), (2, 27), (6, 30), (12, 29))
    for step in range(4)
]
ROWS: dict[str, list[Any]] = {
    "d": DAYS * 3,
    "e": [day + timedelta(days=17 * place - 400) for place, day in enumerate(DAYS)] * 3,
    "t": [datetime(day.year, day.month, day.day, place % 24, place % 60) for place, day in enumerate(DAYS)] * 3,  # noqa: DTZ001
    "x": [None if place == 5 else (place - 40) / 4 for place in range(len(DAYS))] * 3,
    "i": [place % 7 - 3 for place in range(len(DAYS))] * 3,
    "s": ["ab", "b", "bab", "c"] * (len(DAYS) * 3 // 4),
}
VALUES = [
    "GREATEST(d, DATE '2021-01-01')",
    "EXTRACT(DOW FROM d)", "EXTRACT(DOY FROM d)", "EXTRACT(WEEK FROM d)", "DAYOFYEAR(t)", "WEEKOFYEAR(t)",
    "DATE_PART('month', d)", "DATEDIFF('month', d, e)", "DATEDIFF('quarter', d, e)",
    "DATEDIFF('year', d, e)", "STRFTIME(d, '%Y-%m')", "STRFTIME(t, '%d.%m.%Y %H:%M')", "STRFTIME(d, '%j')", "d + 3",
    "d - 40", "DATE_ADD(d, INTERVAL 1 MONTH)", "SIGN(x)", "SIGN(i)", "TRUNC(x)", "GREATEST(i, 1)", "GREATEST(0, i)",
    "LEAST(i, 1)", "ENDS_WITH(s, 'b')", "SUFFIX(s, 'ab')", "CASE WHEN (i, s) IN ((1, 'b'), (2, 'c')) THEN 1 ELSE 0 END",
    "CASE WHEN i = ANY(ARRAY[1, 2]) THEN 1 ELSE 0 END",
    "ROUND(LN(ABS(x) + 1), 3)", "ROUND(LOG(ABS(i) + 1), 3)", "LOG2(8 + i * 0)", "ROUND(EXP(i), 3)", "i // 2",
    "ROUND(CBRT(i), 3)", "ROUND(POWER(1.5, i), 3)", "ROUND(POWER(ABS(x), 0.3), 3)", "RIGHT(s, 2)", "LPAD(s, 2, '-')",
    "SPLIT_PART(s, 'a', 2)", "LTRIM(' ' || s)",
    "RTRIM(s || ' ')", "SUBSTRING(s, 2)", "REGEXP_MATCHES(s, '^(a|c)')", "LAST_DAY(d)", "MONTHNAME(d)",
    "DATEDIFF('hour', TIMESTAMP '2020-03-01 05:30:00', t)", "DATEDIFF('minute', t, TIMESTAMP '2024-06-30 23:59:59')",
    "CASE WHEN (i > 0) = 1 THEN 'yes' ELSE 'no' END", "CASE WHEN i IN ('1', '-3') OR x > '2.5' THEN 1 ELSE 0 END",
    "DAYNAME(t)", "GREATEST(i, 0 - i)", "LEAST(d, e)", "CASE WHEN x IS DISTINCT FROM -10 THEN 1 ELSE 0 END",
]  # fmt: skip
QUERIES = [
    "SELECT s, COUNT(*) AS n FROM v GROUP BY ALL ORDER BY s",
    "SELECT i, s, COUNT(*) AS n FROM v GROUP BY ALL ORDER BY i, s",
    "SELECT s, COUNT(*) AS n FROM v GROUP BY s ORDER BY s LIMIT 1 OFFSET 1",
    "SELECT s, COUNT(*) AS n FROM v GROUP BY s ORDER BY s OFFSET 2",
    "SELECT s, COUNT(*) AS n FROM v GROUP BY s ORDER BY s FETCH FIRST 2 ROWS ONLY",
    "SELECT m, COUNT(*) AS n FROM (SELECT i + 1 AS m FROM v) GROUP BY m ORDER BY m",
    "SELECT m, COUNT(*) AS n FROM (SELECT i AS m FROM v UNION ALL SELECT i + 1 FROM v) AS u GROUP BY m ORDER BY m",
    "SELECT k, COUNT(*) n FROM (SELECT 'a' AS k FROM v UNION ALL SELECT 'b' FROM v WHERE i > 0) GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM v WHERE d > DATE '2020-01-01' + 30",
    "SELECT s, COUNT(*) AS n FROM v GROUP BY s UNION ALL SELECT 'all', COUNT(*) FROM v ORDER BY 1 LIMIT 3",
    "WITH w AS (SELECT * FROM v WHERE i > 0) SELECT COUNT(*) AS n FROM w UNION ALL SELECT COUNT(*) FROM v ORDER BY 1",
]
WINDOWS = [
    "LAG(n) OVER (ORDER BY i)", "LEAD(n, 2) OVER (ORDER BY i)", "n - LAG(n) OVER (ORDER BY i DESC)",
    "FIRST_VALUE(n) OVER (ORDER BY i)", "LAST_VALUE(n) OVER (ORDER BY i)", "NTILE(3) OVER (ORDER BY i)",
    "NTILE(20) OVER (ORDER BY i)", "PERCENT_RANK() OVER (ORDER BY i)", "CUME_DIST() OVER (ORDER BY abs(i))",
    "SUM(n) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "SUM(n) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)", "SUM(n) OVER (ORDER BY i ROWS 2 PRECEDING)",
    "AVG(n) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "MAX(n) OVER (PARTITION BY abs(i) ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "LAST_VALUE(n) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "COUNT(*) OVER (ORDER BY i RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
]  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> Any:
    connection = duckdb.connect()
    connection.register("v", pa.table(ROWS))
    return connection


@pytest.fixture
def table() -> Any:
    account = mosha.Ledger.memory().account("v", unit=mosha.Row(), rho=1e12, delta=1e-3)
    return mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account)


def ask(sql: str, table: Any) -> list[list[Any]]:
    answer: Any = mosha.query(sql, rho=1e6, delta=1e-5, v=table)
    return [[round(value, 6) if isinstance(value, float) else value for value in row.values()] for row in answer.exact]


@pytest.mark.parametrize("value", VALUES)
def test_a_function_means_what_duckdb_takes_it_for(value: str, table: Any, plain: Any) -> None:
    sql = f"SELECT {value} AS k, COUNT(*) AS n FROM v GROUP BY k ORDER BY k"
    wanted = [tuple(row) for row in plain.execute(sql).fetchall() if row[0] is not None]
    found = [(key, round(n)) for key, n in ask(sql, table) if key is not None]
    assert [
        (key.date() if isinstance(key, datetime) and isinstance(found[0][0], date) else key, n) for key, n in wanted
    ] == found


def test_week_of_the_year_is_that_of_iso(table: Any) -> None:
    weeks = [day.isocalendar().week for day in ROWS["d"]]
    found = ask("SELECT EXTRACT(WEEK FROM d) AS w, COUNT(*) AS n FROM v GROUP BY w ORDER BY w", table)
    assert [(week, round(n)) for week, n in found] == [(week, weeks.count(week)) for week in sorted(set(weeks))]


@pytest.mark.parametrize("sql", QUERIES)
def test_another_spelling_means_what_duckdb_takes_it_for(sql: str, table: Any, plain: Any) -> None:
    found = [[round(value) if isinstance(value, float) else value for value in row] for row in ask(sql, table)]
    assert found == [list(row) for row in plain.execute(sql).fetchall()]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_over_results_is_what_duckdb_makes_of_it(window: str, table: Any, plain: Any) -> None:
    sql = (
        f"SELECT i, n, {window} AS w FROM (SELECT i, COUNT(*) AS n FROM v WHERE i IN (-3, -2, 0, 1, 3) GROUP BY i) AS g"
    )
    wanted = plain.execute(f"{sql} ORDER BY i").fetchall()
    found = ask(f"{sql} ORDER BY i", table)
    assert [key for key, *_ in found] == [key for key, *_ in wanted]
    for (_, _, value), (_, _, exact) in zip(found, wanted, strict=True):
        assert (value is None) == (exact is None)
        assert value is None or abs(value - exact) < 0.1  # the noise has a standard deviation below 0.001


def test_a_named_window_is_the_window_that_it_names(table: Any, plain: Any) -> None:
    sql = "SELECT s, RANK() OVER w AS r, LAG(s) OVER w AS b FROM v GROUP BY s WINDOW w AS (ORDER BY s) ORDER BY s"
    assert ask(sql, table) == [list(row) for row in plain.execute(sql).fetchall()]


def test_a_neighbor_in_a_noisy_order_has_no_bar(table: Any) -> None:
    answer: Any = mosha.query(
        "SELECT s, LAG(COUNT(*)) OVER (ORDER BY COUNT(*)) AS noisy, LAG(COUNT(*)) OVER (ORDER BY s) AS public FROM v "
        "WHERE s IN ('ab', 'b', 'c') GROUP BY s ORDER BY s", rho=1, v=table,
    )  # fmt: skip
    bars = answer.error(0.95)
    assert all(bar != bar for bar in bars["noisy"])
    assert sum(bar == bar and bar > 0 for bar in bars["public"]) == 2


SAME = {
    "TO_CHAR(d, 'YYYY-MM-DD')": "STRFTIME(d, '%Y-%m-%d')",
    "DATE_FORMAT(d, '%Y/%m')": "STRFTIME(d, '%Y/%m')",
    "DATE_FORMAT(t, '%H:%i')": "STRFTIME(t, '%H:%M')",
    "DATE_SUB(d, INTERVAL 2 DAY)": "d - 2",
    "DATE(t)": "CAST(t AS DATE)",
    "DATEADD(month, 1, d)": "d + INTERVAL 1 MONTH",
    "DATEADD(day, -3, d)": "d - 3",
    "DATEDIFF(e, d)": "DATEDIFF('day', d, e)",
    "DATEDIFF(month, d, e)": "DATEDIFF('month', d, e)",
    "DATE_DIFF(e, d, MONTH)": "DATEDIFF('month', d, e)",
    "DATEPART(quarter, d)": "EXTRACT(QUARTER FROM d)",
    "DECODE(s, 'ab', 1, 'b', 2, 3)": "CASE s WHEN 'ab' THEN 1 WHEN 'b' THEN 2 ELSE 3 END",
    "DECODE(s, 'ab', 1, 'b', 2)": "CASE s WHEN 'ab' THEN 1 WHEN 'b' THEN 2 END",
    "ISNULL(x, 0)": "COALESCE(x, 0)",
    "REGEXP_CONTAINS(s, '^a')": "s ~ '^a'",
    "d > DATE_ADD('2020-01-31', INTERVAL 1 MONTH)": "d > DATE '2020-02-29'",
    "d >= TO_DATE('2021-01-01', 'YYYY-MM-DD')": "d >= '2021-01-01'",
    "d >= STR_TO_DATE('2021-01-01', '%Y-%m-%d')": "d >= '2021-01-01'",
    "d >= PARSE_DATE('%F', '2021-01-01')": "d >= '2021-01-01'",
    "t - CAST(d AS TIMESTAMP) >= INTERVAL '1 day'": "t >= CAST(d AS TIMESTAMP) + INTERVAL '1 day'",
    "`i`": "i",
    "[i]": "i",
}


@pytest.mark.parametrize("other", SAME)
def test_words_of_other_engines_mean_the_same(other: str, table: Any) -> None:
    found = [
        ask(f"SELECT {text} AS k, COUNT(*) AS n FROM v GROUP BY k ORDER BY k", table) for text in (other, SAME[other])
    ]
    assert [(key, round(n)) for key, n in found[0]] == [(key, round(n)) for key, n in found[1]]


QUERIES_OF_OTHERS = {
    "SELECT TOP (2) [s], COUNT(*) AS n FROM [v] WHERE [i] > 0 GROUP BY [s] ORDER BY [s]": (
        "SELECT s, COUNT(*) AS n FROM v WHERE i > 0 GROUP BY s ORDER BY s LIMIT 2"
    ),
    "SELECT s, COUNT(*) AS n FROM v WHERE s IN ('ab', 'b') GROUP BY s WITH ROLLUP": (
        "SELECT s, COUNT(*) AS n FROM v WHERE s IN ('ab', 'b') GROUP BY ROLLUP (s)"
    ),
    "SELECT SAFE_DIVIDE(COUNT(x), COUNT(*)) AS n FROM `v`": "SELECT COUNT(x) / COUNT(*) AS n FROM v",
    "SELECT APPROX_COUNT_DISTINCT(s) AS n FROM v": "SELECT COUNT(DISTINCT s) AS n FROM v",
    **{
        f"SELECT {other}(CLAMP(x, 0, 9), 0.25) AS q FROM v": "SELECT QUANTILE_CONT(CLAMP(x, 0, 9), 0.25) AS q FROM v"
        for other in ("APPROX_PERCENTILE", "PERCENTILE_APPROX", "APPROX_QUANTILE", "QUANTILE")
    },
    "SELECT i > 0 AS k, COUNT(*) AS n FROM v WHERE (i > 0) = 1 GROUP BY i > 0": (
        "SELECT i > 0 AS k, COUNT(*) AS n FROM v WHERE (i > 0) = TRUE GROUP BY i > 0"
    ),
    "SELECT i, COUNT(*) AS n FROM v WHERE i IN ('1', '2') GROUP BY i": (
        "SELECT i, COUNT(*) AS n FROM v WHERE i IN (1, 2) GROUP BY i"
    ),
    "SELECT d, COUNT(*) AS n FROM v WHERE d = '2021-01-01' GROUP BY d": (
        "SELECT d, COUNT(*) AS n FROM v WHERE d = DATE '2021-01-01' GROUP BY d"
    ),
    "SELECT d, COUNT(*) AS n FROM v WHERE d IN ('2021-01-01', '1999-01-01') GROUP BY d": (
        "SELECT d, COUNT(*) AS n FROM v WHERE d IN (DATE '2021-01-01', DATE '1999-01-01') GROUP BY d"
    ),
}


@pytest.mark.parametrize("other", QUERIES_OF_OTHERS)
def test_a_query_of_another_system_is_the_same_question(other: str, table: Any) -> None:
    told = [
        mosha.sql.explain(sql, rho=1, delta=1e-6, v=table, statements=True) for sql in (other, QUERIES_OF_OTHERS[other])
    ]
    assert told[0] == told[1]
    assert [len(row) for row in ask(other, table)] == [len(row) for row in ask(QUERIES_OF_OTHERS[other], table)]


def test_brackets_in_texts_and_lists_are_no_quotes(table: Any) -> None:
    sql = "SELECT COUNT(*) AS n FROM [v] WHERE s <> '[b]' AND i = ANY(ARRAY[1]) -- [i]"
    assert [round(n) for [n] in ask(sql, table)] == [ROWS["i"].count(1)]


def test_two_formats_of_one_day_are_two_keys(table: Any) -> None:
    sql = "SELECT TO_CHAR(d, 'YYYY') AS y, TO_CHAR(d, 'MM') AS m, COUNT(*) AS n FROM v GROUP BY 1, 2"
    assert {(y, m) for y, m, _ in ask(sql, table)} == {(f"{day.year}", f"{day.month:02}") for day in DAYS}


def test_two_columns_of_one_name_are_told_apart(table: Any) -> None:
    answer: Any = mosha.query(
        "SELECT a.s, b.s, COUNT(*) n FROM v a JOIN p b ON a.i = b.i WHERE a.s IN ('b') AND b.s IN ('b') GROUP BY ALL",
        rho=1e6, v=table, p=mosha.tables.public_table({"i": [1, 2], "s": ["b", "c"]}),
    )  # fmt: skip
    assert list(answer.table) == ["s", "s_1", "n"]


def test_union_shows_equal_rows_of_answers_once(table: Any) -> None:
    parts = "SELECT s FROM v WHERE i > {} GROUP BY s"
    listed = ask(" UNION ".join(parts.format(least) for least in (-9, 0)), table)
    assert sorted(listed) == [["ab"], ["b"], ["bab"], ["c"]]
    assert len(ask(" UNION ALL ".join(parts.format(least) for least in (-9, 0)), table)) == 8


def test_answers_that_are_put_together_cost_what_they_cost_apart(table: Any) -> None:
    answer: Any = mosha.query(
        "SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v WHERE i > 0", rho=2, key="a", v=table
    )
    assert answer.receipt.cost == pytest.approx(2)
    assert table.account.spent == pytest.approx(2)
    again: Any = mosha.query(
        "SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v WHERE i > 0", rho=2, key="a", v=table
    )
    assert again.exact.table == answer.exact.table
    assert table.account.spent == pytest.approx(2)
    assert "2 questions" in mosha.sql.explain("SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v", rho=2, v=table)


def test_what_cannot_pay_for_all_parts_asks_none() -> None:
    account = mosha.Ledger.memory().account("w", unit=mosha.Row(), epsilon=1)
    table = mosha.protect(pa.table(ROWS), unit=mosha.Row(), account=account)
    for sql in (
        "SELECT COUNT(*) FROM v UNION ALL SELECT COUNT(*) FROM v",
        "SELECT COUNT(*) / (SELECT COUNT(*) FROM v) FROM v WHERE i > 0",
    ):
        with pytest.raises(errors.Refused, match="cannot pay for all"):
            mosha.query(sql, epsilon=1.5, v=table)
    assert account.spent == 0


def test_a_number_about_all_people_stands_beside_results_with_its_bar(table: Any) -> None:
    sql = (
        "SELECT s, COUNT(*) AS n, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM v) AS share FROM v WHERE s IN ('ab', 'b') "
        "GROUP BY s HAVING COUNT(*) > 0.1 * (SELECT COUNT(*) FROM v) ORDER BY s"
    )
    answer: Any = mosha.query(sql, rho=1, v=table)
    assert answer.receipt.cost == pytest.approx(1)  # the number stands in two places, and is asked for once
    assert [round(share) for *_, share in ask(sql, table)] == [25, 25]
    bars = answer.error(0.95)
    alone: Any = mosha.query(
        "SELECT s, 100.0 * COUNT(*) / 240 AS share FROM v WHERE s IN ('ab', 'b') GROUP BY s", rho=0.5, v=table
    )
    assert all(bar > other for bar, other in zip(bars["share"], alone.error(0.95)["share"], strict=True))


def test_a_number_inside_of_an_aggregate_is_the_same_for_every_row(table: Any) -> None:
    [[found]] = ask("SELECT SUM(CLAMP(i - (SELECT AVG(CLAMP(i, -3, 3)) FROM v), -9, 9)) AS gap FROM v", table)
    assert abs(found) < 1


REFUSED = {
    "SELECT STRFTIME(d, '%B') AS k, COUNT(*) FROM v GROUP BY k": "format",
    "SELECT TO_CHAR(d, 'Month') AS k, COUNT(*) FROM v GROUP BY k": "format",
    "SELECT s, LAG(COUNT(*), 1, 0) OVER (ORDER BY s) FROM v GROUP BY s": "without a default",
    "SELECT s, LAG(COUNT(*)) OVER () FROM v GROUP BY s": "ORDER BY",
    "SELECT s, SUM(COUNT(*)) OVER (ORDER BY s ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM v GROUP BY s": "frames",
    "SELECT s, SUM(COUNT(*)) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM v GROUP BY s": "frames",
    "SELECT s, NTILE(0) OVER (ORDER BY s) FROM v GROUP BY s": "NTILE",
    "SELECT DAYOFWEEK(d) AS k, COUNT(*) FROM v GROUP BY k": "DAYOFWEEK FROM d",
    "SELECT COUNT(*) FROM v WHERE d > CURRENT_DATE": "CAST",
    "SELECT SUM(GREATEST(x, 0)) FROM v": "needs a range",
    "SELECT COUNT(*) FROM v WHERE GREATEST(x, i, 3) > 0": "within a range",
    "SELECT COUNT(*) FROM v WHERE s ~ '(a+)+b'": "regular expression",
    "SELECT RANK() OVER (ORDER BY i) AS k, COUNT(*) FROM v GROUP BY 1": "nothing is grouped",
    "SELECT MAX(d) FROM v": "count the days",
    "SELECT COUNT(*) FROM v WHERE TIMESTAMPDIFF(YEAR, d, e) > 1": "TimestampDiff",
    "SELECT TO_DATE(s, 'DD.MM.YYYY') AS k, COUNT(*) FROM v GROUP BY k": "TO_DATE",
    "SELECT DATEDIFF('second', d, t) AS k, COUNT(*) FROM v GROUP BY k": "minutes",
    "SELECT COUNT(*) FROM v WHERE LOG(1, x) > 0": "base of a logarithm",
    "SELECT COUNT(*) FROM v INTERSECT SELECT COUNT(*) FROM v": "INTERSECT",
    "SELECT s, COUNT(*) FROM v GROUP BY s UNION ALL SELECT COUNT(*), 1 FROM v": "keys beside keys",
    "SELECT COUNT(*) AS n FROM v UNION ALL SELECT COUNT(*) FROM v ORDER BY m": "sorted by",
    "SELECT COUNT(*) FROM v UNION ALL SELECT s FROM v": "rows of people",
    "SELECT COUNT(*) FROM (SELECT * FROM v LIMIT 2 OFFSET 1) AS t": "OFFSET",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_answered_is_refused_unpaid_with_a_query_that_is(sql: str, table: Any) -> None:
    with pytest.raises(errors.Refused, match=REFUSED[sql]) as refusal:
        mosha.query(sql, rho=1, delta=1e-6, v=table)
    assert table.account.spent == 0
    if refusal.value.nearest is not None:
        assert mosha.query(refusal.value.nearest, rho=1, delta=1e-6, v=table)


def test_a_deep_nest_of_functions_is_refused_and_not_built(table: Any) -> None:
    value = "d"
    for _ in range(30):
        value = f"CAST(STRFTIME({value}, '%Y-%m-%d') AS DATE)"
    with pytest.raises(errors.MoshaError):
        mosha.query(f"SELECT COUNT({value}) FROM v", rho=1, v=table)
    assert table.account.spent == 0
