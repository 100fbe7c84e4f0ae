"""Labels of vertices: whole numbers before text, each read and placed by itself."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.exact.canonical import canonical_form

__all__ = ["read_end", "read_label", "sort_rank", "whole_numbers"]

_WHOLE = re.compile(r"-?0*[0-9]{1,19}", re.ASCII)
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
UNREADABLE = "?"


def read_end(value: object) -> int | str | None:
    """The label that one end of an edge names; None where it names none.

    Guarantee:
        A function of the value alone that never fails: whole numbers of 64 bits, written as numbers or in digits, are
        int, everything else is text.

    >>> [read_end(value) for value in (7, 7.0, "0007", "-1", "x7", 0.5, 2**63, None, float("nan"))]
    [7, 7, 7, -1, 'x7', '0.5', '9223372036854775808', None, None]
    """
    form = canonical_form(value)
    if form is None:
        return None
    if type(form) is str and _WHOLE.fullmatch(form):
        number = int(form)
        return number if _FIRST <= number <= _LAST else form
    if isinstance(form, int) and _FIRST <= form <= _LAST:
        return int(form)
    return form if type(form) is str else repr(form)


def read_label(value: object) -> int | str:
    """The label of a vertex: what cannot be read is one as well."""
    found = read_end(value)
    return UNREADABLE if found is None else found


def sort_rank(value: object) -> tuple[bool, int, bytes]:
    """The key that labels are ordered by: numbers by value, then text by its bytes, whatever other labels there are.

    >>> sorted(["b", 10, "a", 9, "11"], key=sort_rank)
    [9, 10, '11', 'a', 'b']
    """
    label = read_label(value)
    if isinstance(label, int):
        return False, label, b""
    return True, 0, label.encode("utf-8", "surrogatepass")


def whole_numbers(side: NDArray[Any]) -> NDArray[np.int64]:
    """Ends as numbers; -1, which is no vertex, for text."""
    if side.dtype == np.int64:
        return side
    return np.array([label if isinstance(label, int) else -1 for label in side.tolist()], np.int64)
