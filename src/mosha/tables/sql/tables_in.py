"""FROM, JOIN and WITH: the protected table that a SELECT reads, and what its columns are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from mosha.connect.language.expression import Column
from mosha.connect.language.schema import Schema
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError, InvalidParameter
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.parsing import check_select
from mosha.tables.sql.scalar import Refused, name_of, scalar
from mosha.tables.table import Table

__all__ = ["Scope", "read_from"]

Given = Mapping[str, Any]
TWICE = "two columns of a subquery"
HIDDEN = ""
"""In place of a name in the plan: a column that a LEFT JOIN compares, of which the plan keeps the left one alone."""


@dataclass(frozen=True, eq=False)
class Scope:
    """A table and the names that a query knows its columns by: {alias: {column: name in the plan}}."""

    table: Table
    names: Mapping[str, Mapping[str, str]]

    @property
    def schema(self) -> Schema:
        """The types of the columns, by their names in the plan."""
        return self.table.schema

    def __call__(self, node: exp.Column) -> str:
        """The name in the plan; unquoted names are found whatever their case."""
        if node.args.get("db") or node.args.get("catalog"):
            raise Refused("tables.sql_column_name", text=name_of(node))
        wanted = node.name
        places = [self._place(node.table)] if node.table else list(self.names.values())
        exact = {columns[wanted] for columns in places if wanted in columns}
        quoted = getattr(node.this, "quoted", False)
        if not exact and not quoted:
            folded = wanted.lower()
            exact = {plan for columns in places for name, plan in columns.items() if name.lower() == folded}
        if exact == {HIDDEN}:
            raise Refused("tables.sql_left_join_column", text=name_of(node), spent="nothing")
        exact.discard(HIDDEN)
        if len(exact) == 1:
            return exact.pop()
        if exact:
            raise DataError("tables.sql_column_ambiguous", column=wanted)
        known = ", ".join(repr(name) for columns in places for name in columns)
        raise DataError(f"there is no column {wanted!r}. The columns are: {known}.")

    def _place(self, alias: str) -> Mapping[str, str]:
        for name, columns in self.names.items():
            if name.lower() == alias.lower():
                return columns
        raise DataError("tables.sql_no_alias", table=alias)


def read_from(select: exp.Select, given: Given) -> Scope:
    """The rows that a SELECT reads, after its joins and its WHERE."""
    tables = dict(given)
    seen: set[str] = set()
    for common in (select.args.get("with_") or exp.With(expressions=[])).expressions:
        if select.args["with_"].args.get("recursive"):
            raise Refused("tables.sql_recursive")
        _check_new(common.alias, seen, "two parts of WITH")
        seen.add(common.alias)
        part = _read_subquery(check_select(common.this), tables)
        tables = {name: table for name, table in tables.items() if name.lower() != common.alias.lower()}
        tables[common.alias] = part
    start = select.args.get("from_")
    if start is None:
        raise Refused("tables.sql_needs_from")
    alias, found = _open_table(start.this, tables)
    if isinstance(found, Relation):
        raise Refused("tables.sql_public_first", table=alias)
    scope = found if isinstance(found, Scope) else _scope_of_table(alias, found)
    scope = Scope(scope.table, {alias: dict(pair for columns in scope.names.values() for pair in columns.items())})
    for join in select.args.get("joins") or []:
        scope = _join_table(scope, join, tables)
    where = select.args.get("where")
    if where is not None:
        if any(is_aggregate(part) for part in where.walk()):
            raise Refused("tables.sql_where_aggregate")
        scope = replace(scope, table=scope.table.where(scalar(where.this, scope)))
    return scope


def _check_new(name: str, taken: Iterable[str], what: str) -> None:
    """Refuse a name that is taken, whatever the case of its letters: it would mean the one or the other."""
    if name.lower() in {other.lower() for other in taken}:
        raise Refused(f"{what} are called {name!r}: give one of them another name. Nothing was spent.")


def _scope_of_table(alias: str, table: Table) -> Scope:
    return Scope(table, {alias: {name: name for name in table.schema}})


def _open_table(node: exp.Expression, tables: Given) -> tuple[str, Any]:
    """A table of the query: its alias, and the protected table, public relation or subquery behind it."""
    if isinstance(node, exp.Subquery):
        if not node.alias:
            raise Refused("tables.sql_subquery_name")
        return node.alias, _read_subquery(check_select(node.this), tables)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise Refused("tables.sql_from_names", text=name_of(node))
    if extras := [key for key, value in node.args.items() if value and key not in {"this", "alias", "db", "catalog"}]:
        raise Refused("tables.sql_from_without", text=name_of(node), option=extras[0])
    if node.args.get("db") or node.args.get("catalog"):
        raise Refused("tables.sql_no_schemas", text=name_of(node))
    if (name := _find_name(node, tables)) is not None:
        table = tables[name]
        if not isinstance(table, Table | Relation | Scope):
            raise InvalidParameter("tables.sql_not_a_table", table=name, spent="nothing")
        return node.alias or node.name, table
    if not tables:
        raise DataError("tables.sql_no_tables_given", table=node.name)
    raise DataError("tables.sql_no_table", table=node.name, tables=[repr(name) for name in tables])


def _find_name(node: exp.Table, tables: Given) -> str | None:
    """The name of a table as it was given; where it stands without quotes, the case of its letters may differ."""
    if node.name in tables:
        return str(node.name)
    folded = [] if node.this.quoted else [name for name in tables if name.lower() == node.name.lower()]
    if len(folded) > 1:
        said = ", ".join(f'"{name}"' for name in folded)
        raise DataError("tables.sql_table_ambiguous", table=node.name, said=said, spent="nothing")
    return folded[0] if folded else None


def _read_subquery(select: exp.Select, tables: Given) -> Scope:
    """A subquery that keeps whose a row is: filters and computed columns."""
    for part in ("group", "having", "order", "limit"):
        if select.args.get(part):
            raise Refused("tables.sql_subquery_clause", clause=part.upper())
    scope = read_from(select, tables)
    visible: dict[str, str] = {}
    computed: dict[str, Any] = {}
    for item in select.expressions:
        if isinstance(item, exp.Star):
            every = _every(scope)
            for name in visible:
                _check_new(name, every, TWICE)
            visible |= every
            continue
        if any(is_aggregate(part) for part in item.walk()):
            raise Refused("tables.sql_subquery_aggregate")
        inner = item.this if isinstance(item, exp.Alias) else item
        expression = scalar(inner, scope)
        _check_new(item.alias_or_name, visible, TWICE)
        if isinstance(expression, Column):
            visible[item.alias_or_name] = expression.name
        elif not item.alias:
            raise Refused("tables.sql_needs_name", text=name_of(item))
        else:
            fresh = f"{item.alias} of {len(computed) + 1}" if item.alias in scope.table.schema else item.alias
            computed[fresh] = expression
            visible[item.alias] = fresh
    table = scope.table.compute(**computed) if computed else scope.table
    return Scope(table, {"": visible})


def _every(scope: Scope) -> dict[str, str]:
    """What * stands for: each column once, and the left one of two that a join compares."""
    found: dict[str, str] = {}
    for columns in scope.names.values():
        for name, plan in columns.items():
            if plan != HIDDEN and found.setdefault(name, plan) != plan:
                raise Refused(f"{TWICE} are called {name!r}: name the columns in place of *. Nothing was spent.")
    return found


def _join_table(scope: Scope, join: exp.Join, tables: Given) -> Scope:
    kind, side = str(join.args.get("kind") or "INNER").upper(), str(join.args.get("side") or "").upper()
    if kind not in {"INNER", "OUTER"} or side not in {"", "LEFT"} or join.args.get("method"):
        raise Refused("tables.sql_join_kind", text=name_of(join))
    how = "left" if side == "LEFT" else "inner"
    alias, found = _open_table(join.this, tables)
    _check_new(alias, scope.names, "two tables of FROM")
    if isinstance(found, Relation):
        right: Mapping[str, str] = {name: name for name in found.schema}
    else:
        found = found if isinstance(found, Scope) else _scope_of_table(alias, found)
        right = dict(pair for columns in found.names.values() for pair in columns.items())
    pairs = _pairs(join, scope, alias, right)
    if isinstance(found, Relation):
        table = scope.table.join_public(found, on=pairs, how=how)
    else:
        table = _join_persons(scope, found, pairs, how)
    hidden = {b for a, b in pairs.items() if a == b} if how == "left" else set()
    shown = {name: HIDDEN if plan in hidden else plan for name, plan in right.items() if plan in table.schema}
    return Scope(table, {**scope.names, alias: shown})


def _join_persons(scope: Scope, other: Scope, pairs: dict[str, str], how: str) -> Table:
    left, right = scope.table.relation.person, other.table.relation.person
    if left is None or right is None or pairs.get(left) != right:
        wanted = f"ON left.{left} = right.{right}" if left and right else "two tables that protect the same person"
        raise Refused("tables.sql_join_person", wanted=wanted)
    also = {a: b for a, b in pairs.items() if a != left}
    return scope.table.join(other.table, also=also, how=how)


def _pairs(join: exp.Join, scope: Scope, alias: str, right: Mapping[str, str]) -> dict[str, str]:
    """The columns that must be equal: {left: right}, by USING or ON."""
    using = join.args.get("using")
    if using:
        return {scope(exp.column(item.name)): right[item.name] for item in using if _check_known(item.name, right)}
    condition = join.args.get("on")
    if condition is None:
        raise Refused("tables.sql_join_condition")
    other = Scope(scope.table, {alias: right})
    pairs = {}
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        if not isinstance(part, exp.EQ) or not all(isinstance(s, exp.Column) for s in (part.this, part.expression)):
            raise Refused("tables.sql_join_compares", text=name_of(part))
        first, second = part.this, part.expression
        if first.table.lower() == alias.lower():
            first, second = second, first
        pairs[scope(first)] = other(second)
    return pairs


def _check_known(name: str, columns: Mapping[str, str]) -> bool:
    if name not in columns:
        raise DataError("tables.sql_no_join_column", column=name, columns=[repr(name) for name in columns])
    return True
