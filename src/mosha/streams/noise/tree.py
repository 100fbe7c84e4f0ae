"""Trees of partial sums with Laplace noise: the k-ary tree with negative digits, and the binary one for comparison.

A step count t is written with `levels` digits between -(k-1)/2 and (k-1)/2 in base k (k odd); a running sum of t steps
is a signed sum of |digit| nodes on each level. A node's noise is drawn when it is first used and dropped after its
last use: at most (k-1)/2 numbers a level are remembered (Andersson, Pagh, Steiner and Torkamani 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer
from mosha.streams.noise.tape import Tape

__all__ = ["SignedTree", "TreeState", "best_tree"]


@dataclass(slots=True)
class TreeState:
    """Digits of the number of steps, the noise of the nodes in use on each level, how much noise was drawn, its sum."""

    time: int
    digits: list[int]
    nodes: list[list[Any]]
    drawn: int
    noise: Any


@dataclass(frozen=True)
class SignedTree:
    """The k-ary tree with negative digits over `horizon` steps.

    Guarantee:
        Let C list the sums of all nodes; a step is in one node of each level, so one contribution moves C x by at most
        `levels` times itself in the l1 norm. The answers are A x + B z with B C = A and integers B: the map z ->
        z - C (x' - x) turns the answers for x into the same answers for x', is one to one even where x' - x was chosen
        with knowledge of the answers, and changes the probability of z by at most exp(|C (x' - x)|_1 / scale). Nodes
        that reach into the future are no obstacle: only their noise is used before they are full.

    >>> SignedTree(13, 3).reach
    1098
    """

    base: int
    levels: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", positive_integer("base", self.base))
        object.__setattr__(self, "levels", positive_integer("levels", self.levels))
        if self.base < 3 or self.base % 2 == 0:
            raise InvalidParameter("streams.tree_base", parameter="base")

    @property
    def reach(self) -> int:
        """How many steps it can count."""
        return int((self.base**self.levels - 1) // 2)

    @property
    def memory(self) -> int:
        """How many numbers a running stream remembers at most."""
        return (self.base - 1) // 2 * self.levels + self.levels + 3

    def start(self, width: int) -> TreeState:
        nothing: Any = 0 if width == 1 else np.zeros(width, object)
        return TreeState(0, [0] * self.levels, [[] for _ in range(self.levels)], 0, nothing)

    def step(self, state: TreeState, data: object, tape: Tape) -> tuple[Any, TreeState]:
        """The change of the noisy running sum, in steps of the data."""
        digits, nodes, drawn, noise = state.digits, state.nodes, state.drawn, state.noise
        half = (self.base - 1) // 2
        digits, nodes = list(digits), [list(level) for level in nodes]
        for level in range(self.levels):
            if digits[level] < half:
                if digits[level] < 0:
                    noise = noise + nodes[level].pop()  # a node that was subtracted is no longer
                else:
                    nodes[level].append(tape.row(drawn))
                    noise, drawn = noise + nodes[level][-1], drawn + 1
                digits[level] += 1
                break
            noise = noise - sum(nodes[level])  # the digit turns from half to -half, one more on the next level
            nodes[level] = [tape.row(drawn + i) for i in range(half)]
            noise, drawn = noise - sum(nodes[level]), drawn + half
            digits[level] = -half
        return data + noise - state.noise, TreeState(state.time + 1, digits, nodes, drawn, noise)

    def weight(self, steps: int) -> int:
        """How many nodes a running sum of `steps` steps uses: its variance in units of one node's."""
        total, left = 0, steps
        for _ in range(self.levels):
            digit = (left + (self.base - 1) // 2) % self.base - (self.base - 1) // 2
            total, left = total + abs(digit), (left - digit) // self.base
        return total

    def weigh_between(self, earlier: NDArray[np.int64], later: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many nodes the difference of two running sums holds, each once: those that one uses and the other not.

        A digit climbs from 0 to half, with a node more at each step, then from -half to 0, with one less: on one climb
        both sums use the nodes of the lesser digit, on different ones they share none.

        >>> SignedTree(5, 2).weigh_between(np.array([0, 1, 1]), np.array([2, 2, 3])).tolist()
        [2, 1, 4]
        """
        half, total = (self.base - 1) // 2, np.zeros(np.broadcast(earlier, later).shape, np.int64)
        for level in range(self.levels):
            unit = self.base**level
            turns = [(steps + (unit - 1) // 2) // unit + half for steps in (earlier, later)]
            first, second = (turn % self.base - half for turn in turns)
            same = (turns[0] // self.base == turns[1] // self.base) & (first * second > 0)
            total += np.where(same, np.abs(first - second), np.abs(first) + np.abs(second))
        return total

    def mean_weight(self, horizon: int) -> float:
        """The mean of `weight` over 1 ... horizon, level by level: digits run through periods of base^(level+1)."""
        total = 0
        for level in range(self.levels):
            total += _digit_sum(horizon, self.base, level)
        return total / horizon

    def largest_weight(self, horizon: int) -> int:
        """The largest `weight` over 1 ... horizon: every digit but the first can be -(k-1)/2 below any horizon."""
        half, total, left = (self.base - 1) // 2, 0, horizon
        while left > half:
            left, total = (left + half) // self.base, total + half
        return total + left


def _digit_sum(horizon: int, base: int, level: int) -> int:
    """The sum over 1 <= t <= horizon of the size of digit `level` of t, in balanced base `base`."""
    half, unit = (base - 1) // 2, base**level
    period, shift = (
        unit * base,
        (unit - 1) // 2,
    )  # t + shift, in runs of `unit`, has digit 0, 1, ..., half, -half, ..., -1
    whole, rest = divmod(horizon + shift + 1, period)
    run, partial = divmod(rest, unit)
    sizes = [abs(d) for d in [*range(half + 1), *range(-half, 0)]]
    per_period = unit * sum(sizes)
    # t + shift is counted from 0 on: what precedes t = 1 has digit 0
    return int(whole * per_period + unit * sum(sizes[:run]) + (partial * sizes[run] if partial else 0))


@lru_cache(maxsize=64)
def best_tree(horizon: int, memory: int = 100) -> SignedTree:
    """The base and height with the least mean-square error over `horizon` steps, at a price of 1 per contribution.

    >>> best_tree(1024)
    SignedTree(base=13, levels=3)
    """
    steps = positive_integer("horizon", horizon)
    found = []
    for levels in range(1, 41):
        base = max(3, math.ceil((2 * steps + 1) ** (1 / levels)))
        while (base - 1) ** levels >= 2 * steps + 1 and base > 3:
            base -= 1
        while base**levels < 2 * steps + 1 or base % 2 == 0:
            base += 1
        tree = SignedTree(base, levels)
        if tree.memory <= max(memory, 20):
            found.append((levels**2 * tree.mean_weight(steps), tree))
    return min(found, key=lambda pair: pair[0])[1]
