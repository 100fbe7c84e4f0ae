"""Truncation in SQL: which groups and rows of a person stay, by a hash that only that person's rows can feel."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mosha.connect.aggregation import Aggregation, Distinct
from mosha.connect.bounding import Truncate
from mosha.connect.dialect import Dialect, Node, binary, call, column, number
from mosha.connect.relation import seeds
from mosha.connect.rows import row_number, subquery
from mosha.connect.schema import Type
from mosha.connect.statement import Query, alias, contributions, copies, is_plain_count, key_columns, select
from mosha.connect.value import Persons, Value

__all__ = ["distinct", "truncated"]


def truncated(question: Aggregation, bound: Truncate, dialect: Dialect) -> Query:
    """Keep groups, then rows in each group, then rows in all; sum what is left.

    Groups are chosen after the sums of each (person, group) where no limit on all rows follows: every group keeps at
    least one row, so the order of the first two steps does not matter and the smaller table is cut.
    """
    values = [value for _, value in question.values]
    names = _row_columns(question, values)
    keys, person = key_columns(question), column("p")
    rows = contributions(question, values, dialect)
    by_group = _order(bound.key, [person, *keys], dialect)
    by_row = _order(bound.key, names, dialect)
    countable = all(isinstance(value, Persons) or is_plain_count(value) for value in values)
    if bound.rows is not None and bound.groups is not None:
        rows = _cut(rows, _window([person], by_group, call("DENSE_RANK")), bound.groups, names)
    if bound.per_group is not None and not (countable and bound.rows is None):
        rows = _cut(rows, _window([person, *keys], by_row), bound.per_group, names)
    if bound.rows is not None:
        rows = _cut(rows, _window([person], by_row), bound.rows, names)
    pairs = _pairs(question, rows, bound.per_group if countable else None, dialect)
    if bound.rows is None and bound.groups is not None:
        sums = [column(f"v{i}") for i in range(len(values))]
        pairs = _cut(pairs, _window([person], by_group), bound.groups, [person, *keys, *sums])
    totals = [alias(dialect.sum(column(f"v{i}"), None), f"s{i}") for i in range(len(values))]
    query = select([*copies(keys), *totals], subquery(pairs, "pairs"), group=copies(keys))
    return Query(query, tuple(name for name, _ in question.values))


def _row_columns(question: Aggregation, values: Sequence[Value]) -> list[Node]:
    counted = [i for i, value in enumerate(values) if not (isinstance(value, Persons) or is_plain_count(value))]
    return [column("p"), *key_columns(question), *(column(f"v{i}") for i in counted)]


def _order(key: bytes, nodes: Sequence[Node], dialect: Dialect) -> list[Node]:
    """By keyed hash of the nodes; where hashes are equal, by the nodes themselves (the first, the person, is equal)."""
    return [dialect.hash(seeds(key), copies(nodes)), *copies(nodes[1:])]


def _cut(rows: exp.Select, window: exp.Window, limit: int, names: Sequence[Node]) -> exp.Select:
    """The rows whose rank in their window is at most `limit`."""
    ranked = select([*copies(names), alias(window, "n")], subquery(rows, "r"))
    return select(copies(names), subquery(ranked, "r"), where=binary(exp.LTE, column("n"), number(limit)))


def _window(parts: Sequence[Node], order: Sequence[Node], rank: Node | None = None) -> exp.Window:
    window = row_number(copies(parts), copies(order))
    if rank is not None:
        window.set("this", rank)
    return window


def _pairs(question: Aggregation, rows: exp.Select, per_group: int | None, dialect: Dialect) -> exp.Select:
    """The sums of each person and group; `per_group` caps plain counts without looking at rows."""
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
    group: list[Node] = [column("p"), *keys]
    return select([*copies(group), *sums], subquery(rows, "rows"), group=group)


def distinct(question: Distinct, dialect: Dialect) -> Query:
    """The distinct values in each group; each person keeps at most `at_most` pairs of group and value."""
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
    counted = alias(exp.Count(this=exp.Star()), "s0")
    return Query(select([*copies(keys), counted], subquery(pairs, "pairs"), group=copies(keys)), ("distinct",))
