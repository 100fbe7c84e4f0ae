"""How many people a noisy histogram of norms does not show: those beyond its last bucket that is above the noise.

An estimate, made of what was bought: the people beyond are taken to follow a Pareto law, no flatter than the last
buckets above the noise and no heavier than what is seen beyond them. It is no bound; `tail_counts.md` says why there is
none.
"""

from __future__ import annotations

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

Buckets = NDArray[np.float64]


def find_steepness(edges: tuple[float, float, float], below: float, above: float) -> float:
    """The exponent of a Pareto law with `below` people between the first two edges and `above` between the last two.

    >>> round(find_steepness((1, 2, 4), 100, 50), 6)
    1.0
    """
    low, middle, high = edges
    least, most = FLATTEST, STEEPEST
    if below <= 0:
        return least
    for _ in range(50):
        steepness = (least + most) / 2
        share = (middle**-steepness - high**-steepness) / (low**-steepness - middle**-steepness)
        least, most = (steepness, most) if share > above / below else (least, steepness)
    return most


def extend_tail(people: Buckets, noisy: Buckets, marks: tuple[int, ...], scale: float) -> Buckets:
    """The people in each bucket, with those that are expected beyond the last one that is clearly above the noise.

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
    steepness, base, recent = FLATTEST, 0.5 * marks[0], float(people[last])
    if middle < last:
        base, recent = float(ends[middle]), float(people[middle + 1 : last + 1].sum())
        earlier = people[first + 1 : middle + 1].sum() if first < middle else people[middle]
        edge = float(ends[first]) if first < middle else 0.5 * marks[0]
        steepness = find_steepness((edge, base, float(ends[last])), float(earlier), recent)
    seen = max(float(noisy[last + 1 : after + 1].sum()), 0.0)
    beyond = _count_beyond(recent, base, ends, last, steepness)
    if beyond[last] - beyond[after] > seen + DOUBT * scale:
        edges = base, float(ends[last]), float(ends[after])
        steepness = max(steepness, find_steepness(edges, recent, seen + UNSEEN * scale))
        beyond = _count_beyond(recent, base, ends, last, steepness)
    expected = np.append(0.0, np.where(beyond[:-1] >= LAST, beyond[:-1] - beyond[1:], 0.0))
    return np.where(np.arange(len(marks)) > last, expected, people)


def _count_beyond(recent: float, base: float, ends: Buckets, last: int, steepness: float) -> Buckets:
    """How many people are expected beyond each end, `recent` people lying between `base` and the last clear one."""
    return np.asarray(recent / (base**-steepness - ends[last] ** -steepness) * ends**-steepness, np.float64)
