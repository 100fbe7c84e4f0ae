"""Local sensitivities hold on all neighbors; smooth bounds are smooth; proposals are tested."""

import math
from typing import Any

import numpy as np
import pytest

from mosha import Person, Row
from mosha.core.errors import InvalidParameter
from mosha.mechanisms import Count, LocalStatistic, Quantile, propose_test_release, smooth_sensitivity
from mosha.mechanisms.propose_test_release import passing_level
from mosha.mechanisms.smooth_sensitivity import smooth_bound
from mosha.noise import secure
from tests.mechanisms.neighbors import random_neighbors

UNITS = [
    make(neighbors=neighbors, at_most=rows)  # type: ignore[arg-type]
    for make in (Row, lambda **limits: Person("who", **limits))
    for neighbors in ("add-remove", "replace-one")
    for rows in (1, 2, 3)
]
UNIT = Quantile(at=0.5, between=(0, 1))
VALUES = [0.0, 1.0, 2.0, 5.0, 8.0, -3.0, 99.0, float("nan")]


def violated(statistic: Any, unit: Any, first: Any, second: Any) -> Any:
    f, reach = statistic.evaluate_with_reaches(first, unit)
    g, other = statistic.evaluate_with_reaches(second, unit)
    if abs(f - g) > min(reach[0], other[0]):
        return True
    size = max(len(reach), len(other)) + 1
    a, b = (np.concatenate([r, np.full(size - len(r) + 1, r[-1])]) for r in (reach, other))
    return (a[:size] > b[1 : size + 1]).any() or (b[:size] > a[1 : size + 1]).any()


@pytest.mark.parametrize("at", [0.01, 0.25, 0.5, 0.9, 1 - 2.0**-53])
@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__}-{u.neighbors}-{u.at_most}")
def test_a_quantile_moves_no_further_than_its_local_sensitivity(at: Any, unit: Any) -> None:
    statistic, rng = Quantile(at=at, between=(0, 8), grid=1), np.random.default_rng()
    for _ in range(40):
        assert not violated(statistic, unit, *random_neighbors(rng, unit, VALUES))


class TooNear(Quantile):
    """A mistake: the reach of rank r is taken from r itself, one row short."""

    def evaluate_with_reaches(self, data: Any, unit: Any) -> tuple[Any, ...]:
        exact, reaches = super().evaluate_with_reaches(data, unit)
        return exact, np.concatenate([[0], reaches])


def test_a_reach_that_is_one_row_short_is_caught() -> None:
    statistic, rng = TooNear(at=0.5, between=(0, 8), grid=1), np.random.default_rng()
    assert any(violated(statistic, Row(), *random_neighbors(rng, Row(), VALUES)) for _ in range(400))


@pytest.mark.parametrize("size", [1, 2, 3, 10, 11, 1000])
def test_a_quantile_is_the_one_of_the_textbook(size: int) -> None:
    values = np.random.default_rng().uniform(0, 8, size)
    for at in (0.1, 0.5, 0.9):
        statistic = Quantile(at=at, between=(0, 8))
        expected = np.sort(values)[math.floor(at * size)]
        found, reaches = statistic.evaluate_with_reaches(values, Row())
        assert statistic.offset + statistic.grid * found == pytest.approx(expected, abs=1e-6)
        assert reaches[-1] == statistic.width
        assert (np.diff(reaches) >= 0).all()


def test_a_narrow_range_far_from_zero_keeps_its_resolution() -> None:
    statistic = Quantile(at=0.5, between=(1e15, 1e15 + 1))
    assert statistic.width >= 2**27
    assert statistic.offset + statistic.grid * statistic.evaluate_with_reaches([1e15 + 0.5] * 9, Row())[0] == 1e15 + 0.5


