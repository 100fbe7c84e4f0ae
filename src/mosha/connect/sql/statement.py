"""The parts of a statement: selects, named parts, and the one row that each row of the data contributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from sqlglot import exp

from mosha.connect.language.expression import Column, Expression
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Persons, Rows, Value
from mosha.connect.plan.aggregation import Question
from mosha.connect.sql.dialect import Dialect, Node, binary, column
from mosha.connect.sql.expressions import Scope
from mosha.connect.sql.listed_groups import restrict_keys
from mosha.connect.sql.rows import fresh_names, open_rows

__all__ = [
    "Query",
    "alias",
    "all_of",
    "any_of",
    "contributions",
    "copies",
    "is_plain_count",
    "key_columns",
    "select",
    "table",
    "with_parts",
]


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


def with_parts(query: exp.Select, **parts: exp.Select) -> exp.Select:
    """The query with named parts before it."""
    named = [
        exp.CTE(this=part, alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True)))
        for name, part in parts.items()
    ]
    query.set("with_", exp.With(expressions=named))
    return query


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
