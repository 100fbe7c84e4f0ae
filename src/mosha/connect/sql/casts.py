"""Casts in SQL: what a value is as another type, and NULL where it is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.sql.arithmetic import nearest
from mosha.connect.sql.dialect import Node, binary, call, choose, number, text
from mosha.connect.sql.layers import Layers, Typed

if TYPE_CHECKING:
    from mosha.connect.language.expression import Call

__all__ = ["cast_sql", "read_text"]

INTEGER_TEXT = "[+-]?[0-9]{1,18}"
REAL_TEXT = r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?"
DATE_TEXT = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])"
    "|(?:[02468][048]|[13579][26])00)-02-29)"
)
TIMESTAMP_TEXT = DATE_TEXT + r"(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)?"


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
        return choose((valid, scope.dialect.attempt(target, value.copy())))

    return scope.let(node, read)
