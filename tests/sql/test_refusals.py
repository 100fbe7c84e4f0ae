"""What cannot be made private is refused before anything is read or spent, with the reason."""

from typing import Any

import pytest
import sqlglot

import mosha
from mosha.sql import query

REFUSED = {
    "SELECT * FROM visits": "rows of people",
    "SELECT days FROM visits": "rows of people",
    "SELECT ward FROM visits WHERE ward IN ('A', 'B') GROUP BY ward": "ask for their counts",
    "SELECT patient_id FROM visits GROUP BY patient_id": "hold one person each",
    "SELECT ward, COUNT(*) FROM visits": "neither a key",
    "SELECT SUM(days) FROM visits": "needs a range",
    "SELECT AVG(days + age) FROM visits": "needs a range",
    "SELECT SUM(DISTINCT days) FROM visits": "needs a range",
    "SELECT AVG(DISTINCT days) FROM visits": "DISTINCT goes with COUNT and SUM",
    "SELECT STRING_AGG(ward, ',') FROM visits": "not an aggregate",
    "SELECT COUNT(*) OVER () FROM visits": "window",
    "SELECT DISTINCT ward FROM visits WHERE ward = 'A'": "ask for their counts",
    "SELECT DISTINCT patient_id, ward FROM visits": "hold one person each",
    "SELECT DISTINCT ON (ward) ward, COUNT(*) FROM visits GROUP BY ward": "ON in DISTINCT",
    "SELECT COUNT(*) FROM visits WHERE random() < 0.5": "meaning is known",
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3": "HAVING",
    "SELECT COUNT(*) FROM visits, people": "person is the same",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.age = p.patient_id": "person is the same",
    "SELECT COUNT(*) FROM visits RIGHT JOIN wards USING (ward)": "cannot lead",
    "SELECT COUNT(*) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS x": "groups by the person",
    "SELECT COUNT(*) FROM visits WHERE age IN (SELECT patient_id FROM people)": "person is the same",
    "SELECT COUNT(*) FROM visits FULL JOIN wards USING (ward)": "INNER, LEFT, RIGHT or FULL",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": "needs a range",
    "SELECT COUNT(*) FROM visits v WHERE days > (SELECT AVG(w.days) FROM visits w WHERE w.ward = v.ward)": (
        "groups by the person"
    ),
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT patient_id FROM people)": "subquery",
    "SELECT COUNT(*) FROM visits INTERSECT SELECT COUNT(*) FROM people": "UNION",
    "SELECT COUNT(*) FROM visits LIMIT -1": "LIMIT",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)": "listed",
    "SELECT COUNT(*) AS a, SUM(CLAMP(age, 0, 1)) AS a FROM visits": "another name",
    "SELECT nope, COUNT(*) FROM visits GROUP BY nope": "no column",
    "SELECT COUNT(*) FROM nope": "no table",
    "SELECT SUM(CLAMP(ward, 0, 1)) FROM visits": "number",
    "SELECT SUM(CLAMP(age, 5, 1)) FROM visits": "low",
    "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id": "one person each",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING ward > 3": "different types",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n BETWEEN 'a' AND 5": "different types",
    "SELECT day, COUNT(*) AS n FROM visits GROUP BY day HAVING day > '2026-03-01'": "DATE '2026-11-15'",
    "SELECT ward, -ward AS x, COUNT(*) AS n FROM visits GROUP BY ward": "different types",
    "SELECT ROUND(COUNT(*), 'a') AS n FROM visits": "different types",
    "SELECT CAST(COUNT(*) AS VARCHAR) AS n FROM visits": "DOUBLE or INTEGER",
    "SELECT COUNT(*, 3) FROM visits": "one column",
    "SELECT AVG(LEAST(GREATEST(age, 'a'), 3)) FROM visits": "must be a number",
    "SELECT AVG(LEAST(GREATEST(age, 50), 3)) FROM visits": "low <= high",
    "SELECT AVG(GREATEST(LEAST(age, 3), 50)) FROM visits": "low <= high",
    "SELECT MAX(day) FROM visits": "needs a number, and day is a date",
    "SELECT MAX(ward) FROM visits": "needs a number, and ward is a text",
    "SELECT COUNT(*) FROM visits WHERE age IN (1, NULL)": "IS NULL",
    "SELECT CASE WHEN age > 3 THEN NULL END AS g, COUNT(*) FROM visits GROUP BY g": "not NULL",
    "": "SELECT",
    "SELECT COUNT(* FROM visits": "not SQL",
}

