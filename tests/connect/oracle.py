"""What expressions and questions mean, in plain Python: the engines are compared with this, never with each other."""

import calendar
import math
import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from mosha.connect import Column, Literal, Operator, Schema, Type, type_of
from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Expression

LARGEST, TINY = 2.0**500, 2.0**-500
WHOLE = 2.0**53
LONGEST = 2**18


def scanned(value: Any, kind: Any) -> Any:
    """A cell of the data as the language sees it."""
    if value is None:
        return None
    if kind is Type.REAL:
        return tame(float(value))
    if kind is Type.INTEGER:
        return value if -(2**63) <= value < 2**63 else None
    return short(value) if kind is Type.TEXT else value


def short(text: Any) -> Any:
    return text if len(text.encode()) <= LONGEST else None


def tame(x: Any) -> Any:
    return x if x is not None and -LARGEST < x < LARGEST else None


def flush(x: Any) -> Any:
    return 0.0 if -TINY < x < TINY else x


def evaluate(expression: Expression, row: dict, schema: Schema) -> Any:
    """The value of an expression in a row of scanned cells; None is NULL."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Case):
        return _case(expression, row, schema)
    node: Any = expression
    values = [evaluate(argument, row, schema) for argument in node.arguments]
    kinds = [type_of(argument, schema) for argument in node.arguments]
    return RULES[node.operator](values, kinds, type_of(node, schema), node)


def _case(case: Any, row: Any, schema: Any) -> Any:
    kind = type_of(case, schema)
    for condition, value in case.branches:
        if evaluate(condition, row, schema) is True:
            return coerce(evaluate(value, row, schema), kind)
    return None if case.rest is None else coerce(evaluate(case.rest, row, schema), kind)


def coerce(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if kind is Type.REAL:
        return float(value)
    if kind in {Type.TIMESTAMP, Type.INSTANT} and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def strict(function: Any) -> Any:
    """NULL if any argument is."""

    def rule(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
        if any(value is None for value in values):
            return None
        return function(values, kinds, result, expression)

    return rule


def narrow(n: Any) -> Any:
    return n if -(2**63) <= n < 2**63 else None


def _arithmetic(integers: Any, reals: Any) -> Any:
    def rule(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
        if result is Type.INTEGER:
            return narrow(integers(*values))
        return tame(reals(*map(float, values)))

    return strict(rule)


def _product(x: Any, y: Any) -> Any:
    return flush(x) * flush(y)


def _quotient(x: Any, y: Any) -> Any:
    return None if flush(y) == 0 else flush(x) / flush(y)


def _whole(function: Any) -> Any:
    def rule(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
        x = values[0]
        if kinds[0] is Type.INTEGER:
            return x
        return function(x) if -WHOLE < x < WHOLE else None

    return strict(rule)


def nearest(x: Any) -> Any:
    """Halves away from zero, by exact fractions."""
    whole = math.floor(abs(Fraction(x)) + Fraction(1, 2))
    return whole if x >= 0 else -whole


def _round(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    x, (digits, *bound) = values[0], expression.options
    if result is Type.INTEGER:
        if kinds[0] is Type.INTEGER:
            return x
        return nearest(x) if -WHOLE < x < WHOLE else None
    x, power = float(x), 10.0 ** abs(digits)
    scaled = tame(_product(x, power) if digits >= 0 else _quotient(x, power))
    if scaled is not None and abs(scaled) < WHOLE / 2:
        near = float(nearest(scaled))
        x = tame(_quotient(near, power) if digits >= 0 else _product(near, power))
    return x if not bound or abs(x) < bound[0] else None


def shorten(x: float) -> float:
    """To 40 of 53 bits, halves to even: what engines keep of a function that IEEE 754 does not round in one way."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(fraction * 2.0**40), exponent - 40)


