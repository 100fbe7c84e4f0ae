"""What noise and sampling do to the coefficients of a regression on noisy moments: `regression_noise.md`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mosha.models.sums.moments import Moments
from mosha.models.sums.row_sums import Floats

__all__ = ["Spread", "interval_deviations", "residual_noise"]


@dataclass(frozen=True, eq=False)
class Spread:
    """The covariance of the weights (the constant first), and the degrees of freedom of the residuals."""

    covariance: Floats
    freedom: float

    def quantile(self, confidence: float) -> float:
        """How many deviations an interval has: Student's, and no fewer than a Laplace law needs."""
        from scipy.special import stdtrit  # noqa: PLC0415  (only where an interval is asked for)

        student = float(stdtrit(max(1.0, self.freedom), (1 + confidence) / 2))
        return max(student, -math.log1p(-confidence) / math.sqrt(2))


def residual_noise(weights: Floats, *, fixed: float = 1.0) -> Floats:
    """The matrix that turns the independent noises of the moments into the noise of b - A w (times `fixed` for b).

    Columns: the count, the sums of features, the products of pairs i <= j, the sum of the target, its products with
    the features.
    """
    p = len(weights) - 1
    i, j = np.triu_indices(p)
    found = np.zeros((p + 1, 1 + p + len(i) + 1 + p))
    found[0, 0] = -weights[0]
    found[1:, 0] = -weights[1:] / 2  # a square is its sum from the middle plus half of the count
    found[0, 1 : 1 + p] = -weights[1:]
    found[1 + np.arange(p), 1 + np.arange(p)] = -weights[0]
    pairs = 1 + p + np.arange(len(i))
    found[1 + i, pairs] -= weights[1 + j]
    apart = i != j
    found[1 + j[apart], pairs[apart]] -= weights[1 + i[apart]]
    found[np.arange(p + 1), 1 + p + len(i) + np.arange(p + 1)] = fixed
    return found


def interval_deviations(moments: Moments, design: Floats, goals: Floats) -> Spread | None:
    """How far the weights are from those of the population; None where noise could make the matrix singular."""
    size, sigma = len(design), moments.deviation
    values = np.linalg.eigvalsh(design)
    freedom = float(moments.counts[0]) - size
    if values[0] <= 6 * sigma * math.sqrt(size) or freedom < 2:
        return None
    inverse: Floats = np.asarray(np.linalg.inv(design), np.float64)
    weights = inverse @ goals
    covariance = np.zeros((size, size))
    for _ in range(4):
        noise = sigma**2 * _square(residual_noise(weights))
        for scale, vector in zip(*_directions(covariance), strict=True):
            noise = noise + scale * sigma**2 * _square(residual_noise(vector, fixed=0.0))
        variance = _residual_variance(moments, weights, (design, goals), inverse, noise) / freedom
        covariance = inverse @ (variance * design + noise) @ inverse
    return Spread(covariance, freedom)


def _square(matrix: Floats) -> Floats:
    return np.asarray(matrix @ matrix.T)


def _directions(covariance: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values, 0.0), vectors.T


def _residual_variance(
    moments: Moments, weights: Floats, equations: tuple[Floats, Floats], inverse: Floats, noise: Floats
) -> float:
    """The sum of squared residuals, what noise takes from it given back, and one deviation of its noise more."""
    design, goals = equations
    whole = float(moments.seconds[0, -1, -1])
    missed = whole - 2 * weights @ goals + weights @ design @ weights + float(np.trace(inverse @ noise))
    own = weights @ noise @ weights + moments.deviation**2 * (1.25 + 4 * weights @ weights)
    return max(float(missed) + math.sqrt(float(own)), 0.0)
