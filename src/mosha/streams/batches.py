"""Several steps at once: one answer, one note in the ledger and one write of the state for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer
from mosha.exact.bounding import to_array, to_numbers

__all__ = ["Batches", "leave_rows_out", "read_columns", "steps_in"]


@final
class Batches:
    """The rows of several steps, in their order: `run.step(Batches([monday, tuesday]))` answers for both.

    The answers are the very numbers that single steps give. `Batches.at` takes rows that say themselves which step they
    belong to, which is much quicker where steps are many and small.

    `batches` are what single steps take, one after the other.

    Guarantee:
        How many steps there are is public. Which step a row belongs to depends on that row alone; a row before the
        first or after the last one, or whose step is no whole number, is left out, which concerns nobody else. Entries
        of a list stay what they are, whatever the others are.

    >>> Batches([[1, 1], [], [1]]).count
    3
    >>> Batches.at(["a", "b", "c"], steps=[0, 2, 9], count=3).batch(2).tolist()
    ['b']
    """

    __slots__ = ("_batches", "_count", "_outside", "offsets", "rows")

    def __init_subclass__(cls, **kwargs: object) -> None:
        raise TypeError("Batches has no subclasses: how many steps it has must be what it says.")

    def __init__(self, batches: Iterable[object]) -> None:
        if isinstance(batches, Mapping | str | bytes) or hasattr(batches, "columns"):
            raise InvalidParameter("streams.not_batches", parameter="batches")
        self._batches: list[Any] | None = list(batches)
        self._count = positive_integer("the number of steps", len(self._batches))
        self.rows: Any = None
        self.offsets: NDArray[np.int64] = np.zeros(0, np.int64)
        self._outside = False

    @classmethod
    def at(cls, rows: object, *, steps: object, count: int) -> Batches:
        """The `rows` (one column, or columns by name), each in one of `steps`: 0, 1, ..., `count` - 1 from now on."""
        made = cls.__new__(cls)
        made._count = positive_integer("the number of steps", count)  # noqa: SLF001  (its own)
        made._batches = None  # noqa: SLF001
        offsets = to_array(steps)
        if offsets.ndim != 1 or (offsets.size and offsets.dtype.kind not in "iufO"):
            raise DataError("streams.steps_not_whole", parameter="steps")
        if rows is None or isinstance(rows, str | bytes | int | float) or getattr(rows, "ndim", 1) == 0:
            raise DataError("streams.batches_without_rows", parameter="rows")
        named = read_columns(rows)
        made.rows = to_array(rows) if named is None else named
        columns = [made.rows] if named is None else list(named.values())
        if not columns or any(column.shape[:1] != offsets.shape for column in columns):
            raise DataError("streams.batch_lengths_differ", parameter="steps")
        if offsets.dtype.kind not in "iu":  # one by one: what is no number is NaN, which is in no step
            offsets = to_numbers(offsets)
            offsets = np.where(offsets == np.floor(offsets), offsets, -1)
        within = (offsets >= 0) & (offsets < made.count)
        made._outside = not bool(within.all())  # noqa: SLF001
        made.offsets = np.where(within, offsets, -1).astype(np.int64)
        return made

    @property
    def count(self) -> int:
        """How many steps these are."""
        return self._count if self._batches is None else len(self._batches)

    def per_step(self) -> NDArray[np.int64] | None:
        """How many rows each step has, where rows say their step themselves."""
        if self._batches is not None:
            return None
        return np.bincount(self.offsets[self.offsets >= 0] if self._outside else self.offsets, minlength=self.count)

    def batch(self, number: int) -> Any:
        """The rows of step `number` of these; 0 is the first."""
        return self.list_batches()[number]

    def list_batches(self) -> list[Any]:
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


def steps_in(data: object) -> int:
    """How many steps some data are for, which is public; nothing of the data is looked at."""
    return data.count if type(data) is Batches else 1


def read_columns(data: Any) -> dict[str, NDArray[Any]] | None:
    """The columns of a dict, or of a frame of Arrow, pandas or Polars; None for anything else."""
    names = _list_columns(data)
    return None if names is None else {str(name): to_array(data[name]) for name in names}


def _list_columns(data: Any) -> list[Any] | None:
    """The names of the columns of a dict or a frame, of which nothing else is looked at; None for anything else."""
    names: Any = data if isinstance(data, Mapping) else getattr(data, "column_names", getattr(data, "columns", None))
    return None if names is None or callable(names) else list(names)


def leave_rows_out(batch: Any) -> Any:
    """The same kind of batch without a row, made without reading one."""
    names = _list_columns(batch)
    if names is not None:
        return {str(name): batch[name][:0] for name in names}
    if isinstance(batch, tuple):
        return tuple([] for _ in batch)
    return [] if hasattr(batch, "__len__") or hasattr(batch, "__iter__") else batch
