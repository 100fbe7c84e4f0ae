"""The type of an expression over a schema, or the reason why it has none; how deep and how large a plan may be.

A short text must not keep a computer busy for hours, before or after payment.

Guarantee:
    A plan is at most `DEEPEST` steps deep. Whatever walks through it, as a tree, meets at most `LARGEST_PLAN / STEP`
    steps, and at most `LARGEST_PLAN` operators in them. Both are counted where a step is made, from the counts of what
    is beneath it, and not followed: a step that stands in many places counts in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Column, Expression, Literal, Operator
from mosha.connect.language.schema import Schema, Type
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import phrase

__all__ = [
    "CASTS", "DEEPEST", "LARGEST_PLAN", "check_size", "check_step", "is_loose", "is_number", "join_types",
    "list_expressions", "read_loose_types", "result_type", "type_of",
]  # fmt: skip

DEPTH = 24
DEEPEST = 128
LARGEST_PLAN = 2**14
LARGEST_QUESTION = 2 * LARGEST_PLAN
STEP = 16  # as many operators as a step takes time

CASTS: dict[Type, frozenset[Type]] = {
    Type.INTEGER: frozenset({Type.INTEGER, Type.REAL, Type.TEXT}),
    Type.REAL: frozenset({Type.REAL, Type.INTEGER}),
    Type.BOOLEAN: frozenset({Type.BOOLEAN, Type.INTEGER, Type.TEXT}),
    Type.TEXT: frozenset({Type.TEXT, Type.INTEGER, Type.REAL, Type.DATE, Type.TIMESTAMP}),
    Type.DATE: frozenset({Type.DATE, Type.TIMESTAMP, Type.TEXT}),
    Type.TIMESTAMP: frozenset({Type.TIMESTAMP, Type.DATE}),
    Type.INSTANT: frozenset({Type.INSTANT, Type.TIMESTAMP, Type.DATE}),
}
"""The casts that mean the same on every engine. A REAL has no text (engines print it differently); a REAL becomes
the nearest INTEGER, halves away from zero; TEXT becomes a number or a date when it is written plainly, else NULL."""


def type_of(expression: Expression, schema: Schema) -> Type:
    """The type of `expression` over `schema`.

    >>> from mosha.connect.language.expression import col
    >>> type_of(col("days") / 2, Schema({"days": Type.INTEGER}))
    <Type.REAL: 'real'>
    """
    return _type_of(expression, schema, 0)


def _type_of(expression: Expression, schema: Schema, depth: int) -> Type:
    if depth > DEPTH:
        raise DataError("connect.expression_too_deep", most=DEPTH)
    if isinstance(expression, Column):
        return schema[expression.name]
    if isinstance(expression, Literal):
        return expression.type
    if isinstance(expression, Case):
        return _case_type(expression, schema, depth)
    if isinstance(expression, Call):
        kinds = [_type_of(argument, schema, depth + 1) for argument in expression.arguments]
        return result_type(
            expression, read_loose_types(expression, kinds, [is_loose(a, schema) for a in expression.arguments])
        )
    raise DataError("connect.no_expression", kind=type(expression).__name__)


def _case_type(case: Case, schema: Schema, depth: int) -> Type:
    for condition, _ in case.branches:
        if _type_of(condition, schema, depth + 1) is not Type.BOOLEAN:
            raise DataError("connect.case_needs_boolean")
    values = [value for _, value in case.branches]
    if case.rest is not None:
        values.append(case.rest)
    return join_types([_type_of(value, schema, depth + 1) for value in values], "connect.where_case")


def is_loose(expression: Expression, schema: Schema) -> bool:
    """Whether an expression is a column without a declared type."""
    return isinstance(expression, Column) and expression.name in schema.loose


def is_number(expression: Expression, schema: Schema) -> bool:
    """Whether sums and quantiles of an expression mean something.

    >>> from mosha.connect.language.expression import col
    >>> is_number(col("days"), Schema({"days": Type.TEXT}, loose=["days"]))
    True
    """
    return type_of(expression, schema).numeric or is_loose(expression, schema)


def read_loose_types(call: Call, kinds: Sequence[Type], loose: Sequence[bool]) -> list[Type]:
    """The types of a call's arguments, columns without a declared type read as what the operator and its others need.

    The rule looks at the question alone: no row can change what a column means.
    """
    if not any(loose):
        return list(kinds)
    if call.operator in _READS:
        wish = _READS[call.operator]
    else:
        others = [kind for kind, free in zip(kinds, loose, strict=True) if not free]
        wish = others[0] if others and call.operator in _ALIKE else Type.TEXT
        wish = Type.REAL if wish.numeric else wish
    return [wish if free and wish in CASTS[Type.TEXT] else kind for kind, free in zip(kinds, loose, strict=True)]


def join_types(kinds: Sequence[Type], where: str, **fields: object) -> Type:
    """The one type that holds all these: REAL for mixed numbers, TIMESTAMP for dates beside wall clocks.

    Args:
        kinds: the types.
        where: the code of the words that say where they meet, for the error.
        fields: of these words.
    """
    distinct = set(kinds)
    if len(distinct) == 1:
        return kinds[0]
    if distinct == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    if distinct == {Type.DATE, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    if Type.INSTANT in distinct and all(kind.temporal for kind in distinct):
        raise DataError("connect.mixes_instant_and_clock", where=phrase(where, **fields))
    raise DataError("connect.mixes_types", where=phrase(where, **fields), kinds=sorted(map(str, distinct)))


def result_type(call: Call, kinds: list[Type]) -> Type:
    """The type of a call whose arguments have these types."""
    rule = _RULES[call.operator]
    return rule(call, kinds)


_Rule = Callable[[Call, list[Type]], Type]


def _need(call: Call, kinds: Sequence[Type], allowed: Callable[[Type], bool], what: str) -> None:
    for kind in kinds:
        if not allowed(kind):
            raise DataError(
                "connect.operator_needs",
                operator=call.operator.name.lower(),
                what=phrase(f"connect.{what}"),
                kind=str(kind),
            )


def _numbers(call: Call, kinds: list[Type]) -> Type:
    _need(call, kinds, lambda kind: kind.numeric, "numbers")
    return join_types(kinds, "connect.where_operator", operator=call.operator.name.lower())


def _real(call: Call, kinds: list[Type]) -> Type:
    _numbers(call, kinds)
    return Type.REAL


def _type_whole(call: Call, kinds: list[Type]) -> Type:
    _numbers(call, kinds)
    return Type.INTEGER


def _type_rounded(call: Call, kinds: list[Type]) -> Type:
    _numbers(call, kinds)
    return Type.INTEGER if call.options == (0,) else Type.REAL


def _type_comparison(call: Call, kinds: list[Type]) -> Type:
    column = next((part.name for part in call.arguments if isinstance(part, Column)), None)
    where = "connect.where_comparison" if column is None else "connect.where_comparison_of"
    joined = join_types(kinds, where, column=column)
    equality = {Operator.EQUAL, Operator.NOT_EQUAL, Operator.IN}
    if joined is Type.BOOLEAN and call.operator not in equality:
        raise DataError("connect.booleans_have_no_order")
    return Type.BOOLEAN


def _logical(call: Call, kinds: list[Type]) -> Type:
    _need(call, kinds, lambda kind: kind is Type.BOOLEAN, "booleans")
    return Type.BOOLEAN


def _texts(result: Type) -> _Rule:
    def rule(call: Call, kinds: list[Type]) -> Type:
        _need(call, kinds, lambda kind: kind is Type.TEXT, "text")
        return result

    return rule


def _dates(call: Call, kinds: list[Type], *, clock: bool) -> None:
    allowed = {Type.TIMESTAMP, Type.INSTANT} if clock else {Type.DATE, Type.TIMESTAMP, Type.INSTANT}
    _need(call, kinds, lambda kind: kind in allowed, "timestamps" if clock else "dates")


def _date_part(call: Call, kinds: list[Type]) -> Type:
    _dates(call, kinds, clock=call.operator in {Operator.HOUR, Operator.MINUTE})
    return Type.INTEGER


def _type_truncated_date(call: Call, kinds: list[Type]) -> Type:
    _dates(call, kinds, clock=call.options[0] in {"hour", "minute"})
    return kinds[0]


def _type_shifted_date(call: Call, kinds: list[Type]) -> Type:
    _dates(call, kinds, clock=False)
    return kinds[0]


def _days(call: Call, kinds: list[Type]) -> Type:
    _need(call, kinds, lambda kind: kind.temporal, "dates")
    join_types(kinds, "connect.where_days")
    return Type.INTEGER


def _cast(call: Call, kinds: list[Type]) -> Type:
    target: Type = call.options[0]
    if target not in CASTS[kinds[0]]:
        raise DataError(
            "connect.cannot_cast", kind=str(kinds[0]), target=str(target), allowed=sorted(map(str, CASTS[kinds[0]]))
        )
    return target


_RULES: Mapping[Operator, _Rule] = {
    **dict.fromkeys([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.NEGATE], _numbers),
    **dict.fromkeys([Operator.ABSOLUTE, Operator.CLAMP, Operator.BIN], _numbers),
    **dict.fromkeys(
        [Operator.DIVIDE, Operator.SQUARE_ROOT, Operator.LOGARITHM, Operator.EXPONENTIAL, Operator.POWER], _real
    ),
    Operator.ROUND: _type_rounded,
    **dict.fromkeys([Operator.FLOOR, Operator.CEILING, Operator.GRID], _type_whole),
    **dict.fromkeys(
        [
            Operator.EQUAL,
            Operator.NOT_EQUAL,
            Operator.LESS,
            Operator.LESS_EQUAL,
            Operator.GREATER,
            Operator.GREATER_EQUAL,
            Operator.IN,
        ],
        _type_comparison,
    ),
    **dict.fromkeys([Operator.AND, Operator.OR, Operator.NOT], _logical),
    Operator.IS_NULL: lambda _call, _kinds: Type.BOOLEAN,
    Operator.COALESCE: lambda _call, kinds: join_types(kinds, "connect.where_operator", operator="coalesce"),
    **dict.fromkeys(
        [
            *(Operator.LOWER, Operator.UPPER, Operator.TRIM, Operator.SUBSTRING, Operator.TAIL, Operator.SPLIT),
            *(Operator.CONCAT, Operator.REPLACE),
        ],
        _texts(Type.TEXT),
    ),
    **dict.fromkeys([Operator.LENGTH, Operator.POSITION], _texts(Type.INTEGER)),
    Operator.LIKE: _texts(Type.BOOLEAN),
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
        _date_part,
    ),
    Operator.TRUNCATE_DATE: _type_truncated_date,
    Operator.DAYS_BETWEEN: _days,
    Operator.SHIFT_DATE: _type_shifted_date,
    Operator.CAST: _cast,
}

_COMPARED = [operator for operator, rule in _RULES.items() if rule is _type_comparison]
_ALIKE = frozenset([*_COMPARED, Operator.COALESCE])
"""Operators whose arguments have one type, which the others decide where one has none."""
_READS: Mapping[Operator, Type] = {
    **{
        operator: Type.REAL
        for operator, rule in _RULES.items()
        if rule in {_numbers, _real, _type_whole, _type_rounded}
    },
    **{
        operator: Type.TIMESTAMP
        for operator, rule in _RULES.items()
        if rule in {_date_part, _type_truncated_date, _type_shifted_date}
    },
    Operator.DAYS_BETWEEN: Type.DATE,
}
"""What an operator needs, whatever its other arguments are."""


def list_expressions(step: Any) -> Iterator[Expression]:
    """What a step, or an aggregate, computes itself: expressions among its fields, or in what they hold."""
    for field in fields(step):
        value = getattr(step, field.name)
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        for part in parts:
            if isinstance(part, Expression):
                yield part
            elif isinstance(of := getattr(part, "of", None), Expression):
                yield of


def check_step(step: Any, *beneath: Any) -> None:
    """Refuse a plan that is deeper than programs can follow by calling themselves, or larger than they can write."""
    depth = 1 + max(getattr(below, "depth", 0) for below in beneath)
    if depth > DEEPEST:
        raise InvalidParameter("connect.plan_too_deep", most=DEEPEST, spent="nothing")
    size = STEP + sum(expression.size for expression in list_expressions(step)) + sum(map(_size_of, beneath))
    if size > LARGEST_PLAN:
        raise DataError("connect.plan_too_large", spent="nothing")
    object.__setattr__(step, "depth", depth)
    object.__setattr__(step, "size", size)


def check_size(relation: Any, expressions: Iterable[Expression]) -> None:
    """Refuse a question that is larger, with all that is asked in it, than can be written out."""
    if _size_of(relation) + sum(expression.size for expression in expressions) > LARGEST_QUESTION:
        raise DataError("connect.plan_too_large", spent="nothing")


def _size_of(relation: Any) -> int:
    return getattr(relation, "size", STEP)
