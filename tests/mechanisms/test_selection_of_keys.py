"""Partition selection: the table of probabilities, whose keys count, and golden numbers."""

import itertools
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

from mosha import Person, Row
from mosha.core.errors import InvalidParameter, Unbounded
from mosha.events import Approx
from mosha.exact.canonical import canonical_form
from mosha.mechanisms import partition_selection
from mosha.mechanisms.partition_selection import _people_per_key, keeping_probabilities
from mosha.noise import secure
from mosha.noise.exponential import exp_bounds


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-8), (0.1, 1e-5), (0.01, 1e-9), (5.0, 1e-12), (1.0, 0.5)])
def test_the_inequalities_of_privacy_hold_exactly(epsilon: float, delta: float) -> None:
    table = [Fraction(p, 1 << 128) for p in keeping_probabilities(epsilon, delta)]
    low, _ = exp_bounds(Fraction(epsilon), 400)
    grow, fail = Fraction(1 << 400, low + 2), Fraction(delta)  # a lower bound on e^epsilon: the stricter one
    assert table[0] == 0
    assert table[-1] == 1
    for p, after in itertools.pairwise(table):
        assert p <= after <= 1
        assert after <= grow * p + fail
        assert 1 - p <= grow * (1 - after) + fail


def test_the_probabilities_are_the_greatest_there_are_and_agree_with_the_formula() -> None:
    # Desfontaines, Voss and Gipson 2022: in the first half p_n = delta (e^(n epsilon) - 1) / (e^epsilon - 1)
    epsilon, delta = 1.0, 1e-8
    table = keeping_probabilities(epsilon, delta)
    for n in range(1, 18):
        expected = delta * np.expm1(n * epsilon) / np.expm1(epsilon)
        assert table[n] / 2**128 == pytest.approx(expected, rel=1e-12)


def test_golden_numbers_of_people() -> None:
    # users needed for a release half of the time at (1, 1e-8): 19 for one key a person, 90 for five
    one = partition_selection(unit=Person("who", groups=1), epsilon=1, delta=1e-8)
    five = partition_selection(unit=Person("who", groups=5), epsilon=1, delta=1e-8)
    assert one.forecast(0.5) == 19
    assert five.forecast(0.5) == 90


def test_what_is_charged_for_several_keys() -> None:
    unit = Person("who", groups=4)
    assert partition_selection(unit=unit, epsilon=1, delta=1e-6).event == Approx(0.25, 2.5e-7) * 4
    replaced = Person("who", groups=4, neighbors="replace-one")  # type: ignore[arg-type]
    assert partition_selection(unit=replaced, epsilon=1, delta=1e-6).event == Approx(0.125, 1.25e-7) * 8
    assert partition_selection(unit=Person("who", at_most=4), epsilon=1, delta=1e-6).event == Approx(0.25, 2.5e-7) * 4


def people(persons: Any, keys: Any, limit: Any) -> Any:
    return dict(zip(*_people_per_key(keys, persons, limit), strict=True))


def test_people_are_counted_once_for_each_key() -> None:
    assert people([1, 1, 1, 2], ["a", "a", "b", "a"], 5) == {"a": 2, "b": 1}
    assert people(None, ["a", "a", None, float("nan"), "b"], 1) == {"a": 2, "b": 1}
    assert people([1, 2, 3, 4], [7, 7.0, True, "7"], 1) == {7: 2, True: 1, "7": 1}
    assert people([1, 2], [[1], {}], 1) == {}


