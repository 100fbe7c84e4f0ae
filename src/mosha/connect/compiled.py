"""The compiled path: bound columns of a local table in numba, where the SQL plan would give the same integers later.

A question comes here when its table is large (compiling and importing cost more than they save on a small one), its
columns fit the memory, numba and pyarrow are installed, and public bounds show that no sum can leave 64 bits. In every
other case, and whenever a kernel raises its flag, the answer is None and the SQL plan runs instead.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sqlglot import exp

from mosha.connect.aggregation import Aggregation, Norms, Question
from mosha.connect.bounding import NormBound, Truncate
from mosha.connect.dialect import DUCKDB, Kind, Node, binary, cast, column, number
from mosha.connect.labels import Fetch, KeyLabels, key_labels, person_label, persons_are_exact
from mosha.connect.relation import seeds
from mosha.connect.rows import subquery
from mosha.connect.schema import Schema, Type
from mosha.connect.statement import alias, contributions, copies, is_plain_count, key_columns, select
from mosha.connect.totals import Array, Totals, object_array
from mosha.connect.value import Persons, Value

__all__ = ["Compiled", "Table"]

COUNT, PERSON = -1, -2
TIE, NEEDS_ROW_HASHES = 1, 2
DENSE_GROUPS = 2**20
Batches = Callable[[str], Iterator[Mapping[str, Array]]]


@dataclass(frozen=True)
class Table:
    """A table's contributions as columns of one integer type: dense codes for persons and groups, exact values."""

    persons: Array
    people: int
    groups: Array
    group_count: int
    values: Array
    places: Mapping[str, int]
    magnitude: int
    keys: Callable[[Array], tuple[Array, ...]]

    @cached_property
    def by_person(self) -> tuple[Array, Array]:
        """(offsets, rows): the rows of person p are rows[offsets[p]:offsets[p + 1]], each (group, values)."""
        from mosha.connect.kernel import by_person  # noqa: PLC0415  (numba is an extra and takes time to load)

        offsets, rows = by_person(self.persons, self.groups, self.values, self.people)
        return offsets, rows

    @cached_property
    def by_group(self) -> tuple[Array, Array]:
        """(offsets, pairs): for each person the groups with rows, each (group, number of rows, sums of values)."""
        from mosha.connect.kernel import pairs_of  # noqa: PLC0415

        offsets, rows = self.by_person
        narrow = rows.dtype == np.int32 and self.magnitude * self.most_rows < 2**31
        shape = (len(rows), rows.shape[1] + 1)
        pairs = np.empty(shape, dtype=np.int32 if narrow else np.int64)
        starts = pairs_of(offsets, rows, pairs, self.group_count)
        return starts, pairs[: starts[-1]]

    @cached_property
    def present(self) -> Array:
        """Which groups have rows."""
        return np.bincount(self.groups, minlength=self.group_count) > 0

    @cached_property
    def most_rows(self) -> int:
        """The most rows that one person has."""
        return int(np.diff(self.by_person[0]).max(initial=0))

    @property
    def size(self) -> int:
        """About how many bytes it takes, the sorted forms included."""
        return int(4 * (self.groups.nbytes + self.values.nbytes) + self.persons.nbytes + 16 * self.people)

    def place(self, name: str, value: Value) -> int:
        """The column of a value, or what stands in its place."""
        if isinstance(value, Persons):
            return PERSON
        return COUNT if is_plain_count(value) else self.places[name]


