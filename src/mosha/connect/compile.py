"""Scalar expressions in SQL: one compiler, the dialects fill in the words.

Guarantee:
    No row makes the SQL of an expression raise. Doubles enter below 2**500 in magnitude; factors below 2**-500 count
    as zero. So no sum, product or quotient of two of them overflows (2**1000 < 2**1023) or underflows to an error
    (2**-1000 > 2**-1022), and what leaves [-2**500, 2**500] becomes NULL before it is used again. Whole numbers are
    combined in a wider type and become NULL beyond 64 bits. Divisors are tested before they divide; text is
    matched against a grammar of valid numbers and dates before it is cast; casts of doubles are guarded by range.
    Guards stand in CASE around what they guard, which every engine evaluates in that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from mosha.connect.casts import cast_sql
from mosha.connect.checking import join_types, result_type, type_of
from mosha.connect.dialect import Dialect, Node, binary, call, choose, column, number, text
from mosha.connect.expression import Call, Case, Column, Expression, Literal, Operator
from mosha.connect.schema import LARGEST_INTEGER, LARGEST_REAL, SMALLEST_FACTOR, Schema, Type

__all__ = ["Scope", "Typed"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Typed:
    """A piece of SQL with its type; a `wild` REAL comes from the data and may be NaN, infinite or too large."""

    node: Node
    type: Type
    wild: bool = False


@dataclass
class Scope:
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
        return Schema({name: typed.type for name, typed in self.columns.items()})

    def once(self, node: Node) -> Node:
        """The node as something that may be written twice: a column of an inner SELECT if it is not one already."""
        simple = node.this if isinstance(node, exp.Cast) else node
        if isinstance(simple, (exp.Column, exp.Literal, exp.Null, exp.Boolean)):
            return node
        name, depth = next(self.names), self._depth(node)
        if depth == len(self.layers):
            self.layers.append([])
        self.layers[depth].append(exp.alias_(node, name, quoted=True, copy=False))
        self.depths[name] = depth + 1
        return column(name)

    def _depth(self, node: Node) -> int:
        """How many layers must stand before the node can be computed."""
        return max((self.depths.get(found.name, 0) for found in node.find_all(exp.Column)), default=0)

    def dressed(self, select: exp.Select) -> exp.Select:
        """The SELECT with this scope's FROM and WHERE."""
        tests: list[list[Node]] = [[] for _ in range(len(self.layers) + 1)]
        for predicate in self.predicates:
            tests[self._depth(predicate)].append(predicate)
        table = self.table
        for layer, conditions in zip(self.layers, tests, strict=False):
            inner = _from(exp.Select(expressions=[exp.Star(), *layer]), table, conditions)
            if self.dialect.barrier:
                inner.set("offset", exp.Offset(expression=exp.Literal.number(0)))
            table = self.aliased(inner)
        return _from(select, table, tests[-1])

    def seal(self) -> None:
        """Close the layers and predicates so far into the table, before something that looks at many rows."""
        if self.layers or self.predicates:
            self.table = self.aliased(self.dressed(exp.Select(expressions=[exp.Star()])))
            self.predicates, self.layers, self.depths = [], [], {}

    def aliased(self, query: exp.Select) -> Node:
        alias = exp.TableAlias(this=exp.Identifier(this=next(self.names), quoted=True))
        return exp.Subquery(this=query, alias=alias)

    def value(self, expression: Expression) -> Typed:
        """An expression over this scope, checked first; the result is never wild."""
        type_of(expression, self.schema)
        return self._tamed(self._value(expression))

    def _tamed(self, typed: Typed) -> Typed:
        if not typed.wild:
            return typed
        node = self.once(typed.node)
        finite, tamed = self.dialect.finite(node.copy()), self.tame(node)
        return Typed(tamed if finite is None else choose((finite, tamed)), Type.REAL)

    def _value(self, expression: Expression) -> Typed:
        if isinstance(expression, Column):
            return self.columns[expression.name]
        if isinstance(expression, Literal):
            return Typed(self.dialect.literal(expression.value, expression.type), expression.type)
        if isinstance(expression, Case):
            return self._case(expression)
        assert isinstance(expression, Call)
        arguments = [self._value(argument) for argument in expression.arguments]
        if expression.operator is not Operator.GRID:  # the one operator that takes care of wild numbers itself
            arguments = [self._tamed(argument) for argument in arguments]
        kind = result_type(expression, [argument.type for argument in arguments])
        return Typed(_EMITTERS[expression.operator](self, expression, arguments, kind), kind)

    def _case(self, case: Case) -> Typed:
        values = [value for _, value in case.branches] + ([case.otherwise] if case.otherwise is not None else [])
        typed = [self._tamed(self._value(value)) for value in values]
        kind = join_types([value.type for value in typed], "case")
        nodes = [self.coerce(value, kind) for value in typed]
        conditions = [self._value(condition).node for condition, _ in case.branches]
        otherwise = nodes[-1] if case.otherwise is not None else None
        return Typed(choose(*zip(conditions, nodes, strict=False), otherwise=otherwise), kind)

    def coerce(self, typed: Typed, kind: Type) -> Node:
        return typed.node if typed.type is kind else self.dialect.to(kind, typed.node)

    def real(self, value: float) -> Node:
        return self.dialect.literal(float(value), Type.REAL)

    def tame(self, node: Node) -> Node:
        """NULL in place of NaN, infinities and magnitudes from 2**500 on."""
        return self.within(self.once(node), -LARGEST_REAL, LARGEST_REAL)

    def within(self, node: Node, low: float, high: float, then: Node | None = None) -> Node:
        """`then` (or the node itself) where low < node < high, else NULL; no engine takes NaN to be below `high`."""
        inside = binary(exp.And, binary(exp.GT, node, self.real(low)), binary(exp.LT, node.copy(), self.real(high)))
        return choose((inside, node.copy() if then is None else then))

    def flush(self, node: Node) -> Node:
        """Zero in place of magnitudes below 2**-500 (and of -0.0), so that products cannot underflow."""
        node = self.once(node)
        tiny = binary(
            exp.And,
            binary(exp.GT, node, self.real(-SMALLEST_FACTOR)),
            binary(exp.LT, node.copy(), self.real(SMALLEST_FACTOR)),
        )
        return choose((tiny, self.real(0)), otherwise=node.copy())

    def add(self, left: Node, right: Node, kind: type[exp.Binary] = exp.Add) -> Node:
        return self.tame(binary(kind, left, right))

    def multiply(self, left: Node, right: Node) -> Node:
        return self.tame(binary(exp.Mul, self.flush(left), self.flush(right)))

    def divide(self, left: Node, right: Node) -> Node:
        divisor = self.once(self.flush(right))
        quotient = self.dialect.real_quotient(self.flush(left), divisor.copy())
        return self.tame(choose((binary(exp.NEQ, divisor, self.real(0)), quotient)))

    def integer(self, kind: type[exp.Binary], left: Node, right: Node) -> Node:
        node, wide = self.dialect.integer(kind, left, right)
        if not wide:
            return node
        node = self.once(node)
        low, high = self.dialect.wide(text(str(-LARGEST_INTEGER - 1))), self.dialect.wide(text(str(LARGEST_INTEGER)))
        fits = binary(exp.And, binary(exp.GTE, node, low), binary(exp.LTE, node.copy(), high))
        return choose((fits, self.dialect.to(Type.INTEGER, node.copy())))


