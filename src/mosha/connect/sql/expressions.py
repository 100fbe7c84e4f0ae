"""Scalar expressions in SQL: one compiler, the dialects fill in the words.

Guarantee:
    No row makes the SQL of an expression raise. Doubles enter below 2**500 in magnitude; factors below 2**-500 count
    as zero. So no sum, product or quotient of two of them overflows (2**1000 < 2**1023) or underflows to an error
    (2**-1000 > 2**-1022), and what leaves [-2**500, 2**500] becomes NULL before it is used again. Whole numbers are
    combined in a wider type and become NULL beyond 64 bits. Divisors are tested before they divide; text is
    matched against a grammar of valid numbers and dates before it is cast; casts of doubles are guarded by range.
    Texts have at most 2**18 bytes, what grows beyond is NULL. Constants are in the ranges of `limits`.
    Guards stand in CASE around what they guard, which every engine evaluates in that order. `expressions.md` (in
    `connect/language`) goes through all operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from mosha.connect.language.checking import join_types, read_loose_types, result_type, type_of
from mosha.connect.language.expression import Call, Case, Column, Expression, Literal, Operator
from mosha.connect.language.schema import LARGEST_REAL, SMALLEST_FACTOR, Schema, Type
from mosha.connect.sql.arithmetic import (
    absolute,
    arithmetic,
    clamp,
    divide,
    negate,
    round_number,
    round_to_whole,
    to_bin,
    to_grid,
)
from mosha.connect.sql.casts import cast_sql, read_text
from mosha.connect.sql.dialect import Dialect, Node, binary, call, choose, column, number, text
from mosha.connect.sql.patterns import like_sql

__all__ = ["Scope", "Typed"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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

    def value(self, expression: Expression) -> Typed:
        """An expression over this scope, checked first; the result is never wild."""
        type_of(expression, self.schema)
        return self._tame(self._value(expression))

    def compile_raw(self, expression: Expression) -> Node:
        """An expression over this scope, checked first; a column of the data comes as it is, NaN and all."""
        type_of(expression, self.schema)
        return self._value(expression).node

    def _tame(self, typed: Typed) -> Typed:
        if not typed.wild:
            return typed
        finite = self.dialect.finite(typed.node.copy())
        tamed = self.tame(typed.node)
        return Typed(tamed if finite is None else choose((finite, tamed)), Type.REAL)

    def _value(self, expression: Expression) -> Typed:
        if isinstance(expression, Column):
            return self.columns[expression.name]
        if isinstance(expression, Literal):
            return Typed(self.dialect.literal(expression.value, expression.type), expression.type)
        if isinstance(expression, Case):
            return self._case(expression)
        assert isinstance(expression, Call)
        arguments = self._read_loose(expression, [self._value(argument) for argument in expression.arguments])
        if expression.operator is not Operator.GRID:  # the one operator that takes care of wild numbers itself
            arguments = [self._tame(argument) for argument in arguments]
        kind = result_type(expression, [argument.type for argument in arguments])
        return Typed(_EMITTERS[expression.operator](self, expression, arguments, kind), kind)

    def _read_loose(self, expression: Call, arguments: list[Typed]) -> list[Typed]:
        """Columns without a declared type read as what the operator needs."""
        if not any(argument.loose for argument in arguments):
            return arguments
        loose = [argument.loose for argument in arguments]
        kinds = read_loose_types(expression, [argument.type for argument in arguments], loose)
        return [
            argument if kind is argument.type else Typed(read_text(self, argument.node, kind), kind)
            for argument, kind in zip(arguments, kinds, strict=True)
        ]

    def _case(self, case: Case) -> Typed:
        values = [value for _, value in case.branches] + ([case.rest] if case.rest is not None else [])
        typed = [self._tame(self._value(value)) for value in values]
        kind = join_types([value.type for value in typed], "case")
        nodes = [self.coerce(value, kind) for value in typed]
        conditions = [self._value(condition).node for condition, _ in case.branches]
        otherwise = nodes[-1] if case.rest is not None else None
        return Typed(choose(*zip(conditions, nodes, strict=False), otherwise=otherwise), kind)

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


_Emitter = Callable[[Scope, Call, list[Typed], Type], Node]


def _compare(kind: type[exp.Binary]) -> _Emitter:
    def emit(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
        joined = join_types([argument.type for argument in arguments], "a comparison")
        left, right = (scope.coerce(argument, joined) for argument in arguments)
        return binary(kind, left, right)

    return emit


def _in(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    joined = join_types([argument.type for argument in arguments], "a comparison")
    value, *members = (scope.coerce(argument, joined) for argument in arguments)
    return exp.In(this=exp.Paren(this=value), expressions=members)


def _function(emit: Callable[[Dialect, list[Node], Call], Node]) -> _Emitter:
    return lambda scope, expression, arguments, _: emit(scope.dialect, [a.node for a in arguments], expression)


def _coalesce(scope: Scope, _: Call, arguments: list[Typed], result: Type) -> Node:
    return call("COALESCE", *(scope.coerce(argument, result) for argument in arguments))


def _concat(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    joined = scope.dialect.concat([argument.node for argument in arguments])
    return joined if len(arguments) == 1 else scope.let(joined, scope.dialect.cut_long_text)


def _part(dialect: Dialect, nodes: list[Node], expression: Call) -> Node:
    return dialect.part(expression.operator.name.lower(), nodes[0])


def _truncate(scope: Scope, expression: Call, arguments: list[Typed], result: Type) -> Node:
    unit = expression.options[0]
    return scope.let(arguments[0].node, lambda node: scope.dialect.truncate_date(unit, node, result))


def _days(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    later, earlier = (scope.coerce(argument, Type.DATE) for argument in arguments)
    return scope.dialect.days_between(later, earlier)


def _substring(_: Dialect, nodes: list[Node], expression: Call) -> Node:
    return call("SUBSTRING", nodes[0], *(number(option) for option in expression.options))


_EMITTERS: Mapping[Operator, _Emitter] = {
    Operator.ADD: arithmetic(exp.Add),
    Operator.SUBTRACT: arithmetic(exp.Sub),
    Operator.MULTIPLY: arithmetic(exp.Mul),
    Operator.DIVIDE: divide,
    Operator.NEGATE: negate,
    Operator.ABSOLUTE: absolute,
    Operator.FLOOR: round_to_whole("FLOOR"),
    Operator.CEILING: round_to_whole("CEIL"),
    Operator.ROUND: round_number,
    Operator.CLAMP: clamp,
    Operator.BIN: to_bin,
    Operator.GRID: to_grid,
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
    Operator.CONCAT: _concat,
    Operator.LIKE: like_sql,
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
