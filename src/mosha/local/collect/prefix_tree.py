"""Popular texts, found from their beginnings: a search through the levels of a prefix tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.local.protocols.prefixes import Prefixes

__all__ = ["Discovery", "LevelTables", "search_prefixes"]

Supports = NDArray[np.float64]  # rows x candidates

_AHEAD = 3.0  # standard deviations by which a row may say more than the one that says least
_SILENT = 1e9  # and by so many where it has not one report: then it is never the one that says least
_RIVALS = 8  # so many for each that is followed are compared bucket by bucket


class LevelTables(ABC):
    """How strongly each bucket of each level and row is supported, and what noise alone would show there.

    Fields:
        supports: levels x rows x buckets.
        mean, variance: levels x rows, of the support of a bucket that nobody's value is hashed into.
    """

    supports: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @abstractmethod
    def chance(self, supports: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance that noise alone supports a value so much, summed from its first level on, in all rows."""

    @abstractmethod
    def estimate(
        self, supports: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How many people have each value, and the standard deviation of that."""

    def describe_noise(self, first: NDArray[np.int64], last: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and the standard deviation of what noise alone says of each value, in each row."""
        mean, variance = (self.sum_levels(part, first, last) for part in (self.mean, self.variance))
        return mean, np.sqrt(variance)

    @staticmethod
    def sum_levels(each: NDArray[np.float64], first: NDArray[np.int64], last: int) -> NDArray[np.float64]:
        """The sums of levels `first` to `last`, rows x candidates."""
        sums = np.concatenate([np.zeros((1, each.shape[1])), np.cumsum(each, axis=0)])
        return np.asarray((sums[last + 1] - sums[first]).T)


@dataclass(frozen=True, eq=False)
class Discovery:
    """What a search found.

    Fields:
        words: candidates x levels.
        supports: rows x candidates, summed over the levels from `first` on.
        first: the level at which each candidate was whole.
        chance: a bound on the probability that noise alone shows any value of its kind so clearly.
        tried: how many whole values were compared with noise.
    """

    words: NDArray[np.int64]
    supports: NDArray[np.float64]
    first: NDArray[np.int64]
    chance: NDArray[np.float64]
    tried: int


@dataclass
class _Candidates:
    words: NDArray[np.int64]  # candidates x levels so far; of new candidates the last one alone
    states: NDArray[np.uint64]  # rows x candidates
    carry: NDArray[np.int64]  # the bits of a symbol that is not whole yet
    whole: NDArray[np.bool_]  # whether the end of the text was seen
    first: NDArray[np.int64]  # the level at which it was
    supports: NDArray[np.float64]  # rows x candidates, since then
    agreed: NDArray[np.float64]  # the same, without what other values explain

    def take(self, places: NDArray[np.int64]) -> _Candidates:
        return _Candidates(
            self.words[places],
            self.states[:, places],
            self.carry[places],
            self.whole[places],
            self.first[places],
            self.supports[:, places],
            self.agreed[:, places],
        )


def search_prefixes(prefixes: Prefixes, tables: LevelTables, *, kept: int) -> Discovery:
    """Follow the `kept` prefixes that stand out most, level by level.

    A text is whole at the level that reads its end; all later levels repeat it, so their supports are added. Rows are
    independent, and what they say together says most. But a bucket may hold somebody else's popular value: so no row
    counts for much more than the one that says least, and of all values in one bucket the one that stands out most
    has it, while the others count there as in their other rows. So a collision in one row is not enough.

    Guarantee:
        Candidates of a level depend on the levels before it, which count other people's reports. So of the m_l values
        that become whole at level l, each noise alone, one has supports of chance c or less with probability at most
        m_l c. What is agreed is never more than what was counted, so its chance is never less. `chance` is
        levels x m_l x c: it is at most p for any of them with probability p or less.
    """
    found, length = _begin(prefixes), 0
    tried = np.zeros(prefixes.levels)
    for level, width in enumerate(prefixes.widths):
        before = found.words
        found, parents = _extend(prefixes, found, length % prefixes.bits, width)
        length += width
        last = level + 1 == prefixes.levels
        fresh = found.first < 0
        tried[level] = np.count_nonzero(fresh if last else fresh & found.whole)
        buckets = prefixes.place(found.states)
        here = np.stack([tables.supports[level, row][places] for row, places in enumerate(buckets)])
        found.supports = np.where(fresh, here, found.supports + here)
        first = np.where(fresh, level, found.first)
        mean, spread = tables.describe_noise(first, level)
        found.agreed = _agree(np.where(fresh, here, found.agreed + here), mean, spread)
        rivals = _largest(_pool(found.agreed, mean, spread), _RIVALS * kept)
        found, mean, spread = found.take(rivals), mean[:, rivals], spread[:, rivals]
        found.agreed = _settle(found.agreed, buckets[:, rivals], mean, spread)
        found.first = np.where(found.whole | last, first[rivals], -1)
        chosen = _largest(_pool(found.agreed, mean, spread), kept)
        found = found.take(chosen)
        found.words = np.concatenate([before[parents[rivals[chosen]]], found.words], axis=1)
    chance = tables.chance(found.agreed, found.first)
    bound = np.minimum(1.0, prefixes.levels * tried[found.first] * chance)
    return Discovery(found.words, found.supports, found.first, bound, int(tried.sum()))


def _pool(supports: Supports, mean: Supports, spread: Supports) -> NDArray[np.float64]:
    """By how many standard deviations of noise alone the supports of all rows together stand out."""
    return np.asarray((supports - mean).sum(axis=0) / np.sqrt(np.maximum((spread**2).sum(axis=0), 1e-18)))


def _stand_out(supports: Supports, mean: Supports, spread: Supports) -> Supports:
    """By how many standard deviations of noise alone each row stands out."""
    found: Supports = np.full(supports.shape, _SILENT)
    np.divide(supports - mean, spread, out=found, where=spread > 0)
    return found


def _agree(supports: Supports, mean: Supports, spread: Supports) -> Supports:
    """The supports, no row far ahead of the one that says least."""
    least = _stand_out(supports, mean, spread).min(axis=0)
    return np.asarray(np.minimum(supports, mean + (least + _AHEAD) * spread))


def _settle(supports: Supports, buckets: NDArray[np.int64], mean: Supports, spread: Supports) -> Supports:
    """The supports of candidates, the strongest first, where a bucket belongs to the first one that is in it.

    Others count there at most as in the rows where the bucket is theirs; where none is, as in the one that says least.
    """
    own = np.zeros(supports.shape, np.bool_)
    for row, places in enumerate(buckets):
        own[row, np.unique(places, return_index=True)[1]] = True
    own &= spread > 0
    found = _stand_out(supports, mean, spread)
    most = np.where(own.any(axis=0), np.where(own, found, -np.inf).max(axis=0), found.min(axis=0))
    return np.asarray(np.minimum(supports, mean + most * spread))


def _begin(prefixes: Prefixes) -> _Candidates:
    """The empty prefix."""
    seeds = np.array(prefixes.seeds, np.uint64)[:, None]
    none = np.zeros(1, np.int64)
    zeros = np.zeros(seeds.shape)
    return _Candidates(none[:, None][:, :0], seeds, none, none > 0, none - 1, zeros, zeros)


def _extend(prefixes: Prefixes, found: _Candidates, carried: int, width: int) -> tuple[_Candidates, NDArray[np.int64]]:
    """Every prefix that is one word longer and the beginning of some text, and the places of what they extend."""
    done, going = np.flatnonzero(found.whole), np.flatnonzero(~found.whole)
    numbers = found.carry[going, None] << width | np.arange(1 << width)
    possible, ends = _classify(prefixes, numbers, carried + width)
    parents, words = np.nonzero(possible)
    places = np.concatenate([done, going[parents]])
    words = np.concatenate([np.zeros(len(done), np.int64), words])
    rest = (carried + width) % prefixes.bits
    carry = np.concatenate([np.zeros(len(done), np.int64), numbers[possible] & (1 << rest) - 1])
    found.words = found.words[:, :0]
    grown = found.take(places)
    grown.words = words[:, None]
    grown.states = prefixes.extend(grown.states, words)
    grown.carry, grown.whole = carry, np.concatenate([np.ones(len(done), np.bool_), ends[possible]])
    return grown, places


def _classify(
    prefixes: Prefixes, numbers: NDArray[np.int64], length: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of these bits can continue a text (no symbol out of range, nothing after the end), and which end it."""
    possible = np.ones(numbers.shape, np.bool_)
    ends = np.zeros(numbers.shape, np.bool_)
    for left in range(length - prefixes.bits, -1, -prefixes.bits):
        symbol = numbers >> left & (1 << prefixes.bits) - 1
        possible &= (symbol <= prefixes.largest_symbol) & ~(ends & (symbol > 0))
        ends |= symbol == 0
    tail = numbers & (1 << length % prefixes.bits) - 1
    return possible & ~(ends & (tail > 0)), ends


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places of the largest values, in order."""
    places = np.argpartition(-values, count)[:count] if len(values) > count else np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")]
