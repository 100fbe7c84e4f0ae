"""Questions about graphs: checked and forecast without an edge, released where the edges are, answered as a table.

Guarantee:
    The edge list is read inside of the step that was paid for, and not before: what reading it takes, and whether it
    fails, is known to nobody who has not paid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase
from mosha.core.measurement import Rng
from mosha.graphs.question import Answer, Question, answer_of
from mosha.server.asking.answers import LEVELS, plain_number
from mosha.server.catalogue.graphs import ASKED
from mosha.server.errors import BadRequest

__all__ = ["MOST_ROWS", "build_graph_question", "forecast_graph", "graph_answer_to_dict", "release_graph"]

MOST_ROWS = 200_000
_LONG = ("degree_sequence", "cumulative_degrees", "degree_distribution", "communities", "synthetic")
_INDEX = {"communities": "vertex", "seeds": "place", "degree_sequence": "place"}


def build_graph_question(graph: Any, said: Mapping[str, Any]) -> Question:
    """Check a question: the name of what is asked and its options; unit and vertices are those of the dataset."""
    verb = said.get("graph")
    if verb not in ASKED:
        raise BadRequest("server.field_wrong", parameter="plan.graph", expected=", ".join(ASKED))
    vertices = graph.edges().vertices
    if verb in _LONG and (vertices or 0) > MOST_ROWS:
        raise BadRequest(
            "server.field_wrong", parameter="plan.graph", expected=phrase("server.few_vertices", most=MOST_ROWS)
        )
    whole = {"options": {}, "unit": graph.unit.to_dict(), "vertices": vertices} | dict(said)
    return Question.from_dict(graph, whole)


def forecast_graph(question: Question, price: Mapping[str, Any], confidence: float) -> dict[str, list[float | None]]:
    """The error bar before asking; empty where it depends on the edges."""
    try:
        bars = question.forecast(**price, confidence=confidence)
    except InvalidParameter:
        return {}
    return {question.verb: np.atleast_1d(np.asarray(bars, float)).tolist()}


def release_graph(
    question: Question, read: Callable[[], Any], price: Mapping[str, Any], *, key: str, account: Account
) -> Answer:
    """Pay, then read the edges and answer; the same key finds the same answer again."""
    measurement = replace(question.measurement_for(**price), question=question.fingerprint)
    inner = measurement.step

    def step(state: object, _: object, ask: object, rng: Rng) -> Any:
        return inner(state, read(), ask, rng)

    run = account.open(replace(measurement, step=step), key=key)
    released = run.step(None)
    run.close()
    return answer_of(released)


def graph_answer_to_dict(question: Question, answer: Answer) -> dict[str, Any]:
    """An answer in the form of all answers: a table with error bars, notes and a receipt."""
    value, name = np.asarray(answer.value), question.verb
    index: list[dict[str, str]] = []
    if value.ndim == 2:
        names, rows = ["from", "to"], [[plain_number(cell) for cell in row] for row in value]
    elif value.ndim == 1:
        index = [{"name": _INDEX.get(name, "degree"), "role": "key", "type": "integer"}]
        names, rows = [name], [[place, plain_number(cell)] for place, cell in enumerate(value)]
    else:
        names, rows = [name], [[plain_number(value[()])]]
    kind = "integer" if value.dtype.kind in "iu" else "real"
    return {
        "columns": [*index, *({"name": each, "role": "value", "type": kind} for each in names)],
        "rows": rows,
        "errors": {str(level): {each: _bars(answer, level, len(rows)) for each in names} for level in LEVELS},
        "in_rows": [],
        "notes": [f"{part}: {_brief(found)}" for part, found in answer.details.items() if np.ndim(found) == 0],
        "receipt": answer.receipt.to_dict(),
    }


def _bars(answer: Answer, level: float, count: int) -> list[Any]:
    """The error bar of each row; None where there is none."""
    try:
        found = np.asarray(answer.error(level), float)
    except InvalidParameter:
        return [None] * count
    return [plain_number(bar) for bar in np.broadcast_to(found, (count,))]


def _brief(value: object) -> str:
    found = plain_number(value)
    return f"{found:.6g}" if isinstance(found, float) else str(found)
