"""What is kept of one person depends on nobody else."""

import math
import warnings
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from mosha import Person, Row
from mosha.core.errors import DataError
from mosha.exact.bounding import identify, keep_at_most, list_entries, to_array, to_numbers
from mosha.exact.clip import Clipped, ClippedVectors
from mosha.exact.quantile import Quantile
from mosha.exact.sum_and_count import SumAndCount
from mosha.mechanisms import ClippedSum, Count, Histogram, VectorSum


def kept(persons: Any, rows: Any, at_most: Any, rule: Any = keep_at_most) -> dict[Any, Any]:
    """The kept rows of each person, as a sorted list."""
    mask = rule(at_most, persons, np.array(rows, np.int64).reshape(len(persons), -1))
    found: dict[Any, Any] = {}
    for person, row, keep in zip(persons, rows, mask, strict=True):
        found.setdefault(identify(person), []).extend([row] * bool(keep))
    return {person: sorted(rows) for person, rows in found.items()}


def crowd(names: Any, rng: Any) -> tuple[Any, ...]:
    persons = [names[i] for i in rng.integers(len(names), size=60)]
    return persons, [int(x) for x in rng.integers(0, 5, size=60)]


def others_change(names: Any, rule: Any = keep_at_most, rounds: Any = 30) -> bool:
    """Whether taking somebody away, or shuffling the table, ever changes what is kept of somebody else."""
    rng = np.random.default_rng()
    for _ in range(rounds):
        persons, rows = crowd(names, rng)
        before = kept(persons, rows, 3, rule)
        gone = persons[0]
        rest = [(p, r) for p, r in zip(persons, rows, strict=True) if p != gone]
        after = kept(*zip(*rest, strict=True), 3, rule)  # type: ignore[call-arg]
        if any(after[person] != before[person] for person in after):
            return True
        order = rng.permutation(len(persons))
        if kept([persons[i] for i in order], [rows[i] for i in order], 3, rule) != before:
            return True
    return False


NAMES = [
    list(range(8)),
    [-1, 2**40, -(2**62), 5],
    ["ann", "bo", "cy", "di"],
    [1, "1", 2.5, None, b"x", "y"],
    [1.0, 2.0, float(2**53), 0.5],
    [10**30, 10**31, 3],
]


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_taking_somebody_away_changes_nothing_for_the_others(names: Any) -> None:
    assert not others_change(names)


def by_position(at_most: Any, persons: Any, rows: Any) -> Any:
    """A wrong rule: the position in the table is part of the hash."""
    keys = np.random.default_rng(1).permutation(len(persons))
    return by_key(at_most, persons, keys)


def by_code(at_most: Any, persons: Any, rows: Any) -> Any:
    """A wrong rule: codes in order of appearance, as from a factorised column, are part of the hash."""
    codes: dict[Any, Any] = {}
    keys = [
        hash((codes.setdefault(identify(p), len(codes)), tuple(r))) for p, r in zip(persons, rows.tolist(), strict=True)
    ]
    return by_key(at_most, persons, keys)


def by_key(at_most: Any, persons: Any, keys: Any) -> Any:
    mask = np.zeros(len(persons), bool)
    for person in set(map(identify, persons)):
        mine = [i for i, p in enumerate(persons) if identify(p) == person]
        mask[sorted(mine, key=lambda i: keys[i])[:at_most]] = True
    return mask


@pytest.mark.parametrize("wrong", [by_position, by_code])
def test_a_rule_that_looks_at_others_is_caught(wrong: Any) -> None:
    assert others_change(list(range(5)), wrong)


def test_nobody_keeps_more_than_allowed_and_nobody_loses_without_need() -> None:
    rng = np.random.default_rng()
    for at_most in (1, 2, 7, 100):
        persons, rows = crowd(["a", "b", "c", "d", "e", "f"], rng)
        for person, mine in kept(persons, rows, at_most).items():
            assert len(mine) == min(at_most, list(map(identify, persons)).count(person))


def test_a_missing_entry_that_turns_integers_into_floats_reshuffles_nobody() -> None:
    persons, rows = [1, 1, 1, 1, 2, 2, 2, 2], list(range(8))
    as_integers = kept(np.array(persons), rows, 2)
    as_floats = kept(np.array([*persons, np.nan]), [*rows, 9], 2)
    as_objects = kept([*persons, "x"], [*rows, 9], 2)
    assert as_integers[1] == as_floats[1] == as_objects[1]
    assert as_integers[2] == as_floats[2] == as_objects[2]