class Compiled:
    """Answers questions from columns; keeps the last columns where the source says that it has not changed.

    What is kept is the same for every key and not yet bounded: each question bounds it anew, so two answers share
    nothing but time. Truncation is never answered from kept columns: its hashes belong to one key.
    """

    def __init__(self, fetch: Fetch, batches: Batches, memory: int) -> None:
        self._fetch = fetch
        self._batches = batches
        self._memory = memory
        self._kept: tuple[str, Table] | None = None

    def answer(self, question: Question, rows: int, version: str | None) -> Totals | None:
        """The answer, or None where the SQL plan must give it."""
        if not _suits(question) or not _installed():
            return None
        values = _columns_of(question)
        if rows * 8 * (4 + 3 * len(values)) > self._memory // 2:
            return None
        if isinstance(question, Aggregation) and isinstance(question.bound, Truncate):
            return self._truncated(question, question.bound, values, rows)
        table = self._table(question, values, rows, version)
        if table is None:
            return None
        return _buckets(question, table) if isinstance(question, Norms) else _norm_bounded(question, table)

    def _table(self, question: Question, values: Mapping[str, Value], rows: int, version: str | None) -> Table | None:
        """The columns of a question, kept from the last one where plan and data are the same."""
        inner = contributions(question, list(values.values()), DUCKDB)
        mark = None if version is None else f"{version}\n{DUCKDB.sql(inner.copy())}"
        if mark is not None and self._kept is not None and self._kept[0] == mark:
            return self._kept[1]
        self._kept = None
        table = self._read(question, values, rows, inner)
        if mark is not None and table is not None and table.size <= self._memory // 8:
            self._kept = (mark, table)
        return table

    def _read(
        self,
        question: Question,
        values: Mapping[str, Value],
        rows: int,
        inner: exp.Select,
        hashes: Sequence[Node] = (),
    ) -> Table | None:
        """Labels and integers in one pass, then labels as codes."""
        keys = key_labels(self._fetch, question, inner)
        if keys is None or not persons_are_exact(self._fetch, question, inner):
            return None
        names = [f"v{i}" for i in range(len(values))] + [f"h{i}" for i in range(len(hashes))]
        columns = [alias(person_label(question), "p"), alias(keys.label(), "g")]
        columns += [column(f"v{i}") for i in range(len(values))]
        columns += [alias(_first_bits(node), f"h{i}") for i, node in enumerate(hashes)]
        statement = DUCKDB.sql(select(columns, subquery(inner.copy(), "rows")))
        narrow = all(value.magnitude < 2**31 for value in values.values())
        persons, groups, matrix = _gathered(self._batches(statement), names, rows, narrow=narrow)
        return _coded(persons, groups, matrix, values, keys, lambda labels: keys.ambiguous(labels, self._fetch, inner))

    def _truncated(
        self, question: Aggregation, bound: Truncate, values: Mapping[str, Value], rows: int
    ) -> Totals | None:
        """First without the hashes of rows; they are fetched only where a group or person has too many rows."""
        inner = contributions(question, list(values.values()), DUCKDB)
        pair = [column("p"), *key_columns(question)]
        row = [*pair, *(column(f"v{i}") for i in range(len(values)))]
        by_group, by_row = (DUCKDB.hash(seeds(bound.key), copies(nodes)) for nodes in (pair, row))
        alike = not values and bound.rows is None
        for hashes in ([by_group], [by_group, by_row]):
            table = self._read(question, values, rows, inner, copies(hashes))
            if table is None or any(value.magnitude * len(table.groups) >= 2**62 for _, value in question.values):
                return None
            found = _truncate(question, bound, table, len(values), alike=alike, hashed=len(hashes) == 2)
            if found != NEEDS_ROW_HASHES:
                return None if isinstance(found, int) else found
        return None


def _installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "pyarrow"))


def _suits(question: Question) -> bool:
    bounded = isinstance(question, Aggregation) and isinstance(question.bound, (NormBound, Truncate))
    return bounded or isinstance(question, Norms)


def _columns_of(question: Question) -> dict[str, Value]:
    """The values that need a column: plain counts and persons need none."""
    values = {"": question.value} if isinstance(question, Norms) else dict(getattr(question, "values", ()))
    return {name: value for name, value in values.items() if not (is_plain_count(value) or isinstance(value, Persons))}


def _first_bits(node: Node) -> Node:
    """The first 32 bits of a 64-bit hash."""
    return cast(binary(exp.BitwiseRightShift, node, number(32)), Kind.UINT)


def _gathered(
    batches: Iterator[Mapping[str, Array]], names: Sequence[str], rows: int, *, narrow: bool
) -> tuple[Array, Array, Array]:
    """The batches one after the other, in 32 bits while everything fits them."""
    kind = np.dtype(np.int32 if narrow else np.int64)
    labels = [np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)]
    matrix = np.empty((rows, len(names)), dtype=kind)
    filled = 0
    for batch in batches:
        size = len(batch["p"])
        if filled + size > len(matrix):  # the table has grown since it was opened
            labels = [np.concatenate([column, np.empty(filled + size, dtype=column.dtype)]) for column in labels]
            matrix = np.concatenate([matrix, np.empty((filled + size, len(names)), dtype=kind)])
        for place, name in enumerate(("p", "g")):
            found = batch[name].view(np.int64)
            if labels[place].dtype == np.int32 and size and not (found.min() >= -(2**31) and found.max() < 2**31):
                labels[place] = labels[place].astype(np.int64)
            labels[place][filled : filled + size] = found
        for place, name in enumerate(names):
            found = batch[name]
            matrix[filled : filled + size, place] = found.view(np.int32) if found.dtype == np.uint32 else found
        filled += size
    return labels[0][:filled], labels[1][:filled], matrix[:filled]


