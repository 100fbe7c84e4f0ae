"""What an example's prediction misses by, in whole steps: residuals of linear, logistic, softmax, Poisson regression.

A residual is a function of the example's own logits and target, made of additions of whole numbers below 2**53,
products with powers of two, table look-ups and single correctly rounded operations, so it is the same bit for
bit wherever the example stands among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter

__all__ = ["LOSSES", "SCALE", "Loss", "loss_of", "rates_of"]

SCALE = 1 << 18
"""A residual of one, in steps."""

LOGIT = 2.0**-34
"""A logit is a whole number of these: a row has steps of 2**-14 and a weight steps of 2**-20."""

FINE = 256
REACH = 16 * FINE
"""Logits are looked up in steps of 1/256 from -16 to 16: beyond, a probability is 0 or 1 to seven digits."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss: how residuals follow from logits (rows by outputs, in units of LOGIT) and targets.

    Guarantee:
        Every row of `residuals(logits, targets)` is whole, and a function of that row's logits and target alone.
        `longest` is the norm that no row exceeds, in units of SCALE.
    """

    name: str
    longest: float
    residuals: Callable[[Floats, Floats], Floats]


@lru_cache(maxsize=1)
def _sigmoid() -> Floats:
    return np.rint(SCALE / (1 + np.exp(-np.arange(-REACH, REACH + 1) / FINE)))


@lru_cache(maxsize=1)
def _exponential() -> Floats:
    return np.rint(2.0**30 * np.exp(np.arange(-REACH, 1) / FINE))


def _places(logits: Floats) -> Floats:
    """Logits in whole steps of 1/256: an exact product, correctly rounded."""
    return np.rint(logits * (LOGIT * FINE))


def logistic_residuals(logits: Floats, targets: Floats) -> Floats:
    """SCALE (sigmoid(logit) - target); the target is 0 or 1, or NaN for an example that counts for nothing."""
    places = np.clip(_places(logits), -REACH, REACH).astype(np.intp) + REACH
    missed = _sigmoid()[places] - SCALE * targets
    return np.where(np.isnan(missed), 0.0, missed)


def softmax_probabilities(logits: Floats) -> Floats:
    """Probabilities of the classes: whole exponentials, summed exactly, one division each."""
    places = _places(logits)
    below = np.clip(places - places.max(axis=1, keepdims=True), -REACH, 0).astype(np.intp) + REACH
    weights = _exponential()[below]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def softmax_residuals(logits: Floats, targets: Floats) -> Floats:
    """SCALE (softmax(logits) - target); the target is one of the unit vectors, or all NaN."""
    missed = np.rint(SCALE * softmax_probabilities(logits)) - SCALE * targets
    return np.where(np.isnan(missed), 0.0, missed)


def squared_residuals(logits: Floats, targets: Floats) -> Floats:
    """SCALE (logit - target), held within 4; the target is scaled to [-1, 1], or NaN."""
    missed = np.rint(np.clip((logits - targets) * LOGIT, -4.0, 4.0) * SCALE)
    return np.where(np.isnan(missed), 0.0, missed)


HIGHEST = 2 * FINE
"""Logarithms of rates are held within 2: rates within seven times the declared most."""


@lru_cache(maxsize=1)
def _rates() -> Floats:
    rates: Floats = np.rint(SCALE * np.exp(np.arange(-REACH, HIGHEST + 1) / FINE))
    return rates


def rates_of(logits: Floats) -> Floats:
    """SCALE exp(logit), looked up: whole, and a function of the logit alone.

    >>> rates_of(np.array([[0.0]])) / SCALE
    array([[1.]])
    """
    return np.asarray(_rates()[np.clip(_places(logits), -REACH, HIGHEST).astype(np.intp) + REACH])


def poisson_residuals(logits: Floats, targets: Floats) -> Floats:
    """SCALE (exp(logit) - target); the target is a share of the declared most, or NaN."""
    missed = rates_of(logits) - np.rint(SCALE * targets)
    return np.where(np.isnan(missed), 0.0, missed)


LOSSES = {
    "squared": Loss("squared", 4.0, squared_residuals),
    "logistic": Loss("logistic", 1.0, logistic_residuals),
    "softmax": Loss("softmax", 1.4144, softmax_residuals),
    "poisson": Loss("poisson", 8.0, poisson_residuals),
}


def loss_of(name: str) -> Loss:
    """The loss of this name.

    >>> loss_of("logistic").residuals(np.array([[0.0]]), np.array([[1.0]])) / SCALE
    array([[-0.5]])
    """
    if name not in LOSSES:
        raise InvalidParameter("core.unknown_option", parameter="loss", options=list(LOSSES))
    return LOSSES[name]


def clip_residuals(residuals: Floats, clip: int) -> Floats:
    """Whole residuals, each row shortened to a norm of at most `clip` steps.

    Guarantee:
        The square of a row's norm n is an exact sum of whole numbers below 2**53, its root and the quotient s are
        correctly rounded, so s <= clip / n (1 + 2**-51). Entries become trunc(r s (1 - 2**-40)), at most
        |r| s (1 - 2**-40) (1 + 2**-52) in size; a truncation only shortens. So the norm is at most
        n (clip / n) (1 + 2**-51) (1 + 2**-52) (1 - 2**-40) < clip. Rows with n <= clip stay.

    >>> clip_residuals(np.array([[3.0, 4.0], [0.0, 2.0]]), 2)
    array([[1., 1.],
           [0., 2.]])
    """
    if residuals.shape[1] == 1:
        return np.clip(residuals, -float(clip), float(clip))
    norms = np.sqrt((residuals * residuals).sum(axis=1, keepdims=True))
    long = norms > clip
    shares = np.divide(float(clip), norms, out=np.ones_like(norms), where=long) * (1 - 2.0**-40)
    return np.where(long, np.trunc(residuals * shares), residuals)
