"""Questions about the protected table, put to the synthetic rows instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mosha.connect import source
from mosha.core.errors import InvalidParameter
from mosha.noise import secure
from mosha.synth.computing import arrow_table
from mosha.synth.fitted import Fitted
from mosha.synth.margins import Estimate
from mosha.synth.workload import MarginalsQuestion
from mosha.tables import Budget, Question

__all__ = ["ask_synthetic"]

NEARLY_EXACT = Budget(epsilon=4096.0)


def ask_synthetic(made: Fitted, table: Mapping[str, list[Any]], question: object) -> Any:
    """Modelled answers: a table of marginals by their columns, or of aggregates by group."""
    if isinstance(question, MarginalsQuestion):
        place = {column.name: i for i, column in enumerate(made.columns)}
        names = [tuple(question.columns[c].name for c in one) for one in question.sets]
        return {one: made.model.marginal([place[name] for name in one]) * made.model.total for one in names}
    if not isinstance(question, Question):
        raise InvalidParameter("synth.not_a_question", parameter="question")
    if question.relation.person is not None:
        raise InvalidParameter("synth.question_of_persons", parameter="question")
    rows = source(arrow_table(table, made.columns))
    measurement = question.measurement(NEARLY_EXACT)
    value, _ = measurement.step(None, rows, None, secure())
    parts = question.parts(NEARLY_EXACT)
    found = {name: column for part, noisy in zip(parts, value["parts"], strict=True)
             for name, column in part.answers(noisy).items()}  # fmt: skip
    keys = [key for key, _ in question.keys]
    groups = question.only if question.only is not None else ((),)
    return [
        dict(zip(keys, group, strict=True))
        | {name: Estimate(float(column[i]), None, "modelled") for name, column in found.items()}
        for i, group in enumerate(groups)
    ]
