"""Functions of text in SQL, each of a value and of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Expression, Operator, lit
from mosha.connect.language.limits import MOST_PLACES
from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of
from mosha.tables.functions.regular_expressions import MOST_PATTERNS, list_patterns, match_any

__all__ = ["TEXT_FUNCTIONS", "TextFunction"]

MOST_FILLED = 32
TextFunction = Callable[[exp.Expression, Expression], Expression]


def _read_text(node: exp.Expression, argument: str, code: str) -> str:
    """A constant of text among the arguments of a function."""
    given = node.args.get(argument)
    value = None if given is None else constant(given)
    if not isinstance(value, str):
        raise Refused(code, text=name_of(node))
    return value


def _like(node: exp.Expression, value: Expression) -> Expression:
    return value.like(_read_text(node, "expression", "tables.sql_like"))


def _ilike(node: exp.Expression, value: Expression) -> Expression:
    return value.ilike(_read_text(node, "expression", "tables.sql_ilike"))


def _starts_with(node: exp.Expression, value: Expression) -> Expression:
    return value.starts_with(_read_text(node, "expression", "tables.sql_starts_with"))


def _ends_with(node: exp.Expression, value: Expression) -> Expression:
    return value.ends_with(_read_text(node, "expression", "tables.sql_like"))


def _contains(node: exp.Expression, value: Expression) -> Expression:
    return value.contains(_read_text(node, "expression", "tables.sql_like"))


def _substring(node: exp.Expression, value: Expression) -> Expression:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        raise Refused("tables.sql_substring", text=name_of(node))
    return value.substring(constant(start), MOST_PLACES if length is None else constant(length))


def _take_left(node: exp.Expression, value: Expression) -> Expression:
    return value.substring(1, constant(node.expression))


def _take_right(node: exp.Expression, value: Expression) -> Expression:
    return Call(Operator.TAIL, (value,), (constant(node.expression),))


def _split(node: exp.Expression, value: Expression) -> Expression:
    sought = _read_text(node, "delimiter", "tables.sql_constant_text")
    return Call(Operator.SPLIT, (value,), (sought, constant(node.args["part_index"])))


def _trim(node: exp.Expression, value: Expression) -> Expression:
    side = str(node.args.get("position") or "").lower()
    if node.expression is not None and constant(node.expression) != " ":
        raise Refused("tables.sql_trim", text=name_of(node), spent="nothing")
    return Call(Operator.TRIM, (value,), (side,) if side in {"leading", "trailing"} else ())


def _pad(node: exp.Expression, value: Expression) -> Expression:
    """A text of a certain length: cut where it is longer, filled up with one character where it is shorter."""
    length, fill = constant(node.expression), node.args.get("fill_pattern")
    filler = " " if fill is None else constant(fill)
    if not isinstance(length, int) or not 1 <= length <= MOST_FILLED or not isinstance(filler, str) or len(filler) != 1:
        raise Refused("tables.sql_pad", text=name_of(node), most=MOST_FILLED, spent="nothing")
    there = value.length()
    short = [(there == known, lit(filler * (length - known))) for known in range(length)]
    missing, kept = Case(tuple(short), lit("")), value.substring(1, length)
    return missing.concat(kept) if node.args.get("is_left") else kept.concat(missing)


def _match(node: exp.Expression, value: Expression) -> Expression:
    """A regular expression that is found in a text, or SIMILAR TO a whole text."""
    said = _read_text(node, "expression", "tables.sql_constant_text")
    flag = node.args.get("flag")
    folded = isinstance(node, exp.RegexpILike) or (flag is not None and constant(flag) == "i")
    found = list_patterns(said, similar=isinstance(node, exp.SimilarTo))
    if found is None or (flag is not None and not folded):
        raise Refused("tables.sql_regular_expression", text=name_of(node), most=MOST_PATTERNS, spent="nothing")
    return match_any(value, found, folded=folded)


def _position(node: exp.Expression, value: Expression) -> Expression:
    return Call(Operator.POSITION, (value,), (_read_text(node, "substr", "tables.sql_constant_text"),))


def _replace(node: exp.Expression, value: Expression) -> Expression:
    pair = (_read_text(node, argument, "tables.sql_constant_text") for argument in ("expression", "replacement"))
    return Call(Operator.REPLACE, (value,), tuple(pair))


TEXT_FUNCTIONS: Mapping[type[exp.Expression], TextFunction] = {
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.StartsWith: _starts_with,
    exp.Contains: _contains,
    exp.EndsWith: _ends_with,
    exp.Substring: _substring,
    exp.Left: _take_left,
    exp.Right: _take_right,
    exp.SplitPart: _split,
    exp.Trim: _trim,
    exp.Pad: _pad,
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike, exp.SimilarTo), _match),
    exp.StrPosition: _position,
    exp.Replace: _replace,
}
