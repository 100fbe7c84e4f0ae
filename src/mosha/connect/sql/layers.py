"""The rows of one SELECT on its way, in layers, and the numbers in them.

Sums, products and quotients that no row can make fail, bins and grids: what is used twice is computed once, in a layer
below, and guards keep every number in its range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from mosha.connect.language.expression import Call, Literal
from mosha.connect.language.schema import LARGEST_INTEGER, LARGEST_REAL, SMALLEST_FACTOR, Schema, Type
from mosha.connect.sql.dialect import Dialect, Node, binary, call, choose, column, number, text

__all__ = [
    "Layers", "Typed", "absolute", "arithmetic", "clamp", "divide", "multiply", "narrow", "nearest", "negate",
    "round_number", "round_to_whole", "to_bin", "to_grid",
]  # fmt: skip

WHOLE = 2.0**53


@dataclass(frozen=True)
class Typed:
    """A piece of SQL with its type; a `wild` REAL comes from the data and may be NaN, infinite or too large.

    A `loose` TEXT is a column without a declared type (see `Schema`).
    """

    node: Node
    type: Type
    wild: bool = False
    loose: bool = False


@dataclass
class Layers:
    """The rows of one SELECT on its way: where they come from, what their columns are, which of them stay.

    A piece of SQL that is used twice is computed once, as a column of an inner SELECT (`once`). Such columns stand in
    layers: a column of layer n is computed from columns below it. A predicate is tested as deep as it can be.
    """

    dialect: Dialect
    table: Node
    columns: dict[str, Typed]
    names: Iterator[str]
    predicates: list[Node] = field(default_factory=list)
    layers: list[list[Node]] = field(default_factory=list)
    depths: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        loose = (name for name, typed in self.columns.items() if typed.loose)
        return Schema({name: typed.type for name, typed in self.columns.items()}, loose=loose)

    def once(self, node: Node) -> Node:
        """The node as something that may be written twice: a column of an inner SELECT if it is not one already."""
        if _is_simple(node):
            return node
        name, depth = next(self.names), self._depth(node)
        if depth == len(self.layers):
            self.layers.append([])
        self.layers[depth].append(exp.alias_(node, name, quoted=True, copy=False))
        self.depths[name] = depth + 1
        return column(name)

    def let(self, node: Node, use: Callable[[Node], Node]) -> Node:
        """What `use` makes of the node, which is computed once however often it is used."""
        if _is_simple(node):
            return use(node)
        bound = self.dialect.bound(node, self.names, use)
        return use(self.once(node)) if bound is None else bound

    def _depth(self, node: Node) -> int:
        """How many layers must stand before the node can be computed."""
        return max((self.depths.get(found.name, 0) for found in node.find_all(exp.Column)), default=0)

    def dress(self, select: exp.Select) -> exp.Select:
        """The SELECT with this scope's FROM and WHERE."""
        tests: list[list[Node]] = [[] for _ in range(len(self.layers) + 1)]
        for predicate in self.predicates:
            tests[self._depth(predicate)].append(predicate)
        table = self.table
        for layer, conditions in zip(self.layers, tests, strict=False):
            inner = _from(exp.Select(expressions=[exp.Star(), *layer]), table, conditions)
            if self.dialect.barrier:
                inner.set("offset", exp.Offset(expression=exp.Literal.number(0)))
            table = self.add_alias(inner)
        return _from(select, table, tests[-1])

    def seal(self) -> None:
        """Close the layers and predicates so far into the table, before something that looks at many rows."""
        if self.layers or self.predicates:
            self.table = self.add_alias(self.dress(exp.Select(expressions=[exp.Star()])))
            self.predicates, self.layers, self.depths = [], [], {}

    def add_alias(self, query: exp.Select) -> Node:
        alias = exp.TableAlias(this=exp.Identifier(this=next(self.names), quoted=True))
        return exp.Subquery(this=query, alias=alias)

    def coerce(self, typed: Typed, kind: Type) -> Node:
        return typed.node if typed.type is kind else self.dialect.to(kind, typed.node)

    def real(self, value: float) -> Node:
        return self.dialect.literal(float(value), Type.REAL)

    def tame(self, node: Node) -> Node:
        """NULL in place of NaN, infinities and magnitudes from 2**500 on."""
        return self.within(node, -LARGEST_REAL, LARGEST_REAL, lambda inside: inside)

    def within(self, node: Node, low: float, high: float, then: Callable[[Node], Node]) -> Node:
        """`then` of the node where low < node < high, else NULL; no engine takes NaN to be below `high`."""
        return self.let(node, lambda value: choose((self.between(value, low, high), then(value.copy()))))

    def between(self, node: Node, low: float, high: float) -> Node:
        return binary(exp.And, binary(exp.GT, node, self.real(low)), binary(exp.LT, node.copy(), self.real(high)))

    def flush(self, node: Node) -> Node:
        """Zero in place of magnitudes below 2**-500 (and of -0.0), so that products cannot underflow."""
        zero = self.real(0)

        def flush(value: Node) -> Node:
            return choose((self.between(value, -SMALLEST_FACTOR, SMALLEST_FACTOR), zero), otherwise=value.copy())

        return self.let(node, flush)


