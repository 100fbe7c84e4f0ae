"""Functions of text in SQL, each of a value and of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from mosha.connect.language.expression import Call, Expression, Operator
from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of

__all__ = ["TEXT_FUNCTIONS", "TextFunction"]

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
    if start is None or length is None:
        raise Refused("tables.sql_substring", text=name_of(node))
    return value.substring(constant(start), constant(length))


def _take_left(node: exp.Expression, value: Expression) -> Expression:
    return value.substring(1, constant(node.expression))


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
    exp.StrPosition: _position,
    exp.Replace: _replace,
}
