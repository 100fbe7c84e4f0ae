"""Residuals of pairs nearer to the truth than what was measured: a few singular values hold what two columns share.

Ages and incomes rise together, jobs and schooling fall into a few kinds: what a pair says beyond independence lies in
few directions, while noise lies in all of them. All of it reads what was released alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.modelling.mixture import PairTarget, centre_table

__all__ = ["CLOSE", "shrink_directions"]

CLOSE = 0.2
"""How close the model comes to shrunk residuals, as a part of the squared noise of measured ones."""

SMALLEST = 3
"""Tables with fewer rows or columns have no direction to spare."""


def shrink_directions(pair: PairTarget, oneways: Sequence[Reals]) -> PairTarget:
    """The pair with the singular values of its distance from independence shrunk by what noise adds to them.

    The shrinkage is the best one for large tables and the squared error (Gavish and Donoho 2017): values that noise
    alone would reach are dropped, and larger ones lose their noise. The deviation says how close a fit shall come.
    """
    nearer = replace(pair, deviation=pair.deviation * CLOSE**0.5)
    if pair.is_assumed or min(pair.residual.shape) < SMALLEST:
        return nearer
    independent = centre_table(np.outer(oneways[pair.first], oneways[pair.second]))
    left, values, right = np.linalg.svd(pair.residual - independent, full_matrices=False)
    fewer, more = sorted(size - 1 for size in pair.residual.shape)
    unit, ratio = pair.deviation * more**0.5, fewer / more
    kept = _shrink(values / unit, ratio) * unit
    return replace(nearer, residual=np.asarray(independent + (left * kept) @ right, np.float64))


def _shrink(values: Reals, ratio: float) -> Reals:
    """Singular values in units of the noise, of a table whose sides have this ratio."""
    squares = np.maximum((values**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)
    return np.where(values > 1 + ratio**0.5, np.sqrt(squares) / np.maximum(values, 1e-12), 0.0)
