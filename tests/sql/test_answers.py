"""What an analyst would type, beside the same SQL in a plain database: with much budget the two agree."""

import math
from pathlib import Path
from typing import Any

import pytest
import sqlglot

import mosha
from mosha.sql import explain, query, statement
from mosha.tables.sql.output import evaluate

QUERIES = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(days) AS n, COUNT(DISTINCT patient_id) AS people FROM visits",
    "SELECT AVG(CLAMP(days, 0, 30)) AS stay, SUM(CLAMP(age, 0, 100)) AS years FROM visits WHERE age >= 40",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY ward ORDER BY ward",
    "SELECT ward, AVG(CLAMP(days, 0, 30)) AS stay FROM visits WHERE ward IN ('A', 'B') GROUP BY 1 ORDER BY stay DESC",
    "SELECT ward AS w, SUM(CLAMP(days, 0, 30)) / COUNT(days) AS stay FROM visits WHERE ward = 'A' GROUP BY w",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY 1 HAVING COUNT(*) > 300 ORDER BY n",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B', 'C') GROUP BY ward ORDER BY n DESC LIMIT 1",
    "SELECT CASE WHEN age < 50 THEN 'a' ELSE 'b' END AS life, COUNT(*) AS n FROM visits GROUP BY life ORDER BY life",
    "SELECT EXTRACT(quarter FROM day) AS q, COUNT(*) AS n FROM visits GROUP BY q ORDER BY q",
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1 LIMIT 3",
    "WITH w AS (SELECT days * 2 AS t FROM visits WHERE days BETWEEN 5 AND 20) SELECT SUM(CLAMP(t, 0, 60)) AS s FROM w",
    "SELECT AVG(CLAMP(s.d, 0, 30)) AS m FROM (SELECT COALESCE(days, 0) AS d FROM visits) AS s",
    "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) WHERE floor IN (1, 2) GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM visits AS v JOIN people AS p ON v.patient_id = p.patient_id WHERE p.female",
    "SELECT ROUND(AVG(CLAMP(age, 0, 100)), 1) AS age FROM visits WHERE ward LIKE 'A%' OR UPPER(ward) = 'B'",
    "SELECT VAR_POP(CLAMP(age, 0, 100)) AS v, STDDEV_POP(CLAMP(age, 0, 100)) AS s FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE day + INTERVAL 1 MONTH < DATE '2026-06-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE day - INTERVAL '40' DAY >= '2026-01-01' AND day - INTERVAL 1 YEAR < day",
    "SELECT AVG(SQRT(CLAMP(days, 0, 30))) AS r, SUM(POWER(CLAMP(age, 0, 100) - 50, 2)) AS p FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE POSITION('A' IN ward) = 1 OR REPLACE(ward, 'B', 'bb') = 'bb'",
    "SELECT REPLACE(ward, 'A', 'north') AS w, COUNT(*) AS n FROM visits GROUP BY w ORDER BY w",
    "SELECT MEDIAN(CLAMP(age, 0, 100)) AS m FROM visits",
    "SELECT COUNT(*) FILTER (WHERE age > 50) AS n, COUNT(days) FILTER (WHERE ward = 'A') AS d FROM visits",
    "SELECT SUM(CLAMP(days, 0, 30)) FILTER (WHERE ward = 'A') AS s FROM visits",
    "SELECT AVG(CLAMP(days, 0, 30)) FILTER (WHERE age > 50 OR days IS NULL) AS s, COUNT_IF(age > 50) AS n FROM visits",
    "SELECT MEDIAN(CLAMP(age, 0, 100)) FILTER (WHERE ward <> 'A') AS m FROM visits",
    "SELECT SUM(CASE WHEN age > 50 THEN 1 ELSE 0 END) AS n, SUM(IF(ward = 'B', 2, -1)) AS m FROM visits",
    "SELECT AVG(CASE WHEN age > 50 THEN 1 ELSE 0 END) AS share, AVG((ward = 'A')::INT) AS a FROM visits",
    "SELECT SUM(CASE WHEN ward = 'A' THEN CLAMP(days, 0, 30) ELSE 0 END) AS s FROM visits",
    "SELECT AVG(CLAMP(days, 0, 30) * 2 + 1) AS twice, AVG(MONTH(day)) AS month FROM visits",
    "SELECT SUM(CASE WHEN days > 5 THEN 1 END) AS n FROM visits",
    "SELECT COUNT() AS n, 'all' AS label, 3 AS three, TRUE AS yes, DATE '2026-01-01' AS d FROM visits",
    "SELECT SQRT(COUNT(*)) AS r, ABS(COUNT(*) - 9999) AS a FROM visits",
    "SELECT GREATEST(COUNT(*), 3) AS g, LEAST(COUNT(*), 3) AS l FROM visits",
    "SELECT SUM(CLAMP(days, 0, 30)) / NULLIF(COUNT(*), 0) AS m, COALESCE(COUNT(*), 0) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE ward ILIKE 'a%'",
    "SELECT SUM(CLAMP(CASE WHEN ward = 'A' THEN NULL ELSE days END, 0, 30)) AS s FROM visits",
    "SELECT day, COUNT(*) AS n FROM visits WHERE day IN (DATE '2026-01-02') GROUP BY 1 HAVING day > DATE '2026-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE day >= '2026-03-01' AND day < DATE '2026-03-01' + INTERVAL '2' MONTH",
    "SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN '2026-02-01' AND '2026-03-31' OR day IN ('2026-01-05')",
    "SELECT COUNT(*) AS n FROM visits WHERE day - DATE '2026-01-31' > 30 AND (age - 40) % 7 = -3",
    "SELECT COUNT(*) AS n FROM visits WHERE LEFT(ward, 1) = 'A' OR CONTAINS(ward, 'C') OR POWER(age, 2) > 6000",
    "SELECT v.ward, COUNT(*) AS n FROM visits v WHERE ward IN ('A', 'B') GROUP BY Ward ORDER BY v.ward",
    "SELECT POWER(AVG(CLAMP(age, 0, 100)), 2) AS n FROM visits",
    "SELECT SUM((days > 5)::INT) AS n, AVG((female)::INT) AS f FROM visits JOIN people USING (patient_id)",
    "SELECT CORR(CLAMP(age, 0, 100), CLAMP(days, 0, 30)) AS c FROM visits",
]


