"""Questions after the suites of other libraries, written anew on data of their shapes: how many are answered."""

import random
from typing import Any

import pyarrow as pa
import pytest

import mosha
from mosha.sql import query

SIZE = 2000
CENSUS = [
    "SELECT SUM(age) FROM PUMS.PUMS",
    "SELECT COUNT(*), VAR(age) AS spread FROM PUMS.PUMS",
    "SELECT married, educ, income, AVG(age) FROM PUMS.PUMS GROUP BY married, educ, income",
    "SELECT p.married, AVG(age) AS mean FROM PUMS.PUMS AS p GROUP BY married",
    "SELECT TOP 5 educ, AVG(income) FROM PUMS.PUMS GROUP BY educ",
    "SELECT COUNT(married), AVG(age) FROM PUMS.PUMS",
    "SELECT 3 AS three, p.married, educ, AVG(income) FROM PUMS.PUMS AS p GROUP BY educ, married",
    "SELECT SUM(age) AS age FROM PUMS.PUMS",
    "SELECT (SUM(age)) AS age FROM PUMS.PUMS",
    "SELECT SUM(age) * 1 AS age, SQRT(COUNT(*)) AS root FROM PUMS.PUMS",
    "SELECT SUM(age), COUNT(*) FROM PUMS.PUMS",
    "SELECT PI() AS pi, POWER(AVG(age), 2) AS square FROM PUMS.PUMS",
    "SELECT SUM(age) FROM PUMS.PUMS GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END",
    "SELECT educ, COUNT(DISTINCT pid) AS people FROM PUMS.PUMS WHERE income > 0 GROUP BY educ HAVING COUNT(*) > 50",
    "SELECT sex, AVG(income) - AVG(age) AS gap FROM PUMS.PUMS GROUP BY sex ORDER BY gap DESC LIMIT 1",
]
DEVICES = [
    "SELECT COUNT(*) AS n FROM Telemetry.Crashes",
    "SELECT SUM(Temperature) AS heat FROM Telemetry.Crashes",
    "SELECT Crashes.Refurbished, AVG(Temperature) AS t FROM Telemetry.Crashes GROUP BY Refurbished",
    "SELECT c.Refurbished, COUNT(DISTINCT c.DeviceID) AS devices FROM Telemetry.Crashes c GROUP BY c.Refurbished",
    "SELECT AVG(Temperature), VAR(Temperature), STDDEV(Temperature) FROM Telemetry.Crashes WHERE NOT Crashed",
    "SELECT COUNT(*) FROM Telemetry.Crashes AS a JOIN Telemetry.Rollouts AS r ON a.DeviceID = r.DeviceID",
    "SELECT RolloutID, COUNT(*) AS n FROM Telemetry.Rollouts GROUP BY RolloutID ORDER BY n DESC",
    "SELECT TOP 2 RolloutID, SUM(CASE WHEN StartTrial = 1 THEN 1 ELSE 0 END) AS n FROM Telemetry.Rollouts GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT DeviceID, MAX(Temperature) AS hot FROM Telemetry.Crashes GROUP BY DeviceID) AS d",
    (
        "SELECT Kind, COUNT(DeviceID) AS n, AVG(CLAMP(Temperature, 0, 60)) FROM (SELECT c.*, t.Kind FROM "
        "Telemetry.Crashes AS c JOIN (SELECT DeviceID, RolloutID AS Kind FROM (Telemetry.Census JOIN "
        "Telemetry.Rollouts USING (DeviceID)) AS q) AS t USING (DeviceID)) AS z GROUP BY Kind ORDER BY Kind"
    ),
    "SELECT Maker, AVG(Temperature) FROM Telemetry.Census JOIN Telemetry.Crashes USING (DeviceID) GROUP BY Maker",
    "SELECT COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share, Refurbished FROM Telemetry.Crashes GROUP BY Refurbished",
]
INTEGRATION = [
    "SELECT AVG(x) AS a FROM second",
    "SELECT 1 + COUNT(y) AS a, SUM(1 + x) AS b FROM second",
    "SELECT 1 + SUM(a), COUNT(b) FROM first",
    "SELECT 1 + SUM(a), COUNT(b) FROM first WHERE a > 4",
    "SELECT 1 + SUM(a), COUNT(b) FROM first GROUP BY d",
    "SELECT 1 + SUM(a), COUNT(b), d FROM first WHERE d > 4 GROUP BY d",
    "WITH t1 AS (SELECT a, d FROM first), t2 AS (SELECT * FROM first) SELECT SUM(a) FROM t1",
    "SELECT CASE WHEN a < 5 THEN 0 WHEN a < 3 THEN 3 ELSE 1 END AS kind, COUNT(*) AS n FROM first GROUP BY kind",
    "SELECT UPPER(z) AS name, COUNT(*) AS n FROM second GROUP BY z",
    "SELECT COUNT(*) AS n FROM second WHERE CHAR_LENGTH(z) = 3 AND POSITION('o' IN z) > 0",
    "SELECT COUNT(DISTINCT d) AS kinds FROM first",
    "SELECT c, COUNT(DISTINCT d) AS kinds FROM first GROUP BY c ORDER BY c",
    "SELECT c, COUNT(DISTINCT d) AS kinds, SUM(DISTINCT d) AS total FROM first GROUP BY c ORDER BY c",
    "SELECT SUM(DISTINCT a) AS total FROM first GROUP BY c HAVING COUNT(*) > 5",
    "SELECT * FROM (SELECT d, COUNT(*) AS n, RANK() OVER (ORDER BY d) AS r FROM first GROUP BY d) AS t WHERE r < 3",
    "SELECT SUM(a) FROM first JOIN public_second ON first.d = public_second.x",
    "SELECT MAX(a), SUM(d) FROM first INNER JOIN public_second ON first.d = public_second.x WHERE a > 4",
    "SELECT VARIANCE(x) AS v, STDDEV(x) AS s FROM second",
    (
        "WITH t1 AS (SELECT a, d FROM first WHERE a > 4), t2 AS (SELECT * FROM public_second) "
        "SELECT MAX(a), SUM(d) FROM t1 INNER JOIN t2 ON t1.d = t2.x CROSS JOIN public_second"
    ),
    "SELECT DISTINCT COUNT(*) FROM first GROUP BY d",
    "SELECT AVG(w) AS a FROM public_second WHERE w > (SELECT AVG(w) FROM public_second)",
    "SELECT COUNT(*) FROM first WHERE a > (SELECT AVG(a) FROM first)",
]
REFUSED = {
    "SELECT RAND(), AVG(age) FROM PUMS.PUMS": "on results",
    "SELECT SUM(a) FROM first JOIN second ON first.d = second.x": "person is the same",
    "SELECT AVG(DISTINCT d) FROM first": "DISTINCT",
}


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    g = random.Random(11)
    unit = {name: mosha.Person(name, at_most=2) for name in ("pid", "DeviceID")}
    accounts = {name: mosha.Ledger.memory().account(name, unit=unit[name], epsilon=9.0, delta=1e-3) for name in unit}

    def protect(person: Any, **columns: Any) -> Any:
        table = {person: [i // 2 for i in range(SIZE)]} | {
            name: [make() for _ in range(SIZE)] for name, make in columns.items()
        }
        return mosha.protect(pa.table(table), unit=unit[person], account=accounts[person])

    draw = g.randrange
    public = mosha.tables.public_table(pa.table({"x": list(range(10)), "w": list(range(10))}))
    return {
        "PUMS.PUMS": protect(
            "pid", age=lambda: draw(18, 90), sex=lambda: draw(2), educ=lambda: draw(1, 17),
            income=lambda: 1000.0 * draw(0, 5), married=lambda: g.random() < 0.5,
        ),
        "Telemetry.Crashes": protect(
            "DeviceID", Refurbished=lambda: g.random() < 0.3, Temperature=lambda: 60 * g.random(),
            Crashed=lambda: g.random() < 0.1,
        ),
        "Telemetry.Census": protect("DeviceID", Maker=lambda: draw(3)),
        "Telemetry.Rollouts": protect("DeviceID", RolloutID=lambda: draw(4), StartTrial=lambda: draw(2)),
        "first": protect("pid", a=lambda: 10 * g.random(), b=g.random, c=lambda: draw(3), d=lambda: draw(10)),
        "second": protect("pid", x=lambda: draw(100), y=lambda: "s", z=lambda: g.choice(["Foo", "Bar"])),
        "public_second": public,
    }  # fmt: skip


RANGES = {"age": (0, 100), "income": (0, 5000), "Temperature": (0, 60), "a": (0, 10), "d": (0, 10), "x": (0, 100)}


def ask(suite: Any, sql: Any) -> Any:
    read = {name: table for name, table in suite.items() if name in sql}
    known = {column for table in read.values() for column in table.schema}
    ranges = {column: ends for column, ends in RANGES.items() if column in known and "FROM (SELECT" not in sql}
    return query(sql, tables=suite, ranges=ranges, epsilon=0.05, delta=1e-6)


@pytest.mark.parametrize("sql", [*CENSUS, *DEVICES, *INTEGRATION])
def test_a_question_of_another_suite_is_answered(suite: Any, sql: Any) -> None:
    assert ask(suite, sql).columns


def test_a_question_for_groups_alone_is_answered(suite: Any) -> None:
    answer = ask(suite, "SELECT educ FROM PUMS.PUMS GROUP BY educ")
    assert list(answer.keys) == ["educ"]
    assert not answer.columns


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_answered_is_refused_with_a_reason_and_unpaid(suite: Any, sql: Any) -> None:
    before = {name: table.account.spent for name, table in suite.items() if name != "public_second"}
    with pytest.raises(mosha.errors.MoshaError, match=REFUSED[sql]):
        ask(suite, sql)
    assert before == {name: table.account.spent for name, table in suite.items() if name != "public_second"}
