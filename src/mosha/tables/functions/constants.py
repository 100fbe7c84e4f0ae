"""Public constants in SQL: numbers, texts, dates, and the types that a cast may name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import exp

from mosha.connect.language.schema import LARGEST_INTEGER, Type
from mosha.core.errors import Refused
from mosha.tables.functions.moments import read_moment, shift_moment

__all__ = ["constant", "find_type", "fold_numbers", "name_of"]

LONGEST_NUMBER = 20  # characters, for sums that stay exact

_TYPES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "INT128"), Type.INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL", "REAL"), Type.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), Type.TEXT),
    "BOOLEAN": Type.BOOLEAN,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMPNTZ": Type.TIMESTAMP,
    "TIMESTAMPTZ": Type.INSTANT,
}


def name_of(node: Any) -> str:
    """What to call a piece of SQL in a message."""
    return str(node.sql(dialect="duckdb"))


def constant(node: exp.Expression) -> Any:
    """A public constant: a number, text, boolean, date, timestamp or NULL."""
    match node:
        case exp.Paren() | exp.Neg():
            inner = constant(node.this)
            return -inner if isinstance(node, exp.Neg) else inner
        case exp.Null() | exp.Boolean():
            return None if isinstance(node, exp.Null) else bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this))
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
            return read_moment(str(node.this.this), find_type(node))
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            sign = 1 if isinstance(node, exp.Add) else -1
            return shift_moment(constant(node.this), node.expression, sign, name_of(node))
    if (folded := fold_numbers(node)) is not None:
        return folded
    raise Refused("tables.sql_constant", text=name_of(node))


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def find_type(node: exp.Expression) -> Type:
    kind = _TYPES.get(node.args["to"].this.name)
    if kind is None:
        raise Refused("tables.sql_no_type", text=name_of(node), types=[str(kind) for kind in Type])
    return kind


_FOLDED: Mapping[type[exp.Expression], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul,
}  # fmt: skip


def fold_numbers(node: exp.Expression) -> int | float | None:
    """A sum, difference or product of written numbers, in decimals as SQL means it: 0.06 + 0.01 is 0.07."""
    found = _fold(node) if type(node) in _FOLDED else None
    if found is None or abs(found) >= LARGEST_INTEGER:
        return None
    return int(found) if found == found.to_integral_value() and "." not in name_of(node) else float(found)


def _fold(node: exp.Expression) -> Decimal | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return Decimal(str(node.this)) if len(str(node.this)) <= LONGEST_NUMBER else None
    if type(node) not in _FOLDED:
        return None
    sides = _fold(node.this), _fold(node.expression)
    return None if sides[0] is None or sides[1] is None else _FOLDED[type(node)](sides[0], sides[1])