def exactly(value: Any) -> Any:
    return value.date() if hasattr(value, "date") else value


@pytest.mark.parametrize("sql", QUERIES)
def test_a_private_answer_agrees_with_the_plain_one(sql: Any, tables: Any, database: Any) -> None:
    # With so much budget the noise is far below the tolerance.
    answer = query(sql, rho=1e7, delta=1e-6, **tables) if "GROUP BY life" not in sql else None
    if answer is None or "quarter" in sql or "month" in sql:
        answer = query(sql, epsilon=1e4, delta=1e-6, **tables)
    expected = database.execute(sql).fetchall()
    found = [tuple(row.values()) for row in answer]  # type: ignore[union-attr]
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        for value, truth in zip(mine, theirs, strict=True):
            if isinstance(truth, int | float) and not isinstance(truth, bool):
                assert value == pytest.approx(float(truth), rel=5e-3, abs=0.06)
            else:
                assert exactly(value) == exactly(truth)


def test_error_bars_of_an_expression_cover_its_parts(tables: Any) -> None:
    answer = query("SELECT COUNT(*) AS n, COUNT(*) * 2 AS twice, COUNT(*) / 2 AS half FROM visits", epsilon=1, **tables)
    bars = answer.error(0.95)  # type: ignore[union-attr]
    assert bars["twice"][0] == pytest.approx(2 * bars["n"][0])
    assert bars["half"][0] == pytest.approx(bars["n"][0] / 2)


