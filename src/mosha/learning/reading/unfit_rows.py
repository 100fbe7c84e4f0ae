"""Rows that cannot be used (a corrupt picture, a label out of range, another shape): they count as nothing.

A step that broke would tell that such a row is there, and would take the others with it. What broke is written to the
private log of the owner alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mosha.core.private_log import note_privately

__all__ = ["Places", "find_fit_rows"]

Places = NDArray[np.int64]


def find_fit_rows(rows: Places, attempt: Callable[[Places], object]) -> NDArray[np.bool_]:
    """Which of these rows can be used: halved until those with which the attempt breaks are alone.

    Guarantee:
        Every attempt has as many rows as were given, repeated where they are fewer. If an attempt breaks exactly where
        one of its rows breaks it alone, the answer for each row depends on this row and on nothing beside it.

    >>> def attempt(rows):
    ...     assert 3 not in rows and 8 not in rows
    >>> find_fit_rows(np.array([1, 3, 4, 3, 8]), attempt).tolist()
    [True, False, True, False, False]
    """
    unfit: set[int] = set()
    waiting = [np.unique(rows)]
    while waiting:
        some = waiting.pop()
        try:
            attempt(np.resize(some, len(rows)))
        except Exception as error:  # noqa: BLE001
            if len(some) > 1:
                waiting += np.array_split(some, 2)
                continue
            note_privately("a row of a training cannot be used, and counts as nothing", error)
            unfit.update(map(int, some))
    return np.array([int(row) not in unfit for row in rows], np.bool_)
