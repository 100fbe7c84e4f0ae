"""Exact bounds of one probability."""

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from mosha.audit.attacks.interval import at_least, at_most
from mosha.core.errors import InvalidParameter


def tail(successes: Any, trials: Any, probability: Any) -> Any:
    """P(Bin(trials, probability) >= successes), exactly."""
    p = Fraction(probability)
    return sum(comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(successes, trials + 1))


CASES = [(n, k) for n in (1, 2, 7, 60) for k in sorted({0, 1, n // 3, n // 2, n - 1, n})]
LEVELS = [0.3, 0.05, 1e-3, 1e-6, 1e-9]


@pytest.mark.parametrize(("trials", "successes"), CASES)
@pytest.mark.parametrize("alpha", LEVELS)
def test_the_tail_at_a_bound_is_alpha_and_never_more(trials: Any, successes: Any, alpha: Any) -> None:
    low, high = at_least(successes, trials, alpha=alpha), at_most(successes, trials, alpha=alpha)
    assert 0 <= low < 1
    assert 0 < high <= 1
    if successes:
        assert alpha * (1 - 1e-6) <= tail(successes, trials, low) <= alpha
    else:
        assert low == 0
    if successes < trials:
        assert alpha * (1 - 1e-4) <= 1 - tail(successes + 1, trials, high) <= alpha
    else:
        assert high == 1


@pytest.mark.parametrize("probability", [0.02, 0.31, 0.9])
def test_the_bounds_fail_no_more_often_than_alpha_whatever_the_probability(probability: float) -> None:
    trials, alpha = 40, 0.05
    counts = np.arange(trials + 1)
    chances = np.array(
        [float(tail(int(k), trials, probability) - tail(int(k) + 1, trials, probability)) for k in counts]
    )
    assert chances[at_least(counts, trials, alpha=alpha) > probability].sum() <= alpha
    assert chances[at_most(counts, trials, alpha=alpha) < probability].sum() <= alpha


def test_bounds_of_large_counts_agree_with_the_normal_law() -> None:
    trials = 10**7
    low = at_least(trials // 2, trials, alpha=1e-3)
    assert low == pytest.approx(0.5 - 3.0902 * 0.5 / np.sqrt(trials), abs=1e-7)


@pytest.mark.parametrize("successes", [-1, 11, 1.5])
def test_counts_that_cannot_be_are_refused(successes: float) -> None:
    with pytest.raises(InvalidParameter):
        at_least(successes, 10, alpha=0.1)
    with pytest.raises(InvalidParameter):
        at_most(successes, 10, alpha=0.1)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan")])
def test_levels_that_mean_nothing_are_refused(alpha: Any) -> None:
    with pytest.raises(InvalidParameter):
        at_least(1, 10, alpha=alpha)
