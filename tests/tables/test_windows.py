"""Error bars of quantiles in the unit of the column: what they cost, what one row moves, and that they cover."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import mosha
from mosha.errors import InvalidParameter
from mosha.events import Exponential
from mosha.tables import Budget, median, protect
from mosha.tables.points import rank_errors
from mosha.tables.windows import CONFIDENCE, distances, ladder

GROUPS, MANY = 120, 400


def shapes(generator, rows):
    smooth = np.exp(generator.normal(3, 0.5, (MANY if rows == 400 else GROUPS, rows)))
    far = np.where(generator.random((GROUPS, rows)) < 0.5, 10.0, 90.0) + generator.normal(0, 0.01, (GROUPS, rows))
    same = np.full((GROUPS, rows), 40.0)
    return {"smooth": smooth, "two heaps": far, "one point": same}


@pytest.mark.parametrize("rows", [9, 400])
@pytest.mark.parametrize("at", [0.5, 0.9])
def test_the_true_quantile_lies_in_the_window(rows, at):
    # False alarm: a binomial tail of 1e-10 for each of 12 tests. Windows of a hundredth hold 0.7 of many smooth groups:
    # they are rejected but for 1e-12.
    for name, x in shapes(np.random.default_rng(), rows).items():
        groups = len(x)
        least = binom.ppf(1e-10, groups, CONFIDENCE)
        table = pa.table({"g": np.repeat(np.arange(groups), rows), "x": x.ravel()})
        grouped = protect(table, unit=mosha.Row()).group_by("g", keys=range(groups))
        question = grouped.quantile("x", at, between=(0, 200), bars="values")
        measurement = question.measurement(Budget(epsilon=4))
        value = measurement.step(None, None, None, mosha.noise.secure())[0]
        found = question._answers(question.parts(Budget(epsilon=4)), value)["quantile"]
        low, high = (np.quantile(x, at, axis=1, method=f"{side}er") for side in ("low", "high"))
        missed = np.maximum(np.maximum(low - found, found - high), 0)
        bars = measurement.error(0.95, value)["quantile"]
        assert np.sum(missed <= bars) >= least
        if name == "smooth" and rows == 400:
            assert np.sum(missed <= bars * 0.01) < least
            assert np.median(bars) < 40  # of a range of 200
        assert np.all(measurement.error(0.99, value)["quantile"] == 200)


def test_one_row_moves_scores_within_a_range_of_two():
    generator = np.random.default_rng()
    widths = ladder(1 << 12)
    for _ in range(300):
        rows = generator.integers(0, 1 << 12, generator.integers(0, 40))
        more = np.append(rows, generator.integers(0, 1 << 12))
        reached = [(side[:, None] <= widths).sum(axis=0) for side in (rows, more)]
        target = int(generator.integers(1, 30))
        moved = distances(reached[1], target) - distances(reached[0], target)
        assert moved.max() - moved.min() <= 2
        assert distances(reached[0], target).min() == 0


def test_windows_cost_half_of_the_budget_and_are_part_of_the_price():
    table = protect(pa.table({"x": [1.0]}), unit=mosha.Row())
    plain, wide = (
        table.median("x", between=(0, 1), bars=b).measurement(Budget(epsilon=1)).event for b in ("rows", "values")
    )
    assert plain == Exponential(1.0)
    assert wide == Exponential(0.5) * 2
    with pytest.raises(InvalidParameter, match="rows"):
        median("x", between=(0, 1), bars="percent")


def test_ranks_of_nested_quantiles_stray_with_the_points_above_them():
    half, most = (mosha.tables.quantile("x", at, between=(0, 1)).at for at in (0.5, 0.9))
    alone, both = rank_errors([half]), rank_errors([half, most])
    assert alone == {half: 1.0}
    share = float(half / most)
    assert both[most] == pytest.approx(1.8)
    assert both[half] == pytest.approx(share * 1.8 + 2 * max(share, 1 - share))
