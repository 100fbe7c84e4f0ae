"""Explore: knobs, pictures and tables without data and without signing in. The library computes every number."""

from __future__ import annotations

from functools import lru_cache

from starlette.responses import Response

from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
PRIORS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
COUNTS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
PEOPLE = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DEGREES = (5, 10, 20, 50, 100, 200)
DELTA = 1e-6
_KNOBS = {"epsilon": (EPSILONS, 8), "prior": (PRIORS, 1), "count": (COUNTS, 5), "people": (PEOPLE, 4)}
_KNOBS["degree"] = (DEGREES, 2)


@lru_cache(maxsize=1024)
def _lessons(epsilon: float, prior: float, count: int, people: int) -> Data:
    """All lessons for one place of the knobs; there are so few places that each is computed once."""
    from mosha.classroom import compare_noise, compose_questions, explain_epsilon  # noqa: PLC0415

    return {
        "meaning": explain_epsilon(epsilon=epsilon, prior=prior),
        "noise": compare_noise(epsilon=epsilon, delta=DELTA),
        "composition": compose_questions(epsilon=epsilon / 10, delta=DELTA, most=count),
        "models": _models(people, epsilon),
    }


@lru_cache(maxsize=256)
def _models(people: int, epsilon: float) -> list[Data]:
    from mosha.classroom import compare_models  # noqa: PLC0415

    return compare_models(people=people, size=10, epsilon=epsilon, delta=DELTA)


@lru_cache(maxsize=256)
def _training(people: int, epsilon: float) -> Data:
    from mosha.classroom import follow_training  # noqa: PLC0415

    return follow_training(epsilon=epsilon, delta=DELTA, people=min(people, 100_000))  # more take seconds


@lru_cache(maxsize=1024)
def _uses(epsilon: float, count: int, people: int, degree: int) -> Data:
    """Lessons about thresholds, training and graphs."""
    from mosha.classroom import compare_graph_units, watch_thresholds  # noqa: PLC0415

    return {
        "sparse": watch_thresholds(epsilon=epsilon, most=count),
        "training": _training(people, epsilon),
        "graphs": compare_graph_units(epsilon=epsilon, max_degree=degree),
    }


def show(visit: Visit) -> Response:
    places = {}
    for name, (values, first) in _KNOBS.items():
        said = visit.read_field(name)
        places[name] = min(int(said), len(values) - 1) if said.isdecimal() and len(said) < 5 else first
    chosen = {name: _KNOBS[name][0][place] for name, place in places.items()}
    found = dict(
        _lessons(float(chosen["epsilon"]), float(chosen["prior"]), int(chosen["count"]), int(chosen["people"]))
    )
    found |= _uses(float(chosen["epsilon"]), int(chosen["count"]), int(chosen["people"]), int(chosen["degree"]))
    last = {name: len(values) - 1 for name, (values, _) in _KNOBS.items()}
    return visit.render("explore.html", places=places, chosen=chosen, last=last, delta=DELTA, **found)


ROUTES = (("GET", "/explore", show),)
