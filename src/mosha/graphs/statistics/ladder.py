"""The ladder: pure differential privacy for subgraph counts, with noise as wide as the graph at hand asks for."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Unit
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.spread import (
    SPREAD_SHARE,
    Numbers,
    draw_spread,
    find_doubt,
    picture,
    read_width,
    spread_event,
)
from mosha.graphs.statistics.subgraphs import SubgraphCount
from mosha.noise import bernoulli_exp, geometric, uniform
from mosha.noise.exponential import falls_below
from mosha.noise.generators.secure_random import word

__all__ = ["Rungs", "ladder"]

FLOORS = 16
"""The floor of the widths is so many orders / epsilon: a sixteenth of epsilon pays for what the widths tell."""

_END = 1 << 62  # `geometric` never draws this or more


class Rungs:
    """The ladder of one price: how steep it is, and how many integers each rung holds.

    Guarantee:
        See `ladder.md`: with widths raised to `floor`, rung sizes of neighbors differ by a factor of at most
        `growth`, and the decay c satisfies c + ln(growth) <= epsilon.

    >>> from mosha.graphs.statistics.subgraphs import TriangleCount
    >>> rungs = Rungs(TriangleCount(1000), 1.0)
    >>> rungs.floor, rungs.sizes((300,), 3).tolist(), round(float(rungs.decay), 4)
    (16, [601.0, 602.0, 604.0], 0.9394)
    """

    def __init__(self, statistic: SubgraphCount, epsilon: float) -> None:
        order = statistic.order
        self.statistic = statistic
        self.floor = math.ceil(Fraction(FLOORS * order) / Fraction(epsilon)) + order - 1
        constant = self.floor >= statistic.cap
        more = Fraction(0) if constant else Fraction(order, self.floor + 1 - order)  # growth - 1
        self.decay = Fraction(epsilon) - _logarithm_up(more)
        if self.decay <= 0:
            raise InvalidParameter("graphs.ladder_epsilon_too_small", parameter="epsilon")

    def raise_to_floor(self, widths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(max(w, self.floor) for w in widths)

    def size(self, widths: tuple[int, ...], rung: int) -> int:
        """How many integers lie on a rung; the middle belongs to the first one."""
        return 2 * self.statistic.reach(self.raise_to_floor(widths), rung) + (rung == 0)

    def sizes(self, widths: tuple[int, ...], length: int) -> Any:
        """The sizes of the first rungs, as floats."""
        found = 2 * self.statistic.reaches(self.raise_to_floor(widths), length)
        found[:1] += 1
        return found

    def draw(self, widths: tuple[int, ...], rng: Rng) -> int:
        """One integer: its rung s with probability proportional to size(s) e^(-c s), uniform within the rung.

        Guarantee:
            Exact. s is proposed with weight e^(-c s / 2) and kept with probability (size(s) / size(0)) e^(-c s / 2),
            which is at most 1: sizes grow by a factor of at most `growth` < e^(epsilon / 16) a rung, and c / 2 is more.
        """
        first = self.size(widths, 0)
        while True:
            rung = _geometric(2 / self.decay, rng)
            chance = Fraction(self.size(widths, rung), first)
            if falls_below(rng, amplitude=chance, exponent=self.decay * rung / 2, known=word(rng), bits=64):
                return self._draw_on_rung(widths, rung, rng)

    def _draw_on_rung(self, widths: tuple[int, ...], rung: int, rng: Rng) -> int:
        place = uniform(self.size(widths, rung), rng=rng)
        if rung == 0:
            return place - self.statistic.reach(self.raise_to_floor(widths), 0)
        raised = self.raise_to_floor(widths)
        below = sum(self.statistic.reach(raised, s) for s in range(rung))
        return below + 1 + place // 2 if place % 2 else -(below + 1 + place // 2)

    @cached_property
    def laws(self) -> dict[int, tuple[Numbers, Numbers]]:
        """Found laws of the noise, by the width of all parts."""
        return {}

    def find_law(self, width: int) -> tuple[Numbers, Numbers]:
        """The last integer of each rung where all widths are this one, and the chance that the noise exceeds it."""
        width = max(width, self.floor)
        if width not in self.laws:
            length = 64
            while True:
                reaches = self.statistic.reaches((width,) * self.statistic.parts, length)
                log_weight = np.log(np.maximum(reaches, 1e-300)) - float(self.decay) * np.arange(length)
                if log_weight[-1] < log_weight.max() - 60 or length > 1 << 24:
                    break
                length *= 2
            left = np.cumsum(np.exp(log_weight - log_weight.max())[::-1])[::-1]
            middle = float(np.exp(-log_weight.max())) / 2
            tails = np.append(left[1:], 0.0) / (left[0] + middle)
            self.laws[width] = np.append(-0.5, np.cumsum(reaches)), np.append(1.0, tails)
        return self.laws[width]

    def reach(self, width: int, doubt: float) -> float:
        """A half-width that the noise at this width exceeds with a chance of `doubt` at most."""
        ends, tails = self.find_law(width)
        return math.ceil(float(np.interp(doubt, tails[::-1], ends[::-1])))

    def exceed(self, width: int, bars: Numbers) -> Numbers:
        """The chance that the noise at this width exceeds each of these half-widths."""
        return np.asarray(np.interp(bars, *self.find_law(width)))


@lru_cache(maxsize=256)
def _find_doubt(statistic: SubgraphCount, epsilon: float, share: float, confidence: float) -> float:
    return find_doubt(Rungs(statistic, epsilon), statistic.cap, share, confidence)


def _logarithm_up(more: Fraction) -> Fraction:
    """At least ln(1 + more), close to it for small `more` too: log1p loses a few units in the last place at most."""
    if not more:
        return Fraction(0)
    return Fraction(math.nextafter(math.log1p(math.nextafter(float(more), math.inf)) * (1 + 2.0**-40), math.inf))


def _geometric(scale: Fraction, rng: Rng) -> int:
    """An integer k >= 0 with P(k) proportional to e^(-k / scale), without an end."""
    drawn = geometric(scale, rng=rng)
    while bernoulli_exp(_END / scale, rng=rng):
        drawn += _END
    return drawn


def ladder(statistic: SubgraphCount, *, unit: Unit, epsilon: float) -> Measurement:
    """A subgraph count by a ladder mechanism (after Zhang et al. 2015) that pays for its normalising constant exactly.

    The answer holds the count and a noisy width that its error bar is made of; a small share of epsilon pays for that.

    Guarantee:
        epsilon-differential privacy, no delta, when one edge is added or removed: see `ladder.md`.

    Units:
        Counts of subgraphs. Error bars hold with the stated confidence, over count and width together.

    >>> from mosha import Edge, noise
    >>> from mosha.graphs.data.graph import Graph
    >>> from mosha.graphs.statistics.subgraphs import TriangleCount
    >>> clique = Graph.of([(i, j) for i in range(40) for j in range(i)], vertices=40)
    >>> triangles = ladder(TriangleCount(40), unit=Edge(), epsilon=1)
    >>> answer, _ = triangles.step(None, clique, None, noise.SeededRandom(1))
    >>> abs(answer["value"] - 9880) < 2000
    True
    """
    epsilon = positive("epsilon", epsilon)
    if not 2.0**-20 <= epsilon <= 2.0**10:
        raise InvalidParameter("graphs.ladder_epsilon", parameter="epsilon")
    share = epsilon * SPREAD_SHARE
    rest = round_down(Fraction(epsilon) - Fraction(share))
    rungs = Rungs(statistic, rest)

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        exact, widths = statistic.evaluate(data), statistic.widths(data)
        noisy = exact + rungs.draw(widths, rng)
        return {"value": min(max(noisy, 0), statistic.most), "spread": draw_spread(widths, share, rng)}, state

    def error(confidence: float, answer: object) -> float:
        doubt = _find_doubt(statistic, rest, share, strict_probability("confidence", confidence))
        return rungs.reach(read_width(answer, statistic.cap), doubt)

    return Measurement(
        unit=unit,
        event=Pure(rest) + spread_event(share),
        step=step,
        error=error,
        draw=picture(type(statistic).__name__),
        name=f"ladder({type(statistic).__name__})",
        question=fingerprint(statistic, unit),
    )
