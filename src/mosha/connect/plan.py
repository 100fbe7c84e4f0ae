"""Questions in SQL: bounding and exact sums, in statements that run where the data live."""

from __future__ import annotations

from sqlglot import exp

from mosha.connect.aggregation import Aggregation, Distinct, Norms, Question
from mosha.connect.bounding import NormBound, Truncate, Unbounded
from mosha.connect.dialect import Dialect, Node, column
from mosha.connect.norms import group_norms, norm_histogram, row_norms
from mosha.connect.rows import subquery
from mosha.connect.statement import Query, alias, contributions, copies, is_plain_count, key_columns, select
from mosha.connect.truncation import distinct, truncated
from mosha.connect.value import Persons, Value

__all__ = ["queries", "sql_of"]


def queries(question: Question, dialect: Dialect) -> list[Query]:
    """The statements that answer a question: more than one only where rows and persons are bounded side by side."""
    if isinstance(question, Distinct):
        return [distinct(question, dialect)]
    if isinstance(question, Norms):
        return [norm_histogram(question, dialect)]
    assert isinstance(question, Aggregation)
    bound = question.bound
    if isinstance(bound, Unbounded):
        return [_unbounded(question, dialect)]
    if isinstance(bound, Truncate):
        return [truncated(question, bound, dialect)]
    assert isinstance(bound, NormBound)
    parts: tuple[list[tuple[str, Value]], list[tuple[str, Value]]] = ([], [])
    for name, value in question.values:
        by_row = bound.order == 1 and not isinstance(value, Persons)
        parts[0 if by_row else 1].append((name, value))
    found = [row_norms(question, parts[0], bound, dialect)] if parts[0] else []
    return found + ([group_norms(question, parts[1], bound, dialect)] if parts[1] else [])


def sql_of(question: Question, dialect: Dialect) -> str:
    """The statements as text, for people."""
    return ";\n\n".join(dialect.sql(query.statement, pretty=True) for query in queries(question, dialect))


def _unbounded(question: Aggregation, dialect: Dialect) -> Query:
    values = [value for _, value in question.values]
    rows = contributions(question, values, dialect)
    keys = key_columns(question)
    sums: list[Node] = []
    for i, value in enumerate(values):
        plain = is_plain_count(value)
        node = exp.Count(this=exp.Star()) if plain else dialect.sum(column(f"v{i}"), value.magnitude)
        sums.append(alias(node, f"s{i}"))
    query = select([*keys, *sums], subquery(rows, "rows"), group=copies(keys))
    return Query(query, tuple(name for name, _ in question.values))
