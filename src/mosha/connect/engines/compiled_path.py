"""The compiled path: bound columns of a local table in numba, where the SQL plan would give the same integers later.

A question comes here when its table is large (compiling and importing cost more than they save on a small one), its
columns fit the memory, numba and pyarrow are installed, and public bounds show that no sum can leave 64 bits. In every
other case, and whenever a kernel raises its flag, the answer is None and the SQL plan runs instead.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from sqlglot import exp

from mosha.connect.engines.labels import (
    MISSING,
    UNLISTED,
    Fetch,
    KeyLabels,
    ListedKeys,
    key_labels,
    person_label,
    persons_are_exact,
)
from mosha.connect.engines.local_source import can_be_read_again, size_of
from mosha.connect.kernels.bounded_sums import count_norms, sum_bounded, total_groups
from mosha.connect.kernels.columns import (
    COUNT,
    Gathered,
    Table,
    Wanted,
    choose_columns,
    gather_batches,
    keep_rows,
    values_of,
)
from mosha.connect.kernels.near_rows import NearRows, find_near_rows
from mosha.connect.kernels.owners import Owners, find_owners
from mosha.connect.kernels.passes import Passes, leaders_of, suits_passes
from mosha.connect.language.limits import seeds
from mosha.connect.language.value import Persons
from mosha.connect.plan.aggregation import Aggregation, NearRanks, Norms, Question
from mosha.connect.plan.bounding import NormBound, Truncate
from mosha.connect.plan.owner_keys import OwnerKeys, split_owners
from mosha.connect.plan.source import Array, Totals
from mosha.connect.sql.dialect import DUCKDB, Kind, Node, binary, cast, column, number
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import FEW, alias, contributions, copies, key_columns, select, span_of

__all__ = ["COMPILED_FROM", "Compiled"]

COMPILED_FROM = 1_000_000
"""Rows from which kernels answer sooner than SQL, once they are loaded."""

WORTH_LOADING = 6_000_000
"""Rows that SQL bounds in the time in which the kernels are loaded, which happens once in a process."""

TIE, NEEDS_ROW_HASHES, BUSY = 1, 2, 3
DENSE_GROUPS = 2**20
MOST_KEPT = 2**26
"""Bytes of columns that are kept for ranks: beyond it reading them again costs less than a quarter of a question."""

AGAIN_FROM, RANKS_AGAIN_FROM = 2**24, 2**21
"""Rows from which a table is read several times: its columns would take more memory than they are worth."""

_BYTES_OF_OWNER = 96  # at most: key, label and code of a row, and an array of keys that are sparse
Batches = Callable[[str], Iterator[Mapping[str, Array]]]


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
        self._kept_owners: tuple[str, Owners] | None = None
        self._was_asked = False

    def pays_off(self, rows: int, compiled_from: int | None) -> bool:
        """Whether kernels answer sooner than SQL: the first question does not wait until they are loaded.

        Args:
            rows: of the table; both roads give the same integers.
            compiled_from: from how many rows on they may; a number below the usual one asks for them at once.
        """
        if compiled_from is None or rows < compiled_from:
            return False
        is_warm = self._was_asked or compiled_from < COMPILED_FROM or "numba" in sys.modules
        self._was_asked = True
        return is_warm or rows >= WORTH_LOADING

    def answer(self, question: Question, rows: int, version: str | None) -> Totals | NearRows | None:
        """The answer, or None where the SQL plan must give it."""
        if not _suits(question) or not _has_numba() or rows >= 2**31:
            return None
        is_large = rows * _bytes_of_row(question) > self._memory // 2
        again_from = RANKS_AGAIN_FROM if isinstance(question, NearRanks) else AGAIN_FROM
        if (is_large or rows >= again_from) and _suits_passes(question):
            return self._answer_in_passes(question, choose_columns(question), rows)
        if is_large:
            return None
        if isinstance(question, Aggregation) and isinstance(question.bound, Truncate):
            return self._answer_truncated(question, question.bound, rows)
        return self._answer_from_columns(question, rows, version)

    def _answer_from_columns(self, question: Question, rows: int, version: str | None) -> Totals | NearRows | None:
        table = self._table(question, rows, version)
        if table is None:
            return None
        if isinstance(question, NearRanks):
            return find_near_rows(question, table)
        if isinstance(question, Norms):
            return count_norms(question, table)
        assert isinstance(question, Aggregation)
        return sum_bounded(question, table)

    def _answer_in_passes(self, question: Question, wish: Wanted, rows: int) -> Totals | NearRows | None:
        """By reading the table several times, which keeps none of its rows."""
        inner = contributions(_drop_few(question), wish.wholes, DUCKDB, raw=wish.reals)
        keys = ListedKeys(question) if _lists_few(question) else key_labels(self._fetch, question, inner)
        if keys is None or not persons_are_exact(self._fetch, question, inner):
            return None
        span, known = span_of(question), None
        if isinstance(keys, ListedKeys):
            known = range(keys.first, keys.first + len(question.only or ()))
        elif span is not None or not question.keys:
            known = range(span[0], span[1] + 1) if span else range(1)
        counted = wish if set(leaders_of(question, wish)) - {COUNT} else Wanted((), (), (), {})
        needs_groups = known is None or isinstance(keys, ListedKeys)
        first = _list_columns(question, counted, inner, keys, groups=needs_groups)
        again = _list_columns(question, wish, inner, keys)
        readings = (lambda: self._batches(first), lambda: self._batches(again))
        is_ambiguous = lambda labels: keys.ambiguous(labels, self._fetch, inner)
        return Passes(question, wish, *readings, known, keys.keys, is_ambiguous, rows, self._memory // 2).answer()

    def _table(self, question: Question, rows: int, version: str | None) -> Table | None:
        """The columns of a question, kept from the last one where plan and data are the same."""
        wish, split = choose_columns(question), split_owners(question)
        if split is not None and not self._has_room(split):
            split = None
        asked = question if split is None else split.question
        inner = contributions(_drop_few(asked), wish.wholes, DUCKDB, raw=wish.reals, all_rows=split is not None)
        listed = None if split is None else contributions(split.owners, (), DUCKDB)
        texts = [DUCKDB.sql(query.copy()) for query in (inner, listed) if query is not None]
        asks = f"{wish.codes} {question.only} {_needs_pairs(question)}"
        mark = None if version is None else "\n".join([version, *texts, wish.mark, asks])
        kept = self._kept  # which another thread may change in between
        if mark is not None and kept is not None and kept[0] == mark:
            return kept[1]
        self._kept = None
        if split is None or listed is None:
            table = self._read(asked, wish, rows, inner)
        else:
            owners = self._find_owners(split.owners, listed, mark and f"{version}\n{texts[1]}")
            table = None if owners is None else self._read_owned(asked, wish, rows, inner, owners)
        most = MOST_KEPT if isinstance(question, NearRanks) else self._memory // 8
        if mark is not None and table is not None and table.size <= most:
            self._kept = (mark, table)
        return table

    def _has_room(self, split: OwnerKeys) -> bool:
        """Whether the owners of all keys fit the memory beside the rows."""
        rows = size_of(split.owners.relation)
        return rows is not None and rows * _BYTES_OF_OWNER <= self._memory // 4

    def _find_owners(self, question: Question, inner: exp.Select, mark: str | None) -> Owners | None:
        """Whose each key is, kept like columns; None where an array does not hold it, or two persons share a label."""
        kept = self._kept_owners
        if mark is not None and kept is not None and kept[0] == mark:
            return kept[1]
        self._kept_owners = None
        if not persons_are_exact(self._fetch, question, inner):
            return None
        known = exp.Not(this=binary(exp.Is, column("k0"), exp.Null()))
        columns = [alias(person_label(question), "p"), column("k0")]
        statement = DUCKDB.sql(select(columns, subquery(inner.copy(), "rows"), where=known))
        found = find_owners(self._batches(statement))
        if found is None or found.low == MISSING:  # which stands for NULL where rows are read
            return None
        if mark is not None and found.codes.nbytes <= self._memory // 8:
            self._kept_owners = (mark, found)
        return found

    def _read_owned(
        self, question: Question, wish: Wanted, rows: int, inner: exp.Select, owners: Owners
    ) -> Table | None:
        """The same for rows with a key in the place of their person; only sums, where nothing else is asked for."""
        count = len(question.only or ()) if question.keys else 1
        few = _lists_few(question) or not question.keys
        cells = owners.people * count * (len(wish.codes) + 1)
        if not (few and _needs_pairs(question) and wish.magnitude * rows < 2**62 and 32 * cells <= self._memory // 8):
            return self._read(question, wish, rows, inner, owners=owners)
        keys = ListedKeys(question) if question.keys else KeyLabels(0, False, {}, ())
        batches = self._batches(_list_columns(question, wish, inner, keys))
        return owners.sum_up(batches, wish, range(keys.first, keys.first + count), keys.keys)

    def _read(
        self,
        question: Question,
        wish: Wanted,
        rows: int,
        inner: exp.Select,
        hashes: Sequence[Node] = (),
        owners: Owners | None = None,
    ) -> Table | None:
        """Labels, doubles and integers in one pass, then labels as codes."""
        keys = ListedKeys(question) if _lists_few(question) else key_labels(self._fetch, question, inner)
        if keys is None or not persons_are_exact(self._fetch, question, inner):
            return None
        statement = _list_columns(question, wish, inner, keys, hashes)
        found = gather_batches(self._batches(statement), wish, len(hashes), rows)
        if isinstance(keys, ListedKeys):
            found = keep_rows(found, found.groups != UNLISTED)
        if owners is not None:
            found = owners.give(found)
        return _code_labels(found, wish, keys, lambda labels: keys.ambiguous(labels, self._fetch, inner))

    def _answer_truncated(self, question: Aggregation, bound: Truncate, rows: int) -> Totals | None:
        """First without the hashes of rows; they are fetched only where a group or person has too many rows."""
        for hashed in (False, True):
            wish = choose_columns(question, in_sql=hashed)  # the hash of a row is that of its values in SQL
            inner = contributions(_drop_few(question), wish.wholes, DUCKDB, raw=wish.reals)
            pair = [column("p"), *key_columns(question)]
            row = [*pair, *(column(f"v{i}") for i in range(len(wish.wholes)))]
            hashes = [DUCKDB.hash(seeds(bound.key), copies(nodes)) for nodes in ((pair, row) if hashed else (pair,))]
            table = self._read(question, wish, rows, inner, hashes)
            if table is None or any(value.magnitude * len(table.groups) >= 2**62 for _, value in question.values):
                return None
            found = _truncate(question, bound, table, hashed=hashed)
            if found != NEEDS_ROW_HASHES:
                return None if isinstance(found, int) else found
        return None


def _list_columns(
    question: Question,
    wish: Wanted,
    inner: exp.Select,
    keys: KeyLabels | ListedKeys,
    hashes: Sequence[Node] = (),
    *,
    groups: bool = True,
) -> str:
    """The statement for labels, doubles, whole numbers and bits of hashes."""
    columns = [alias(person_label(question), "p"), *([alias(keys.label(), "g")] if groups else ())]
    columns += [column(f"r{i}") for i in range(len(wish.reals))]
    columns += [column(f"v{i}") for i in range(len(wish.wholes))]
    columns += [alias(_first_bits(node), f"h{i}") for i, node in enumerate(hashes)]
    return DUCKDB.sql(select(columns, subquery(inner.copy(), "rows")))


def _needs_pairs(question: Question) -> bool:
    """Whether nothing but the sums of each person and group decides about the answer."""
    if isinstance(question, Norms):
        return question.order == 2 or isinstance(question.value, Persons)
    if not isinstance(question, Aggregation) or not isinstance(question.bound, NormBound):
        return False
    return question.bound.order == 2 or all(isinstance(value, Persons) for _, value in question.values)


def _lists_few(question: Question) -> bool:
    """Whether few enough keys are asked for to be told apart one by one."""
    return question.only is not None and bool(question.keys) and len(question.only) <= FEW


def _drop_few(question: Question) -> Question:
    """The question about all groups where `ListedKeys` drops the rows of others, which takes less than SQL."""
    if not _lists_few(question):
        return question
    every = copy.copy(question)
    object.__setattr__(every, "only", None)
    return every


def _bytes_of_row(question: Question) -> int:
    """More than the kernels were seen to take for a row at their peak: 32 to 52 bytes for three sums, 77 for ranks."""
    return 96 if isinstance(question, NearRanks) else 8 * (5 + len(values_of(question)))


def _has_numba() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "pyarrow"))


def _suits(question: Question) -> bool:
    bounded = isinstance(question, Aggregation) and isinstance(question.bound, (NormBound, Truncate))
    return bounded or isinstance(question, (Norms, NearRanks))


def _suits_passes(question: Question) -> bool:
    return can_be_read_again(question.relation) and suits_passes(question, choose_columns(question))


def _first_bits(node: Node) -> Node:
    """The first 32 bits of a 64-bit hash."""
    return cast(binary(exp.BitwiseRightShift, node, number(32)), Kind.UINT)


def _code_labels(
    found: Gathered, wish: Wanted, keys: KeyLabels | ListedKeys, ambiguous: Callable[[Array], bool]
) -> Table | None:
    """Labels as codes from 0: their distance from the least where that is tight, else by first appearance."""
    from mosha.connect.kernels.column_kernels import codes_of  # noqa: PLC0415  (numba is an extra and takes time to load)

    persons, groups = found.persons, found.groups
    if len(persons) == 0:  # the SQL plan answers for no rows as for any
        return None
    low, high = int(persons.min()), int(persons.max())
    if high - low < 2 * len(persons) + 65536:
        people = high - low + 1
        persons = _shift_labels(persons, low)
    else:
        persons, unique = codes_of(persons)
        people = len(unique)
    low, high = int(groups.min()), int(groups.max())
    if keys.width == 1 and keys.whole and high - low < min(DENSE_GROUPS, 2 * len(groups) + 65536):
        labels = np.arange(low, high + 1)
        groups = _shift_labels(groups, low)
    else:
        groups, labels = codes_of(groups)
    if ambiguous(labels):
        return None
    named = lambda at: keys.keys(labels[at])
    return Table(persons, people, groups, max(len(labels), 1), found.values, wish, named, found.hashes)


def _shift_labels(labels: Array, low: int) -> Array:
    if low:
        labels -= low
    return labels if labels.dtype == np.int32 else labels.astype(np.int32)


def _truncate(question: Aggregation, bound: Truncate, table: Table, *, hashed: bool) -> Totals | int:
    from mosha.connect.kernels.truncation_kernels import truncate  # noqa: PLC0415

    codes = np.array([table.wish.codes[name] for name, _ in question.values], np.int64)
    alike = table.wish.width == 0 and bound.rows is None
    if bound.rows is None and bound.groups is not None and not hashed:
        sums, present, flag = _few_groups(table, codes, bound.groups, bound.per_group)
        if flag == NEEDS_ROW_HASHES and not alike:
            return NEEDS_ROW_HASHES
        if flag in {0, TIE}:
            return flag or total_groups(question, table.keys, sums.T, present > 0)
    limits = tuple(-1 if limit is None else limit for limit in (bound.rows, bound.groups, bound.per_group))
    first = table.wish.width + 2
    by_row = -2 if alike else (first + 1 if hashed else -1)
    sums, present, flag = truncate(*table.blocks, codes, limits, (first, by_row, first), table.group_count)
    return int(flag) or total_groups(question, table.keys, sums.T, present > 0)


def _few_groups(table: Table, codes: Array, groups: int, per_group: int | None) -> tuple[Array, Array, int]:
    """Sums, present groups and a flag; BUSY leaves the question to the kernel for all limits."""
    from mosha.connect.kernels.group_kernels import FEW, MOST_GROUPS, MOST_ROWS, truncate_groups  # noqa: PLC0415

    if groups > FEW or table.group_count > MOST_GROUPS:
        return codes, codes, BUSY
    allowed = MOST_ROWS if per_group is None else min(per_group, MOST_ROWS)
    sums, present, flag = truncate_groups(*table.words, codes, (groups, allowed), table.group_count)
    return sums, present, NEEDS_ROW_HASHES if flag == BUSY and allowed == per_group else int(flag)