def _logarithm(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    if values[0] <= 0:
        return None
    return shorten(math.log(float(values[0])) / (math.log(expression.options[0]) if expression.options else 1.0))


def _within_exponents(size: float, compute: Any) -> Any:
    return 0.0 if size <= -346 else None if size >= 346 else shorten(compute())


def _power(values: Any, *_: Any) -> Any:
    x, y = map(float, values)
    if x <= 0:
        return None if x < 0 or y < 0 else float(y == 0)
    size = tame(_product(y, math.log(x)))
    return None if size is None else _within_exponents(size, lambda: x**y)


def _clamp(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    x, low, high = (coerce(value, result) for value in values)
    return min(max(x, low), high)


def _bin(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    if result is Type.INTEGER:
        x, width, origin = values
        return narrow(x - (x - origin) % width)
    x, width, origin = map(float, values)
    ratio = tame(_quotient(tame(x - origin), width)) if tame(x - origin) is not None else None
    if ratio is None or not -WHOLE < ratio < WHOLE:
        return None
    step = tame(_product(float(math.floor(ratio)), width))
    return None if step is None else tame(step + origin)


def grid(x: Any, low: Any, high: Any, exponent: Any, center: Any = 0) -> Any:
    """The same by exact fractions, except for the one rounding of the sum."""
    x = min(max(float(x), low), high)
    scaled = float(Fraction(x) * Fraction(2) ** exponent + Fraction(1, 2)) if x else 0.5
    return math.floor(scaled) - center


def _compare(test: Any) -> Any:
    def rule(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
        if Type.REAL in kinds:
            values = [float(value) for value in values]
        elif Type.TIMESTAMP in kinds:
            values = [coerce(value, Type.TIMESTAMP) for value in values]
        return test(*values)

    return strict(rule)


def _and(values: Any, *_: Any) -> Any:
    return False if False in values else None if None in values else True


def _or(values: Any, *_: Any) -> Any:
    return True if True in values else None if None in values else False


def _in(values: Any, kinds: Any, result: Any, expression: Any) -> bool:
    if Type.REAL in kinds:
        values = [float(value) for value in values]
    return values[0] in values[1:]


def _coalesce(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    return next((coerce(value, result) for value in values if value is not None), None)


def _like(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    """Segment after segment, each where it first fits: Python's own .* would try every way."""
    folded = len(expression.options) > 1 and expression.options[1]
    lower = (lambda c: c.lower() if len(c.lower()) == 1 else c) if folded else (lambda c: c)
    text = "".join(map(lower, values[0])) if folded else values[0]
    segments, characters = [""], iter(expression.options[0])
    lengths = [0]
    for character in characters:
        if character == "%":
            segments.append("")
            lengths.append(0)
            continue
        plain = next(characters) if character == "\\" else character
        segments[-1] += "(?s:.)" if character == "_" else re.escape(lower(plain))
        lengths[-1] += 1
    if len(segments) == 1:
        return re.fullmatch(segments[0], text) is not None
    if not re.match(segments[0], text):
        return False
    at = lengths[0]
    for segment in segments[1:-1]:
        found = re.compile(segment).search(text, at)
        if found is None:
            return False
        at = found.end()
    return len(text) - lengths[-1] >= at and bool(re.fullmatch(segments[-1], text[len(text) - lengths[-1] :]))


def _letters(change: Any) -> Any:
    return strict(lambda values, *_: re.sub("[A-Za-z]+", lambda match: change(match[0]), values[0]))


def _truncated(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    moment, unit = values[0], expression.options[0]
    day = date(moment.year, moment.month, moment.day)
    if unit in {"hour", "minute"}:
        return moment.replace(second=0, microsecond=0, **({"minute": 0} if unit == "hour" else {}))
    first = {
        "year": lambda: day.replace(month=1, day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "month": lambda: day.replace(day=1),
        "week": lambda: day - timedelta(days=day.weekday()),
        "day": lambda: day,
    }[unit]()
    return first if result is Type.DATE else datetime(first.year, first.month, first.day)


def _days(values: Any, *_: Any) -> Any:
    later, earlier = (date(value.year, value.month, value.day) for value in values)
    return (later - earlier).days


def _shift(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    moment, (amount, unit) = values[0], expression.options
    try:
        if unit == "day":
            return moment + timedelta(days=amount)
        year, month = divmod(moment.year * 12 + moment.month - 1 + amount, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
    except (OverflowError, ValueError):
        return None


def _cast(values: Any, kinds: Any, result: Any, expression: Any) -> Any:
    value, kind = values[0], kinds[0]
    if kind is result:
        return value
    if kind is Type.REAL:
        return nearest(value) if -(2.0**52) < value < 2.0**52 else None
    if kind is Type.TEXT:
        return _read(value, result)
    if result is Type.TEXT:
        return {True: "true", False: "false"}[value] if kind is Type.BOOLEAN else str(value)
    if result is Type.DATE:
        return value.date()
    return coerce(int(value) if kind is Type.BOOLEAN else value, result)


def _read(value: Any, kind: Any) -> Any:
    if kind is Type.INTEGER:
        return int(value) if re.fullmatch("[+-]?[0-9]{1,18}", value) else None
    if kind is Type.REAL:
        form = r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"
        return float(value) if re.fullmatch(form, value) else None
    form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    if kind is Type.TIMESTAMP:
        form += r"([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?)?"
    if not re.fullmatch(form, value):
        return None
    try:
        day = date.fromisoformat(value[:10])
        clock = datetime.fromisoformat(value.rstrip("Z")) if kind is Type.TIMESTAMP else None
    except ValueError:
        return None
    return clock or day


STRIPS: Any = {(): str.strip, ("leading",): str.lstrip, ("trailing",): str.rstrip}
RULES = {
    Operator.ADD: _arithmetic(lambda a, b: a + b, lambda x, y: x + y),
    Operator.SUBTRACT: _arithmetic(lambda a, b: a - b, lambda x, y: x - y),
    Operator.MULTIPLY: _arithmetic(lambda a, b: a * b, _product),
    Operator.DIVIDE: strict(lambda values, *_: tame(_quotient(*map(float, values)))),
    Operator.NEGATE: _arithmetic(lambda a: -a, lambda x: -x),
    Operator.ABSOLUTE: _arithmetic(abs, abs),
    Operator.FLOOR: _whole(math.floor),
    Operator.CEILING: _whole(math.ceil),
    Operator.ROUND: strict(_round),
    Operator.SQUARE_ROOT: strict(lambda values, *_: math.sqrt(float(values[0])) if values[0] >= 0 else None),
    Operator.LOGARITHM: strict(_logarithm),
    Operator.EXPONENTIAL: strict(lambda values, *_: _within_exponents(values[0], lambda: math.exp(values[0]))),
    Operator.POWER: strict(_power),
    Operator.CLAMP: strict(_clamp),
    Operator.BIN: strict(_bin),
    Operator.GRID: strict(lambda values, _, __, expression: grid(values[0], *expression.options)),
    Operator.EQUAL: _compare(lambda a, b: a == b),
    Operator.NOT_EQUAL: _compare(lambda a, b: a != b),
    Operator.LESS: _compare(lambda a, b: a < b),
    Operator.LESS_EQUAL: _compare(lambda a, b: a <= b),
    Operator.GREATER: _compare(lambda a, b: a > b),
    Operator.GREATER_EQUAL: _compare(lambda a, b: a >= b),
    Operator.AND: _and,
    Operator.OR: _or,
    Operator.NOT: strict(lambda values, *_: not values[0]),
    Operator.IS_NULL: lambda values, *_: values[0] is None,
    Operator.IN: strict(_in),
    Operator.COALESCE: _coalesce,
    Operator.LOWER: _letters(str.lower),
    Operator.UPPER: _letters(str.upper),
    Operator.TRIM: strict(lambda values, _, __, e: STRIPS[e.options](values[0], " ")),
    Operator.LENGTH: strict(lambda values, *_: len(values[0])),
    Operator.SUBSTRING: strict(lambda values, _, __, e: values[0][e.options[0] - 1 :][: e.options[1]]),
    Operator.TAIL: strict(lambda values, _, __, e: values[0][max(0, len(values[0]) - e.options[0]) :]),
    Operator.SPLIT: strict(lambda values, _, __, e: [*values[0].split(e.options[0]), *[""] * 1000][e.options[1] - 1]),
    Operator.CONCAT: strict(lambda values, *_: short("".join(values))),
    Operator.POSITION: strict(lambda values, _, __, e: values[0].find(e.options[0]) + 1),
    Operator.REPLACE: strict(lambda values, _, __, e: short(values[0].replace(*e.options))),
    Operator.LIKE: strict(_like),
    Operator.YEAR: strict(lambda values, *_: values[0].year),
    Operator.QUARTER: strict(lambda values, *_: (values[0].month + 2) // 3),
    Operator.MONTH: strict(lambda values, *_: values[0].month),
    Operator.DAY: strict(lambda values, *_: values[0].day),
    Operator.HOUR: strict(lambda values, *_: values[0].hour),
    Operator.MINUTE: strict(lambda values, *_: values[0].minute),
    Operator.WEEKDAY: strict(lambda values, *_: values[0].isoweekday()),
    Operator.TRUNCATE_DATE: strict(_truncated),
    Operator.DAYS_BETWEEN: strict(_days),
    Operator.SHIFT_DATE: strict(_shift),
    Operator.CAST: strict(_cast),
}
