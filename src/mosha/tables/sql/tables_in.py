"""FROM, JOIN, WHERE and WITH: the rows that a SELECT reads, and what their columns are called."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mosha.connect.language.expression import Column, Expression
from mosha.connect.plan.person_steps import NOT_CHANGED, Pick, Union
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError, InvalidParameter
from mosha.tables.declaration import Declaration
from mosha.tables.links import Links, PublicTable
from mosha.tables.sql.aggregate import Range, find_range, is_aggregate
from mosha.tables.sql.joining import join_full, join_pieces, match_people
from mosha.tables.sql.parsing import check_select, is_union
from mosha.tables.sql.scalar import Refused, all_of, constant, list_conditions, name_of, scalar
from mosha.tables.sql.scope import PERSON, Piece, Scope, check_new
from mosha.tables.sql.subqueries import Reader, attach_subqueries
from mosha.tables.sql.summaries import is_summary, summarize
from mosha.tables.table import Table

__all__ = ["Scope", "make_reader", "project", "read_from", "reads_public_alone"]

Given = Mapping[str, Any]


def read_from(select: exp.Select, given: Given, *, results: bool = False) -> Scope:
    """The rows that a SELECT reads, after its joins and its WHERE; subqueries among its items become columns.

    Args:
        select: the query.
        given: the tables that it may name.
        results: whether its items are results, and not columns of a subquery.
    """
    tables = _read_common(select, dict(given))
    start = select.args.get("from_")
    if start is None:
        raise Refused("tables.sql_needs_from")
    where = select.args.get("where")
    if where is not None and any(is_aggregate(part) for part in _walk_own(where)):
        raise Refused("tables.sql_where_aggregate")
    conditions = list_conditions(where.this if where is not None else None)
    pieces = [Piece(*_open_table(start.this, tables))]
    for join in select.args.get("joins") or []:
        pieces = _add_piece(pieces, join, tables, conditions)
    scope, left = pieces[0].name_scope().scope, conditions
    if len(pieces) > 1:
        scope, left = join_pieces(match_people(pieces, conditions, select) if results else pieces, conditions)
    if select.find(exp.Exists, exp.In, exp.Subquery):
        scope, left = attach_subqueries(scope, left, select, make_reader(tables))
    return _keep_rows(scope, left) if left else scope


def _keep_rows(scope: Scope, conditions: list[exp.Expression]) -> Scope:
    """The rows for which all conditions hold; the ranges of their values are what the conditions leave."""
    kept = scope.where(all_of([scalar(condition, scope) for condition in conditions]))
    ends = [found for condition in conditions for found in _list_ends(condition)]
    found = _narrow(scope.declared.ranges, [one for one in ends if isinstance(one[0], exp.Column)], scope.find)
    told = {name: ends for name, ends in found.items() if scope.schema[name].numeric}
    said = _narrow(
        {}, [one for one in ends if not isinstance(one[0], exp.Column)], lambda node: repr(scalar(node, scope))
    )
    kept = replace(kept, said={**scope.said, **said})
    return replace(kept, declared=Declaration(ranges=told).beside(scope.declared)) if told else kept


_BELOW, _ABOVE = (exp.LT, exp.LTE), (exp.GT, exp.GTE)


def _narrow(
    ranges: Mapping[str, Range], ends: Iterable[tuple[exp.Expression, float, float]], find: Any
) -> dict[str, Range]:
    """The ranges of values among rows for which all conditions hold, such as x BETWEEN 0 AND 30 or x > 3 AND x <= 9.

    A range that is declared is cut to what the conditions leave of it; a value without one needs both ends.

    Args:
        ranges: those that are declared, by the names of columns in the plan.
        ends: what must be true of every row, as `_list_ends` says it.
        find: the name of a value in the plan, or None.
    """
    said: dict[str, Range] = {}
    for value, low, high in ends:
        name = find(value)
        if name is not None:
            known = said.get(name, ranges.get(name, (-math.inf, math.inf)))
            said[name] = max(known[0], low), min(known[1], high)
    return {name: found for name, found in said.items() if -math.inf < found[0] < found[1] < math.inf}


def _list_ends(node: exp.Expression) -> list[tuple[exp.Expression, float, float]]:
    """The values of a condition with what it leaves of them; no more than it says."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Between):
        low, high = (_read_end(node.args[name]) for name in ("low", "high"))
        if low is None or high is None or node.args.get("negate"):
            return []
        return [(node.this, *((min(low, high), max(low, high)) if node.args.get("symmetric") else (low, high)))]
    if not isinstance(node, _BELOW + _ABOVE):
        return []
    sides, is_below = (node.this, node.expression), isinstance(node, _BELOW)
    if _read_end(sides[1]) is None:
        sides, is_below = (sides[1], sides[0]), not is_below
    end = _read_end(sides[1])
    if end is None or sides[0].find(exp.Column) is None:
        return []
    return [(sides[0], -math.inf, end) if is_below else (sides[0], end, math.inf)]


