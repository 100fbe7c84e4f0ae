"""What SELECT, HAVING, ORDER BY and LIMIT make of noisy numbers: free, and with error bars that stay honest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlglot import exp

from mosha.sql.scalar import Refused, constant, name_of

__all__ = ["Interval", "check", "evaluate"]

Interval = tuple[Any, Any, Any]
"""A value, and the ends of its error bar; keys and constants have no width."""


def _exact(value: Any) -> Interval:
    return value, value, value


def _corners(operation: Callable[[float, float], float], a: Interval, b: Interval) -> Interval:
    if a[0] is None or b[0] is None:
        return _exact(None)
    found = [operation(x, y) for x in a[1:] for y in b[1:]]
    return operation(a[0], b[0]), min(found), max(found)


def _divide(a: Interval, b: Interval) -> Interval:
    """An error bar that reaches zero in the denominator has no end."""
    if a[0] is None or b[0] is None or b[0] == 0:
        return _exact(None)
    if b[1] <= 0 <= b[2] and b[1] != b[2]:
        return a[0] / b[0], -math.inf, math.inf
    return _corners(lambda x, y: x / y if y else math.inf, a, b)


_ARITHMETIC: dict[type[exp.Expression], Callable[[Interval, Interval], Interval]] = {
    exp.Add: lambda a, b: _corners(lambda x, y: x + y, a, b),
    exp.Sub: lambda a, b: _corners(lambda x, y: x - y, a, b),
    exp.Mul: lambda a, b: _corners(lambda x, y: x * y, a, b),
    exp.Div: _divide,
}

_COMPARISONS: dict[type[exp.Expression], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
}


def evaluate(node: exp.Expression, known: Mapping[str, Interval]) -> Interval:
    """The value of an output expression in one row, with the ends of its error bar.

    Args:
        node: SQL over aggregates and keys.
        known: what each aggregate, key and alias is in this row, by its SQL text.
    """
    text = name_of(node)
    if text in known:
        return known[text]
    handler = _KINDS.get(type(node))
    if handler is None:
        raise Refused(f"{text}: on results there is arithmetic, comparison, ROUND, AND, OR, NOT, BETWEEN and IN.")
    return handler(node, known)


Known = Mapping[str, Interval]


def _arithmetic(node: exp.Expression, known: Known) -> Interval:
    return _ARITHMETIC[type(node)](evaluate(node.this, known), evaluate(node.expression, known))


def _comparison(node: exp.Expression, known: Known) -> Interval:
    a, b = evaluate(node.this, known)[0], evaluate(node.expression, known)[0]
    return _exact(None if a is None or b is None else _COMPARISONS[type(node)](a, b))


def _negative(node: exp.Expression, known: Known) -> Interval:
    value, low, high = evaluate(node.this, known)
    return (None, None, None) if value is None else (-value, -high, -low)


def _not(node: exp.Expression, known: Known) -> Interval:
    value = evaluate(node.this, known)[0]
    return _exact(None if value is None else not value)


def _connective(node: exp.Expression, known: Known) -> Interval:
    sides = [evaluate(side, known)[0] for side in (node.this, node.expression)]
    return _exact(all(sides) if isinstance(node, exp.And) else any(sides))


def _rounded(node: exp.Expression, known: Known) -> Interval:
    digits = node.args.get("decimals")
    places = 0 if digits is None else constant(digits)
    value, low, high = evaluate(node.this, known)
    half = 0.5 * 10.0**-places
    return (None, None, None) if value is None else (round(value, places), low - half, high + half)


def _between(node: exp.Expression, known: Known) -> Interval:
    value, low, high = (evaluate(part, known)[0] for part in (node.this, node.args["low"], node.args["high"]))
    return _exact(None if value is None else low <= value <= high)


def _in(node: exp.Expression, known: Known) -> Interval:
    return _exact(evaluate(node.this, known)[0] in [constant(item) for item in node.expressions])


def _constant(node: exp.Expression, known: Known) -> Interval:
    del known
    return _exact(constant(node))


def _column(node: exp.Expression, known: Known) -> Interval:
    del known
    raise Refused(f"{name_of(node)} is neither a key of GROUP BY nor an aggregate: group by it, or aggregate it.")


_KINDS: dict[type[exp.Expression], Callable[[exp.Expression, Known], Interval]] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys((exp.And, exp.Or), _connective),
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), _constant),
    exp.Paren: lambda node, known: evaluate(node.this, known),
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Round: _rounded,
    exp.Between: _between,
    exp.In: _in,
    exp.Column: _column,
}


def check(node: exp.Expression, known: Collection[str]) -> None:
    """Refuse an output expression that could not be evaluated, before anything is spent."""
    if name_of(node) in known:
        return
    if type(node) not in _KINDS or isinstance(node, exp.Column):
        evaluate(node, {})
    for part in (node.this, node.args.get("expression"), node.args.get("low"), node.args.get("high")):
        if isinstance(part, exp.Expression):
            check(part, known)
