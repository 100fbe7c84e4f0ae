"""Which values are surely missing where some columns are, and which aggregates pass over such rows.

Functions of rows are missing where an argument is, but for those that look for it: COALESCE, CASE, IS NULL. What is not
known to be missing counts as there.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

__all__ = ["Absent", "is_missing", "is_never", "passes_over"]

Absent = Callable[[exp.Expression], bool]
"""Whether a column has no value."""

_STRICT = (
    exp.Binary, exp.Paren, exp.Neg, exp.Not, exp.Cast, exp.Distinct, exp.Abs, exp.Floor, exp.Ceil, exp.Round,
    exp.Extract, exp.Year, exp.Month, exp.Day, exp.DateDiff, exp.Lower, exp.Upper, exp.Trim,
)  # fmt: skip
_LOOSE = (exp.And, exp.Or, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.DPipe)


def passes_over(node: exp.Expression, absent: Absent) -> bool:
    """Whether an aggregate is the same with and without the rows in which some columns have no value.

    Args:
        node: the aggregate.
        absent: which columns these are.

    >>> import sqlglot
    >>> read = lambda text: passes_over(sqlglot.parse_one(text), lambda column: column.name == "x")
    >>> read("COUNT(x)"), read("COUNT(*)"), read("SUM(CASE WHEN x > 3 THEN 1 ELSE 0 END)")
    (True, False, True)
    """
    if isinstance(node, exp.Filter):
        return is_never(node.expression.this, absent) or passes_over(node.this, absent)
    if isinstance(node, exp.WithinGroup):
        return all(is_missing(part.this, absent) for part in node.expression.expressions)
    if isinstance(node, exp.CountIf | exp.Grouping):
        return isinstance(node, exp.Grouping) or is_never(node.this, absent)
    zero = isinstance(node, exp.Sum) and isinstance(node.this, exp.Case | exp.If)
    return node.this is not None and (is_missing(node.this, absent) or (zero and is_missing(node.this, absent, "0")))


def is_missing(node: exp.Expression, absent: Absent, otherwise: str = "NULL") -> bool:
    """Whether a value is surely missing.

    Args:
        node: the value.
        absent: which columns have no value.
        otherwise: what the ELSE of a CASE is that counts as missing.

    >>> import sqlglot
    >>> [is_missing(sqlglot.parse_one(text), lambda _: True) for text in ("x + 1", "COALESCE(x, 1)", "x IN (1, 2)")]
    [True, False, True]
    """
    if isinstance(node, exp.Column):
        return absent(node)
    if isinstance(node, exp.Case | exp.If):
        case = isinstance(node, exp.Case)
        default = node.args.get("default" if case else "false")
        branches = [] if case and node.this is not None else node.args["ifs"] if case else [node]
        same = otherwise == ("NULL" if default is None else default.sql())
        return same and bool(branches) and all(is_never(branch.this, absent) for branch in branches)
    if isinstance(node, exp.Between) or (isinstance(node, exp.In) and not node.args.get("query")):
        return is_missing(node.this, absent)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() == "CLAMP" and is_missing(node.expressions[0], absent)
    strict = isinstance(node, _STRICT) and not isinstance(node, _LOOSE)
    return strict and any(is_missing(part, absent) for part in node.iter_expressions())


def is_never(node: exp.Expression, absent: Absent) -> bool:
    """Whether a condition is surely not true.

    Args:
        node: the condition.
        absent: which columns have no value.

    >>> import sqlglot
    >>> [is_never(sqlglot.parse_one(text), lambda c: c.name == "x") for text in ("x > 3 AND y = 1", "x > 3 OR y = 1")]
    [True, False]
    """
    if isinstance(node, exp.Paren):
        return is_never(node.this, absent)
    if isinstance(node, exp.And | exp.Or):
        sides = [is_never(side, absent) for side in (node.this, node.expression)]
        return any(sides) if isinstance(node, exp.And) else all(sides)
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        return isinstance(node.this.expression, exp.Null) and is_missing(node.this.this, absent)
    return is_missing(node, absent)
