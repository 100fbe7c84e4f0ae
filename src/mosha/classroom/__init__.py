"""Lessons and exercises. Lessons say what an epsilon means, in numbers of the library; exercises check themselves.

Every number is computed by the same functions that price and release; the console's *Explore* shows them. No data are
needed.

>>> from mosha import classroom
>>> bool(classroom.check("odds", lambda prior, epsilon: prior))
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.classroom.checks.kinds import Finding as Finding
    from mosha.classroom.exercises.exercise import Exercise as Exercise
    from mosha.classroom.exercises.exercise import find_exercise as find_exercise
    from mosha.classroom.exercises.exercise import list_exercises as list_exercises
    from mosha.classroom.lessons import compare_models as compare_models
    from mosha.classroom.lessons import compare_noise as compare_noise
    from mosha.classroom.lessons import compose_questions as compose_questions
    from mosha.classroom.lessons import explain_epsilon as explain_epsilon
    from mosha.classroom.verdict import Verdict as Verdict
    from mosha.classroom.verdict import check as check

_NAMES = {
    "Exercise": "exercises.exercise",
    "Finding": "checks.kinds",
    "Verdict": "verdict",
    "check": "verdict",
    "compare_models": "lessons",
    "compare_noise": "lessons",
    "compose_questions": "lessons",
    "list_exercises": "exercises.exercise",
    "explain_epsilon": "lessons",
    "find_exercise": "exercises.exercise",
}
__all__ = [
    "Exercise",
    "Finding",
    "Verdict",
    "check",
    "compare_models",
    "compare_noise",
    "compose_questions",
    "explain_epsilon",
    "find_exercise",
    "list_exercises",
]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
