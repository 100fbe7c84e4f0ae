"""Error bars of quantiles in the unit of the column: what they cost, what one row moves, and that they cover.

False alarm: every limit of a statistical test is a tail of 1e-10.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chi2, lognorm

import mosha
from mosha.errors import InvalidParameter
from mosha.events import Exponential, Pure
from mosha.noise import LARGEST_SCALE, secure
from mosha.tables import Budget, median, protect
from mosha.tables.mechanisms.quantile_width import (
    CONFIDENCE,
    count_failures,
    find_windows,
    ladder,
    least_height,
    noise_scales,
    tallest_height,
)
from mosha.tables.mechanisms.quantile_width import (
    heights as heights_of_groups,
)
from mosha.tables.mechanisms.rank_choice import rank_errors
from tests.tables.one_group import choose_point

SPAN = (-(1 << 19), 1 << 19)
HALF = Fraction(1, 2)


def one_group(cells: Any, point: Any) -> tuple[Any, ...]:
    return np.array([0, len(cells)]), np.array([point])


def window(cells: Any, counts: Any, share: Any, point: Any, span: Any, scales: Any, rng: Any) -> int:
    """The half-width for one group."""
    starts, points = one_group(cells, point)
    return int(find_windows(cells, counts, starts, share, points, span, scales, rng)[0])


def heights(cells: Any, counts: Any, share: Any, point: Any, span: Any, most: Any = 10**15) -> Any:
    """Of one group, the windows that do not hold the whole range."""
    starts, points = one_group(cells, point)
    sizes, tried = heights_of_groups(cells, counts, starts, share, points, span, most)
    return sizes[tried].tolist()


def least(draws: Any) -> Any:
    return binom.ppf(1e-10, draws, CONFIDENCE)


def most(draws: Any, chance: Any) -> Any:
    return binom.isf(1e-10, draws, chance)


def law(sizes: Any, threshold: Any, scales: Any) -> Any:
    """The probability of every number of passes, from 0 to all, by the definition of the mechanism."""
    s, r = (float(scale) for scale in scales)
    z = np.arange(-int(40 * s) - 40, int(40 * s) + 41)
    weight = np.exp(-np.abs(z) / s)
    going, found = weight / weight.sum(), []
    for size in sizes:
        fails = np.exp(-np.maximum(size - threshold - z + 1, 0) / r)
        found.append(float((going * fails).sum()))
        going = going * (1 - fails)
    return np.array([*found, going.sum()])


def sharp_rows(share: Any, place: Any) -> tuple[Any, ...]:
    """Rows of which window `place` misses the quantile by a hair, wider ones hold it by far, and narrower ones fail."""
    w, many = int(ladder(1 << 20)[place]), 10**6 * share.denominator
    counts = [int(many * share) - many // 4, many // 4, many - int(many * share) + 1]
    return np.array([SPAN[0] + 5, w, w + 1]), np.array(counts)


@pytest.mark.parametrize("share", [HALF, Fraction(9, 10), Fraction(1, 100)])
@pytest.mark.parametrize("epsilon", [0.2, 0.01])
def test_the_worst_rows_are_covered_as_often_as_it_is_said_and_not_more_often(share: Any, epsilon: float) -> None:
    # Half as wide a bar holds the quantile never, and a bar that is twice as wide always: both must be rejected.
    draws, scales = 2000, noise_scales(1, share, epsilon)
    cells, counts = sharp_rows(share, 12)
    truth = int(cells[-1])
    bars = np.array([window(cells, counts, share, 0, SPAN, scales, secure()) for _ in range(draws)])
    sizes = heights(cells, counts, share, 0, SPAN)[::-1]
    assert max(size for size in sizes if size <= 0) >= -share.denominator
    miss = law(sizes, least_height(scales), scales)[[size <= 0 for size in sizes].index(True) + 1 :].sum()
    assert 1 - CONFIDENCE >= miss >= 0.9 * (1 - CONFIDENCE) * math.exp(-2 * share.denominator / scales[0])
    covered = [int(np.sum(truth <= bars * factor)) for factor in (0.5, 1, 2)]
    assert covered[0] < least(draws) <= covered[1] <= most(draws, 1 - miss) < covered[2]


EVENLY = (np.arange(3000) + 0.5) / 3000  # dense everywhere: among drawn rows some quantiles stand in a gap
SHAPES = {
    "log-normal": lambda _: lognorm.ppf(EVENLY, 0.6, scale=math.exp(8)),
    "uniform": lambda _: 8e5 * EVENLY - 4e5,
    "heavy ties": lambda g: g.choice([-1e5, 2000.0, 2300.0, 4e4], 3000, p=[0.3, 0.15, 0.15, 0.4]),
    "few rows": lambda g: g.normal(0, 1e5, 9),
    "two heaps": lambda g: np.where(g.random(500) < 0.5, -3e5, 3e5) + g.normal(0, 40, 500),
}


def released(x: Any, share: Any, epsilon: Any, draws: Any) -> Any:
    """Distances of released quantiles from the true one, and their bars, in grid steps."""
    cells, counts = np.unique(np.clip(np.round(x), *SPAN).astype(np.int64), return_counts=True)
    rank = share * int(counts.sum())
    low, high = (int(cells[np.searchsorted(np.cumsum(counts), float(rank), side=side)]) for side in ("left", "right"))
    scales, found = noise_scales(1, share, epsilon), []
    for _ in range(draws):
        point = choose_point(cells, counts, SPAN, share, 1 / Fraction(epsilon), secure())
        away = max(low - point, point - high, 0)
        found.append((away, window(cells, counts, share, point, SPAN, scales, secure())))
    return np.array(found, np.float64).T


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [HALF, Fraction(9, 10)])
def test_bars_in_values_cover_and_are_within_twice_the_best(shape: Any, share: Any) -> None:
    # The rank of the point strays like Laplace noise where rows are dense: the best bar is ln(20) scales of it, and its
    # error 0.47 of that. Where rows are dense bars that are twice as wide, or 0.3 as wide, must be rejected. The root
    # of a mean of 1500 squares with kurtosis 6 has a deviation of 2.9%: it strays by a fifth with 1e-10; with
    # 4,000 draws it is .227 to .245.
    draws = 1500
    missed, bars = released(SHAPES[shape](np.random.default_rng()), share, 0.2, draws)
    assert np.sum(missed <= bars) >= least(draws)
    if shape in ("log-normal", "uniform"):
        error = math.sqrt(np.mean(missed**2)) / np.mean(bars)
        assert error / 2 < 0.16 < error < 0.36
        assert np.sum(missed <= 0.3 * bars) < least(draws)


def test_one_row_moves_heights_by_its_share_and_no_further() -> None:
    generator = np.random.default_rng()
    greatest = 0
    for _ in range(300):
        rows = generator.integers(-2000, 2000, generator.integers(0, 40))
        more = np.append(rows, generator.integers(-2000, 2000))
        share, point = Fraction(int(generator.integers(0, 101)), 100), int(generator.integers(-2000, 2000))
        tables = [np.unique(given, return_counts=True) for given in (rows, more)]
        one, other = (np.array(heights(*table, share, point, (-2048, 2048))) for table in tables)
        reach = max(share.numerator, share.denominator - share.numerator)
        greatest = max(greatest, np.abs(one - other).max() / reach)
        assert np.abs(one - other).max() <= reach
        assert np.all(np.diff(one) >= 0)  # a wider window is no lower
    assert greatest == 1


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_outcome_is_likelier_by_more_than_was_charged(epsilon: float) -> None:
    # Exact laws of heights that one row moves against each other. Noise of half the scales must be found out.
    scales = noise_scales(1, HALF, epsilon)
    generator, greatest = np.random.default_rng(), {1: 0.0, 2: 0.0}
    far = [np.array([1, 1, 1, -1]), np.array([-1, -1, 1, 1]), np.array([-1, -1, -1, 1])]
    for _ in range(40):
        sizes = np.sort(generator.integers(-6, 20, 4))[::-1]
        for change in [*far, generator.integers(-1, 2, 4)]:
            for sharper in (1, 2):
                used = tuple(scale / sharper for scale in scales)
                ratio = np.log(law(sizes, 3, used) / law(sizes + change, 3, used))
                greatest[sharper] = max(greatest[sharper], np.abs(ratio).max())
    assert greatest[1] <= epsilon * (1 + 1e-9) < greatest[2]


def test_the_sampler_follows_the_law() -> None:
    # Noise of three quarters or four thirds of the scales must be rejected.
    sizes, scales, draws = [30, 14, 9, 4, 2, -1], noise_scales(1, HALF, 0.6), 6000
    many = np.tile(sizes[::-1], (draws, 1))
    left = count_failures(many, np.ones_like(many, bool), 3, scales, secure())
    found = np.bincount(len(sizes) - left, minlength=7)

    def distance(factor: Any) -> Any:
        expected = law(sizes, 3, tuple(scale * factor for scale in scales)) * draws
        return ((found - expected) ** 2 / expected).sum()

    assert distance(1) <= chi2.isf(1e-10, 6) < min(distance(0.75), distance(4 / 3))


def test_bars_in_values_of_a_table_cover() -> None:
    generator = np.random.default_rng()
    groups, rows = 120, 400
    for x in (np.exp(generator.normal(3, 0.5, (groups, rows))), np.full((groups, rows), 40.0)):
        table = pa.table({"g": np.repeat(np.arange(groups), rows), "x": x.ravel()})
        grouped = protect(table, unit=mosha.Row()).group_by("g", keys=range(groups))
        for at in (0.5, 0.9):
            question = grouped.quantile("x", at, between=(0, 200), bars="values")
            measurement = question.measurement(Budget(epsilon=4))
            value = measurement.step(None, None, None, secure())[0]
            found = question.plan_release(Budget(epsilon=4)).answers(value)["quantile"]
            low, high = (np.quantile(x, at, axis=1, method=f"{side}er") for side in ("low", "high"))  # type: ignore[call-overload]
            bars = measurement.error(0.95, value)["quantile"]
            assert np.sum(np.maximum(low - found, found - high) <= bars) >= least(groups)
            assert np.median(bars) < 4  # of a range of 200
            assert np.all(measurement.error(0.99, value)["quantile"] == 200)


def test_a_window_without_rows_or_beyond_64_bits_is_an_answer_too() -> None:
    none = np.array([], np.int64)
    scales = noise_scales(1, HALF, 1.0)
    assert 0 <= window(none, none, HALF, 3, (0, 9), scales, secure()) <= 10
    large = noise_scales(1 << 30, HALF, 2.0**-30)
    assert large[1] > LARGEST_SCALE
    assert window(none, none, HALF, 3, (0, 9), large, secure()) == 10


def test_windows_cost_half_of_the_budget_and_are_part_of_the_price() -> None:
    table = protect(pa.table({"x": [1.0]}), unit=mosha.Row())
    plain, wide = (
        table.median("x", between=(0, 1), bars=b).measurement(Budget(epsilon=1)).event for b in ("rows", "values")
    )
    assert plain == Exponential(1.0)
    assert wide == Exponential(0.5) + Pure(0.5)
    with pytest.raises(InvalidParameter, match="rows"):
        median("x", between=(0, 1), bars="percent")  # type: ignore[arg-type]


def test_ranks_of_nested_quantiles_stray_with_the_points_above_them() -> None:
    half, most_of = (mosha.tables.quantile("x", at, between=(0, 1)).at for at in (0.5, 0.9))
    alone, both = rank_errors([half]), rank_errors([half, most_of])
    assert alone == {half: 1.0}
    share = float(half / most_of)
    assert both[most_of] == pytest.approx(1.8)
    assert both[half] == pytest.approx(share * 1.8 + 2 * max(share, 1 - share))


def test_a_quantile_that_is_mostly_noise_says_so() -> None:
    """A bar may be narrow by chance in one of twenty releases about five rows; all of ten are, in one of 1e12."""
    unit = mosha.Row()
    paying = mosha.Ledger.memory().account("a", unit=unit, epsilon=10)
    few = protect(pa.table({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}), unit=unit, account=paying)
    many = protect(pa.table({"x": np.linspace(0, 10, 10**5)}), unit=unit, account=paying)
    asked = {"x": median("x", between=(0, 10), bars="values")}
    poor = [few.aggregate(**asked).release(epsilon=0.01) for _ in range(10)]
    assert any("x is mostly noise" in note for answer in poor for note in answer.notes)
    assert "mostly noise" not in " ".join(many.aggregate(**asked).release(epsilon=1).notes)


def test_windows_of_many_groups_are_those_of_each_by_itself() -> None:
    # Without noise to speak of: the threshold is 1 in both, weights beyond 64 bits included.
    generator, scales = np.random.default_rng(), (Fraction(1, 200), Fraction(1, 200))
    for share, factor in ((HALF, 1), (Fraction(9, 10), 1), (Fraction(333, 1000), 2**61)):
        groups = [np.unique(generator.integers(-90, 90, generator.integers(0, 30))) for _ in range(50)]
        counts = [generator.integers(1, 9, len(cells)).astype(object) * factor for cells in groups]
        points, starts = generator.integers(-95, 96, 50), np.concatenate([[0], np.cumsum([len(c) for c in groups])])
        found = find_windows(
            np.concatenate(groups), np.concatenate(counts), starts, share, points, (-95, 95), scales, secure()
        )
        assert least_height(scales) <= 1 <= tallest_height(scales)
        for cells, weights, point, width in zip(groups, counts, points.tolist(), found.tolist(), strict=True):
            assert width == find_narrowest(cells, weights, share, point)


def find_narrowest(cells: Any, weights: Any, share: Any, point: Any) -> Any:
    """The narrowest window of the ladder within which the rank lies with a height of 1, by the definition."""
    total, answer = share * int(sum(weights)), 191
    for width in ladder(191).tolist()[::-1]:
        upto = int(sum(w for c, w in zip(cells.tolist(), weights, strict=True) if c <= point + width))
        below = int(sum(w for c, w in zip(cells.tolist(), weights, strict=True) if c < point - width))
        sides = [upto - total] * (point + width < 95) + [total - below] * (point - width > -95)
        if sides and min(sides) * share.denominator < 1:
            return answer
        answer = width
    return answer
