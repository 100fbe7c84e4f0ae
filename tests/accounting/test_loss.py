"""Lattice laws bracket the curve of their pair, at every epsilon and for every kind of pair."""

import itertools
import math
import random
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import erfcx, ndtr

from mosha.accounting.losses.composed_pair import compose_pairs
from mosha.accounting.losses.loss import UNIT, connect_dots, upper_law
from mosha.accounting.losses.merging import lower_law
from mosha.accounting.losses.pair import Atoms, Band, Normal, flipped_coin, normal_error
from mosha.accounting.losses.sampled_pair import Added, Dearest, Removed, replace_unit
from tests.accounting import exact

PAIRS = {
    "normal": Normal(0.7),
    "narrow normal": Normal(0.003),
    "wide normal": Normal(9.0),
    "laplace": Band(1.0, ends=True),
    "weak laplace": Band(0.01, ends=True),
    "bounded range": Band(0.8, ends=False),
    "coin": flipped_coin(0.3),
    "many answers": flipped_coin(1.3, categories=5),
    "coin that fails": flipped_coin(0.3, delta=1e-4),
    "rare sample": Removed(Normal(1.5), 0.001),
    "rare sample, added": Added(Normal(1.5), 0.001),
    "common sample": Removed(Normal(0.4), 0.4),
    "sampled laplace": Removed(Band(2.0, ends=True), 0.05),
    "sampled coin": Added(flipped_coin(1.0, delta=1e-5), 0.2),
    "replaced": replace_unit(Normal(0.9), 0.05),
    "dearest": Dearest((Normal(0.5), Band(1.0, ends=True))),
    "composite": compose_pairs([(Normal(0.5), 1), (Band(0.4, ends=True), 2)], 1.0, above=True),
}
STEPS = [0.5, 0.07, 0.004]


def curve(losses: Any, mass: Any, infinite: Any, epsilon: Any) -> Any:
    told = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return float((mass * told).sum()) + infinite


def pair_curve(pair: Any, epsilon: Any) -> tuple[Any, ...]:
    cells = pair.cells(np.array([epsilon]))
    return cells.p_above - math.exp(epsilon) * cells.q_above, cells.p_above


def window(pair: Any, step: Any) -> tuple[Any, ...]:
    low, high = pair.reach(1e-18)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    return max(first, last - 40_000), last


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("step", STEPS)
def test_upper_and_lower_laws_bracket_the_curve(name: Any, step: Any) -> None:
    pair = PAIRS[name]
    first, last = window(pair, step)
    above = upper_law(pair.cells(step * np.arange(first, last + 1)), first, step)  # type: ignore[attr-defined]
    below = lower_law(pair, first, last, step)  # type: ignore[arg-type]
    points = [random.uniform(first * step, last * step) for _ in range(60)]
    points += [step * random.randint(first, last) for _ in range(20)] + [0.0, first * step - 1, last * step + 1]
    for epsilon in points:
        truth, scale = pair_curve(pair, epsilon)
        slack = 1e-13 * max(scale, 1e-30)
        assert curve(above.losses, above.mass, above.infinite, epsilon - above.shift) >= truth - slack, epsilon
        assert curve(below.losses, below.mass, below.infinite, epsilon + below.shift) <= truth + slack, epsilon


@pytest.mark.parametrize("name", ["normal", "bounded range", "rare sample", "rare sample, added", "common sample"])
def test_finer_lattices_close_the_gap_at_second_order(name: str) -> None:
    pair = PAIRS[name]
    width = pair.reach(0.02)[1] - pair.reach(0.02)[0]  # type: ignore[attr-defined]
    points = np.linspace(*pair.reach(0.2), 40)  # type: ignore[attr-defined, call-overload]
    gaps = []
    for pieces in (60, 240):
        step = width / (pieces + 0.37)
        first, last = window(pair, step)
        above = upper_law(pair.cells(step * np.arange(first, last + 1)), first, step)  # type: ignore[attr-defined]
        below = lower_law(pair, first, last, step)  # type: ignore[arg-type]
        high = sum(curve(above.losses, above.mass, above.infinite, e) for e in points)
        gaps.append(high - sum(curve(below.losses, below.mass, 0.0, e) for e in points))
    assert gaps[1] <= gaps[0] / 16 * 2.5


