"""Every verb of a protected table, asked once with so much budget that the answer is close to the truth.

False alarm: each assertion allows an error whose probability is below 1e-9 at the budget that is spent.
"""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import count, date_range, distinct, interval, intervals, maximum, mean, minimum, protect
from mosha.tables import sum as total

PEOPLE = 600
WARDS = ["A", "B", "C", None]


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    generator = np.random.default_rng()
    who = np.repeat(np.arange(PEOPLE), 2)
    age = generator.integers(0, 100, len(who))
    return {
        "who": who,
        "ward": [WARDS[i % 4] for i in range(len(who))],
        "age": age,
        "cost": 10.0 * age + generator.normal(0, 50, len(who)),
        "day": [date(2024, 1, 1) + timedelta(days=int(i)) for i in generator.integers(0, 120, len(who))],
    }


@pytest.fixture(scope="module")
def visits(rows: Any) -> Any:
    unit = mosha.Person("who", at_most=2)
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1e6, delta=0.1, delta_for_events=0.05)
    return protect(pa.table(rows), unit=unit, account=account)


def asked(question: Any, **options: Any) -> Any:
    return question.release(epsilon=60, **options)


def test_counts_of_rows_persons_and_values(rows: Any, visits: Any) -> None:
    assert abs(asked(visits.count()).value - 2 * PEOPLE) < 2
    assert abs(asked(visits.persons()).value - PEOPLE) < 2
    assert abs(asked(visits.distinct("age")).value - len(set(rows["age"].tolist()))) < 2
    assert abs(asked(visits.count(mosha.col("ward"))).value - 1.5 * PEOPLE) < 2


def test_moments(rows: Any, visits: Any) -> None:
    age, cost = rows["age"].astype(float), np.clip(rows["cost"], -200, 1200)
    between = [(0, 100), (-200, 1200)]
    assert abs(asked(visits.mean("age", between=(0, 100))).value - age.mean()) < 1
    assert abs(asked(visits.sum("age", between=(0, 100))).value - age.sum()) < 200
    assert abs(asked(visits.variance("age", between=(0, 100))).value - age.var()) < 50
    assert abs(asked(visits.standard_deviation("age", between=(0, 100))).value - age.std()) < 1
    found = asked(visits.covariance(["age", "cost"], between=between)).value
    assert abs(found / np.cov(age, cost, bias=True)[0, 1] - 1) < 0.3
    assert abs(asked(visits.correlation(["age", "cost"], between=between)).value - np.corrcoef(age, cost)[0, 1]) < 0.1


def test_quantiles_in_order_with_extremes_said(rows: Any, visits: Any) -> None:
    shares = [0.25, 0.5, 0.75]
    answer = asked(visits.quantiles("age", shares, between=(0, 100)))
    for share in shares:
        assert abs(answer.table[f"quantile_{share:g}"][0] - np.quantile(rows["age"], share)) < 8
    ends = asked(visits.aggregate(low=minimum("age", between=(0, 100)), high=maximum("age", between=(0, 100))))
    assert ends.table["low"][0] < 10
    assert ends.table["high"][0] > 90
    assert any("in place of the extreme value" in note for note in ends.notes)


def test_a_sum_beside_a_mean_needs_no_channel_of_its_own(rows: Any, visits: Any) -> None:
    both = visits.aggregate(average=mean("age", between=(0, 100)), total=total("age", between=(0, 100)))
    (part,) = both.parts(mosha.tables.Budget(epsilon=1))
    assert part.noise.channels == 2
    assert abs(asked(both).table["total"][0] - rows["age"].sum()) < 300


def test_histograms_of_one_and_two_columns(rows: Any, visits: Any) -> None:
    edges = [0, 18, 65, 120]
    one = asked(visits.histogram({"age": edges})).table
    assert one["age"] == ["[0, 18)", "[18, 65)", "[65, 120]"] == intervals(edges)
    truth, _ = np.histogram(rows["age"], edges)
    assert np.abs(np.array(one["count"]) - truth).max() < 2
    two = asked(visits.histogram({"age": edges, "cost": [-1000, 500, 3000]})).table
    truth, *_ = np.histogram2d(rows["age"], rows["cost"], [edges, [-1000, 500, 3000]])
    assert np.abs(np.array(two["count"]) - truth.ravel()).max() < 2