INJECTED = [
    "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "DROP TABLE visits",
    "COPY visits TO '/tmp/stolen.csv'",
    "ATTACH 'x.db'",
    "PRAGMA database_list",
    "SET memory_limit = '1GB'",
    "INSTALL httpfs",
    "CALL pragma_version()",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM '/etc/passwd'",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM main.visits",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 10%",
    "SELECT COUNT(*) FROM visits WHERE getenv('HOME') = 'x'",
    "SELECT COUNT(*) FROM visits WHERE error(ward) = 'x'",
    "SELECT COUNT(*) FROM visits WHERE query('SELECT 1') = 1",
    "SELECT COUNT(*) FROM visits WHERE ward = 'A' /* */ ; SELECT 2",
    'SELECT COUNT(*) FROM visits WHERE "ward"";DROP TABLE visits;--" = 1',
    "WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM visits CROSS JOIN people",
    "SELECT COUNT(*) FROM visits POSITIONAL JOIN people",
    "SELECT COUNT(*) FROM visits ASOF JOIN people USING (patient_id)",
    "SELECT COUNT(*) INTO stolen FROM visits",
    "SELECT COUNT(*) FILTER (WHERE random() > 0) FROM visits",
    "SELECT COUNT(*) FROM UNNEST([1, 2, 3])",
]


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items(), ids=list(REFUSED))
def test_it_is_refused_with_a_reason_and_nothing_is_spent(sql: Any, reason: Any, tables: Any) -> None:
    with pytest.raises(mosha.errors.MoshaError, match=reason) as refusal:
        query(sql, epsilon=1, delta=1e-6, **tables)
    assert "\n" not in str(refusal.value)
    assert tables["visits"].account.spent == 0


