"""Planted faults, each with its correct twin: what the attacker must find, and what it must leave alone.

Every function takes (data, size) and gives `size` independent answers; all claim epsilon 1. The twins are exact
on the integers, so that nothing but the fault tells a fault from its twin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosha import noise

EPSILON = 1.0
FINE = 1 << 10  # grid steps in one unit of an answer


@dataclass(frozen=True)
class Fault:
    name: str
    faulty: Callable[[Any, int], Any]
    correct: Callable[[Any, int], Any]
    neighbors: tuple[Any, Any]

    def __str__(self) -> str:
        return self.name


def random() -> Any:
    return np.random.default_rng()


def laplace(scale: Any, size: Any) -> Any:
    """Exact discrete Laplace noise in units of one answer, on a grid of 2^-10."""
    return noise.discrete_laplace(round(scale * FINE), size) / FINE


# Noise


def float_laplace(value: Any, size: Any) -> Any:
    return value + random().laplace(scale=1 / EPSILON, size=size)


def grid_laplace(value: Any, size: Any) -> Any:
    return value + laplace(1 / EPSILON, size)


def laplace_too_small(value: Any, size: Any) -> Any:
    return value + laplace(1 / (1.2 * EPSILON), size)


def scaled_by_the_data(value: Any, size: Any) -> Any:
    """Noise whose size follows the answer."""
    return value + laplace(1 / (EPSILON * (1 + value)), size)


def redrawn_below_zero(value: Any, size: Any) -> Any:
    """Noise is drawn until the answer is not negative, which is no post-processing."""
    found = value + laplace(1 / EPSILON, size)
    while (below := found < 0).any():
        found[below] = value + laplace(1 / EPSILON, int(below.sum()))
    return found


def cut_below_zero(value: Any, size: Any) -> Any:
    return np.maximum(grid_laplace(value, size), 0)


def told_once_in_a_thousand(value: Any, size: Any) -> Any:
    return np.where(random().random(size) < 1e-3, 1e6 + value, grid_laplace(value, size))


def reused_noise(values: Any, size: Any) -> Any:
    """Two numbers, each worth half the budget, with one and the same noise."""
    return np.asarray(values) + laplace(2 / EPSILON, size)[:, None]


def fresh_noise(values: Any, size: Any) -> Any:
    return np.asarray(values) + laplace(2 / EPSILON, size * 2).reshape(size, 2)


def redrawn_after_resume(value: Any, size: Any) -> Any:
    """The run was interrupted after its answer; the resumed run answers again with new noise."""
    return value + laplace(1 / EPSILON, size * 2).reshape(size, 2)


def replayed_after_resume(value: Any, size: Any) -> Any:
    return np.repeat(value + laplace(1 / EPSILON, size)[:, None], 2, axis=1)


# Sensitivity


def replaced_row_halved(rows: Any, size: Any) -> Any:
    """One row is replaced by another: a value in [-1, 1] moves by 2, and the noise thinks 1."""
    return sum(rows) + laplace(1 / EPSILON, size)


def replaced_row_whole(rows: Any, size: Any) -> Any:
    return sum(rows) + laplace(2 / EPSILON, size)


def clipped_after_summing(rows: Any, size: Any) -> Any:
    return float(np.clip(sum(rows), -10, 10)) + laplace(1 / EPSILON, size)


def clipped_before_summing(rows: Any, size: Any) -> Any:
    return float(np.clip(rows, -1, 1).sum()) + laplace(1 / EPSILON, size)


def unbounded_contributions(owners: Any, size: Any) -> Any:
    return len(owners) + noise.discrete_laplace(1 / EPSILON, size)


def bounded_contributions(owners: Any, size: Any) -> Any:
    return len(set(owners)) + noise.discrete_laplace(1 / EPSILON, size)


def sum_in_row_order(rows: Any, size: Any) -> Any:
    """A running sum in half precision: what is lost depends on the order of the rows."""
    total = np.float16(0)
    for value in rows:
        total = np.float16(total + np.float16(value))
    return float(total) + laplace(1 / EPSILON, size)


def sum_on_a_grid(rows: Any, size: Any) -> Any:
    return sum(round(value * FINE) for value in rows) / FINE + laplace(1 / EPSILON, size)


# Groups


def _noisy_groups(counts: Any, size: Any) -> list[Any]:
    names = list(counts)
    noisy = np.array([counts[name] for name in names]) + noise.discrete_laplace(1 / EPSILON, size * len(names)).reshape(
        size, len(names)
    )
    return [dict(zip(names, row, strict=True)) for row in noisy.tolist()]


WARDS = ("east", "north", "south")


def keys_from_data(rows: Any, size: Any) -> Any:
    return _noisy_groups({ward: rows.count(ward) for ward in sorted(set(rows))}, size)


def public_keys(rows: Any, size: Any) -> Any:
    return _noisy_groups({ward: rows.count(ward) for ward in WARDS}, size)


def empty_group_missing(rows: Any, size: Any) -> Any:
    """Known keys, but a group without rows is dropped before the noise."""
    return _noisy_groups({ward: rows.count(ward) for ward in WARDS if rows.count(ward)}, size)


def count_leaked_by_mean(rows: Any, size: Any) -> Any:
    return (sum(rows) + noise.discrete_laplace(1 / EPSILON, size)) / len(rows)


def mean_of_noisy_parts(rows: Any, size: Any) -> Any:
    noisy = noise.discrete_laplace(2 / EPSILON, 2 * size).reshape(2, size)
    return (sum(rows) + noisy[0]) / np.maximum(len(rows) + noisy[1], 1)


# Choices and local reports


def response(bit: Any, size: Any, truth: Any) -> Any:
    return np.where(random().random(size) < truth, bit, 1 - bit)


TRUTH = np.exp(EPSILON) / (1 + np.exp(EPSILON))


def response_off(bit: Any, size: Any) -> Any:
    return response(bit, size, TRUTH + 0.02)


def response_right(bit: Any, size: Any) -> Any:
    return response(bit, size, TRUTH)


def _chosen(scores: Any, size: Any, exponent: Any) -> Any:
    weights = np.exp(exponent * (np.asarray(scores, float) - max(scores)))
    return random().choice(len(weights), size=size, p=weights / weights.sum())


def exponential_whole(scores: Any, size: Any) -> Any:
    return _chosen(scores, size, EPSILON)


def exponential_half(scores: Any, size: Any) -> Any:
    return _chosen(scores, size, EPSILON / 2)


def _noisy(counts: Any, size: Any, scale: Any) -> Any:
    return np.asarray(counts) + laplace(scale, size * len(counts)).reshape(size, len(counts))


def noisy_max_with_value(counts: Any, size: Any) -> Any:
    """Index and noisy value of the greatest of counts that may all move by 1: the value is not paid for."""
    noisy = _noisy(counts, size, 2 / EPSILON)
    return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)


def noisy_max(counts: Any, size: Any) -> Any:
    return _noisy(counts, size, 2 / EPSILON).argmax(axis=1)


def count_forgotten(value: Any, size: Any) -> Any:
    """Four answers of epsilon 0.5 each, priced as two."""
    return value + laplace(2 / EPSILON, size * 4).reshape(size, 4)


def count_remembered(value: Any, size: Any) -> Any:
    return value + laplace(2 / EPSILON, size * 2).reshape(size, 2)


CHOICES, SUBSET = 100, 27  # the subset size that is best for 100 choices at epsilon 1


def _subsets(value: Any, size: Any) -> Any:
    """Subset selection: the true value is in the subset with the probability that epsilon allows."""
    ratio = np.exp(EPSILON) * SUBSET / (CHOICES - SUBSET)
    ranks = random().random((size, CHOICES))
    inside = random().random(size) < ratio / (1 + ratio)
    ranks[:, value] = np.where(inside, -1.0, 2.0)
    return np.argsort(ranks, axis=1)[:, :SUBSET]


def subset_true_value_first(value: Any, size: Any) -> Any:
    return _subsets(value, size)


def subset_in_order(value: Any, size: Any) -> Any:
    return np.sort(_subsets(value, size), axis=1)


BITS = 8


def _unary(value: Any, size: Any, keep: Any, flip: Any) -> Any:
    bits = random().random((size, BITS)) < flip
    bits[:, value] = random().random(size) < keep
    return bits


def rappor_true_bit_kept(value: Any, size: Any) -> Any:
    return _unary(value, size, 1.0, 1 / (1 + np.exp(EPSILON / 2)))


def rappor(value: Any, size: Any) -> Any:
    flip = 1 / (1 + np.exp(EPSILON / 2))
    return _unary(value, size, 1 - flip, flip)


WIDTH = 3  # the ladder's rung: how much one edge moves the triangle count


def _ladder(count: Any, size: Any, epsilon: Any) -> Any:
    """Rung k, at distance k, has probability proportional to exp(-epsilon k / 2); uniform inside a rung."""
    rung = noise.discrete_laplace(2 / epsilon, size)
    return count + WIDTH * rung + random().integers(-(WIDTH // 2), WIDTH // 2 + 1, size)


def ladder_ignores_epsilon(count: Any, size: Any) -> Any:
    return _ladder(count, size, 4.0)


def ladder(count: Any, size: Any) -> Any:
    return _ladder(count, size, EPSILON)


# The sparse vector, numbered as by Lyu, Su and Li (2017)

THRESHOLD, ALARMS, SILENT, STOPPED = 1.0, 1, -1000.0, -2000.0


def _sparse(
    queries: Any, size: Any, *, threshold_scale: Any, query_scale: Any, alarms: Any = ALARMS
) -> tuple[Any, ...]:
    """Which noisy queries reach the noisy threshold, and the noisy queries; silence after so many alarms."""
    noisy = np.asarray(queries) + (laplace(query_scale, size * len(queries)).reshape(size, -1) if query_scale else 0)
    above = noisy >= THRESHOLD + laplace(threshold_scale, size)[:, None]
    earlier = np.cumsum(above, axis=1) - above
    stopped = np.zeros_like(above) if alarms is None else earlier >= alarms
    return above, stopped, np.broadcast_to(noisy, above.shape)


def _signs(above: Any, stopped: Any) -> Any:
    return np.where(stopped, -1, above)


def sparse_1(queries: Any, size: Any) -> Any:
    above, stopped, _ = _sparse(queries, size, threshold_scale=2 / EPSILON, query_scale=4 * ALARMS / EPSILON)
    return _signs(above, stopped)


def sparse_2(queries: Any, size: Any) -> Any:
    """A new threshold after each alarm; the same as variant 1 for a single alarm but noisier."""
    above, stopped, _ = _sparse(queries, size, threshold_scale=2 * ALARMS / EPSILON, query_scale=4 * ALARMS / EPSILON)
    return _signs(above, stopped)


def sparse_3(queries: Any, size: Any) -> Any:
    """The noisy query itself is published at an alarm."""
    above, stopped, noisy = _sparse(queries, size, threshold_scale=2 / EPSILON, query_scale=2 * ALARMS / EPSILON)
    return np.where(stopped, STOPPED, np.where(above, noisy, SILENT))


def sparse_4(queries: Any, size: Any) -> Any:
    """The noise of the queries does not grow with the number of alarms."""
    above, stopped, _ = _sparse(queries, size, threshold_scale=4 / EPSILON, query_scale=4 / (3 * EPSILON), alarms=5)
    return _signs(above, stopped)


def sparse_5(queries: Any, size: Any) -> Any:
    """No noise on the queries, no end."""
    above, stopped, _ = _sparse(queries, size, threshold_scale=2 / EPSILON, query_scale=None, alarms=None)
    return _signs(above, stopped)


def sparse_6(queries: Any, size: Any) -> Any:
    """No end."""
    above, stopped, _ = _sparse(queries, size, threshold_scale=2 / EPSILON, query_scale=2 / EPSILON, alarms=None)
    return _signs(above, stopped)


ONES_FIRST = tuple([1.0] * 1000 + [0.5] * 1000)
HALVES_FIRST = tuple([0.5] * 1000 + [1.0] * 1000)
UP, DOWN = (1.0,) * 5 + (0.0,) * 5, (0.0,) * 5 + (1.0,) * 5

FAULTS = [
    Fault("float Laplace with porous support", float_laplace, grid_laplace, (0.0, 1.0)),
    Fault("sparse vector 3", sparse_3, sparse_1, ((1.0, 1.0, 1.0, 2.0), (2.0, 2.0, 2.0, 1.0))),
    Fault("sparse vector 4", sparse_4, sparse_1, (UP, DOWN)),
    Fault("sparse vector 5", sparse_5, sparse_2, (UP, DOWN)),
    Fault("sparse vector 6", sparse_6, sparse_1, (UP, DOWN)),
    Fault("sensitivity off by two", replaced_row_halved, replaced_row_whole, ((1.0, 0.5), (-1.0, 0.5))),
    Fault("clipping after summing", clipped_after_summing, clipped_before_summing, ((0.5, 7.0), (0.5,))),
    Fault("noise whose size follows the data", scaled_by_the_data, grid_laplace, (0, 1)),
    Fault("answers below zero drawn again", redrawn_below_zero, cut_below_zero, (0, 1)),
    Fault("the data told once in a thousand", told_once_in_a_thousand, grid_laplace, (0, 1)),
    Fault("noise reused", reused_noise, fresh_noise, ((0, 0), (1, 0))),
    Fault("noise redrawn after resume", redrawn_after_resume, replayed_after_resume, (0, 1)),
    Fault("unbounded contributions", unbounded_contributions, bounded_contributions, (("a",), ("a", "b", "b", "b"))),
    Fault("group keys taken from data", keys_from_data, public_keys, (("east",) * 4, ("east",) * 4 + ("north",))),
    Fault(
        "a missing empty group",
        empty_group_missing,
        public_keys,
        (("east", "north", "south"), ("east", "north")),
    ),
    Fault("n leaked by a mean", count_leaked_by_mean, mean_of_noisy_parts, ((1,) * 6, (1,) * 7)),
    Fault("randomized response 2% off", response_off, response_right, (0, 1)),
    Fault("exponential mechanism without the 1/2", exponential_whole, exponential_half, ((0, 1, 1, 1), (1, 0, 0, 0))),
    Fault("noisy-max value released for free", noisy_max_with_value, noisy_max, ((0,) * 5, (1,) * 5)),
    Fault("epsilon 1.2 times too large", laplace_too_small, grid_laplace, (0, 1)),
    Fault("sums that depend on row order", sum_in_row_order, sum_on_a_grid, (ONES_FIRST, HALVES_FIRST[:-1])),
    Fault("an accountant that forgets a count", count_forgotten, count_remembered, (0, 1)),
    Fault("subset selection with the true value first", subset_true_value_first, subset_in_order, (3, 40)),
    Fault("RAPPOR that never flips a true bit", rappor_true_bit_kept, rappor, (0, 1)),
    Fault("a ladder whose noise ignores epsilon", ladder_ignores_epsilon, ladder, (0, WIDTH)),
]