@pytest.mark.parametrize("decay", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("unit", UNITS[:6], ids=repr)
def test_the_smooth_bound_is_smooth_and_bounds(decay: float, unit: Any) -> None:
    statistic, rng = Quantile(at=0.5, between=(0, 8)), np.random.default_rng()
    for _ in range(60):
        (f, a), (g, b) = (statistic.evaluate_with_reaches(d, unit) for d in random_neighbors(rng, unit, VALUES))
        first, second = smooth_bound(a, decay), smooth_bound(b, decay)
        assert abs(f - g) <= min(first, second) * (1 + 1e-12)
        assert max(first, second) <= min(first, second) * math.exp(decay) * (1 + 1e-12)


def test_the_smooth_bound_is_the_largest_of_the_decayed_reaches() -> None:
    assert smooth_bound(np.array([0, 4, 8]), math.log(2)) == pytest.approx(2.0)


def test_dense_data_have_little_noise_and_sparse_data_much() -> None:
    dense = np.full(1001, 3.0)
    sparse = [0.0, 8.0]
    measurement, rng = smooth_sensitivity(Quantile(at=0.5, between=(0, 8)), unit=Row(), epsilon=1), secure()
    near = [abs(measurement.step(None, dense, None, rng)[0] - 3) for _ in range(200)]
    assert sorted(near)[150] < 1e-3
    far = [measurement.step(None, sparse, None, rng)[0] for _ in range(200)]
    assert sum(y in {0.0, 8.0} for y in far) > 100  # most of the noise leaves the range


def test_a_proposal_passes_on_dense_data_and_fails_on_sparse_data() -> None:
    median, rng = Quantile(at=0.5, between=(0, 8)), secure()
    measurement = propose_test_release(median, unit=Row(), epsilon=4, delta=1e-12, sensitivity=1)  # a wrong pass: 1e-12
    assert all(measurement.step(None, [3.0] * 301, None, rng)[0] is not None for _ in range(50))
    assert all(measurement.step(None, [0.0, 8.0], None, rng)[0] is None for _ in range(50))
    assert all(measurement.step(None, [], None, rng)[0] is None for _ in range(50))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.4])
def test_the_level_lets_wrong_proposals_pass_with_probability_delta_at_most(epsilon: float, delta: float) -> None:
    level, q = passing_level(epsilon, delta), math.exp(-epsilon)
    assert q**level / (1 + q) <= delta
    assert level == 1 or q ** (level - 2) / (1 + q) > delta


@pytest.mark.parametrize("make", [
    lambda: Quantile(at=0, between=(0, 1)),
    lambda: Quantile(at=1, between=(0, 1)),
    lambda: Quantile(at=0.5, between=(1, 0)),
    lambda: Quantile(at=0.5, between=(0, 1), grid=4),
    lambda: Quantile(at=0.5, between=(0, 1), grid=2.0**-45),
    lambda: smooth_sensitivity(Count(), unit=Row(), epsilon=1),
    lambda: smooth_sensitivity(Quantile, unit=Row(), epsilon=1),  # type: ignore[arg-type]
    lambda: smooth_sensitivity(Quantile(at=0.5, between=(0, 1)), unit=None, epsilon=1),
    lambda: smooth_sensitivity(Quantile(at=0.5, between=(0, 1)), unit=Person("who"), epsilon=1),
    lambda: smooth_sensitivity(Quantile(at=0.5, between=(0, 1)), unit=Row(), epsilon=1e-9),
    lambda: smooth_sensitivity(Quantile(at=0.5, between=(0, 1)), unit=Row(), epsilon=1e9),
    lambda: propose_test_release(UNIT, unit=Row(), epsilon=1, delta=0, sensitivity=0.1),
    lambda: propose_test_release(UNIT, unit=Row(), epsilon=1, delta=0.1, sensitivity=1),
    lambda: propose_test_release(UNIT, unit=Row(), epsilon=1, delta=0.1, sensitivity=0),
    lambda: propose_test_release(UNIT, unit=Row(), epsilon=1, delta=0.1, sensitivity=1e-20),
    lambda: propose_test_release(UNIT, unit=Row(), epsilon=1e-12, delta=0.1, sensitivity=0.5),
], ids=lambda make: None)  # fmt: skip
def test_bad_declarations_are_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_a_quantile_is_a_local_statistic() -> None:
    assert isinstance(Quantile(at=0.5, between=(0, 1)), LocalStatistic)
    assert not isinstance(Count(), LocalStatistic)
