"""How many people may well be where a noisy histogram of norms shows none, if their number falls slowly.

An estimate, made of what was bought: the people beyond the last bucket above the noise are taken to follow a Pareto law
that is as flat as the noisy counts allow. It is no bound; `tail_counts.md` says why there is none.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["extend_tail", "find_steepness"]

CLEAR = 6.0
"""Scales of noise from which on a bucket says how the number of people falls."""

WINDOW = 3
UNSEEN = 0.5
"""In scales of noise, what is added to the people that are seen beyond."""

DOUBT = 3.0
"""In scales of noise, by how much more people the law may expect than are seen before it is made steeper."""

LAST = 0.5
"""The tail ends where fewer people than this are expected beyond."""

FLATTEST, STEEPEST = 1.0, 20.0

LIKELY, SURE, END, RARE, HEAVIEST = 0.7, 1.64, 4.0, 0.05, 0.5
"""For as many people as may well be there: deviations of the counts that the law is fitted to, and of the count of
those beyond; how many times more people than that the law must expect to be given up; how many people are expected
beyond the last one; and how flat the law may be."""

Buckets = NDArray[np.float64]


def find_steepness(edges: tuple[float, float, float], below: float, above: float, least: float = FLATTEST) -> float:
    """The exponent of a Pareto law with `below` people between the first two edges and `above` between the last two.

    >>> round(find_steepness((1, 2, 4), 100, 50), 6)
    1.0
    """
    low, middle, high = edges
    most = STEEPEST
    if below <= 0:
        return least
    for _ in range(50):
        steepness = (least + most) / 2
        share = (middle**-steepness - high**-steepness) / (low**-steepness - middle**-steepness)
        least, most = (steepness, most) if share > above / below else (least, steepness)
    return most


def extend_tail(people: Buckets, noisy: Buckets, marks: tuple[int, ...], scale: float) -> Buckets:
    """The people in each bucket, with those that may well be beyond the last one that is clearly above the noise.

    Args:
        people: about how many people each bucket holds, as far as it is above the noise.
        noisy: the noisy counts.
        marks: the upper ends of the buckets.
        scale: of the noise.
    """
    clear = np.flatnonzero(people > CLEAR * scale)
    if not clear.size:
        return people
    last = int(clear[-1])
    ends = np.array(marks, np.float64) + 0.5  # norms are whole numbers
    first, middle, after = max(last - 2 * WINDOW, 0), max(last - WINDOW, 0), min(last + WINDOW, len(marks) - 1)
    base, recent, earlier, edge = 0.5 * marks[0], float(people[last]), 0.0, 0.0
    if middle < last:
        base, recent = float(ends[middle]), float(people[middle + 1 : last + 1].sum())
        earlier = float(people[first + 1 : middle + 1].sum() if first < middle else people[middle])
        edge = float(ends[first]) if first < middle else 0.5 * marks[0]
    edges, following = (edge, base, float(ends[last])), (base, float(ends[last]), float(ends[after]))
    steepness = find_steepness(edges, earlier, recent) if earlier else FLATTEST
    seen = max(float(noisy[last + 1 : after + 1].sum()), 0.0)
    beyond = _count_beyond(recent, base, ends, last, steepness)
    foreseen = float(beyond[last] - beyond[after])
    if foreseen > seen + DOUBT * scale:
        steepness = max(steepness, find_steepness(following, recent, seen + UNSEEN * scale))
        beyond = _count_beyond(recent, base, ends, last, steepness)
    expected = _fall(people, beyond, last, LAST)
    noise = 2 * WINDOW * scale**2
    most_seen = seen + SURE * math.sqrt(seen + noise)
    if foreseen > END * most_seen or not earlier:  # the law ends here
        return expected
    most_recent = recent + LIKELY * math.sqrt(recent + noise)
    least_earlier = max(earlier - LIKELY * math.sqrt(earlier + noise), 1.0)
    heavier = min(steepness, find_steepness(edges, least_earlier, most_recent, HEAVIEST))
    beyond = _count_beyond(most_recent, base, ends, last, heavier)
    if beyond[last] - beyond[after] > most_seen:
        heavier = max(heavier, find_steepness(following, most_recent, most_seen, HEAVIEST))
        beyond = _count_beyond(most_recent, base, ends, last, heavier)
    largest = np.maximum(expected, _fall(people, beyond, last, LAST))
    largest[max(int(np.sum(beyond >= RARE)) - 1, last)] += 1.0  # the one who has most
    return np.asarray(largest)


def _fall(people: Buckets, beyond: Buckets, last: int, least: float) -> Buckets:
    """The people as they are seen up to the last bucket, and as they fall from there on while `least` are left."""
    falling = np.append(0.0, np.where(beyond[:-1] >= least, beyond[:-1] - beyond[1:], 0.0))
    return np.where(np.arange(len(people)) > last, falling, people)


def _count_beyond(recent: float, base: float, ends: Buckets, last: int, steepness: float) -> Buckets:
    """How many people are expected beyond each end, `recent` people lying between `base` and the last clear one."""
    return np.asarray(recent / (base**-steepness - ends[last] ** -steepness) * ends**-steepness, np.float64)
