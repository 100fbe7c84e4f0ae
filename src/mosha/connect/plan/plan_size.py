"""How deep and how large a plan may be: a short text must not keep a computer busy for hours, before or after payment.

Guarantee:
    A plan is at most `DEEPEST` steps deep. Whatever walks through it, as a tree, meets at most `LARGEST_PLAN / STEP`
    steps, and at most `LARGEST_PLAN` operators in them. Both are counted where a step is made, from the counts of what
    is beneath it, and not followed: a step that stands in many places counts in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from mosha.connect.language.expression import Expression
from mosha.core.errors import DataError, InvalidParameter

__all__ = ["DEEPEST", "LARGEST_PLAN", "check_size", "check_step", "list_expressions"]

DEEPEST = 128
LARGEST_PLAN = 2**14
LARGEST_QUESTION = 2 * LARGEST_PLAN
STEP = 16  # as many operators as a step takes time


def list_expressions(step: Any) -> Iterator[Expression]:
    """What a step, or an aggregate, computes itself: expressions among its fields, or in what they hold."""
    for field in fields(step):
        value = getattr(step, field.name)
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        for part in parts:
            if isinstance(part, Expression):
                yield part
            elif isinstance(of := getattr(part, "of", None), Expression):
                yield of


def check_step(step: Any, *beneath: Any) -> None:
    """Refuse a plan that is deeper than programs can follow by calling themselves, or larger than they can write."""
    depth = 1 + max(getattr(below, "depth", 0) for below in beneath)
    if depth > DEEPEST:
        raise InvalidParameter("connect.plan_too_deep", most=DEEPEST, spent="nothing")
    size = STEP + sum(expression.size for expression in list_expressions(step)) + sum(map(_size_of, beneath))
    if size > LARGEST_PLAN:
        raise DataError("connect.plan_too_large", spent="nothing")
    object.__setattr__(step, "depth", depth)
    object.__setattr__(step, "size", size)


def check_size(relation: Any, expressions: Iterable[Expression]) -> None:
    """Refuse a question that is larger, with all that is asked in it, than can be written out."""
    if _size_of(relation) + sum(expression.size for expression in expressions) > LARGEST_QUESTION:
        raise DataError("connect.plan_too_large", spent="nothing")


def _size_of(relation: Any) -> int:
    return getattr(relation, "size", STEP)
