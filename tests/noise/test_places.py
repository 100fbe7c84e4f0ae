"""Who is drawn out of many: exact laws, at a cost that grows with those drawn."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.noise import SeededRandom, bernoulli_places, choose_places, geometric, places, secure, uniform
from tests.counting import calls
from tests.noise.goodness import rejects

RUNS = 12_000


def subset_events(draw: Any, n: Any, law: Any) -> list[Any]:
    """How often each subset of n places is drawn, beside its probability."""
    counts = dict.fromkeys(itertools.product((0, 1), repeat=n), 0)
    for _ in range(RUNS):
        drawn = np.zeros(n, int)
        drawn[draw()] = 1
        counts[tuple(drawn.tolist())] += 1
    return [(count, RUNS, law(subset)) for subset, count in counts.items()]


def coins(p: Any) -> Any:
    return lambda subset: float(p) ** sum(subset) * float(1 - p) ** (len(subset) - sum(subset))


@pytest.mark.parametrize("p", [Fraction(1, 3), 0.05, Fraction(3, 5)])
def test_places_by_gaps_are_independent_coins(p: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 32 subsets of five places; false alarm 1e-10. In blocks of two gaps, drawings go on from the last one."""
    for block in (2, places._BLOCK):
        monkeypatch.setattr(places, "_BLOCK", block)
        assert not rejects(subset_events(lambda: places._draw_by_gaps(Fraction(p), 5, secure()), 5, coins(p)))


def unthinned(p: Any, n: Any) -> Any:
    return after_gaps((1 - p) / p, n, 1)


def touching(p: Any, n: Any) -> Any:
    return after_gaps(-1 / math.log(1 - p), n, 2)


def after_gaps(scale: Any, n: Any, step: Any) -> Any:
    found = np.cumsum(geometric(scale, n + 1) + step) - 1
    return found[found < n]


@pytest.mark.parametrize("wrong", [unthinned, touching])
def test_wrong_places_are_found(wrong: Any) -> None:
    """What the test of the law above can tell: coins that are not thinned, and neighbors that are never both drawn."""
    assert rejects(subset_events(lambda: wrong(0.3, 5), 5, coins(0.3)))


def test_places_far_apart_are_as_frequent_as_coins() -> None:
    """Shares of 16 ranges and of all of 10^6 places, 10 times: 17 binomial counts, false alarm 1e-10. Coins that are a
    tenth too frequent, or too rare, are found: 40,000 are expected, the deviation is 200."""
    n, p, times = 1_000_000, 0.004, 10
    drawn = [bernoulli_places(p, n) for _ in range(times)]
    ranges = sum(np.bincount(found // (n // 16), minlength=16) for found in drawn)
    pairs = sum(int((np.diff(found) == 1).sum()) for found in drawn)
    events = [(int(count), times * n // 16, p) for count in ranges]  # type: ignore[union-attr]
    events.append((int(sum(ranges)), times * n, p))  # type: ignore[arg-type]
    assert not rejects(events)
    assert abs(pairs - times * n * p * p) < 8 * math.sqrt(times * n * p * p)
    for wrong in (1.1, 0.9):
        assert rejects([(count, trials, p * wrong) for count, trials, p in events])
    for found in drawn:
        assert (np.diff(found) > 0).all()
        assert found[0] >= 0
        assert found[-1] < n


@pytest.mark.parametrize("p", [Fraction(1, 16), 0.004, Fraction(1, 3), 2.0**-48, 1e-9, Fraction(7, 10**9)])
def test_the_coin_that_thins_is_the_one_of_the_proof(p: Any) -> None:
    """Its bounds hold c = p / (1 - exp(-p / (1 - p))) at every precision, and close in on it."""
    thinning = places._Thinning(Fraction(p))
    with mpmath.workdps(120):
        exact = mpmath.mpf(Fraction(p).numerator) / Fraction(p).denominator
        c = exact / -mpmath.expm1(-exact / (1 - exact))
        for bits in (32, 96, 160):
            low, high = thinning.bounds(bits)
            assert low <= c * 2**bits <= high
            assert high - low <= 3
    assert 1 - float(p) < c <= 1


def test_a_tie_is_settled_by_more_bits() -> None:
    thinning = places._Thinning(Fraction(1, 3))
    low, high = thinning.bounds(32)
    assert low < high

    class Words:
        secure = True

        def __init__(self, value: Any) -> None:
            self.value = value

        def bytes(self, n: Any) -> Any:
            return self.value.to_bytes(8, "little")[:n]

    assert thinning._settle(low, Words(0))
    assert not thinning._settle(low, Words(2**64 - 1))


def test_seldom_places_are_thinned_twice() -> None:
    """Below 2^-48: 2^42 places at 2^-50 hold 2^-8 on average; 2,000 draws, 7.8 expected, more than 40 by 1e-15."""
    assert sum(len(bernoulli_places(2.0**-50, 2**42)) for _ in range(2_000)) <= 40
    assert sum(len(bernoulli_places(2.0**-49, 2**42)) for _ in range(8_000)) >= 10  # 62 expected


@pytest.mark.parametrize(("size", "n"), [(0, 3), (1, 5), (2, 5), (3, 5), (5, 5), (2, 4)])
def test_every_set_of_a_size_is_equally_likely(size: int, n: int) -> None:
    """False alarm 1e-10."""
    sets = math.comb(n, size)
    events = subset_events(lambda: choose_places(size, n), n, lambda subset: (sum(subset) == size) / sets)
    assert not rejects(events)


def test_sets_that_are_not_uniform_are_found() -> None:
    """Places drawn with repetition, the lowest free one in place of a second: sets of low places are more frequent."""

    def wrong() -> list[Any]:
        chosen = set(uniform(5, 2).tolist())
        return sorted(chosen | {min({0, 1, 2} - chosen)} if len(chosen) == 1 else chosen)

    assert rejects(subset_events(wrong, 5, lambda subset: (sum(subset) == 2) / 10))


class Counting:
    """A generator that counts the bytes it gives."""

    secure = True

    def __init__(self) -> None:
        self.given, self._rng = 0, SeededRandom(1)

    def bytes(self, n: Any) -> Any:
        self.given += n
        return self._rng.bytes(n)


@pytest.mark.parametrize(
    "draw",
    [lambda n, rng: bernoulli_places(256 / n, n, rng=rng), lambda n, rng: choose_places(256, n, rng=rng)],
    ids=["coins", "sets"],
)
def test_the_cost_grows_with_those_drawn_and_not_with_the_population(draw: Any) -> None:
    """Random bytes and calls for 256 of 10^5 and of 10^9: the same but for wider numbers and chance."""
    costs = []
    for n in (10**5, 10**9):
        rng = Counting()
        draw(n, rng)  # tables
        rng.given = 0
        counted = [calls(lambda n=n, rng=rng: draw(n, rng)) for _ in range(20)]  # type: ignore[misc]
        costs.append((rng.given / 20, min(counted)))
    assert costs[1][0] <= 2.5 * costs[0][0]
    assert costs[1][1] <= 2.5 * costs[0][1]


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (lambda: bernoulli_places(1.5, 3), lambda: bernoulli_places(0.5, -1), lambda: choose_places(4, 3)):
        with pytest.raises(InvalidParameter):
            wrong()
    for p in (0, 1e-5, 1):
        assert bernoulli_places(p, 0).tolist() == []
    assert choose_places(0, 0).tolist() == []
