"""A bound on what one person counts for, bought from the budget: where bias and noise together are smallest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer
from mosha.connect.language.value import Value
from mosha.connect.plan.aggregation import Norms
from mosha.core.budget import Budget
from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.language import Phrase, make_note, phrase
from mosha.core.randomness import Rng
from mosha.exact.grid import add_noise, enlarge_scale
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import discrete_laplace
from mosha.tables.mechanisms.heavy_tail import extend_tail
from mosha.tables.mechanisms.shares import pure_epsilon
from mosha.tables.parts.bounds import FEW_GROUPS
from mosha.tables.parts.part import Frame, Keys

__all__ = [
    "LITTLE",
    "Chosen",
    "NormChoice",
    "bounded_note",
    "name_bound",
    "people_above",
    "share_for_bounds",
    "thresholds",
]

SHARES = (0.2, 0.25)
"""Of the budget, for many groups and for few, where the best bound hangs on few people, who must be found."""

LITTLE = 2.0
_CAUTION = 4.0
_BARS = 2.0
"""Deviations of noise that weigh as much as what is cut."""

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


def share_for_bounds(groups: int) -> float:
    """What buying a bound takes of a part's budget."""
    return SHARES[groups <= FEW_GROUPS]


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
    `cut` is an estimate of what the bound takes away, as a share of what it leaves, and `most` what it may well take
    (`heavy_tail`).
    """

    norm: int
    mark: int
    above: float
    buckets: int
    order: int = 1
    cut: float = 0.0
    most: float = 0.0

    @property
    def plain(self) -> list[float]:
        """As a release holds it."""
        return [float(self.mark), self.above, float(self.buckets), self.cut, self.most]


@dataclass(frozen=True)
class Candidate:
    """A norm, the error that it promises (what it cuts, and a bar of noise), and what it cuts over what it leaves.

    `cut` is what is expected, `most` what may well be.
    """

    norm: int
    cost: float
    cut: float
    most: float = 0.0


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
    def plan(budget: Budget, share: float, order: int, groups: int, *, twice: bool) -> NormChoice:
        """Bought with a part of a share of the budget."""
        part = share_for_bounds(groups)
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
        found = {}
        for order, spread in spreads.items():
            noisy = sums if order == 1 or first is None else first
            found[order] = self._best(leader, marks, noisy, sums if order == 2 else None, spread, count)
        order = min(found, key=lambda each: found[each].cost)
        best = found[order]
        place = int(np.searchsorted(marks, best.norm))
        tail = sums[place + 1 :]
        return Chosen(
            best.norm, marks[min(place, len(marks) - 1)], float(tail.sum()), len(tail), order, best.cut, best.most
        )

    def _best(
        self,
        leader: Value,
        marks: tuple[int, ...],
        noisy: NDArray[np.float64],
        others: NDArray[np.float64] | None,
        spread: Callable[[float], float],
        count: int,
    ) -> Candidate:
        """The norm with the least error (what it cuts, and noise), by the histograms of norms and of sums."""
        middles = np.array(_middles(marks))
        people = self._fill_buckets(noisy, marks)
        totals = None if others is None else self._fill_buckets(others, marks)
        if people is None:
            norm = round(leader.magnitude * math.pow(_UNTOLD, 1 / (1 if others is None else 2)))
            return Candidate(norm, _BARS * spread(float(norm)), UNKNOWN)
        scale = float(self.scale)
        tail = extend_tail(people, noisy[:-1], marks, scale)
        people, sums = tail.expected, middles
        if others is not None and totals is not None:
            totals = extend_tail(totals, others[:-1], marks, scale).expected
            sums = _match_totals(people, totals, middles, leader.magnitude)
        last = marks[int(np.flatnonzero(people)[-1])] if people.any() else marks[0]
        found = []
        for norm in _candidates(marks[0], last):
            lost = float(np.sum(people * sums * (1 - np.minimum(1.0, norm / middles))))
            left = max(float(np.sum(people * sums)) - lost, 1.0)
            found.append(Candidate(norm, lost / count + _BARS * spread(float(norm)), lost / left))
        best = min(found, key=lambda candidate: candidate.cost)
        extra = np.maximum(tail.largest - people, 0.0)
        beyond = extra * sums * (1 - np.minimum(1.0, best.norm / middles))
        left = max(float(np.sum(people * sums * np.minimum(1.0, best.norm / middles))), 1.0)
        return replace(best, most=best.cut + float(beyond.sum()) / left)

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

    def _fill_buckets(self, noisy: NDArray[np.float64], marks: tuple[int, ...]) -> NDArray[np.float64] | None:
        """About how many persons have a norm in each bucket, none above the last that is filled; None if none is.

        A bucket counts as filled where it holds more than 4 + log(its mark) scales of noise, so that noise alone adds
        less than one row to the norm on the average; neighbours above it follow with a little more than noise.
        """
        scale, last_two = float(self.scale), noisy[-2] + noisy[-1]
        noisy = np.append(noisy[:-2], last_two)
        full = np.flatnonzero(noisy / scale > _CAUTION + np.log(np.array(marks) / marks[0]))
        if not full.size:
            return None
        last = int(full[-1])
        while last < len(noisy) - 1 and noisy[last + 1] > LITTLE * scale:
            last += 1
        noisy[last + 1 :] = 0.0
        return np.maximum(noisy, 0.0)


def _middles(marks: tuple[int, ...]) -> list[float]:
    """The middle of each bucket, in whole numbers (the bucket of 2 rows holds 2 alone)."""
    return [float(marks[0])] + [(low + 1 + high) / 2 for low, high in itertools.pairwise(marks)]


def _candidates(first: int, last: int) -> list[int]:
    """Norms from the first to the last, eight for each doubling."""
    steps = math.ceil(8 * math.log2(last / first)) if last > first else 0
    return sorted({min(last, round(first * 2 ** (i / 8))) for i in range(steps + 1)})


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


def _add_share(said: Phrase, cut: float, most: float) -> Phrase:
    """The same words, and what share the bound cuts."""
    if cut <= 0 and most <= 0:
        return said
    about = f"{cut / (1 + cut):.1%}"
    if most <= 1.5 * cut:
        return make_note("tables.note_cut", said=said, about=about)
    return make_note("tables.note_cut_slowly", said=said, about=about, most=f"{most / (1 + most):.1%}")


def name_bound(kind: Literal["rows", "groups", "values"], count: str) -> Phrase:
    """So many rows, groups or values, as a bound that a note names."""
    return phrase(f"tables.most_one_{kind}") if count == "1" else phrase(f"tables.most_{kind}", count=count)


def bounded_note(
    most: Phrase,
    choice: NormChoice | None,
    tail: tuple[Phrase, float, int, float, float] | None = None,
    *,
    how: Literal["scaled", "picked", "cut"] = "scaled",
) -> Phrase:
    """What an answer says about the bound: `most` is the bound with its unit, `tail` what was bought with it.

    Args:
        most: the bound, in words.
        choice: how it was bought; None where it was declared.
        tail: a mark in words, the noisy number of persons above it with the number of buckets it is made of, and
            what is cut as a share of what is left: by an estimate, and at most, as far as can be said.
        how: what happens to more: it is scaled down, some whole rows are picked at random, or the rest is cut.
    """
    way = phrase(f"tables.how_{how}")
    if choice is None:
        return make_note("tables.note_bound_declared", most=most, how=way)
    said = make_note("tables.note_bound_bought", most=most, share=f"{choice.share:.0%}", how=way)
    if tail is None:
        return said
    mark, above, buckets, cut, most_cut = tail
    low, high = people_above(choice, above, buckets)
    if cut == UNKNOWN:
        return make_note("tables.note_too_few", said=said)
    said = _add_share(said, cut, most_cut)
    if high < 1:
        return said
    between = {"low": f"{math.floor(low):,}", "high": f"{math.ceil(high):,}"}
    return make_note("tables.note_above", said=said, mark=mark, **between)
