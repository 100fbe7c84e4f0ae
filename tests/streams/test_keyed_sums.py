"""Sums by key: exactly those of one key at a time, in one pass over the rows."""

from typing import Any

import numpy as np
import pytest

from mosha.core.unit import Reading, Row
from mosha.exact.grid import LARGEST_STEPS, sum_steps, sum_steps_by
from mosha.mechanisms import Histogram
from mosha.streams.statistics import KeyedSum
from tests.counting import calls


def one_at_a_time(codes: Any, steps: Any, count: Any, largest: Any) -> list[Any]:
    return [int(sum_steps(steps[codes == code], largest)[0]) for code in range(count)]


@pytest.mark.parametrize("largest", [0, 1, 1000, 2**31, 2**40, 2**59, 2**60])
@pytest.mark.parametrize("rows", [0, 1, 7, 500])
def test_sums_by_code_are_those_of_one_code_at_a_time(rows: int, largest: Any) -> None:
    """Also where 64 bits would wrap around: all rows of one code at its limit, of either sign."""
    rng = np.random.default_rng()
    codes = rng.integers(0, 6, rows)  # 5 is the code of no sum
    for steps in (
        rng.integers(-largest, largest, rows, endpoint=True),
        np.full(rows, largest, np.int64),
        np.full(rows, -largest, np.int64),
    ):
        found = sum_steps_by(codes, steps, 5, max(1, largest))
        assert found.tolist() == one_at_a_time(codes, steps, 5, max(1, largest))
        assert np.abs(found).max(initial=0) <= LARGEST_STEPS


def test_rows_that_cancel_in_large_sums_leave_what_is_left() -> None:
    steps = np.array([2**60, -(2**60), 2**60, 2**60, -(2**60), 3, -5, -(2**60)])
    assert sum_steps_by(np.array([0, 0, 1, 1, 1, 0, 2, 2]), steps, 3, 2**60).tolist() == [3, 2**60, -(2**60)]


@pytest.mark.parametrize("between", [(0, 4), (-1e150, 1e150), (-3.5, 2.25)])
def test_a_keyed_sum_has_each_key_by_itself(between: Any) -> None:
    rng = np.random.default_rng()
    rooms = KeyedSum(keys=["a", "b", "c", 4], key="room", between=between, column="kW")
    rows = {"room": rng.choice(np.array(["a", "b", "c", 4, "x", None], object), 300), "kW": rng.normal(0, 5, 300)}
    whole = rooms.evaluate(rows, Reading())
    for place, key in enumerate(rooms.labels):
        mine = [room == key for room in rows["room"]]
        alone = KeyedSum(keys=[key], key="room", between=between, column="kW")
        part = {"room": rows["room"][mine], "kW": rows["kW"][mine]}
        assert whole[place] == alone.evaluate(part, Reading())[0]


def test_the_work_of_a_step_does_not_grow_with_keys_that_are_not_in_it() -> None:
    """Calls of Python and of C for 500 rows among 1,000 and 8,000 keys."""
    found = []
    for keys in (1_000, 8_000):
        rows = {"k": np.arange(500), "v": np.ones(500)}
        for statistic in (KeyedSum(keys=range(keys), key="k", between=(0, 2), column="v"), Histogram(keys=range(keys))):
            unit, data = (Reading(), rows) if isinstance(statistic, KeyedSum) else (Row(), rows["k"])
            statistic.evaluate(data, unit)
            found.append(calls(lambda s=statistic, d=data, u=unit: s.evaluate(d, u)))  # type: ignore[misc]
    assert found[2] <= 1.1 * found[0]
    assert found[3] <= 1.1 * found[1]
