"""Pairs made from pairs: an event on a random sample, and the dearest of several events.

Guarantee:
    With (P, Q) for a unit that is present or absent and a unit that is drawn with probability r, the mixtures
    ((1 - r) Q + r P, Q) and (P, (1 - r) P + r Q) cover removing and adding the unit (Zhu, Dong, Wang 2022, theorem 11).
    The new loss is an increasing function of the old one, so cells of the new loss are cells of the old one.
    `dominating.md` proves this and the case of replacement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mosha.accounting.losses.loss import UNIT, Array, Cells
from mosha.accounting.losses.pair import Pair

__all__ = ["Added", "Dearest", "Displaced", "Removed", "Replaced", "replace_unit"]

T = TypeVar("T", float, Array)
FAR = 600.0  # beyond this, ln(1 - r + r e^x) is x + ln r to the last digit


@dataclass(frozen=True, eq=False)
class Removed:
    """(1 - rate) Q + rate P against Q, where (P, Q) is `pair`: the loss is ln(1 - rate + rate e^L)."""

    pair: Pair
    rate: float

    @property
    def landmarks(self) -> tuple[float, ...]:
        return tuple(float(x) for x in _thin(np.array(self.pair.landmarks), self.rate))

    @property
    def spread(self) -> float:
        return self.pair.spread

    def cells(self, knots: Array) -> Cells:
        before = _undo_thinning(knots, self.rate)
        old = self.pair.cells(before)
        shift = old.shift + _rounding(knots, before, self.rate)
        return _mix(old, 1 - self.rate, self.rate, shift, into_p=True)

    def reach(self, mass: float) -> tuple[float, float]:
        _, high = self.pair.reach(mass)
        low, high = _thin(np.array([-high, high]), self.rate)
        return float(low), float(high)

    def knots(self, count: int, mass: float) -> Array:
        return _add_zero(_thin(self.pair.knots(count, mass), self.rate))


@dataclass(frozen=True, eq=False)
class Added:
    """P against (1 - rate) P + rate Q, where (P, Q) is `pair`: the loss is -ln(1 - rate + rate e^-L)."""

    pair: Pair
    rate: float

    @property
    def landmarks(self) -> tuple[float, ...]:
        return tuple(-float(x) for x in _thin(-np.array(self.pair.landmarks), self.rate))

    @property
    def spread(self) -> float:
        return self.pair.spread

    def cells(self, knots: Array) -> Cells:
        before = -_undo_thinning(-knots, self.rate)
        old = self.pair.cells(before)
        shift = old.shift + _rounding(knots, before, self.rate)
        return _mix(old, 1 - self.rate, self.rate, shift, into_p=False)

    def reach(self, mass: float) -> tuple[float, float]:
        low, high = -_thin(-np.array(self.pair.reach(mass)), self.rate)
        return float(low), float(high)

    def knots(self, count: int, mass: float) -> Array:
        return _add_zero(-_thin(-self.pair.knots(count, mass), self.rate))


@dataclass(frozen=True, eq=False)
class Displaced:
    """A pair up to a factor e^slack of its masses and a displacement `slack` of its losses."""

    pair: Pair
    slack: float
    landmarks: tuple[float, ...] = ()

    @property
    def spread(self) -> float:
        return self.pair.spread

    def cells(self, knots: Array) -> Cells:
        cells = self.pair.cells(knots)
        more = 2 * self.slack
        return replace(
            cells,
            p_error=cells.p_error + more * cells.p,
            q_error=cells.q_error + more * cells.q,
            tail_error=cells.tail_error + more,
            shift=cells.shift + self.slack,
        )

    def reach(self, mass: float) -> tuple[float, float]:
        return self.pair.reach(mass)

    def knots(self, count: int, mass: float) -> Array:
        return self.pair.knots(count, mass)


def _thin(losses: Array, rate: float) -> Array:
    """ln(1 - rate + rate e^x)."""
    near = np.log1p(rate * np.expm1(np.minimum(losses, FAR)))
    return np.asarray(np.where(losses > FAR, losses + math.log(rate), near))


def _undo_thinning(losses: Array, rate: float) -> Array:
    """The inverse of `_thin`; minus infinity below its range."""
    with np.errstate(divide="ignore"):
        near = np.log(np.maximum(np.expm1(np.minimum(losses, FAR)) + rate, 0.0) / rate)
    return np.asarray(np.where(losses > FAR, losses - math.log(rate), near))


def _rounding(knots: Array, before: Array, rate: float) -> float:
    """How far `_thin` of `before`, exactly, may lie from `knots`: a bound (`loss.md`, displaced knots)."""
    seen = np.isfinite(before) & np.isfinite(knots)
    if not seen.any():
        return 0.0
    near = np.abs(knots[seen])
    moved = np.minimum(1.0, rate + near) * np.exp(np.minimum(near, -math.log1p(-min(rate, 0.999999999))))
    return float((8 * UNIT * (2 + np.abs(before[seen])) * moved).max())


def _mix(old: Cells, keep: float, rate: float, shift: float, *, into_p: bool) -> Cells:
    """The cells of (keep Q + rate P, Q), or those of (P, keep P + rate Q)."""

    def mix(p: T, q: T) -> tuple[T, T]:
        return (keep * q + rate * p, q) if into_p else (p, keep * p + rate * q)

    p, q = mix(old.p, old.q)
    p_error, q_error = mix(old.p_error, old.q_error)
    outer = (*mix(old.p_below, old.q_below), *mix(old.p_above, old.q_above))
    infinite = rate * old.infinite if into_p else 0.0
    error = old.tail_error + 4 * UNIT
    return Cells(p, q, p_error + 4 * UNIT * p, q_error + 4 * UNIT * q, *outer, infinite, error, shift)


def _add_zero(knots: Array) -> Array:
    return np.unique(np.append(knots[np.isfinite(knots)], 0.0))


@dataclass(frozen=True, eq=False)
class Dearest:
    """The upper envelope of the curves of several pairs: whatever each of them covers, it covers.

    Guarantee:
        delta(e) is convex in e^e for every pair, hence so is the largest of them, and every such curve is that of a
        pair. Its tails at e are those of a pair that is largest there (subgradients of a maximum).
    """

    pairs: tuple[Pair, ...]

    @property
    def landmarks(self) -> tuple[float, ...]:
        return tuple(x for pair in self.pairs for x in pair.landmarks)

    @property
    def spread(self) -> float:
        return max(pair.spread for pair in self.pairs)

    def cells(self, knots: Array) -> Cells:
        parts = [pair.cells(knots) for pair in self.pairs]
        p_tails, q_tails = _tails(parts)
        error = max(c.tail_error for c in parts) + 4 * (8 + math.isqrt(len(knots))) * UNIT
        curves = p_tails - np.exp(np.minimum(knots, FAR)) * q_tails
        best = np.argmax(curves, axis=0)
        second = np.partition(curves, -2, axis=0)[-2] if len(parts) > 1 else np.full(len(knots), -np.inf)
        largest = p_tails[best, np.arange(len(knots))]
        doubt = np.where(curves.max(axis=0) - second <= 4 * error * largest, 4 * error * largest, 0.0)
        joined = _join(parts, best, error)
        with np.errstate(divide="ignore", invalid="ignore"):
            raised = np.where(doubt[:-1] > 0, doubt[:-1] / -np.expm1(-np.diff(knots)), 0.0)
        return replace(joined, p_error=joined.p_error + raised)

    def reach(self, mass: float) -> tuple[float, float]:
        reaches = [pair.reach(mass) for pair in self.pairs]
        return min(low for low, _ in reaches), max(high for _, high in reaches)

    def knots(self, count: int, mass: float) -> Array:
        return np.unique(np.concatenate([pair.knots(count, mass) for pair in self.pairs]))


@dataclass(frozen=True, eq=False)
class Replaced(Dearest):
    """`Removed` for losses from zero on and `Added` below: the larger of the two, and no rounding in the choice."""

    def cells(self, knots: Array) -> Cells:
        parts = [pair.cells(knots) for pair in self.pairs]
        error = max(c.tail_error for c in parts) + 4 * (8 + math.isqrt(len(knots))) * UNIT
        return _join(parts, np.where(knots >= 0, 0, 1), error)


def replace_unit(pair: Pair, rate: float) -> Pair:
    """A pair for a unit that is replaced by another, where absence is no further away than replacement."""
    return Replaced((Removed(pair, rate), Added(pair, rate)))


def _tails(parts: list[Cells]) -> tuple[Array, Array]:
    """P and Q above every knot, one row for each pair; a relative error of 2 (8 + sqrt(knots)) units."""
    p = [_sum_from_right(np.append(c.p, c.p_above)) for c in parts]
    q = [_sum_from_right(np.append(c.q, c.q_above)) for c in parts]
    return np.array(p), np.array(q)


def _sum_from_right(mass: Array) -> Array:
    """The sums of mass[i:], in blocks, so that rounding grows with the root of the length."""
    block = math.isqrt(len(mass)) + 1
    padded = np.zeros(block * block)
    padded[-len(mass) :] = mass
    rows = np.cumsum(padded.reshape(block, block)[:, ::-1], axis=1)[:, ::-1]
    after = np.append(np.cumsum(rows[::-1, 0])[::-1][1:], 0.0)
    return np.asarray((rows + after[:, None]).reshape(-1)[-len(mass) :])


def _join(parts: list[Cells], best: npt.NDArray[np.int64], error: float) -> Cells:
    """The cells of a curve that follows pair best[i] at knot i."""
    same, cell = best[1:] == best[:-1], np.arange(len(best) - 1)
    masses = []
    for tails, name in zip(_tails(parts), ("p", "q"), strict=True):
        tail = tails[best, np.arange(len(best))]
        mass = np.array([getattr(c, name) for c in parts])[best[:-1], cell]
        own = np.array([getattr(c, name + "_error") for c in parts])[best[:-1], cell]
        masses.append(np.where(same, mass, np.maximum(-np.diff(tail), 0.0)))
        masses.append(np.where(same, own, 2 * error * tail[:-1]))
    p, p_error, q, q_error = masses
    first, last = parts[int(best[0])], parts[int(best[-1])]
    outer = (first.p_below, first.q_below, last.p_above, last.q_above)
    return Cells(p, q, p_error, q_error, *outer, last.infinite, error, max(c.shift for c in parts))
