"""Exact choice of one candidate by integer scores: the exponential mechanism and permute-and-flip.

Scores are private. No message of this module depends on them beyond their type and number.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.noise.coins import flips
from mosha.noise.exponential import exp_negative, falls_below
from mosha.noise.generators.secure_random import word
from mosha.noise.integers import uniform, uniform_each
from mosha.noise.parameters import generator, scale_ratio, shape_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Ratio, Real, Size

__all__ = ["exponential_choice", "exponential_choices", "permute_and_flip_choice", "permute_and_flip_choices"]

_SLACK: Final = 2.0**-40  # relative; the floats are off by less than 2**-44 wherever they exceed one unit
_UNITS_LOG2: Final = 60
_MANY_LOG2: Final = 40


@overload
def exponential_choice(
    scores: ArrayLike,
    scale: Real,
    size: None = None,
    *,
    weights: ArrayLike | None = None,
    rng: Rng | None = None,
) -> int: ...
@overload
def exponential_choice(
    scores: ArrayLike,
    scale: Real,
    size: int | tuple[int, ...],
    *,
    weights: ArrayLike | None = None,
    rng: Rng | None = None,
) -> NDArray[np.int64]: ...
def exponential_choice(
    scores: ArrayLike,
    scale: Real,
    size: Size = None,
    *,
    weights: ArrayLike | None = None,
    rng: Rng | None = None,
) -> int | NDArray[np.int64]:
    """The index i of a candidate, with probability proportional to weights[i] * exp(scores[i] / scale).

    Guarantee:
        Exact, no gap. Candidate i owns N_i units, an integer that is at least h_i = c weights[i] exp(-d_i / scale),
        d_i = max(scores) - scores[i]. A unit is drawn uniformly; the one numbered v within candidate i is kept if
        v + U < h_i. So i is kept with probability proportional to min(N_i, h_i) = h_i, and c cancels. Units with
        v + 1 <= h_i, by a float that is certainly too small, need no test; the rest `falls_below` settles.
        With scale = 2 D / epsilon and scores of sensitivity D this is epsilon-private (McSherry, Talwar 2007).

    Units:
        `scale` is in the unit of the scores. `weights` (default 1) are public integers >= 0, such as the
        number of grid points that candidate i stands for.

    Raises:
        InvalidParameter: no candidates, scores that are not 64-bit integers, weights that do not fit.

    Args:
        scores: one signed 64-bit integer for each candidate.
        scale: the difference of scores that makes a candidate e times as likely.
        size: how many to draw: a number or a shape; None draws a single one.
        weights: one integer for each candidate, zero or above; all 1 by default.
        rng: a random generator; the secure one of the process by default.

    >>> exponential_choice([0, 1000], scale=1)
    1
    """
    distances = _distances(scores)
    units = _Units.of(distances, scale_ratio("scale", scale, at_most=None), _weights(weights, distances.size))
    source = generator(rng)
    if size is None:
        return int(units.choose(1, source)[0])
    shape = shape_of(size)
    return units.choose(math.prod(shape), source).reshape(shape)


def exponential_choices(
    scores: NDArray[np.int64],
    starts: NDArray[np.int64],
    scale: Real,
    *,
    weights: NDArray[np.int64],
    rng: Rng | None = None,
) -> NDArray[np.int64]:
    """For each of many lists of candidates the index of one, as `exponential_choice` draws it: independent choices.

    Guarantee:
        Exact, no gap. Each list is drawn from as in `exponential_choice`, with c = 2**40 / exp(best / scale): of all
        units of a list one is drawn, and kept if it lies under its candidate's h_i, else another one of that list.

    Units:
        `scale` is in the unit of the scores. The weights of a list sum to less than 2**22, and one of them is above 0.

    Args:
        scores: the scores of all lists, end to end.
        starts: where each list begins, and where the last one ends; no list is empty.
        scale: the difference of scores that makes a candidate e times as likely.
        weights: one integer for each candidate, zero or above.
        rng: a random generator; the secure one of the process by default.

    >>> exponential_choices(np.array([0, 9999, 9999, 0]), np.array([0, 2, 4]), 1, weights=np.ones(4, np.int64))
    array([1, 2])
    """
    units = _ManyUnits.of(scores, starts, scale_ratio("scale", scale, at_most=None), weights)
    return units.choose(generator(rng))


def permute_and_flip_choice(scores: ArrayLike, scale: Real, *, rng: Rng | None = None) -> int:
    """The index of a candidate by permute-and-flip (McKenna, Sheldon 2020), never worse than the exponential.

    Guarantee:
        Exact, no gap. The mechanism visits the candidates in random order and stops at the first coin of bias
        exp(-(max - score) / scale) that shows heads. Coins and order are independent, so flipping all coins
        first and taking the first heads in random order is a uniform choice among the heads; the best
        candidate always shows heads. With scale = 2 D / epsilon it is epsilon-private.

    Units:
        `scale` is in the unit of the scores.

    Args:
        scores: one signed 64-bit integer for each candidate.
        scale: the distance from the best score at which a coin shows heads with probability 1/e.
        rng: a random generator; the secure one of the process by default.

    >>> permute_and_flip_choice([0, 1000], scale=1)
    1
    """
    distances = _distances(scores)
    source = generator(rng)
    heads = np.flatnonzero(flips(distances, scale, rng=source))
    return int(heads[uniform(heads.size, rng=source)])


def permute_and_flip_choices(scores: NDArray[np.int64], scale: Real, *, rng: Rng | None = None) -> NDArray[np.int64]:
    """For each row of scores the index of a candidate, as `permute_and_flip_choice` draws it: independent choices.

    Guarantee:
        Exact, no gap. Every candidate of every row has a coin of its own, and among the heads of a row one is drawn
        uniformly, by a number of its own.

    Units:
        `scale` is in the unit of the scores.

    Args:
        scores: a row of signed 64-bit integers for each choice, a column for each candidate.
        scale: the distance from the best score of its row at which a coin shows heads with probability 1/e.
        rng: a random generator; the secure one of the process by default.

    >>> permute_and_flip_choices(np.array([[0, 1000], [1000, 0]]), scale=1)
    array([1, 0])
    """
    source = generator(rng)
    best = scores.max(axis=1, keepdims=True)
    heads = flips(best.view(np.uint64) - scores.view(np.uint64), scale, rng=source)  # which cannot overflow
    ranks = heads.cumsum(axis=1)
    chosen = uniform_each(ranks[:, -1], rng=source) + 1
    first: NDArray[np.int64] = (ranks == chosen[:, None]).argmax(axis=1)
    return first


def _distances(scores: ArrayLike) -> NDArray[np.uint64]:
    """How far each score is below the best, as unsigned integers: 64-bit wrap-around cannot lose them."""
    values = _integers("scores", scores)
    if values.ndim != 1 or values.size == 0:
        raise InvalidParameter("noise.scores_not_flat", parameter="scores")
    unsigned = values.view(np.uint64)
    distances: NDArray[np.uint64] = unsigned[values.argmax()] - unsigned
    return distances


def _weights(weights: ArrayLike | None, count: int) -> NDArray[np.int64]:
    if weights is None:
        return np.ones(count, np.int64)
    values = _integers("weights", weights)
    if values.shape != (count,):
        raise InvalidParameter("noise.number_of_weights", parameter="weights", count=count)
    if (values < 0).any() or not values.any():
        raise InvalidParameter("noise.weights_all_zero", parameter="weights")
    return values


def _integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    try:
        array: NDArray[Any] = np.asarray(values)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise InvalidParameter("noise.not_signed_integers", parameter=name)
    return array.astype(np.int64)


class _Units(NamedTuple):
    """The units of all candidates, laid end to end: `ends[i]` is one past the last of candidate i."""

    ends: NDArray[np.int64]
    owned: NDArray[np.int64]
    sure: NDArray[np.int64]
    distances: NDArray[np.uint64]
    weights: NDArray[np.int64]
    scale: Ratio
    exponent: int
    """Of two: c = 2**exponent."""

    @classmethod
    def of(cls, distances: NDArray[np.uint64], scale: Ratio, weights: NDArray[np.int64]) -> _Units:
        top, bottom = scale
        rate = float(min(Fraction(bottom, top), Fraction(1 << 60)))
        if not weights.all():  # the best candidate must have weight, or all others could round to nothing
            distances = np.where(weights > 0, distances, np.uint64(0)) - distances[weights > 0].min()
            distances[weights == 0] = 0
        chances = weights * exp_negative(distances.astype(np.float64) * rate)
        exponent = _UNITS_LOG2 - len(chances).bit_length() - math.frexp(chances.max())[1]
        scaled = np.ldexp(chances, exponent)
        owned = (scaled * (1 + _SLACK)).astype(np.int64) + (weights > 0)
        sure = (scaled * (1 - _SLACK)).astype(np.int64)
        return cls(np.cumsum(owned), owned, sure, distances, weights, scale, exponent)

    def choose(self, count: int, rng: Rng) -> NDArray[np.int64]:
        chosen = np.empty(count, np.int64)
        where = np.arange(count)
        while where.size:
            unit = uniform(int(self.ends[-1]), where.size, rng=rng)
            index = np.searchsorted(self.ends, unit, side="right")
            level = unit - (self.ends[index] - self.owned[index])
            chosen[where] = index
            unsure = np.flatnonzero(level >= self.sure[index])
            kept = [self._accepts(int(index[i]), int(level[i]), rng) for i in unsure]
            where = where[unsure[~np.array(kept, np.bool_)]]
        return chosen

    def _accepts(self, index: int, level: int, rng: Rng) -> bool:
        weight, distance = int(self.weights[index]), int(self.distances[index])
        return _lies_under(weight, distance, self.scale, self.exponent, level, rng)


class _ManyUnits(NamedTuple):
    """The units of many lists: `ends[i]` is one past the last unit of candidate i, counted from its list's first."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    owned: NDArray[np.int64]
    sure: NDArray[np.int64]
    distances: NDArray[np.uint64]
    weights: NDArray[np.int64]
    scale: Ratio

    @classmethod
    def of(
        cls, scores: NDArray[np.int64], starts: NDArray[np.int64], scale: Ratio, weights: NDArray[np.int64]
    ) -> _ManyUnits:
        top, bottom = scale
        sizes, present = np.diff(starts), weights > 0
        lowest = np.iinfo(np.int64).min
        best = np.maximum.reduceat(np.where(present, scores, lowest), starts[:-1])
        distances = np.where(present, np.repeat(best, sizes).view(np.uint64) - scores.view(np.uint64), np.uint64(0))
        rate = float(min(Fraction(bottom, top), Fraction(1 << 60)))
        scaled = np.ldexp(weights * exp_negative(distances.astype(np.float64) * rate), _MANY_LOG2)
        owned = (scaled * (1 + _SLACK)).astype(np.int64) + present
        sure = (scaled * (1 - _SLACK)).astype(np.int64)
        laid = np.cumsum(owned)  # of many lists it wraps around, and the differences within a list are right
        before = np.concatenate([[0], laid])[starts[:-1]]
        return cls(starts, laid - np.repeat(before, sizes), owned, sure, distances, weights, scale)

    def choose(self, rng: Rng) -> NDArray[np.int64]:
        chosen = np.empty(len(self.starts) - 1, np.int64)
        where = np.arange(len(chosen))
        while where.size:
            first, last = self.starts[where], self.starts[where + 1] - 1
            unit = uniform_each(self.ends[last], rng=rng)
            index = self._find(unit, first, last)
            level = unit - (self.ends[index] - self.owned[index])
            chosen[where] = index
            unsure = np.flatnonzero(level >= self.sure[index])
            kept = [self._accepts(int(index[i]), int(level[i]), rng) for i in unsure]
            where = where[unsure[~np.array(kept, np.bool_)]]
        return chosen

    def _find(self, unit: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first candidate between two whose end is above the unit, by halving."""
        low, high = first.copy(), last.copy()
        while (low < high).any():
            middle = (low + high) >> 1
            above = self.ends[middle] > unit
            high = np.where(above, middle, high)
            low = np.where(above, low, np.minimum(middle + 1, high))
        return low

    def _accepts(self, index: int, level: int, rng: Rng) -> bool:
        return _lies_under(int(self.weights[index]), int(self.distances[index]), self.scale, _MANY_LOG2, level, rng)


def _lies_under(weight: int, distance: int, scale: Ratio, exponent: int, level: int, rng: Rng) -> bool:
    """Whether level + U < 2**exponent * weight * exp(-distance / scale), for a uniform U."""
    top, bottom = scale
    amplitude = weight * Fraction(2) ** exponent
    known = word(rng)
    return falls_below(
        rng, amplitude=amplitude, exponent=Fraction(distance * bottom, top), whole=level, known=known, bits=64
    )
