"""How many people have how much, as a noisy histogram of norms tells it: laws for those whom it does not show.

Beyond the last bucket that is above the noise people may end (most tables have a largest number of rows a person), go
on as few or as many as the noisy counts say, or fall as they did before, by an exponential or a Pareto law. Each law is
weighed by how well it foretells the noisy counts beyond. What is made of that is an estimate; `tail_counts.md` says why
there is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Law", "find_last", "place_points", "weigh_laws"]

FIRST, CLEAR, MORE = 4.0, 5.0, 1.2
"""Scales of noise that fill a bucket: the first one, one above others that are filled, and for each bucket more that
is looked at together."""

FIRST_RISE, RISE = 2.0, 3.0
"""How fast that grows with the logarithm of the norm: an empty bucket that is r times as far looks filled with a chance
of r ** -RISE, so that the squared error that such buckets add is small, however far they are."""

FIRST_WIDTHS, WIDTHS = (1, 2, 4, 8), (1, 2, 3)
"""Buckets that are looked at together."""

SEEN = 3.0
"""Scales of noise from which on a bucket tells how people fall."""

WINDOW, AHEAD = 4, 6
"""Buckets that laws are fitted to, and those beyond that they must foretell."""

MISFIT = 0.2
"""By how much (in logarithms) a bucket strays from a law that holds."""

ENDS, ENDS_AT_PEAK = 0.5, 0.98
"""How likely it is beforehand that people end where they are seen to, also where more have that much than less."""

AS_SEEN, FINE, PARETO = 0.2, 2.0, 0.05
"""The weight of what is seen beyond, with what a count that is taken as it is costs; and of Pareto laws."""

SLOPES, EXPONENTS, RATIOS = (0.5, 1.0, 2.0), (1.0, 1.5), (0.5, 0.25, 0.1)
"""Times the slope and the exponent that fit; and how much fewer people have twice as much, where one bucket is all."""

GENTLEST, FLATTEST = 3.0, 3.0
"""No law falls more slowly: in the logarithm of the density, for each doubling or so of the norm."""

LEAST = 0.5
"""A law ends where fewer people than this are expected beyond."""

POINTS = 8
"""Norms that stand for those of a bucket."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """About how many people have each of some norms (`place_points`), and how likely that is."""

    weight: float
    people: Numbers


@dataclass(frozen=True)
class Shape:
    """A noisy histogram up to its last filled bucket, in logarithms of people for each unit of norm."""

    noisy: Numbers
    scale: float
    lows: Numbers
    ends: Numbers
    last: int

    @property
    def widths(self) -> Numbers:
        return self.ends - self.lows

    @property
    def middles(self) -> Numbers:
        return (self.lows + 1 + self.ends) / 2

    @property
    def density(self) -> Numbers:
        return np.asarray(np.log(np.maximum(self.noisy, self.scale) / self.widths))

    @property
    def beyond(self) -> slice:
        return slice(self.last + 1, len(self.noisy))


def place_points(marks: tuple[int, ...]) -> Numbers:
    """Norms that stand for those of each bucket, from the least to the greatest, a row for each.

    >>> place_points((1, 2, 10))[:, [0, -1]].tolist()
    [[1.0, 1.0], [2.0, 2.0], [3.4375, 9.5625]]
    """
    lows, ends = np.array((0, *marks[:-1]), np.float64), np.array(marks, np.float64)
    parts = (np.arange(POINTS) + 0.5) / POINTS
    return np.asarray(lows[:, None] + 1 + (ends - lows - 1)[:, None] * parts)


def find_last(noisy: Numbers, marks: tuple[int, ...], scale: float) -> int | None:
    """The last bucket that more than noise fills, or None: from one that stands out, as far up as others do.

    Args:
        noisy: the noisy counts.
        marks: the upper ends of the buckets.
        scale: of the noise.
    """
    counts, far = noisy / scale, np.log(np.array(marks, np.float64))
    for width in FIRST_WIDTHS:
        if filled := _stand_out(counts, far - far[0], 0, width, FIRST, FIRST_RISE):
            last = filled[0] + int(np.argmax(counts[filled[0] : filled[0] + width]))
            break
    else:
        return None
    while True:
        for width in WIDTHS:
            if filled := _stand_out(counts, far - far[last], last + 1, width, CLEAR, RISE):
                last = filled[-1] + width - 1
                while counts[last] < LEAST:
                    last -= 1
                break
        else:
            return last


def _stand_out(counts: Numbers, far: Numbers, start: int, width: int, least: float, rise: float) -> list[int]:
    """Where from `start` on so many buckets together hold more than noise does."""
    if len(counts) - start < width:
        return []
    together = np.convolve(counts[start:], np.ones(width), "valid")
    needed = least + MORE * (width - 1) + rise * far[start + width - 1 :]
    return [start + int(place) for place in np.flatnonzero(together > needed)]


def weigh_laws(noisy: Numbers, marks: tuple[int, ...], scale: float) -> list[Law] | None:
    """What the histogram says about people's norms, by every law that may hold; None where it says nothing.

    Args:
        noisy: the noisy counts.
        marks: the upper ends of the buckets.
        scale: of the noise.
    """
    last = find_last(noisy, marks, scale)
    if last is None:
        return None
    shape = _shape(noisy, marks, scale, last)
    seen = np.where(np.arange(len(noisy)) <= last, np.maximum(noisy, 0.0), 0.0)
    peak = int(np.argmax(shape.density[: last + 1])) == last
    ending = ENDS_AT_PEAK if peak else ENDS
    slope, falls = _fit(shape)
    found = [(ending, np.zeros(len(noisy) - last - 1))]
    found += [((1 - ending) * (1 - AS_SEEN) * weight, tail) for weight, tail in falls]
    for count in (1, 2):
        tail = np.where(np.arange(len(noisy) - last - 1) < count, np.maximum(noisy[shape.beyond], 0.0), 0.0)
        found.append(((1 - ending) * AS_SEEN / 2 * math.exp(-FINE * count), tail))
    told = noisy[shape.beyond][:AHEAD]
    likely = np.array([math.log(weight) - float(np.abs(told - tail[:AHEAD]).sum()) / scale for weight, tail in found])
    weights = np.exp(likely - likely.max())
    spread = _spread(marks, last, slope)
    laws = []
    for weight, (_, tail) in zip(weights / weights.sum(), found, strict=True):
        left = np.cumsum(tail[::-1])[::-1] > LEAST
        people = np.concatenate([seen[: last + 1], np.where(left, tail, 0.0)])
        laws.append(Law(float(weight), (people[:, None] * spread).ravel()))
    return laws


def _shape(noisy: Numbers, marks: tuple[int, ...], scale: float, last: int) -> Shape:
    ends = np.array(marks, np.float64)
    return Shape(noisy, scale, np.append(0.0, ends[:-1]), ends, last)


def _fit(shape: Shape) -> tuple[float, list[tuple[float, Numbers]]]:
    """How fast people fall for each unit of norm, and the laws beyond that go on like that, each with its weight."""
    last, middles, density, widths = shape.last, shape.middles, shape.density, shape.widths[shape.beyond]
    places = np.arange(max(0, last - WINDOW + 1), last + 1)
    places = places[(shape.noisy[places] > SEEN * shape.scale) | (places == last)]
    away = middles[shape.beyond] - middles[last]
    if len(places) == 1:
        width = shape.widths[last]
        tails = [widths * np.exp(density[last] + math.log(ratio) / width * away) for ratio in RATIOS]
        return math.log(RATIOS[1]) / width, [(1 / len(tails), tail) for tail in tails]
    people = np.maximum(shape.noisy[places], shape.scale)
    weights = 0.5 ** (last - places) / (MISFIT**2 + 2 * (shape.scale / people) ** 2 + 1 / people)
    plain, powers = (_fit_line(x, density[places], weights) for x in (middles[places], np.log(middles[places])))
    levels = (plain.level, powers.level) if plain.slope < 0 else (density[last], density[last])
    slope, exponent = min(plain.slope, -GENTLEST / middles[last]), min(powers.slope, -FLATTEST)
    logs = np.log(middles[shape.beyond] / middles[last])
    falls = [((1 - PARETO) / len(SLOPES), levels[0] + slope * times * away) for times in SLOPES]
    falls += [(PARETO / len(EXPONENTS), levels[1] + exponent * times * logs) for times in EXPONENTS]
    return slope, [(weight, widths * np.exp(np.maximum(fall, -60.0))) for weight, fall in falls]


@dataclass(frozen=True)
class Line:
    """A line through points: its slope, where it is at the last one, and how far it misses them."""

    slope: float
    level: float
    missed: float


def _fit_line(x: Numbers, y: Numbers, weights: Numbers) -> Line:
    """The line with the least squares, weighted."""
    middle, level = float(np.average(x, weights=weights)), float(np.average(y, weights=weights))
    slope = float(np.sum(weights * (x - middle) * (y - level)) / np.sum(weights * (x - middle) ** 2))
    missed = float(np.sum(weights * (y - level - slope * (x - middle)) ** 2)) / 2
    return Line(slope, level + slope * (float(x[-1]) - middle), missed)


def _spread(marks: tuple[int, ...], last: int, slope: float) -> Numbers:
    """What part of a bucket's people has each of its norms: the same, from the last filled bucket on ever fewer."""
    points = place_points(marks)
    falling = np.exp(np.maximum(slope * (points - points[:, :1]), -60.0))
    falling[: last + 1] = 1.0
    return np.asarray(falling / falling.sum(axis=1, keepdims=True))
