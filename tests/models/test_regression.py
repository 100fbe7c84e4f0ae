"""Intervals of a regression hold as often as they say, where noise rules and where sampling rules."""

from typing import Any

import numpy as np
import pytest

from mosha import Example, noise
from mosha.models import LinearRegression
from mosha.models.paying import add_noise_to, noise_deviation

TRUE = np.array([1.0, 2.0, -1.0])
RUNS = 150


def intervals_of(count: Any, confidence: Any, price: Any, deviation: float = 1.0, narrower: float = 1.0) -> Any:
    """Of a fresh sample: what `fit` does, without a ledger."""
    drawn = np.random.default_rng()
    rows = drawn.uniform(-1, 1, (count, 2))
    y = TRUE[0] + rows @ TRUE[1:] + deviation * drawn.uniform(-1, 1, count)
    model = LinearRegression(between=(-1, 1), target=(-6, 8), **price)
    ranges = model._find_ranges(2, None, None, None)
    sums = model.sums(ranges)
    asked = add_noise_to(sums, Example(), model.price)
    value, _ = asked.step(None, (rows, y, None), None, noise.SecureRandom())
    model._take(sums.read_moments(value, noise_deviation(asked) * narrower), ranges, 2, None)
    return model.intervals(confidence)


def misses(*asked: Any, **how: Any) -> int:
    found = np.array([intervals_of(*asked, **how) for _ in range(RUNS)])
    return int(((found[:, :, 0] > TRUE) | (found[:, :, 1] < TRUE)).any(axis=1).sum())


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"mu": 0.5}], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("count", [600, 5000])
def test_intervals_hold(count: int, price: Any) -> None:
    """Each of three 99% intervals may be missed once in a hundred, so one of them in three: 36 of 150 has p < 1e-17."""
    assert misses(count, 0.99, price) < 36


def test_intervals_that_leave_noise_out_are_found() -> None:
    """The same check fails intervals whose noise is told a tenth of what it is."""
    assert misses(3000, 0.99, {"epsilon": 1}, deviation=0.1, narrower=0.1) > 60


def test_intervals_are_not_wide_for_nothing() -> None:
    """At 20,000 examples and mu 2 they are within three times those of the exact regression."""
    found = intervals_of(20_000, 0.95, {"mu": 2.0})
    exact = 2 * 1.96 * np.sqrt((1 / 3) / 20_000 * np.array([1.0, 3.0, 3.0]))
    assert (found[:, 1] - found[:, 0] < 3 * exact).all()


def test_where_noise_drowns_the_features_the_interval_is_the_whole_line() -> None:
    assert np.isinf(intervals_of(20, 0.95, {"epsilon": 0.1})).all()
