"""A bound on what one person counts for, bought from the budget: where bias and noise together are smallest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer
from mosha.connect.language.value import Value
from mosha.connect.plan.aggregation import Norms
from mosha.core.budget import Budget
from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.measurement import Rng
from mosha.exact.grid import add_noise
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import discrete_laplace
from mosha.noise.parameters import enlarge_scale
from mosha.tables.mechanisms.tail_draws import draw_people, widen_bar
from mosha.tables.mechanisms.tail_laws import POINTS, Law, find_last, place_points, weigh_laws
from mosha.tables.parts.part import Frame, Keys, pure_epsilon

__all__ = [
    "LITTLE",
    "SHARE_FOR_BOUNDS",
    "UNKNOWN",
    "Chosen",
    "NormChoice",
    "people_above",
    "thresholds",
]

SHARE_FOR_BOUNDS = 0.1
"""Of a part's budget: what the noise loses by it is a ninth, and a histogram of thousands of people tells enough."""

LITTLE = 2.0
RARE = 1e-6
"""Laws that are less likely than this do not say how large a norm may be."""

LIKELY, LIKELY_GUESS = 0.975, 0.9
"""How likely noise and what is cut stay within bars of 95%: some laws fit the tail worse than they seem to. And where
the noise hides the tail: no bar can be relied on there, so the one that is shown is a guess that people can use."""

MOST_GUESSED = 1.0
"""Times what is left: a guess says no more than that as much again may be cut."""

ENOUGH = 200.0
"""So many scales of noise of people show how slowly a tail falls; with fewer, slow laws look like others."""

_OCTAVES = 20
_BELOW = 6
_FEW_ROWS = 8
"""Up to so many rows every number has a bucket: most tables have a few rows a person, and a whole row more is much."""

_MARKS = 64
"""No histogram has more marks than this."""

UNKNOWN = -1.0
"""In place of the share that is cut, where too few people are there to tell anything."""

_UNLISTED = 8
"""How many groups a choice reckons with where their number is not known yet."""

_UNTOLD = 8
"""The bound in rows where too few people are there to tell one."""


