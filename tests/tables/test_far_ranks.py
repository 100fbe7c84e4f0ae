"""Ranks of quantiles beyond 64 bits: weights of 10**8 persons and shares with large denominators."""

from fractions import Fraction

import numpy as np
import pytest

import mosha
from tests.tables.one_group import choose_point

SHARES = [
    Fraction(100, 997),
    Fraction(230 * 10**6 + 1, 991 * 10**6 + 7),
    Fraction(1, 2),
    Fraction(10**12 + 39, 3 * 10**12 + 7),
]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("persons", [10**3, 10**8, 10**11])
def test_a_quantile_of_very_many_weighted_rows_is_found(share, persons):
    """The scale is so small that only the right point is left; one person more changes no type and raises nothing."""
    cells = np.arange(0, 1000, dtype=np.int64)
    for extra in (0, 1):
        counts = np.full(cells.size, persons * 2**11 // 1000, dtype=np.int64)
        counts[7] += extra
        point = choose_point(cells, counts, (-5, 2000), share, Fraction(1, 1000), mosha.noise.secure())
        ranks = np.cumsum(counts.astype(object))
        place = int(np.searchsorted(ranks, int(share * ranks[-1])))
        assert abs(point - place) <= 1
