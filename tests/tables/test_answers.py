"""What comes back: tables for every library, a picture, notes without data, and the same again for the same key."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.tables import count, mean, protect

UNIT = mosha.Person("who", groups=1, per_group=1)
NOON = datetime(2024, 1, 1, 12, 30)  # noqa: DTZ001  (the reading of a wall clock)
DAYS = [date(2024, 1, 1), date(2024, 2, 1), None]


def table(people=3000):
    rows = {
        "who": np.arange(people),
        "day": [DAYS[i % 3] for i in range(people)],
        "at": [None if i % 2 else NOON for i in range(people)],
        "stay": np.arange(people) % 30,
    }
    account = mosha.Ledger.memory().account("stays", unit=UNIT, epsilon=1000, delta=0.1, delta_for_events=0.05)
    return protect(pa.table(rows), unit=UNIT, account=account)


@pytest.mark.parametrize("keys", [DAYS, None], ids=["public", "private"])
def test_dates_and_missing_keys_come_back_the_same_for_the_same_key(keys):
    # False alarm: a group of 1000 people is not selected with probability far below 1e-9.
    grouped = table().group_by("day", keys=keys)
    question = grouped.aggregate(n=count(), stay=mean("stay", between=(0, 30)))
    first, second = (question.release(epsilon=3, delta=1e-6, key="k") for _ in range(2))
    assert first.table == second.table
    assert first.error() == second.error()
    assert set(first.table["day"]) == set(DAYS)


def test_moments_are_keys_too():
    answer = table().group_by("at").count().release(epsilon=3, delta=1e-6, key="k")
    assert set(answer.table["at"]) == {None, NOON}


def test_an_answer_becomes_a_table_of_any_library():
    answer = table().group_by("day", keys=DAYS).aggregate(n=count(), stay=mean("stay", between=(0, 30)))
    answer = answer.release(epsilon=1)
    arrow = answer.to_arrow()
    assert arrow.column_names == ["day", "n", "stay"]
    assert arrow.column("day").to_pylist() == DAYS
    pandas = pytest.importorskip("pandas")
    frame = answer.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["n"].tolist() == answer.table["n"]
    polars = pytest.importorskip("polars")
    assert isinstance(answer.to_polars(), polars.DataFrame)
    assert answer.to_polars()["stay"].to_list() == answer.table["stay"]


def test_a_picture_is_drawn_also_of_many_groups_and_of_none():
    pytest.importorskip("matplotlib")
    protected = table()
    few = protected.group_by("day", keys=DAYS).aggregate(n=count(), stay=mean("stay", between=(0, 30)))
    assert len(few.release(epsilon=1).plot().axes) == 2
    many = protected.group_by("stay", keys=range(200)).count().release(epsilon=1)
    assert len(many.plot().axes) == 1
    assert len(many.having(lambda row: False).plot().axes) == 1


def test_notes_are_the_same_whatever_the_data():
    notes = []
    for people in (3, 3000):
        question = table(people).group_by("day", keys=DAYS).aggregate(n=count(), stay=mean("stay", between=(0, 30)))
        notes.append(question.release(epsilon=1).notes)
    assert notes[0] == notes[1]


def test_an_answer_with_several_numbers_has_no_single_value():
    answer = table().group_by("day", keys=DAYS).count().release(epsilon=1)
    with pytest.raises(mosha.errors.InvalidParameter, match="more than one"):
        _ = answer.value
    with pytest.raises(mosha.errors.InvalidParameter, match="no column"):
        answer.order_by("nothing")
    assert len(list(answer)) == len(answer) == 3
