"""Roots, logarithms and powers of doubles, which no row makes fail.

What IEEE 754 does not round in one way has its last bits taken off, so that engines agree (`expressions.md`).
"""

from __future__ import annotations

import math

from sqlglot import exp

from mosha.connect.language.expression import Call
from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import Node, binary, call, choose
from mosha.connect.sql.layers import Layers, Typed, multiply

__all__ = ["exponential", "logarithm", "power", "square_root"]

LARGEST_EXPONENT = 346.0
"""e**346 is below 2**500, and e**-346 above 2**-500."""
SPLITTER = 2.0**13 + 1


def square_root(scope: Layers, _: Call, arguments: list[Typed], __: Type) -> Node:
    def root(value: Node) -> Node:
        return choose((binary(exp.GTE, value, scope.real(0)), call("SQRT", value.copy())))

    return scope.let(scope.coerce(arguments[0], Type.REAL), root)


def logarithm(scope: Layers, expression: Call, arguments: list[Typed], _: Type) -> Node:
    found = _logarithm(scope, scope.coerce(arguments[0], Type.REAL))
    if expression.options:
        found = scope.dialect.real_quotient(found, scope.real(math.log(expression.options[0])))
    return _shorten(scope, found)


def exponential(scope: Layers, _: Call, arguments: list[Typed], __: Type) -> Node:
    return scope.let(
        scope.coerce(arguments[0], Type.REAL),
        lambda value: _within_exponents(scope, value, call("EXP", _guard(scope, value, value.copy()))),
    )


def power(scope: Layers, _: Call, arguments: list[Typed], __: Type) -> Node:
    """Of a base above zero, by the size of its logarithm; zero has the powers that are numbers, others have none."""
    base, exponent = (scope.once(scope.coerce(argument, Type.REAL)) for argument in arguments)
    zero = scope.real(0)

    def raise_base(size: Node) -> Node:
        above = choose((binary(exp.GT, base.copy(), zero), base.copy()))
        return _within_exponents(scope, size, call("POWER", above, _guard(scope, size, exponent.copy())))

    found = scope.let(multiply(scope, exponent.copy(), _logarithm(scope, base.copy())), raise_base)
    nothing = binary(exp.EQ, base.copy(), zero)
    of_zero = choose(
        (binary(exp.GT, exponent.copy(), zero), zero.copy()),
        (binary(exp.EQ, exponent.copy(), zero), scope.real(1)),
    )
    return choose((nothing, of_zero), otherwise=found)


def _logarithm(scope: Layers, node: Node) -> Node:
    """The guard stands inside of the call: no planner takes it away from there."""
    return scope.let(node, lambda value: call("LN", choose((binary(exp.GT, value, scope.real(0)), value.copy()))))


def _guard(scope: Layers, size: Node, value: Node) -> Node:
    """A value where the size of its power is one that doubles have."""
    return choose((scope.between(size.copy(), -LARGEST_EXPONENT, LARGEST_EXPONENT), value))


def _within_exponents(scope: Layers, size: Node, found: Node) -> Node:
    """What is found, zero where it would be below every factor; NULL beyond the largest, by its guard."""
    below = binary(exp.LTE, size.copy(), scope.real(-LARGEST_EXPONENT))
    return choose((below, scope.real(0)), otherwise=_shorten(scope, found))


def _shorten(scope: Layers, node: Node) -> Node:
    """The double to 40 of its 53 bits (Veltkamp): what is left of a last bit that engines disagree about."""

    def split(value: Node) -> Node:
        def take_high(scaled: Node) -> Node:
            return binary(exp.Sub, scaled, binary(exp.Sub, scaled.copy(), value.copy()))

        return scope.let(binary(exp.Mul, value, scope.real(SPLITTER)), take_high)

    return scope.let(node, split)
