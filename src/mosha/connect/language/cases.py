"""Choices in the language of expressions: the value beside the first condition that is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from mosha.connect.language.expression import Expression, as_expression
from mosha.connect.language.limits import check_size_of_fields
from mosha.core.names.calls import explain_wrong_calls

__all__ = ["Branch", "Case", "when"]

NO_VALUE = object()
"""In place of a value that `then` will say."""


@dataclass(frozen=True, eq=False)
class Branch:
    """A condition that waits for its value: `when(condition).then(value)`.

    >>> from mosha.connect import col
    >>> when(col("age") < 18).then(0)
    (case when ("age" < 18) then 0 else None)
    """

    condition: Expression
    earlier: tuple[tuple[Expression, Expression], ...] = ()

    def then(self, value: object) -> Case:
        """The choice with this branch; without another one, the rest is NULL."""
        return Case((*self.earlier, (self.condition, as_expression(value))))


@dataclass(frozen=True, eq=False, repr=False)
class Case(Expression):
    """The value beside the first condition of `branches` that is true, else `rest`, else NULL.

    >>> from mosha.connect import col
    >>> when(col("age") < 18, "minor").when(col("age") < 65, "adult").otherwise("old")
    (case when ("age" < 18) then 'minor' when ("age" < 65) then 'adult' else 'old')
    """

    branches: tuple[tuple[Expression, Expression], ...]
    rest: Expression | None = None

    __post_init__ = check_size_of_fields  # type: ignore[misc]  # a method of another file

    @overload
    def when(self, condition: object) -> Branch: ...

    @overload
    def when(self, condition: object, value: object) -> Case: ...

    def when(self, condition: object, value: object = NO_VALUE) -> Case | Branch:
        """One more branch with `condition` and `value`, as the function `when` begins the first."""
        branch = Branch(as_expression(condition), self.branches)
        return branch if value is NO_VALUE else branch.then(value)

    def else_(self, value: object) -> Case:
        """The `value` that is taken where no condition is true."""
        return Case(self.branches, as_expression(value))

    def otherwise(self, value: object) -> Case:
        """The `value` that is taken where no condition is true; the same as `else_`."""
        return self.else_(value)

    def __repr__(self) -> str:
        branches = " ".join(f"when {condition!r} then {value!r}" for condition, value in self.branches)
        return f"(case {branches} else {self.rest!r})"


@overload
def when(condition: object) -> Branch: ...


@overload
def when(condition: object, value: object) -> Case: ...


@explain_wrong_calls
def when(condition: object, value: object = NO_VALUE) -> Case | Branch:
    """The first branch of a choice: `value` where `condition` is true, given here or by `then`.

    >>> from mosha.connect import col
    >>> when(col("age") < 18).then("minor").when(col("age") < 65).then("adult").otherwise("old")
    (case when ("age" < 18) then 'minor' when ("age" < 65) then 'adult' else 'old')
    >>> when(col("age") < 18, "minor").else_("adult")
    (case when ("age" < 18) then 'minor' else 'adult')
    """
    branch = Branch(as_expression(condition))
    return branch if value is NO_VALUE else branch.then(value)
