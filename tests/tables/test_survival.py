"""Survival curves: exact ones are Kaplan and Meier's, and bands hold for studies and noise together."""

from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.tables import find_survival_curve

HAZARD = 0.06


def study(rng: Any, *, people: int = 1500, months: Any = 10, noise: float = 0.0) -> list[Any]:
    death, leave = rng.geometric(HAZARD, people), np.minimum(rng.geometric(0.03, people), months)
    month, died = np.minimum(death, leave), death <= leave
    counts = [np.bincount(month[died == kind], minlength=months + 1)[1:] for kind in (True, False)]
    scale = noise / 2**0.5
    return [count + (rng.laplace(0, scale, months) if noise else 0) for count in counts]


def test_exact_counts_give_the_curve_of_a_textbook() -> None:
    """Four die, in months 1, 1, 2 and 4, one leaves in month 3, of six: 4/6, 3/6, 3/6, 3/6 * 1/2."""
    curve = find_survival_curve([2, 1, 0, 1], [0, 0, 1, 1], deviation=0)
    assert curve.values.tolist() == pytest.approx([4 / 6, 3 / 6, 3 / 6, 3 / 6 / 2])
    greenwood = np.sqrt(2 / (6 * 4) + 1 / (4 * 3))
    assert np.log(curve.values[1] / curve.low[1]) == pytest.approx(1.959964 * greenwood, rel=1e-5)


def test_bands_hold_and_bands_that_are_too_narrow_or_too_wide_are_found() -> None:
    """1,000 studies with noise, true rate 95%: below 88%, or all of them, once in more than 1e9 runs (Chernoff)."""
    rng = np.random.default_rng()
    truth = (1 - HAZARD) ** 8
    wide = [find_survival_curve(*study(rng, noise=14.0), deviation=14.0) for _ in range(1000)]
    apart = np.array([np.log(truth / c.values[7]) / np.log(c.high[7] / c.values[7]) for c in wide])

    def holds(factor: Any) -> Any:
        return 0.88 < np.mean(np.abs(apart) < factor) < 1

    assert holds(1)
    assert not holds(0.4)
    assert not holds(8)


def test_noise_alone_widens_a_band_as_much_as_it_moves_the_curve() -> None:
    """One study, 2,000 draws of noise: their deviation is that of the band to 15%, which is nine deviations of it."""
    rng = np.random.default_rng()
    exact = study(rng)
    plain = find_survival_curve(*exact, deviation=0)
    moved = [
        np.log(find_survival_curve(*(c + rng.laplace(0, 8 / 2**0.5, 10) for c in exact), deviation=8).values[6])
        for _ in range(2000)
    ]
    noisy = find_survival_curve(*exact, deviation=8)
    square = np.log(noisy.values[6] / noisy.low[6]) ** 2 - np.log(plain.values[6] / plain.low[6]) ** 2
    assert np.sqrt(square) / 1.959964 == pytest.approx(np.std(moved), rel=0.15)


def test_counts_that_noise_made_negative_or_empty_are_answered() -> None:
    curve = find_survival_curve([-5, 3, -2], [-9, 1, -4], deviation=9)
    assert np.all((curve.values >= 0) & (curve.values <= 1) & (curve.low <= curve.values) & (curve.high <= 1))


def test_rows_of_different_length_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="leavers"):
        find_survival_curve([1, 2], [1], deviation=0)
