"""Values of which every row has one at most that is not zero: counts and sums of cases that exclude one another."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Expression, Literal
from mosha.connect.language.operator import Operator
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Clamped, Rows, Value

__all__ = ["are_exclusive"]

MOST_CLAUSES = 64
"""Conditions that fall into more cases than this are taken to exclude nothing."""

_NEGATED = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.GREATER_EQUAL,
    Operator.GREATER: Operator.LESS_EQUAL,
}
_NEGATED |= {after: before for before, after in _NEGATED.items()}
_AS_NEGATION = {Operator.NOT_EQUAL, Operator.LESS_EQUAL, Operator.GREATER_EQUAL}
_MIRRORED = {Operator.LESS: Operator.GREATER, Operator.LESS_EQUAL: Operator.GREATER_EQUAL}
_MIRRORED |= {after: before for before, after in _MIRRORED.items()}
_LOGICAL = {*_NEGATED, Operator.AND, Operator.OR, Operator.NOT, Operator.IN, Operator.IS_NULL, Operator.LIKE}
_ORDERS = {
    Operator.LESS: operator.lt,
    Operator.LESS_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_EQUAL: operator.ge,
}
_LARGEST = 2**53


@dataclass(frozen=True)
class Fact:
    """What is true of the number, text or condition that is written `of` where this fact holds.

    `operator` is = (one of `constants`), <> (none of them: it is there), an order (beside the only constant), IS_NULL,
    AND (the condition is true) or NOT (it is false).
    """

    of: str
    operator: Operator
    constants: tuple[Any, ...] = ()

    def contradicts(self, other: Fact) -> bool:
        """Whether no row has both."""
        if self.of != other.of:
            return False
        if Operator.IS_NULL in (self.operator, other.operator):
            return self.operator is not other.operator
        if not self.constants or not other.constants:
            return {self.operator, other.operator} == {Operator.AND, Operator.NOT}
        for one, two in (self, other), (other, self):
            if one.operator is Operator.EQUAL:
                return not any(_may_be(value, two) for value in one.constants)
        return _are_apart(self, other) or _are_apart(other, self)


Clause = frozenset[Fact]
"""Facts that hold together; a condition is a list of such cases, one of which holds where it is true."""

ALWAYS: list[Clause] = [frozenset()]


def are_exclusive(values: Sequence[Value]) -> bool:
    """Whether at most one of these is different from zero in every row, as far as the question's text tells.

    Guarantee:
        True only if no row of any table has two of them that are not zero: `joint_noise.md`, "Exclusive channels".

    >>> from mosha.connect import col, when
    >>> late, early = (Clamped(when(c, 1).else_(0), (0, 1), exponent=0) for c in (col("t") > 9, col("t") <= 9))
    >>> are_exclusive([late, early]), are_exclusive([late, Rows()])
    (True, False)
    """
    supports = [_find_support(value) for value in values]
    return all(_exclude(a, b) for a, b in itertools.combinations(supports, 2))


def _exclude(one: list[Clause], two: list[Clause]) -> bool:
    return all(any(a.contradicts(b) for a in first for b in second) for first in one for second in two)


def _find_support(value: Value) -> list[Clause]:
    """Cases that cover all rows in which the value is not zero."""
    if isinstance(value, Rows):
        return ALWAYS if value.of is None else _cover(value.of, zero=False)
    if isinstance(value, Clamped):
        return _cover(value.of, zero=value.center == 0 and value.between[0] <= 0 <= value.between[1])
    return ALWAYS


def _cover(expression: Expression, *, zero: bool) -> list[Clause]:
    """Cases that cover all rows in which an expression is neither missing nor, with `zero`, zero."""
    if isinstance(expression, Literal):
        return [] if expression.value is None or (zero and expression.value == 0) else ALWAYS
    if isinstance(expression, Case):
        branches = [_both(_list_cases(when), _cover(then, zero=zero)) for when, then in expression.branches]
        rest = [] if expression.rest is None else _cover(expression.rest, zero=zero)
        return _limit([clause for cases in (*branches, rest) for clause in cases])
    if isinstance(expression, Call) and expression.operator is Operator.MULTIPLY:
        return _both(*(_cover(factor, zero=zero) for factor in expression.arguments))
    if zero and isinstance(expression, Call) and expression.operator is Operator.CAST:
        (condition,) = expression.arguments
        is_condition = isinstance(condition, Call) and condition.operator in _LOGICAL
        return _list_cases(condition) if is_condition and expression.options == (Type.INTEGER,) else ALWAYS
    return ALWAYS


def _list_cases(condition: Expression, *, true: bool = True) -> list[Clause]:
    """Cases that cover all rows in which a condition is true (or false); a missing one is neither."""
    if isinstance(condition, Literal):
        return ALWAYS if condition.value is true else []
    kind = condition.operator if isinstance(condition, Call) else None
    if isinstance(condition, Call) and kind is Operator.NOT:
        return _list_cases(condition.arguments[0], true=not true)
    if isinstance(condition, Call) and kind in (Operator.AND, Operator.OR):
        parts = [_list_cases(part, true=true) for part in condition.arguments]
        together = (kind is Operator.AND) == true
        return _both(*parts) if together else _limit([clause for cases in parts for clause in cases])
    return [frozenset([_read_fact(condition, true=true)])]


def _read_fact(condition: Expression, *, true: bool) -> Fact:
    """A comparison with constants, whether something is missing, or any other condition as it is written."""
    if isinstance(condition, Call) and (fact := _compare(condition, true=true)) is not None:
        return fact
    if isinstance(condition, Call) and condition.operator in _AS_NEGATION:  # a >= b is true where a < b is false
        condition, true = Call(_NEGATED[condition.operator], condition.arguments), not true
    return Fact(repr(condition), Operator.AND if true else Operator.NOT)


def _compare(condition: Call, *, true: bool) -> Fact | None:
    kind, (first, *others) = condition.operator, condition.arguments
    if kind is Operator.IS_NULL:
        return Fact(repr(first), kind if true else Operator.NOT_EQUAL)
    constants = tuple(other.value for other in others if isinstance(other, Literal) and other.value is not None)
    if kind is Operator.IN and len(constants) == len(others):
        return Fact(repr(first), Operator.EQUAL if true else Operator.NOT_EQUAL, constants)
    if kind not in _NEGATED:
        return None
    kind = kind if true else _NEGATED[kind]
    if isinstance(first, Literal) and first.value is not None and not isinstance(others[0], Literal):
        return Fact(repr(others[0]), _MIRRORED.get(kind, kind), (first.value,))
    return Fact(repr(first), kind, constants) if constants and not isinstance(first, Literal) else None


def _both(*conditions: list[Clause]) -> list[Clause]:
    """The cases in which all conditions hold."""
    together = ALWAYS
    for cases in conditions:
        together = _limit([one | two for one in together for two in cases])
    return together


def _limit(cases: list[Clause]) -> list[Clause]:
    return cases if len(cases) <= MOST_CLAUSES else ALWAYS


def _are_comparable(one: object, two: object) -> bool:
    """Whether two constants are of one type, and numbers small enough to be the same as doubles."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (one, two)]
    if all(numbers):
        return all(abs(value) < _LARGEST for value in (one, two))  # type: ignore[arg-type]
    return type(one) is type(two)


def _may_be(value: Any, fact: Fact) -> bool:
    """Whether something may be equal to a constant where another fact holds of it."""
    if not all(_are_comparable(value, other) for other in fact.constants):
        return True
    if fact.operator in _ORDERS:
        return bool(_ORDERS[fact.operator](value, fact.constants[0]))
    return (value in fact.constants) == (fact.operator is Operator.EQUAL)


def _are_apart(below: Fact, above: Fact) -> bool:
    """Whether one fact says that something is less than what the other one says that it is at least."""
    if below.operator not in (Operator.LESS, Operator.LESS_EQUAL):
        return False
    if above.operator not in (Operator.GREATER, Operator.GREATER_EQUAL):
        return False
    high, low = below.constants[0], above.constants[0]
    if not _are_comparable(high, low):
        return False
    touches = (below.operator, above.operator) == (Operator.LESS_EQUAL, Operator.GREATER_EQUAL)
    return bool(high < low or (high == low and not touches))
