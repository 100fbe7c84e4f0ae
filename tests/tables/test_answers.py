"""What comes back: tables for every library, a picture, notes without data, and the same again for the same key."""

import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.core.showing import write_number
from mosha.server.pages.numbers import write_column
from mosha.tables import count, mean, protect
from mosha.tables.parts.rounding import make_whole, round_numbers, round_together

UNIT = mosha.Person("who", groups=1, per_group=1)
NOON = datetime(2024, 1, 1, 12, 30)  # noqa: DTZ001  (the reading of a wall clock)
DAYS = [date(2024, 1, 1), date(2024, 2, 1), None]


def table(people: int = 3000) -> Any:
    rows = {
        "who": np.arange(people),
        "day": [DAYS[i % 3] for i in range(people)],
        "at": [None if i % 2 else NOON for i in range(people)],
        "stay": np.arange(people) % 30,
    }
    account = mosha.Ledger.memory().account("stays", unit=UNIT, epsilon=1000, delta=0.1, delta_for_events=0.05)
    return protect(pa.table(rows), unit=UNIT, account=account)


@pytest.mark.parametrize("keys", [DAYS, None], ids=["public", "private"])
def test_dates_and_missing_keys_come_back_the_same_for_the_same_key(keys: Any) -> None:
    # False alarm: a group of 1000 people is not selected with probability far below 1e-9.
    grouped = table().group_by("day", keys=keys)
    question = grouped.aggregate(n=count(), stay=mean("stay", between=(0, 30)))
    first, second = (question.release(epsilon=3, delta=1e-6, key="k") for _ in range(2))
    assert first.table == second.table
    assert first.error() == second.error()
    assert set(first.table["day"]) == set(DAYS)


def test_moments_are_keys_too() -> None:
    answer = table().group_by("at").count().release(epsilon=3, delta=1e-6, key="k")
    assert set(answer.table["at"]) == {None, NOON}


def test_an_answer_becomes_a_table_of_any_library() -> None:
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


def test_a_picture_is_drawn_also_of_many_groups_and_of_none() -> None:
    pytest.importorskip("matplotlib")
    protected = table()
    few = protected.group_by("day", keys=DAYS).aggregate(n=count(), stay=mean("stay", between=(0, 30)))
    assert len(few.release(epsilon=1).plot().axes) == 2
    many = protected.group_by("stay", keys=range(200)).count().release(epsilon=1)
    assert len(many.plot().axes) == 1
    assert len(many.having(lambda row: False).plot().axes) == 1


def test_notes_are_the_same_whatever_the_data() -> None:
    notes = []
    for people in (3, 3000):
        question = table(people).group_by("day", keys=DAYS).aggregate(n=count(), stay=mean("stay", between=(0, 30)))
        notes.append(question.release(epsilon=1).notes)
    assert notes[0] == notes[1]


def test_an_answer_with_several_numbers_has_no_single_value() -> None:
    answer = table().group_by("day", keys=DAYS).count().release(epsilon=1)
    with pytest.raises(mosha.errors.InvalidParameter, match="more than one"):
        _ = answer.value
    with pytest.raises(mosha.errors.InvalidParameter, match="no column"):
        answer.order_by("nothing")
    assert len(list(answer)) == len(answer) == 3


def test_numbers_have_two_digits_of_their_bars_counts_are_whole_and_exact_keeps_all_digits() -> None:
    unit = mosha.Person("who", at_most=3)
    account = mosha.Ledger.memory().account("a", unit=unit, epsilon=10)
    data = {"who": [i // 3 for i in range(900)], "x": [i % 37 / 3 for i in range(900)]}
    table = mosha.protect(data, unit=unit, account=account)
    asked = {"n": mosha.tables.count(), "m": mosha.tables.mean("x", between=(0, 13))}
    answer = table.aggregate(**asked, q=mosha.tables.median("x", between=(0, 13))).release(epsilon=1)
    exact, bars = answer.exact.table, answer.error()
    assert isinstance(answer.table["n"][0], int)
    assert abs(answer.table["n"][0] - exact["n"][0]) <= 0.5
    for name in ("m", "q"):
        step = 10.0 ** (math.floor(math.log10(bars[name][0])) - 1)
        assert abs(answer.table[name][0] - exact[name][0]) <= step / 2 * (1 + 1e-9)
        assert answer.table[name][0] / step == pytest.approx(round(answer.table[name][0] / step), abs=1e-6)
    assert len(repr(answer.table["m"][0])) < len(repr(exact["m"][0]))
    assert answer.exact.error() == bars
    assert answer.order_by("m").table == answer.table
    assert answer.exact.exact.table == exact


def test_a_column_without_bars_or_with_texts_keeps_what_it_has() -> None:
    texts = np.array(["a", None, 2.71828, 3], object)
    found = round_numbers(texts, [0.5, 0.5, 0.011, np.nan])
    assert found.tolist() == ["a", None, 2.718, 3]
    assert make_whole(np.array([1.6, np.nan])).tolist()[0] == 2.0
    assert make_whole(np.array([1.6, None, "x"], object)).tolist() == [2, None, "x"]


def test_sums_of_whole_parts_are_the_whole_however_many_there_are() -> None:
    numbers = np.random.default_rng().uniform(-3, 9, 500)
    whole = round_together(numbers)  # type: ignore[arg-type]
    assert np.max(np.abs(np.cumsum(whole) - np.cumsum(numbers))) <= 0.5 + 1e-9
    assert np.max(np.abs(np.array(whole) - numbers)) <= 1


def test_a_forecast_of_a_median_is_in_the_unit_of_its_column() -> None:
    # A bar is four times as wide as forecast, or a fourth, in less than 15% of releases: half of 200 never are.
    groups, rows = 200, 1000
    data = {"g": np.repeat(np.arange(groups), rows), "x": np.tile(np.linspace(0, 10, rows), groups)}
    question = mosha.protect(data, unit=mosha.Row()).group_by("g", keys=range(groups)).median("x", between=(0, 10))
    assert set(question.forecast(epsilon=1)["median"].tolist()) == {10}  # nothing is known without a guess of the rows
    guess = question.forecast(epsilon=1, rows=rows)["median"][0]
    measurement = question.measurement(mosha.tables.Budget(epsilon=1))
    found = measurement.step(None, None, None, mosha.noise.secure())[0]
    assert guess / 4 < np.median(measurement.error(0.95, found)["median"]) < guess * 4
    budget = question.plan(within=0.1, rows=rows)
    assert question.forecast(epsilon=budget.epsilon, rows=rows)["median"][0] <= 0.1


def test_no_zero_is_shown_with_a_sign() -> None:
    for value in (-0.0, -1e-9, -0.04, -0.4, -0.0049):
        for bar in (None, 0.0, 3e-7, 0.2, 9.0, 5e4):
            assert write_number(value, bar).strip("0.") != "-"
            if bar:
                found = [round_numbers(np.array([value], kind), [bar]).tolist()[0] for kind in (float, object)]
                assert "-0.0" not in map(str, found)
    assert write_column([-0.0, 7.0]) == ["0", "7"]
