"""Relations in SQL: from the logical plan to the rows of one SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from mosha.connect.language.checking import join_types
from mosha.connect.language.expression import Column
from mosha.connect.language.schema import Type
from mosha.connect.plan.relation import (
    BoundedJoin,
    Compute,
    Limit,
    PersonJoin,
    PublicJoin,
    Relation,
    Scan,
    Where,
    seeds,
)
from mosha.connect.sql.dialect import Dialect, Node, binary, column, number
from mosha.connect.sql.expressions import Scope, Typed

if TYPE_CHECKING:
    from mosha.connect.engines.source import Field

__all__ = ["fresh_names", "open_rows", "row_number", "subquery"]


def fresh_names(relation: Relation) -> Iterator[str]:
    """Names that no column of the data has, whatever the case of its letters."""
    taken = {name.lower() for source in relation.sources for name in source.schema}
    return (name for name in (f"_{i}" for i in range(1, 1_000_000)) if name not in taken)


def open_rows(relation: Relation, dialect: Dialect, names: Iterator[str]) -> Scope:
    """The rows of a relation: nothing but its checked steps reaches the SQL."""
    if isinstance(relation, Scan):
        fields = relation.source.fields
        columns = {field.name: Typed(_read(field, dialect), field.type, field.wild, field.loose) for field in fields}
        return Scope(dialect, relation.source.table(next(names)), columns, names)
    if isinstance(relation, Where):
        scope = open_rows(relation.parent, dialect, names)
        condition = scope.value(relation.predicate).node
        scope.predicates.append(condition)
        return scope
    if isinstance(relation, Compute):
        scope = open_rows(relation.parent, dialect, names)
        value = scope.value(relation.expression)
        scope.columns[relation.name] = Typed(scope.once(value.node), value.type)
        return scope
    if isinstance(relation, Limit):
        return _limit_rows(relation, dialect, names)
    assert isinstance(relation, (PublicJoin, PersonJoin, BoundedJoin))
    return _join_rows(relation, dialect, names)


def _read(field: Field, dialect: Dialect) -> Node:
    """A column of the data; text that is too long is missing."""
    node = field.read(column(field.name))
    return dialect.cut_long_text(node) if field.type is Type.TEXT and not field.short else node


def row_number(partition: Sequence[Node], order: Sequence[Node]) -> exp.Window:
    ordered = [exp.Ordered(this=node, nulls_first=False) for node in order]
    return exp.Window(this=exp.RowNumber(), partition_by=list(partition), order=exp.Order(expressions=ordered))


def subquery(select: exp.Query, name: str) -> exp.Subquery:
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True)))


def _keep(scope: Scope, partition: Iterable[Node], limit: int, key: bytes | None) -> None:
    """At most `limit` rows of each part, by keyed hash of the whole row; without a key, in the order of the columns."""
    parts = [scope.once(node) for node in partition]
    everything = [scope.once(scope.value(Column(name)).node) for name in scope.columns]
    order = list(everything)
    if key is not None:
        order.insert(0, scope.dialect.hash(seeds(key), [node.copy() for node in everything]))
    scope.seal()
    place = scope.once(row_number([node.copy() for node in parts], order))
    scope.seal()
    scope.predicates.append(binary(exp.LTE, place, number(limit)))


def _limit_rows(relation: Limit, dialect: Dialect, names: Iterator[str]) -> Scope:
    scope = open_rows(relation.parent, dialect, names)
    assert relation.person is not None
    _keep(scope, [scope.value(Column(relation.person)).node], relation.rows, relation.key)
    return scope


def _join_rows(relation: PublicJoin | PersonJoin | BoundedJoin, dialect: Dialect, names: Iterator[str]) -> Scope:
    left = open_rows(relation.left, dialect, names)
    right = open_rows(relation.right, dialect, names)
    if isinstance(relation, PublicJoin):
        _keep(right, [right.value(Column(name)).node for _, name in relation.on], relation.at_most, None)
    if isinstance(relation, BoundedJoin):
        _keep(left, [left.value(Column(name)).node for name, _ in relation.on], relation.at_most[0], relation.key)
        _keep(right, [right.value(Column(name)).node for _, name in relation.on], relation.at_most[1], relation.key)
    kinds = [join_types([left.schema[a], right.schema[b]], "a join") for a, b in relation.on]
    left_keys = [left.coerce(left.value(Column(a)), kind) for (a, _), kind in zip(relation.on, kinds, strict=True)]
    right_keys = [right.coerce(right.value(Column(b)), kind) for (_, b), kind in zip(relation.on, kinds, strict=True)]
    first, left_columns, left_names = _side(left, list(left.columns), left_keys)
    second, right_columns, right_names = _side(right, list(relation.right_columns), right_keys)
    condition = binary(exp.EQ, column(left_names[0]), column(right_names[0]))
    for a, b in zip(left_names[1:], right_names[1:], strict=True):
        condition = binary(exp.And, condition, binary(exp.EQ, column(a), column(b)))
    how = getattr(relation, "how", "inner").upper()
    join = exp.Join(this=second, on=condition, **({"side": "LEFT"} if how == "LEFT" else {"kind": "INNER"}))
    select = exp.Select(expressions=[exp.Star()])
    select.set("from_", exp.From(this=first))
    select.set("joins", [join])
    return Scope(dialect, subquery(select, next(names)), left_columns | right_columns, names)


def _side(scope: Scope, wanted: list[str], keys: list[Node]) -> tuple[Node, dict[str, Typed], list[str]]:
    """One side of a join under fresh names: its rows, its columns, the names of its join keys."""
    columns: dict[str, Typed] = {}
    expressions: list[Node] = []
    for name in wanted:
        typed, new = scope.columns[name], next(scope.names)
        expressions.append(exp.alias_(typed.node, new, quoted=True, copy=False))
        columns[name] = replace(typed, node=column(new))
    key_names = []
    for node in keys:
        new = next(scope.names)
        expressions.append(exp.alias_(node, new, quoted=True, copy=False))
        key_names.append(new)
    return scope.add_alias(scope.dress(exp.Select(expressions=expressions))), columns, key_names