def test_error_bars_go_through_functions_of_results(tables: Any) -> None:
    asked = (
        "COUNT(*) AS n, SQRT(COUNT(*)) AS r, ABS(COUNT(*)) AS a, GREATEST(COUNT(*), 0) AS g, NULLIF(COUNT(*), 0) AS z"
    )
    answer = query(
        f"SELECT {asked}, FLOOR(COUNT(*)) AS f, 'x' AS t, COUNT(*) > 3 AS b FROM visits", epsilon=1, **tables
    )
    bars, n = {name: bar[0] for name, bar in answer.error(0.95).items()}, answer.exact.table["n"][0]  # type: ignore[union-attr]
    assert bars["a"] == bars["g"] == bars["z"] == pytest.approx(bars["n"])
    assert bars["r"] == pytest.approx(n**0.5 - (n - bars["n"]) ** 0.5)
    assert abs(bars["f"] - bars["n"]) <= 1
    assert bars["t"] != bars["t"]  # a text has no bar
    assert bars["b"] != bars["b"]


@pytest.mark.parametrize("asked", ["FLOOR(x)", "CEIL(x)", "CAST(x AS INTEGER)", "ROUND(x)", "SQRT(x)", "ABS(x)"])
def test_a_bar_without_an_end_goes_through_functions_of_results(asked: str) -> None:
    value, low, high = evaluate(sqlglot.parse_one(asked, dialect="duckdb"), {"x": (2.25, -math.inf, math.inf)})  # type: ignore[arg-type]
    assert high == math.inf
    assert low <= value < high


def test_notes_call_an_aggregate_by_what_was_written(tables: Any) -> None:
    answer = query("SELECT COUNT(*) * 2 AS twice FROM visits", epsilon=1, **tables)
    assert "Laplace noise for count(*)." in answer.notes  # type: ignore[union-attr]


def test_a_column_without_a_declared_type_is_a_number_beside_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,ward,days\n" + "\n".join(f"{i},{'AB'[i % 2]},{i % 7}" for i in range(400)))
    unit = mosha.Person("who", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=1e6)
    t = mosha.protect(tmp_path / "t.csv", unit=unit, account=account)
    truth = sum(i % 7 for i in range(0, 400, 2))
    for asked in (
        "SUM(CLAMP(CASE WHEN ward = 'A' THEN days ELSE 0 END, 0, 9))",
        "SUM(CLAMP(IF(ward = 'A', days, 0), 0, 9))",
        "SUM(CLAMP(days, 0, 9)) FILTER (WHERE ward = 'A')",
        "SUM(CLAMP(CASE WHEN ward = 'A' THEN days END, 0, 9))",
    ):
        assert query(f"SELECT {asked} AS s FROM t", epsilon=1000, t=t).value == pytest.approx(truth, abs=1)  # type: ignore[union-attr]
    for asked, truth in (("COUNT(ward)", 200), ("COUNT(DISTINCT ward)", 1), ("COUNT(days)", 200)):
        answer = query(f"SELECT {asked} FILTER (WHERE ward = 'A') AS n FROM t", epsilon=1000, t=t)
        assert answer.value == pytest.approx(truth, abs=0.5)  # type: ignore[union-attr]


def test_explain_shows_bounded_sql_and_prices_and_spends_nothing(tables: Any) -> None:
    account = tables["visits"].account
    before = account.spent
    asked = "SELECT AVG(CLAMP(days, 0, 30)) AS m FROM visits"
    assert "SELECT" in explain(asked, epsilon=1, statements=True, **tables)
    for text in (explain(asked, epsilon=1, **tables), query(f"EXPLAIN {asked}", epsilon=1, **tables)):
        assert "Price: epsilon 1" in text
        assert "SELECT" not in text
        assert len(text.splitlines()) == 5  # type: ignore[union-attr]
    assert account.spent == before


def test_declared_ranges_and_keys_stand_in_for_clamp_and_where(tables: Any) -> None:
    answer = query(
        "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward",
        rho=1e6, ranges={"days": (0, 30)}, keys={"ward": ["C", "A"]}, **tables,
    )  # fmt: skip
    assert answer.table["ward"] == ["C", "A"]  # type: ignore[union-attr]


