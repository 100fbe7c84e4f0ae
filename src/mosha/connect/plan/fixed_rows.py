"""Relations whose number of rows no replaced row changes, and columns of them that are never missing."""

from __future__ import annotations

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Column, Expression, Literal
from mosha.connect.language.operator import Operator
from mosha.connect.plan.relation import Compute, PublicJoin, Relation, Scan

__all__ = ["is_never_missing", "keeps_rows"]


def keeps_rows(relation: Relation) -> bool:
    """Whether every row of one private table is exactly one row of the relation, whatever it holds.

    Guarantee:
        A table as it is has this where a row is one row whatever it holds (`Source.keeps_every_row`): a line of a CSV
        file with too many cells is none, and what a view or a lazy frame leaves out nobody knows. A computed column
        neither adds nor drops a row; a left join with a public table cut to one row for each key gives each row exactly
        once (`PublicJoin`). So tables of equally many rows give equally many. All other steps are taken to lose it.

    >>> from mosha.connect import col, private, source
    >>> visits = private(source({"days": [3, None]}))
    >>> keeps_rows(visits.compute(weeks=col("days") / 7)), keeps_rows(visits.where(col("days") > 2))
    (True, False)
    """
    if isinstance(relation, Scan):
        return relation.private and relation.source.keeps_every_row
    if isinstance(relation, Compute):
        return keeps_rows(relation.parent)
    return (
        isinstance(relation, PublicJoin)
        and relation.how == "left"
        and relation.at_most == 1
        and keeps_rows(relation.left)
    )


def is_never_missing(expression: Expression, relation: Relation) -> bool:
    """Whether an expression has a value in every row, as far as its text alone tells.

    >>> from mosha.connect import col, private, source
    >>> visits = private(source({"days": [3, None]})).compute(known=col("days").coalesce(0))
    >>> is_never_missing(col("known"), visits), is_never_missing(col("days"), visits)
    (True, False)
    """
    if isinstance(expression, Literal):
        return expression.value is not None
    if isinstance(expression, Column):
        return _is_filled(expression.name, relation)
    if isinstance(expression, Case):
        values = [value for _, value in expression.branches] + [expression.rest]
        return all(value is not None and is_never_missing(value, relation) for value in values)
    return isinstance(expression, Call) and _is_filled_by_call(expression, relation)


def _is_filled_by_call(call: Call, relation: Relation) -> bool:
    if call.operator is Operator.COALESCE:
        return any(is_never_missing(part, relation) for part in call.arguments)
    if call.operator is Operator.CLAMP:
        return is_never_missing(call.arguments[0], relation)
    return call.operator is Operator.IS_NULL


def _is_filled(name: str, relation: Relation) -> bool:
    """Whether a column was computed so that it is never missing."""
    if isinstance(relation, Compute):
        if relation.name == name:
            return is_never_missing(relation.expression, relation.parent)
        return _is_filled(name, relation.parent)
    return isinstance(relation, PublicJoin) and name in relation.left.schema and _is_filled(name, relation.left)
