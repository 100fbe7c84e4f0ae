"""Questions in SQL: bounding and exact sums, in statements that run where the data live."""

from __future__ import annotations

from sqlglot import exp

from mosha.connect.language.expression import Expression
from mosha.connect.language.value import Clamped, Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation, Distinct, NearRanks, Norms, Question
from mosha.connect.plan.bounding import NormBound, Truncate, Unbounded
from mosha.connect.sql.dialect import Dialect, Node, column
from mosha.connect.sql.near_ranks import near_ranks
from mosha.connect.sql.norms import group_norms, norm_histogram, row_norms
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import Query, alias, contributions, copies, is_plain_count, key_columns, select
from mosha.connect.sql.truncation import distinct, truncate_rows

__all__ = ["queries", "sql_of"]


def queries(question: Question, dialect: Dialect) -> list[Query]:
    """The statements that answer a question: more than one only where rows and persons are bounded side by side."""
    if isinstance(question, Distinct):
        return [distinct(question, dialect)]
    if isinstance(question, Norms):
        return [norm_histogram(question, dialect)]
    if isinstance(question, NearRanks):
        return [near_ranks(question, dialect)]
    assert isinstance(question, Aggregation)
    bound = question.bound
    if isinstance(bound, Unbounded):
        return [_sum_all_rows(question, dialect)]
    if isinstance(bound, Truncate):
        return [truncate_rows(question, bound, dialect)]
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


def _sum_all_rows(question: Aggregation, dialect: Dialect) -> Query:
    """Every row in full. What is missing counts nothing, so a sum and the number of its known rows share a column."""
    values, keys = [value for _, value in question.values], key_columns(question)
    known = {repr(value.of): value.known for value in values if isinstance(value, Clamped)}
    columns: dict[str, Expression] = {}
    sums: list[Node] = []
    for i, value in enumerate(values):
        counted = isinstance(value, Rows) and (is_plain_count(value) or repr(value.of) in known)
        if counted and is_plain_count(value):
            sums.append(alias(exp.Count(this=exp.Star()), f"s{i}"))
            continue
        if isinstance(value, Rows) and counted:
            expression = known[repr(value.of)]
        else:
            expression = value.known if isinstance(value, Clamped) else value.expression
        columns.setdefault(repr(expression), expression)
        node = column(f"x{list(columns).index(repr(expression))}")
        sums.append(alias(exp.Count(this=node) if counted else dialect.sum(node, value.magnitude), f"s{i}"))
    rows = contributions(question, [], dialect, extra=list(columns.values()))
    query = select([*keys, *sums], subquery(rows, "rows"), group=copies(keys))
    return Query(query, tuple(name for name, _ in question.values))
