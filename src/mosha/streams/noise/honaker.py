"""The binary tree of partial sums, with Honaker's combination of each node with those below it: for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosha.core.number import positive_integer
from mosha.streams.noise.tape import Tape

__all__ = ["BinaryState", "BinaryTree"]


@dataclass(slots=True)
class BinaryState:
    """Steps taken, noise drawn, the sum and the estimate of the last full node of each level, what was published."""

    time: int
    drawn: int
    sums: list[Any]
    estimates: list[Any]
    published: Any


@dataclass(frozen=True)
class BinaryTree:
    """Running sums by binary partial sums; with `combined` each is averaged with the sum of its halves.

    Guarantee:
        The release is y = C x + z, C the sums of all dyadic nodes that are full within the horizon, z integer noise;
        all else is a function of the y so far. A step lies in one node of each of `levels` levels: a contribution
        moves C x by `levels` times itself in the l1 norm, by sqrt(levels) in the l2 norm, several by at most the sum.
        A node is released once, when it is full: the shift of y between two streams, chosen adaptively or not, is a
        function of earlier y with these bounds on every path (`noise/unbounded.md` for Gaussian noise; for Laplace
        noise the factors exp(|shift| / scale) multiply).

    >>> BinaryTree(11).memory
    25
    """

    levels: int
    combined: bool = True
    finer: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", positive_integer("levels", self.levels))

    @property
    def memory(self) -> int:
        return 2 * self.levels + 3

    def start(self, width: int) -> BinaryState:
        nothing: Any = 0 if width == 1 else np.zeros(width, object)
        zero: Any = 0.0 if width == 1 else np.zeros(width)
        return BinaryState(0, 0, [nothing] * self.levels, [zero] * self.levels, zero)

    def step(self, state: BinaryState, data: Any, tape: Tape) -> tuple[Any, BinaryState]:
        """The change of the noisy running sum, in steps of the data."""
        sums, estimates, drawn = list(state.sums), list(state.estimates), state.drawn
        total, level, variance = data, 0, 1.0
        estimate = _real(total * self.finer + tape.row(drawn))
        while state.time >> level & 1:  # a full node waits on this level: the two make one of the next
            total, halves = sums[level] + total, estimates[level] + estimate
            level, drawn = level + 1, drawn + 1
            estimate = _real(total * self.finer + tape.row(drawn))
            if self.combined:
                estimate = (2 * variance * estimate + halves) / (2 * variance + 1)
                variance = 2 * variance / (2 * variance + 1)
        sums[level], estimates[level] = total, estimate
        now = state.time + 1
        published = sum((estimates[i] for i in range(self.levels) if now >> i & 1), 0 * state.published)
        change = (published - state.published) / self.finer
        return change, BinaryState(now, drawn + 1, sums, estimates, published)

    def variances(self) -> list[float]:
        """Of a node's estimate on each level, in units of one draw's."""
        found = [1.0]
        while len(found) < self.levels:
            found.append(2 * found[-1] / (2 * found[-1] + 1) if self.combined else 1.0)
        return found

    def variance(self, steps: int) -> float:
        """Of the running sum of so many steps."""
        return sum(v for i, v in enumerate(self.variances()) if steps >> i & 1)

    def mean_variance(self, horizon: int) -> float:
        """The mean over 1 ... horizon."""
        return sum(v * _ones(horizon, i) for i, v in enumerate(self.variances())) / horizon

    def largest_variance(self, horizon: int) -> float:
        """The largest over 1 ... horizon: the horizon itself, or one of its ones left out and all ones after it."""
        ends = [horizon] + [(horizon >> i) - 1 << i | (1 << i) - 1 for i in range(self.levels) if horizon >> i & 1]
        return max(self.variance(end) for end in ends if end >= 0)


def _real(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)


def _ones(horizon: int, level: int) -> int:
    """How many of 1 ... horizon have this bit."""
    whole, rest = divmod(horizon + 1, 2 << level)
    return (whole << level) + max(0, rest - (1 << level))
