"""Several steps at once: one answer, one note in the ledger and one write of the state for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer

__all__ = ["Batches"]


class Batches:
    """The rows of several steps, in their order: `run.step(Batches([monday, tuesday]))` answers for both.

    The answers are the very numbers that single steps give. `Batches.at` takes rows that say themselves which step they
    belong to, which is much quicker where steps are many and small.

    Guarantee:
        How many steps there are is public. Which step a row belongs to depends on that row alone; a row before the
        first or after the last one is left out, which concerns nobody else.

    >>> Batches([[1, 1], [], [1]]).count
    3
    >>> Batches.at(["a", "b", "c"], steps=[0, 2, 9], count=3).batch(2).tolist()
    ['b']
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        if isinstance(batches, Mapping | str | bytes) or hasattr(batches, "columns"):
            raise InvalidParameter("Batches([...]) takes a list of batches, one for each step, or use Batches.at(...).")
        self._batches: list[Any] | None = list(batches)
        self.count = positive_integer("the number of steps", len(self._batches))
        self.rows: Any = None
        self.offsets: NDArray[np.int64] = np.zeros(0, np.int64)
        self._outside = False

    @classmethod
    def at(cls, rows: Any, *, steps: Any, count: int) -> Batches:
        """Rows (one column, or columns by name) and for each the step it is in: 0, 1, ..., count - 1 from now on."""
        made = cls.__new__(cls)
        made.count = positive_integer("the number of steps", count)
        made._batches = None  # noqa: SLF001  (its own)
        offsets = np.asarray(steps)
        if offsets.ndim != 1 or (offsets.size and offsets.dtype.kind not in "iu"):
            raise DataError("steps=... has a whole number for each row: which of these steps it is in.")
        names: Any = (
            rows if isinstance(rows, Mapping) else getattr(rows, "column_names", getattr(rows, "columns", None))
        )
        by_name = names is not None and not callable(names)  # a dict, or a frame of Arrow, pandas or Polars
        listed = list(names) if by_name else []
        made.rows = {str(name): np.asarray(rows[name]) for name in listed} if by_name else np.asarray(rows)
        for column in made.rows.values() if by_name else [made.rows]:
            if column.shape[:1] != offsets.shape:
                raise DataError("steps=... and every column have an entry for each row.")
        within = (offsets >= 0) & (offsets < made.count) if offsets.size else np.zeros(0, bool)
        made._outside = not bool(within.all())  # noqa: SLF001
        made.offsets = np.where(within, offsets, -1).astype(np.int64)
        return made

    def per_step(self) -> NDArray[np.int64] | None:
        """How many rows each step has, where rows say their step themselves."""
        if self._batches is not None:
            return None
        return np.bincount(self.offsets[self.offsets >= 0] if self._outside else self.offsets, minlength=self.count)

    def batch(self, number: int) -> Any:
        """The rows of one of these steps; 0 is the first."""
        return self.listed()[number]

    def listed(self) -> list[Any]:
        """The rows of each step."""
        if self._batches is None:
            order = np.argsort(self.offsets, kind="stable")
            ends = np.cumsum(np.bincount(self.offsets + 1, minlength=self.count + 1))
            parts = [order[start:end] for start, end in pairwise(ends)]
            if isinstance(self.rows, dict):
                self._batches = [{name: column[part] for name, column in self.rows.items()} for part in parts]
            else:
                self._batches = [self.rows[part] for part in parts]
        return self._batches
