"""Derived columns and conditions that no row can meet, on synthetic and on public rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.expression import Expression
from mosha.core.errors import InvalidParameter
from mosha.synth.computing import evaluate
from mosha.synth.measuring.columns import CodedColumn

__all__ = ["check_conditions", "decode_cells", "derive_columns", "find_broken_rows"]

TRIAL = 20_000
"""Rows of the public domain on which conditions are tried before anything is paid."""

Cells = Sequence[NDArray[np.int64]]


def decode_cells(columns: Sequence[CodedColumn], cells: Cells, generator: np.random.Generator) -> dict[str, Any]:
    """A value for every cell of every row, by the name of its column."""
    return {
        column.name: column.decode(numbers, generator.random(len(numbers)))
        for column, numbers in zip(columns, cells, strict=True)
    }


def derive_columns(
    found: dict[str, object], derived: Mapping[str, Expression], columns: Sequence[CodedColumn]
) -> dict[str, Any]:
    """The rows with their derived columns, each computed from those before it."""
    for name, expression in derived.items():
        found = found | {name: evaluate(expression, found, columns)}
    return found


def find_broken_rows(
    found: dict[str, Any],
    never: Sequence[Expression],
    derived: Mapping[str, Expression],
    columns: Sequence[CodedColumn],
) -> NDArray[np.bool_]:
    """Which rows meet a condition that no row can meet."""
    complete = derive_columns(found, derived, columns)
    wrong = np.zeros(len(next(iter(found.values()))), bool)
    for condition in never:
        values = evaluate(condition, complete, columns)
        if not all(value is None or isinstance(value, bool) for value in values):
            raise InvalidParameter("synth.not_a_condition", parameter="never")
        wrong |= np.array([value is True for value in values])
    return wrong


def check_conditions(
    columns: Sequence[CodedColumn], derived: Mapping[str, Expression], never: Sequence[Expression]
) -> None:
    """Refuse, before anything is paid, what cannot be computed and conditions that hardly any row escapes.

    Both are tried on rows that are spread evenly over the public cells; the private table is not read.
    """
    if not derived and not never:
        return
    generator = np.random.default_rng(0)
    rows = TRIAL if never else 1
    cells = [generator.integers(0, column.size, rows) for column in columns]
    if find_broken_rows(decode_cells(columns, cells, generator), never, derived, columns).all():
        raise InvalidParameter("synth.contradictory_conditions", parameter="never", spent="nothing")
