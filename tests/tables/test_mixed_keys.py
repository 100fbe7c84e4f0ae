"""Public and private keys at once: months are listed, wards come from the data."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import Budget, Question, count, mean, protect

MONTHS = [1, 2, 3]


def rows(alone: Any = ()) -> Any:
    """2,000 patients in two wards, each in one month; nobody is in month 3."""
    who = [*range(2000), *[9999] * len(alone)]
    return pa.table(
        {
            "who": who,
            "month": [*np.resize([1, 2], 2000).tolist(), *[1] * len(alone)],
            "ward": [*np.repeat(["A", "B"], 1000).tolist(), *alone],
            "days": [3.0] * len(who),
        }
    )


@pytest.fixture
def table() -> Any:
    unit = mosha.Person("who", at_most=2)
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=100, delta=1e-3)
    return protect(rows(["X", "Y"]), unit=unit, account=account)


def test_every_listed_month_is_shown_for_every_ward_that_the_data_show(table: Any) -> None:
    # 1,000 people a ward; a ward of one person is shown with 1e-7 at most, noise of scale 0.5 reaches 40 with e^-80.
    answer = table.group_by("month", "ward", keys={"month": MONTHS}).count().release(epsilon=6, delta=2e-10)
    assert [(row["month"], row["ward"]) for row in answer] == [(m, w) for m in MONTHS for w in ("A", "B")]
    assert np.allclose(answer.table["count"], [500, 500, 500, 500, 0, 0], atol=40)
    assert "not shown" in " ".join(answer.notes)


def test_the_order_of_columns_is_kept_and_other_aggregates_follow(table: Any) -> None:
    question = table.group_by("ward", "month", keys={"month": MONTHS}).aggregate(
        m=mean("days", between=(0, 6)), n=count()
    )
    answer = question.release(epsilon=6, delta=2e-10)
    assert list(answer.table) == ["ward", "month", "m", "n"]
    assert set(answer.table["ward"]) == {"A", "B"}


def test_rows_outside_of_the_listed_months_show_no_ward(table: Any) -> None:
    question = table.group_by("month", "ward", keys={"month": [7]}).count()
    assert question.release(epsilon=6, delta=2e-10).table["ward"] == []


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_price_is_kept(table: Any, epsilon: float) -> None:
    event = (
        table.group_by("month", "ward", keys={"month": MONTHS})
        .count()
        .measurement(Budget(epsilon=epsilon, delta=1e-6))
        .event
    )
    assert mosha.accounting.epsilon(event, 1e-6) <= epsilon * (1 + 1e-9)


def test_a_column_may_be_said_to_come_from_the_data(table: Any) -> None:
    said = table.group_by("month", "ward", keys={"month": MONTHS, "ward": "from_data"}).count()
    assert said.fingerprint == table.group_by("month", "ward", keys={"month": MONTHS}).count().fingerprint
    others = [MONTHS[:2], [*MONTHS, 4]]
    assert said.fingerprint not in {
        table.group_by("month", "ward", keys={"month": m}).count().fingerprint for m in others
    }
    assert said.fingerprint != table.group_by("month", "ward").count().fingerprint


def test_the_question_survives_json(table: Any) -> None:
    question = table.group_by("month", "ward", keys={"month": MONTHS}).count()
    data = json.loads(json.dumps(question.to_dict()))
    assert data["keys"] == {"month": MONTHS}
    assert Question.from_dict(table, data).fingerprint == question.fingerprint


def test_sql_lists_months_and_takes_wards_from_the_data(table: Any) -> None:
    sql = "SELECT month, ward, COUNT(*) AS n FROM visits WHERE month IN (1, 2, 3) GROUP BY month, ward"
    answer = mosha.query(sql, visits=table, epsilon=6, delta=2e-10)
    assert len(answer) == 6


WRONG = {
    "a column that is no key": lambda t: t.group_by("month", "ward", keys={"days": [1.0]}),
    "no value": lambda t: t.group_by("month", "ward", keys={"month": []}),
    "text in place of a list": lambda t: t.group_by("month", "ward", keys={"month": "May"}),
    "values of another type": lambda t: t.group_by("month", "ward", keys={"month": ["May"]}).count(),
    "too many": lambda t: t.group_by("month", "days", "ward", keys={"month": range(2000), "days": range(2000)}),
    "no delta": lambda t: t.group_by("month", "ward", keys={"month": MONTHS}).count().release(epsilon=1),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_before_anything_is_spent(table: Any, wrong: Any) -> None:
    with pytest.raises(mosha.errors.MoshaError):
        WRONG[wrong](table)
