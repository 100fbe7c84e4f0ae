"""Subqueries that aggregate: exact summaries of one person's rows, or of public rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from mosha.connect.language.expression import Column, Expression
from mosha.connect.plan.person_steps import Summary, SummaryColumn, SummaryKind
from mosha.core.unit import Person
from mosha.tables.declaration import Declaration
from mosha.tables.sql.aggregate import Range, find_range, is_aggregate
from mosha.tables.sql.scalar import Refused, name_of, scalar
from mosha.tables.sql.scope import Scope

__all__ = ["is_summary", "make_summary", "summarize"]

Attach = Callable[[Scope, list[exp.Expression]], tuple[Scope, list[exp.Expression]]]
_KINDS: Mapping[type[exp.Expr], SummaryKind] = {
    exp.Sum: "sum", exp.Avg: "mean", exp.Min: "least", exp.Max: "greatest",
}  # fmt: skip


def is_summary(select: exp.Select) -> bool:
    """Whether a subquery aggregates, groups or drops what is there twice."""
    own = [part for item in select.expressions for part in item.walk(prune=lambda node: isinstance(node, exp.Select))]
    return bool(select.args.get("group") or select.args.get("distinct") or any(map(is_aggregate, own)))


def summarize(select: exp.Select, scope: Scope, attach: Attach | None = None) -> Scope:
    """The rows of a subquery that aggregates: one for each of its groups, each of one person or public.

    `attach` gives the scope a column for each subquery of HAVING, where these may stand.
    """
    items = [(item.alias_or_name, item.this if isinstance(item, exp.Alias) else item) for item in select.expressions]
    group = select.args.get("group")
    if group is not None and any(value for key, value in group.args.items() if key != "expressions"):
        raise Refused("tables.sql_group_by")
    wanted = [_find_item(node, items, scope) for node in group.expressions] if group is not None else []
    if select.args.get("distinct"):
        wanted = [node for _, node in items]
    having = select.args.get("having")
    scope, keys, found = make_summary(scope, wanted, [node for _, node in items] + ([having.this] if having else []))
    known = {name_of(node): name for node, name in zip(wanted, keys, strict=True)} | found
    visible: dict[str, str] = {}
    computed: dict[str, Expression] = {}
    ranges: dict[str, Range] = {}
    for said, node in items:
        title = said or name_of(node).lower()
        inner = _replace_known(node, known)
        expression = scalar(inner, _with_plan_names(scope))
        if isinstance(expression, Column):
            visible[title] = expression.name
            continue
        name = visible[title] = f"{title} of the summary"
        computed[name] = expression
        if (found_range := _find_range(inner, _with_plan_names(scope))) is not None:
            ranges[name] = found_range
    if having is not None:
        condition = _replace_known(having.this, known)
        if attach is not None and condition.find(exp.Select):
            attached, [condition] = attach(_with_plan_names(scope), [condition])
            scope = replace(attached.where(scalar(condition, attached)), names=scope.names)
        else:
            scope = scope.where(scalar(condition, _with_plan_names(scope)))
    return replace(
        scope.compute(computed), names={"": visible}, declared=scope.declared.beside(Declaration(ranges=ranges))
    )


def make_summary(
    scope: Scope, wanted: list[exp.Expression], shown: list[exp.Expression]
) -> tuple[Scope, list[str], dict[str, str]]:
    """The summary of a scope by some keys: its rows, the keys' names in the plan, and those of all aggregates, by text.

    The person is a key beside those that are said, which must imply who that is: then the groups are the same.
    """
    keys: list[str] = []
    computed: dict[str, Expression] = {}
    for place, node in enumerate(wanted):
        expression = scalar(node, scope)
        if not isinstance(expression, Column):
            computed[f"key {place + 1} of the summary"] = expression
        keys.append(expression.name if isinstance(expression, Column) else f"key {place + 1} of the summary")
    person = scope.relation.person
    if scope.base is not None and (person is None or not (scope.persons & set(keys) or scope.implies(keys))):
        raise Refused("tables.sql_summary_of_person", person=str(person))
    names: dict[str, str] = {}
    columns: dict[str, SummaryColumn] = {}
    ranges: dict[str, Range] = {}
    for node in shown:
        for part in node.walk(prune=_is_closed):
            if is_aggregate(part) and name_of(part) not in names:
                names[name_of(part)] = title = f"aggregate {len(names) + 1} of the summary"
                columns[title] = _read_aggregate(part, scope)
                if (found := _find_aggregate_range(part, columns[title].kind, scope)) is not None:
                    ranges[title] = found
    by = tuple(dict.fromkeys([*keys, *([person] if person is not None else [])]))
    relation = Summary(scope.compute(computed).relation, by, columns)
    there = set(by)
    implied = {key: tag for key, tag in scope.implied.items() if there.issuperset(key)}
    new = replace(
        scope, relation=relation, names={"": {}}, implied=implied, persons=scope.persons & there,
        declared=scope.declared.rename({name: name for name in by}).beside(Declaration(ranges=ranges)),
    )  # fmt: skip
    return new, keys, names


def _is_closed(node: exp.Expr) -> bool:
    """Whether what stands inside belongs to the node: to an aggregate, or to a subquery."""
    return is_aggregate(node) or isinstance(node, exp.Select)


def _read_aggregate(node: exp.Expr, scope: Scope) -> SummaryColumn:
    inner = node.this
    if isinstance(node, exp.Count) and not node.expressions:
        if inner is None or isinstance(inner, exp.Star):
            return SummaryColumn("count")
        if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
            return SummaryColumn("distinct", scalar(inner.expressions[0], scope))
        if not isinstance(inner, exp.Distinct):
            return SummaryColumn("count", scalar(inner, scope))
    kind = _KINDS.get(type(node))
    if kind is None or isinstance(inner, exp.Distinct) or node.expressions:
        raise Refused("tables.sql_summary_aggregate", text=name_of(node))
    return SummaryColumn(kind, scalar(inner, scope))


def _find_aggregate_range(node: exp.Expr, kind: SummaryKind, scope: Scope) -> Range | None:
    """The range of a summary of one person's rows: a person counts for no more rows than the unit says."""
    unit = scope.base.unit if scope.base is not None else None
    rows = unit.at_most if isinstance(unit, Person) else None
    if kind in {"count", "distinct"}:
        return None if rows is None else (0, rows)
    found = _find_range(node.this, scope)
    if found is None or kind != "sum":
        return found
    return None if rows is None else (min(0, found[0] * rows), max(0, found[1] * rows))


