"""Linear programmes in exact fractions: slow, and never at a loss; for when floats did not come close enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["maximize"]

Row = dict[int, Fraction]


def maximize(
    columns: Sequence[Mapping[int, int]], gains: Sequence[int], limits: Sequence[int]
) -> tuple[Fraction, list[Fraction]]:
    """The largest gain of amounts x >= 0 of some columns whose sum stays within limits >= 0, and a price of each limit.

    Guarantee:
        Exact: the simplex method on fractions, from x = 0. The pivots follow Bland's rule, under which no basis comes
        twice, so it ends. Every column with a gain has a positive entry, or the gain would have no bound.

    Units:
        `columns` maps the number of a limit to what one amount takes of it.

    >>> maximize([{0: 1, 1: 1}, {0: 1}, {1: 1}], [1, 1, 1], [2, 3])
    (Fraction(5, 1), [Fraction(1, 1), Fraction(1, 1)])
    """
    count = len(columns)
    rows: list[Row] = [{count + i: Fraction(1)} for i in range(len(limits))]
    for j, column in enumerate(columns):
        for i, taken in column.items():
            rows[i][j] = Fraction(taken)
    right, basis = [Fraction(limit) for limit in limits], [count + i for i in range(len(limits))]
    reduced: Row = {j: Fraction(gain) for j, gain in enumerate(gains)}
    value = Fraction(0)
    while (entering := min((j for j, gain in reduced.items() if gain > 0), default=None)) is not None:
        fits = [(right[i] / row[entering], basis[i], i) for i, row in enumerate(rows) if row.get(entering, 0) > 0]
        amount, _, leaving = min(fits)
        value += reduced[entering] * amount
        pivot = rows[leaving][entering]
        rows[leaving] = {j: entry / pivot for j, entry in rows[leaving].items()}
        right[leaving], basis[leaving] = amount, entering
        for i, row in enumerate(rows):
            if i != leaving and entering in row:
                right[i] -= row[entering] * amount
                _subtract(row, rows[leaving], row[entering])
        _subtract(reduced, rows[leaving], reduced[entering])
    return value, [-reduced.get(count + i, Fraction(0)) for i in range(len(limits))]


def _subtract(row: Row, other: Row, times: Fraction) -> None:
    for j, entry in other.items():
        left = row.get(j, Fraction(0)) - times * entry
        if left:
            row[j] = left
        else:
            row.pop(j, None)
