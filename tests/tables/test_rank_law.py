"""The law of points by their ranks, enumerated: what a row more does to it, and that far rows need not be known."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.tables.mechanisms import rank_choice
from mosha.tables.mechanisms.rank_choice import Pieces, Ranked, descend, farthest_score

POINTS = 4
WHOLE = (Fraction(0), Fraction(1))


def rank(counts: Any, near: Any = None) -> Any:
    """One group's cells, as an engine tells them: those whose ranks come within reach of a share, or all of them."""
    lines, upto, total = [], 0, sum(counts)
    for cell, weight in enumerate(counts):
        below, upto = upto, upto + weight
        told = near is None or any(b * upto >= a * total - r and b * below <= a * total + r for a, b, r in near)
        lines += [(0, cell, weight, upto, total)] if weight and told else []
    return Ranked.of(*np.array(lines, np.int64).reshape(-1, 5).T, 1)  # type: ignore[call-arg]


class Enumeration:
    """In place of the samplers: follows one way through all choices, and knows how likely it is."""

    def __init__(self, way: Any) -> None:
        self.way, self.log, self.taken = list(way), 0.0, []  # type: ignore[var-annotated]

    def choose(self, scores: Any, starts: Any, scale: Any, *, weights: Any, rng: Any) -> Any:
        del starts, rng
        chances = [math.exp(score / float(scale)) * weight for score, weight in zip(scores, weights, strict=True)]
        return np.array([self._take(chances)])

    def draw(self, sizes: Any, *, rng: Any) -> Any:
        del rng
        return np.array([self._take([1.0] * int(size)) for size in sizes], np.int64)

    def _take(self, chances: Any) -> Any:
        possible = [place for place, chance in enumerate(chances) if chance]
        turn = self.way[len(self.taken)] if len(self.taken) < len(self.way) else 0
        self.taken.append((turn, len(possible)))
        self.log += math.log(chances[possible[turn]] / math.fsum(chances))
        return possible[turn]


def find_law(
    monkeypatch: pytest.MonkeyPatch, counts: Any, shares: Any, scale: Any, reach: Any = None
) -> tuple[Any, ...]:
    """The probability of every outcome, wider looks included; `reach` says how near the first look is."""
    law, ways, looks = defaultdict(float), [()], 0  # type: ignore[var-annotated]
    while ways:
        guide = Enumeration(ways.pop())
        monkeypatch.setattr(rank_choice, "exponential_choices", guide.choose)
        monkeypatch.setattr(rank_choice, "uniform_each", guide.draw)
        points, near = {}, reach  # type: ignore[var-annotated]
        while True:
            told = None if near is None else [(s.numerator, s.denominator, near) for s in shares]
            pieces = Pieces.from_ranked(rank(counts, told), (0, POINTS - 1))
            if descend(pieces, shares, WHOLE, scale, points, POINTS, None):
                break
            looks += 1
            near *= 4
        for depth in range(len(guide.way), len(guide.taken)):
            taken = [turn for turn, _ in guide.taken[:depth]]
            ways += [(*taken, other) for other in range(1, guide.taken[depth][1])]
        law[tuple(int(points[share][0]) for share in shares)] += math.exp(guide.log)
    assert sum(law.values()) == pytest.approx(1)
    return law, looks


TABLES = [counts for counts in itertools.product(range(3), repeat=POINTS) if sum(counts) in {0, 2, 3, 5}]
SHARES = {
    "median": [Fraction(1, 2)],
    "a far share": [Fraction(99, 100)],
    "three": [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)],
}


@pytest.mark.parametrize("asked", SHARES)
@pytest.mark.parametrize("epsilon", [1, 40])
def test_one_row_more_moves_the_law_by_epsilon_for_each_level_at_most(
    monkeypatch: pytest.MonkeyPatch, asked: Any, epsilon: int
) -> None:
    """Every table of at most five rows on four points, with a row more of weight one or two at every point."""
    shares, weight, greatest = SHARES[asked], 2, 0.0
    levels = len(shares).bit_length()
    for counts in TABLES[:: 1 if len(shares) == 1 else 6]:
        law, _ = find_law(monkeypatch, counts, shares, Fraction(weight, epsilon))
        for place, more in itertools.product(range(POINTS), (1, 2)):
            other = [count + more * (place == cell) for cell, count in enumerate(counts)]
            beside, _ = find_law(monkeypatch, other, shares, Fraction(weight, epsilon))
            assert set(law) == set(beside)
            loss = max(abs(math.log(law[outcome] / beside[outcome])) for outcome in law)
            assert loss <= levels * epsilon * more / weight * (1 + 1e-9)
            greatest = max(greatest, loss / (levels * epsilon * more / weight))
    assert greatest > 0.2  # the bound is no empty one: half of the weight would not do


@pytest.mark.parametrize("asked", SHARES)
def test_the_law_is_the_same_where_rows_far_from_the_rank_are_known_only_together(
    monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    shares, lumps, looks = SHARES[asked], 0, 0
    tables = [(9, 9, 9, 9), (30, 1, 1, 5), (0, 40, 0, 40), (7, 0, 33, 2), (1, 1, 50, 50)]
    for scale, counts in itertools.product([Fraction(1, 60), Fraction(1, 4)], tables):
        law, _ = find_law(monkeypatch, counts, shares, scale)
        for near in (1, max(farthest_score(share, scale, POINTS) for share in shares)):
            lumps += bool(rank(counts, [(share.numerator, share.denominator, near) for share in shares]).lumps.any())
            other, wider = find_law(monkeypatch, counts, shares, scale, reach=near)
            looks += wider
            assert set(other) == set(law)
            assert all(other[outcome] == pytest.approx(law[outcome], rel=1e-9, abs=1e-15) for outcome in law)
    assert lumps
    assert looks
