"""Explore: knobs, pictures and tables without data and without signing in. The library computes every number."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
PRIORS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
COUNTS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
PEOPLE = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DEGREES = (5, 10, 20, 50, 100, 200)
BATCHES = (64, 128, 256, 512, 1024)
EPOCHS = (1, 3, 10, 30)
CLIPS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-6
_KNOBS = {"epsilon": (EPSILONS, 8), "prior": (PRIORS, 1), "count": (COUNTS, 5), "people": (PEOPLE, 4)}
_KNOBS |= {"degree": (DEGREES, 2), "batch": (BATCHES, 2), "epochs": (EPOCHS, 2), "clip": (CLIPS, 2)}


_PARTS = ("quick", "models", "training")
_lock = threading.Lock()
_known: dict[tuple[object, ...], Any] = {}


def _learn(lesson: Callable[..., Any], **knobs: float) -> Any:
    """A lesson for one place of its own knobs: there are so few places that each is computed once, one at a time."""
    key = (lesson, *knobs.items())
    if key not in _known:
        with _lock:
            if key not in _known:
                _known[key] = lesson(**knobs)
    return _known[key]


def _learn_quickly(epsilon: float, prior: float, count: int, degree: int) -> Data:
    """The lessons that take milliseconds."""
    from mosha import classroom  # noqa: PLC0415  (numerics, loaded with the first lesson)

    return {
        "meaning": _learn(classroom.explain_epsilon, epsilon=epsilon, prior=prior),
        "noise": _learn(classroom.compare_noise, epsilon=epsilon, delta=DELTA),
        "composition": _learn(classroom.compose_questions, epsilon=epsilon / 10, delta=DELTA, most=count),
        "sparse": _learn(classroom.watch_thresholds, epsilon=epsilon, most=count),
        "graphs": _learn(classroom.compare_graph_units, epsilon=epsilon, max_degree=degree),
    }


def _learn_slowly(part: str, epsilon: float, people: int, chosen: Data) -> Data:
    """A lesson for which a plan is searched: it may take a second, and must not keep the others waiting."""
    from mosha import classroom  # noqa: PLC0415  (the same)

    if part == "models":
        return {part: _learn(classroom.compare_models, people=people, size=10, epsilon=epsilon, delta=DELTA)}
    most = min(people, 100_000)  # more take seconds
    knobs = {name: chosen[name] for name in ("batch", "epochs", "clip")}
    return {part: _learn(classroom.follow_training, epsilon=epsilon, delta=DELTA, people=most, **knobs)}


def show(visit: Visit) -> Response:
    """All lessons; or one part of them, where the page asks for what is quick first and for the rest afterwards."""
    places = {}
    for name, (values, first) in _KNOBS.items():
        said = visit.read_field(name)
        places[name] = min(int(said), len(values) - 1) if said.isdecimal() and len(said) < 5 else first
    chosen = {name: _KNOBS[name][0][place] for name, place in places.items()}
    epsilon, people, wanted = float(chosen["epsilon"]), int(chosen["people"]), visit.read_field("part")
    parts = (wanted,) if wanted in _PARTS else _PARTS
    found: Data = {}
    for part in parts:
        if part == "quick":
            found |= _learn_quickly(epsilon, float(chosen["prior"]), int(chosen["count"]), int(chosen["degree"]))
        else:
            found |= _learn_slowly(part, epsilon, people, chosen)
    last = {name: len(values) - 1 for name, (values, _) in _KNOBS.items()}
    return visit.render("explore.html", places=places, chosen=chosen, last=last, delta=DELTA, parts=parts, **found)


ROUTES = (("GET", "/explore", show),)