NEAREST = {
    "SELECT * FROM visits WHERE age > 50": "SELECT COUNT(*) FROM visits WHERE age > 50",
    "SELECT ward FROM visits WHERE ward IN ('A') GROUP BY ward": (
        "SELECT ward, COUNT(*) FROM visits WHERE ward IN ('A') GROUP BY ward"
    ),
    "SELECT ward, COUNT(*) FROM visits": "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT DISTINCT ward AS w FROM visits WHERE ward = 'A'": (
        "SELECT ward AS w, COUNT(*) FROM visits WHERE ward = 'A' GROUP BY w"
    ),
    "SELECT SUM(days), AVG(age) FROM visits": "SELECT SUM(CLAMP(days, 0, 100)), AVG(CLAMP(age, 0, 100)) FROM visits",
    "SELECT MAX(days * 2) FROM visits": "SELECT MAX(CLAMP(days * 2, 0, 100)) FROM visits",
    "SELECT AVG(LEAST(days, 30)) FROM visits": "SELECT AVG(CLAMP(days, 0, 30)) FROM visits",
    "SELECT AVG(CLAMP(days)) FROM visits": "SELECT AVG(CLAMP(days, 0, 100)) FROM visits",
    "SELECT AVG(GREATEST(days, 3)) FROM visits": "SELECT AVG(CLAMP(days, 3, 100)) FROM visits",
    "SELECT SUM(DISTINCT days) FROM visits": "SELECT SUM(DISTINCT CLAMP(days, 0, 100)) FROM visits",
    "SELECT AVG(DISTINCT days) FROM visits": "SELECT AVG(CLAMP(days, 0, 100)) FROM visits",
    "SELECT STRING_AGG(ward, ',') FROM visits": "SELECT COUNT(DISTINCT ward) FROM visits",
    "SELECT COUNT(*) OVER (PARTITION BY ward) FROM visits": "SELECT COUNT(*) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 3) AS x": "SELECT COUNT(*) FROM (SELECT * FROM visits) AS x",
    "SELECT COUNT(*) FROM visits WHERE age > 3 AND COUNT(*) > 9": (
        "SELECT COUNT(*) FROM visits WHERE age > 3 HAVING COUNT(*) > 9"
    ),
    "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age > 50) FROM visits": (
        "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE age > 50"
    ),
    "SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM people": "SELECT COUNT(*) FROM visits",
    "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS x": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    ),
    "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY day LIMIT 5) AS x": (
        "SELECT COUNT(*) FROM (SELECT * FROM visits) AS x"
    ),
    "SELECT ward, COUNT(*) FROM visits GROUP BY CUBE (ward)": "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM visits, people": (
        "SELECT COUNT(*) FROM visits JOIN people ON visits.patient_id = people.patient_id"
    ),
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.age = p.patient_id": (
        "SELECT COUNT(*) FROM visits AS v JOIN people AS p ON v.patient_id = p.patient_id"
    ),
    "SELECT MODE(ward) FROM visits": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1",
    "SELECT COUNT(*) FROM public.visits": "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visit": "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE day - DATE '2026-01-01' > INTERVAL '1 month'": "SELECT COUNT(*) FROM visits",
    "SELECT wards, COUNT(*) FROM visits GROUP BY wards": "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM visits WHERE ward = 3 AND age > 5": "SELECT COUNT(*) FROM visits WHERE age > 5",
    "SELECT AVG(CLAMP(day - day, 0, 9)), AVG(CAST(day AS TIMESTAMP) - day) FROM visits": (
        "SELECT AVG(CLAMP(DATE_DIFF('DAY', day, day), 0, 9)), "
        "AVG(CLAMP(DATE_DIFF('DAY', day, CAST(day AS TIMESTAMP)), 0, 100)) FROM visits"
    ),
    "SELECT AVG(CLAMP(EXTRACT(EPOCH FROM CAST(day AS TIMESTAMP) - TIMESTAMP '2026-01-01'), 0, 9)) FROM visits": (
        "SELECT AVG(CLAMP(DATE_DIFF('MINUTE', CAST('2026-01-01' AS TIMESTAMP), CAST(day AS TIMESTAMP)) * 60, 0, 9)) "
        "FROM visits"
    ),
    "SELECT COUNT(*) FROM visits WHERE TIMESTAMPDIFF(YEAR, day, '2027-01-01') > 1": (
        "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('YEAR', day, CAST('2027-01-01' AS DATE)) > 1"
    ),
    "SELECT ward, age, COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward, age), (ward), ())": (
        "SELECT ward, age, COUNT(*) FROM visits GROUP BY ward, age"
    ),
    "SELECT COUNT(*) FROM visits WHERE days > (SELECT floor FROM wards WHERE wards.ward = visits.ward)": (
        "SELECT COUNT(*) FROM visits WHERE days > (SELECT MAX(floor) FROM wards WHERE wards.ward = visits.ward)"
    ),
    "SELECT (SELECT COUNT(*) FROM visits) AS visits, (SELECT COUNT(*) FROM people) AS people": (
        "SELECT 'visits' AS name, COUNT(*) AS value FROM visits UNION ALL "
        "SELECT 'people' AS name, COUNT(*) AS value FROM people"
    ),
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id "
    "AND w.day > v.day AND w.day <= v.day + INTERVAL 30 DAY)": (
        "SELECT COUNT(*) FROM visits AS v JOIN visits AS w ON w.patient_id = v.patient_id AND w.day > v.day "
        "AND w.day <= v.day + INTERVAL '30' DAY"
    ),
    f"SELECT {', '.join(f'SUM(CLAMP(days, 0, {i})) AS s{i}' for i in range(1, 20))} FROM visits": (
        f"SELECT {', '.join(f'SUM(CLAMP(days, 0, {i})) AS s{i}' for i in range(1, 11))} FROM visits"
    ),
}


