"""What is refused: typed, without a word of the data, and nothing is spent."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mosha
from mosha.errors import DataError, InvalidParameter, Unbounded, WrongUnit
from mosha.tables import Budget, correlation, count, date_range, interval, mean, protect
from mosha.tables import sum as total

UNIT = mosha.Person("who", at_most=3)
CLOCK = datetime(2024, 1, 1)  # noqa: DTZ001  (the reading of a wall clock)
ROWS = {"who": [1, 2, 3], "ward": ["A", "B", "secret"], "days": [1.5, 2.5, 77.25], "at": [CLOCK] * 3}


@pytest.fixture
def visits() -> Any:
    account = mosha.Ledger.memory().account("visits", unit=UNIT, epsilon=10)
    return protect(pa.table(ROWS), unit=UNIT, account=account)


BAD = {
    "unknown column": lambda t: t.mean("age", between=(0, 1)),
    "text is no number": lambda t: t.mean("ward", between=(0, 1)),
    "no range": lambda t: t.sum("days", between=None),
    "half a range": lambda t: t.sum("days", between=3),
    "reversed range": lambda t: t.sum("days", between=(3, 1)),
    "range with NaN": lambda t: t.sum("days", between=(0, float("nan"))),
    "endless range": lambda t: t.sum("days", between=(0, float("inf"))),
    "empty range": lambda t: t.mean("days", between=(1, 1)),
    "range too far out": lambda t: t.mean("days", between=(1e300, 1.0000001e300)),
    "quantile outside": lambda t: t.quantile("days", 1.5, between=(0, 1)),
    "quantiles at nothing": lambda t: t.quantiles("days", [None], between=(0, 1)),
    "quantiles at a word": lambda t: t.quantiles("days", ["a"], between=(0, 1)),
    "quantiles at one number": lambda t: t.quantiles("days", 0.5, between=(0, 1)),
    "quantiles at a text": lambda t: t.quantiles("days", "0.5", between=(0, 1)),
    "one text as keys by name": lambda t: t.group_by("ward", keys={"ward": "AB"}).count(),
    "one number as keys by name": lambda t: t.group_by("ward", keys={"ward": 3}).count(),
    "a condition in words": lambda t: t.where("more than three days"),
    "keys of another type": lambda t: t.group_by("ward", keys=[1, 2]).count(),
    "keys of another width": lambda t: t.group_by("ward", keys=[("A", 1)]).count(),
    "one text as keys": lambda t: t.group_by("ward", keys="AB").count(),
    "no keys": lambda t: t.group_by("ward", keys=[]).count(),
    "group by nothing": lambda t: t.group_by(keys=["A"]).count(),
    "group by a nameless expression": lambda t: t.group_by(mosha.col("days") * 2, keys=[1.0]),
    "group by an unknown column": lambda t: t.group_by("color", keys=["A"]),
    "a condition that is a number": lambda t: t.where(mosha.col("days")),
    "a wall clock beside a moment": lambda t: t.where(mosha.col("at") < datetime(2024, 1, 1, tzinfo=UTC)),
    "the person computed anew": lambda t: t.compute(who=mosha.col("days")),
    "no aggregate": lambda t: t.aggregate(),
    "an aggregate that is none": lambda t: t.aggregate(n=3),
    "an aggregate named like a key": lambda t: t.group_by("ward", keys=["A"]).aggregate(ward=count()),
    "weights of nobody": lambda t: t.count().weigh(median=2),
    "a weight below zero": lambda t: t.count().weigh(count=-1),
    "three columns": lambda t: t.correlation(["days", "days", "days"], between=[(0, 1)] * 3),
    "a column alone": lambda t: t.covariance(5),
    "columns without ranges": lambda t: t.correlation(["days", "days"], between=3),
    "one number as edges": lambda t: t.histogram({"days": 5}),
    "one text as candidates": lambda t: t.top("ward", k=1, candidates="AB"),
    "keys that are no values": lambda t: t.group_by("ward", keys=[{}]).count(),
    "groups by the person": lambda t: t.group_by("who").count(),
    "a confidence without a width": lambda t: t.count().release(epsilon=1, confidence=0.9),
    "rows without a width": lambda t: t.count().release(epsilon=1, rows=10),
    "too small a price for groups": lambda t: (
        t.group_by("ward").mean("days", between=(0, 30)).release(epsilon=1e-6, delta=1e-9)
    ),
    "a mean that needs a guess of rows": lambda t: t.mean("days", between=(0, 30)).release(within=1),
    "edges that fall": lambda t: t.histogram({"days": [3, 1]}),
    "edges for three": lambda t: t.histogram({"days": [0, 1], "who": [0, 1], "x": [0, 1]}),
    "more top values than candidates": lambda t: t.top("ward", k=3, candidates=["A"]),
    "no top values": lambda t: t.top("ward", k=0, candidates=["A"]),
    "too many sums at once": lambda t: t.aggregate(
        **{f"c{i}": correlation(["days", "who"], between=[(0, 1 + i), (0, 1)]) for i in range(5)}
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_anything_is_spent(visits: Any, name: Any) -> None:
    with pytest.raises((InvalidParameter, DataError)) as caught:
        BAD[name](visits)
    assert "secret" not in str(caught.value)
    assert "77" not in str(caught.value)
    assert visits.account.spent == 0


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-9},
        {"epsilon": 1, "rho": 1},
        {},
        {"epsilon": 1e-9},
        {"epsilon": 1e9},
        {"within": -1, "confidence": 0.9},
        {"within": 1, "confidence": 2},
        {"within": 1, "epsilon": 1},
        {"within": 1, "rho": 1, "confidence": 0.9},
        {"within": 1e-9, "confidence": 0.9},
    ],
    ids=repr,
)
def test_bad_budgets_are_refused_before_anything_is_spent(visits: Any, budget: Any) -> None:
    with pytest.raises(InvalidParameter):
        visits.mean("days", between=(0, 30)).release(**budget)
    assert visits.account.spent == 0


def test_an_error_bar_without_a_confidence_is_one_of_95_percent(visits: Any) -> None:
    question = visits.count()
    question.release(within=5)
    assert visits.account.spent == pytest.approx(question.plan(within=5, confidence=0.95).epsilon)


def test_two_prices_at_once_are_refused_by_their_names(visits: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"one of epsilon=, rho= and within="):
        visits.count().release(epsilon=1, within=5)


def test_a_condition_in_words_and_an_empty_list_of_keys_are_told_what_to_write(visits: Any) -> None:
    with pytest.raises(InvalidParameter, match="col"):
        visits.where(3)
    with pytest.raises(InvalidParameter, match="keys is empty"):
        visits.group_by("ward", keys=[])


def test_a_unit_column_that_is_not_there_or_is_real_is_refused() -> None:
    with pytest.raises(DataError, match="patient"):
        protect(pa.table(ROWS), unit=mosha.Person("patient"))
    with pytest.raises(DataError, match="real"):
        protect(pa.table(ROWS), unit=mosha.Person("days"))
    with pytest.raises(InvalidParameter, match="rows or persons"):
        protect(pa.table(ROWS), unit=mosha.Edge())


def test_an_account_for_somebody_else_is_refused() -> None:
    account = mosha.Ledger.memory().account("rows", unit=mosha.Row(), epsilon=1)
    with pytest.raises(WrongUnit):
        protect(pa.table(ROWS), unit=UNIT, account=account)
    with pytest.raises(InvalidParameter, match="account"):
        protect(pa.table(ROWS), unit=UNIT).count().release(epsilon=1)


def test_rows_of_nobody_are_left_out() -> None:
    rows = pa.table({"who": pa.array([1, None, None], pa.int64()), "days": [1.0, 2.0, 3.0]})
    table = protect(rows, unit=mosha.Person("who", at_most=1))
    for question in (table.count(), table.persons(), table.distinct("days")):
        value = question.measurement(Budget(epsilon=60)).step(None, None, None, mosha.noise.secure())[0]
        found = question.plan_release(Budget(epsilon=60)).answers(value)
        assert abs(next(iter(found.values()))[0] - 1) < 0.9


def test_counting_persons_needs_persons() -> None:
    with pytest.raises(InvalidParameter, match="Person"):
        protect(pa.table(ROWS), unit=mosha.Row()).persons()


@pytest.mark.parametrize("content", [b"", b"no parquet", b"PAR1 broken PAR1"], ids=["empty", "text", "broken"])
def test_a_corrupt_parquet_file_is_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DataError, match="Parquet"):
        protect(tmp_path / "t.parquet", unit=mosha.Row())


def test_a_unit_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="'patient'"):
        protect(pa.table(ROWS), unit=mosha.Person("patient"))


def test_mixed_time_zones_are_refused() -> None:
    zones = [timezone(timedelta(hours=h)) for h in (0, 5)]
    moments = [datetime(2024, 1, 1, 12, tzinfo=zone) for zone in zones]
    frame = pd.DataFrame({"at": pd.Series(moments, dtype=object)})
    with pytest.raises(DataError, match="mixes time zones"):
        protect(frame, unit=mosha.Row())
    with pytest.raises(DataError):
        protect(pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))}), unit=mosha.Row()).where(
            mosha.col("at") < CLOCK
        ).count()


def test_a_million_groups_that_nobody_listed_are_answered() -> None:
    # False alarm: each of the groups has one person, and is shown with probability delta = 1e-15: 1e-9 together.
    ids = np.arange(1_000_000)
    many = protect(pa.table({"who": ids, "visit": ids}), unit=mosha.Person("who", groups=1, per_group=1))
    measurement = many.group_by("visit").count().measurement(Budget(epsilon=1, delta=2e-15))
    assert measurement.step(None, None, None, mosha.noise.secure())[0]["keys"] == []


def test_an_empty_table_is_answered() -> None:
    table = protect(pa.table({"who": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}), unit=UNIT)
    numbers = {"n": count(), "m": mean("x", between=(0, 1)), "s": total("x", between="automatic")}
    question = table.aggregate(**numbers)
    value = question.measurement(Budget(epsilon=1)).step(None, None, None, mosha.noise.secure())[0]
    assert 0 <= question.plan_release(Budget(epsilon=1)).answers(value)["m"][0] <= 1


def test_helpers_for_keys_refuse_nonsense() -> None:
    with pytest.raises(InvalidParameter):
        date_range(date(2024, 2, 1), date(2024, 1, 1))
    with pytest.raises(InvalidParameter):
        date_range(date(2024, 1, 1), date(2024, 2, 1), by="hour")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        interval("x", [1])
    with pytest.raises(Unbounded):
        protect(pa.table(ROWS), unit=UNIT).aggregate(m=mean("days"))


def test_keys_may_be_arrays(visits: Any) -> None:
    for keys in (np.array(["A", "B"]), pd.Series(["A", "B"]), pa.array(["A", "B"]).to_pylist(), ("A", "B")):
        assert visits.group_by("ward", keys=keys).count().only == (("A",), ("B",))


@pytest.mark.parametrize(
    "change", [lambda a: a.limit(-1), lambda a: a.limit("2"), lambda a: a.limit(2.5), lambda a: a.having("n > 3")]
)
def test_an_answer_takes_no_slip(visits: Any, change: Any) -> None:
    answer = visits.group_by("ward", keys=["A", "B"]).count().release(epsilon=1)
    with pytest.raises(InvalidParameter):
        change(answer)
    assert len(answer.limit(1)) == 1


def test_a_plan_takes_the_guesses_of_a_forecast(visits: Any) -> None:
    bought = protect(pa.table(ROWS), unit=mosha.Person("who")).sum("days", between="automatic")
    with pytest.raises(InvalidParameter, match="guess"):
        bought.plan(within=10)
    guessed: dict[str, Any] = {"at_most": 2, "between": {"days": (0, 10)}}
    budget = bought.plan(within=10, **guessed)
    assert max(bought.forecast(epsilon=budget.epsilon, **guessed)["sum"]) <= 10


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([0.0, -0.0]),
        pa.array(np.array([0, 1], "datetime64[ns]")),  # one microsecond, and two persons
        pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", tz="Asia/Tokyo")),
    ],
    ids=["real", "nanoseconds", "moments"],
)
def test_a_person_is_not_told_by_what_is_read_to_some_precision(ids: Any) -> None:
    with pytest.raises(DataError, match="are identified by"):
        protect(pa.table({"id": ids}), unit=mosha.Person("id"))


def test_a_column_is_no_attribute_and_the_answer_names_verbs() -> None:
    table = mosha.protect({"who": [1], "days": [3]}, unit=mosha.Person("who"))
    with pytest.raises(AttributeError, match=r"mean\('days', between="):
        table.days  # noqa: B018


def test_a_broken_delta_folder_is_a_typed_error(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    (tmp_path / "visits" / "_delta_log").mkdir(parents=True)
    with pytest.raises(mosha.errors.DataError, match="Delta"):
        mosha.protect(str(tmp_path / "visits"), unit=mosha.Row())
