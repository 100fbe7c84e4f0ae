"""Truncation in SQL: which groups and rows of a person stay, by a hash that only that person's rows can feel."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mosha.connect.language.limits import seeds
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Persons
from mosha.connect.plan.aggregation import Aggregation, Distinct
from mosha.connect.plan.bounding import Truncate
from mosha.connect.sql.dialect import Dialect, Node, binary, call, column, number
from mosha.connect.sql.rows import row_number, subquery
from mosha.connect.sql.statement import (
    Query,
    alias,
    all_of,
    can_read_again,
    contributions,
    copies,
    is_plain_count,
    key_columns,
    select,
    table,
    with_parts,
)

__all__ = ["distinct", "truncate_rows"]


def truncate_rows(question: Aggregation, bound: Truncate, dialect: Dialect) -> Query:
    """Keep groups, then rows in each group, then rows in all; sum what is left.

    Where rows are alike, or only one of the first two limits is there, groups are chosen after the sums of each
    (person, group): every group keeps at least one row, so the order does not matter and the smaller table is cut.
    """
    values = [value for _, value in question.values]
    keys, person = key_columns(question), column("p")
    rows = contributions(question, values, dialect)
    by_group = _order(bound.key, [person, *keys], dialect)
    countable = all(isinstance(value, Persons) or is_plain_count(value) for value in values)
    parts: dict[str, exp.Select] = {}
    pairs: exp.Query
    in_rows = bound.rows is not None or (None not in {bound.groups, bound.per_group} and not countable)
    if in_rows:
        pairs = _count_contributions(question, _cut_rows(question, bound, rows, dialect), dialect)
    elif bound.per_group is not None and not countable:
        parts = {"rows": rows, "sums": _pairs(question, select([exp.Star()], table("rows")), None, dialect)}
        pairs = _cut_busy_groups(question, bound, dialect)
    else:
        pairs = _pairs(question, rows, bound.per_group, dialect)
    sums = [column(f"v{i}") for i in range(len(values))]
    if not in_rows and bound.groups is not None:
        pairs = _cut(pairs, _window([person], by_group), bound.groups, [person, *keys, *sums])
    totals = [alias(dialect.sum(node.copy(), None), f"s{i}") for i, node in enumerate(sums)]
    query = select([*copies(keys), *totals], subquery(pairs, "pairs"), group=copies(keys))
    if parts:
        query = with_parts(query, rows_again=can_read_again(question, dialect), **parts)
    return Query(query, tuple(name for name, _ in question.values))


def _cut_rows(question: Aggregation, bound: Truncate, rows: exp.Select, dialect: Dialect) -> exp.Select:
    """The rows that stay, each limit applied to rows."""
    keys, person, names = key_columns(question), column("p"), _row_columns(question)
    by_row = _order(bound.key, names, dialect)
    if bound.groups is not None:
        rank = _window([person], _order(bound.key, [person, *keys], dialect), call("DENSE_RANK"))
        rows = _cut(rows, rank, bound.groups, names)
    if bound.per_group is not None:
        rows = _cut(rows, _window([person, *keys], by_row), bound.per_group, names)
    return rows if bound.rows is None else _cut(rows, _window([person], by_row), bound.rows, names)


def _cut_busy_groups(question: Aggregation, bound: Truncate, dialect: Dialect) -> exp.Query:
    """The sums of each (person, group); rows are looked at again only where there are more than `per_group`."""
    assert bound.per_group is not None
    keys, person, names = key_columns(question), column("p"), _row_columns(question)
    sums = [column(f"v{i}") for i in range(len(question.values))]
    many = binary(exp.GT, column("c"), number(bound.per_group))
    few = select([person, *keys, *sums], table("sums"), where=exp.Not(this=exp.Paren(this=many.copy())))
    renamed = [alias(node.copy(), f"b{i}") for i, node in enumerate([person, *keys])]
    busy = subquery(select(renamed, table("sums"), where=many), "busy")
    same: list[Node] = [binary(exp.EQ, column("p"), column("b0"))]
    same += [exp.NullSafeEQ(this=key.copy(), expression=column(f"b{i + 1}")) for i, key in enumerate(keys)]
    rows = select(copies(names), table("rows"))
    rows.set("joins", [exp.Join(this=busy, on=all_of(same), kind="INNER")])
    kept = _cut(rows, _window([person, *keys], _order(bound.key, names, dialect)), bound.per_group, names)
    cut = subquery(_pairs(question, kept, None, dialect), "cut")
    return exp.Union(this=few, expression=select(copies([person, *keys, *sums]), cut), distinct=False)


def _row_columns(question: Aggregation) -> list[Node]:
    """What tells rows apart: person, keys and the values that are not the same in every row."""
    values = [value for _, value in question.values]
    counted = [i for i, value in enumerate(values) if not (isinstance(value, Persons) or is_plain_count(value))]
    return [column("p"), *key_columns(question), *(column(f"v{i}") for i in counted)]


def _order(key: bytes, nodes: Sequence[Node], dialect: Dialect) -> list[Node]:
    """By keyed hash of the nodes; where hashes are equal, by the nodes themselves (the first, the person, is equal)."""
    return [dialect.hash(seeds(key), copies(nodes)), *copies(nodes[1:])]


def _cut(rows: exp.Query, window: exp.Window, limit: int, names: Sequence[Node]) -> exp.Select:
    """The rows whose rank in their window is at most `limit`."""
    ranked = select([*copies(names), alias(window, "n")], subquery(rows, "r"))
    return select(copies(names), subquery(ranked, "r"), where=binary(exp.LTE, column("n"), number(limit)))


def _window(parts: Sequence[Node], order: Sequence[Node], rank: Node | None = None) -> exp.Window:
    window = row_number(copies(parts), copies(order))
    if rank is not None:
        window.set("this", rank)
    return window


def _count_contributions(question: Aggregation, rows: exp.Select, dialect: Dialect) -> exp.Select:
    """What each row adds; where persons are counted, each of them once in a group."""
    if any(isinstance(value, Persons) for _, value in question.values):
        return _pairs(question, rows, None, dialect)
    one = dialect.to(Type.INTEGER, number(1))
    values = [one.copy() if is_plain_count(value) else column(f"v{i}") for i, (_, value) in enumerate(question.values)]
    columns = [*key_columns(question), *(alias(node, f"v{i}") for i, node in enumerate(values))]
    return select(columns, subquery(rows, "rows"))


def _pairs(question: Aggregation, rows: exp.Select, per_group: int | None, dialect: Dialect) -> exp.Select:
    """The sums and the number of rows of each person and group; `per_group` caps plain counts."""
    keys, sums = key_columns(question), []
    for i, (_, value) in enumerate(question.values):
        if isinstance(value, Persons):
            node: Node = dialect.to(Type.INTEGER, number(1))
        elif is_plain_count(value):
            node = exp.Count(this=exp.Star())
            node = node if per_group is None else call("LEAST", node, dialect.to(Type.INTEGER, number(per_group)))
        else:
            node = dialect.sum(column(f"v{i}"), None)
        sums.append(alias(node, f"v{i}"))
    sums.append(alias(exp.Count(this=exp.Star()), "c"))
    group: list[Node] = [column("p"), *keys]
    return select([*copies(group), *sums], subquery(rows, "rows"), group=group)


def distinct(question: Distinct, dialect: Dialect) -> Query:
    """The number or the sum of distinct values in each group; a person keeps at most `at_most` pairs of these."""
    inner = contributions(question, [], dialect, extra=[question.of])
    keys, of = key_columns(question), column("x0")
    present = exp.Not(this=binary(exp.Is, of, exp.Null()))
    names: list[Node] = [*keys, of]
    if question.relation.person is not None:
        names.insert(0, column("p"))
    pairs = select(copies(names), subquery(inner, "rows"), group=copies(names), where=present)
    if question.relation.person is not None:
        order = _order(question.key, names, dialect)
        pairs = _cut(pairs, _window([column("p")], order), question.at_most, names)
        pairs = select(copies(names[1:]), subquery(pairs, "kept"), group=copies(names[1:]))
    counted = alias(dialect.sum(of.copy(), None) if question.add else exp.Count(this=exp.Star()), "s0")
    return Query(select([*copies(keys), counted], subquery(pairs, "pairs"), group=copies(keys)), ("distinct",))