@pytest.mark.parametrize("sql", NEAREST)
def test_the_nearest_query_that_is_answered_is_told(sql: Any, tables: Any) -> None:
    with pytest.raises((mosha.errors.Refused, mosha.errors.DataError)) as refusal:
        query(sql, epsilon=1, delta=1e-6, **tables)
    assert refusal.value.nearest == NEAREST[sql]
    assert str(refusal.value).endswith(f"Ask instead: {NEAREST[sql]}")


def names_a_protected_table(sql: Any) -> Any:
    """Whether a text is one SELECT, and each of its tables has a name that was given."""
    try:
        parsed = sqlglot.parse(sql, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return False
    named = {table.name for part in parsed if part is not None for table in part.find_all(sqlglot.exp.Table)}
    return (
        len(parsed) == 1
        and isinstance(parsed[0], sqlglot.exp.Query)
        and "visits" in named
        and named <= {"visits", "people", "wards", "stolen"}
    )


@pytest.mark.parametrize("sql", sorted({*REFUSED, *INJECTED, *NEAREST}))
def test_every_query_that_a_refusal_suggests_is_answered(sql: Any, tables: Any) -> None:
    with pytest.raises(mosha.errors.MoshaError) as refusal:
        query(sql, epsilon=1, delta=1e-6, **tables)
    suggested = getattr(refusal.value, "nearest", None)
    if isinstance(refusal.value, mosha.errors.Refused) and names_a_protected_table(sql):
        assert suggested is not None
    assert (suggested is not None) == ("Ask instead" in str(refusal.value))
    if suggested is not None:
        assert query(suggested, epsilon=100, delta=1e-6, **tables).receipt.cost > 0  # type: ignore[union-attr]
    else:
        assert "CLAMP(" not in str(refusal.value)


@pytest.mark.parametrize("sql", INJECTED)
def test_nothing_but_the_checked_plan_reaches_the_engine(sql: Any, tables: Any) -> None:
    with pytest.raises(mosha.errors.MoshaError):
        query(sql, epsilon=1, delta=1e-6, **tables)
    assert tables["visits"].account.spent == 0


GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
SAID_WRONG = {
    "keys of nobody": ({"keys": {"color": ["A"]}}, "'color'"),
    "ranges of nobody": ({"ranges": {"color": (0, 1)}}, "'color'"),
    "a text as keys": ({"keys": {"ward": "AB"}}, "list"),
    "a number as keys": ({"keys": {"ward": 3}}, "list"),
    "no keys": ({"keys": {"ward": []}}, "empty"),
    "keys without a name": ({"keys": ["A"]}, "name of their column"),
    "keys of a column that is no key": ({"keys": {"Age": [30, 40]}}, "does not group by it: add GROUP BY Age"),
}


@pytest.mark.parametrize("said", SAID_WRONG)
def test_what_is_said_about_columns_is_checked_before_anything_is_spent(said: Any, tables: Any) -> None:
    arguments, reason = SAID_WRONG[said]
    with pytest.raises(mosha.errors.MoshaError, match=reason):
        query(GROUPED, epsilon=1, delta=1e-6, **arguments, **tables)  # type: ignore[arg-type]
    assert tables["visits"].account.spent == 0


def test_a_table_that_nobody_protected_is_told_of_protect(plain: Any) -> None:
    with pytest.raises(mosha.errors.InvalidParameter, match="protect"):
        query("SELECT COUNT(*) FROM visits", epsilon=1, visits=plain["visits"])
    with pytest.raises(mosha.errors.DataError, match="none was given"):
        query("SELECT COUNT(*) FROM visits", epsilon=1)


def test_groups_from_the_data_ask_for_a_delta(tables: Any) -> None:
    with pytest.raises(mosha.errors.InvalidParameter, match=r"--delta.*WHERE ward IN"):
        query("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1, **tables)


def test_a_text_constant_cannot_leave_its_quotes(tables: Any) -> None:
    answer = query("SELECT COUNT(*) AS n FROM visits WHERE ward = 'A'' OR 1=1 --'", rho=1e6, **tables)
    assert abs(answer.table["n"][0]) < 1  # type: ignore[union-attr]