def _find_range(node: exp.Expression, scope: Scope) -> Range | None:
    def find_known(part: exp.Expression) -> Range | None:
        return scope.declared.ranges.get(scope(part)) if isinstance(part, exp.Column) else None

    return find_range(node, find_known)


def _find_item(node: exp.Expression, items: list[tuple[str, exp.Expression]], scope: Scope) -> exp.Expression:
    """GROUP BY 1, and GROUP BY with the name of an item, where no column of the rows has that name."""
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        place = int(node.this)
        if not 1 <= place <= len(items):
            raise Refused("tables.sql_column_number", number=str(place))
        return items[place - 1][1]
    if not isinstance(node, exp.Column) or node.table:
        return node
    named = [item for title, item in items if title.lower() == node.name.lower()]
    return named[0] if named and scope.find(node) is None else node


def _replace_known(node: exp.Expression, known: Mapping[str, str]) -> exp.Expression:
    """The expression with keys and aggregates as columns of the summary."""
    node = node.copy()
    if (name := known.get(name_of(node))) is not None:
        return exp.column(name, quoted=True)
    for part in list(node.walk(prune=lambda part: name_of(part) in known or isinstance(part, exp.Select))):
        if part is not node and (name := known.get(name_of(part))) is not None:
            part.replace(exp.column(name, quoted=True))
    return node


def _with_plan_names(scope: Scope) -> Scope:
    """The scope whose columns are called as the plan calls them."""
    return replace(scope, names={"": {name: name for name in scope.schema}}, own={})