def _from(select: exp.Select, table: Node, conditions: list[Node]) -> exp.Select:
    select.set("from_", exp.From(this=table))
    if conditions:
        condition = conditions[0]
        for other in conditions[1:]:
            condition = binary(exp.And, condition, other)
        select.set("where", exp.Where(this=condition))
    return select


def _is_simple(node: Node) -> bool:
    """Whether a node may as well be written twice."""
    plain = node.this if isinstance(node, exp.Cast) else node
    return isinstance(plain, (exp.Column, exp.Literal, exp.Null, exp.Boolean))


def arithmetic(kind: type[exp.Binary]) -> Callable[[Layers, Call, list[Typed], Type], Node]:
    """A sum, a difference or a product."""

    def emit(scope: Layers, _: Call, arguments: list[Typed], result: Type) -> Node:
        left, right = (scope.coerce(argument, result) for argument in arguments)
        if result is Type.INTEGER:
            return _integer(scope, kind, left, right)
        return multiply(scope, left, right) if kind is exp.Mul else scope.tame(binary(kind, left, right))

    return emit


def _integer(scope: Layers, kind: type[exp.Binary], left: Node, right: Node) -> Node:
    """Two BIGINTs combined, NULL beyond 64 bits."""
    node, wide = scope.dialect.integer(kind, left, right)
    return narrow(scope, node) if wide else node


def narrow(scope: Layers, node: Node) -> Node:
    """A wide whole number as BIGINT, NULL beyond 64 bits."""
    low, high = (scope.dialect.widen(text(str(limit))) for limit in (-LARGEST_INTEGER - 1, LARGEST_INTEGER))

    def fit(value: Node) -> Node:
        inside = binary(exp.And, binary(exp.GTE, value, low), binary(exp.LTE, value.copy(), high))
        return choose((inside, scope.dialect.to(Type.INTEGER, value.copy())))

    return scope.let(node, fit)


def multiply(scope: Layers, left: Node, right: Node) -> Node:
    return scope.tame(binary(exp.Mul, scope.flush(left), scope.flush(right)))


def _quotient(scope: Layers, left: Node, right: Node) -> Node:
    numerator, zero = scope.flush(left), scope.real(0)

    def divide_by(divisor: Node) -> Node:
        quotient = scope.dialect.real_quotient(numerator, divisor.copy())
        return choose((binary(exp.NEQ, divisor, zero), quotient))

    return scope.tame(scope.let(scope.flush(right), divide_by))


def divide(scope: Layers, _: Call, arguments: list[Typed], __: Type) -> Node:
    left, right = (scope.coerce(argument, Type.REAL) for argument in arguments)
    return _quotient(scope, left, right)


def negate(scope: Layers, _: Call, arguments: list[Typed], result: Type) -> Node:
    return _opposite(scope, arguments[0].node, result)