def thresholds(unit: int = 1) -> tuple[int, ...]:
    """Where the buckets of a histogram of norms end, two for each doubling, and at every whole number of a few rows.

    Rows are counted from one up; sums whose largest value is `unit` from a small part of that up.
    """
    first = max(1, unit >> _BELOW)
    octaves = _OCTAVES + (unit // first).bit_length() - 1
    few = range(1, _FEW_ROWS + 1) if unit == 1 else ()
    return tuple(sorted({round(first * 2 ** (i / 2)) for i in range(2 * octaves + 1)} | set(few)))


@dataclass(frozen=True)
class Chosen:
    """A norm in units of the leader, and what was bought with it: a noisy number of persons above `mark`.

    `above` is the sum of `buckets` noisy counts (see `tail_counts.md`); `mark` is the first threshold from the norm on.
    `cut` is an estimate of what the bound takes away, as a share of what it leaves (`tail_laws`), and `most` what may
    well be taken; `hidden` says that no bar for it can be relied on.
    """

    norm: int
    mark: int
    above: float
    buckets: int
    order: int = 1
    cut: float = 0.0
    most: float = 0.0
    hidden: bool = False

    @property
    def plain(self) -> list[float]:
        """As a release holds it."""
        return [float(self.mark), self.above, float(self.buckets), self.cut, self.most, float(self.hidden)]


@dataclass(frozen=True)
class Candidate:
    """A norm, the error that is expected of it (what it cuts, and noise), and what it cuts over what it leaves.

    `cut` is what is expected, `most` what may well be; `hidden` says that the noise hides how slowly people fall.
    """

    norm: int
    cost: float
    cut: float
    most: float = 0.0
    hidden: bool = False


@dataclass(frozen=True)
class NormChoice:
    """The norm that keeps bias and noise together smallest, judged by noisy histograms of persons' norms.

    Guarantee:
        A person is in one bucket of a histogram: it has l1 sensitivity 1 (2 when one is replaced by another), and
        discrete Laplace noise of that scale over epsilon makes it epsilon-differentially private (its end:
        `clamping.md`). For order 2 there are two, of the norms and of the sums that they bound. The choice is
        post-processing.
    """

    epsilon: float
    order: int
    twice: bool
    share: float

    @staticmethod
    def plan(budget: Budget, share: float, order: int, *, twice: bool) -> NormChoice:
        """Bought with a part of a share of the budget."""
        part = SHARE_FOR_BOUNDS
        return NormChoice(pure_epsilon(budget, share * part / order), order, twice, part)

    @property
    def event(self) -> Event:
        return DiscreteLaplace(laplace_multiplier(self.epsilon)) * self.order

    def choose(
        self,
        frame: Frame,
        keys: Keys,
        leader: Value,
        spreads: Mapping[int, Callable[[float], float]],
        rng: Rng,
        *,
        groups: int | None = None,
    ) -> Chosen:
        """A norm in units of `leader`, of the order that promises less error.

        Args:
            frame: the rows.
            keys: what the norms of order 2 are taken over.
            leader: the value whose norms are bounded.
            spreads: for each order that is possible, the deviation that noise would have in each group at a norm.
            rng: the randomness.
            groups: how many groups there are, if that is another number than the frame says.
        """
        marks = thresholds(leader.magnitude)
        first = None if self.order == 1 else self._histogram(frame, keys, leader, 2, marks, rng)
        sums = self._histogram(frame, keys, leader, 1, marks, rng)
        count = (frame.groups if groups is None else groups) if frame.only is not None or not frame.keys else _UNLISTED
        found, generator = {}, np.random.default_rng(int.from_bytes(rng.bytes(32), "little"))
        for order, spread in spreads.items():
            noisy = sums if order == 1 or first is None else first
            others = sums if order == 2 else None
            found[order] = self._best(leader, marks, noisy, others, spread, count, generator)
        order = min(found, key=lambda each: found[each].cost)
        best = found[order]
        place = int(np.searchsorted(marks, best.norm))
        tail = sums[place + 1 :]
        mark = marks[min(place, len(marks) - 1)]
        return Chosen(best.norm, mark, float(tail.sum()), len(tail), order, best.cut, best.most, best.hidden)

    def _best(
        self,
        leader: Value,
        marks: tuple[int, ...],
        noisy: NDArray[np.float64],
        others: NDArray[np.float64] | None,
        spread: Callable[[float], float],
        count: int,
        generator: np.random.Generator,
    ) -> Candidate:
        """The norm with the least squared error (what it cuts, and noise), by the histograms of norms and of sums."""
        laws, points = self._read(noisy, marks), place_points(marks).ravel()
        if laws is None:
            norm = round(leader.magnitude * math.pow(_UNTOLD, 1 / (1 if others is None else 2)))
            return Candidate(norm, spread(float(norm)), UNKNOWN)
        known = None if others is None else self._read(others, marks)
        totals = None if known is None else _average(known)
        contents = []
        for law in laws:
            sums = points if totals is None else _match_totals(law.people, totals, points, leader.magnitude)
            contents.append(law.people * sums)
        weights = np.array([law.weight for law in laws])
        last = int(np.flatnonzero(np.max(contents, axis=0, where=(weights > RARE)[:, None], initial=0.0))[-1])
        norms = _candidates(marks[0], marks[last // POINTS])
        lost = np.maximum(1 - np.array(norms)[:, None] / points, 0.0) @ np.array(contents).T
        costs = np.sqrt(lost**2 @ weights / count**2 + np.array([spread(float(norm)) for norm in norms]) ** 2)
        best = int(np.argmin(costs))
        left = np.maximum(np.sum(contents, axis=1) - lost[best], 1.0)
        cuts = lost[best] / left
        norm = norms[best]
        hidden = laws[0].weight < LIKELY and float(laws[0].people.sum()) < ENOUGH * float(self.scale)
        drawn = self._draw(noisy, marks, laws[0], generator, hidden=hidden)
        people = np.repeat(drawn.mean(axis=0) / POINTS, POINTS)
        sums = points if totals is None else _match_totals(people, totals, points, leader.magnitude)
        each = (sums * np.maximum(1 - norm / points, 0.0)).reshape(-1, POINTS).mean(axis=1)
        wider = widen_bar(drawn @ each / count, spread(float(norm)), LIKELY_GUESS if hidden else LIKELY)
        most = wider * count / float(weights @ left)
        most = min(most, MOST_GUESSED) if hidden else most
        return Candidate(norm, float(costs[best]), float(weights @ cuts), most, hidden)

    def _read(self, noisy: NDArray[np.float64], marks: tuple[int, ...]) -> list[Law] | None:
        """What a histogram says."""
        return weigh_laws(_join_last(noisy), marks, float(self.scale))

    def _draw(
        self,
        noisy: NDArray[np.float64],
        marks: tuple[int, ...],
        ending: Law,
        generator: np.random.Generator,
        *,
        hidden: bool,
    ) -> NDArray[np.float64]:
        """How many people may have each norm, a row for each draw: nobody more than is seen, as likely as that is."""
        counts, scale = _join_last(noisy), float(self.scale)
        drawn = draw_people(counts, marks, scale, find_last(counts, marks, scale) or 0, generator)
        order = generator.permutation(len(drawn))  # draws stand in the order of their laws
        cautious = max(0.0, 4 * ending.weight - 3) if hidden else ending.weight / 4  # in doubt, the cautious side
        share = ending.weight if ending.weight >= LIKELY else cautious
        drawn[order[: round(share * len(drawn))]] = ending.people.reshape(-1, POINTS).sum(axis=1)
        return drawn

    @property
    def scale(self) -> Fraction:
        """Of the noise on each bucket, in persons."""
        return enlarge_scale(Fraction(laplace_multiplier(self.epsilon)) * (2 if self.twice else 1))

    def _histogram(
        self, frame: Frame, keys: Keys, leader: Value, order: int, marks: tuple[int, ...], rng: Rng
    ) -> NDArray[np.float64]:
        """How many persons have a norm in each bucket, and above the last mark, with noise."""
        question = Norms(frame.relation, keys, only=frame.only, value=leader, order=order, thresholds=marks)
        exact = np.asarray(answer(question)["persons"]).astype(np.int64)
        return add_noise(exact, discrete_laplace(self.scale, len(exact), rng=rng)).astype(np.float64)


def _join_last(noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """The buckets, with what lies above the last mark in the last one."""
    return np.append(noisy[:-2], noisy[-2] + noisy[-1])


def _average(laws: list[Law]) -> NDArray[np.float64]:
    """The people that are expected."""
    return np.asarray(np.sum([law.weight * law.people for law in laws], axis=0))


def _candidates(first: int, last: int) -> list[int]:
    """Norms from the first to the last, sixteen for each doubling."""
    steps = math.ceil(16 * math.log2(last / first)) if last > first else 0
    return sorted({min(last, round(first * 2 ** (i / 16))) for i in range(steps + 1)})


def _match_totals(
    people: NDArray[np.float64], totals: NDArray[np.float64], middles: NDArray[np.float64], unit: int
) -> NDArray[np.float64]:
    """The sums of persons of each norm, if the order of norms is that of sums."""
    ranks = np.concatenate([[0.0], np.cumsum(people)])
    upto = np.cumsum(totals)
    if not upto[-1]:
        return middles
    middle = (ranks[:-1] + ranks[1:]) / 2 / max(ranks[-1], 1.0) * upto[-1]
    found = middles[np.minimum(np.searchsorted(upto, middle), len(middles) - 1)]
    largest = np.maximum(middles, middles**2 / unit)
    return np.asarray(np.clip(found, middles, largest), np.float64)


def people_above(choice: NormChoice, above: float, buckets: int, confidence: float = 0.95) -> tuple[float, float]:
    """An interval that holds the number of persons above the bound's mark, with this confidence: `tail_counts.md`."""
    sizes = np.linspace(0.005, 0.995, 199)
    widths = (math.log(2 * _MARKS / (1 - confidence)) - buckets * np.log1p(-(sizes**2))) / sizes
    width = float(widths.min()) * float(choice.scale)
    return max(0.0, above - width), max(0.0, above + width)
