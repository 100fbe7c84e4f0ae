"""Tables as the attacks read them: columns by name, all of one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError

__all__ = ["Columns", "classes", "columns", "distances", "pick"]

Columns = dict[str, NDArray[Any]]


def columns(table: object, *, needs: Sequence[str] = ()) -> Columns:
    """The columns of a mapping or a data frame, as arrays.

    >>> columns({"age": [30, 40], "ward": ["a", "b"]})["age"]
    array([30, 40])
    """
    if not (isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "__getitem__"))):
        raise DataError("audit.not_a_table", parameter="table")
    names = list(table.keys()) if isinstance(table, Mapping) else list(table.columns)
    missing = [name for name in needs if name not in names]
    if missing:
        raise DataError("audit.no_column", column=str(missing[0]), columns=[str(name) for name in names])
    found = {str(name): np.asarray(table[name]) for name in names}
    if len({len(column) for column in found.values()}) > 1 or any(column.ndim != 1 for column in found.values()):
        raise DataError("audit.columns_of_other_length", parameter="table")
    return found


def classes(table: Columns, names: Sequence[str]) -> NDArray[np.int64]:
    """The number of the class of each row: rows that agree in all these columns share one."""
    if not names:
        return np.zeros(len(next(iter(table.values()), np.zeros(0))), dtype=np.int64)
    codes = np.zeros(len(table[names[0]]), dtype=np.int64)
    for name in names:
        text = table[name].astype(str) if table[name].dtype.kind == "O" else table[name]
        _, inner = np.unique(text, return_inverse=True)
        _, codes = np.unique(codes * (inner.max(initial=0) + 1) + inner, return_inverse=True)
    return codes.astype(np.int64)


def pick(table: Columns, rows: Any) -> Columns:
    """The table with these rows only."""
    return {name: column[rows] for name, column in table.items()}


def distances(rows: Columns, others: Columns, names: Sequence[str]) -> NDArray[np.float64]:
    """Gower's distance of every row to every other: numbers in units of their range, the rest equal or not."""
    total = np.zeros((len(rows[names[0]]), len(others[names[0]])), dtype=np.float32)
    for name in names:
        one, two = rows[name], others[name]
        if one.dtype.kind in "biuf" and two.dtype.kind in "biuf":
            spread = float(np.ptp(two.astype(np.float64))) or 1.0
            gap = np.abs(one.astype(np.float32)[:, None] - two.astype(np.float32)[None, :]) / np.float32(spread)
            total += np.minimum(gap, 1.0)
        else:
            total += one.astype(str)[:, None] != two.astype(str)[None, :]
    return (total / len(names)).astype(np.float64)
