"""Groups that nobody listed, judged by the very counts that are released: one noise shows and counts them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mosha.connect.engines.source import answer_in_batches
from mosha.connect.plan.source import Totals
from mosha.core.event import Event
from mosha.core.events import Failure
from mosha.core.language import Phrase, make_note, phrase
from mosha.core.measurement import Rng
from mosha.tables.mechanisms.joint_noise import EXACT, BoxNoise, JointNoise
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bounds import Limits
from mosha.tables.parts.part import Columns, Frame, Noisy, Rows
from mosha.tables.parts.shown_groups import MOST_KEYS, ShownGroups
from mosha.tables.parts.sums import Sums

__all__ = ["CountedKeys", "find_threshold", "list_largest_counts"]

_ONE_BY_ONE = 64
_COUNTERS = ("rows", "persons")

Block = tuple[int, float]
"""So many groups, in each of which a unit counts for at most so much."""


@dataclass(frozen=True, eq=False)
class CountedKeys:
    """Noisy sums of all groups that the data have, of which those are shown whose noisy count exceeds a threshold.

    Guarantee:
        `Failure(event of the noise, delta)`: groups that others are in carry the noise of the part on either of two
        neighbors, and a group of one unit alone exceeds the threshold with probability delta at most, all such
        groups together. What was bought before is paid for as it is. Proof: `counted_keys.md`.
    """

    sums: Sums
    delta: float

    @staticmethod
    def plan(sums: Sums, delta: float) -> CountedKeys | None:
        """None where no count is asked, or where a unit can be in too many groups."""
        if not any(name in sums.values for name in _COUNTERS) or not _is_in_few_groups(sums):
            return None
        return CountedKeys(replace(sums, counted=True), delta)

    @property
    def names(self) -> tuple[str, ...]:
        return self.sums.names

    @property
    def event(self) -> Event:
        return self.sums.bought + Failure(self.sums.noise_event, self.delta)

    @property
    def _counter(self) -> str:
        return next(name for name in _COUNTERS if name in self.sums.values)

    def select(self, frame: Frame, key: bytes, rng: Rng) -> tuple[Rows, Noisy]:
        """The groups that are shown, in the order of their names, and their noisy numbers."""
        asked, bought = self.sums.buy(frame, rng)
        question, bits = asked.question(frame, bought.norm, key)
        reach = asked.reach(frame, bought.norm)
        place = list(asked.values).index(self._counter)
        blocks = tuple(list_largest_counts(asked.limits_at(bought.norm), reach[place]))
        threshold = find_threshold(asked.noise, reach[place], blocks, self.delta)
        shown = ShownGroups(frame, len(asked.values))

        def show(totals: Totals) -> None:
            exact = np.stack([np.asarray(totals[name]).astype(object) for name in asked.values], axis=-1)
            noisy = asked.noise.add(exact, reach, rng)
            present = exact[:, place].astype(np.float64) > 0
            shown.add(totals, np.flatnonzero(present & (noisy[:, place] > threshold)), noisy)

        answer_in_batches(question, show)
        groups, noisy = shown.list()
        channels = {"channels": np.ldexp(noisy, -bits).T.tolist(), "reach": [math.ldexp(r, -bits) for r in reach]}
        return groups, channels | bought.plain | {"threshold": math.ldexp(threshold, -bits)}

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        return self.select(frame, key, rng)[1]

    def answers(self, noisy: Noisy) -> Columns:
        return self.sums.answers(noisy)

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        return self.sums.errors(noisy, confidence)

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        return self.sums.assume(frame, guess)

    def notes(self, noisy: Noisy) -> list[str]:
        return [*self.sums.notes(noisy), self.note(noisy)]

    def note(self, noisy: Noisy) -> str:
        """From how large a count on groups are shown; a forecast does not know it."""
        least: Phrase = phrase("tables.note_small")
        if "threshold" in noisy:
            least = phrase(f"tables.note_below_{self._counter}", threshold=f"{noisy['threshold']:,.0f}")
        return make_note("tables.note_counted_keys", least=least, delta=f"{self.delta:.3g}")

    def sql(self, frame: Frame) -> str:
        return self.sums.sql(frame)


def _is_in_few_groups(sums: Sums) -> bool:
    """Whether a unit moves no more groups than the noise is priced for."""
    limits = sums.limits
    if not limits.by_person:
        return (limits.rows or 1) <= MOST_KEYS
    if limits.truncation is not None:
        return _count_groups(limits) <= MOST_KEYS
    noises = [sums.noise, *([] if sums.other is None else [sums.other])]
    pure = all(isinstance(noise, BoxNoise) for noise in noises)
    if not pure and (len(sums.values) > 1 or (limits.norm or 1) > EXACT):
        return False
    return (limits.norm or 1) <= MOST_KEYS


def _count_groups(limits: Limits) -> int:
    assert limits.truncation is not None
    rows, groups, _ = limits.truncation
    return groups if rows is None else min(groups, rows)


def list_largest_counts(limits: Limits, reach: int) -> list[Block]:
    """How much one unit can count for at most in its first, second, ... group, the largest first.

    The j-th largest of numbers that sum to at most R is R / j at most; of numbers whose squares sum to at most R**2,
    R / sqrt(j).
    """
    own = reach // 2 if limits.twice else reach
    if limits.by_person and limits.truncation is None:
        return [(number, own / math.sqrt(first)) for first, number in _blocks(own**2)]
    if not limits.by_person:
        return [(number, float(own // first)) for first, number in _blocks(own)]
    assert limits.truncation is not None
    rows, _, per_group = limits.truncation
    blocks = _blocks(_count_groups(limits))
    return [(number, float(per_group if rows is None else min(per_group, rows // first))) for first, number in blocks]


def _blocks(last: int) -> list[tuple[int, int]]:
    """1, ..., last as blocks: where each begins and how many numbers it has; one by one first, then ever longer."""
    starts = list(range(1, min(last, _ONE_BY_ONE) + 1))
    while (after := max(starts[-1] + 1, math.floor(starts[-1] * 1.19))) <= last:
        starts.append(after)
    ends = [*starts[1:], last + 1]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


@lru_cache(maxsize=256)
def find_threshold(noise: JointNoise, reach: int, blocks: tuple[Block, ...], failing: float) -> float:
    """The least T (nearly) such that noise lifts any of these counts above T with probability `failing` at most."""

    def fails(level: float) -> bool:
        return math.fsum(number * noise.exceed(reach, level - size) for number, size in blocks) > failing

    low = high = max(size for _, size in blocks) + 1.0
    while fails(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high * (1 + 2.0**-40)
