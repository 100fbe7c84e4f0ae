"""Who has how much: totals of people from labels that come in batches, and where each label stands among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosha.connect.kernels.columns import COUNT, KNOWN
from mosha.connect.plan.source import Array

__all__ = ["Labels", "Leader", "People", "TooManyPeople"]

FEW, LEAST = 2**24, -(2**63)  # totals below FEW are ranked by looking them up


class TooManyPeople(Exception):
    """People or groups take more memory than they may."""


def begin_labels() -> tuple[Array, Array, int]:
    """What `enter_labels` knows before the first label."""
    return np.full(1 << 16, -1, np.int32), np.empty(1 << 16, np.int64), 0


class Labels:
    """Codes of labels from 0 on: of a range that is known, or in the order in which they first came."""

    def __init__(self, known: range | None, memory: int) -> None:
        self._range, self._memory = known, memory
        self._codes: Any = begin_labels()

    @property
    def size(self) -> int:
        return len(self._range) if self._range is not None else int(self._codes[2])

    @property
    def labels(self) -> Array:
        """The label of each code."""
        if self._range is not None:
            return np.arange(self._range.start, self._range.stop)
        return np.asarray(self._codes[1][: self.size])

    def learn(self, labels: Array) -> Array | None:
        """Enter labels; where the range is known, which of them lie inside."""
        from mosha.connect.kernels.column_kernels import enter_labels  # noqa: PLC0415  (numba is an extra and takes time to load)

        if self._range is not None:
            return (labels >= self._range.start) & (labels < self._range.stop)
        codes = np.empty(len(labels), np.int32)
        self._codes = enter_labels(labels.astype(np.int64, copy=False), self._codes, codes)
        if 16 * len(self._codes[0]) > self._memory:
            raise TooManyPeople
        return None

    def find(self, labels: Array | None, rows: int) -> tuple[Array | None, Array | None]:
        """(codes, which rows they are of): None for all rows, and no codes where a label is not known."""
        from mosha.connect.kernels.pass_kernels import places_in  # noqa: PLC0415

        codes = np.zeros(rows, np.int32)
        if labels is None or (self._range is None and self._look_up(labels, codes)):
            return codes, None
        if self._range is None:
            return None, None
        if places_in(labels, self._range.start, len(self._range), codes):
            return codes, None
        inside = self.learn(labels)
        assert inside is not None
        return (labels[inside] - self._range.start).astype(np.int32), inside

    def _look_up(self, labels: Array, codes: Array) -> bool:
        from mosha.connect.kernels.column_kernels import find_labels  # noqa: PLC0415

        return bool(find_labels(labels.astype(np.int64, copy=False), self._codes, codes))


@dataclass(frozen=True)
class Leader:
    """A value by whose total people are bounded: totals[rank] is that of all people with this rank.

    Of whole numbers of rows, of which few differ, `book` has a line for each place: its rank, and what it had in this
    reading so far. Of other values each place has a rank of its own, and `again` is what it had.
    """

    code: int
    totals: Array
    book: Array | None
    again: Array

    def follow(self, places: Array, lines: Array) -> Array:
        """The ranks of rows, which are entered as met again."""
        from mosha.connect.kernels.pass_kernels import follow_known, follow_rows, follow_totals  # noqa: PLC0415

        if self.book is None:
            follow_totals(places, lines, self.code, self.totals, self.again)
            return places
        ranks = np.empty(len(places), np.int32)
        if self.code == COUNT:
            follow_rows(places, self.book, ranks)
        else:
            follow_known(places, lines[:, KNOWN - self.code], self.book, ranks)
        return ranks

    def is_unchanged(self) -> bool:
        """Whether everybody had in this reading what was counted in the first."""
        from mosha.connect.kernels.pass_kernels import has_met_again  # noqa: PLC0415

        if self.book is None:
            return bool(np.array_equal(self.again, self.totals))
        return bool(has_met_again(self.book, self.totals))


class People:
    """How many rows each person has, and each one's totals of the values `codes`.

    A person's place is the distance from the least label where labels are tight, else the order in which they came.
    """

    def __init__(self, codes: Sequence[int], rows: int, memory: int) -> None:
        self._codes, self._memory = tuple(codes), memory
        self._most_span = min(2 * rows + 65536, 2**31 - 1)
        self._low, self.size = 0, 0
        self._known: Any = None
        self._totals = [np.zeros(0, np.int32 if code <= COUNT else np.int64) for code in (COUNT, *codes)]

    def add(self, labels: Array, lines: Array | None, inside: Array | None) -> None:
        """Count rows, of which only those `inside` belong to the question (None: all)."""
        from mosha.connect.kernels.pass_kernels import add_totals, count_places  # noqa: PLC0415  (numba is an extra and takes time to load)

        if inside is not None and not inside.all():
            labels, lines = labels[inside], None if lines is None else lines[inside]
        if not len(labels):
            return
        places = self._learn(labels.astype(np.int64, copy=False))
        count_places(places, self._totals[0])
        for code, totals in zip(self._codes, self._totals[1:], strict=True):
            assert lines is not None
            add_totals(places, lines, code, totals)

    def totals(self, code: int) -> Array:
        """The totals of a value, of everybody who has rows."""
        totals, counts = self._totals_of(code), self._totals_of(COUNT)
        return totals if counts.all() else totals[counts > 0]

    def _totals_of(self, code: int) -> Array:
        return self._totals[0 if code == COUNT else 1 + self._codes.index(code)][: self.size]

    @property
    def most_rows(self) -> int:
        """The most rows that one person has."""
        return int(self._totals_of(COUNT).max(initial=0))

    def lead(self, code: int) -> Leader:
        """What a later reading needs to know of a value by whose total people are bounded."""
        from mosha.connect.kernels.pass_kernels import put_ranks  # noqa: PLC0415

        totals = self._totals_of(code)
        if code > COUNT:
            return Leader(code, totals, None, np.zeros(len(totals), np.int64))
        most = int(totals.max(initial=0))
        if most < FEW:
            met = np.zeros(most + 1, np.bool_)
            met[totals] = True
            distinct = np.flatnonzero(met)
            rank_of = np.cumsum(met, dtype=np.int32) - np.int32(1)
            book = np.empty((len(totals), 2), np.int32)
            put_ranks(totals, rank_of, book)
        else:
            distinct, ranks = np.unique(totals, return_inverse=True)
            book = np.stack([ranks.astype(np.int32), np.zeros(len(ranks), np.int32)], axis=1)
        return Leader(code, distinct.astype(np.int64), book, np.empty(0, np.int64))

    def forget(self) -> None:
        """Let go of all totals, which leaders have taken over."""
        self._totals = []

    def find(self, labels: Array) -> Array | None:
        """The places of labels; None where one of them is not known."""
        from mosha.connect.kernels.column_kernels import find_labels  # noqa: PLC0415
        from mosha.connect.kernels.pass_kernels import places_in  # noqa: PLC0415

        places = np.empty(len(labels), np.int32)
        labels = labels.astype(np.int64, copy=False)
        if self._known is None:
            return places if places_in(labels, self._low, self.size, places) else None
        return places if find_labels(labels, self._known, places) else None

    def _learn(self, labels: Array) -> Array:
        """The places of labels, with room for those that are new."""
        from mosha.connect.kernels.column_kernels import enter_labels  # noqa: PLC0415

        if self._known is None:
            first, end = int(labels.min()), int(labels.max()) + 1
            if not self.size:
                self._widen(first, end)
            elif first < self._low or end > self._low + self.size:
                self._widen(min(first, self._low), max(end, self._low + self.size))
        if self._known is None:
            return (labels - self._low).astype(np.int32)
        codes = np.empty(len(labels), np.int32)
        self._known = enter_labels(labels, self._known, codes)
        self._make_room(int(self._known[2]))
        return codes

    def _widen(self, first: int, end: int) -> None:
        """Make room for labels from `first` to `end`, and some more where they grow; they may lie too far apart."""
        if end - first > self._most_span:
            self._enter_all()
            return
        if self.size:
            spare, low = (end - first) // 4, self._low
            first = max(first - spare, end - self._most_span, LEAST) if first < low else first
            end = min(end + spare, first + self._most_span, -LEAST) if end > low + self.size else end
        self._check_memory(end - first)
        wider = [np.zeros(end - first, totals.dtype) for totals in self._totals]
        for old, new in zip(self._totals, wider, strict=True):
            new[self._low - first : self._low - first + self.size] = old
        self._totals, self._low, self.size = wider, first, end - first

    def _enter_all(self) -> None:
        """From now on places are those in which labels first came."""
        from mosha.connect.kernels.column_kernels import enter_labels  # noqa: PLC0415

        there = np.flatnonzero(self._totals[0])
        codes = np.empty(len(there), np.int32)
        self._known = enter_labels(there + self._low, begin_labels(), codes)
        self._totals = [totals[there] for totals in self._totals]
        self.size = len(there)

    def _make_room(self, people: int) -> None:
        if people > len(self._totals[0]):
            room = max(people, 2 * len(self._totals[0]))
            self._check_memory(2 * room)
            self._totals = [np.concatenate([t, np.zeros(room - len(t), t.dtype)]) for t in self._totals]
        self.size = people

    def _check_memory(self, places: int) -> None:
        if places * (16 + 32 * len(self._codes)) > self._memory:
            raise TooManyPeople
