"""A dict of columns as a table: one kind of value in each column, None where one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError

__all__ = ["has_half_character", "read_plain_columns"]

KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("boolean", (bool, np.bool_)),
    ("number", (int, float, np.integer, np.floating)),
    ("text", (str,)),
    ("moment", (datetime, np.datetime64)),
    ("date", (date,)),
)


def read_plain_columns(columns: Mapping[str, object]) -> dict[str, NDArray[np.generic]]:
    """Arrays that DuckDB reads in place; which kind of value a column holds is public, and only one is allowed.

    >>> read_plain_columns({"ward": ["A", None], "days": [1, 2]})["ward"].dtype
    dtype('O')
    """
    if not columns:
        raise DataError("connect.no_columns", spent="nothing")
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str) or not name:
            raise DataError("connect.column_names_text", spent="nothing")
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise DataError("connect.column_not_a_list", column=name, spent="nothing")
        arrays[name] = _make_array(name, values)
    if len({len(array) for array in arrays.values()}) > 1:
        raise DataError("connect.columns_of_other_length", spent="nothing")
    return arrays


def _make_array(name: str, values: Iterable[object]) -> NDArray[np.generic]:
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iufbM":
        return values
    listed = list(values)
    kinds = {_kind_of(value) for value in listed if value is not None}
    if len(kinds) > 1 or "" in kinds:
        raise DataError("connect.column_of_many_kinds", column=name, spent="nothing")
    if kinds == {"text"} and any(has_half_character(str(value)) for value in listed if value is not None):
        raise DataError("connect.text_not_utf8", column=name, spent="nothing")
    if not kinds:
        listed, kinds = [""] * len(listed), {"text"}  # a column without a value is one of empty texts
    array = np.empty(len(listed), object)
    array[:] = [value.item() if isinstance(value, np.generic) else value for value in listed]
    return array


def has_half_character(text: str) -> bool:
    """Whether a text has half of a surrogate pair, which Python and JSON can write and no engine reads."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _kind_of(value: object) -> str:
    return next((name for name, types in KINDS if isinstance(value, types)), "")