def _read_end(node: exp.Expression) -> float | None:
    """A number that a condition says."""
    if node.find(exp.Column, exp.Select) is not None:
        return None
    try:
        found = constant(node)
    except Refused:
        return None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def make_reader(tables: Given) -> Reader:
    """How a subquery reads these tables."""
    return Reader(
        lambda inner: read_from(inner, tables),
        lambda inner: _read_inner(inner, tables),
        lambda inner: _open_tables(inner, tables),
    )


def _open_tables(select: exp.Select, given: Given) -> list[Scope]:
    """The tables of FROM, each by itself."""
    tables = _read_common(select, dict(given))
    start = select.args.get("from_")
    nodes = [part.this for part in ([start] if start is not None else []) + (select.args.get("joins") or [])]
    return [scope.under(alias) for alias, scope in (_open_table(node, tables) for node in nodes)]


def reads_public_alone(select: exp.Select, given: Given) -> bool:
    """Whether every table of a query is public; a name that nobody knows is left for who reads the query."""
    own = {common.alias.lower() for common in select.find_all(exp.CTE)}
    named = [node for node in select.find_all(exp.Table) if node.args.get("db") or node.name.lower() not in own]
    if not all(isinstance(node.this, exp.Identifier) for node in named):
        return False
    found = [_find_name(node, given) for node in named]
    return bool(found) and all(name is not None and _is_public(given[name]) for name in found)


def _is_public(table: object) -> bool:
    relation = table.relation if isinstance(table, PublicTable) else table
    return isinstance(relation, Relation) and relation.stability == NOT_CHANGED


def _walk_own(node: exp.Expression) -> list[exp.Expr]:
    """The pieces of an expression that do not stand in a subquery."""
    return list(node.walk(prune=lambda part: isinstance(part, exp.Select)))


def _read_common(select: exp.Select, tables: dict[str, object]) -> dict[str, Any]:
    """The tables that may be named, with those of WITH."""
    seen: set[str] = set()
    for common in (select.args.get("with_") or exp.With(expressions=[])).expressions:
        if select.args["with_"].args.get("recursive"):
            raise Refused("tables.sql_recursive")
        check_new(common.alias, seen, "tables.sql_two_parts")
        seen.add(common.alias)
        part = _name_columns(_read_inner(common.this, tables), common.args["alias"])
        tables = {name: table for name, table in tables.items() if name.lower() != common.alias.lower()}
        tables[common.alias] = part
    return tables


def _add_piece(pieces: list[Piece], join: exp.Join, tables: Given, conditions: list[exp.Expression]) -> list[Piece]:
    """The tables of FROM with one more; conditions of inner joins go to those of WHERE."""
    kind, side = str(join.args.get("kind") or "INNER").upper(), str(join.args.get("side") or "").upper()
    natural = join.args.get("method") == "NATURAL"
    known = kind in {"INNER", "OUTER", "CROSS"} and side in {"", "LEFT", "RIGHT", "FULL"}
    known = known and (natural or not join.args.get("method"))
    if not known or (side in {"RIGHT", "FULL"} and len(pieces) != 1):
        raise Refused("tables.sql_join_kind", text=name_of(join))
    alias, found = _open_table(join.this, tables)
    using = tuple(item.name for item in join.args.get("using") or ())
    if natural:  # the columns that both sides have
        left = {name.lower() for piece in pieces for names in piece.scope.names.values() for name in names}
        using = tuple(name for name in found.visible() if name.lower() in left)
        kind = kind if using else "CROSS"
    on = tuple(list_conditions(join.args.get("on")))
    if not side:
        conditions += on
        return [*pieces, Piece(alias, found, on=on, using=using, text=name_of(join), cross=kind == "CROSS")]
    if side == "FULL":
        return [join_full(pieces[0], Piece(alias, found, on=on, using=using, text=name_of(join)))]
    if side == "RIGHT":
        return [Piece(alias, found), replace(pieces[0], outer=True, on=on, using=using, text=name_of(join))]
    return [*pieces, Piece(alias, found, outer=True, on=on, using=using, text=name_of(join))]