class Shouting(str):
    """A text that shows, hashes and compares itself as nobody else does."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{id(self)}!"

    def __eq__(self, other: object) -> bool:
        return self is other


ONE_PERSON = [
    ["ann", np.str_("ann"), Shouting("ann"), Shouting("ann")],
    [7, 7.0, np.float32(7), np.longdouble(7), np.int8(7), Decimal("7.0"), Decimal(7), Fraction(7)],
    [True, np.True_, 1, 1.0],
    [(True, "a"), (1.0, np.str_("a"))],
    [datetime.fromisoformat("2020-01-01"), date(2020, 1, 1), np.datetime64("2020-01-01"),
     np.datetime64("2020-01-01", "ns"), pd.Timestamp("2020-01-01")],
    [datetime(2020, 1, 1, 12, tzinfo=UTC), datetime(2020, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
     pd.Timestamp("2020-01-01T12", tz="UTC")],
    [None, float("nan"), pd.NA, pd.NaT, object(), Decimal("sNaN"), [1]],
    [10**400, 10**5000, Decimal("1E+999999"), float("inf"), np.longdouble("1e4000")],
    [b"x", bytearray(b"x"), np.bytes_(b"x")],
    [UUID(int=5), UUID(int=5)],
]  # fmt: skip


@pytest.mark.parametrize("names", ONE_PERSON, ids=lambda names: type(names[0]).__name__)
def test_one_person_written_in_many_ways_is_one_person(names: Any) -> None:
    """Told apart by their `repr`, these were several people, each with rows of their own."""
    assert keep_at_most(1, names, np.zeros(len(names), np.int64)).sum() == 1
    assert keep_at_most(1, names[::-1], np.arange(len(names))).sum() == 1


def test_people_with_different_names_are_different_people() -> None:
    names = [7, "7", b"7", 7.5, "ann", "None", None, (7,), ("7",), "\ud800", UUID(int=7), timedelta(7), time(7), 10**30]
    names += [date(2020, 1, 1), datetime.fromisoformat("2020-01-01T01:00"), datetime(2020, 1, 1, 1, tzinfo=UTC)]
    names += [10**400, -(10**400)]
    assert keep_at_most(1, names, np.zeros(len(names), np.int64)).all()


def test_a_column_of_times_and_one_of_objects_name_the_same_people() -> None:
    times = np.array(["2020-01-01", "2020-01-02T03:00", "NaT"], "datetime64[ns]").repeat(5)
    objects = [None if np.isnat(when) else pd.Timestamp(when) for when in times]
    assert keep_at_most(2, times, np.arange(15)).tolist() == keep_at_most(2, objects, np.arange(15)).tolist()


def test_a_row_that_breaks_whatever_looks_at_it_is_no_number() -> None:
    class Raises:
        def __getattribute__(self, name: Any) -> NoReturn:
            raise RuntimeError("secret")

    assert np.isnan(to_numbers([1, Raises(), 2])).tolist() == [False, True, False]


def test_which_rows_are_kept_differs_between_people_and_is_fair() -> None:
    # 400 people with rows 0..9, 3 kept: each row is kept by a binomial number of them (0.3); false alarm below 1e-9
    from scipy.stats import binom

    persons = np.repeat(np.arange(400), 10)
    rows = np.tile(np.arange(10), 400)
    mask = keep_at_most(3, persons, rows)
    counts = mask.reshape(400, 10).sum(axis=0)
    low, high = binom.ppf(1e-12, 400, 0.3), binom.isf(1e-12, 400, 0.3)
    assert ((counts >= low) & (counts <= high)).all()
    assert len({tuple(row) for row in mask.reshape(400, 10)}) > 50


def test_equal_rows_of_one_person_are_drawn_like_any_others() -> None:
    persons, rows = ["a"] * 12, [5] * 10 + [6, 7]
    assert sum(len(mine) for mine in kept(persons, rows, 4).values()) == 4


def test_an_array_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(DataError):
        keep_at_most(1, np.zeros((2, 2)), np.zeros(2, np.int64))
    with pytest.raises(DataError):
        to_numbers(np.zeros((2, 2)))
    with pytest.raises(DataError):
        to_numbers(np.zeros((2, 3)), width=2)
    with pytest.raises(DataError):
        to_numbers(np.array([1j]))
    with pytest.raises(DataError):
        to_numbers(np.array(["2020-01-01"], "datetime64[D]"))


def test_numbers_are_read_one_by_one() -> None:
    assert to_numbers([1, "2", None]).tolist()[:2] == [1.0, 2.0]
    assert to_numbers([True, "x"])[0] == to_numbers([True, 2])[0] == 1.0
    assert to_numbers([10**400, -(10**400)]).tolist() == [float("inf"), -float("inf")]
    assert to_numbers([[1, 2], [3], "ab", None], width=2).shape == (4, 2)
    assert to_numbers(5).tolist() == [5.0]
    assert to_numbers([], width=3).shape == (0, 3)


class Unreadable(list):
    def __iter__(self) -> NoReturn:
        raise RuntimeError


class Boundless:
    """Too large for a float, and not to be compared with zero."""

    def __float__(self) -> NoReturn:
        raise OverflowError


HUGE = np.longdouble("1e4000")
ODD = [
    np.ma.array([1, 2, "x", 10**400, "3"], dtype=object, mask=[0, 1, 0, 0, 0]),  # type: ignore[arg-type, type-var]
    np.ma.array([1.5, 2.5], mask=[False, True]),
    np.array(["1", "1e4000", "-1e4000"], np.longdouble),
    [HUGE, np.array([1.0]), np.array(5.0), np.complex64(1), 1j, Boundless(), Fraction(10**400), Decimal("sNaN")],
    np.array([1e308, -1e308, 5e-324, np.inf, np.nan]),
]
ODD_VECTORS = [
    np.array([[1.0, 1e308], [5e-324, -1e308], [np.inf, np.nan]]),
    np.array([[1, HUGE], [-HUGE, 0]], np.longdouble),
    np.ma.array([[1, "x"], [None, 10**400]], dtype=object, mask=[[0, 0], [1, 0]]),  # type: ignore[arg-type, type-var]
    [np.array(5.0), Unreadable([1, 2]), [Boundless(), 1], [HUGE, 1j], (1, 2), "ab"],
]


@pytest.mark.parametrize("errors", ["warn", "raise"])
def test_no_row_makes_a_statistic_fail_or_warn(errors: str) -> None:
    """One text in a masked array raised, one 1e308 warned: under `-W error` a failure that depends on private data."""
    range_, unit = (0, 1), Row()
    with warnings.catch_warnings(), np.errstate(all=errors):  # type: ignore[arg-type]
        warnings.simplefilter("error")
        for values in ODD:
            for statistic in (Count(), Count(between=range_), ClippedSum(between=range_), Clipped(between=range_),
                              SumAndCount(between=range_), Histogram(keys=[1, "x"])):  # fmt: skip
                statistic.evaluate(values, unit)
                statistic.evaluate((values, values), Person("who", at_most=1))
            Quantile(at=0.5, between=range_).evaluate_with_reaches(values, unit)
        for values in ODD_VECTORS:
            for order in (1, 2):
                for norm in (1e-3, 0.1, 1e9):
                    VectorSum(norm=norm, coordinates=2, order=order).evaluate(values, unit)
                    ClippedVectors(norm=norm, coordinates=2, order=order).evaluate(values, unit)


def test_what_is_masked_is_missing_and_hides_what_lies_below() -> None:
    masked = np.ma.array([1, 2, "x"], dtype=object, mask=[0, 1, 0])  # type: ignore[arg-type, type-var]
    assert str(to_numbers(masked).tolist()) == "[1.0, nan, nan]"
    assert Histogram(keys=[1, 2, "x"]).evaluate(masked, Row()).tolist() == [1, 0, 1]
    assert Histogram(keys=[1, 2]).evaluate(np.ma.array([1, 2, 2], mask=[0, 0, 1]), Row()).tolist() == [1, 1]  # type: ignore[arg-type]
    people = np.ma.array([5, 5, 6], mask=[0, 1, 1])  # type: ignore[arg-type]
    assert keep_at_most(1, people, np.zeros(3, np.int64)).sum() == 2
    times = np.ma.array(np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]"), mask=[0, 1])  # type: ignore[arg-type]
    assert [identify(when) for when in list_entries(times)] == [identify(date(2020, 1, 1)), identify(None)]
    with pytest.raises(DataError):
        to_numbers(np.ma.array([(1, 2)], dtype=[("a", int), ("b", int)]))


def test_a_vector_whose_share_of_the_norm_overflows_is_too_long() -> None:
    vectors = np.array([[1e308], [0.05], [-1e308]])
    assert ClippedVectors(norm=0.1, coordinates=1).evaluate(vectors, Row()).tolist() == [2]
    assert ClippedVectors(norm=1.5e308, coordinates=1).evaluate([[1.7e308], [1e308]], Row()).tolist() == [1]


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_entry_merges_no_large_numbers_of_others(frame: str, missing: bool) -> None:
    """As floats, 2**53 and 2**53 + 1 would be one person, because somebody else is unknown."""
    module = pytest.importorskip(frame)
    ids = [2**53, 2**53 + 1, *([None] if missing else [])]
    made = {
        "pandas": lambda: module.Series(ids, dtype="Int64"),
        "polars": lambda: module.Series(ids, dtype=module.Int64),
        "pyarrow": lambda: module.chunked_array([ids], module.int64()),
    }[frame]()
    assert to_array(made).tolist() == ids
    assert keep_at_most(1, made, np.arange(len(ids))).tolist() == [True] * len(ids)
    values = to_numbers(made).tolist()
    assert values[:2] == [2.0**53, 2.0**53]
    assert all(math.isnan(value) for value in values[2:])
