"""The columns that the compiled kernels work on: which are fetched for a question, and what comes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Clamped, Persons, Rows, Value
from mosha.connect.plan.aggregation import NearRanks, Norms, Question
from mosha.connect.plan.source import Array
from mosha.connect.sql.statement import is_plain_count

__all__ = [
    "COUNT",
    "KNOWN",
    "PERSON",
    "Gathered",
    "Table",
    "Wanted",
    "choose_columns",
    "gather_batches",
    "keep_rows",
    "values_of",
]

COUNT, PERSON, KNOWN = -1, -2, -3
FEW_TOTALS = 2**14


def values_of(question: Question) -> dict[str, Value]:
    """What a question asks for, by name."""
    if isinstance(question, NearRanks):
        return {"": question.cell}
    return {"": question.value} if isinstance(question, Norms) else dict(getattr(question, "values", ()))


@dataclass(frozen=True)
class Wanted:
    """What is fetched for a question: doubles that the kernel puts on grids, and whole numbers that SQL has made.

    Each grid (and then each whole number) is a column of the kernel; `codes` says for each value of the question what
    it is there: a column, COUNT, PERSON, or KNOWN - c where it is 1 if column c is not missing.
    """

    reals: tuple[Expression, ...]
    grids: tuple[tuple[int, Clamped], ...]
    wholes: tuple[Value, ...]
    codes: Mapping[str, int]

    @property
    def width(self) -> int:
        return len(self.grids) + len(self.wholes)

    @property
    def magnitude(self) -> int:
        """The largest possible |number| in any column."""
        return max((value.magnitude for value in (*(grid for _, grid in self.grids), *self.wholes)), default=1)

    @property
    def mark(self) -> str:
        """What the SQL does not say of these columns."""
        return repr([(place, c.between, c.exponent, c.center) for place, c in self.grids])


def choose_columns(question: Question, *, in_sql: bool = False) -> Wanted:
    """Which columns a question needs; with `in_sql`, every value as the SQL plan has it."""
    values, schema = values_of(question), question.relation.schema
    reals: dict[str, Expression] = {}
    grids: list[tuple[int, Clamped]] = []
    codes: dict[str, int] = {}
    known: dict[str, int] = {}
    for name, value in values.items():
        if isinstance(value, Clamped) and not in_sql and type_of(value.of, schema) is Type.REAL:
            reals.setdefault(repr(value.of), value.of)
            codes[name] = known[repr(value.of)] = len(grids)
            grids.append((list(reals).index(repr(value.of)), value))
    wholes: list[Value] = []
    for name, value in values.items():
        if isinstance(value, Persons):
            codes[name] = PERSON
        elif is_plain_count(value):
            codes[name] = COUNT
        elif isinstance(value, Rows) and repr(value.of) in known:
            codes[name] = KNOWN - known[repr(value.of)]
        elif name not in codes:
            codes[name] = len(grids) + len(wholes)
            wholes.append(value)
    return Wanted(tuple(reals.values()), tuple(grids), tuple(wholes), codes)


@dataclass(frozen=True)
class Gathered:
    """Columns as they came: labels of persons and groups, values, and 32 bits of each hash."""

    persons: Array
    groups: Array
    values: Array
    hashes: tuple[Array, ...] = ()


def gather_batches(batches: Iterator[Mapping[str, Array]], wish: Wanted, hashes: int, rows: int) -> Gathered:
    """The batches one after the other, in 32 bits while everything fits them; `rows` is only a guess of their sum."""
    kind = np.int32 if wish.magnitude < 2**31 else np.int64
    labels = {name: np.empty(rows, np.int32) for name in "pg"}
    values, bits = np.empty((rows, wish.width), kind), [np.empty(rows, np.uint32) for _ in range(hashes)]
    filled = 0
    for batch in batches:
        size = len(batch["p"])
        if filled + size > len(values):  # the table has grown since it was opened
            labels = {name: _longer(old, filled + size) for name, old in labels.items()}
            values, bits = _longer(values, filled + size), [_longer(old, filled + size) for old in bits]
        for name, label in labels.items():
            found = batch[name]
            labels[name] = _copy_labels(label, filled, found.view(np.int64) if found.itemsize == 8 else found)
        fill_values(values, filled, batch, wish)
        for i, target in enumerate(bits):
            target[filled : filled + size] = batch[f"h{i}"]
        filled += size
    return Gathered(labels["p"][:filled], labels["g"][:filled], values[:filled], tuple(b[:filled] for b in bits))


def keep_rows(found: Gathered, kept: Array) -> Gathered:
    """The rows for which `kept` is true."""
    if kept.all():
        return found
    hashes = tuple(bits[kept] for bits in found.hashes)
    return Gathered(found.persons[kept], found.groups[kept], found.values[kept], hashes)


def _longer(column: Array, more: int) -> Array:
    return np.concatenate([column, np.empty((more, *column.shape[1:]), column.dtype)])


def _copy_labels(target: Array, start: int, found: Array) -> Array:
    """The target with labels from `start` on; in 64 bits as soon as one of them needs it."""
    from mosha.connect.kernels.column_kernels import copied_into  # noqa: PLC0415  (numba is an extra and takes time to load)

    bits = 8 * target.itemsize - 1
    if not copied_into(target, start, found, -(2**bits), 2**bits - 1):
        target = target.astype(np.int64)
        copied_into(target, start, found, -(2**63), 2**63 - 1)
    return target


def fill_values(values: Array, start: int, batch: Mapping[str, Array], wish: Wanted) -> None:
    """The values of a batch, from line `start` on."""
    from mosha.connect.kernels.column_kernels import grid_into  # noqa: PLC0415

    for place, (real, clamped) in enumerate(wish.grids):
        low, high = (float(bound) for bound in clamped.between)
        scale = math.ldexp(1.0, clamped.exponent)
        least, most = (math.floor(bound * scale + 0.5) - clamped.center for bound in (low, high))
        grid_into(values, place, start, batch[f"r{real}"], (low, high), scale, (least, most, clamped.center))
    for i in range(len(wish.wholes)):
        found = batch[f"v{i}"]
        values[start : start + len(found), len(wish.grids) + i] = found


@dataclass(frozen=True)
class Table:
    """A table's contributions as columns: dense codes for persons and groups, exact values of one integer type."""

    persons: Array
    people: int
    groups: Array
    group_count: int
    values: Array
    wish: Wanted
    keys: Callable[[Array], tuple[Array, ...]]
    hashes: tuple[Array, ...] = ()
    known_ranks: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Array:
        """How many rows each person has."""
        from mosha.connect.kernels.column_kernels import counts_of  # noqa: PLC0415

        return np.asarray(counts_of(self.persons, self.people))

    @cached_property
    def present(self) -> Array:
        """Which groups have rows."""
        from mosha.connect.kernels.column_kernels import counts_of  # noqa: PLC0415

        return np.asarray(counts_of(self.groups, self.group_count)) > 0

    @cached_property
    def most_rows(self) -> int:
        """The most rows that one person has."""
        return int(self.counts.max(initial=1))

    @cached_property
    def blocks(self) -> tuple[Array, Array]:
        """(starts, records): rows (person, group, values, hashes) in blocks of persons."""
        from mosha.connect.kernels.column_kernels import into_blocks  # noqa: PLC0415

        values = np.column_stack([self.values, *(bits.view(np.int32) for bits in self.hashes)])
        starts, records = into_blocks(self.persons, self.groups, values, self.people)
        return starts, records

    @cached_property
    def words(self) -> tuple[Array, Array, Array]:
        """(starts, words, values): rows in blocks of persons, as the kernel for a few groups has them."""
        from mosha.connect.kernels.group_kernels import into_words  # noqa: PLC0415

        values, pair = self.values, self.values.itemsize == 4 and self.wish.width == 2
        if self.wish.width == 0:
            values = np.zeros((len(self.persons), 1), np.int32)
        column = values.view(np.int64).ravel() if pair else values.ravel() if values.shape[1] == 1 else values
        words, moved = np.empty(len(self.persons), np.uint64), np.empty_like(column)
        starts = into_words((self.persons, self.groups, self.hashes[0], column), self.people, words, moved)
        return starts, words, moved.view(values.dtype).reshape(values.shape)

    @cached_property
    def pair_codes(self) -> tuple[int, ...]:
        """What pairs of person and group are summed up in."""
        return tuple(dict.fromkeys(code for code in self.wish.codes.values() if code != PERSON))

    @property
    def cell_width(self) -> int:
        """The numbers of a pair of person and group: how many rows, which is COUNT as well, and the other sums."""
        return 1 + sum(code != COUNT for code in self.pair_codes)

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """(offsets, pairs): for each person the groups with rows, each (group, sums of `pair_codes`)."""
        from mosha.connect.kernels.kernel import add_to_cells, by_person, pairs_in_cells, pairs_of  # noqa: PLC0415

        codes, cells = np.array(self.pair_codes, np.int64), self.people * self.group_count
        narrow = self.values.dtype == np.int32 and self.wish.magnitude * self.most_rows < 2**31
        kind = np.int32 if narrow else np.int64
        if cells <= len(self.persons):
            sums = np.zeros((cells, self.cell_width), kind)
            add_to_cells(self.persons, self.groups, self.values, codes, sums, self.group_count)
            pairs = np.empty((cells, len(codes) + 1), kind)
            starts = pairs_in_cells(sums, pairs, codes, self.group_count)
        else:
            offsets, rows = by_person(self.persons, self.groups, self.values, self.people)
            pairs = np.empty((len(rows), len(codes) + 1), kind)
            starts = pairs_of(offsets, rows, pairs, codes, self.group_count)
        return starts, pairs[: starts[-1]]

    @property
    def size(self) -> int:
        """About how many bytes it takes, the pairs included."""
        pairs = 8 * len(self.groups) * (len(self.pair_codes) + 1)
        labels = self.groups.nbytes + 2 * self.persons.nbytes  # persons, and a rank of each row
        return int(labels + self.values.nbytes + pairs + 16 * self.people)

    def totals(self, code: int) -> Array:
        """Each person's sum of |value| over rows."""
        from mosha.connect.kernels.kernel import row_totals  # noqa: PLC0415

        return self.counts if code == COUNT else np.asarray(row_totals(self.persons, self.values, code, self.people))

    def ranks(self, code: int) -> tuple[Array, Array]:
        """(ranks, totals): totals[ranks[i]] is the total of the person of row i; few totals stay in the cache.

        Looking up persons for all rows in one go is several times as fast as amid other work, so ranks are kept.
        """
        if code not in self.known_ranks:
            totals = self.totals(code)
            most = int(totals.max(initial=0))
            if most < FEW_TOTALS:
                ranks = totals.astype(np.int32, copy=False)[self.persons]
                self.known_ranks[code] = (ranks, np.arange(most + 1, dtype=np.int64))
            else:
                self.known_ranks[code] = (self.persons, totals.astype(np.int64, copy=False))
        return self.known_ranks[code]

    def pair_column(self, code: int) -> int:
        """Where a value stands in the pairs."""
        return PERSON if code == PERSON else self.pair_codes.index(code)
