"""From noisy cells back to a distribution: the likelihood of what was counted, made smooth in one of two ways."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.local.protocols.window import Window

__all__ = ["average_densities", "expectation_maximization", "law_of_cells"]

Floats = NDArray[np.float64]
_LARGEST_ORDER = 20
_PENALTY = 1.5  # of the log-likelihood for each parameter; Akaike's is 1
_HOPELESS = 6.0  # behind the best: more parameters are not tried


@lru_cache(maxsize=8)
def law_of_cells(window: Window, bins: int) -> Floats:
    """P(cell | bin), for values spread evenly over each of `bins` equal bins: one row a cell."""
    places = window.places + 1
    inside, outside = window.odds.top / window.total, window.odds.bottom / window.total
    fine = 8 * max(places, bins)
    points = (np.arange(fine) + 0.5) / fine
    start = np.floor(points * window.places).astype(np.int64)
    part = points * window.places - start
    held = (points * bins).astype(np.int64)
    starts = np.zeros((places, bins))
    np.add.at(starts, (start, held), 1 - part)
    np.add.at(starts, (np.minimum(start + 1, window.places), held), part)
    below = np.concatenate([np.zeros((1, bins)), np.cumsum(starts / starts.sum(axis=0), axis=0)])
    cells = np.arange(window.outputs)
    covering = below[np.minimum(cells + 1, places)] - below[np.maximum(cells - window.length + 1, 0)]
    return np.asarray(outside + (inside - outside) * covering)


def expectation_maximization(law: Floats, counted: NDArray[np.int64], *, gain: float = 1e-3) -> Floats:
    """The shares of the bins by EM, smoothed after each step by (1, 2, 1) / 4, until the likelihood gains too little.

    Li, Wang, Lopuhaä-Zwakenberg, Li and Škorić 2020.
    """
    total = counted.sum()
    shares = np.full(law.shape[1], 1 / law.shape[1])
    before = -math.inf
    for _ in range(10_000):
        expected = law @ shares
        likelihood = float(counted @ np.log(expected))
        if likelihood - before < gain:
            break
        before = likelihood
        shares = shares * (law.T @ (counted / total / expected))
        padded = np.concatenate([shares[:1], shares, shares[-1:]])
        shares = shares / 2 + (padded[:-2] + padded[2:]) / 4
        shares /= shares.sum()
    return shares


def average_densities(law: Floats, counted: NDArray[np.int64]) -> Floats:
    """Densities exp(polynomial) and x^a (1 - x)^b exp(polynomial) of rising order, weighted by what they explain.

    Each is fitted by likelihood; its weight is e^(likelihood - 1.5 parameters), so that smooth data are told by few
    parameters and only plain evidence buys more.
    """
    bins = law.shape[1]
    fitted: list[tuple[float, Floats]] = []
    for basis in (_polynomials(bins), _polynomials_with_ends(bins)):
        fitted += _fit_rising_orders(law, counted, basis)
    best = max(score for score, _ in fitted)
    weights = np.array([math.exp(score - best) for score, _ in fitted])
    shares = np.array([shares for _, shares in fitted])
    return np.asarray(weights @ shares / weights.sum())


def _fit_rising_orders(law: Floats, counted: NDArray[np.int64], basis: Floats) -> list[tuple[float, Floats]]:
    """Fits with 1, 2, ... columns of the basis, each started from the one before."""
    found: list[tuple[float, Floats]] = []
    start = np.zeros(0)
    for order in range(1, basis.shape[1] + 1):
        start, likelihood, shares = _fit(law, counted, basis[:, :order], np.append(start, 0.0))
        found.append((likelihood - _PENALTY * order, shares))
        if found[-1][0] < max(score for score, _ in found) - _HOPELESS:
            break
    return found


def _fit(law: Floats, counted: NDArray[np.int64], basis: Floats, start: Floats) -> tuple[Floats, float, Floats]:
    from scipy.optimize import minimize

    total = counted.sum()

    def shares_of(weights: Floats) -> Floats:
        height = basis @ weights
        raised = np.exp(height - height.max())
        return np.asarray(raised / raised.sum())

    def loss(weights: Floats) -> tuple[float, Floats]:
        shares = shares_of(weights)
        expected = np.maximum(law @ shares, 1e-300)
        slope = shares * (law.T @ (counted / expected) - total)
        return -float(counted @ np.log(expected)), -(basis.T @ slope)

    minimise: Callable[..., object] = minimize
    found = minimise(loss, start, jac=True, method="BFGS", options={"gtol": 1e-2, "maxiter": 200})
    weights = np.asarray(found.x)  # type: ignore[attr-defined]
    return weights, -loss(weights)[0], shares_of(weights)


@lru_cache(maxsize=8)
def _polynomials(bins: int) -> Floats:
    points = 2 * (np.arange(bins) + 0.5) / bins - 1
    orders = range(1, _LARGEST_ORDER + 1)
    columns = [np.polynomial.Legendre.basis(k)(points) * math.sqrt(2 * k + 1) for k in orders]
    return np.stack(columns, axis=1)


@lru_cache(maxsize=8)
def _polynomials_with_ends(bins: int) -> Floats:
    points = (np.arange(bins) + 0.5) / bins
    ends = np.stack([np.log(points) + 1, np.log(1 - points) + 1], axis=1)
    return np.concatenate([ends, _polynomials(bins)[:, : _LARGEST_ORDER - 2]], axis=1)
