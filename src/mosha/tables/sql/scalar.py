"""Scalar SQL as expressions of the white list; anything else is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from sqlglot import exp

from mosha.connect.language.cases import Case
from mosha.connect.language.checking import is_loose, type_of
from mosha.connect.language.expression import Call, Expression, Operator, col, lit, null
from mosha.connect.language.schema import Schema, Type
from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, find_type, fold_numbers, name_of, read_texts, shift_column
from mosha.tables.functions.date_functions import (
    PARTS,
    find_difference,
    find_last_day,
    name_day,
    name_month,
    write_date,
)
from mosha.tables.functions.powers import (
    read_cube_root,
    read_logarithm,
    read_power,
    read_remainder,
    read_whole_quotient,
)
from mosha.tables.functions.range_functions import between, innermost, split_ends
from mosha.tables.functions.text_functions import TEXT_FUNCTIONS, TextFunction

__all__ = ["Refused", "all_of", "constant", "decimal_of", "name_of", "scalar"]


_BINARY: dict[type[exp.Expression], Callable[[Any, Any], Expression]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / b,
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.DPipe: lambda a, b: a.concat(b),
}

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CONNECTIVES: dict[type[exp.Expression], Operator] = {exp.And: Operator.AND, exp.Or: Operator.OR}

_UNARY: dict[type[exp.Expression], Callable[[Any], Expression]] = {
    exp.Neg: lambda a: -a,
    exp.Not: lambda a: ~a,
    exp.Paren: lambda a: a,
    exp.Abs: abs,
    exp.Floor: lambda a: a.floor(),
    exp.Ceil: lambda a: a.ceil(),
    exp.Lower: lambda a: a.lower(),
    exp.Upper: lambda a: a.upper(),
    exp.Length: lambda a: a.length(),
    exp.Year: lambda a: a.year(),
    exp.Quarter: lambda a: a.quarter(),
    exp.Month: lambda a: a.month(),
    exp.Day: lambda a: a.day(),
    exp.DayOfWeekIso: lambda a: a.weekday(),
    exp.Hour: lambda a: a.hour(),
    exp.Minute: lambda a: a.minute(),
    exp.DayOfYear: PARTS["DOY"],
    exp.WeekOfYear: PARTS["WEEK"],
    exp.Monthname: name_month,
    exp.Dayname: name_day,
    exp.LastDay: find_last_day,
    exp.Date: lambda a: a.cast("date"),
    exp.Sign: lambda a: (a > 0).cast("integer") - (a < 0).cast("integer"),
    exp.Trunc: lambda a: Case(((a < 0, a.ceil()),), a.floor()),
    exp.Sqrt: lambda a: Call(Operator.SQUARE_ROOT, (a,)),
    exp.Cbrt: read_cube_root,
    exp.Exp: lambda a: Call(Operator.EXPONENTIAL, (a,)),
}


class Scope(Protocol):
    """The columns that a query knows."""

    @property
    def schema(self) -> Schema:
        """Their types, by their names in the plan."""

    def __call__(self, node: exp.Column) -> str:
        """The name of a column in the plan."""


def scalar(node: exp.Expression, scope: Scope) -> Expression:
    """A scalar expression of one row.

    Args:
        node: what the parser made of it.
        scope: the name that a column has in the plan.
    """
    kind = type(node)
    if kind in _CONNECTIVES:
        return all_of([scalar(part, scope) for part in _flatten(node, kind)], _CONNECTIVES[kind])
    if kind in _BINARY:
        return _combine(node, scope)
    if kind in _UNARY and not _extras(node):
        return _UNARY[kind](scalar(node.this, scope))
    handler = _SPECIAL.get(kind)
    if handler is None:
        raise Refused("tables.sql_unknown_function", text=name_of(node), function=kind.__name__)
    found = handler(node, scope)
    return ~found if node.args.get("negate") else found


def _combine(node: exp.Expression, scope: Scope) -> Expression:
    """Two sides and an operator; constants are put together here, dates beside texts are read as dates."""
    kind = type(node)
    if isinstance(node.expression, exp.Interval):
        if node.this.find(exp.Column) is None:
            return _constant(node, scope)
        return shift_column(scalar(node.this, scope), node.expression, -1 if kind is exp.Sub else 1, name_of(node))
    if (folded := fold_numbers(node)) is not None:
        return lit(folded)
    sides = [scalar(node.this, scope), scalar(node.expression, scope)]
    if kind in _COMPARISONS:
        sides = read_texts(sides, scope.schema)
    if isinstance(node, exp.Add | exp.Sub) and type_of(sides[0], scope.schema) is Type.DATE:
        if type_of(sides[1], scope.schema) is Type.DATE and isinstance(node, exp.Sub):
            return sides[0].days_since(sides[1])
        if isinstance(days := getattr(sides[1], "value", None), int):  # a date some days later or earlier
            return Call(Operator.SHIFT_DATE, (sides[0],), (-days if isinstance(node, exp.Sub) else days, "day"))
    return _BINARY[kind](*sides)


def _flatten(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The conditions that a chain of AND, or of OR, joins."""
    found: list[exp.Expression] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        while isinstance(part, exp.Paren) and isinstance(part.this, kind):
            part = part.this
        if type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