def test_a_retry_with_the_same_key_is_free(tables: Any) -> None:
    ask = {"epsilon": 1, "key": "monday", **tables}
    first = query("SELECT COUNT(*) AS n FROM visits", **ask)
    spent = tables["visits"].account.spent
    again = query("SELECT COUNT(*) AS n FROM visits", **ask)
    assert again.table == first.table  # type: ignore[union-attr]
    assert not any("earlier" in note for note in first.notes)  # type: ignore[union-attr]
    assert any("Answered earlier under this key" in note for note in again.notes)  # type: ignore[union-attr]
    assert tables["visits"].account.spent == spent


def test_accuracy_can_be_asked_for_instead_of_a_price(tables: Any) -> None:
    answer = query("SELECT COUNT(*) AS n FROM visits", within=20, confidence=0.95, **tables)
    assert 15 < answer.error(0.95)["n"][0] <= 20  # type: ignore[union-attr]


def test_what_is_true_or_false_has_a_mean_and_a_sum(tables: Any, plain: Any) -> None:
    joined = "FROM visits JOIN people USING (patient_id)"
    answer = query(f"SELECT AVG(female) AS f, SUM(age > 50) AS n, AVG(age > 50) AS s {joined}", rho=1e6, **tables)
    ages = plain["visits"]["Age"].to_pylist()
    people = plain["visits"]["patient_id"].to_pylist()
    assert answer.table["f"][0] == pytest.approx(sum(p % 2 == 0 for p in people) / len(people), abs=0.01)  # type: ignore[union-attr]
    assert answer.table["n"][0] == pytest.approx(sum(a > 50 for a in ages), abs=1)  # type: ignore[union-attr]
    assert answer.table["s"][0] == pytest.approx(sum(a > 50 for a in ages) / len(ages), abs=0.01)  # type: ignore[union-attr]


RANGES = {
    "SUM(CASE WHEN age > 50 THEN 1 ELSE 0 END)": (0, 1),
    "SUM(CASE WHEN age > 50 THEN 3 WHEN age > 20 THEN -2 END)": (-2, 3),
    "SUM(CASE WHEN age > 50 THEN 7 END)": (0, 7),
    "SUM(-5)": (-5, 0),
    "AVG(0)": (0, 1),
    "AVG(ward = 'A')": (0, 1),
    "AVG(NOT (age > 3 AND days < 2))": (0, 1),
    "AVG((age > 3)::INT)": (0, 1),
    "SUM(IF(age > 3, CLAMP(days, 2, 9), 0))": (0, 9),
    "SUM(CLAMP(days, 0, 30) * -2 + 1)": (-59, 1),
    "SUM(CLAMP(days, 0, 30) / 4)": (0, 7.5),
    "SUM(ABS(CLAMP(days, -3, 2)))": (0, 3),
    "AVG(EXTRACT(quarter FROM day))": (1, 4),
    "AVG(COALESCE(CLAMP(days, 1, 5), 0))": (0, 5),
    "AVG(LEAST(GREATEST(days, 1), 8))": (1, 8),
    "AVG(FLOOR(CLAMP(days, 0, 2.5)))": (0, 3),
}


@pytest.mark.parametrize("asked", RANGES)
def test_a_range_follows_from_the_constants_of_the_query(asked: Any, tables: Any) -> None:
    (aggregate,) = statement(f"SELECT {asked} AS x FROM visits", tables).question.aggregates.values()
    assert aggregate.measured.between == RANGES[asked]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "asked",
    ["SUM(days)", "SUM(CASE WHEN age > 3 THEN days ELSE 0 END)", "AVG(days / CLAMP(days, 0, 3))", "AVG(YEAR(day))"],
)
def test_a_range_never_follows_from_the_data(asked: str, tables: Any) -> None:
    with pytest.raises(mosha.errors.Refused, match="needs a range"):
        statement(f"SELECT {asked} AS x FROM visits", tables)


