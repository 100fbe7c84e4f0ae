"""What SELECT, HAVING, ORDER BY and LIMIT make of noisy numbers: free, and with error bars that stay honest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.core.errors import InvalidParameter
from mosha.tables.answer import Answer
from mosha.tables.functions.powers import MOST_POWER, find_exponent
from mosha.tables.functions.result_functions import (
    FUNCTIONS,
    Handler,
    Interval,
    check_alike,
    exactly,
    list_choices,
    raise_result,
)
from mosha.tables.sql.scalar import Refused, constant, decimal_of, name_of

__all__ = [
    "TYPICAL", "Interval", "add_numbers", "check", "count_limit", "evaluate", "find_output", "find_position",
    "half_width", "rehearse", "settle", "spread",
]  # fmt: skip


def spread(value: Any, bar: Any) -> Interval:
    """A number and the ends of its error bar; what is missing has none."""
    return exactly(None) if value is None else (value, value - bar, value + bar)


def _corners(operation: Callable[[float, float], float], a: Interval, b: Interval) -> Interval:
    if a[0] is None or b[0] is None:
        return exactly(None)
    found = [operation(x, y) for x in a[1:] for y in b[1:]]
    return operation(a[0], b[0]), min(found), max(found)


def _divide(a: Interval, b: Interval) -> Interval:
    """An error bar that reaches zero in the denominator has no end."""
    if a[0] is None or b[0] is None or b[0] == 0:
        return exactly(None)
    if b[1] <= 0 <= b[2] and b[1] != b[2]:
        return a[0] / b[0], -math.inf, math.inf
    return _corners(lambda x, y: x / y if y else math.inf, a, b)


_ARITHMETIC: dict[type[exp.Expression], Callable[[Interval, Interval], Interval]] = {
    exp.Add: lambda a, b: _corners(lambda x, y: x + y, a, b),
    exp.Sub: lambda a, b: _corners(lambda x, y: x - y, a, b),
    exp.Mul: lambda a, b: _corners(lambda x, y: x * y, a, b),
    exp.Div: _divide,
}

_CASTS = dict.fromkeys(("DOUBLE", "FLOAT", "REAL", "DECIMAL"), False) | dict.fromkeys(
    ("INT", "BIGINT", "SMALLINT"), True
)
"""The types that a result may be cast to, and whether they are whole."""

_COMPARISONS: dict[type[exp.Expression], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
}


def half_width(interval: Interval) -> float:
    """How far an error bar reaches to its wider side; NaN for what is no number."""
    value, low, high = interval
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(max(high - value, value - low))


def evaluate(node: exp.Expression, known: Mapping[str, Interval]) -> Interval:
    """The value of an output expression in one row, with the ends of its error bar.

    Args:
        node: SQL over aggregates and keys.
        known: what each aggregate, key and alias is in this row, by its SQL text.
    """
    text = name_of(node)
    if text in known:
        return known[text]
    handler = _KINDS.get(type(node))
    if handler is None:
        raise Refused("tables.sql_on_results", text=text)
    return handler(node, known)


def settle(node: exp.Expression, known: Mapping[str, Interval]) -> Interval:
    """The value in one row of an answer, which is paid for: what cannot be worked out is missing, no more is lost."""
    try:
        return evaluate(node, known)
    except (Refused, TypeError, ValueError, ArithmeticError):
        return exactly(None)


Known = Mapping[str, Interval]


def _arithmetic(node: exp.Expression, known: Known) -> Interval:
    return _ARITHMETIC[type(node)](evaluate(node.this, known), evaluate(node.expression, known))


def _comparison(node: exp.Expression, known: Known) -> Interval:
    a, b = evaluate(node.this, known)[0], evaluate(node.expression, known)[0]
    return exactly(None if a is None or b is None else _COMPARISONS[type(node)](a, b))


def _negative(node: exp.Expression, known: Known) -> Interval:
    value, low, high = evaluate(node.this, known)
    return (None, None, None) if value is None else (-value, -high, -low)


def _not(node: exp.Expression, known: Known) -> Interval:
    value = evaluate(node.this, known)[0]
    return exactly(None if value is None else not value)


def _connective(node: exp.Expression, known: Known) -> Interval:
    sides = [evaluate(side, known)[0] for side in (node.this, node.expression)]
    return exactly(_connect(sides, decisive=isinstance(node, exp.Or)))


def _connect(sides: Iterable[bool | None], *, decisive: bool) -> bool | None:
    """AND and OR of what may be unknown: one side that decides is enough."""
    found = [None if side is None else bool(side) for side in sides]
    return decisive if decisive in found else None if None in found else not decisive


def _round(node: exp.Expression, known: Known) -> Interval:
    digits = node.args.get("decimals")
    places = 0 if digits is None else constant(digits)
    value, low, high = evaluate(node.this, known)
    half = 0.5 * 10.0**-places
    return (None, None, None) if value is None else (_to_digits(value, places), low - half, high + half)


def _to_digits(value: float, places: int) -> float:
    """The nearest number of so many digits, halves away from zero, as for rows."""
    scaled = value * 10.0**places if places >= 0 else value / 10.0**-places
    if not math.isfinite(scaled) or abs(scaled) >= 2.0**52:
        return value
    return _nearest(scaled) / 10.0**places if places > 0 else _nearest(scaled) * 10.0**-places


def _power(node: exp.Expression, known: Known) -> Interval:
    """A small whole power of a result is a product, whose bar holds whatever the signs are."""
    exponent = find_exponent(node)
    if not isinstance(exponent, int) or not 1 <= exponent <= MOST_POWER:
        return raise_result(evaluate(node.this, known), evaluate(node.expression, known))
    value = found = evaluate(node.this, known)
    for _ in range(exponent - 1):
        found = _ARITHMETIC[exp.Mul](found, value)
    return found


def _monotone(function: Callable[[float], float]) -> Callable[[exp.Expression, Known], Interval]:
    def handler(node: exp.Expression, known: Known) -> Interval:
        value, low, high = evaluate(node.this, known)
        return (None, None, None) if value is None else (function(value), function(low), function(high))

    return handler


def _round_to_whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    """A bar that has no end keeps none."""
    return lambda value: rounding(value) if math.isfinite(value) else value


def _nearest(value: float) -> int:
    """Halves away from zero; the distance to a whole number is exact."""
    whole = math.floor(abs(value))
    whole += abs(value) - whole >= 0.5
    return whole if value >= 0 else -whole


def _size(node: exp.Expression, known: Known) -> Interval:
    value, low, high = evaluate(node.this, known)
    if value is None:
        return exactly(None)
    return abs(value), 0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def _extreme(choose: Callable[..., object]) -> Callable[[exp.Expression, Known], Interval]:
    """LEAST or GREATEST of what is there."""

    def handler(node: exp.Expression, known: Known) -> Interval:
        found = [evaluate(part, known) for part in (node.this, *node.expressions)]
        there = [part for part in found if part[0] is not None]
        return (
            (choose(p[0] for p in there), choose(p[1] for p in there), choose(p[2] for p in there))
            if there
            else exactly(None)
        )

    return handler


def _coalesce(node: exp.Expression, known: Known) -> Interval:
    found = [evaluate(part, known) for part in (node.this, *node.expressions)]
    return next((part for part in found if part[0] is not None), exactly(None))


def _nullif(node: exp.Expression, known: Known) -> Interval:
    value, other = evaluate(node.this, known), evaluate(node.expression, known)[0]
    return exactly(None) if value[0] == other else value


def _is_moment(node: exp.Expression) -> bool:
    """DATE '2026-11-15' is a constant."""
    return isinstance(node.this, exp.Literal) and bool(node.this.is_string)


def _number(node: exp.Expression, known: Known) -> Interval:
    """CAST to a number: rounded where it becomes a whole one."""
    if _is_moment(node):
        return exactly(constant(node))
    if (sizes := decimal_of(node)) is not None:
        largest = 10.0 ** (sizes[0] - sizes[1])
        found = _monotone(lambda value: _to_digits(value, sizes[1]))(node, known)
        return found if found[0] is not None and abs(found[0]) < largest else exactly(None)
    if not _CASTS[node.args["to"].this.name]:
        return evaluate(node.this, known)
    return _monotone(_round_to_whole(_nearest))(node, known)


def _between(node: exp.Expression, known: Known) -> Interval:
    value, low, high = (evaluate(part, known)[0] for part in (node.this, node.args["low"], node.args["high"]))
    if value is None:
        return exactly(None)
    found = _is_between(value, low, high)
    if node.args.get("symmetric"):
        found = _connect([found, _is_between(value, high, low)], decisive=True)
    return exactly(found)


def _is_between(value: Any, low: Any, high: Any) -> bool | None:
    sides = [None if low is None else low <= value, None if high is None else value <= high]
    return _connect(sides, decisive=False)


def _in(node: exp.Expression, known: Known) -> Interval:
    value = evaluate(node.this, known)[0]
    items = [constant(item) for item in node.expressions]
    return exactly(
        None if value is None else _connect([None if i is None else value == i for i in items], decisive=True)
    )


def _constant(node: exp.Expression, known: Known) -> Interval:
    del known
    return exactly(constant(node))


def _column(node: exp.Expression, known: Known) -> Interval:
    del known
    raise Refused("tables.sql_neither_key_nor_aggregate", text=name_of(node))


def _call(function: Handler, node: exp.Expression, known: Known) -> Interval:
    return function(node, known, evaluate)


_KINDS: dict[type[exp.Expression], Callable[[exp.Expression, Known], Interval]] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys((exp.And, exp.Or), _connective),
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), _constant),
    exp.Paren: lambda node, known: evaluate(node.this, known),
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Round: _round,
    exp.Floor: _monotone(_round_to_whole(math.floor)),
    exp.Ceil: _monotone(_round_to_whole(math.ceil)),
    exp.Abs: _size,
    exp.Pow: _power,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Cast: _number,
    exp.Between: _between,
    exp.In: _in,
    exp.Column: _column,
    **{kind: partial(_call, function) for kind, function in FUNCTIONS.items()},
}


TYPICAL: Mapping[Type, Any] = {
    Type.INTEGER: 1,
    Type.REAL: 1.0,
    Type.BOOLEAN: True,
    Type.TEXT: "a",
    Type.DATE: date(2000, 1, 1),
    Type.TIMESTAMP: datetime(2000, 1, 1),  # noqa: DTZ001  (a wall clock)
    Type.INSTANT: datetime(2000, 1, 1, tzinfo=UTC),
}
"""One value of each type, for a rehearsal."""


def rehearse(node: exp.Expression, known: Mapping[str, Interval]) -> None:
    """Refuse an output expression that mixes types, before anything is spent: it is evaluated on made-up values.

    Whichever branch of a CASE they lead to, every one is tried, and all give the same kind of value.
    """
    try:
        evaluate(node, known)
        for case in node.walk(prune=lambda part: name_of(part) in known):
            if not isinstance(case, exp.Case) or name_of(case) in known:
                continue
            for part in list_choices(case):
                evaluate(part, known)
            given = [branch.args["true"] for branch in case.args["ifs"]] + [case.args.get("default") or exp.null()]
            check_alike([evaluate(part, known)[0] for part in given], name_of(case))
    except Refused:
        raise
    except (TypeError, ValueError, ArithmeticError):
        raise Refused("tables.sql_different_types", text=name_of(node)) from None


def check(node: exp.Expression, known: Collection[str]) -> None:
    """Refuse an output expression that could not be evaluated, before anything is spent."""
    if name_of(node) in known:
        return
    if type(node) not in _KINDS or isinstance(node, exp.Column):
        evaluate(node, {})
    if isinstance(node, exp.Cast) and node.args["to"].this.name not in _CASTS and not _is_moment(node):
        raise Refused("tables.sql_cast_of_results", text=name_of(node))
    if isinstance(node, exp.Case):
        for part in list_choices(node):
            check(part, known)
        return
    parts = [node.this, node.args.get("expression"), node.args.get("low"), node.args.get("high")]
    for part in parts + ([] if isinstance(node, exp.In) else node.expressions):
        if isinstance(part, exp.Expression):
            check(part, known)


def find_position(node: exp.Expression, items: list[tuple[str, exp.Expression]]) -> exp.Expression:
    """GROUP BY 1 and ORDER BY 2 name items of SELECT."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = constant(node)
        if not isinstance(place, int) or not 1 <= place <= len(items):
            raise InvalidParameter("tables.sql_column_number", number=str(node.this))
        return items[place - 1][1]
    return node


