"""Certified prices: known truths lie between the bounds, and the bounds are close."""

import math

import pytest

from mosha import accounting
from mosha.core.errors import InvalidParameter
from mosha.core.events import Gaussian, Laplace, RandomizedResponse

WORKLOADS = [
    (Laplace(100) * 1000, 1e-6, 1.3629246),
    (Gaussian(10) * 100 + Laplace(20) * 100 + RandomizedResponse(0.1) * 50, 1e-6, 6.7016455),
    (Gaussian(1.1).sampled(0.004) * 14_100, 1e-5, 2.2189666),
    (Gaussian(0.6).sampled(0.001) * 100_000, 1e-6, 6.9608440),
]


@pytest.mark.parametrize(("event", "delta", "truth"), WORKLOADS)
def test_epsilon_is_never_below_the_truth_and_within_one_in_ten_thousand(event, delta, truth):
    assert truth * (1 - 1e-7) <= accounting.epsilon(event, delta) <= truth * 1.0001


def test_bad_input_is_refused():
    for delta in (-0.1, 1.0, math.nan, math.inf, "a"):
        with pytest.raises(InvalidParameter):
            accounting.epsilon(Laplace(1), delta)
    for epsilon in (-1, math.nan, math.inf):
        with pytest.raises(InvalidParameter):
            accounting.delta(Laplace(1), epsilon)
    with pytest.raises(InvalidParameter):
        accounting.epsilon(0.5, 1e-6)
    with pytest.raises(InvalidParameter):
        accounting.bounds(Laplace(1))
