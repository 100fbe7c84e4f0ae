"""The keys of GROUP BY: which they are, what is said about them, and where their groups come from.

GROUP BY ROLLUP, CUBE and GROUPING SETS: the finest groups are asked once, the others are their sums.

Guarantee:
    Sums of released counts and sums are post-processing: free, and consistent with one another to the last digit.
    Where the noise is planned for the sets (`grouping_noise.md`), the variance of every sum is known, and its bar.
    Elsewhere a sum of m cells misses its bar with probability at most b = 1 - confidence; no bar depends on the noise.
    (1) Each cell misses its own bar at level 1 - b/m with probability b/m; if none does, the sum is within their sum.
    (2) The noise of cells is independent and symmetric. With probability 1 - b/2 all |noise| are within Q, their bar at
        level 1 - b/2m. Given that, |noise| is at most as large as min(|noise|, Q) without it, whose law the bars at
        levels u_1 < u_2 < ... bound: M(r) = sum (u_i - u_(i-1)) cosh(r bar_i), the rest at Q. By Chernoff |sum| exceeds
        (ln(4/b) + sum ln M(r)) / r with probability at most b/2, for any r > 0 that the noise does not decide.
    (2) is about noise alone, and is used where the limits of a person are declared, so that nothing else is in a bar.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sqlglot import exp

from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Column, Expression, Literal, lit
from mosha.connect.language.schema import Type
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.unit import Person
from mosha.tables.answer import Answer
from mosha.tables.functions.constants import fold_numbers, read_texts
from mosha.tables.parts.additive import Count, Sum
from mosha.tables.question import Question
from mosha.tables.questions.groupings import MOST_SETS
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.output import find_position
from mosha.tables.sql.scalar import Refused, constant, name_of, scalar
from mosha.tables.sql.scope import Scope
from mosha.tables.table import FROM_DATA, is_from_data

if TYPE_CHECKING:
    from mosha.core.release import Receipt
    from mosha.tables.questions.release_plan import Released, ReleasePlan

__all__ = [
    "add_up",
    "check_columns",
    "check_grouped",
    "check_sets",
    "check_shared",
    "divide_means",
    "find_public",
    "forecast_sums",
    "list_columns",
    "list_distinct",
    "read_keys",
    "read_marks",
    "split_sets",
]


def read_keys(
    nodes: Sequence[Any], items: list[tuple[str, exp.Expression]], scope: Scope, windows: Iterable[str] = ()
) -> dict[str, tuple[str, Any]]:
    """The keys: name -> (SQL text, expression); GROUP BY takes expressions, positions and aliases."""
    found: dict[str, tuple[str, Any]] = {}
    aliases = dict(items)
    columns = {name.lower() for name in list_columns(scope)}
    for node in nodes:
        target = find_position(node, items)
        if isinstance(target, exp.Column) and target.name in aliases and target.name.lower() not in columns:
            target = aliases[target.name]
        name = next((alias for alias, item in items if name_of(item) == name_of(target)), None)
        name = name or (target.name if isinstance(target, exp.Column) else name_of(target))
        if any(name_of(part) in set(windows) for part in target.find_all(exp.Column)):
            raise Refused("tables.sql_window_key", text=target.name, spent="nothing")
        if any(is_aggregate(part) for part in target.walk()):
            raise Refused("tables.sql_group_by_aggregate", text=name_of(target))
        found[name] = (name_of(target), scalar(target, scope))
    return found


def check_shared(groups: Mapping[str, tuple[str, object]], scope: Scope) -> None:
    """Refuse groups from the data that hold one person's rows each: none of them could ever be shown."""
    columns = [expression.name for _, expression in groups.values() if isinstance(expression, Column)]
    implied = {name for key in scope.implied if set(key) <= set(columns) for name in key}
    if own := scope.persons & set(columns) | implied:
        refusal = Refused("tables.groups_of_one_person", spent="nothing")
        near = {name for place in scope.names.values() if own & set(place.values()) for name in place.values()}
        private = [text for text, key in groups.values() if isinstance(key, Column) and key.name in near]
        refusal.__dict__["private_keys"] = private
        raise refusal