def test_nobody_counts_for_more_keys_than_allowed_and_others_stay_the_same() -> None:
    rng = np.random.default_rng()
    for _ in range(20):
        persons, keys = rng.integers(0, 8, 80).tolist(), [f"k{i}" for i in rng.integers(0, 12, 80)]
        before = people(persons, keys, 3)
        rest = [(p, k) for p, k in zip(persons, keys, strict=True) if p != persons[0]]
        after = people(*map(list, zip(*rest, strict=True)), 3)  # type: ignore[call-arg]
        moved = {key: before.get(key, 0) - after.get(key, 0) for key in before | after}
        assert set(moved.values()) <= {0, 1}
        assert sum(moved.values()) <= 3
        assert sum(before.values()) <= 8 * 3


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
SAME_KEY = [
    [1, 1.0, np.float32(1), Decimal("1.0")],
    [(1,), (1.0,), (np.int8(1),), (Decimal("1.0"),)],
    [(True, ("a", 2)), (np.True_, (np.str_("a"), 2.0))],
    [NOON, NOON.astimezone(timezone(timedelta(hours=1))), pd.Timestamp(NOON)],
    [time(12, tzinfo=UTC), time(13, tzinfo=timezone(timedelta(hours=1)))],
    [date(2020, 1, 1), datetime.fromisoformat("2020-01-01"), np.datetime64("2020-01-01", "ns")],
]


@pytest.mark.parametrize("ways", SAME_KEY, ids=str)
def test_how_one_person_writes_a_key_changes_nothing_for_the_others(ways: Any) -> None:
    """The first way in which a key was seen used to be shown, and to decide by its hash which keys others kept."""
    others = [(person, key) for person in range(40) for key in (ways[0], "b", "c", ("d",))]
    alone = people(*zip(*others, strict=True), 1)  # type: ignore[call-arg]
    for way in ways:
        for rows in ([("new", way), *others], [*others, ("new", way)]):
            names, counts = _people_per_key([key for _, key in rows], [person for person, _ in rows], 1)
            found = dict(zip(map(repr, names), counts.tolist(), strict=True))
            expected = {repr(key): int(count) for key, count in alone.items()}
            expected[repr(canonical_form(ways[0]))] += 1
            assert found == expected


def test_keys_that_differ_are_told_apart_inside_of_tuples_too() -> None:
    keys = [(1,), (True,), ("1",), 1, True, "1", b"1", 1.5, (1, (True,)), (1, (1,))]
    assert _people_per_key(keys, None, 1)[1].tolist() == [1] * len(keys)
    assert list(map(repr, _people_per_key(keys, None, 1)[0])) == list(map(repr, keys))


def test_a_key_that_cannot_be_read_counts_nowhere_and_is_not_heard() -> None:
    class Broken(tuple):
        __slots__ = ()

        def __iter__(self) -> NoReturn:
            raise RuntimeError

    deep = ()
    for _ in range(100_000):
        deep = (deep,)  # type: ignore[assignment]
    odd = [deep, (1, None), (float("nan"),), object(), 1j, Decimal("NaN"), pd.NaT, np.datetime64(2**62, "s"), ([],)]
    odd += [np.datetime64("20000-01-01"), np.datetime64("NaT")]
    assert people(None, [*odd, Broken((2,))], 1) == {(2,): 1}


def test_keys_of_any_kind_are_released_in_an_order_of_their_own() -> None:
    keys = ["b", 2, "a", 10, 2.5, b"x", (1, 2), True]
    measurement = partition_selection(unit=Row(), epsilon=2, delta=1e-3)
    answer, _ = measurement.step(None, keys * 200, None, secure())
    backwards, _ = measurement.step(None, keys[::-1] * 200, None, secure())
    assert answer == backwards == [True, b"x", 2.5, 2, 10, "a", "b", (1, 2)]


@pytest.mark.parametrize("bad", [
    {"delta": 0}, {"delta": 1}, {"delta": 1e-45}, {"epsilon": 0}, {"epsilon": 1e-9}, {"epsilon": 500}, {"unit": "row"},
    {"unit": Row(2)}, {"unit": Person("who")},
], ids=str)  # fmt: skip
def test_bad_declarations_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        partition_selection(**{"unit": Row(), "epsilon": 1, "delta": 1e-6} | bad)


def test_a_person_without_a_limit_is_unbounded() -> None:
    with pytest.raises(Unbounded, match="groups"):
        partition_selection(unit=Person("who"), epsilon=1, delta=1e-6)
