"""Which cells a wish takes: values, lists and ranges of numbers and dates, in counts and in rows."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.core.errors import InvalidParameter
from mosha.synth import Synthetic
from mosha.synth.margins import selection_of

FIRST, LAST = date(2024, 1, 1), date(2024, 1, 20)
WORDS = {"between": {"day": (FIRST, LAST), "age": (0, 39), "x": (0, 1)}, "bins": {"day": 5, "age": 10, "x": 10}}


@pytest.fixture(scope="module")
def survey() -> mosha.tables.Table:
    days = [FIRST + timedelta(days=place % 20) for place in range(2000)]
    rows = pa.table({"day": days, "age": np.arange(2000) % 40, "x": (np.arange(2000) % 100) / 100})
    account = mosha.Ledger.memory().account("survey", unit=mosha.Row(), epsilon=100, delta=1e-6)
    return mosha.protect(rows, unit=mosha.Row(), account=account)


@pytest.fixture(scope="module")
def made(survey: mosha.tables.Table) -> Synthetic:
    return survey.synthesize(**WORDS).release(epsilon=5, delta=1e-9)


def cells(made: Synthetic, **wish: object) -> list[float]:
    ((name, chosen),) = wish.items()
    column = next(column for column in made.columns if column.name == name)
    return selection_of(column, chosen).tolist()


def test_both_ends_of_dates_and_whole_numbers_belong_to_a_range(made: Synthetic) -> None:
    assert cells(made, day=(date(2024, 1, 1), date(2024, 1, 8))) == [1, 1, 0, 0, 0, 0]
    assert cells(made, day=(date(2024, 1, 1), date(2024, 1, 6))) == [1, 0.5, 0, 0, 0, 0]
    assert cells(made, age=(4, 7)) == [0, 1, *[0] * 9]
    assert cells(made, age=(3.5, 7.5)) == [0, 1, *[0] * 9]
    assert cells(made, x=(0.1, 0.3)) == [0, 1, 1, *[0] * 8]
    assert cells(made, x=(0.8, math.inf)) == [*[0] * 8, 1, 1, 0]


def test_a_range_that_cuts_a_cell_is_not_certified(survey: mosha.tables.Table, made: Synthetic) -> None:
    margins = survey.marginals(ways=1, **WORDS).release(epsilon=5, delta=1e-9)
    for answer in (made, margins):
        assert answer.count(x=(0.1, 0.3)).grade == "certified"
        cut = answer.count(x=(0.1, 0.35))
        assert (cut.grade, cut.error) == ("modelled", None)
        assert abs(cut.value - 500) < 200


@pytest.mark.parametrize("wish", [{"x": (0.13, 0.18)}, {"age": (5, 5)}, {"day": (date(2024, 1, 3), date(2024, 1, 6))}])
def test_rows_of_a_range_lie_inside_of_it(made: Synthetic, wish: dict[str, tuple]) -> None:
    ((name, (low, high)),) = wish.items()
    found = made.given(**wish).sample(300)[name]
    assert all(low <= value <= high for value in found)


def test_a_later_wish_takes_the_place_of_an_earlier_one(made: Synthetic) -> None:
    found = made.given(x=(0.13, 0.18)).given(x=(0.5, 0.7)).sample(300)["x"]
    assert all(0.5 <= value <= 0.7 for value in found)
    assert max(made.given(x=(0.13, 0.14)).given(x=0.1).sample(300)["x"]) > 0.15


@pytest.mark.parametrize("wish", [("a", "b"), (0.5, 0.1), (math.nan, 1), (None, None), (2, 3), (0.3, 0.3), [], "q"])
def test_wishes_that_take_no_cell_are_refused(made: Synthetic, wish: object) -> None:
    for ask in (made.count, made.given):
        with pytest.raises(InvalidParameter):
            ask(x=wish)


def test_a_folder_that_is_not_there_is_named(made: Synthetic, tmp_path: object) -> None:
    with pytest.raises(InvalidParameter, match="nowhere"):
        made.save(f"{tmp_path}/nowhere/made.csv")
