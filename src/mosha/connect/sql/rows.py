"""Relations in SQL: from the logical plan to the rows of one SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mosha.connect.language.checking import join_types, type_of
from mosha.connect.language.expression import Column, grid
from mosha.connect.language.limits import seeds
from mosha.connect.language.schema import Schema, Type
from mosha.connect.plan.bounding import KeyedScan
from mosha.connect.plan.owner_keys import find_key_join
from mosha.connect.plan.person_steps import OwnerJoin, Pick, Summary, SummaryColumn, Union
from mosha.connect.plan.relation import (
    BoundedJoin,
    Compute,
    Limit,
    PersonJoin,
    PublicJoin,
    Relation,
    Scan,
    Where,
)
from mosha.connect.plan.source import Field, Source
from mosha.connect.sql.dialect import Dialect, Node, binary, choose, column, number
from mosha.connect.sql.expressions import Scope
from mosha.connect.sql.layers import Typed, narrow

__all__ = ["find_repeated", "fresh_names", "open_rows", "row_number", "subquery", "write_for_people"]


def fresh_names(relation: Relation) -> Iterator[str]:
    """Names that no column of the data has, whatever the case of its letters."""
    taken = {name.lower() for source in relation.sources for name in source.schema}
    return (name for name in (f"_{i}" for i in range(1, 1_000_000)) if name not in taken)


def open_rows(relation: Relation, dialect: Dialect, names: Iterator[str]) -> Scope:
    """The rows of a relation: nothing but its checked steps reaches the SQL."""
    return _OPENERS[type(relation)](relation, dialect, names)


def _scan(relation: Scan, dialect: Dialect, names: Iterator[str]) -> Scope:
    fields = relation.source.fields
    columns = {field.name: Typed(_read(field, dialect), field.type, field.wild, field.loose) for field in fields}
    return Scope(dialect, relation.source.table(next(names)), columns, names)


def _filter(relation: Where, dialect: Dialect, names: Iterator[str]) -> Scope:
    scope = open_rows(relation.parent, dialect, names)
    condition = scope.value(relation.predicate).node
    scope.predicates.append(condition)
    return scope


def _compute(relation: Compute, dialect: Dialect, names: Iterator[str]) -> Scope:
    scope = open_rows(relation.parent, dialect, names)
    value = scope.value(relation.expression)
    scope.columns[relation.name] = Typed(scope.once(value.node), value.type)
    return scope


def _pick(relation: Pick, dialect: Dialect, names: Iterator[str]) -> Scope:
    scope = open_rows(relation.parent, dialect, names)
    scope.columns = {new: scope.columns[old] for new, old in relation.columns.items()}
    return scope


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


def _join_persons(relation: PersonJoin, dialect: Dialect, names: Iterator[str]) -> Scope:
    """Rows of the same person; where a key implies the person and never repeats, rows of the same key (`paths.md`)."""
    found = find_key_join(relation)
    if found is None or not _has_unique_keys(found.table, found.keys):
        return _join_rows(relation, dialect, names)
    person = found.named.person
    assert person is not None
    named = open_rows(found.named, dialect, names)
    node = named.once(named.value(Column(person)).node)
    named.predicates.append(exp.Not(this=binary(exp.Is, node.copy(), exp.Null())))
    owned = open_rows(found.owned, dialect, names)
    left, right = (owned, named) if found.owned_left else (named, owned)
    hidden = (relation.left if found.owned_left else relation.right).person
    wanted = [name for name in relation.left.schema if name in left.columns], [*relation.right_columns]
    if found.owned_left:
        wanted = [name for name in wanted[0] if name != hidden], list(dict.fromkeys([*wanted[1], person]))
    else:
        wanted = wanted[0], [name for name in wanted[1] if name != hidden]
    scope = _join_sides(left, right, relation.also, wanted, "INNER")
    assert hidden is not None
    scope.columns[hidden] = scope.columns[person]
    scope.columns = {name: scope.columns[name] for name in relation.schema}
    return scope


def _join_rows(relation: PublicJoin | PersonJoin | BoundedJoin, dialect: Dialect, names: Iterator[str]) -> Scope:
    left = open_rows(relation.left, dialect, names)
    right = open_rows(relation.right, dialect, names)
    if isinstance(relation, PublicJoin) and relation.at_most is not None:
        _keep(right, _list_compared(relation, right, 1), relation.at_most, None)
    if isinstance(relation, BoundedJoin):
        _keep(left, _list_compared(relation, left, 0), relation.at_most[0], relation.key)
        _keep(right, _list_compared(relation, right, 1), relation.at_most[1], relation.key)
    wanted = list(left.columns), list(relation.right_columns)
    return _join_sides(left, right, relation.on, wanted, getattr(relation, "how", "inner").upper())


def _list_compared(relation: PublicJoin | BoundedJoin, scope: Scope, side: int) -> list[Node]:
    """The keys of one side as the join compares them.

    By a finer equality (whole numbers where the join compares reals, 0.0 beside -0.0) rows would be told apart here
    that all meet one row of the other side.
    """
    schemas = relation.left.schema, relation.right.schema
    found = []
    for pair in relation.on:
        kind = join_types([schema[name] for schema, name in zip(schemas, pair, strict=True)], "connect.where_join")
        node = scope.coerce(scope.value(Column(pair[side])), kind)
        found.append(scope.flush(node) if kind is Type.REAL else node)
    return found


def _join_sides(
    left: Scope, right: Scope, on: Sequence[tuple[str, str]], wanted: tuple[list[str], list[str]], how: str
) -> Scope:
    """Two scopes side by side, where the columns of `on` are equal."""
    kinds = [join_types([left.schema[a], right.schema[b]], "connect.where_join") for a, b in on]
    left_keys = [left.coerce(left.value(Column(a)), kind) for (a, _), kind in zip(on, kinds, strict=True)]
    right_keys = [right.coerce(right.value(Column(b)), kind) for (_, b), kind in zip(on, kinds, strict=True)]
    first, left_columns, left_names = _side(left, wanted[0], left_keys)
    second, right_columns, right_names = _side(right, wanted[1], right_keys)
    condition = binary(exp.EQ, column(left_names[0]), column(right_names[0]))
    for a, b in zip(left_names[1:], right_names[1:], strict=True):
        condition = binary(exp.And, condition, binary(exp.EQ, column(a), column(b)))
    join = exp.Join(this=second, on=condition, **({"side": "LEFT"} if how == "LEFT" else {"kind": "INNER"}))
    select = exp.Select(expressions=[exp.Star()])
    select.set("from_", exp.From(this=first))
    select.set("joins", [join])
    return Scope(left.dialect, subquery(select, next(left.names)), left_columns | right_columns, left.names)


def _join_owners(relation: OwnerJoin, dialect: Dialect, names: Iterator[str]) -> Scope:
    """Each row beside the one person who owns the rows with its key; a row without one is dropped (`paths.md`)."""
    left = open_rows(relation.left, dialect, names)
    owner = relation.right.person
    assert owner is not None
    keys = tuple(name for _, name in relation.on)
    right = open_rows(relation.right, dialect, names)
    kind, person = right.schema[owner], right.once(right.value(Column(owner)).node)
    right.predicates.append(exp.Not(this=binary(exp.Is, person, exp.Null())))
    if _has_unique_keys(relation.right, keys):
        owners, rename = right, {relation.name: owner}
    elif relation.several == "each":
        owners = _group(right, (*keys, owner), {})
        rename = {relation.name: owner}
    else:
        extremes = {name: (function(this=person.copy()), kind) for name, function in _ENDS.items()}
        owners = _group(right, keys, extremes)
        owners.predicates.append(binary(exp.EQ, *(owners.columns[name].node.copy() for name in _ENDS)))
        rename = {relation.name: next(iter(_ENDS))}
    owners.columns = {name: owners.columns[name] for name in keys} | {
        new: owners.columns[old] for new, old in rename.items()
    }
    return _join_sides(left, owners, relation.on, (list(left.columns), [relation.name]), "INNER")


_for_people: ContextVar[bool] = ContextVar("for_people", default=False)


@contextmanager
def write_for_people() -> Iterator[None]:
    """Inside, statements are written as if nothing were known of private rows: whether a key repeats is not told."""
    token = _for_people.set(True)
    try:
        yield
    finally:
        _for_people.reset(token)


def _has_unique_keys(relation: Relation, keys: Sequence[str]) -> bool:
    """Whether no two rows share the keys: they are known to be unique in a table of which no row comes twice."""
    if _for_people.get():
        return False
    if isinstance(relation, OwnerJoin) and relation.several == "nobody":
        return _has_unique_keys(relation.left, keys)
    return isinstance(relation, Scan) and relation.source.has_unique(keys)


def find_repeated(source: Source, names: Sequence[str], dialect: Dialect) -> exp.Select:
    """A statement that has a row if some value of the key is that of two rows."""
    relation = Scan(source)
    scope = open_rows(relation, dialect, fresh_names(relation))
    for name in names:
        scope.predicates.append(exp.Not(this=binary(exp.Is, scope.once(scope.value(Column(name)).node), exp.Null())))
    rows = _group(scope, names, {"rows": (exp.Count(this=exp.Star()), Type.INTEGER)})
    rows.predicates.append(binary(exp.GT, rows.columns["rows"].node.copy(), number(1)))
    return rows.dress(exp.Select(expressions=[rows.columns["rows"].node])).limit(1, copy=False)


_ENDS: Mapping[str, type[exp.Func]] = {"the least": exp.Min, "the greatest": exp.Max}


def _summarize(relation: Summary, dialect: Dialect, names: Iterator[str]) -> Scope:
    scope = open_rows(relation.parent, dialect, names)
    found: dict[str, tuple[Node, Type]] = {}
    sums: dict[str, tuple[str, str]] = {}
    for name, asked in relation.columns.items():
        kind = asked.find_type(relation.parent.schema)
        if asked.kind in {"sum", "mean"}:
            assert asked.of is not None
            sums[name] = total, count = f"the sum of {name}", f"the count of {name}"
            value = scope.once(scope.value(asked.of).node)
            ends = {f"{title} {name}": function(this=value.copy()) for title, function in _ENDS.items()}
            found |= {title: (node, type_of(asked.of, relation.parent.schema)) for title, node in ends.items()}
            found[total] = (_exact_sum(scope, asked), Type.INTEGER)
            found[count] = (_count(scope, SummaryColumn("count", asked.of)), Type.INTEGER)
        elif asked.kind in {"count", "distinct"}:
            found[name] = (_count(scope, asked), kind)
        else:
            assert asked.of is not None
            function = exp.Min if asked.kind == "least" else exp.Max
            found[name] = (function(this=scope.once(scope.value(asked.of).node)), kind)
    grouped = _group(scope, relation.keys, found)
    for name, (total, count) in sums.items():
        asked = relation.columns[name]
        edges = tuple(grouped.columns[f"{title} {name}"] for title in _ENDS)
        grouped.columns[name] = _finish_sum(grouped, asked, relation.parent.schema, (total, count), edges)
    grouped.columns = {name: grouped.columns[name] for name in relation.schema}
    return grouped


def _count(scope: Scope, asked: SummaryColumn) -> Node:
    if asked.of is None:
        return exp.Count(this=exp.Star())
    node = scope.once(scope.value(asked.of).node)
    return exp.Count(this=exp.Distinct(expressions=[node]) if asked.kind == "distinct" else node)


def _exact_sum(scope: Scope, asked: SummaryColumn) -> Node:
    """A sum of whole numbers: the values themselves, or multiples of 2**-20 within ±2**30."""
    assert asked.of is not None
    expression = asked.of if scope.value(asked.of).type is Type.INTEGER else grid(asked.of, (-(2.0**30), 2.0**30), 20)
    return scope.dialect.sum(scope.once(scope.value(expression).node), None)


def _finish_sum(
    scope: Scope, asked: SummaryColumn, below: Schema, names: tuple[str, str], ends: tuple[Typed, ...]
) -> Typed:
    """A sum as the type that it has outside, or divided by its count; the mean of equal values is that value."""
    total, count = (scope.columns[name].node for name in names)
    assert asked.of is not None
    whole = type_of(asked.of, below) is Type.INTEGER
    if asked.kind == "sum" and whole:
        return Typed(scope.once(narrow(scope, scope.dialect.widen(total))), Type.INTEGER)
    real = scope.dialect.to(Type.REAL, total)
    if not whole:
        real = scope.dialect.real_quotient(real, scope.real(2.0**20))
    if asked.kind == "mean":
        present = binary(exp.GT, count, number(0))
        least, greatest = (scope.coerce(end, Type.REAL) for end in ends)
        mean = scope.dialect.real_quotient(real, scope.dialect.to(Type.REAL, count.copy()))
        real = choose((binary(exp.EQ, least, greatest), least.copy()), (present, mean))
    return Typed(scope.once(real), Type.REAL)


def _group(scope: Scope, keys: Sequence[str], found: Mapping[str, tuple[Node, Type]]) -> Scope:
    """One row for each group of the keys, with what is found in it, under fresh names."""
    columns: dict[str, Typed] = {}
    inner: list[Node] = []
    outer: list[Node] = []
    for name in keys:
        typed = scope.value(Column(name))
        new = next(scope.names)
        node = scope.flush(typed.node) if typed.type is Type.REAL else typed.node
        inner.append(exp.alias_(node, new, quoted=True, copy=False))
        outer.append(column(new))
        columns[name] = Typed(column(new), typed.type, loose=scope.columns[name].loose)
    for name, (node, kind) in found.items():
        new = next(scope.names)
        outer.append(exp.alias_(node, new, quoted=True, copy=False))
        columns[name] = Typed(column(new), kind)
    used = {part.name for _, (node, _) in found.items() for part in node.find_all(exp.Column)}
    rows = scope.dress(
        exp.Select(expressions=[*inner, *(column(name) for name in sorted(used))])
        if inner or used
        else exp.Select(expressions=[exp.alias_(number(1), next(scope.names), quoted=True)])
    )
    select = exp.Select(expressions=outer or [exp.alias_(number(1), next(scope.names), quoted=True)])
    select.set("from_", exp.From(this=subquery(rows, next(scope.names))))
    if keys:
        select.set("group", exp.Group(expressions=[columns[name].node.copy() for name in keys]))
    return Scope(scope.dialect, subquery(select, next(scope.names)), columns, scope.names)


def _unite(relation: Union, dialect: Dialect, names: Iterator[str]) -> Scope:
    fresh = {name: next(names) for name in relation.schema}
    sides = []
    for below in (relation.left, relation.right):
        scope = open_rows(below, dialect, names)
        nodes = [scope.coerce(scope.value(Column(name)), relation.schema[name]) for name in fresh]
        named = [exp.alias_(node, new, quoted=True) for node, new in zip(nodes, fresh.values(), strict=True)]
        sides.append(scope.dress(exp.Select(expressions=named)))
    united = exp.Union(this=sides[0], expression=sides[1], distinct=False)
    columns = {name: Typed(column(new), relation.schema[name]) for name, new in fresh.items()}
    return Scope(dialect, subquery(united, next(names)), columns, names)


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


_OPENERS: Mapping[type[Relation], Callable[[Any, Dialect, Iterator[str]], Scope]] = {
    **dict.fromkeys((Scan, KeyedScan), _scan),
    Where: _filter,
    Compute: _compute,
    Pick: _pick,
    Limit: _limit_rows,
    OwnerJoin: _join_owners,
    Summary: _summarize,
    Union: _unite,
    **dict.fromkeys((PublicJoin, BoundedJoin), _join_rows),
    PersonJoin: _join_persons,
}