def list_conditions(node: Any) -> list[exp.Expression]:
    """The conditions that a WHERE or ON joins by AND."""
    if node is None:
        return []
    while isinstance(node, exp.Paren):
        node = node.this
    return [part for side in node.flatten() for part in list_conditions(side)] if isinstance(node, exp.And) else [node]


def all_of(conditions: Sequence[Expression], operator: Operator = Operator.AND) -> Expression:
    """Many conditions joined in pairs, so that no chain of them is deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return Call(operator, (all_of(conditions[:middle], operator), all_of(conditions[middle:], operator)))


def _extras(node: exp.Expression) -> list[str]:
    """Options of a function that this white list does not know."""
    return [key for key, value in node.args.items() if key not in {"this", "encode", "binary"} and value]


def _column(node: exp.Expression, scope: Scope) -> Expression:
    assert isinstance(node, exp.Column)
    return col(scope(node))


def _constant(node: exp.Expression, scope: Scope) -> Expression:
    del scope
    value = constant(node)
    if value is None:
        raise Refused("tables.sql_null")
    return lit(value)


def _cast(node: exp.Expression, scope: Scope) -> Expression:
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        return lit(constant(node))
    value = scalar(node.this, scope)
    sizes = decimal_of(node)
    if sizes is None:
        return value.cast(find_type(node))
    number = value if type_of(value, scope.schema).numeric else value.cast(Type.REAL)
    return Call(Operator.ROUND, (number,), (sizes[1], 10.0 ** (sizes[0] - sizes[1])))


def decimal_of(node: exp.Expression) -> tuple[int, int] | None:
    """How many digits a DECIMAL has in all and after its point; None for another type."""
    kind = node.args["to"]
    sizes = [constant(size.this) for size in kind.expressions]
    if kind.this.name != "DECIMAL":
        if sizes:
            raise Refused("tables.sql_size", text=name_of(node), spent="nothing")
        return None
    digits, scale = (*sizes, 0)[:2] if sizes else (18, 3)
    if not (isinstance(digits, int) and isinstance(scale, int) and 0 <= scale <= min(digits, 15) and 1 <= digits <= 38):
        raise Refused("tables.sql_decimal", text=name_of(node))
    return digits, scale


def _case(node: exp.Expression, scope: Scope) -> Expression:
    base = node.args.get("this")
    branches = []
    for branch in node.args["ifs"]:
        condition = scalar(branch.this, scope)
        if base is not None:
            condition = scalar(base, scope) == condition
        branches.append((condition, branch.args["true"]))
    return _read_case(branches, node.args.get("default"), scope)


def _if(node: exp.Expression, scope: Scope) -> Expression:
    return _read_case([(scalar(node.this, scope), node.args["true"])], node.args.get("false"), scope)


def _read_case(branches: list[tuple[Expression, exp.Expression]], default: Any, scope: Scope) -> Expression:
    """A case; beside numbers, a column without a declared type is one. A branch that is NULL needs no value."""
    nodes = [value for _, value in branches] + ([] if default is None else [default])
    values = [None if isinstance(value, exp.Null) else scalar(value, scope) for value in nodes]
    there = [value for value in values if value is not None]
    if any(type_of(value, scope.schema).numeric for value in there):
        values = [v.cast("real") if v is not None and is_loose(v, scope.schema) else v for v in values]
    conditions = [condition for condition, _ in branches]
    missing = null(type_of(there[0], scope.schema)) if there else None
    if missing is None:
        raise Refused("tables.sql_case_of_nulls")
    pairs = [(c, missing if v is None else v) for c, v in zip(conditions, values, strict=False)]
    return Case(tuple(pairs), values[-1] if default is not None else None)


def _as_number(expression: Expression, scope: Scope) -> Expression:
    """A case of columns without a declared type, where a number is needed."""
    if not isinstance(expression, Case) or not all(is_loose(value, scope.schema) for _, value in expression.branches):
        return expression
    return Case(tuple((condition, value.cast("real")) for condition, value in expression.branches), expression.rest)


def _in(node: exp.Expression, scope: Scope) -> Expression:
    if node.args.get("query") or node.args.get("unnest"):
        raise Refused("tables.sql_in_list", text=name_of(node))
    values = [constant(item) for item in node.expressions]
    if None in values:
        raise Refused("tables.sql_null_in_list", text=name_of(node), column=name_of(node.this))
    value, *members = read_texts([scalar(node.this, scope), *map(lit, values)], scope.schema)
    return value.is_in(*members)


def _is(node: exp.Expression, scope: Scope) -> Expression:
    if isinstance(node.expression, exp.Null):
        return scalar(node.this, scope).is_null()
    value = constant(node.expression)
    if not isinstance(value, bool):
        raise Refused("tables.sql_is", text=name_of(node))
    return (scalar(node.this, scope) == value).coalesce(False)


def _between(node: exp.Expression, scope: Scope) -> Expression:
    parts = [scalar(part, scope) for part in (node.this, node.args["low"], node.args["high"])]
    value, low, high = read_texts(parts, scope.schema)
    inside = value.between(low, high)
    return inside | value.between(high, low) if node.args.get("symmetric") else inside


def _coalesce(node: exp.Expression, scope: Scope) -> Expression:
    return scalar(node.this, scope).coalesce(*(scalar(item, scope) for item in node.expressions))


def _concat(node: exp.Expression, scope: Scope) -> Expression:
    """CONCAT passes over NULL, as engines do; a || b is NULL where one of them is."""
    first, *others = (scalar(item, scope).coalesce("") for item in node.expressions if not isinstance(item, exp.Null))
    return first.concat(*others)


def _of_text(function: TextFunction, node: exp.Expression, scope: Scope) -> Expression:
    return function(node, scalar(node.this, scope))


def _round(node: exp.Expression, scope: Scope) -> Expression:
    digits = node.args.get("decimals")
    return scalar(node.this, scope).round(0 if digits is None else constant(digits))


def _extract(node: exp.Expression, scope: Scope) -> Expression:
    part = PARTS.get(node.this.name.upper())
    if part is None:
        raise Refused("tables.sql_extract", text=name_of(node), parts=sorted(PARTS))
    return part(scalar(node.expression, scope))


def _difference(node: exp.Expression, scope: Scope) -> Expression:
    sides = read_texts([scalar(node.this, scope), scalar(node.expression, scope)], scope.schema)
    found = find_difference(sides[0], sides[1], str(node.args.get("unit", "DAY")))
    if found is None:
        raise Refused("tables.sql_date_difference", text=name_of(node))
    return found


def _write_date(node: exp.Expression, scope: Scope) -> Expression:
    return write_date(node, lambda part: scalar(part, scope))


def _truncate(node: exp.Expression, scope: Scope) -> Expression:
    return scalar(node.this, scope).truncate(node.args["unit"].name.lower())


def _divide_whole(node: exp.Expression, scope: Scope) -> Expression:
    value = scalar(node.this, scope)
    read = read_remainder if isinstance(node, exp.Mod) else read_whole_quotient
    return read(node, value, type_of(value, scope.schema))


def _is_same(node: exp.Expression, scope: Scope) -> Expression:
    """IS NOT DISTINCT FROM: NULL is the same as NULL; after NOT, IS DISTINCT FROM."""
    sides = [node.this, node.expression]
    if isinstance(node.expression, exp.Null):
        found = scalar(node.this, scope).is_null()
    else:
        one, other = read_texts([scalar(part, scope) for part in sides], scope.schema)
        found = (one == other).coalesce(False) | (one.is_null() & other.is_null())
    return found if isinstance(node, exp.NullSafeEQ) else ~found


def _nullif(node: exp.Expression, scope: Scope) -> Expression:
    """Missing where the two are the same; where the other one is missing they are not."""
    value = scalar(node.this, scope)
    one, other = read_texts([value, scalar(node.expression, scope)], scope.schema)
    return Case((((one != other).coalesce(True), value),), None)


def _function(node: exp.Expression, scope: Scope) -> Expression:
    name, arguments = str(node.this).upper(), node.expressions
    if name == "CLAMP" and len(arguments) == 3:
        number = _as_number(scalar(arguments[0], scope), scope)
        return number.clamp(constant(arguments[1]), constant(arguments[2]))
    if name == "CLAMP" and arguments:
        raise Refused("tables.sql_clamp", text=name_of(node), inner=name_of(arguments[0]))
    if name == "BIN" and len(arguments) in {2, 3}:
        return scalar(arguments[0], scope).bin(*(constant(item) for item in arguments[1:]))
    raise Refused("tables.sql_no_function", text=name_of(node), function=name)


def _least(node: exp.Expression, scope: Scope) -> Expression:
    """LEAST(GREATEST(x, low), high) and GREATEST(LEAST(x, high), low) are CLAMP(x, low, high)."""
    inner, wanted = node.this, exp.Greatest if isinstance(node, exp.Least) else exp.Least
    if isinstance(inner, wanted) and len(inner.expressions) == 1 and len(node.expressions) == 1:
        return scalar(inner.this, scope).clamp(*between(node))
    if (parts := split_ends(node)) is not None:
        value, end = read_texts([scalar(parts[0], scope), lit(parts[1])], scope.schema)
        return Case(((value > end if isinstance(node, exp.Least) else value < end, end),), value)
    sides = [node.this, *node.expressions]
    if len(sides) != 2 or any(isinstance(side, exp.Least | exp.Greatest) for side in sides):
        raise Refused("tables.sql_clamp_instead", text=name_of(node), inner=name_of(innermost(node)))
    one, other = read_texts([scalar(side, scope) for side in sides], scope.schema)
    first, second = (one <= other, other < one) if isinstance(node, exp.Least) else (one >= other, other > one)
    return Case(((first, one), (second, other)), None)


_SPECIAL: dict[type[exp.Expression], Callable[[exp.Expression, Scope], Expression]] = {
    exp.Column: _column,
    exp.Literal: _constant,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.In: _in,
    exp.Is: _is,
    exp.Between: _between,
    exp.Coalesce: _coalesce,
    exp.Concat: _concat,
    exp.Round: _round,
    exp.Extract: _extract,
    exp.DateDiff: _difference,
    exp.TimeToStr: _write_date,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.Nullif: _nullif,
    **dict.fromkeys((exp.Mod, exp.IntDiv), _divide_whole),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _is_same),
    exp.Pow: lambda node, scope: read_power(node, lambda part: scalar(part, scope)),
    **dict.fromkeys((exp.Ln, exp.Log), lambda node, scope: read_logarithm(node, lambda part: scalar(part, scope))),
    exp.Anonymous: _function,
    exp.Least: _least,
    exp.Greatest: _least,
    **{kind: partial(_of_text, function) for kind, function in TEXT_FUNCTIONS.items()},
}