def _opposite(scope: Layers, node: Node, kind: Type) -> Node:
    zero = scope.dialect.literal(0 if kind is Type.INTEGER else 0.0, kind)
    return _integer(scope, exp.Sub, zero, node) if kind is Type.INTEGER else binary(exp.Sub, zero, node)


def absolute(scope: Layers, _: Call, arguments: list[Typed], result: Type) -> Node:
    zero = scope.dialect.literal(0 if result is Type.INTEGER else 0.0, result)

    def positive(value: Node) -> Node:
        opposite = _opposite(scope, value.copy(), result)
        return choose((binary(exp.LT, value, zero), opposite), otherwise=value.copy())

    return scope.let(arguments[0].node, positive)


def round_to_whole(name: str) -> Callable[[Layers, Call, list[Typed], Type], Node]:
    """The whole number below or above, NULL from 2**53 on."""

    def emit(scope: Layers, _: Call, arguments: list[Typed], __: Type) -> Node:
        if arguments[0].type is Type.INTEGER:
            return arguments[0].node
        return scope.within(arguments[0].node, -WHOLE, WHOLE, lambda value: scope.dialect.to_bigint(call(name, value)))

    return emit


def nearest(scope: Layers, value: Node) -> Node:
    """The whole number nearest to a double below 2**53 in magnitude, halves away from zero, as BIGINT.

    The distance to the whole number on the side of zero is exact: it has no more bits than the double.
    """

    def step(name: str, kind: type[exp.Binary]) -> Node:
        inner = scope.dialect.to_bigint(call(name, value.copy()))
        sides = (scope.dialect.to(Type.REAL, inner), value.copy())
        distance = binary(exp.Sub, *(sides if kind is exp.Sub else reversed(sides)))
        far = binary(exp.GTE, distance, scope.real(0.5))
        return choose((far, binary(kind, inner.copy(), number(1))), otherwise=inner.copy())

    return choose((binary(exp.LT, value, scope.real(0)), step("CEIL", exp.Sub)), otherwise=step("FLOOR", exp.Add))


def round_number(scope: Layers, expression: Call, arguments: list[Typed], result: Type) -> Node:
    """The nearest number of so many digits; a double that has no further digits stays as it is."""
    digits, *bound = expression.options
    if result is Type.INTEGER:
        if arguments[0].type is Type.INTEGER:
            return arguments[0].node
        return scope.within(arguments[0].node, -WHOLE, WHOLE, lambda value: nearest(scope, value))
    power = scope.real(10.0 ** abs(digits))
    scale = multiply if digits >= 0 else _quotient
    # not `_quotient` and `multiply` on the way back: they would name their operands outside of the guard
    back = scope.dialect.real_quotient if digits >= 0 else partial(binary, exp.Mul)

    def pick(value: Node) -> Node:
        def shorten(scaled: Node) -> Node:
            few = scope.between(scaled, -WHOLE / 2, WHOLE / 2)
            short = back(scope.dialect.to(Type.REAL, nearest(scope, scaled.copy())), power.copy())
            return choose((few, short), otherwise=value.copy())

        return scope.let(scale(scope, value.copy(), power), shorten)

    node = scope.let(scope.coerce(arguments[0], Type.REAL), pick)
    return scope.within(node, -bound[0], bound[0], lambda value: value) if bound else node


def clamp(scope: Layers, _: Call, arguments: list[Typed], result: Type) -> Node:
    given, low, high = (scope.coerce(argument, result) for argument in arguments)

    def clamp_value(value: Node) -> Node:
        below, above = binary(exp.LT, value, low), binary(exp.GT, value.copy(), high)
        return choose((below, low.copy()), (above, high.copy()), otherwise=value.copy())

    return scope.let(given, clamp_value)


