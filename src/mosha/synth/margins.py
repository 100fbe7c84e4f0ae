"""What comes back from a question about marginals: noisy tables that agree with each other, with exact error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosha.connect.language.schema import Type
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.number import strict_probability
from mosha.core.options import EstimateGrade
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.mechanisms.error_bars import gaussian_width
from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import Measured
from mosha.synth.measuring.columns import CodedColumn, NarrowedColumn
from mosha.synth.modelling.oneways import nearest_counts

__all__ = ["Estimate", "Marginals", "narrow_column", "selection_of", "takes_whole_cells"]

EPOCH = date(1970, 1, 1).toordinal()
WHOLE = 1e-9
"""A part of a cell that is so near to nothing or to all of it is that."""


@dataclass(frozen=True)
class Estimate:
    """A number, `value`, with `error`, the half-width of its error bar; `grade` says what stands behind it.

    *certified*: unbiased, with an exact error bar. *modelled*: what a model says, without an error bar.

    >>> Estimate(12.0, 3.0).grade
    'certified'
    """

    value: float
    error: float | None
    grade: EstimateGrade = "certified"

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.6g} (modelled, no error bar)"
        return f"{self.value:.6g} ± {self.error:.3g} (certified)"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Marginals(Shown):
    """Noisy marginals: publish them, add them up, compare them, as often as you like.

    Made by a release: `columns` with their cells, the `sets` that were asked, what was `measured`, and the `receipt`.
    Methods take the `name` or `names` of columns, the `chosen` cells and their `coefficients`, and the `confidence` of
    error bars.

    Guarantee:
        Everything here is post-processing of what was paid for. Cells are unbiased, and sums over a column are the same
        in every marginal that has it.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("people", unit=mosha.Row(), epsilon=8, delta=1e-6)
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row(), account=account)
    >>> keys = {"sex": ["F", "M"], "job": ["a", "b"]}
    >>> answer = people.marginals(columns=["sex", "job"], keys=keys).release(epsilon=5, delta=1e-6)
    >>> answer.marginal("sex", "job").shape  # a cell for values outside the keys, too
    (3, 3)
    """

    columns: tuple[CodedColumn, ...]
    sets: tuple[tuple[int, ...], ...]
    measured: Measured
    receipt: Receipt

    def __repr__(self) -> str:
        return f"Marginals({len(self.sets)} marginals of {', '.join(column.name for column in self.columns)})"

    def make_card(self) -> Card:
        """Which marginals there are, and what was paid."""
        facts = [
            (say("synth.shown_count"), f"{len(self.sets):,}"),
            (say("synth.shown_columns"), ", ".join(column.name for column in self.columns)),
        ]
        return Card(title=say("synth.shown_marginals"), facts=facts, notes=[str(self.receipt)])

    def _place(self, name: str) -> int:
        for place, column in enumerate(self.columns):
            if column.name == name:
                return place
        raise InvalidParameter(
            "synth.unknown_column", parameter="column", column=name, columns=[c.name for c in self.columns]
        )

    @cached_property
    def _asked(self) -> frozenset[frozenset[int]]:
        return frozenset(frozenset(one) for one in self.sets)

    def _find_columns(self, names: Sequence[str]) -> tuple[int, ...]:
        chosen = tuple(self._place(name) for name in names)
        wanted = frozenset(chosen)
        if wanted not in self._asked and not any(wanted <= one for one in self._asked):
            raise InvalidParameter("synth.not_measured", parameter="columns", columns=list(names))
        return chosen

    def marginal(self, *names: str, nonnegative: bool = False) -> Reals:
        """The table of some columns, an axis for each in this order.

        With `nonnegative`, the nearest table without negative cells and with the same sum: small cells are then too
        large and large ones too small on average, and error bars no longer hold for it.
        """
        table = self.measured.marginal(self._find_columns(names))
        return nearest_counts(table) if nonnegative else table

    def error(self, *names: str, confidence: float = 0.95) -> Reals:
        """The half-width of the error bar of every cell."""
        variance = self.measured.cell_variance(self._find_columns(names))
        return np.sqrt(variance) * _quantile(confidence)

    def labels(self, name: str) -> tuple[object, ...]:
        """What the cells of a column are called."""
        return self.columns[self._place(name)].labels

    def table(self, *names: str, confidence: float = 0.95) -> dict[str, list[Any]]:
        """A marginal as columns: the labels, the count and the half-width of its error bar."""
        chosen = self._find_columns(names)
        counts, errors = self.marginal(*names), self.error(*names, confidence=confidence)
        places = np.indices(counts.shape).reshape(len(chosen), counts.size)
        found: dict[str, list[Any]] = {
            self.columns[c].name: [self.columns[c].labels[i] for i in places[axis]] for axis, c in enumerate(chosen)
        }
        return found | {"count": counts.reshape(-1).tolist(), "error": errors.reshape(-1).tolist()}

    def count(self, *, confidence: float = 0.95, **chosen: object) -> Estimate:
        """How many rows lie in chosen cells: a value, a list of values, or a range (low, high) of an ordered column.

        A range that cuts cells is answered as if their rows were spread evenly: modelled, without an error bar.

        >>> # answer.count(sex="F", age=(18, 65))
        """
        selections = {name: selection_of(self.columns[self._place(name)], wish) for name, wish in chosen.items()}
        found = self.query(selections, confidence=confidence)
        return found if takes_whole_cells(selections.values()) else Estimate(found.value, None, "modelled")

    def query(self, coefficients: Mapping[str, ArrayLike], *, confidence: float = 0.95) -> Estimate:
        """A linear query: for each column a coefficient for every cell; a cell counts with the product of its own."""
        places = self._find_columns(tuple(coefficients))
        rows = [np.asarray(c, np.float64).reshape(1, -1) for c in coefficients.values()]
        for place, row in zip(places, rows, strict=True):
            if row.shape[1] != self.columns[place].size:
                raise InvalidParameter("synth.wrong_coefficients", column=self.columns[place].name,
                                       cells=self.columns[place].size)  # fmt: skip
        table = self.measured.marginal(places)
        for row in rows:
            table = np.tensordot(row[0], table, axes=(0, 0))
        variance = float(self.measured.variance(dict(zip(places, rows, strict=True)))[0])
        return Estimate(float(table), float(np.sqrt(variance)) * _quantile(confidence))


def selection_of(column: CodedColumn, wish: object) -> Reals:
    """1 for each cell that is meant, 0 for the others; a range takes a part of the cells that it cuts.

    Both ends of a range of whole numbers or dates belong to it. A wish that no cell meets is refused.
    """
    chosen = np.zeros(column.size)
    limits = _read_range(column, wish)
    if limits is not None:
        low, high = limits
        if column.edges is not None:
            edges = np.array(column.edges)
            overlap = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
            part = np.clip(overlap / np.diff(edges), 0, 1)
            chosen[: column.known_cells] = np.where(np.abs(part - np.rint(part)) < WHOLE, np.rint(part), part)
        else:
            values = np.array(column.labels[: column.known_cells], np.float64)
            chosen[: column.known_cells] = (values >= low) & (values <= high)
    else:
        for one in wish if isinstance(wish, list | set | frozenset) else [wish]:
            chosen[_find_cell(column, one)] = 1.0
    if not chosen.any():
        raise InvalidParameter("synth.no_cell_chosen", parameter=column.name, column=column.name)
    return chosen


def narrow_column(column: CodedColumn, wish: object) -> CodedColumn:
    """The column of rows that meet a wish: where it is a range, their values stay inside."""
    low, high = (column.edges and _read_range(column, wish)) or (-math.inf, math.inf)
    return NarrowedColumn(
        column.name, column.kind, column.labels, column.edges, column.groups, column.missing, low, high
    )


def takes_whole_cells(selections: Iterable[Reals]) -> bool:
    """Whether no cell is cut: what part of a cell's rows lies in a part of it was not measured."""
    return all(bool(np.isin(selection, (0.0, 1.0)).all()) for selection in selections)


def _find_cell(column: CodedColumn, value: object) -> int:
    try:
        cell = int(column.encode([value])[0])
    except (TypeError, ValueError):
        cell = -1
    if cell < 0 or (cell == column.known_cells and value is not None):
        raise InvalidParameter("synth.unknown_value", parameter=column.name, column=column.name)
    return cell


def _read_range(column: CodedColumn, wish: object) -> tuple[float, float] | None:
    """The ends of a range as numbers, dates as days since 1970; where cells hold whole ones, the end of the last one.

    None where a wish is no range.
    """
    if not (isinstance(wish, tuple) and len(wish) == 2 and column.is_ordered):
        return None
    low, high = (
        float(mark.toordinal() - EPOCH) if isinstance(mark, date)
        else float(mark) if isinstance(mark, int | float | np.number)
        else math.nan
        for mark in wish
    )  # fmt: skip
    if not low <= high:
        raise InvalidParameter("synth.unreadable_range", parameter=column.name, column=column.name)
    if column.edges is not None and column.kind is not Type.REAL:
        return float(np.ceil(low)), float(np.floor(high)) + 1
    return low, high


def _quantile(confidence: float) -> float:
    return gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30
