"""Lessons and exercises. Lessons say what an epsilon means, in numbers of the library; exercises check themselves.

Every number is computed by the same functions that price and release; the console's *Explore* shows them. No data are
needed.

>>> from mosha import classroom
>>> bool(classroom.check("odds", lambda prior, epsilon: prior))
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.classroom.applications import compare_graph_units as compare_graph_units
    from mosha.classroom.applications import follow_training as follow_training
    from mosha.classroom.applications import watch_thresholds as watch_thresholds
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
    from mosha.classroom.windows import Composition as Composition
    from mosha.classroom.windows import SequenceSensitivity as SequenceSensitivity
    from mosha.classroom.windows import compare_compositions as compare_compositions
    from mosha.classroom.windows import exponential_probabilities as exponential_probabilities
    from mosha.classroom.windows import privacy_loss as privacy_loss
    from mosha.classroom.windows import sequence_sensitivities as sequence_sensitivities

_NAMES = {
    "Composition": "windows",
    "Exercise": "exercises.exercise",
    "Finding": "checks.kinds",
    "SequenceSensitivity": "windows",
    "Verdict": "verdict",
    "check": "verdict",
    "compare_compositions": "windows",
    "compare_graph_units": "applications",
    "compare_models": "lessons",
    "compare_noise": "lessons",
    "compose_questions": "lessons",
    "explain_epsilon": "lessons",
    "exponential_probabilities": "windows",
    "find_exercise": "exercises.exercise",
    "list_exercises": "exercises.exercise",
    "privacy_loss": "windows",
    "sequence_sensitivities": "windows",
    "follow_training": "applications",
    "watch_thresholds": "applications",
}
__all__ = [
    "Composition",
    "Exercise",
    "Finding",
    "SequenceSensitivity",
    "Verdict",
    "check",
    "compare_compositions",
    "compare_graph_units",
    "compare_models",
    "compare_noise",
    "compose_questions",
    "explain_epsilon",
    "exponential_probabilities",
    "find_exercise",
    "follow_training",
    "list_exercises",
    "privacy_loss",
    "sequence_sensitivities",
    "watch_thresholds",
]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