def check_columns(what: str, given: object, known: set[str]) -> None:
    """What is said about columns is said by name, about columns that are there."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameter("tables.sql_by_column", parameter=what)
    if unknown := [name for name in given or {} if name not in known]:
        raise DataError(
            "tables.sql_unknown_column",
            parameter=what,
            column=str(unknown[0]),
            columns=[repr(name) for name in sorted(known)],
        )


def check_grouped(given: Mapping[str, object], groups: Mapping[str, tuple[str, object]]) -> None:
    """Keys are said of what the query groups by, and of nothing else."""
    for name in given:
        if not any(name in _list_names(key, text, expression) for key, (text, expression) in groups.items()):
            raise InvalidParameter("tables.sql_keys_without_group", parameter="keys", column=name, spent="nothing")


def _list_names(key: str, text: str, expression: object) -> tuple[str, ...]:
    """What a key may be called: as SELECT names it, as GROUP BY writes it, as its column is called."""
    return (key, text, expression.name) if isinstance(expression, Column) else (key, text)


def list_columns(scope: Scope) -> set[str]:
    """The names of all columns that a query may write."""
    return {name for columns in scope.names.values() for name in columns}


def find_public(
    select: exp.Select, groups: Mapping[str, tuple[str, object]], given: dict[str, object], scope: Scope
) -> dict[str, list[Any]] | str | None:
    """Public keys of the columns that have them: as given, as WHERE lists them, as declared; others' come from data."""
    listed = _listed_in_where(select, scope)
    found: dict[str, list[Any]] = {}
    asked = False
    for name, (text, expression) in groups.items():
        declared = scope.table.declared.keys.get(expression.name) if isinstance(expression, Column) else None
        said = [given.get(called) for called in _list_names(name, text, expression)]
        for source in (*said, listed.get(repr(expression)), declared):
            if is_from_data(source):
                asked = True
                break
            if source is not None:
                if isinstance(source, str | bytes) or not isinstance(source, Iterable):
                    raise InvalidParameter("tables.keys_of_column", parameter="keys", column=name)
                found[name] = list(source)
                break
    return found or (FROM_DATA if asked else None)


def _listed_in_where(select: exp.Select, scope: Scope) -> dict[str, list[Any]]:
    where = select.args.get("where")
    if where is None:
        return {}
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    listed: dict[str, list[Any]] = {}
    for part in parts:
        if isinstance(part, exp.In) and part.expressions:
            listed.update([_read_keys(scalar(part.this, scope), part.expressions, scope)])
        elif isinstance(part, exp.EQ) and _is_constant(part.expression):
            listed.update([_read_keys(scalar(part.this, scope), [part.expression], scope)])
    return listed


def _read_keys(key: Expression, nodes: Sequence[Any], scope: Scope) -> tuple[str, list[Any]]:
    """A key and its listed values, in its type where they are written in another: days as texts, 1 for TRUE."""
    values = [constant(node) for node in nodes]
    if None not in values and type_of(key, scope.schema) not in {Type.TIMESTAMP, Type.INSTANT}:
        said = read_texts([key, *map(lit, values)], scope.schema)[1:]
        values = [each.value if isinstance(each, Literal) else value for each, value in zip(said, values, strict=True)]
    return repr(key), values


def _is_constant(node: exp.Expression) -> bool:
    said = node.this if isinstance(node, exp.Cast) else node
    return isinstance(said, exp.Literal | exp.Boolean) or fold_numbers(node) is not None


Sets = tuple[frozenset[str], ...]


def split_sets(group: exp.Group | None) -> tuple[list[exp.Expr], Sets]:
    """All keys of GROUP BY, and the sets of them (by their texts) that are asked for; none for keys alone."""
    if group is None:
        return [], ()
    if any(value for key, value in group.args.items() if key != "expressions"):
        raise Refused("tables.sql_group_by")
    parts = [_list_sets(node) for node in group.expressions]
    keys = list({name_of(key): key for sets in parts for one in sets for key in one}.values())
    if all(len(sets) == 1 for sets in parts):
        return keys, ()
    if math.prod(map(len, parts)) > MOST_SETS:
        raise Refused("tables.sql_too_many_sets", most=MOST_SETS, spent="nothing")
    chosen = (frozenset(name_of(key) for one in several for key in one) for several in itertools.product(*parts))
    return keys, tuple(dict.fromkeys(chosen))


