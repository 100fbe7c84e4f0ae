"""From columns to answers: bounded sums of groups, and the buckets of norms, with public limits that keep 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from mosha.connect.kernels.columns import PERSON, Table
from mosha.connect.language.schema import Schema, Type
from mosha.connect.language.value import Persons
from mosha.connect.plan.aggregation import Aggregation, Norms
from mosha.connect.plan.bounding import NormBound
from mosha.connect.plan.source import Array, Totals, object_array

__all__ = ["count_norms", "fill_buckets", "fits_64_bits", "sum_bounded", "total_groups"]

AT_ONCE = 2**20


def sum_bounded(question: Aggregation, table: Table) -> Totals | None:
    """The bounded sums of each group; None where a number may leave 64 bits."""
    from mosha.connect.kernels.kernel import group_norms, row_norms  # noqa: PLC0415  (numba is an extra and takes time to load)

    bound = question.bound
    assert isinstance(bound, NormBound)
    if not fits_64_bits(question, bound, table.most_rows, table.people):
        return None
    order = [name for name, _ in question.values]
    kinds, leaders, codes = dict(question.values), bound.leaders(), table.wish.codes
    sums = np.zeros((table.group_count, len(order)), dtype=np.int64)
    sizes = (table.group_count, bound.fraction)
    by_row = [name for name in order if bound.order == 1 and not isinstance(kinds[name], Persons)]
    for leader, limit in dict.fromkeys(leaders[name] for name in by_row):
        names = [name for name in by_row if leaders[name][0] == leader]
        led = np.array([codes[name] for name in names], np.int64)
        ranks, totals = table.ranks(codes[leader])
        found = row_norms((ranks, table.groups, table.values), led, totals, limit, sizes)
        sums[:, [order.index(name) for name in names]] = found.T
    names = [name for name in order if name not in by_row]
    if names:
        rows = [(table.pair_column(codes[n]), names.index(leaders[n][0]), leaders[n][1]) for n in names]
        found, large = group_norms(*table.pairs, np.array(rows, np.int64), bound.order, sizes)
        if large:
            return None
        sums[:, [order.index(name) for name in names]] = found
    return total_groups(question, table.keys, sums, table.present)


def fits_64_bits(question: Aggregation, bound: NormBound, most_rows: int, people: int) -> bool:
    """Whether public limits and the size of the table keep every number of the kernels within 64 bits."""
    most, leaders = max(most_rows, 1), bound.leaders()
    for name, value in question.values:
        leader, limit = leaders[name]
        full = limit << bound.fraction
        share = full if name == leader else full * value.magnitude
        if value.magnitude * most >= 2**59 or share * max(people, 1) >= 2**63:
            return False
        if name != leader and value.magnitude * full >= 2**52:
            return False
    return True


def count_norms(question: Norms, table: Table) -> Totals | None:
    """How many persons have a norm in each bucket; None where a number may leave 64 bits."""
    from mosha.connect.kernels.kernel import group_totals  # noqa: PLC0415

    if question.value.magnitude * max(table.most_rows, 1) >= 2**59:
        return None
    code = table.wish.codes[""]
    if question.order == 1 and code != PERSON:
        norms = table.totals(code)[table.counts > 0]
    else:
        norms = group_totals(*table.pairs, table.pair_column(code), question.order)
        if (norms == -2).any():
            return None
        norms = norms[norms >= 0]
    return fill_buckets(question, norms)


def fill_buckets(question: Norms, norms: Array) -> Totals:
    """How many of these norms lie in each bucket."""
    thresholds = np.array(question.thresholds, dtype=np.int64)
    persons = np.zeros(len(thresholds) + 1, np.int64)
    for first, last in pairwise([*range(0, len(norms), AT_ONCE), len(norms)]):
        buckets = np.searchsorted(thresholds, norms[first:last], side="left")
        persons += np.bincount(buckets, minlength=len(persons))
    return Totals(Schema({"norm": Type.INTEGER}), (object_array([*question.thresholds, None]),), {"persons": persons})


def total_groups(
    question: Aggregation, keys: Callable[[Array], tuple[Array, ...]], sums: Array, present: Array
) -> Totals:
    """Sums, a line for each group, as the answer: of groups with rows, or of those that were asked for."""
    at = np.flatnonzero(present) if question.keys else np.zeros(1, dtype=np.int64)
    columns = {name: sums[at, place] for place, (name, _) in enumerate(question.values)}
    found = Totals(question.key_schema, keys(at), columns)
    return found if question.only is None else found.align(question.only)
