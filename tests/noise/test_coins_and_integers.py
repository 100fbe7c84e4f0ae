"""Coins and unbiased integers: exact chances, and a planted wrong one is noticed on both sides.

False alarms: at most 1e-10 an assertion that may fail by chance; planted errors are missed still more rarely
(they lie at least 15 standard deviations away, the bounds at less than 8).
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.noise import bernoulli, bernoulli_exp, flips, uniform, uniform_each
from tests.noise.goodness import rejects
from tests.noise.scripted import Scripted, little

N = 400_000


@pytest.mark.parametrize("p", [0, 1e-4, 0.1, Fraction(1, 3), 0.5, 0.75, 1 - 1e-4, 1])
def test_a_coin_has_its_bias(p: Any) -> None:
    heads = bernoulli(p, N)
    assert heads.dtype == bool
    count = int(heads.sum())
    assert not rejects([(count, N, float(p))])
    if 0.01 < p < 1:
        assert rejects([(count, N, float(p) * 0.9)])
        assert rejects([(count, N, min(1.0, float(p) * 1.1))])


@pytest.mark.parametrize("x", [0, 1e-12, 0.01, Fraction(2, 3), 1, 2.5, 8, 1000, 10**30])
def test_an_exponential_coin_has_its_bias(x: Any) -> None:
    count = int(bernoulli_exp(x, N).sum())
    p = math.exp(-x)
    assert not rejects([(count, N, p)])
    if 0.01 < p < 0.99:
        assert rejects([(count, N, p * 0.9)])
        assert rejects([(count, N, p * 1.1)])


def test_single_coins_have_the_same_bias() -> None:
    trials = 30_000
    for flip, p in ((lambda: bernoulli(0.3), 0.3), (lambda: bernoulli_exp(1), math.exp(-1))):
        drawn = [flip() for _ in range(trials)]
        assert set(drawn) == {True, False}
        assert all(type(coin) is bool for coin in drawn[:10])
        assert not rejects([(sum(drawn), trials, p)])
        assert rejects([(sum(drawn), trials, p * 0.8)])
        assert rejects([(sum(drawn), trials, p * 1.2)])


def test_flips_have_each_their_own_bias() -> None:
    distances = np.arange(12).repeat(50_000)
    heads = flips(distances, Fraction(7, 2)).reshape(12, -1).sum(axis=1)
    assert not rejects([(int(count), 50_000, math.exp(-d / 3.5)) for d, count in enumerate(heads)])
    for wrong in (3, 4):
        assert rejects([(int(count), 50_000, math.exp(-d / wrong)) for d, count in enumerate(heads)])


def test_flips_keep_their_shape_and_bear_any_distance() -> None:
    distances = np.array([[0, 2**63 - 1], [0, 1]])
    heads = flips(distances, 1e-300)
    assert heads.tolist() == [[True, False], [True, False]]
    assert flips(np.array([2**64 - 1], np.uint64), 1).tolist() == [False]
    assert flips(np.zeros((0, 3), int), 1).shape == (0, 3)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 256, 1000])
def test_integers_below_a_bound_are_equally_likely(n: int) -> None:
    drawn = uniform(n, N)
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn, minlength=n)
    assert len(counts) == n
    assert not rejects([(int(count), N, 1 / n) for count in counts])
    if n > 2:
        wrong = np.where(drawn == 0, 1, drawn)
        assert rejects([(int(count), N, 1 / n) for count in np.bincount(wrong, minlength=n)])


@pytest.mark.parametrize("n", [2**31 + 1, 2**32 - 5, 2**32, 2**32 + 1, 3 * 2**50, 2**63 - 1, 2**63])
def test_wide_integers_are_equally_likely(n: Any) -> None:
    """Eight equal intervals and the lowest bits; a bound just above a power of two refuses nearly every other word."""
    drawn = uniform(n, N)
    assert drawn.min() >= 0
    assert int(drawn.max()) < n
    edges = [n * i // 8 for i in range(9)]
    counts = [int(((drawn >= low) & (drawn <= high - 1)).sum()) for low, high in itertools.pairwise(edges)]
    assert sum(counts) == N
    chances = [(high - low) / n for low, high in itertools.pairwise(edges)]
    assert not rejects([(count, N, p) for count, p in zip(counts, chances, strict=True)])
    assert not rejects([(int(((drawn >> i) & 1).sum()), N, 0.5) for i in range(8)])
    squeezed = drawn // 2 + drawn // 4
    counts = [int(((squeezed >= low) & (squeezed <= high - 1)).sum()) for low, high in itertools.pairwise(edges)]
    assert rejects([(count, N, p) for count, p in zip(counts, chances, strict=True)])


def test_words_that_would_favour_some_answers_are_drawn_again() -> None:
    """For n = 3 * 2**30, every third answer would own two of the 2**32 words."""
    drawn = uniform(3 << 30, N)
    assert not rejects([(int((drawn % 3 == i).sum()), N, 1 / 3) for i in range(3)])
    favoured = (np.arange(N) * 2654435761 % 2**32) * (3 << 30) >> 32
    assert rejects([(int((favoured % 3 == i).sum()), N, 1 / 3) for i in range(3)])
    assert uniform(3, 1, rng=Scripted(little(0, 4), little(2**31, 4))).tolist() == [1]


def test_single_integers_are_equally_likely() -> None:
    drawn = [uniform(5) for _ in range(20_000)]
    assert not rejects([(drawn.count(i), 20_000, 0.2) for i in range(5)])
    assert rejects([(drawn.count(i), 20_000, 0.25) for i in range(5)])
    assert uniform(1) == 0
    assert 0 <= uniform(2**63) < 2**63


def test_integers_below_many_bounds_are_equally_likely() -> None:
    bounds = np.array([1, 2, 3, 5, 8, 13]).repeat(50_000)
    drawn = uniform_each(bounds).reshape(6, -1)
    for bound, row in zip((1, 2, 3, 5, 8, 13), drawn, strict=True):
        counts = np.bincount(row, minlength=bound)
        assert len(counts) == bound
        assert not rejects([(int(count), 50_000, 1 / bound) for count in counts])
    assert uniform_each(np.full((2, 3), 2**63 - 1)).shape == (2, 3)
