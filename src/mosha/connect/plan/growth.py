"""How much text one row can make an engine hold: so much that every engine takes it, however a plan is written.

Guarantee:
    A text has at most 2**18 bytes, and one concatenation makes at most 8 times that before it is cut. A question
    holds at most MOST_TEXTS operators that make text, so what one row adds to an engine's memory is bounded by a
    public number (1 GB at the very most, and 128 MB of finished texts) and not by what somebody wrote into the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Expression, Operator
from mosha.connect.plan.person_steps import Summary
from mosha.connect.plan.relation import Compute, Relation, Where
from mosha.core.errors import DataError

__all__ = ["MOST_TEXTS", "check_growth", "texts_in"]

MOST_TEXTS = 512
_MAKERS = frozenset(
    {
        Operator.LOWER,
        Operator.UPPER,
        Operator.TRIM,
        Operator.SUBSTRING,
        Operator.CONCAT,
        Operator.LIKE,
        Operator.REPLACE,
    }
)


def texts_in(expression: Expression) -> int:
    """How many operators of an expression make a text (LIKE does where the case of letters does not count)."""
    if isinstance(expression, Case):
        parts = [part for branch in expression.branches for part in branch]
        return sum(map(texts_in, [*parts, expression.rest] if expression.rest is not None else parts))
    if isinstance(expression, Call):
        return (expression.operator in _MAKERS) + sum(map(texts_in, expression.arguments))
    return 0


def _expressions(relation: Relation) -> Iterator[Expression]:
    """Everything that the steps of a relation compute."""
    waiting = [relation]
    while waiting:
        step = waiting.pop()
        if isinstance(step, Where):
            yield step.predicate
        elif isinstance(step, Compute):
            yield step.expression
        elif isinstance(step, Summary):
            yield from (asked.of for asked in step.columns.values() if asked.of is not None)
        waiting += [getattr(step, name) for name in ("parent", "left", "right") if hasattr(step, name)]


def check_growth(relation: Relation, more: Iterable[Expression]) -> None:
    """Refuse a question that makes so many texts of each row that one row could fill the memory."""
    if sum(map(texts_in, [*_expressions(relation), *more])) > MOST_TEXTS:
        raise DataError("connect.too_many_texts", most=MOST_TEXTS, spent="nothing")
