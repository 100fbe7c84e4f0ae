"""Lessons: what an epsilon means, in numbers of the library. Public, without data; *Explore* shows them as pictures.

A knob has a few places, so that there are few lessons in all: each is computed once, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import Schema
from mosha.server.errors import BadRequest, NotFound, TooMany

__all__ = ["DELTA", "KNOBS", "LESSONS", "OPERATIONS"]

DELTA = 1e-6
MOST_WAITING = 8  # lessons that wait to be computed; whoever asks for one more is told to come back
KNOBS: dict[str, tuple[tuple[float, ...], int]] = {
    "epsilon": ((0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0), 8),
    "prior": ((0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9), 1),
    "count": ((2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000), 5),
    "people": ((100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000), 4),
    "degree": ((5, 10, 20, 50, 100, 200), 2),
    "batch": ((64, 128, 256, 512, 1024), 2),
    "epochs": ((1, 3, 10, 30), 2),
    "clip": ((0.1, 0.3, 1.0, 3.0, 10.0), 2),
}
"""What can be turned: its places, and the one at which it stands first."""
LESSONS: dict[str, tuple[str, ...]] = {
    "meaning": ("epsilon", "prior"),
    "noise": ("epsilon",),
    "composition": ("epsilon", "count"),
    "sparse": ("epsilon", "count"),
    "graphs": ("epsilon", "degree"),
    "models": ("epsilon", "people"),
    "training": ("epsilon", "people", "batch", "epochs", "clip"),
}
"""Each lesson with its own knobs."""

_lock = threading.Lock()
_places = threading.BoundedSemaphore(MOST_WAITING)
_known: dict[tuple[object, ...], Any] = {}


def _lessons() -> Mapping[str, Callable[..., Any]]:
    from mosha import classroom  # noqa: PLC0415  (numerics, loaded with the first lesson)

    def train(epsilon: float, people: int, **knobs: Any) -> Any:
        most = min(people, 100_000)  # more take seconds
        return classroom.follow_training(epsilon=epsilon, delta=DELTA, population=most, **knobs)

    return {
        "meaning": classroom.explain_epsilon,
        "noise": lambda epsilon: classroom.compare_noise(epsilon=epsilon, delta=DELTA),
        "composition": lambda epsilon, count: classroom.compose_questions(
            epsilon=epsilon / 10, delta=DELTA, most=count
        ),
        "sparse": lambda epsilon, count: classroom.watch_thresholds(epsilon=epsilon, most=count),
        "graphs": lambda epsilon, degree: classroom.compare_graph_units(epsilon=epsilon, max_degree=degree),
        "models": lambda epsilon, people: classroom.compare_models(
            population=people, size=10, epsilon=epsilon, delta=DELTA
        ),
        "training": train,
    }


def _learn(name: str, knobs: Mapping[str, float]) -> Any:
    """The numbers of a lesson at one place of its knobs; where many others wait for theirs, nobody waits with them."""
    key = (name, *knobs.values())
    if key not in _known:
        if not _places.acquire(blocking=False):
            raise TooMany("server.too_many", seconds=2)
        try:
            with _lock:
                if key not in _known:
                    _known[key] = _lessons()[name](**knobs)
        finally:
            _places.release()
    return _known[key]


def list_lessons(_: Call) -> Reply:
    described = [
        {"name": name, "knobs": {knob: list(KNOBS[knob][0]) for knob in knobs}} for name, knobs in LESSONS.items()
    ]
    return Reply({"lessons": described, "delta": DELTA})


def read_lesson(call: Call) -> Reply:
    name = call.path["lesson"]
    if name not in LESSONS:
        raise NotFound("server.not_found")
    for knob in call.query:
        if knob not in LESSONS[name]:
            raise BadRequest("server.field_unknown", parameter=knob)
    chosen = {}
    for knob in LESSONS[name]:
        places, first = KNOBS[knob]
        said = call.query.get(knob, places[first])
        if said not in places:
            raise BadRequest("server.field_wrong", parameter=knob, expected=", ".join(map(str, places)))
        chosen[knob] = places[places.index(said)]
    return Reply({"lesson": name, "knobs": chosen, "delta": DELTA, "numbers": _learn(name, chosen)})


def _schema_of(places: tuple[float, ...]) -> Schema:
    return {"type": "integer" if isinstance(places[0], int) else "number", "enum": list(places)}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="listLessons",
        method="GET",
        path="/lessons",
        verb="lesson.read",
        tag="lessons",
        summary="Lessons about epsilon, and the places of their knobs. No data, no signing in.",
        handler=list_lessons,
    ),
    Operation(
        name="readLesson",
        method="GET",
        path="/lessons/{lesson}",
        verb="lesson.read",
        tag="lessons",
        summary="The numbers of a lesson at one place of its knobs, computed by the library.",
        handler=read_lesson,
        query={knob: _schema_of(places) for knob, (places, _) in KNOBS.items()},
    ),
)
