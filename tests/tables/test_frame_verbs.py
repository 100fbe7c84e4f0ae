"""Verbs of data frames ask what the verbs of a protected table ask, and nothing else."""

from typing import Any

import pytest

import mosha
from mosha.core.errors import InvalidParameter, MoshaError

SAID = {"columns": {"who": {"type": "integer"}, "ward": {"type": "text", "keys": ["A", "B"]},
                    "days": {"type": "integer", "between": [0, 10]}}}  # fmt: skip


def make_table(**options: Any) -> Any:
    data = {"who": list(range(300)), "ward": ["A", "B", "A"] * 100, "days": [1, 5, 9] * 100}
    return mosha.protect(data, unit=mosha.Person("who", at_most=1), schema=SAID, **options)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("days > 3", mosha.col("days") > 3),
        ("days > 3 AND ward = 'A'", (mosha.col("days") > 3) & (mosha.col("ward") == "A")),
        ("ward IN ('A', 'B')", mosha.col("ward").is_in(["A", "B"])),
    ],
)
def test_a_condition_in_sql_is_the_expression(text: str, expression: Any) -> None:
    table = make_table()
    assert table.filter(text).count().fingerprint == table.where(expression).count().fingerprint


@pytest.mark.parametrize("text", ["1 = 1 GROUP BY ward", "days > 3; DROP TABLE x", "", "days >", "days > 3 LIMIT 1",
                                  "COUNT(*) > 3", "days > 3 UNION SELECT 1"])  # fmt: skip
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(MoshaError):
        make_table().filter(text)


def test_choices_are_written_as_people_say_them() -> None:
    days = mosha.col("days")
    said = mosha.when(days < 3).then("short").when(days < 7).then("some").otherwise("long")
    assert repr(said) == repr(mosha.when(days < 3, "short").when(days < 7, "some").else_("long"))
    assert repr(days.is_in([1, 2])) == repr(days.is_in(1, 2))
    assert repr(days.is_in({2, 1})) == repr(days.is_in(1, 2))


def test_a_description_is_one_release() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=50)
    answer = make_table(account=account).describe().release(epsilon=40)
    assert answer.table["days mean"][0] == pytest.approx(5, abs=1)
    assert account.spent == pytest.approx(40, rel=1e-6)
    with pytest.raises(InvalidParameter):
        mosha.protect({"x": [1]}, unit=mosha.Row()).describe()


def test_a_pivot_is_laid_out_with_a_column_for_each_value() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=50)
    table = make_table(account=account).with_columns(long=mosha.when(mosha.col("days") > 4).then("yes").otherwise("no"))
    answer = table.pivot("ward", "long", keys={"ward": ["A", "B"], "long": ["yes", "no"]}).release(epsilon=40)
    laid = answer.pivot()
    assert list(laid) == ["ward", "yes", "no"]
    assert [round(number, -1) for number in laid["yes"]] == [100, 100]
    with pytest.raises(InvalidParameter):
        table.count().release(epsilon=1).pivot()


def test_counts_of_values_and_named_aggregates_are_the_questions_they_stand_for() -> None:
    table = make_table()
    assert table.value_counts("ward").fingerprint == table.group_by("ward").count().fingerprint
    mean = mosha.tables.mean("days")
    assert table.agg(m=mean).fingerprint == table.aggregate(m=mean).fingerprint


def test_a_dict_of_columns_is_a_table_and_one_that_is_none_is_told_why() -> None:
    for wrong in ({}, {"x": [1], "y": [1, 2]}, {"x": [1, "a"]}, {"x": "text"}, {1: [2]}, {"x": [object()]}):
        with pytest.raises(MoshaError):
            mosha.protect(wrong, unit=mosha.Row())
    assert list(mosha.protect({"a": [None, None], "b": [1.5, None]}, unit=mosha.Row()).schema) == ["a", "b"]


def test_columns_are_picked_left_out_and_renamed_with_what_is_declared_of_them() -> None:
    table = make_table()
    assert list(table.select("days").schema) == ["who", "days"]
    assert list(table.drop("ward").schema) == ["who", "days"]
    renamed = table.rename({"days": "stay"})
    assert list(renamed.schema) == ["who", "ward", "stay"]
    assert renamed.declared.ranges == {"stay": (0.0, 10.0)}
    assert renamed.mean("stay").forecast(epsilon=1, rows=100)
    for wrong in (lambda: table.drop("who"), lambda: table.rename({"who": "x"}), lambda: table.rename({"days": "ward"}),
                  lambda: table.select("nothing")):  # fmt: skip
        with pytest.raises(MoshaError):
            wrong()


def test_tables_that_share_names_are_joined_with_a_suffix_and_the_answers_are_right() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=2000)
    table = make_table(account=account)
    wards = mosha.tables.public_table({"ward": ["A", "B"], "days": [1, 2]})
    with pytest.raises(MoshaError, match="suffix"):
        table.join_public(wards, on="ward")
    joined = table.join_public(wards, on="ward", suffix="_of_ward")
    assert round(joined.filter("days_of_ward = 2").count().release(epsilon=300).value) == 100
    both = table.join(make_table(account=account), suffix="_2")
    assert list(both.schema) == ["who", "ward", "days", "ward_2", "days_2"]
    assert round(both.filter("days_2 = 5").count().release(epsilon=300).value) == 100
    dropped = table.select("days").rename({"days": "d"}).filter("d = 5")
    assert round(dropped.count().release(epsilon=300).value) == 100
