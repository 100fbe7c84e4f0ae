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

import string
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta

from sqlglot import exp

from mosha.connect.language.cases import Case
from mosha.connect.language.checking import join_types, read_loose_types, result_type, type_of
from mosha.connect.language.expression import Call, Column, Expression, Literal, Operator
from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import Dialect, Node, binary, call, choose, number, text
from mosha.connect.sql.layers import (
    Layers,
    Typed,
    absolute,
    arithmetic,
    clamp,
    divide,
    nearest,
    negate,
    round_number,
    round_to_whole,
    to_bin,
    to_grid,
)
from mosha.connect.sql.patterns import like_sql
from mosha.connect.sql.real_functions import exponential, logarithm, power, square_root

__all__ = ["Scope", "cast_sql", "find_reach", "read_text", "shift_date_sql"]


def shift_date_sql(scope: Layers, expression: Call, arguments: list[Typed], result: Type) -> Node:
    """The shift behind a guard: later days are shifted to later ones, so those that stay in range are an interval."""
    amount, unit = expression.options
    reach = find_reach(amount, unit)
    if reach is None:
        return scope.dialect.literal(None, result)
    moments = (datetime.combine(day, clock) for day, clock in zip(reach, (time.min, time.max), strict=True))
    first, last = reach if result is Type.DATE else moments

    def shift(value: Node) -> Node:
        low, high = (scope.dialect.literal(end, result) for end in (first, last))
        inside = binary(exp.And, binary(exp.GTE, value, low), binary(exp.LTE, value.copy(), high))
        return choose((inside, scope.dialect.shift_date(value.copy(), amount, unit, result)))

    return scope.let(arguments[0].node, shift)


def find_reach(amount: int, unit: str) -> tuple[date, date] | None:
    """The first and the last day whose shift is in the years 1 to 9999; None where there is none.

    >>> find_reach(1, "month")
    (datetime.date(1, 1, 1), datetime.date(9999, 11, 30))
    """
    try:
        if unit == "day":
            shift = timedelta(days=amount)
            return (date.min - shift, date.max) if amount < 0 else (date.min, date.max - shift)
        first, last = (12 * day.year + day.month - 1 - amount for day in (date.min, date.max))
        low = date.min if amount >= 0 else _first_day(first)
        return low, date.max if amount <= 0 else _first_day(last + 1) - timedelta(days=1)
    except (OverflowError, ValueError):
        return None


def _first_day(month: int) -> date:
    return date(month // 12, month % 12 + 1, 1)


INTEGER_TEXT = "[+-]?[0-9]{1,18}"
REAL_TEXT = r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?"
DATE_TEXT = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])"
    "|(?:[02468][048]|[13579][26])00)-02-29)"
)
TIMESTAMP_TEXT = DATE_TEXT + r"(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z?)?"
"""With a Z it is a moment of UTC, which is the wall clock that a moment becomes everywhere else, too."""


def cast_sql(scope: Layers, _: Call, arguments: list[Typed], target: Type) -> Node:
    source, node, dialect = arguments[0].type, arguments[0].node, scope.dialect
    if source is target or (source, target) == (Type.INSTANT, Type.TIMESTAMP):
        return node
    if source is Type.BOOLEAN:
        yes, no = (dialect.literal(v, target) for v in ((1, 0) if target is Type.INTEGER else ("true", "false")))
        return scope.let(node, lambda value: choose((value, yes), (exp.Not(this=exp.Paren(this=value.copy())), no)))
    if source is Type.REAL:
        return scope.within(node, -(2.0**52), 2.0**52, lambda value: nearest(scope, value))
    if source is Type.TEXT:
        return read_text(scope, node, target)
    if target is Type.TEXT:
        return dialect.date_text(node) if source is Type.DATE else dialect.to(Type.TEXT, node)
    return dialect.to(target, node)


def read_text(scope: Layers, node: Node, target: Type) -> Node:
    """Text as a number or a date where it is written plainly, else NULL."""
    patterns = {Type.INTEGER: INTEGER_TEXT, Type.REAL: REAL_TEXT, Type.DATE: DATE_TEXT, Type.TIMESTAMP: TIMESTAMP_TEXT}

    def read(value: Node) -> Node:
        valid = scope.dialect.matches(value, patterns[target])
        if target.temporal:
            year = call("SUBSTRING", value.copy(), number(1), number(4))
            valid = binary(exp.And, valid, binary(exp.NEQ, year, text("0000")))
        plain = call("REPLACE", value.copy(), text("Z"), text("")) if target is Type.TIMESTAMP else value.copy()
        return choose((valid, scope.dialect.attempt(target, plain)))

    return scope.let(node, read)


LOWER = [(letter, letter.lower()) for letter in string.ascii_uppercase]
UPPER = [(small, large) for large, small in LOWER]


class Scope(Layers):
    """Layers of rows, over which expressions are compiled."""

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
        kind = join_types([value.type for value in typed], "connect.where_case")
        nodes = [self.coerce(value, kind) for value in typed]
        conditions = [self._value(condition).node for condition, _ in case.branches]
        otherwise = nodes[-1] if case.rest is not None else None
        return Typed(choose(*zip(conditions, nodes, strict=False), otherwise=otherwise), kind)


_Emitter = Callable[[Scope, Call, list[Typed], Type], Node]


def _compare(kind: type[exp.Binary]) -> _Emitter:
    def emit(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
        joined = join_types([argument.type for argument in arguments], "connect.where_comparison")
        left, right = (scope.coerce(argument, joined) for argument in arguments)
        return binary(kind, left, right)

    return emit


def _in(scope: Scope, _: Call, arguments: list[Typed], __: Type) -> Node:
    joined = join_types([argument.type for argument in arguments], "connect.where_comparison")
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


def _split(scope: Scope, expression: Call, arguments: list[Typed], _: Type) -> Node:
    sought, place = expression.options
    return scope.let(arguments[0].node, lambda node: scope.dialect.split(node, sought, place))


def _position(dialect: Dialect, nodes: list[Node], expression: Call) -> Node:
    return dialect.to(Type.INTEGER, dialect.position(nodes[0], expression.options[0]))


def _replace(scope: Scope, expression: Call, arguments: list[Typed], _: Type) -> Node:
    replaced = call("REPLACE", arguments[0].node, *(scope.dialect.literal(o, Type.TEXT) for o in expression.options))
    return scope.let(replaced, scope.dialect.cut_long_text)


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
    Operator.SQUARE_ROOT: square_root,
    Operator.LOGARITHM: logarithm,
    Operator.EXPONENTIAL: exponential,
    Operator.POWER: power,
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
    Operator.LOWER: _function(lambda dialect, nodes, _: dialect.translate(nodes[0], LOWER)),
    Operator.UPPER: _function(lambda dialect, nodes, _: dialect.translate(nodes[0], UPPER)),
    Operator.TRIM: _function(lambda dialect, nodes, call: dialect.trim(nodes[0], *call.options)),
    Operator.LENGTH: _function(lambda dialect, nodes, _: dialect.to(Type.INTEGER, dialect.text_length(nodes[0]))),
    Operator.SUBSTRING: _function(_substring),
    Operator.TAIL: _function(lambda _, nodes, expression: call("RIGHT", nodes[0], number(expression.options[0]))),
    Operator.SPLIT: _split,
    Operator.CONCAT: _concat,
    Operator.POSITION: _function(_position),
    Operator.REPLACE: _replace,
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
    Operator.SHIFT_DATE: shift_date_sql,
    Operator.CAST: cast_sql,
}
