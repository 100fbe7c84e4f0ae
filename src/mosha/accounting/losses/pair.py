"""Pairs of distributions that are at least as easy to tell apart as what an event does with and without one unit.

A pair is read through the law of its loss L = ln(dP/dQ): how much of P and of Q falls into given cells of losses.
Which pair belongs to which event, and why, is in `dominating.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mosha.accounting.losses.loss import UNIT, Array, Cells

__all__ = ["Atoms", "Band", "Normal", "Pair", "flipped_coin", "normal_cells"]


class Pair(Protocol):
    """A pair (P, Q) with a known law of its loss."""

    @property
    def landmarks(self) -> tuple[float, ...]:
        """The losses that have mass of their own, where there are few: a lattice that meets them loses nothing."""
        ...

    @property
    def spread(self) -> float:
        """The P mass that is not on a landmark."""
        ...

    def cells(self, knots: Array) -> Cells:
        """How much of P and Q falls between the knots, which increase and may be infinite."""
        ...

    def reach(self, mass: float) -> tuple[float, float]:
        """Losses outside which P has at most this mass on either side (infinite losses not counted)."""
        ...

    def knots(self, count: int, mass: float) -> Array:
        """About `count` knots that follow the shape of the law, up to the reach of `mass`."""
        ...


@dataclass(frozen=True)
class Normal:
    """N(mu, 1) against N(0, 1): under P the loss is normal with mean mu^2 / 2 and deviation mu."""

    mu: float

    landmarks: tuple[float, ...] = ()
    spread: float = 1.0

    def cells(self, knots: Array) -> Cells:
        p_at, q_at = knots / self.mu - self.mu / 2, knots / self.mu + self.mu / 2
        p, p_error, p_below, p_above = normal_cells(p_at)
        q, q_error, q_below, q_above = normal_cells(q_at)
        shift = 4 * UNIT * (float(np.abs(knots[np.isfinite(knots)]).max(initial=0.0)) + self.mu**2)
        tail = normal_error(max(abs(float(p_at[-1])), abs(float(q_at[-1])))) if np.isfinite(knots[-1]) else 0.0
        tail = max(tail, normal_error(float(p_at[0])) if np.isfinite(knots[0]) else 0.0)
        return Cells(p, q, p_error, q_error, p_below, q_below, p_above, q_above, 0.0, tail, shift)

    def reach(self, mass: float) -> tuple[float, float]:
        far = normal_quantile(mass)
        return self.mu**2 / 2 - far * self.mu, self.mu**2 / 2 + far * self.mu

    def knots(self, count: int, mass: float) -> Array:
        return np.linspace(*self.reach(mass), count)


def normal_error(point: float) -> float:
    """A bound on the relative error of `scipy.special.ndtr` at `point`, four times what was ever seen (`loss.md`)."""
    return UNIT * (32 + 16 * min(point * point, 1600.0))


def normal_quantile(mass: float) -> float:
    """A point that a standard normal number exceeds with at most this probability."""
    return math.sqrt(-2 * math.log(max(min(mass, 0.5), 1e-300)))


def normal_cells(points: Array) -> tuple[Array, Array, float, float]:
    """Standard normal mass between points, bounds on its errors, and the mass below and above all of them."""
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is loaded when a normal law is met, not before)

    away = np.abs(points)
    tail = ndtr(-away)  # of the nearer end
    error = UNIT * (32 + 16 * np.minimum(away, 40.0) ** 2) * tail + np.where(tail < 1e-290, 1e-300, 0.0)
    left, right = points[:-1] < 0, points[1:] <= 0
    mass = np.where(right, np.diff(tail), np.where(left, 1 - tail[:-1] - tail[1:], -np.diff(tail)))
    below, above = float(tail[0]), float(tail[-1])
    below, above = below if points[0] <= 0 else 1 - below, above if points[-1] >= 0 else 1 - above
    return np.maximum(mass, 0.0), error[1:] + error[:-1] + 2 * UNIT * mass, below, above


@dataclass(frozen=True)
class Band:
    """Losses between -width and width with P density proportional to e^(l / 2), and atoms at both ends.

    With `ends` it is Laplace noise (half of Q sits at -width, half of P at width), without them the worst mechanism
    of bounded range: see `dominating.md`.
    """

    width: float
    ends: bool

    @property
    def landmarks(self) -> tuple[float, ...]:
        return (self.width, -self.width) if self.ends else ()

    @property
    def spread(self) -> float:
        return -math.expm1(-self.width) / 2 if self.ends else 1.0

    def cells(self, knots: Array) -> Cells:
        edges = np.concatenate(([-np.inf], knots, [np.inf]))
        inside = np.clip(edges, -self.width, self.width)
        scale = 0.5 if self.ends else -1 / math.expm1(-self.width)
        part = -np.expm1(-np.diff(inside) / 2) * scale
        p = part * np.exp((inside[1:] - self.width) / 2)
        q = part * np.exp(-(inside[:-1] + self.width) / 2)
        if self.ends:
            small = math.exp(-self.width) / 2
            for at, p_atom, q_atom in ((self.width, 0.5, small), (-self.width, small, 0.5)):
                where = int(np.searchsorted(knots, at, side="left"))
                p[where] += p_atom
                q[where] += q_atom
        return _bin_cells(p, q, 0.0, UNIT * (16 + 4 * self.width), 4 * UNIT * self.width)

    def reach(self, mass: float) -> tuple[float, float]:  # noqa: ARG002  (the band is bounded)
        return -self.width, self.width

    def knots(self, count: int, mass: float) -> Array:  # noqa: ARG002
        return np.linspace(-self.width, self.width, min(count, 65))


@dataclass(frozen=True, eq=False)
class Atoms:
    """A law with finitely many losses, in increasing order; the last may be infinite.

    `error` bounds the relative error of every mass in `p`, `shift` that of every loss in nats.
    """

    losses: Array
    p: Array
    error: float = 8 * UNIT
    shift: float = 0.0
    spread: float = 0.0

    @property
    def landmarks(self) -> tuple[float, ...]:
        finite = self.losses[np.isfinite(self.losses)]
        if len(finite) <= 4:
            return tuple(float(x) for x in finite)
        return float(finite[-1]), float(finite[-1] - finite[-2])  # a lattice

    @cached_property
    def q(self) -> Array:
        return np.asarray(self.p * np.exp(-self.losses))

    def cells(self, knots: Array) -> Cells:
        where = np.searchsorted(knots, self.losses, side="left")
        p = np.asarray(np.bincount(where, weights=self.p, minlength=len(knots) + 1), dtype=np.float64)
        q = np.asarray(np.bincount(where, weights=self.q, minlength=len(knots) + 1), dtype=np.float64)
        finite = np.abs(self.losses[np.isfinite(self.losses)]).max(initial=0.0)
        error = self.error + (8 + len(self.p) + float(finite)) * UNIT
        infinite = float(self.p[-1]) if self.losses[-1] > knots[-1] and np.isinf(self.losses[-1]) else 0.0
        return _bin_cells(p, q, infinite, error, self.shift + 2 * UNIT * float(finite))

    def reach(self, mass: float) -> tuple[float, float]:
        finite = np.isfinite(self.losses)
        losses, p = self.losses[finite], self.p[finite]
        if len(p) <= 4:
            return float(losses[0]), float(losses[-1])
        low = int(np.searchsorted(np.cumsum(p), mass))
        high = int(np.searchsorted(np.cumsum(p[::-1]), mass))
        last = len(losses) - 1
        return float(losses[min(low, last)]), float(losses[max(last - high, 0)])

    def knots(self, count: int, mass: float) -> Array:
        low, high = self.reach(mass)
        finite = self.losses[(self.losses >= low) & (self.losses <= high)]
        return finite if len(finite) <= count else finite[np.linspace(0, len(finite) - 1, count).astype(int)]


def _bin_cells(p: Array, q: Array, infinite: float, error: float, shift: float) -> Cells:
    """Cells from masses that are all good to one relative error; the first and the last bin lie outside."""
    outer = (float(p[0]), float(q[0]), float(p[-1]), float(q[-1]))
    return Cells(p[1:-1], q[1:-1], error * p[1:-1], error * q[1:-1], *outer, infinite, error, shift)


def flipped_coin(epsilon: float, *, categories: int = 2, delta: float = 0.0) -> Atoms:
    """Randomized response: odds of e^epsilon : 1 for the truth against each other answer; all told with `delta`.

    >>> float(flipped_coin(1.0).p[-1].round(6))
    0.731059
    """
    small = math.exp(-epsilon)
    whole = (1 - delta) / (1 + (categories - 1) * small)
    losses, p = ([-epsilon, epsilon], [whole * small, whole]) if epsilon > 0 else ([0.0], [1 - delta])
    if categories > 2 and epsilon > 0:
        losses.insert(1, 0.0)
        p.insert(1, whole * small * (categories - 2))
    if delta > 0:
        losses.append(math.inf)
        p.append(delta)
    return Atoms(np.array(losses), np.array(p))
