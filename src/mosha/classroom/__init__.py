"""Lessons: what an epsilon means, what noise costs, how questions add up, whom one has to trust. No data are needed.

Every number is computed by the same functions that price and release; the console's *Explore* shows them.
"""

from __future__ import annotations

from mosha.classroom.lessons import compare_models, compare_noise, compose_questions, explain_epsilon
from mosha.core.lazy import keep_public_names

__all__ = ["compare_models", "compare_noise", "compose_questions", "explain_epsilon"]
keep_public_names(__name__)
