"""Bars of sorted degrees hold for each entry, and are far narrower than one that all entries keep on any graph."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha import Edge
from mosha.graphs import protect
from mosha.graphs.statistics.degree_bands import find_count_bars, find_degree_bars, find_mean_widths
from mosha.graphs.statistics.degrees import consistent_sequence


def draw_noise(scale: float, shape: Any) -> Any:
    generator, chance = np.random.default_rng(), -math.expm1(-1 / scale)
    return generator.geometric(chance, shape) - generator.geometric(chance, shape)


@pytest.mark.parametrize("scale", [0.7, 4.0, 20.0])
def test_means_of_noise_stay_below_their_widths_at_all_lengths_at_once(scale: float) -> None:
    """False alarm 1e-10; at half of the widths the noise goes beyond more often."""
    draws, most = 4000, 300
    lengths, widths = find_mean_widths(scale, 0.025, most)
    every = widths[np.searchsorted(lengths, np.arange(1, most + 1), side="right") - 1]
    means = np.cumsum(draw_noise(scale, (draws, most)), axis=1) / np.arange(1, most + 1)
    allowed = binom.isf(1e-10, draws, 0.025)
    assert np.sum(np.any(means > every, axis=1)) <= allowed < np.sum(np.any(means > every / 2, axis=1))
    assert np.all(np.diff(widths) <= 1e-9)


@pytest.mark.parametrize(("tail", "epsilon"), [(1.2, 0.1), (1.8, 0.5), (2.5, 2.0)])
def test_bars_of_skewed_degrees_hold_for_each_entry_and_of_their_counts_for_all(tail: float, epsilon: float) -> None:
    """False alarm 1e-10 for each of 300 entries and for the counts; a fifth of the bars is rejected somewhere."""
    size, draws, scale = 300, 300, 2 / epsilon
    degrees = np.sort(np.minimum(4 * (1 + np.random.default_rng().pareto(tail, size)), size - 1).astype(int))
    at_most = np.searchsorted(degrees, np.arange(size) + 0.5)
    q = math.exp(-1 / scale)
    off, bars, together, fifth = [], [], 0, 0
    for noise in draw_noise(scale, (draws, size)):
        fitted = consistent_sequence(degrees + noise, size - 1, variance=2 * q / (1 - q) ** 2)
        off.append(np.abs(fitted - degrees))
        bars.append(find_degree_bars(fitted, size - 1, scale, 0.05))
        counts = np.searchsorted(fitted, np.arange(size) + 0.5).astype(np.float64)
        wide = find_count_bars(counts, scale, 0.05)
        together += bool(np.all(np.abs(counts - at_most) <= wide))
        fifth += bool(np.all(np.abs(counts - at_most) <= wide / 5))
    least, away, width = binom.ppf(1e-10, draws, 0.95), np.array(off), np.array(bars)
    assert np.min(np.sum(away <= width + 1e-9, axis=0)) >= least > np.min(np.sum(away <= width / 5 + 1e-9, axis=0))
    assert together >= least > fifth
    assert np.mean(width) < 0.35 * scale * math.log(20 * size)  # what all entries keep on any graph


def test_bars_of_a_flat_sequence_are_narrow_and_the_least_graphs_have_one() -> None:
    assert find_degree_bars(np.full(5000, 2.0), 4999, 4.0, 0.05).mean() < 1.2
    assert find_degree_bars(np.zeros(1), 0, 4.0, 0.05).tolist() == [0.0]
    assert find_degree_bars(np.zeros(0), 0, 4.0, 0.05).size == 0
    assert find_count_bars(np.zeros(1), 4.0, 0.05).tolist() == [0.0]
    asked = protect([(0, 1), (1, 2)], vertices=40, unit=Edge()).degree_sequence().measurement(epsilon=1)
    assert asked.error is not None
    assert np.all(asked.error(1 - 2**-53, np.ones(40)) <= 39)