def _open_table(node: exp.Expression, tables: Given) -> tuple[str, Scope]:
    """A table of the query: its alias and its rows."""
    if isinstance(node, exp.Subquery):
        if not node.alias:
            raise Refused("tables.sql_subquery_name")
        return node.alias, _name_columns(_read_inner(node.this, tables), node.args["alias"])
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise Refused("tables.sql_from_names", text=name_of(node))
    if extras := [key for key, value in node.args.items() if value and key not in {"this", "alias", "db", "catalog"}]:
        raise Refused("tables.sql_from_without", text=name_of(node), option=extras[0])
    if (name := _find_name(node, tables)) is not None:
        return _name_alias(node, name), _name_columns(open_given(name, tables[name]), node.args.get("alias"))
    if node.args.get("db"):
        raise Refused("tables.sql_no_schemas", text=name_of(node))
    if not tables:
        raise DataError("tables.sql_no_tables_given", table=node.name)
    raise DataError("tables.sql_no_table", table=node.name, tables=[repr(name) for name in tables])


def _name_alias(node: exp.Table, name: str) -> str:
    return node.alias or (node.name if "." not in name else name)


def open_given(name: str, table: object) -> Scope:
    """The rows of a table that was given to the query."""
    if isinstance(table, Scope):
        return table
    if isinstance(table, Table):
        person = table.relation.person
        implied: dict[tuple[str, ...], str] = {(person,): PERSON} if person is not None else {}
        visible = {column: column for column in table.schema if column not in table.links.hidden}
        persons = frozenset() if person is None else frozenset({person})
        return Scope(
            table.relation, {name: visible}, table, table.declared, {**table.links.implied, **implied}, persons
        )
    if isinstance(table, PublicTable | Relation):
        if not _is_public(table):
            raise InvalidParameter("tables.sql_not_a_table", table=name, spent="nothing")
        relation, declared = (table.relation, table.declared) if isinstance(table, PublicTable) else (table, None)
        names = {name: {column: column for column in relation.schema}}
        return Scope(relation, names, None) if declared is None else Scope(relation, names, None, declared)
    raise InvalidParameter("tables.sql_not_a_table", table=name, spent="nothing")


def _find_name(node: exp.Table, tables: Given) -> str | None:
    """The name of a table as it was given; where it stands without quotes, the case of its letters may differ.

    A table that was given with its schema is found without it, where no other has the same name.
    """
    said = ".".join(part.name for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part)
    if said in tables:
        return said
    folded = [] if node.this.quoted else [name for name in tables if name.lower() == said.lower()]
    if not folded and "." not in said:
        last = {name: name.rpartition(".")[2] for name in tables if "." in name}
        folded = [name for name, plain in last.items() if plain == said or plain.lower() == said.lower()]
    if not folded and "." in said:  # the schema in which the database of a table looks by itself
        place, _, plain = said.lower().rpartition(".")
        links = {name: getattr(table, "links", None) for name, table in tables.items() if name.lower() == plain}
        folded = [name for name, found in links.items() if isinstance(found, Links) and found.place == place]
    if len(folded) > 1:
        quoted = ", ".join(f'"{name}"' for name in folded)
        raise DataError("tables.sql_table_ambiguous", table=node.name, said=quoted, spent="nothing")
    return folded[0] if folded else None


def _name_columns(scope: Scope, alias: object) -> Scope:
    """The scope with its columns renamed, where the alias of a table names them: AS t (a, b)."""
    listed = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not listed:
        return scope
    visible = scope.visible()
    if len(listed) > len(visible):
        raise Refused("tables.sql_too_many_names", names=len(listed), columns=len(visible), spent="nothing")
    new = [item.name for item in listed] + list(visible)[len(listed) :]
    return replace(scope, names={"": dict(zip(new, visible.values(), strict=True))}, own={})