def _from(select: exp.Select, table: Node, conditions: list[Node]) -> exp.Select:
    select.set("from_", exp.From(this=table))
    if conditions:
        condition = conditions[0]
        for other in conditions[1:]:
            condition = binary(exp.And, condition, other)
        select.set("where", exp.Where(this=condition))
    return select


_Emitter = Callable[[Scope, Call, list[Typed], Type], Node]


def _arithmetic(kind: type[exp.Binary]) -> _Emitter:
    def emit(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
        left, right = (scope.coerce(argument, result) for argument in arguments)
        if result is Type.INTEGER:
            return scope.integer(kind, left, right)
        return scope.multiply(left, right) if kind is exp.Mul else scope.add(left, right, kind)

    return emit


def _divide(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    left, right = (scope.coerce(argument, Type.REAL) for argument in arguments)
    return scope.divide(left, right)


def _negate(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
    if result is Type.INTEGER:
        return scope.integer(exp.Sub, scope.dialect.literal(0, Type.INTEGER), arguments[0].node)
    return binary(exp.Sub, scope.real(0), arguments[0].node)


def _absolute(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
    node = scope.once(arguments[0].node)
    zero = scope.dialect.literal(0, result)
    if result is Type.INTEGER:
        opposite = scope.integer(exp.Sub, zero, node.copy())
    else:
        opposite = binary(exp.Sub, zero, node.copy())
    return choose((binary(exp.LT, node, zero.copy()), opposite), otherwise=node.copy())


def _whole(name: str) -> _Emitter:
    def emit(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
        if arguments[0].type is Type.INTEGER:
            return arguments[0].node
        node = scope.once(arguments[0].node)
        return scope.within(node, -(2.0**53), 2.0**53, scope.dialect.whole(call(name, node.copy())))

    return emit


def _clamp(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
    value, low, high = (scope.coerce(argument, result) for argument in arguments)
    value = scope.once(value)
    return choose(
        (binary(exp.LT, value, low), low.copy()),
        (binary(exp.GT, value.copy(), high), high.copy()),
        otherwise=value.copy(),
    )


def _bin(scope: Scope, expression: Call, arguments: list[Typed], result: Type) -> Node:
    value, width, origin = (scope.coerce(argument, result) for argument in arguments)
    if result is Type.REAL:
        ratio = scope.once(scope.divide(scope.add(value, origin, exp.Sub), width.copy()))
        steps = scope.within(ratio, -(2.0**53), 2.0**53, scope.dialect.whole(call("FLOOR", ratio.copy())))
        steps = scope.dialect.to(Type.REAL, steps)
        return scope.add(scope.multiply(steps, width), origin.copy())
    size, start = (argument.value for argument in expression.arguments[1:] if isinstance(argument, Literal))
    value = scope.once(value)
    remainder = scope.dialect.remainder
    offset = binary(exp.Sub, remainder(value, width), scope.dialect.literal(start % size, Type.INTEGER))
    positive = binary(exp.Add, remainder(offset, width.copy()), width.copy())
    return scope.integer(exp.Sub, value.copy(), remainder(positive, width.copy()))


def _grid(scope: Scope, expression: Call, arguments: list[Typed], _: Type) -> Node:
    low, high, exponent = expression.options
    scale = 2.0**exponent

    def point(bound: float) -> Node:
        return scope.dialect.literal(math.floor(bound * scale + 0.5), Type.INTEGER)

    value = scope.once(arguments[0].node)
    if arguments[0].type is Type.INTEGER and exponent >= 0 and low.is_integer() and high.is_integer():
        bounds = [scope.dialect.literal(int(bound), Type.INTEGER) for bound in (low, high)]
        return choose(
            (binary(exp.LT, value, bounds[0]), point(low)),
            (binary(exp.GT, value.copy(), bounds[1]), point(high)),
            otherwise=binary(exp.Mul, value.copy(), scope.dialect.literal(2**exponent, Type.INTEGER)),
        )
    if arguments[0].type is Type.INTEGER:
        value = scope.dialect.to(Type.REAL, value)

    def compare(kind: type[exp.Binary], bound: float) -> Node:
        return binary(kind, value.copy(), scope.real(bound))

    scaled = binary(exp.Add, binary(exp.Mul, value.copy(), scope.real(scale)), scope.real(0.5))
    branches = [
        (
            binary(exp.And, compare(exp.GTE, low), compare(exp.LTE, high)),
            scope.dialect.whole(call("FLOOR", scaled)),
        ),
        (binary(exp.And, compare(exp.GT, high), compare(exp.LT, LARGEST_REAL)), point(high)),
        (binary(exp.And, compare(exp.LT, low), compare(exp.GT, -LARGEST_REAL)), point(low)),
    ]
    if exponent < 0 and low <= 0 <= high:  # the product could underflow, which PostgreSQL calls an error
        tiny = binary(exp.And, compare(exp.GT, -SMALLEST_FACTOR), compare(exp.LT, SMALLEST_FACTOR))
        branches.insert(0, (tiny, point(0.0)))
    finite = scope.dialect.finite(value.copy()) if arguments[0].wild else None
    if finite is not None:
        branches.insert(0, (exp.Not(this=finite), scope.dialect.literal(None, Type.INTEGER)))
    return choose(*branches)


def _compare(kind: type[exp.Binary]) -> _Emitter:
    def emit(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
        joined = join_types([argument.type for argument in arguments], "a comparison")
        left, right = (scope.coerce(argument, joined) for argument in arguments)
        return binary(kind, left, right)

    return emit


def _in(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    joined = join_types([argument.type for argument in arguments], "a comparison")
    value, *members = (scope.coerce(argument, joined) for argument in arguments)
    return exp.In(this=scope.once(value), expressions=members)


def _function(emit: Callable[[Dialect, list[Node], Call], Node]) -> _Emitter:
    return lambda scope, expression, arguments, _: emit(scope.dialect, [a.node for a in arguments], expression)


def _coalesce(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
    return call("COALESCE", *(scope.coerce(argument, result) for argument in arguments))


def _like(_: Dialect, nodes: list[Node], expression: Call) -> Node:
    pattern, escaped = "", False
    characters = iter(expression.options[0])
    for character in characters:
        literal = next(characters) if character == "\\" else character
        special = literal in "!\\" or (character == "\\" and literal in "%_")
        escaped = escaped or special
        pattern += "!" + literal if special and literal != "\\" else literal
    like = binary(exp.Like, nodes[0], text(pattern))
    return exp.Escape(this=like, expression=text("!")) if escaped else like


def _part(dialect: Dialect, nodes: list[Node], expression: Call) -> Node:
    return dialect.part(expression.operator.name.lower(), nodes[0])


def _truncate(scope: Scope, expression: Call, arguments: list[Typed], result: Type) -> Node:
    return scope.dialect.truncate_date(expression.options[0], scope.once(arguments[0].node), result)


def _days(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    later, earlier = (scope.coerce(argument, Type.DATE) for argument in arguments)
    return scope.dialect.days_between(later, earlier)


def _substring(_: Dialect, nodes: list[Node], expression: Call) -> Node:
    return call("SUBSTRING", nodes[0], *(number(option) for option in expression.options))


_EMITTERS: Mapping[Operator, _Emitter] = {
    Operator.ADD: _arithmetic(exp.Add),
    Operator.SUBTRACT: _arithmetic(exp.Sub),
    Operator.MULTIPLY: _arithmetic(exp.Mul),
    Operator.DIVIDE: _divide,
    Operator.NEGATE: _negate,
    Operator.ABSOLUTE: _absolute,
    Operator.FLOOR: _whole("FLOOR"),
    Operator.CEILING: _whole("CEIL"),
    Operator.CLAMP: _clamp,
    Operator.BIN: _bin,
    Operator.GRID: _grid,
    Operator.EQUAL: _compare(exp.EQ),
    Operator.NOT_EQUAL: _compare(exp.NEQ),
    Operator.LESS: _compare(exp.LT),
    Operator.LESS_EQUAL: _compare(exp.LTE),
    Operator.GREATER: _compare(exp.GT),
    Operator.GREATER_EQUAL: _compare(exp.GTE),
    Operator.AND: _function(lambda _, nodes, __: binary(exp.And, *nodes)),
    Operator.OR: _function(lambda _, nodes, __: binary(exp.Or, *nodes)),
    Operator.NOT: _function(lambda _, nodes, __: exp.Not(this=exp.Paren(this=nodes[0]))),
    Operator.IS_NULL: _function(lambda _, nodes, __: binary(exp.Is, nodes[0], exp.Null())),
    Operator.IN: _in,
    Operator.COALESCE: _coalesce,
    Operator.LOWER: _function(lambda _, nodes, __: call("TRANSLATE", nodes[0], text(LETTERS), text(LETTERS.lower()))),
    Operator.UPPER: _function(lambda _, nodes, __: call("TRANSLATE", nodes[0], text(LETTERS.lower()), text(LETTERS))),
    Operator.TRIM: _function(lambda dialect, nodes, _: dialect.trim(nodes[0])),
    Operator.LENGTH: _function(lambda dialect, nodes, _: dialect.to(Type.INTEGER, call("LENGTH", nodes[0]))),
    Operator.SUBSTRING: _function(_substring),
    Operator.CONCAT: _function(lambda dialect, nodes, _: dialect.concat(nodes)),
    Operator.LIKE: _function(_like),
    **dict.fromkeys(
        [
            Operator.YEAR,
            Operator.QUARTER,
            Operator.MONTH,
            Operator.DAY,
            Operator.HOUR,
            Operator.MINUTE,
            Operator.WEEKDAY,
        ],
        _function(_part),
    ),
    Operator.TRUNCATE_DATE: _truncate,
    Operator.DAYS_BETWEEN: _days,
    Operator.CAST: cast_sql,
}
