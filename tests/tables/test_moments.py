"""Moments in a time zone as keys: read in UTC wherever they were written, listed or from the data."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, count, distinct, mean, median, persons, protect

MONTHS = [datetime(2024, month, 1, tzinfo=UTC) for month in (1, 2, 3)]
PERSON = mosha.Person("who", at_most=1)


@pytest.fixture(scope="module")
def visits() -> tuple[Any, ...]:
    generator = np.random.default_rng()
    at = [MONTHS[0] + timedelta(hours=int(h)) for h in generator.integers(0, 24 * 91, 600)]
    moments = pa.array(at, pa.timestamp("us", tz="Asia/Tokyo"))
    return pa.table({"who": np.arange(600), "at": moments, "days": generator.uniform(0, 10, 600)}), at


def protected(table: Any, account: Any = None) -> Any:
    return protect(table, unit=PERSON, account=account)


QUESTIONS = {
    "count": count,
    "persons": persons,
    "mean": lambda: mean("days", between=(0, 10)),
    "bought": lambda: mean("days", between="automatic"),
    "median": lambda: median("days", between=(0, 10)),
    "distinct": lambda: distinct("who"),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("keys", [MONTHS, None], ids=["listed", "from the data"])
def test_months_of_moments_are_groups(visits: Any, name: Any, keys: Any) -> None:
    table, at = visits
    account = mosha.Ledger.memory().account("a", unit=PERSON, epsilon=200, delta=1e-3, rule="pure")
    grouped = protected(table, account).group_by(month=mosha.col("at").truncate("month"), keys=keys)
    answer = grouped.aggregate(x=QUESTIONS[name]()).release(epsilon=150, delta=1e-6)  # type: ignore[operator]
    assert answer.table["month"] == MONTHS
    if name in {"count", "persons", "distinct"}:
        found = [sum(moment.month == month.month for moment in at) for month in MONTHS]
        assert answer.table["x"] == pytest.approx(found, abs=8)
    else:
        assert answer.table["x"] == pytest.approx([5] * 3, abs=2.5)
    assert answer.to_arrow().num_rows == 3


def test_a_key_in_another_zone_is_the_same_moment(visits: Any) -> None:
    tokyo = [month.astimezone(timezone(timedelta(hours=9))) for month in MONTHS]
    table = protected(visits[0])
    question = table.group_by(month=mosha.col("at").truncate("month"), keys=tokyo).count()
    assert [row[0] for row in question.only] == MONTHS
    with pytest.raises(mosha.errors.DataError, match="time zone"):
        table.group_by(month=mosha.col("at").truncate("month"), keys=[datetime(2024, 1, 1)]).count()  # noqa: DTZ001
    with pytest.raises(mosha.errors.DataError, match="public key"):
        table.group_by(month=mosha.col("at").truncate("month"), keys=[date(2024, 1, 1)]).count()


def test_a_server_gives_the_same_answer(visits: Any, postgres_server: Any) -> None:
    import psycopg

    table, at = visits
    url = postgres_server.url("postgres")
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS moments")
        cursor.execute("CREATE TABLE moments (who bigint, at timestamptz, days double precision)")
        with cursor.copy("COPY moments FROM STDIN") as copy:
            for row in zip(range(600), at, table["days"].to_pylist(), strict=True):
                copy.write_row(row)
    server = protect(url, table="moments", unit=PERSON)
    for keys, budget in ((MONTHS, Budget(epsilon=1)), (None, Budget(epsilon=9, delta=1e-4))):
        answers = []
        for place in (protected(table), server):
            grouped = place.group_by(month=mosha.col("at").truncate("month"), keys=keys)
            question = grouped.aggregate(n=count(), m=median("days", between=(0, 10)))
            answers.append(question.measurement(budget).step(None, None, None, mosha.noise.SeededRandom(7))[0])
        assert answers[0] == answers[1]


@pytest.mark.parametrize("written", ["2013-01-{:02}", "2013-01-{:02} 10:00:00", "2013-01-{:02}T10:00:00Z"])
@pytest.mark.parametrize("declared", [None, "timestamp"])
def test_public_months_find_the_rows_of_a_csv_however_its_times_are_written(
    tmp_path: Path, written: str, declared: str | None
) -> None:
    """Days as keys of timestamps matched nothing, and nothing but noise was paid for."""
    path = tmp_path / "rides.csv"
    rows = [f"{n},{written.format(n % 28 + 1)}" for n in range(400)]
    path.write_text("\n".join(["rider,at", *rows]), encoding="utf-8")
    rider = mosha.Person("rider", at_most=1)
    account = mosha.Ledger.memory().account("a", unit=rider, epsilon=100)
    schema = None if declared is None else {"rider": "text", "at": declared}
    table = mosha.protect(path, unit=rider, account=account, schema=schema)
    months = mosha.tables.date_range(date(2013, 1, 1), date(2013, 2, 28), by="month")
    answer = table.group_by(month=mosha.col("at").truncate("month"), keys=months).count().release(epsilon=90)
    assert answer.table["count"] == [400, 0]  # at epsilon 90 a count is wrong once in 10^39