def _coded(
    persons: Array,
    groups: Array,
    matrix: Array,
    values: Mapping[str, Value],
    keys: KeyLabels,
    ambiguous: Callable[[Array], bool],
) -> Table | None:
    """Labels as codes from 0: their distance from the least where that is tight, else by first appearance."""
    from mosha.connect.kernel import codes_of  # noqa: PLC0415

    if len(persons) == 0:  # the SQL plan answers for no rows as for any
        return None
    low, high = _range(persons)
    if high - low < 2 * len(persons) + 65536:
        people = high - low + 1
        persons = _shifted(persons, low)
    else:
        persons, unique = codes_of(persons)
        people = len(unique)
    low, high = _range(groups)
    if keys.width == 1 and keys.whole and high - low < min(DENSE_GROUPS, 2 * len(groups) + 65536):
        labels = np.arange(low, high + 1)
        groups = _shifted(groups, low)
    else:
        groups, labels = codes_of(groups)
    if ambiguous(labels):
        return None
    places = {name: place for place, name in enumerate(values)}
    most = max((value.magnitude for value in values.values()), default=1)
    count = max(len(labels), 1)
    return Table(persons, people, groups, count, matrix, places, most, lambda at: keys.keys(labels[at]))


def _range(labels: Array) -> tuple[int, int]:
    return (int(labels.min()), int(labels.max())) if len(labels) else (0, 0)


def _shifted(labels: Array, low: int) -> Array:
    if low:
        labels -= low
    return labels if labels.dtype == np.int32 else labels.astype(np.int32)


def _truncate(
    question: Aggregation, bound: Truncate, table: Table, width: int, *, alike: bool, hashed: bool
) -> Totals | int:
    from mosha.connect.kernel_truncation import truncate  # noqa: PLC0415

    limits = (_limit(bound.rows), _limit(bound.groups), _limit(bound.per_group))
    by_row = -2 if alike else (width + 2 if hashed else -1)
    columns = np.array([table.place(name, value) for name, value in question.values], dtype=np.int64)
    offsets, rows = table.by_person
    hashes = (width + 1, by_row, width + 1)
    sums, present, flag = truncate(offsets, rows, columns, limits, hashes, table.group_count)
    return int(flag) if flag else _totals(question, table, sums, present)


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _norm_bounded(question: Question, table: Table) -> Totals | None:
    from mosha.connect.kernel import group_norms, row_norms  # noqa: PLC0415

    assert isinstance(question, Aggregation)
    bound = question.bound
    assert isinstance(bound, NormBound)
    if not _within(question, bound, table):
        return None
    sums = np.zeros((table.group_count, len(question.values)), dtype=np.int64)
    for by_row in (True, False):
        names = [n for n, v in question.values if (bound.order == 1 and not isinstance(v, Persons)) is by_row]
        if not names:
            continue
        plan = _plan(question, bound, names, table)
        sizes = (table.group_count, bound.fraction)
        if by_row:
            found = row_norms(*table.by_person, plan, sizes)
        else:
            found, large = group_norms(*table.by_group, plan, bound.order, sizes)
            if large:
                return None
        order = [name for name, _ in question.values]
        for place, name in enumerate(names):
            sums[:, order.index(name)] = found[:, place]
    return _totals(question, table, sums, table.present)


def _plan(question: Aggregation, bound: NormBound, names: list[str], table: Table) -> Array:
    """A row for each value: its column, the value that leads it, that one's limit."""
    kinds, leaders = dict(question.values), bound.leaders()
    rows = [(table.place(name, kinds[name]), names.index(leaders[name][0]), leaders[name][1]) for name in names]
    return np.array(rows, dtype=np.int64)


def _within(question: Aggregation, bound: NormBound, table: Table) -> bool:
    """Whether public limits and the size of the table keep every number of the kernels within 64 bits."""
    most, leaders = max(table.most_rows, 1), bound.leaders()
    for name, value in question.values:
        leader, limit = leaders[name]
        full = limit << bound.fraction
        share = full if name == leader else full * value.magnitude
        if value.magnitude * most >= 2**59 or share * max(table.people, 1) >= 2**63:
            return False
        if name != leader and value.magnitude * full >= 2**52:
            return False
    return True


def _buckets(question: Norms, table: Table) -> Totals | None:
    from mosha.connect.kernel import group_totals, row_totals  # noqa: PLC0415

    if question.value.magnitude * max(table.most_rows, 1) >= 2**59:
        return None
    place = table.place("", question.value)
    if question.order == 1 and place != PERSON:
        norms = row_totals(*table.by_person, place)
    else:
        norms = group_totals(*table.by_group, place, question.order)
        if (norms == -2).any():
            return None
    norms = norms[norms >= 0]
    buckets = np.searchsorted(np.array(question.thresholds, dtype=np.int64), norms, side="left")
    persons = np.bincount(buckets, minlength=len(question.thresholds) + 1).astype(np.int64)
    return Totals(Schema({"norm": Type.INTEGER}), (object_array([*question.thresholds, None]),), {"persons": persons})


def _totals(question: Aggregation, table: Table, sums: Array, present: Array) -> Totals:
    at = np.flatnonzero(present) if question.keys else np.zeros(1, dtype=np.int64)
    columns = {name: sums[at, place] for place, (name, _) in enumerate(question.values)}
    found = Totals(question.key_schema, table.keys(at), columns)
    return found if question.only is None else found.aligned(question.only)
