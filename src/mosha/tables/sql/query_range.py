"""The range of a number that follows from what the query itself says: CLAMP, declared columns, constants, conditions.

Guarantee:
    None is needed here: whatever range comes out is public, and every value is clamped into it before it is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from mosha.tables.sql.scalar import MOST_POWER, between, constant

__all__ = ["Range", "find_range"]

Range = tuple[float, float]
Known = Callable[[exp.Expression], Range | None]
"""The range of a column, or of anything that is true or false."""

PARTS: Mapping[str, Range] = {
    "QUARTER": (1, 4), "MONTH": (1, 12), "DAY": (1, 31), "ISODOW": (1, 7), "HOUR": (0, 23), "MINUTE": (0, 59),
}  # fmt: skip

_FUNCTIONS: Mapping[type[exp.Expression], str] = {
    exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.Day: "DAY", exp.DayOfWeekIso: "ISODOW", exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
}  # fmt: skip


def find_range(node: exp.Expression, known: Known) -> Range | None:
    """The least and the greatest value that `node` can have, where the query says them; else None.

    >>> import sqlglot
    >>> find_range(sqlglot.parse_one("CASE WHEN x > 3 THEN 1 ELSE 0 END"), lambda column: None)
    (0, 1)
    """
    found = known(node)
    if found is None and (handler := _KINDS.get(type(node))) is not None:
        found = handler(node, known)
    return found


def _constant(node: exp.Expression, known: Known) -> Range | None:
    del known
    value = None if node.is_string else constant(node)
    return (value, value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _together(nodes: Iterable[exp.Expression | None], known: Known) -> Range | None:
    """What holds the ranges of all; NULL has none and needs none."""
    there = [node for node in nodes if node is not None and not isinstance(node, exp.Null)]
    ranges = [find_range(node, known) for node in there]
    if not ranges or None in ranges:
        return None
    lows, highs = zip(*(found for found in ranges if found is not None), strict=True)
    return min(lows), max(highs)


def _case(node: exp.Expression, known: Known) -> Range | None:
    return _together([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")], known)


def _if(node: exp.Expression, known: Known) -> Range | None:
    return _together([node.args["true"], node.args.get("false")], known)


def _clamp(node: exp.Expression, known: Known) -> Range | None:
    del known
    if str(node.this).upper() != "CLAMP" or len(node.expressions) != 3:
        return None
    low, high = (constant(edge) for edge in node.expressions[1:])
    return low, high


def _least(node: exp.Expression, known: Known) -> Range | None:
    """LEAST(GREATEST(x, low), high) and GREATEST(LEAST(x, high), low); any other is refused where it is read."""
    del known
    if not isinstance(node.this, exp.Least | exp.Greatest) or len(node.expressions) != 1 != len(node.this.expressions):
        return None
    return between(node)


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[[exp.Expression, Known], Range | None]:
    def handler(node: exp.Expression, known: Known) -> Range | None:
        sides = find_range(node.this, known), find_range(node.expression, known)
        if sides[0] is None or sides[1] is None:
            return None
        found = [operation(a, b) for a in sides[0] for b in sides[1]]
        return (min(found), max(found)) if all(map(math.isfinite, found)) else None

    return handler


def _divide(node: exp.Expression, known: Known) -> Range | None:
    sides = find_range(node.this, known), find_range(node.expression, known)
    if sides[0] is None or sides[1] is None or sides[1][0] <= 0 <= sides[1][1]:
        return None
    found = [a / b for a in sides[0] for b in sides[1]]
    return min(found), max(found)


def _negative(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None else (-found[1], -found[0])


def _absolute(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None else (max(0, found[0], -found[1]), max(abs(found[0]), abs(found[1])))


def _root(node: exp.Expression, known: Known) -> Range | None:
    found = find_range(node.this, known)
    return None if found is None or found[1] < 0 else (math.sqrt(max(0, found[0])), math.sqrt(found[1]))


def _power(node: exp.Expression, known: Known) -> Range | None:
    """A whole power, which turns at zero where it is even."""
    found, exponent = find_range(node.this, known), constant(node.expression)
    if found is None or not isinstance(exponent, int) or not 1 <= exponent <= MOST_POWER:
        return None
    ends = [float(end) ** exponent for end in found] + ([0.0] if found[0] <= 0 <= found[1] else [])
    return (min(ends), max(ends)) if all(map(math.isfinite, ends)) else None


def _outwards(node: exp.Expression, known: Known) -> Range | None:
    """A number that becomes a whole one, or stays what it is."""
    found = find_range(node.this, known)
    return None if found is None else (math.floor(found[0]), math.ceil(found[1]))


def _part(node: exp.Expression, known: Known) -> Range | None:
    del known
    return PARTS.get(node.this.name.upper() if isinstance(node, exp.Extract) else _FUNCTIONS[type(node)])


_KINDS: dict[type[exp.Expression], Callable[[exp.Expression, Known], Range | None]] = {
    exp.Literal: _constant,
    exp.Paren: lambda node, known: find_range(node.this, known),
    exp.Case: _case,
    exp.If: _if,
    exp.Anonymous: _clamp,
    exp.Least: _least,
    exp.Greatest: _least,
    exp.Coalesce: lambda node, known: _together([node.this, *node.expressions], known),
    exp.Nullif: lambda node, known: find_range(node.this, known),
    exp.Add: _arithmetic(lambda a, b: a + b),
    exp.Sub: _arithmetic(lambda a, b: a - b),
    exp.Mul: _arithmetic(lambda a, b: a * b),
    exp.Div: _divide,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Sqrt: _root,
    exp.Pow: _power,
    **dict.fromkeys((exp.Cast, exp.TryCast, exp.Floor, exp.Ceil), _outwards),
    **dict.fromkeys((exp.Extract, *_FUNCTIONS), _part),
}
