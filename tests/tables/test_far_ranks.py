"""Ranks of quantiles beyond 64 bits: weights of 10**8 persons and shares with large denominators."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.tables.mechanisms import rank_choice
from tests.tables.one_group import choose_point

SHARES = [
    Fraction(100, 997),
    Fraction(230 * 10**6 + 1, 991 * 10**6 + 7),
    Fraction(1, 2),
    Fraction(10**12 + 39, 3 * 10**12 + 7),
]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("persons", [10**3, 10**8, 10**11])
def test_a_quantile_of_very_many_weighted_rows_is_found(share: Any, persons: Any) -> None:
    """The scale is so small that only the right point is left; one person more changes no type and raises nothing."""
    cells = np.arange(0, 1000, dtype=np.int64)
    for extra in (0, 1):
        counts = np.full(cells.size, persons * 2**11 // 1000, dtype=np.int64)
        counts[7] += extra
        point = choose_point(cells, counts, (-5, 2000), share, Fraction(1, 1000), mosha.noise.secure())
        ranks = np.cumsum(counts.astype(object))
        place = int(np.searchsorted(ranks, int(share * ranks[-1])))
        assert abs(point - place) <= 1


def make_cells(groups: Any, source: Any) -> Any:
    """Lines (group, cell, rows, upto, total) as an engine tells them: of some cells nothing is known but their sum."""
    lines = []
    for group in range(groups):
        cells = np.sort(source.choice(30, int(source.integers(0, 6)), replace=False)) * 2 + 1
        rows = source.integers(1, 4, len(cells))
        hidden = source.integers(0, 3, len(cells) + 1)
        upto = np.cumsum(rows + hidden[:-1])
        total = int(rows.sum() + hidden.sum())
        lines += [(group, *line, total) for line in zip(cells.tolist(), rows.tolist(), upto.tolist(), strict=True)]
    return lines


def test_cells_in_any_order_give_the_same_ranks_and_nothing_that_is_hidden_is_lost() -> None:
    source = np.random.default_rng()
    for _ in range(200):
        groups = int(source.integers(1, 6))
        lines = make_cells(groups, source)
        ordered = np.array(lines, np.int64).reshape(-1, 5)
        shuffled = source.permutation(np.vstack([ordered, [[-1, 3, 1, 1, 1]]]))
        first, second = (rank_choice.Ranked.of(*columns.T, groups) for columns in (ordered, shuffled))  # type: ignore[call-arg]
        for name in ("cells", "counts", "starts", "lumps"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
        owners = np.repeat(np.arange(groups), np.diff(first.starts))
        sums = np.bincount(owners, weights=first.counts, minlength=groups)
        totals = {group: total for group, *_, total in lines}
        assert sums.tolist() == [totals.get(group, 0) for group in range(groups)]
        for group in range(groups):
            mine = first.cells[first.starts[group] : first.starts[group + 1]]
            assert (np.diff(mine) > 0).all()


def test_a_group_that_is_gone_from_a_wider_look_has_no_rows_and_not_those_of_another() -> None:
    """Its place was that of the last group, whose rows would have counted in two groups."""
    cells, counts, starts = np.array([3, 5]), np.array([2, 4]), np.array([0, 1, 2])
    found = rank_choice.Ranked(cells, counts, starts, np.zeros(2, np.bool_)).pick(np.array([1, -1, 0]))
    assert (found.starts.tolist(), found.cells.tolist(), found.counts.tolist()) == ([0, 1, 1, 2], [5, 3], [4, 2])
    assert rank_choice.Ranked.empty(0).pick(np.array([-1])).starts.tolist() == [0, 0]
