"""Moment functions on fixed complex nodes: what composes by multiplication and answers in constant time.

With M(z) = E e^(z L) and any c > 0 (Parseval, or a Laplace inversion),

    delta(e) = e^(-c e) / (2 pi) * integral of M(c + i t) e^(-i t e) / ((c + i t)(c + 1 + i t)) dt,

and the trapezoidal rule with step h gives sum over m of e^(2 pi c m / h) delta(e + 2 pi m / h) instead: the wanted term
plus terms that are all positive. So a *lane* (one c, its nodes) always errs upwards. The tail of the sum beyond the
last node is bounded by the moduli of the moment functions, rounding by counting. The budget is in `contour.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mosha.accounting.losses.loss import UNIT, Array, connect_dots
from mosha.accounting.losses.pair import Atoms, Band, Pair

__all__ = ["BOXES", "CENTRES", "HEIGHTS", "KERNEL", "LANES", "SPACING", "TAIL", "Complex", "Moments", "moments"]

Complex = npt.NDArray[np.complex128]

LANES = 18
COUNT = 49  # nodes
CENTRES: Array = 2.0 ** np.arange(-5, LANES - 5, dtype=np.float64)
SPACING: Array = CENTRES * (2 * math.pi / 50)
HEIGHTS: Array = SPACING[:, None] * np.arange(COUNT)
NODES: Complex = CENTRES[:, None] + 1j * HEIGHTS
BOXES: Array = SPACING[:, None] * COUNT * 1.15 ** np.arange(30)  # t from here to the next belongs to one box
KERNEL: Complex = 1 / (NODES * (NODES + 1))
EDGES: Array = np.append(BOXES, np.full((LANES, 1), np.inf), axis=1)
COARSE = 4000  # knots for laws without a formula
TINY = 1e-25  # shares that are not worth turning
MERGED = 8  # neighboring atoms that a bound on moduli takes together
RARE = 1e-9  # shares that a bound on moduli may set aside


@dataclass(frozen=True, eq=False)
class Moments:
    """The moment function of one loss, or of a sum of them.

    `log_scale` is ln M(c) on each lane, `phase` is M(z) / M(c) on the nodes, `decay` bounds -ln |M(c + i t)| / M(c)
    from below on each box, `error` bounds the absolute error of `phase` and of `log_scale`, `infinite` is the mass at
    infinity, given as -ln(1 - mass).
    """

    log_scale: Array
    phase: Complex
    decay: Array
    error: Array
    infinite: float = 0.0

    def times(self, count: int) -> Moments:
        """The sum of `count` such losses."""
        if count == 1:
            return self
        power, base, left = np.ones_like(self.phase), self.phase, count
        while left:
            if left & 1:
                power = power * base
            left >>= 1
            if left:
                base = base * base
        error = np.expm1(
            np.minimum((self.error + 4 * UNIT) * count, 700.0)
        )  # (1 + e)^n - 1, as phases have modulus one
        return Moments(self.log_scale * count, power, self.decay * count, error, self.infinite * count)


def moments(pair: Pair) -> Moments:
    """The moment function of a pair: exact for bands and two atoms, else that of a coarser law that tells more."""
    if isinstance(pair, Band):
        return _laplace(pair.width) if pair.ends else _band(pair.width)
    if isinstance(pair, Atoms) and len(pair.p) == 2 and np.isfinite(pair.losses[-1]):
        return _two_atoms(pair)
    if isinstance(pair, Atoms) and len(pair.p) <= 4:
        return _atoms(pair.losses, pair.p * (1 + pair.error), pair.shift)
    knots = pair.knots(COARSE, 1e-30)
    cells = pair.cells(knots)
    mass, infinite = connect_dots(cells, knots)
    return _atoms(np.append(knots, np.inf), np.append(mass, infinite), cells.shift)


def _powers(first: Complex | Array, angle: float) -> Complex:
    """The numbers first * e^(i t angle) on the nodes of each lane; a relative error of at most 128 + 8 t angle u."""
    table = np.empty((LANES, COUNT), dtype=np.complex128)
    table[:, 0] = first
    table[:, 1:] = np.exp(1j * angle * SPACING)[:, None]
    return np.multiply.accumulate(table, axis=1, out=table)


_NEAR: Complex = (NODES + 1) / (2 * NODES + 1)
_FAR: Complex = NODES / (2 * NODES + 1)


def _laplace(w: float) -> Moments:
    """Laplace noise of epsilon w: M(z) = e^(z w) ((z + 1) + z e^(-(2 z + 1) w)) / (2 z + 1)."""
    small = np.exp(-(2 * CENTRES + 1) * w)
    scale = _NEAR[:, 0].real + _FAR[:, 0].real * small
    phase = _FAR * _powers(small, -2 * w)
    phase += _NEAR
    phase *= _powers(1 / scale, w)
    log_scale = CENTRES * w + np.log(scale)
    return Moments(log_scale, phase, _decay(0.25 * small / scale**2, 2 * w), _error(w, log_scale))


def _band(w: float) -> Moments:
    """The worst mechanism of bounded range w: M(z) = e^(z w) (1 - e^(-(2 z + 1) w)) / ((2 z + 1)(1 - e^-w))."""
    small = np.exp(-(2 * CENTRES + 1) * w)
    value = (1 - _powers(small, -2 * w)) / ((2 * NODES + 1) * -math.expm1(-w))
    scale = value[:, 0].real
    log_scale = CENTRES * w + np.log(scale)
    error = _error(w, log_scale) * (1 + 1 / w)
    return Moments(log_scale, value * _powers(1 / scale, w), np.zeros_like(BOXES), error)


def _two_atoms(pair: Atoms) -> Moments:
    low, high = (float(x) for x in pair.losses + pair.shift)
    bottom, top = (float(x) for x in pair.p * (1 + pair.error))
    small = bottom / top * np.exp(-CENTRES * (high - low))
    share = 1 / (1 + small)
    phase = _powers(share, high)
    phase += _powers(share * small, low)
    log_scale = CENTRES * high + np.log(top * (1 + small))
    decay = _decay(share * share * small, high - low)
    return Moments(log_scale, phase, decay, _error(max(abs(low), abs(high)), log_scale))


def _error(widest: float, log_scale: Array) -> Array:
    return np.asarray(UNIT * (400 + 64 * HEIGHTS[:, -1] * widest + 4 * np.abs(log_scale)))


def _decay(product: Array, apart: float) -> Array:
    """A bound from below on -ln |M(c + i t)| / M(c) over each box, from two atoms a distance R = `apart` away.

    With two draws L, L' of the tilted loss, |M(c + i t)|^2 / M(c)^2 = E cos(t (L - L')), and one of them is on the one
    atom and one on the other with probability 2 `product`; so it is at most 1 - 4 product sin^2(R t / 2). Over a box
    the sine is least at an end, or zero if the box holds a multiple of its period.
    """
    turns = BOXES * (apart / 2)
    squares = np.sin(turns) ** 2
    whole = np.floor(turns * (1 / math.pi))
    least = np.zeros_like(squares)
    np.minimum(squares[:, :-1], squares[:, 1:], out=least[:, :-1], where=whole[:, :-1] == whole[:, 1:])
    least = np.maximum(least - (1e-12 + 16 * UNIT * turns), 0.0)
    return np.asarray(-0.5 * np.log1p(-np.minimum((4 - 1e-9) * product[:, None] * least, 1 - 1e-12)))


def _expand(losses: Array, share: Array) -> Array:
    """The same for any atoms, by expansion around the middle t of each box, r to either side.

    Neighbors are first merged at their mean, which moves E e^(i t L) by at most t^2 / 2 times the variance that is
    lost. With f(t) = E e^(i t (L - mean)) over the losses within 1 / r of the mean, |f(t + s)| for |s| <= r is at most
    |f(t)| + r |f'(t)| + r^2 / 2 E (L - mean)^2, since |f''| is nowhere larger; the other losses count in full.
    """
    decay = np.zeros_like(BOXES)
    cuts, farthest = np.arange(0, len(losses), MERGED), float(np.abs(losses).max())
    for lane in range(LANES):
        weight, first, second = (np.add.reduceat(share[lane] * losses**k, cuts) for k in (0, 1, 2))
        seen = np.flatnonzero(weight > RARE)
        weight, mean = weight[seen], first[seen] / weight[seen]
        away = mean - float(weight @ mean)
        merged = float(np.maximum(second[seen] - weight * mean**2, 0.0).sum()) + 1e-14 * float(second[seen].sum())
        middle, radius = (BOXES[lane, 1:] + BOXES[lane, :-1]) / 2, (BOXES[lane, 1:] - BOXES[lane, :-1]) / 2
        near = np.where(radius[:, None] * np.abs(away) <= 1, weight, 0.0)
        turns = np.exp(1j * np.outer(middle, away)) * near
        bound = np.abs(turns.sum(axis=1)) + radius * np.abs(turns @ away) + radius**2 / 2 * (near @ away**2)
        bound += np.maximum(1.0 - near.sum(axis=1), 0.0) + BOXES[lane, 1:] ** 2 / 2 * merged
        bound += 1e-12 + 16 * UNIT * BOXES[lane, 1:] * farthest
        decay[lane, :-1] = -np.log(np.clip(bound, 1e-12, 1.0))
    return decay


def _atoms(losses: Array, p: Array, shift: float) -> Moments:
    finite = np.isfinite(losses) & (p > 0)
    infinite = float(p[~np.isfinite(losses)].sum())
    losses, p = losses[finite] + shift, p[finite]
    top, bottom = float(losses[-1]), float(losses[0])
    exponents = CENTRES[:, None] * (losses - top) + np.log(p)
    weights = np.exp(exponents)
    scale = weights.sum(axis=1)
    share = weights / scale[:, None]
    phase = np.empty((LANES, COUNT), dtype=np.complex128)
    block = math.isqrt(COUNT)
    for lane in range(LANES):
        seen = np.flatnonzero(share[lane] > TINY)
        turn = np.exp(1j * SPACING[lane] * losses[seen])
        small = np.multiply.accumulate(np.stack([np.ones_like(turn)] + [turn] * (block - 1)))
        large = np.multiply.accumulate(np.stack([share[lane][seen] + 0j] + [small[-1] * turn] * (block - 1)))
        phase[lane] = (large @ small.T).ravel()  # node k = 7 a + b
    log_scale = CENTRES * top + np.log(scale)
    reach = np.maximum(abs(top), abs(bottom)) * HEIGHTS[:, -1]
    error = UNIT * (400 + 8 * len(p) + 8 * reach + 4 * np.abs(log_scale)) + TINY * len(p)
    decay = _expand(losses, share) if len(p) > 4 else _decay(share[:, -1] * share[:, 0], top - bottom)
    return Moments(log_scale, phase, decay, error, -math.log1p(-min(infinite, 0.999999)))


def _tail() -> Array:
    """For each box, a bound on 2 * sum over its nodes t = h k of 1 / |z (z + 1)|, with |z (z + 1)| >= t^2."""
    ends = EDGES[:, 1:]
    # sum over t >= a of 1 / t^2 is at most 1 / a^2 + (1 / a - 1 / b) / h
    return np.asarray(2 * (1 / BOXES**2 + (1 / BOXES - 1 / ends) / SPACING[:, None]))


TAIL: Array = _tail()
