"""The ends of ranges: LEAST and GREATEST of a value and constants."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from mosha.core.number import real
from mosha.tables.functions.constants import constant

__all__ = ["between", "innermost", "split_ends"]


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
