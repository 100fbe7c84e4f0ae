"""Powers, logarithms and remainders of rows, and the ranges of powers and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

from sqlglot import exp

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Expression, Operator, lit
from mosha.connect.language.schema import Type
from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of

__all__ = [
    "LARGEST_EXPONENT", "MOST_POWER", "find_exponent", "find_power_range", "list_logarithm", "read_cube_root",
    "read_logarithm", "read_power", "read_remainder", "read_whole_quotient",
]  # fmt: skip

Read = Callable[[Any], Expression]
Range = tuple[float, float]
MOST_POWER = 8
"""The largest whole power that is a product, so that it is exact and takes what is below zero."""
LARGEST_EXPONENT = 700


def list_logarithm(node: exp.Expression) -> tuple[exp.Expression, float | None]:
    """What a logarithm is taken of, and its base; None for e. LOG alone has the base 10, as in standard engines.

    >>> import sqlglot
    >>> value, base = list_logarithm(sqlglot.parse_one("LOG2(days)", dialect="duckdb"))
    >>> value.sql(), base
    ('days', 2.0)
    """
    if isinstance(node, exp.Ln):
        return node.this, None
    if node.args.get("expression") is None:
        return node.this, 10.0
    base = constant(node.this)
    if isinstance(base, bool) or not isinstance(base, int | float) or base <= 0 or base == 1:
        raise Refused("tables.sql_logarithm_base", text=name_of(node), spent="nothing")
    return node.expression, float(base)


def read_logarithm(node: exp.Expression, read: Read) -> Expression:
    value, base = list_logarithm(node)
    return Call(Operator.LOGARITHM, (read(value),), () if base is None else (base,))


def find_exponent(node: exp.Expr) -> float | int | None:
    """The constant exponent of a power, a whole one as a whole number; None where it is no constant."""
    if node.expression.find(exp.Column, exp.AggFunc) is not None:
        return None
    try:
        found = constant(node.expression)
    except Refused:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return int(found) if float(found).is_integer() else found


def read_power(node: exp.Expr, read: Read) -> Expression:
    """A product where the exponent is small and whole, one divided by it, or a power of doubles."""
    exponent, value = find_exponent(node), read(node.this)
    if not isinstance(exponent, int) or abs(exponent) > MOST_POWER:
        return Call(Operator.POWER, (value, read(node.expression)))
    if exponent == 0:
        return Case(((~value.is_null(), lit(1)),), None)
    product = reduce(mul, [value] * abs(exponent))
    return product if exponent > 0 else 1 / product


def read_cube_root(value: Expression) -> Expression:
    """Of a number below zero, too."""
    below, above = (Call(Operator.POWER, (number, lit(1 / 3))) for number in (-value, value))
    return Case(((value < 0, -below),), above)


def read_remainder(node: exp.Expr, value: Expression, kind: Type) -> Expression:
    """The remainder x % n of whole numbers, with the sign of x, as engines have it."""
    divisor = constant(node.expression)
    if not isinstance(divisor, int) or divisor <= 0 or kind is not Type.INTEGER:
        raise Refused("tables.sql_remainder", text=name_of(node), spent="nothing")
    opposite = -value
    return Case(((value >= 0, value - value.bin(divisor)),), -(opposite - opposite.bin(divisor)))


def read_whole_quotient(node: exp.Expr, value: Expression, kind: Type) -> Expression:
    """The quotient x // n of whole numbers, towards zero, as engines have it; NULL from 2**52 on."""
    whole = value - read_remainder(node, value, kind)
    return (whole / lit(constant(node.expression))).cast(Type.INTEGER)


def find_power_range(base: Range, exponent: Range) -> Range | None:
    """The range of a power: even whole powers turn at zero, others need a base that is not below zero."""
    (low, high), (least, most) = base, exponent
    if least == most and float(least).is_integer() and 1 <= least <= MOST_POWER:
        ends = [float(end) ** least for end in base] + ([0.0] if low <= 0 <= high else [])
        return (min(ends), max(ends)) if all(map(math.isfinite, ends)) else None
    if low < 0 or (low == 0 and least <= 0):
        return None
    sizes = [e * math.log(b) for e in exponent for b in base if b > 0]
    if not sizes or max(sizes) > LARGEST_EXPONENT:
        return None
    return (0.0 if low == 0 else math.exp(min(sizes))), math.exp(max(sizes))
