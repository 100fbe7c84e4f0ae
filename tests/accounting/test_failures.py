"""A catastrophic failure of probability p makes delta p + (1 - p) delta, and nothing else."""

import math
from typing import Any

import pytest

from mosha import accounting
from mosha.events import NOTHING, Approx, DiscreteGaussian, Failure, Gaussian, Laplace, Pure

EVENTS = [Gaussian(2), Laplace(3) * 20, Gaussian(5) * 10 + Laplace(4), Pure(0.5) * 3]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("p", [1e-9, 1e-3])
def test_delta_of_a_failure_is_p_and_the_rest(event: Any, p: float) -> None:
    low, high = accounting.bounds(event, epsilon=0.7)
    failed_low, failed_high = accounting.bounds(Failure(event, p), epsilon=0.7)
    assert failed_low <= p + (1 - p) * high
    assert failed_high == pytest.approx(p + (1 - p) * high, rel=1e-9)
    assert failed_low == pytest.approx(p + (1 - p) * low, rel=1e-9)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_epsilon_is_that_of_what_delta_leaves(event: Any) -> None:
    expected = accounting.epsilon(event, (1e-6 - 1e-7) / (1 - 1e-7))
    assert accounting.epsilon(Failure(event, 1e-7), 1e-6) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("event", [Failure(NOTHING, 1e-5), Approx(0.0, 1e-5), Failure(Gaussian(1), 1e-5)], ids=repr)
def test_no_epsilon_covers_a_failure_that_is_likelier_than_delta(event: Any) -> None:
    assert math.isinf(accounting.epsilon(event, 1e-6))
    assert accounting.delta(event, 100.0) >= 1e-5


def test_failures_of_a_composition_add_up() -> None:
    assert accounting.delta(Approx(0.0, 1e-5) * 3, 1.0) == pytest.approx(1 - (1 - 1e-5) ** 3, rel=1e-9)
    event = Failure(DiscreteGaussian(5.0, 2.0**16, 1 << 20), 1e-7)
    assert accounting.epsilon(event, 1e-6) >= accounting.epsilon(Gaussian(5.0), 1e-6)


@pytest.mark.parametrize("event", [Gaussian(1), Gaussian(1) * 10 + Laplace(3), Gaussian(1).sample(0.01) * 10], ids=repr)
@pytest.mark.parametrize("epsilon", [1e15, 1e60, 1e200, 1e300])
def test_a_huge_epsilon_leaves_a_delta_above_zero_and_no_warning(event: Any, epsilon: float) -> None:
    assert 0 < accounting.delta(event, epsilon) < 1e-300
    assert accounting.bounds(event, epsilon=epsilon)[0] == 0