def to_bin(scope: Layers, expression: Call, arguments: list[Typed], result: Type) -> Node:
    given, width, origin = (scope.coerce(argument, result) for argument in arguments)
    if result is Type.REAL:
        ratio = _quotient(scope, scope.tame(binary(exp.Sub, given, origin)), width.copy())
        steps = scope.within(ratio, -WHOLE, WHOLE, lambda value: scope.dialect.to_bigint(call("FLOOR", value)))
        edge = multiply(scope, scope.dialect.to(Type.REAL, steps), width)
        return scope.tame(binary(exp.Add, edge, origin.copy()))
    size, start = (argument.value for argument in expression.arguments[1:] if isinstance(argument, Literal))
    remainder = scope.dialect.remainder

    def lower_edge(value: Node) -> Node:
        offset = binary(exp.Sub, remainder(value, width), scope.dialect.literal(start % size, Type.INTEGER))
        positive = binary(exp.Add, remainder(offset, width.copy()), width.copy())
        return _integer(scope, exp.Sub, value.copy(), remainder(positive, width.copy()))

    return scope.let(given, lower_edge)


def to_grid(scope: Layers, expression: Call, arguments: list[Typed], _: Type) -> Node:
    low, high, exponent, *centred = expression.options
    center = centred[0] if centred else 0
    given = arguments[0]
    if given.type is Type.INTEGER and exponent >= 0 and low.is_integer() and high.is_integer():
        return scope.let(given.node, lambda value: _whole_grid(scope, value, (int(low), int(high)), exponent, center))
    node = scope.coerce(given, Type.REAL)
    options = (low, high, exponent, center)
    return scope.let(node, lambda value: _real_grid(scope, value, options, wild=given.wild))


def _move_center(scope: Layers, node: Node, center: int) -> Node:
    """A BIGINT below 2**51 in magnitude, seen from the center: no step can leave 64 bits."""
    return binary(exp.Sub, node, scope.dialect.literal(center, Type.INTEGER)) if center else node


def _whole_grid(scope: Layers, value: Node, between: tuple[int, int], exponent: int, center: int) -> Node:
    low, high = (scope.dialect.literal(bound, Type.INTEGER) for bound in between)
    least, most = (scope.dialect.literal((bound << exponent) - center, Type.INTEGER) for bound in between)
    scaled = binary(exp.Mul, value.copy(), scope.dialect.literal(1 << exponent, Type.INTEGER))
    inside = _move_center(scope, scaled, center)
    return choose((binary(exp.LT, value, low), least), (binary(exp.GT, value.copy(), high), most), otherwise=inside)


def _real_grid(scope: Layers, value: Node, options: tuple[float, float, int, int], *, wild: bool) -> Node:
    low, high, exponent, center = options
    scale = 2.0**exponent

    def point(bound: float) -> Node:
        return scope.dialect.literal(math.floor(bound * scale + 0.5) - center, Type.INTEGER)

    def compare(kind: type[exp.Binary], bound: float) -> Node:
        return binary(kind, value.copy(), scope.real(bound))

    scaled = binary(exp.Add, binary(exp.Mul, value.copy(), scope.real(scale)), scope.real(0.5))
    inside = binary(exp.And, compare(exp.GTE, low), compare(exp.LTE, high))
    branches = [
        (inside, _move_center(scope, scope.dialect.to_bigint(call("FLOOR", scaled)), center)),
        (binary(exp.And, compare(exp.GT, high), compare(exp.LT, LARGEST_REAL)), point(high)),
        (binary(exp.And, compare(exp.LT, low), compare(exp.GT, -LARGEST_REAL)), point(low)),
    ]
    if exponent < 0 and low < SMALLEST_FACTOR and high > -SMALLEST_FACTOR:
        # the product could underflow, which PostgreSQL calls an error
        branches.insert(0, (scope.between(value.copy(), -SMALLEST_FACTOR, SMALLEST_FACTOR), point(0.0)))
    finite = scope.dialect.finite(value.copy()) if wild else None
    if finite is not None:
        branches.insert(0, (exp.Not(this=finite), scope.dialect.literal(None, Type.INTEGER)))
    return choose(*branches)