def _read_inner(node: exp.Expression, tables: Given) -> Scope:
    """A subquery that keeps whose a row is: filters, computed columns, summaries by person, UNION ALL."""
    while isinstance(node, exp.Subquery) and not node.alias:
        node = node.this
    if is_union(node):
        first, second = node.this, node.expression
        sides = _read_inner(first, tables), _read_inner(second, tables)
        return _unite(*sides, _list_constants(first), _list_constants(second))
    select = check_select(node)
    if select.args.get("limit"):
        raise Refused("tables.sql_subquery_clause", clause="LIMIT")
    scope = read_from(select, tables)
    if is_summary(select):
        return summarize(select, scope)
    return project(select, scope)


def project(select: exp.Select, scope: Scope) -> Scope:
    """The columns that a SELECT without aggregates shows, under its names."""
    visible: dict[str, str] = {}
    computed: dict[str, Expression] = {}
    known = Declaration()
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            every = scope.visible() if isinstance(item, exp.Star) else _list_columns(scope, item)
            for name in visible:
                check_new(name, every, "tables.sql_two_columns")
            visible |= every
            continue
        inner = item.this if isinstance(item, exp.Alias) else item
        expression = scalar(inner, scope)
        check_new(item.alias_or_name, visible, "tables.sql_two_columns")
        if isinstance(expression, Column):
            visible[item.alias_or_name] = expression.name
        elif not item.alias:
            raise Refused("tables.sql_needs_name", text=name_of(item))
        else:
            fresh = f"{item.alias} of {len(computed) + 1}" if item.alias in scope.schema else item.alias
            computed[fresh] = expression
            visible[item.alias] = fresh
            known = known.beside(_declare_computed(fresh, inner, scope))
    declared = scope.declared.without(computed).beside(known)
    return replace(scope.compute(computed), names={"": visible}, own={}, declared=declared)


def _declare_computed(name: str, node: exp.Expression, scope: Scope) -> Declaration:
    """What the query says of a column that it computes: its range."""

    def find_known(part: exp.Expression) -> Range | None:
        return scope.declared.ranges.get(scope(part)) if isinstance(part, exp.Column) else None

    found = find_range(node, find_known)
    return Declaration(ranges={} if found is None else {name: found})


def _list_columns(scope: Scope, item: exp.Column) -> dict[str, str]:
    """What alias.* stands for."""
    for name, columns in scope.names_behind_aliases.items():
        if name.lower() == item.table.lower():
            return dict(columns)
    raise DataError("tables.sql_no_alias", table=item.table)


def _list_constants(node: exp.Expression) -> dict[str, tuple[Any, ...]]:
    """The columns of a part of UNION ALL that are constants: each holds one value, which the query says."""
    inner = node.unnest()
    items = [item for item in inner.expressions if isinstance(item, exp.Alias)] if isinstance(inner, exp.Select) else []
    return {item.alias: (constant(item.this),) for item in items if isinstance(item.this, exp.Literal)}


def _unite(
    left: Scope, right: Scope, first: Mapping[str, tuple[Any, ...]], second: Mapping[str, tuple[Any, ...]]
) -> Scope:
    """UNION ALL: columns by their places, under the names of the first part; `first` and `second` are constants."""
    names = [scope.visible() for scope in (left, right)]
    same_kind = (left.base is None) == (right.base is None)
    if left.base is not None and right.base is not None:
        same_kind = left.base.unit.protects_same(right.base.unit) and left.base.account is right.base.account
    if len(names[0]) != len(names[1]) or not same_kind:
        raise Refused("tables.sql_union_all")
    sides = []
    for scope, visible in zip((left, right), names, strict=True):
        columns = dict(zip(names[0], visible.values(), strict=True))
        if scope.relation.person is not None:
            columns["who owns the row"] = scope.relation.person
        sides.append(Pick(scope.relation, dict(reversed(columns.items()))))
    known = [
        scope.declared.rename({plan: title for title, plan in scope.visible().items()}).beside(Declaration(keys=values))
        for scope, values in ((left, first), (right, second))
    ]
    known[1] = known[1].rename(dict(zip(names[1], names[0], strict=True)))
    persons = frozenset({"who owns the row"}) if left.relation.person is not None else frozenset()
    implied: dict[tuple[str, ...], str] = {("who owns the row",): PERSON} if persons else {}
    return Scope(
        Union(*sides), {"": {name: name for name in names[0]}}, left.base, known[0].either(known[1]), implied, persons
    )
