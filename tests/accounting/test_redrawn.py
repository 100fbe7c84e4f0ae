"""Normal noise on a sample with replacement: above every way to use one unit, and attained by one against none."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from mosha import accounting
from mosha.accounting.losses.redrawn import redraw
from mosha.core.events import FixedSizeSampled, Gaussian

CASES = [(1.1, 50, 1000), (0.6, 3, 10), (2.0, 100, 100), (0.8, 40, 20)]
GRID = np.linspace(-60, 60, 240_001)


def curve(loss: Any, multiplier: Any, size: Any, population: Any, here: Any, there: Any) -> Any:
    """The hockey stick of sums of normals whose means are c times `here` and c times `there`, by quadrature."""
    draws = np.arange(min(size, 60) + 1)
    chances = binom.pmf(draws, size, 1 / population)
    worlds = [
        sum(w * norm.pdf(GRID - c * move / multiplier) for c, w in zip(draws, chances, strict=True))
        for move in (here, there)
    ]
    return np.maximum(worlds[0] - np.exp(loss) * worlds[1], 0).sum() * (GRID[1] - GRID[0])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0, 3.0])
def test_no_unit_in_the_place_of_another_shows_more(case: Any, loss: float) -> None:
    priced = accounting.delta(FixedSizeSampled(Gaussian(case[0]), *case[1:], replacement=True), epsilon=loss)  # type: ignore[misc]
    ways = [(1, 0), (0, 1), (-1, 0), (0.5, -0.5), (0.3, -0.7), (0.9, -0.1), (1, 0.2)]
    assert max(curve(loss, *case, *way) for way in ways) <= priced * (1 + 1e-6) + 1e-12  # type: ignore[call-arg]


@pytest.mark.parametrize("loss", [0.1, 1.0, 2.0])
def test_one_unit_against_none_attains_it_and_no_smaller_price_holds(loss: float) -> None:
    sample = FixedSizeSampled(Gaussian(1.1), 50, 1000, replacement=True)
    attained = curve(loss, 1.1, 50, 1000, 1, 0)
    assert accounting.delta(sample, epsilon=loss) == pytest.approx(attained, rel=1e-4)
    once = FixedSizeSampled(Gaussian(1.1), 50, 1000)  # as if nobody were drawn twice
    assert accounting.delta(once, epsilon=loss) < attained


def test_many_steps_cost_little_more_than_without_replacement() -> None:
    within, without = (
        accounting.epsilon(FixedSizeSampled(Gaussian(1.1), 50, 1000, replacement=again) * 100, delta=1e-5)
        for again in (True, False)
    )
    assert without < within < 1.2 * without  # 3.62 and 3.18; it was above 100


@pytest.mark.parametrize(
    "knots", [[-2.0, -0.5, 0.3, 2.0], [-1.0, 0.0, 1.0], [0.5, 1.0], [-1.0, -0.2], [-np.inf, 0.1, np.inf]]
)
def test_cells_hold_all_mass_and_mirror_each_other(knots: Any) -> None:
    pair, knots = redraw(0.9, 50, 1000), np.array(knots)
    cells, mirrored = pair.cells(knots), pair.cells(-knots[::-1])
    assert len(cells.p) == len(cells.q) == len(knots) - 1
    for mass in ("p", "q"):
        whole = getattr(cells, mass).sum() + getattr(cells, mass + "_below") + getattr(cells, mass + "_above")
        assert whole == pytest.approx(1, abs=1e-12)
    if 0.0 not in knots:  # the atom at zero lies in the cell that ends there
        assert np.allclose(cells.p, mirrored.q[::-1], atol=1e-13)
    finer = pair.cells(np.unique(np.append(knots, [-0.7, 0.05, 0.7])))
    assert finer.p.sum() + finer.p_below + finer.p_above == pytest.approx(1, abs=1e-12)
