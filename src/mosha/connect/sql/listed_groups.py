"""Public keys beside the data: rows of groups that nobody asked for are dropped before anything is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.sql.dialect import Listed, Node, binary, call, column
from mosha.connect.sql.expressions import Scope

__all__ = ["FEW", "restrict_keys", "span_of"]

FEW = 16
BLANKS: dict[Type, Any] = {
    Type.INTEGER: 0,
    Type.REAL: 0.0,
    Type.TEXT: "",
    Type.BOOLEAN: False,
    Type.DATE: date(2000, 1, 1),
    Type.TIMESTAMP: datetime(2000, 1, 1),  # noqa: DTZ001  (a wall clock)
    Type.INSTANT: datetime(2000, 1, 1),  # noqa: DTZ001  (UTC)
}
"""Constants that stand for NULL beside a flag that says so."""


def restrict_keys(question: Question, scope: Scope, keys: list[Node], names: Iterator[str]) -> list[Node]:
    """The keys of a scope, after dropping the rows whose keys are not among the public ones."""
    assert question.only is not None
    keys = [scope.once(key) for key in keys]
    if (span := span_of(question)) is not None:
        low, high = (scope.dialect.literal(bound, Type.INTEGER) for bound in span)
        scope.predicates.append(binary(exp.GTE, keys[0].copy(), low))
        scope.predicates.append(binary(exp.LTE, keys[0].copy(), high))
        return keys
    if len(keys) == 1 and len(question.only) <= FEW:
        scope.predicates.append(_among(question, scope, keys[0]))
        return keys
    columns: list[Listed] = []
    tests: list[Node] = []
    for place, (key, kind) in enumerate(zip(keys, question.key_types, strict=True)):
        name, known = next(names), [values[place] for values in question.only]
        if None not in known:
            columns.append(Listed(name, kind, known))
            tests.append(binary(exp.EQ, column(name), key.copy()))
            continue
        blank = BLANKS[kind]
        columns.append(Listed(name, kind, [blank if value is None else value for value in known]))
        columns.append(Listed(next(names), Type.BOOLEAN, [value is None for value in known]))
        missing = binary(exp.Is, key.copy(), exp.Null())
        tests.append(binary(exp.EQ, column(name), call("COALESCE", key.copy(), scope.dialect.literal(blank, kind))))
        tests.append(binary(exp.EQ, column(columns[-1].name), missing))
    condition = tests[0]
    for test in tests[1:]:
        condition = binary(exp.And, condition, test)
    list_keys = scope.dialect.list_values if question.listing is None else question.listing
    scope.seal()
    kept = exp.Select(expressions=[exp.Star()])
    kept.set("from_", exp.From(this=scope.table))
    kept.set("joins", [exp.Join(this=list_keys(columns, next(names)), on=condition, kind="INNER")])
    scope.table = scope.add_alias(kept)
    return keys


def span_of(question: Question) -> tuple[int, int] | None:
    """The least and the largest of public keys that are all whole numbers between the two."""
    if question.key_types != (Type.INTEGER,) or question.only is None or (None,) in question.only:
        return None
    low, high = min(question.only)[0], max(question.only)[0]
    return (low, high) if high - low == len(question.only) - 1 else None


def _among(question: Question, scope: Scope, key: Node) -> Node:
    """One key among a few."""
    assert question.only is not None
    members = [scope.dialect.literal(value, question.key_types[0]) for (value,) in question.only if value is not None]
    tests: list[Node] = [exp.In(this=key.copy(), expressions=members)] if members else []
    if (None,) in question.only:
        tests.append(binary(exp.Is, key.copy(), exp.Null()))
    return tests[0] if len(tests) == 1 else binary(exp.Or, *tests)