def find_output(node: exp.Expression, items: list[tuple[str, exp.Expression]]) -> exp.Expression:
    """What ORDER BY names: first a column of the answer, by its place or its name, then any other."""
    if isinstance(node, exp.Column) and not node.table:
        return dict(items).get(node.name, node)
    return find_position(node, items)


def count_limit(select: exp.Query, part: str = "limit") -> int | None:
    """How many rows LIMIT leaves, or OFFSET passes over; None for all."""
    limit = select.args.get(part)
    if limit is None:
        return None
    if isinstance(limit, exp.Fetch):
        raise Refused("tables.sql_fetch", spent="nothing")
    rows = constant(limit.expression)
    if not isinstance(rows, int) or rows < 0:
        raise InvalidParameter("tables.sql_limit")
    return rows


def add_numbers(raw: Answer, numbers: Mapping[str, Answer]) -> Answer:
    """The answer beside numbers that were asked before it: the same ones in every row, each with its own bar."""
    if not numbers:
        return raw
    size = len(raw.rows)

    def fill(answer: Answer, table: Mapping[str, Any]) -> Any:
        [column] = [column for name, column in table.items() if name in answer.columns]
        value = column[0] if len(column) == 1 else None
        return np.full(size, value if isinstance(value, Real) else None, object)

    columns = {name: fill(answer, answer.exact.table) for name, answer in numbers.items()}

    def errors(level: float) -> dict[str, Any]:
        return {**raw.errors(level), **{name: fill(answer, answer.error(level)) for name, answer in numbers.items()}}

    return replace(raw, columns={**raw.columns, **columns}, errors=errors)