def test_keys_may_be_dates_missing_values_and_expressions(rows: Any, visits: Any) -> None:
    months = date_range(date(2024, 1, 10), date(2024, 4, 2), by="month")
    by_month = asked(visits.group_by(month=mosha.col("day").truncate("month"), keys=months).count()).table
    truth = [sum(day.month == m for day in rows["day"]) for m in (1, 2, 3, 4)]
    assert by_month["month"] == months
    assert np.abs(np.array(by_month["count"]) - truth).max() < 2
    by_ward = asked(visits.group_by("ward", keys=WARDS).count()).table
    assert by_ward["ward"] == WARDS
    assert np.abs(np.array(by_ward["count"]) - PEOPLE / 2).max() < 2
    by_age = visits.group_by("ward", age=interval("age", [0, 50, 100]), keys={"ward": ["A"], "age": ["[0, 50)"]})
    assert len(asked(by_age.count())) == 1


def test_the_most_frequent_values_come_first(rows: Any, visits: Any) -> None:
    skewed = visits.compute(
        kind=mosha.tables.when(mosha.col("age") < 60, "x").when(mosha.col("age") < 90, "y").else_("z")
    )
    for candidates, delta in ((["q", "z", "y", "x"], 0.0), (None, 1e-6)):
        answer = skewed.top("kind", k=2, candidates=candidates).release(epsilon=40, delta=delta)
        assert answer.table["kind"] == ["x", "y"]
        assert abs(answer.table["count"][0] - (rows["age"] < 60).sum()) < 4


def test_ranges_that_nobody_knows_are_bought_and_told(rows: Any, visits: Any) -> None:
    answer = visits.mean("age", between="automatic").release(epsilon=60)
    assert abs(answer.value - rows["age"].mean()) < 4
    assert any("chosen with a tenth of the budget" in note for note in answer.notes)
    assert abs(visits.median("age", between="automatic").release(epsilon=60).value - np.median(rows["age"])) < 8
    bar = visits.mean("age", between="automatic").forecast(epsilon=60, rows=1200, between={"age": (0, 128)})["mean"][0]
    assert 0 < bar < 1


def test_weights_move_the_budget_and_not_the_price(visits: Any) -> None:
    both = visits.aggregate(n=count(), values=distinct("age"))
    even, uneven = both.forecast(epsilon=1), both.weigh(n=9).forecast(epsilon=1)
    assert uneven["n"][0] < even["n"][0]
    assert uneven["values"][0] > even["values"][0]
    for question in (both, both.weigh(n=9)):
        assert mosha.accounting.epsilon(question.measurement(mosha.tables.Budget(epsilon=1)).event, 0) <= 1


def test_the_least_epsilon_for_an_accuracy_is_found(visits: Any) -> None:
    question = visits.group_by("ward", keys=WARDS).count()
    budget = question.plan(within=10, confidence=0.95)
    assert max(question.forecast(epsilon=budget.epsilon)["count"]) <= 10
    assert max(question.forecast(epsilon=budget.epsilon * 0.95)["count"]) > 10
    answer = question.release(within=10, confidence=0.95)
    assert max(answer.error(0.95)["count"]) <= 10


def test_a_forecast_for_bounds_that_are_bought_needs_a_guess(rows: Any) -> None:
    table = protect(pa.table(rows), unit=mosha.Person("who"))
    with pytest.raises(mosha.errors.InvalidParameter, match="at_most"):
        table.count().forecast(epsilon=1)
    bars = [table.count().forecast(epsilon=1, at_most=n)["count"][0] for n in (2, 20)]
    assert bars[0] * 5 < bars[1]


def test_having_order_and_limit_are_free(visits: Any) -> None:
    answer = asked(visits.group_by("ward", keys=["A", "B", "none"]).count())
    spent = visits.account.spent
    kept = answer.having(lambda row: row["count"] > 100).order_by("ward", descending=True).limit(1)
    assert kept.table["ward"] == ["B"]
    assert visits.account.spent == spent