def _list_sets(node: exp.Expr) -> list[list[exp.Expr]]:
    """The sets of keys that one part of GROUP BY stands for."""
    if isinstance(node, exp.Rollup):
        listed = [_list_keys(part) for part in node.expressions]
        return [list(itertools.chain(*listed[:length])) for length in range(len(listed), -1, -1)]
    if isinstance(node, exp.Cube):
        listed = [_list_keys(part) for part in node.expressions]
        sizes = range(len(listed), -1, -1)
        return [list(itertools.chain(*some)) for size in sizes for some in itertools.combinations(listed, size)]
    if isinstance(node, exp.GroupingSets):
        return [one for part in node.expressions for one in _list_sets(part)]
    return [_list_keys(node)]


def _list_keys(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return _list_keys(node.this) if isinstance(node, exp.Paren) else [node]


def check_sets(question: Question, sets: Sets, names: Mapping[str, str]) -> tuple[Question, Sets]:
    """The question about sets, and these by their keys; refused where groups cannot be added up or some are hidden."""
    if not sets:
        return question, ()
    for name, aggregate in question.aggregates.items():
        if not isinstance(aggregate, Count | Sum):
            raise Refused("tables.sql_sets_add_up", text=name, spent="nothing")
    if question.only is None or question.private_keys:
        raise Refused("tables.sql_sets_of_listed", spent="nothing")
    found = tuple(frozenset(names[text] for text in kept) for kept in sets)
    order = tuple(tuple(name for name, _ in question.keys if name in kept) for kept in found)
    return replace(question, sets=order), found


def divide_means(select: exp.Select) -> None:
    """AVG(x) as SUM(x) / COUNT(x), which add up, in a query with sets of keys; columns keep their names."""
    for item in select.expressions:
        if isinstance(item, exp.Avg):
            item.replace(exp.alias_(item.copy(), name_of(item).lower(), quoted=True))
    for node in list(select.find_all(exp.Avg)):
        if not isinstance(node.parent, exp.Window) and not isinstance(node.this, exp.Distinct):
            parts = exp.Sum(this=node.this.copy()), exp.Count(this=node.this.copy())
            node.replace(exp.Paren(this=exp.Div(this=parts[0], expression=parts[1])))


def read_marks(nodes: Sequence[exp.Expr], sets: Sets, names: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that GROUPING(...) asks about, by their names."""
    found = tuple(names.get(name_of(node), "") for node in nodes)
    if not sets or not found or not all(found):
        raise Refused("tables.sql_grouping", spent="nothing")
    return found


def add_up(raw: Answer, sets: Sets, question: Question, marks: Mapping[str, Sequence[str]]) -> Answer:
    """The answer about the finest groups, and its sums over the keys that each set leaves out (None in their places).

    Args:
        raw: the answer about the finest groups.
        sets: the keys that each set keeps.
        question: what was asked.
        marks: columns that tell which keys a row leaves out: a bit for each of these keys, the last one is 1.
    """
    rows: list[tuple[Any, ...]] = []
    cells: list[list[int]] = []
    owners: list[tuple[int, ...]] = []
    told: dict[str, list[int]] = {name: [] for name in marks}
    for shown in sets:
        members: dict[tuple[Any, ...], list[int]] = {}
        for place, row in enumerate(raw.rows):
            key = tuple(value if name in shown else None for name, value in zip(raw.keys, row, strict=True))
            members.setdefault(key, []).append(place)
        rows += members
        cells += members.values()
        owners += [tuple(place for place, name in enumerate(raw.keys) if name in shown)] * len(members)
        for name, asked in marks.items():
            told[name] += [sum(2**i for i, key in enumerate(reversed(asked)) if key not in shown)] * len(members)
    unit = question.unit
    noise_alone = not isinstance(unit, Person) or unit.at_most is not None

    def errors(level: float) -> dict[str, Any]:
        bars: Mapping[str, Sequence[float]] = dict.fromkeys(raw.columns, ())
        if raw.groupings is not None:
            own = {kept: raw.groupings(kept, level) for kept in dict.fromkeys(owners)}
            bars = {name: [float(np.asarray(own[kept][name])[0]) for kept in owners] for name in raw.columns}
        elif cells:
            bars = _add_bars(raw, cells, level, noise_alone)
        return {name: np.array(bar, np.float64) for name, bar in bars.items()} | {
            name: np.zeros(len(cells)) for name in told
        }

    columns = {
        name: np.array([np.sum(np.asarray(column)[several]) for several in cells])
        for name, column in raw.columns.items()
    } | {name: np.array(bits) for name, bits in told.items()}
    return replace(raw, rows=tuple(rows), columns=columns, errors=errors)


def forecast_sums(
    plan: ReleasePlan, assumed: Released, sets: Sets, question: Question, level: float
) -> Mapping[str, Any]:
    """The bars that sums of groups will have; the widest one alone where noise is planned for them."""
    if plan.is_for_groupings:
        return plan.errors(assumed, level)
    names = tuple(name for name, _ in question.keys)
    finest = Answer(
        keys=names, rows=plan.rows(assumed), columns=plan.answers(assumed), receipt=cast("Receipt", None),
        errors=lambda level: plan.errors(assumed, level),
    )  # fmt: skip
    return add_up(finest, sets, question, {}).errors(level)


def _add_bars(
    raw: Answer,
    cells: Sequence[Sequence[int]],
    level: float,
    noise_alone: bool,  # noqa: FBT001
) -> dict[str, Sequence[float]]:
    """The bar of every sum of cells: (2) of this file's guarantee for noise alone, else (1)."""
    miss, most = 1 - level, max(map(len, cells))
    own = raw.errors(level)
    if not noise_alone:
        by_size = {size: raw.errors(1 - miss / size) for size in {len(several) for several in cells}}
        return {name: [float(np.sum(np.asarray(by_size[len(several)][name])[list(several)])) for several in cells]
                for name in raw.columns}  # fmt: skip
    left = [2 ** (-i / 4) for i in range(1, math.ceil(4 * math.log2(2 * most / miss)))] + [miss / (2 * most)]
    bars = [raw.errors(1 - share) for share in left]
    found: dict[str, Sequence[float]] = {}
    for name in raw.columns:
        bounds = _bound_moments(np.array([np.asarray(bar[name], np.float64) for bar in bars]).T, left, most)
        found[name] = [
            float(np.asarray(own[name])[several[0]]) if len(several) == 1
            else float(min((math.log(4 / miss) + logs[several].sum()) / rate for rate, logs in bounds))
            for several in map(np.array, cells)
        ]  # fmt: skip
    return found


def _bound_moments(bars: np.ndarray, left: Sequence[float], most: int) -> list[tuple[float, np.ndarray]]:
    """Rates r, and ln M(r) of each cell by its bars at the levels 1 - `left`; at most `most` cells are added."""
    kinds, which = np.unique(bars, axis=0, return_inverse=True)
    weights = np.log(-np.diff([1.0, *left[:-1], 0.0]))
    scale = max(float(np.sqrt(np.mean(kinds[:, 0] ** 2))), 1e-300)
    found = []
    for step in range(2 * max(1, most.bit_length()) + 4):
        rate = 2 ** (-step / 2) / (4 * scale)
        moved = rate * kinds
        logs = np.logaddexp.reduce(weights + moved + np.log1p(np.exp(-2 * moved)) - math.log(2), axis=1)
        found.append((rate, logs[which.reshape(-1)]))
    return found


def list_distinct(select: exp.Select, items: list[tuple[str, exp.Expression]]) -> list[exp.Expr]:
    """What SELECT DISTINCT groups by where it shows no aggregate: everything that it shows."""
    if not select.args.get("distinct") or any(is_aggregate(part) for _, node in items for part in node.walk()):
        return []
    return [node.copy() for _, node in items]
