"""Laplace and Gaussian noise follow the named law, at every scale, and a law 3 % off is noticed.

False alarms: each assertion that can fail by chance does so with probability at most 1e-10; planted errors lie
at least 14 standard deviations away where the bounds lie at about 7, so they are missed less often still.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from mosha.core.errors import InvalidParameter
from mosha.noise import (
    SecureRandom,
    SeededRandom,
    add_discrete_gaussian,
    discrete_gaussian,
    discrete_laplace,
    geometric,
)
from mosha.noise import envelope as envelope_module
from mosha.noise.envelope import Envelope
from mosha.noise.gaussian import GaussianLaw
from mosha.noise.laplace import LaplaceLaw
from tests.noise.goodness import (
    digit_events,
    gaussian_below,
    laplace_below,
    low_bit_events,
    pair_events,
    quantile_events,
    rejects,
)

N = 1_000_000
SCALES = [0.25, 1, 2.7182818284590451, Fraction(22, 7), 10, 63.5, 100, 1000, 123_456.75, 2**40, 3 * 2**40, 2**50]
BELOW = {discrete_laplace: laplace_below, discrete_gaussian: gaussian_below}
LAWS = list(BELOW.items())


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("sample", "below"), LAWS)
def test_noise_follows_its_law_and_no_law_three_percent_away(sample: Any, below: Any, scale: Any) -> None:
    samples = sample(scale, N)
    assert samples.dtype == np.int64
    assert not rejects(quantile_events(samples, below(float(scale)), float(scale)))
    if scale >= 1:
        for wrong in (0.97, 1.03):
            assert rejects(quantile_events(samples, below(float(scale) * wrong), float(scale)))


@pytest.mark.parametrize("scale", [0.25, 10, 1000, 123_456.75, 2**40])
def test_every_binary_digit_of_laplace_noise_has_its_own_bias(scale: Any) -> None:
    samples = discrete_laplace(scale, 2 * N)
    assert not rejects(digit_events(samples, float(scale)))
    for wrong in (0.97, 1.03):
        assert rejects(digit_events(samples, float(scale) * wrong))


@pytest.mark.parametrize("sample", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [2**30, 2**40, 2**50])
def test_low_bits_of_wide_noise_are_uniform(sample: Any, scale: Any) -> None:
    samples = sample(scale, N)
    assert not rejects(low_bit_events(samples))
    biased = np.where(samples[: N // 20] & 255 == 0, 1, samples[: N // 20])
    assert rejects(low_bit_events(np.concatenate([biased, np.full(N // 100, 3)])))


@pytest.mark.parametrize("sample", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [10, 1000, 2**40])
def test_neighboring_samples_are_independent(sample: Any, scale: Any) -> None:
    samples = sample(scale, N)
    positive = float(1 - BELOW[sample](scale)(0))
    assert not rejects(pair_events(samples, positive))
    assert rejects(pair_events(np.repeat(samples, 2), positive))


@pytest.mark.parametrize("sample", [discrete_laplace, discrete_gaussian])
def test_the_two_sides_of_zero_have_the_same_law(sample: Any) -> None:
    samples = sample(1000, N)
    for k in (1, 100, 1000, 3000):
        right, left = int((samples >= k).sum()), int((samples <= -k).sum())
        assert not rejects([(right, right + left, 0.5)])


@pytest.mark.parametrize(("sample", "below"), LAWS)
@pytest.mark.parametrize("scale", [0.5, 10, 1000, 2**40])
def test_single_samples_follow_the_same_law(sample: Any, below: Any, scale: Any) -> None:
    samples = np.array([sample(scale) for _ in range(20_000)])
    assert not rejects(quantile_events(samples, below(scale), scale))
    for wrong in (0.8, 1.25):
        assert rejects(quantile_events(samples, below(scale * wrong), scale))


def test_small_arrays_follow_the_same_law() -> None:
    samples = np.concatenate([discrete_laplace(10, 100) for _ in range(300)])
    assert not rejects(quantile_events(samples, laplace_below(10), 10))


@pytest.mark.parametrize("sample", [discrete_laplace, discrete_gaussian, geometric])
@pytest.mark.parametrize("scale", [1e-9, 5e-324, Fraction(1, 10**400), 0.01])
def test_tiny_scales_give_zero(sample: Any, scale: Any) -> None:
    assert sample(scale) == 0
    assert not sample(scale, 100_000).any()  # exp(-100) a sample at the largest of these scales


@pytest.mark.parametrize("scale", [0.5, 10, 2**40])
def test_geometric_noise_follows_its_law(scale: Any) -> None:
    samples = geometric(scale, N)
    assert (samples >= 0).all()
    ends = [int(scale * x) for x in (0, 0.1, 0.5, 1, 2, 4, 8)]
    events = [(int((samples <= k).sum()), N, -np.expm1(-(k + 1) / scale)) for k in ends]
    assert not rejects(events)
    for wrong in (0.97, 1.03):
        assert rejects(
            [(count, n, -np.expm1(-(k + 1) / (wrong * scale))) for k, (count, n, _) in zip(ends, events, strict=True)]
        )
    assert geometric(scale) >= 0


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [0.5, 2, 10, 1000, 2**40])
def test_the_exact_test_alone_gives_the_same_law(monkeypatch: pytest.MonkeyPatch, law: Any, scale: Any) -> None:
    """Every comparison that the floats would decide is left to the integers."""
    monkeypatch.setattr(envelope_module, "_MARGIN", float("inf"))
    samples = Envelope(law(Fraction(scale))).draw_many(40_000, SecureRandom())
    below = (laplace_below if law is LaplaceLaw else gaussian_below)(scale)
    assert not rejects(quantile_events(samples, below, scale))


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [5, 40, 1000, 2**40])
def test_tails_follow_the_law_beyond_the_table(law: Any, scale: Any) -> None:
    table, tries = Envelope(law(Fraction(scale))), 3000
    start = table._tail_start
    points = [start + int(scale * x) for x in (0, 0.2, 0.5, 1, 2)]
    for negative in (0, 1):
        drawn = [table._draw_beyond(negative, SecureRandom()) for _ in range(tries)]
        kept = np.array([-x if negative else x for x in drawn if x is not None])
        assert (kept >= start + negative).all()
        chances = [table.height * weight_from(law, scale, k + negative) / 2**table.shift for k in points]
        counts = [int((kept >= k + negative).sum()) for k in points]
        assert not rejects([(count, tries, p) for count, p in zip(counts, chances, strict=True)])
        for wrong in (chances[0] / 3, min(1, chances[0] * 3)):
            assert rejects([(counts[0], tries, wrong)])


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [5, 1000, 2**21, 2**40])
def test_tails_judged_together_are_those_judged_exactly_one_by_one(law: Any, scale: Any) -> None:
    table = Envelope(law(Fraction(scale)))
    seeds = range(400)
    alone = [table._draw_beyond(seed % 2, SeededRandom(seed)) for seed in seeds]
    assert alone == [table._draw_all_beyond([seed % 2], SeededRandom(seed))[0] for seed in seeds]
    assert None in alone
    assert any(x is not None for x in alone)


def test_noise_added_in_place_is_the_noise_drawn_alone() -> None:
    values = np.arange(3_000_000)
    add_discrete_gaussian(values, 2**21, rng=SeededRandom(3))
    assert (values - np.arange(3_000_000) == discrete_gaussian(2**21, 3_000_000, rng=SeededRandom(3))).all()
    for bad in (np.zeros(3), np.zeros((2, 2), np.int64), [1, 2]):
        with pytest.raises(InvalidParameter):
            add_discrete_gaussian(bad, 1)  # type: ignore[arg-type]


def weight_from(law: Any, scale: Any, start: Any) -> Any:
    """The sum of weights from `start` to infinity."""
    if law is LaplaceLaw:
        return np.exp(-start / scale) / -np.expm1(-1 / scale)
    if scale > 3000:
        return scale * np.sqrt(2 * np.pi) * norm.sf((start - 0.5) / scale)
    return np.exp(-(np.arange(start, start + int(20 * scale) + 20) ** 2) / (2 * scale**2)).sum()
