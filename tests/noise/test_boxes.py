"""Noise in a box has weight exp(-N(z) / scale), N the box norm: checked cell by cell against that sum."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.noise import box_noise, box_radius
from tests.noise.goodness import rejects

N = 200_000
CASES = [
    (1, [1, 1]),
    (0.5, [1]),
    (2, [2, 1]),
    (3, [Fraction(1, 2), Fraction(3, 2)]),
    (2.5, [Fraction(7, 3), Fraction(1, 4)]),
    (1, [1, 2, 1]),
]


def norm(z: Any, widths: Any) -> Any:
    return max(math.ceil(Fraction(abs(c)) / w) for c, w in zip(z, widths, strict=True))


def radius_weights(scale: Any, widths: Any, reach: Any) -> list[Any]:
    return [math.exp(-r / scale) * math.prod(2 * math.floor(w * r) + 1 for w in widths) for r in range(reach)]


@pytest.mark.parametrize(("scale", "widths"), CASES)
def test_every_point_of_the_box_has_its_weight(scale: Any, widths: Any) -> None:
    drawn = box_noise(scale, widths, N)
    assert drawn.shape == (N, len(widths))
    weights = radius_weights(scale, widths, 2000)
    q = math.exp(-1 / scale)
    total = math.fsum(weights) * (1 - q)  # each point z is in the boxes of all radii from norm(z) on
    span = 4 if len(widths) < 3 else 2
    cells = list(itertools.product(range(-span, span + 1), repeat=len(widths)))
    chances = [math.exp(-norm(z, widths) / scale) / total for z in cells]
    counts = cell_counts(drawn, cells)
    assert not rejects([(c, N, p) for c, p in zip(counts, chances, strict=True)])
    for wrong in (0.5, 2):
        assert rejects([(c, N, min(1, p * wrong)) for c, p in zip(counts, chances, strict=True)])
    if widths[0] != widths[-1]:
        swapped = cell_counts(drawn[:, ::-1], cells)
        assert rejects([(c, N, p) for c, p in zip(swapped, chances, strict=True)])


def cell_counts(drawn: Any, cells: Any) -> Any:
    """How many rows of `drawn` equal each cell."""
    radix = 1 << 14
    keys = ((drawn + radix // 2) * radix ** np.arange(drawn.shape[1])).sum(axis=1)
    wanted = ((np.array(cells) + radix // 2) * radix ** np.arange(drawn.shape[1])).sum(axis=1)
    keys.sort()
    return (np.searchsorted(keys, wanted, "right") - np.searchsorted(keys, wanted, "left")).tolist()


@pytest.mark.parametrize(("scale", "widths"), [*CASES, (1, [1] * 16), (20, [5, Fraction(1, 3), 2, 1])])
def test_the_radius_has_its_weight(scale: Any, widths: Any) -> None:
    drawn = box_radius(scale, widths, N)
    weights = radius_weights(scale, widths, 2000)
    cumulative = np.cumsum(weights) / math.fsum(weights)
    points = np.searchsorted(cumulative, [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    counts = [int((drawn <= r).sum()) for r in points]
    assert not rejects([(c, N, cumulative[r]) for c, r in zip(counts, points, strict=True)])
    for wrong in (0.9, 1.1):
        other = np.array(radius_weights(scale * wrong, widths, 2000))
        other = np.cumsum(other) / other.sum()
        assert rejects([(c, N, other[r]) for c, r in zip(counts, points, strict=True)])


def test_a_wide_radius_is_close_to_a_gamma_variable() -> None:
    """For a large scale the law tends to Gamma(d + 1): compared on cells where the difference is below 1e-9."""
    from scipy.stats import gamma

    scale = 2**38
    drawn = box_radius(scale, [4096, 1], N)
    points = [0.3, 1, 2, 3, 4, 6, 9]
    counts = [int((drawn <= x * scale).sum()) for x in points]
    assert not rejects([(c, N, gamma.cdf(x, 3)) for c, x in zip(counts, points, strict=True)])
    assert rejects([(c, N, gamma.cdf(1.03 * x, 3)) for c, x in zip(counts, points, strict=True)])
    assert rejects([(c, N, gamma.cdf(0.97 * x, 3)) for c, x in zip(counts, points, strict=True)])


def test_a_neighbor_is_never_much_less_likely() -> None:
    """The guarantee, in exact arithmetic: a shift within k widths moves the norm by at most k."""
    widths, k = [Fraction(5, 2), Fraction(2, 3)], 2
    shifts = [(a, b) for a in range(-5, 6) for b in (-1, 0, 1)]
    for z in itertools.product(range(-12, 13), range(-5, 6)):
        for shift in shifts:
            moved = [a + b for a, b in zip(z, shift, strict=True)]
            assert abs(norm(moved, widths) - norm(z, widths)) <= k


def test_shapes_and_a_single_vector() -> None:
    assert box_noise(3, [2, 1]).shape == (2,)
    assert box_noise(3, [2, 1], (4, 5)).shape == (4, 5, 2)
    assert box_noise(3, [2, 1], 0).shape == (0, 2)
    assert box_noise(1e-9, [1, 1], 3).tolist() == [[0, 0]] * 3


def test_the_largest_boxes_stay_within_64_bits() -> None:
    drawn = box_noise(2**8, [2**42, 1], 20_000)
    assert np.abs(drawn[:, 0]).max() < 2**57
    assert np.abs(box_noise(2**50, [1], 20_000)).max() < 2**57


@pytest.mark.parametrize(
    ("scale", "widths"),
    [
        (1, []),
        (1, [1] * 17),
        (1, [0]),
        (1, [-1, 1]),
        (1, [float("nan")]),
        (1, ["1"]),
        (1, 5),
        (1, [2**43]),
        (1, [Fraction(1, 2**21)]),
        (2**9, [2**42]),
        (0, [1]),
        (-1, [1]),
        (float("inf"), [1]),
    ],
)
def test_wrong_boxes_are_refused(scale: Any, widths: Any) -> None:
    for size in (None, 0, 3):
        with pytest.raises(InvalidParameter):
            box_noise(scale, widths, size)
    with pytest.raises(InvalidParameter):
        box_radius(scale, widths, 3)