@pytest.mark.parametrize("name", ["normal", "rare sample", "rare sample, added", "common sample", "laplace"])
def test_a_wrong_twin_is_caught(name: str) -> None:
    """The bracket would notice losses that are off by a thousandth of a step, on either side."""
    pair, step = PAIRS[name], 0.004
    first, last = window(pair, step)
    above = upper_law(pair.cells(step * np.arange(first, last + 1)), first, step)  # type: ignore[attr-defined]
    below = lower_law(pair, first, last, step)  # type: ignore[arg-type]
    points = np.linspace(*pair.reach(0.05), 400)  # type: ignore[attr-defined, call-overload]
    truths = [pair_curve(pair, e)[0] for e in points]
    moved = [
        (curve(above.losses - step, above.mass, above.infinite, e), curve(below.losses + step, below.mass, 0.0, e))
        for e in points
    ]
    assert any(high < t for (high, _), t in zip(moved, truths, strict=True))
    assert any(low > t for (_, low), t in zip(moved, truths, strict=True))


def test_masses_of_the_upper_law_are_those_of_the_pair() -> None:
    for pair in (Normal(0.7), Band(1.0, ends=True), Removed(Normal(1.0), 0.1)):
        knots = np.linspace(*pair.reach(1e-20), 500)
        mass, infinite = connect_dots(pair.cells(knots), knots)
        assert mass.sum() + infinite == pytest.approx(1.0, abs=1e-11)
        assert (mass * np.exp(-knots)).sum() == pytest.approx(1.0, abs=1e-9)


def test_cells_of_a_normal_pair_are_within_their_errors() -> None:
    for mu in (0.01, 0.8, 5.0):
        knots = np.sort(np.array([random.gauss(mu**2 / 2, 3 * mu) for _ in range(12)]))
        cells = Normal(mu).cells(knots)
        for mass, error, sign in ((cells.p, cells.p_error, -1), (cells.q, cells.q_error, 1)):
            points = [mp.mpf(float(x)) / mu + sign * mp.mpf(mu) / 2 for x in knots]
            for i, (a, b) in enumerate(itertools.pairwise(points)):
                true = exact.normal_tail(a) - exact.normal_tail(b)
                assert abs(true - mass[i]) <= error[i] + 2 * cells.shift / mu * mp.npdf(min(abs(a), abs(b)))


def test_the_library_is_as_good_as_the_budget_assumes() -> None:
    """`ndtr` and `erfcx`, against fifty digits, at fresh points on every run."""
    for x in [-random.expovariate(0.1) for _ in range(300)] + [-random.random() for _ in range(100)]:
        if x > -37:
            assert abs(mp.mpf(float(ndtr(x))) / exact.normal_tail(-mp.mpf(x)) - 1) <= normal_error(x) / 2
    for x in [random.uniform(-4.3, 30) for _ in range(300)]:
        true = mp.exp(mp.mpf(x) ** 2) * mp.erfc(mp.mpf(x))
        assert abs(mp.mpf(float(erfcx(x))) / true - 1) <= 32 * UNIT


def test_atoms_on_lattice_points_lose_nothing() -> None:
    for step in (0.1, 0.05, 0.1 / 3):
        first, last = round(-0.3 / step) - 1, round(0.3 / step) + 1
        law = lower_law(flipped_coin(0.3), first, last, step)
        on = np.isclose(np.abs(law.losses), 0.3)
        assert law.mass[on].sum() == pytest.approx(1.0, abs=1e-9)


def test_infinite_losses_stay_infinite() -> None:
    law = lower_law(flipped_coin(0.3, delta=0.01), -5, 5, 0.1)
    assert law.infinite == pytest.approx(0.01, rel=1e-12)
    assert isinstance(PAIRS["composite"], Atoms)
