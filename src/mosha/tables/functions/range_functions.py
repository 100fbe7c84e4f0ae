"""The ends of ranges: LEAST and GREATEST of a value and constants, and conditions that say where a column ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from mosha.core.errors import Refused
from mosha.core.number import real
from mosha.tables.functions.constants import constant

__all__ = ["between", "innermost", "narrow", "split_ends"]


def split_ends(node: exp.Expression) -> tuple[exp.Expression, Any] | None:
    """A value and the one end that LEAST(x, 30) or GREATEST(0, x) holds it at; None for anything else.

    A missing value stays missing, as it does in CLAMP.

    >>> import sqlglot
    >>> value, end = split_ends(sqlglot.parse_one("GREATEST(0, days - 1)"))
    >>> value.sql(), end
    ('days - 1', 0)
    """
    sides = [node.this, *node.expressions]
    if len(sides) != 2 or any(isinstance(part, exp.Least | exp.Greatest) for side in sides for part in side.walk()):
        return None
    value, end = sorted(sides, key=lambda side: side.find(exp.Column) is None)
    if value.find(exp.Column) is None or end.find(exp.Column) is not None:
        return None
    return value, constant(end)


def between(node: exp.Expression) -> tuple[float, float]:
    """The low and the high of LEAST(GREATEST(x, low), high) or GREATEST(LEAST(x, high), low).

    >>> import sqlglot
    >>> between(sqlglot.parse_one("GREATEST(LEAST(days, 30), 0)"))
    (0.0, 30.0)
    """
    edges = [real("an edge of a range", constant(part.expressions[0])) for part in (node.this, node)]
    low, high = edges if isinstance(node, exp.Least) else reversed(edges)
    return low, high


def innermost(node: exp.Expression) -> exp.Expression:
    """What LEAST and GREATEST stand around.

    >>> import sqlglot
    >>> innermost(sqlglot.parse_one("GREATEST(LEAST(days, 30), 0)")).sql()
    'days'
    """
    return innermost(node.this) if isinstance(node, exp.Least | exp.Greatest) else node


Range = tuple[float, float]
_BELOW, _ABOVE = (exp.LT, exp.LTE), (exp.GT, exp.GTE)


def narrow(ranges: Mapping[str, Range], conditions: Iterable[exp.Expression], find: Any) -> dict[str, Range]:
    """The ranges of columns among rows for which all conditions hold, such as x BETWEEN 0 AND 30 or x > 3 AND x <= 9.

    A range that is declared is cut to what the conditions leave of it; a column without one needs both ends.

    Args:
        ranges: those that are declared, by the names of columns in the plan.
        conditions: what must be true of every row.
        find: the name of a column in the plan, or None.
    """
    said: dict[str, Range] = {}
    for condition in conditions:
        for column, low, high in _list_ends(condition):
            name = find(column)
            if name is not None:
                known = said.get(name, ranges.get(name, (-math.inf, math.inf)))
                said[name] = max(known[0], low), min(known[1], high)
    return {name: found for name, found in said.items() if -math.inf < found[0] < found[1] < math.inf}


def _list_ends(node: exp.Expression) -> list[tuple[exp.Column, float, float]]:
    """The columns of a condition with what it leaves of them; no more than it says."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Between) and isinstance(node.this, exp.Column):
        low, high = (_read_end(node.args[name]) for name in ("low", "high"))
        if low is None or high is None or node.args.get("negate"):
            return []
        return [(node.this, *((min(low, high), max(low, high)) if node.args.get("symmetric") else (low, high)))]
    if not isinstance(node, _BELOW + _ABOVE):
        return []
    sides, is_below = (node.this, node.expression), isinstance(node, _BELOW)
    if isinstance(sides[1], exp.Column):
        sides, is_below = (sides[1], sides[0]), not is_below
    end = _read_end(sides[1]) if isinstance(sides[0], exp.Column) else None
    if end is None:
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
