"""Randomised blocks: a statistic and its bounds go in, a measurement with its price, error and proof comes out."""

from mosha.mechanisms.clip import Clipped, clipping_bias
from mosha.mechanisms.counts import Count, Histogram
from mosha.mechanisms.laplace import laplace
from mosha.mechanisms.statistic import Sensitivity, Statistic
from mosha.mechanisms.sums import ClippedSum, VectorSum

__all__ = [
    "Clipped",
    "ClippedSum",
    "Count",
    "Histogram",
    "Sensitivity",
    "Statistic",
    "VectorSum",
    "clipping_bias",
    "laplace",
]
