"""What `check` says about an answer to an exercise."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mosha.classroom.checks.kinds import Finding, judge
from mosha.classroom.exercises.exercise import Exercise, find_exercise
from mosha.core.language import say

__all__ = ["Verdict", "check"]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer to `exercise` passed, and the `findings` if it did not.

    >>> import mosha
    >>> first = mosha.classroom.list_exercises()[0]
    >>> Verdict(first, findings=()).passed
    True
    """

    exercise: Exercise
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        title = self.exercise.describe().title
        if self.passed:
            return say("classroom.passed", number=self.exercise.number, title=title)
        head = say("classroom.not_passed", number=self.exercise.number, title=title)
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "exercise": self.exercise.id,
            "passed": self.passed,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def check(exercise: str | Exercise, answer: Callable[..., object]) -> Verdict:
    """Judge an answer: attack it, try it on neighbors, compare its numbers.

    Guarantee:
        An answer that is right passes, except with probability at most 1e-9 for each judgment in its check.

    Args:
        exercise: its name or number, or the exercise itself.
        answer: the function that was written.

    >>> import math
    >>> def highest_belief(prior, epsilon):
    ...     return prior * math.exp(epsilon)
    >>> print(check("odds", highest_belief))  # doctest: +ELLIPSIS
    Exercise 2, What one answer can do to the odds: not yet.
      for (...) you give ...; it is ...
    """
    chosen = exercise if isinstance(exercise, Exercise) else find_exercise(exercise)
    module = importlib.import_module(f"mosha.classroom.checks.{chosen.chapter}")
    return Verdict(chosen, judge(getattr(module, f"check_{chosen.id.replace('-', '_')}"), answer))
