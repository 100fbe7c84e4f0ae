"""Who pays for a join, what a key finds again, and that no rows look like any rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.engines.duckdb import DuckDB
from mosha.tables import quantile


@pytest.fixture
def ledger() -> Any:
    return mosha.Ledger.memory()


PEOPLE = pa.table({"who": np.arange(500), "ward": ["A", "B"] * 250, "positive": np.arange(500) % 5 == 0})


def test_a_join_is_not_paid_by_one_of_two_accounts(ledger: Any) -> None:
    person = mosha.Person("who", at_most=1)
    rich, poor = (ledger.account(name, unit=person, epsilon=epsilon) for name, epsilon in (("rich", 20), ("poor", 0.1)))
    meals = mosha.protect(PEOPLE.select(["who", "ward"]), unit=person, account=rich)
    tests = mosha.protect(PEOPLE.select(["who", "positive"]), unit=person, account=poor)
    with pytest.raises(mosha.errors.InvalidParameter, match="different accounts"):
        meals.join(tests)
    both = ledger.together([rich, poor])
    meals = mosha.protect(PEOPLE.select(["who", "ward"]), unit=person, account=both)
    tests = mosha.protect(PEOPLE.select(["who", "positive"]), unit=person, account=both)
    with pytest.raises(mosha.errors.BudgetExceeded, match="poor"):
        meals.join(tests).count().release(epsilon=10)


def test_a_key_does_not_find_the_answer_to_another_question(ledger: Any) -> None:
    person = mosha.Person("who", at_most=1)
    table = mosha.protect(PEOPLE, unit=person, account=ledger.account("a", unit=person, epsilon=5))
    grouped = [table.group_by("ward", keys=keys).count() for keys in (["A", "B"], ["B", "C"])]
    first = grouped[0].release(epsilon=1, key="monday")
    assert grouped[0].release(epsilon=1, key="monday").table == first.table
    with pytest.raises(mosha.errors.InvalidParameter, match="another"):
        grouped[1].release(epsilon=1, key="monday")
    with pytest.raises(mosha.errors.InvalidParameter, match="another"):
        table.where(mosha.col("positive")).group_by("ward", keys=["A", "B"]).count().release(epsilon=1, key="monday")


SAME_PRICE = {
    "another share": lambda t: t.aggregate(x=quantile("age", 0.9, between=(0, 100))),
    "another range": lambda t: t.aggregate(x=quantile("age", 0.5, between=(0, 90))),
    "another column": lambda t: t.aggregate(x=quantile("who", 0.5, between=(0, 100))),
    "another filter": lambda t: t.where(mosha.col("positive")).aggregate(x=quantile("age", 0.5, between=(0, 100))),
    "another kind": lambda t: t.aggregate(x=mosha.tables.distinct("age")),
}


@pytest.mark.parametrize("other", SAME_PRICE)
def test_no_question_of_the_same_price_and_name_finds_the_answer_of_a_median(ledger: Any, other: Any) -> None:
    table = mosha.protect(PEOPLE.append_column("age", pa.array(np.arange(500) % 90)), unit=mosha.Row(),
                          account=ledger.account("a", unit=mosha.Row(), epsilon=50))  # fmt: skip
    table.aggregate(x=quantile("age", 0.5, between=(0, 100))).release(epsilon=1, key="monday")
    with pytest.raises(mosha.errors.InvalidParameter, match="another"):
        SAME_PRICE[other](table).release(epsilon=1, key="monday")


def test_the_same_question_about_changed_data_finds_the_old_answer_and_says_so(ledger: Any) -> None:
    # A fingerprint of the data would tell something about them; a key is a promise about the question alone.
    account = ledger.account("a", unit=mosha.Row(), epsilon=5)
    before, after = (mosha.protect(PEOPLE.slice(0, n), unit=mosha.Row(), account=account) for n in (500, 10))
    first, again = (table.count().release(epsilon=1, key="monday") for table in (before, after))
    assert first.table == again.table
    assert not any("earlier" in note for note in first.notes)
    assert any("Answered earlier under this key" in note for note in again.notes)
    assert again.receipt.spent == 1.0
    assert abs(after.count().release(epsilon=1, key="tuesday").value - 10) < 60


@pytest.mark.parametrize("compiled_from", [0, None], ids=["compiled", "SQL"])
def test_a_filter_that_keeps_nobody_is_answered_like_one_that_keeps_somebody(ledger: Any, compiled_from: Any) -> None:
    person = mosha.Person("who", at_most=1)
    account = ledger.account("a", unit=person, epsilon=100)
    table = mosha.protect(PEOPLE, unit=person, account=account, engine=DuckDB(compiled_from=compiled_from))
    for who in (0, 1, 10**6):
        chosen = table.where((mosha.col("who") == who) & mosha.col("positive"))
        assert abs(chosen.count().release(epsilon=10).value - (who == 0)) < 10
        assert len(chosen.group_by("ward", keys=["A", "B"]).count().release(epsilon=10)) == 2