def test_extremes_take_bars_in_values_and_say_what_they_are(tables: Any) -> None:
    asked = "SELECT MIN(CLAMP(age, 0, 100)) AS least, MAX(CLAMP(age, 0, 100)) AS most FROM visits"
    free, bought = query(asked, epsilon=1000, bars="rows", **tables), query(asked, epsilon=1000, **tables)
    assert set(free.in_rows) == {"least", "most"}  # type: ignore[union-attr]
    assert not bought.in_rows  # type: ignore[union-attr]
    assert max(bought.error(0.95)["least"] + bought.error(0.95)["most"]) <= 100  # type: ignore[union-attr]
    for answer in (free, bought):
        assert "the quantile at 0.01 or 0.99, in place of the extreme value itself" in " ".join(answer.notes)  # type: ignore[union-attr]
    verbs = tables["visits"]
    assert verbs.minimum("Age", between=(0, 100)).release(epsilon=1000).error(0.95)["minimum"][0] <= 100
    assert verbs.maximum("Age", between=(0, 100)).release(epsilon=1000).value > 80


def test_keys_are_found_by_the_name_of_the_column_whatever_its_case(tables: Any) -> None:
    asked = "SELECT age AS years, COUNT(*) AS n FROM visits GROUP BY age"
    for called in ("years", "age", "Age"):
        assert query(asked, epsilon=1, keys={called: [30, 40]}, **tables).table["years"] == [30, 40]  # type: ignore[union-attr]


def test_a_quoted_name_is_taken_as_it_is(tables: Any) -> None:
    assert query('SELECT COUNT("Age") AS n FROM visits', rho=1e6, **tables).table["n"][0] > 100  # type: ignore[union-attr]
    with pytest.raises(mosha.errors.DataError, match="no column"):
        query('SELECT COUNT("age") AS n FROM visits', rho=1, **tables)


def test_error_bars_of_quantiles_are_in_values_unless_rows_are_asked_for(tables: Any) -> None:
    asked = (
        "SELECT MEDIAN(CLAMP(days, 0, 30)) AS m, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY CLAMP(days, 0, 30)) AS p"
    )
    free = query(f"{asked} FROM visits", epsilon=1000, bars="rows", **tables)
    bought = query(f"{asked} FROM visits", epsilon=1000, **tables)
    assert set(free.in_rows) == {"m", "p"}  # type: ignore[union-attr]
    assert not bought.in_rows  # type: ignore[union-attr]
    assert max(bought.error(0.95)["m"]) <= 30  # type: ignore[union-attr]
    with pytest.raises(mosha.core.errors.InvalidParameter, match="rows"):
        query(f"{asked} FROM visits", epsilon=1, bars="inches", **tables)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT ward FROM visits ORDER BY ward",
        "SELECT ward FROM visits GROUP BY ward ORDER BY ward",
        "SELECT DISTINCT LOWER(ward) AS w, Age > 200 AS old FROM visits ORDER BY w",
    ],
)
def test_groups_alone_are_told_by_their_noisy_counts(sql: str, tables: Any, database: Any) -> None:
    answer = query(sql, rho=1e6, delta=1e-6, **tables)  # noise far below one row, and 300 rows in a ward
    assert [tuple(row.values()) for row in answer] == database.execute(sql).fetchall()  # type: ignore[union-attr]
    assert not answer.columns  # type: ignore[union-attr]
    assert answer.receipt.cost > 0  # type: ignore[union-attr]


def test_a_summary_of_one_person_has_the_range_that_the_unit_gives_it(tables: Any, database: Any) -> None:
    inner = "SELECT patient_id, COUNT(*) AS n, MAX(CLAMP(days, 0, 30)) AS longest FROM visits GROUP BY patient_id"
    for asked in ("AVG(n)", "SUM(n)", "AVG(n * 2)", "AVG(longest)"):
        (row,) = query(f"SELECT {asked} AS x FROM ({inner}) AS t", rho=1e6, **tables)  # type: ignore[str-unpack]
        (plain,) = database.execute(f"SELECT {asked} FROM ({inner}) AS t").fetchone()
        assert row["x"] == pytest.approx(plain, rel=0.02)  # type: ignore[index]  # nobody has more than the three rows of the unit
    free = mosha.protect({"who": [1, 1, 2]}, unit=mosha.Person("who"))
    with pytest.raises(mosha.errors.Refused, match="needs a range"):
        mosha.sql.statement("SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who) AS s", {"t": free})
