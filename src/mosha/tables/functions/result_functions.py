"""Functions of results: texts made of keys, choices, logarithms. What they read is public or noisy already."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from sqlglot import exp

from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of
from mosha.tables.functions.powers import LARGEST_EXPONENT, list_logarithm

__all__ = [
    "FUNCTIONS", "Handler", "Interval", "check_alike", "exactly", "list_choices", "order_of", "raise_result",
    "sort_rows",
]  # fmt: skip

Interval = tuple[Any, Any, Any]
"""A value, and the ends of its error bar; keys and constants have no width."""
Evaluate = Callable[[exp.Expression, Mapping[str, Interval]], Interval]
Handler = Callable[[exp.Expression, Mapping[str, Interval], Evaluate], Interval]


def exactly(value: object) -> Interval:
    """A value without a width."""
    return value, value, value


def sort_rows(
    rows: Iterable[int], values: Callable[[int], object], *, descending: bool, nulls_first: bool
) -> list[int]:
    """Rows in the order of their values; what is missing stands at one end."""
    kept = list(rows)
    known = [i for i in kept if values(i) is not None]
    known.sort(key=lambda i: order_of(values(i)), reverse=descending)
    missing = [i for i in kept if values(i) is None]
    return missing + known if nulls_first else known + missing


def check_alike(values: Iterable[object], text: str) -> None:
    """Refuse values of several kinds where one is wanted; what is missing is of any kind."""
    if len({order_of(value)[:2] for value in values if value is not None}) > 1:
        raise Refused("tables.sql_different_types", text=text, spent="nothing")


def order_of(value: object) -> tuple[object, ...]:
    """Where a value stands among others, which may be of another kind.

    >>> sorted(["b", 2.5, "a", True], key=order_of)
    [True, 2.5, 'a', 'b']
    """
    kind = "" if isinstance(value, Real) else type(value).__name__
    return kind, getattr(value, "tzinfo", None) is None, value


def _change_letters(change: Callable[[str], str]) -> Callable[[str], str]:
    """ASCII letters alone, as for rows."""
    return lambda text: "".join(change(c) if c.isascii() else c for c in text)


def _of_text(function: Callable[[str], object]) -> Handler:
    def handler(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
        value = evaluate(node.this, known)[0]
        return exactly(None if value is None else function(_text(value, node)))

    return handler


def _text(value: object, node: exp.Expression) -> str:
    if isinstance(value, str):
        return value
    raise Refused("tables.sql_text_of_results", text=name_of(node), spent="nothing")


def _read_whole(node: exp.Expression | None, least: int) -> int:
    value = constant(node) if node is not None else least
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Refused("tables.sql_text_of_results", text=name_of(node), spent="nothing")
    return value


def _substring(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    start, length = _read_whole(node.args.get("start"), 1), node.args.get("length")
    most = None if length is None else start - 1 + _read_whole(length, 0)
    return _of_text(lambda text: text[start - 1 : most])(node, known, evaluate)


def _take_left(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    most = _read_whole(node.expression, 0)
    return _of_text(lambda text: text[:most])(node, known, evaluate)


def _join_texts(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    """Texts and whole numbers one after the other; CONCAT passes over what is missing and || does not, as for rows."""
    if isinstance(node, exp.Concat):
        found = (evaluate(part, known)[0] for part in node.expressions)
        values = [value for value in found if value is not None]
    else:
        values = [evaluate(part, known)[0] for part in (node.this, node.expression)]
    if None in values:
        return exactly(None)
    whole = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    return exactly("".join(_text(value, node) for value in whole))


def list_choices(node: exp.Case) -> Iterator[exp.Expression]:
    """The expressions of a CASE, in the order in which they are looked at."""
    if node.this is not None:
        yield node.this
    for branch in node.args["ifs"]:
        yield from (branch.this, branch.args["true"])
    if node.args.get("default") is not None:
        yield node.args["default"]


def _has_width(node: exp.Expression, known: Mapping[str, Interval]) -> bool:
    """Whether an expression reads a number that has an error bar."""
    read = (known.get(name_of(part), (None, None, None)) for part in node.walk())
    return any(low != high for _, low, high in read)


def _case(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    """The first branch that holds; where a noisy number decides, no bar says what the others would have been."""
    subject = None if node.this is None else evaluate(node.this, known)[0]
    tests = [branch.this for branch in node.args["ifs"]] + ([] if node.this is None else [node.this])
    noisy = any(_has_width(test, known) for test in tests)
    chosen = node.args.get("default")
    for branch in node.args["ifs"]:
        test = evaluate(branch.this, known)[0]
        if test is True if node.this is None else (subject is not None and subject == test):
            chosen = branch.args["true"]
            break
    found = exactly(None) if chosen is None else evaluate(chosen, known)
    return (found[0], math.nan, math.nan) if noisy else found


def _logarithm(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    """Of what noise made zero or less there is none; a bar that reaches zero has no lower end."""
    of, base = list_logarithm(node)
    value, low, high = evaluate(of, known)
    if value is None or value <= 0:
        return exactly(None)
    unit = 1.0 if base is None else math.log(base)
    ends = [math.log(low) / unit if low > 0 else math.copysign(math.inf, -unit), math.log(high) / unit]
    return math.log(value) / unit, min(ends), max(ends)


def raise_result(base: Interval, exponent: Interval) -> Interval:
    """Any power of a result above zero: its logarithm is a product, so that its bar ends at a corner."""
    if base[0] is None or exponent[0] is None or base[0] <= 0:
        return exactly(None)
    size = math.log(base[0]) * exponent[0]
    if size > LARGEST_EXPONENT:
        return exactly(None)
    if base[1] <= 0:
        high = max(base[2] ** min(e, LARGEST_EXPONENT) for e in exponent[1:]) if exponent[1] >= 0 else math.inf
        return math.exp(size), 0.0, high
    sizes = [math.log(b) * e for b in base[1:] for e in exponent[1:]]
    return math.exp(size), math.exp(min(sizes)), math.exp(max(sizes)) if max(sizes) <= LARGEST_EXPONENT else math.inf


def _square_root(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    """Of what is below zero there is none, as for rows; a bar that reaches below zero ends there."""
    value, low, high = evaluate(node.this, known)
    if value is None or value < 0:
        return exactly(None)
    return math.sqrt(value), math.sqrt(max(0.0, low)), math.sqrt(high)


def _exponential(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    value, low, high = evaluate(node.this, known)
    if value is None or value > LARGEST_EXPONENT:
        return exactly(None)
    return math.exp(value), math.exp(low), math.exp(high) if high <= LARGEST_EXPONENT else math.inf


def _is_missing(node: exp.Expression, known: Mapping[str, Interval], evaluate: Evaluate) -> Interval:
    if not isinstance(node.expression, exp.Null):
        raise Refused("tables.sql_on_results", text=name_of(node))
    return exactly(evaluate(node.this, known)[0] is None)


FUNCTIONS: Mapping[type[exp.Expression], Handler] = {
    exp.Upper: _of_text(_change_letters(str.upper)),
    exp.Lower: _of_text(_change_letters(str.lower)),
    exp.Trim: _of_text(lambda text: text.strip(" ")),
    exp.Length: _of_text(len),
    exp.Substring: _substring,
    exp.Left: _take_left,
    exp.Concat: _join_texts,
    exp.DPipe: _join_texts,
    exp.Case: _case,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Sqrt: _square_root,
    exp.Exp: _exponential,
    exp.Is: _is_missing,
    exp.Pi: lambda *_: exactly(math.pi),
}
