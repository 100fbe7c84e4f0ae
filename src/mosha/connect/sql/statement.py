"""The parts of a statement: selects, named parts, and the one row that each row of the data contributes.

Public keys stand beside the data: rows of groups that nobody asked for are dropped before anything is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial, reduce
from typing import Any

from sqlglot import exp

from mosha.connect.language.expression import Column, Expression
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Persons, Rows, Value
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.person_steps import Pick
from mosha.connect.plan.relation import Compute, Scan, Where
from mosha.connect.sql.dialect import Dialect, Listed, Node, binary, call, column
from mosha.connect.sql.expressions import Scope
from mosha.connect.sql.rows import fresh_names, open_rows

__all__ = [
    "FEW",
    "Query",
    "alias",
    "all_of",
    "any_of",
    "can_read_again",
    "contributions",
    "copies",
    "is_plain_count",
    "key_columns",
    "restrict_keys",
    "select",
    "span_of",
    "table",
    "with_parts",
]

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


@dataclass(frozen=True)
class Query:
    """A statement whose columns are the keys k0, k1, ... and then the sums s0, s1, ... called `names`."""

    statement: exp.Select
    names: tuple[str, ...]


def alias(node: Node, name: str) -> Node:
    return exp.alias_(node, name, quoted=True, copy=False)


def copies(nodes: Sequence[Node]) -> list[Node]:
    return [node.copy() for node in nodes]


def select(
    columns: Sequence[Node], source: Node, *, group: Sequence[Node] = (), where: Node | None = None
) -> exp.Select:
    query = exp.Select(expressions=list(columns))
    query.set("from_", exp.From(this=source))
    if where is not None:
        query.set("where", exp.Where(this=where))
    if group:
        query.set("group", exp.Group(expressions=list(group)))
    return query


def table(name: str) -> exp.Table:
    return exp.Table(this=exp.Identifier(this=name, quoted=True))


def with_parts(query: exp.Select, *, rows_again: bool = False, **parts: exp.Select) -> exp.Select:
    """The query with named parts before it; with `rows_again` the part `rows` is read anew wherever it is used."""
    named = [
        exp.CTE(this=part, alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True)))
        for name, part in parts.items()
    ]
    for part in named:
        if rows_again and part.alias == "rows":
            part.set("materialized", False)
    query.set("with_", exp.With(expressions=named))
    return query


def can_read_again(question: Question, dialect: Dialect) -> bool:
    """Whether a statement had better read its rows twice than keep them: to count each person's, it needs no values.

    Only of one stored table, row by row: views may be dear or give other rows, lines of text are taken apart anew.
    """
    relation = question.relation
    while isinstance(relation, (Where, Compute, Pick)):
        relation = relation.parent
    return dialect.keeps_parts and isinstance(relation, Scan) and relation.source.is_stored


def all_of(tests: Sequence[Node]) -> Node:
    return reduce(partial(binary, exp.And), tests)


def any_of(tests: Sequence[Node]) -> Node:
    return reduce(partial(binary, exp.Or), tests)


def key_columns(question: Question) -> list[Node]:
    return [column(f"k{i}") for i in range(len(question.keys))]


def is_plain_count(value: Value) -> bool:
    """Whether a value is 1 in every row."""
    return isinstance(value, Rows) and value.of is None


def contributions(
    question: Question,
    values: Sequence[Value],
    dialect: Dialect,
    *,
    extra: Sequence[Expression] = (),
    raw: Sequence[Expression] = (),
    all_rows: bool = False,
) -> exp.Select:
    """SELECT person AS p, keys AS k0, ..., values AS v0, ..., extra AS x0, ...: one row for each row that counts.

    Rows whose person is NULL belong to nobody and are dropped, with `all_rows` by whoever reads them; plain counts need
    no column. Doubles in `raw` come as r0, ... and may be anything: who asks for them takes care of NaN and of what is
    too large.
    """
    names = fresh_names(question.relation)
    scope = open_rows(question.relation, dialect, names)
    person = None
    if question.relation.person is not None:
        person = scope.once(scope.value(Column(question.relation.person)).node)
        if not all_rows:
            scope.predicates.append(exp.Not(this=binary(exp.Is, person.copy(), exp.Null())))
        if question.part is not None:
            scope.predicates.append(dialect.in_slice(person.copy(), *question.part))
    keys = [_key(scope, expression) for _, expression in question.keys]
    if question.only is not None and keys:
        keys = restrict_keys(question, scope, keys, names)
    columns = [alias(key, f"k{i}") for i, key in enumerate(keys)]
    for i, value in enumerate(values):
        if not (is_plain_count(value) or isinstance(value, Persons)):
            columns.append(alias(scope.value(value.expression).node, f"v{i}"))
    columns += [alias(_key(scope, expression), f"x{i}") for i, expression in enumerate(extra)]
    columns += [alias(scope.compile_raw(expression), f"r{i}") for i, expression in enumerate(raw)]
    if person is not None:
        columns.insert(0, alias(person, "p"))
    return scope.dress(exp.Select(expressions=columns or [alias(exp.Literal.number(1), "p")]))


def _key(scope: Scope, expression: Expression) -> Node:
    """A key; a real one without -0.0, which equals 0.0 and yet hashes differently on some engines."""
    typed = scope.value(expression)
    return scope.flush(typed.node) if typed.type is Type.REAL else typed.node
