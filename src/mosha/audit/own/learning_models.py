"""Mosha's own models and choices as the attacker meets them: one example more, where its gradient is longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosha import learning as l
from mosha import mechanisms as m
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.unit import Edge, Example, Neighbors, Node
from mosha.learning.linear.gaussian_classes import GaussianClasses

__all__ = ["own_entries"]

EXAMPLE = Example()
REPLACED = Example(neighbors=Neighbors.REPLACE_ONE)
CLASSES = (0, 1)


def own_entries() -> list[Entry]:
    """One entry or more for each thing that learns from, or tells about, private examples without PyTorch."""
    return [*_models(), *_choices(), *_others()]


def _entry(name: str, build: Any, proposals: Sequence[Proposal], **how: Any) -> Entry:
    return Entry(f"learning: {name}", build, tuple(proposals), name.partition(":")[0], how)


def _pair(rows: object, labels: object) -> tuple[Any, Any]:
    return np.asarray(rows, float).reshape(-1, 1), labels


def _examples() -> list[Proposal]:
    """One example more: alone, far outside the bounds, against a crowd."""
    crowd = [1.0] * 8
    return [
        Proposal("one example or none", _pair([1.0], [1]), _pair([], [])),
        Proposal("one far outside", _pair([-1e300], [0]), _pair([], [])),
        Proposal("one against a crowd", _pair([*crowd, 1.0], [1] * 8 + [0]), _pair(crowd, [1] * 8)),
    ]


def _propose_replacement() -> list[Proposal]:
    return [Proposal("an example turned round", _pair([1.0], [1]), _pair([1.0], [0]))]


def _models() -> list[Entry]:
    shape: dict[str, Any] = {"examples": 4, "norm": 1.0, "fit_intercept": False, "learning_rate": 1.0}
    two = {**shape, "steps": 2, "momentum": 0.0, "average": 0.5}
    return [
        _entry(
            "LogisticRegression: one step",
            lambda: l.LogisticRegression(mu=1.0, steps=1, clip=0.5, **shape).measurement(1),
            _examples(),
        ),
        _entry(
            "LogisticRegression: two steps", lambda: l.LogisticRegression(mu=1.0, **two).measurement(1), _examples()
        ),
        _entry(
            "LogisticRegression: replaced",
            lambda: l.LogisticRegression(mu=1.0, steps=1, clip=0.5, unit=REPLACED, **shape).measurement(1),
            _propose_replacement(),
        ),
        _entry(
            "LogisticRegression: sampled",
            lambda: l.LogisticRegression(epsilon=1.0, delta=1e-3, rate=0.5, **two).measurement(1),
            _examples(),
        ),
        _entry(
            "SoftmaxRegression: one step",
            lambda: l.SoftmaxRegression(classes=CLASSES, mu=1.0, steps=1, clip=0.7, **shape).measurement(1),
            _examples(),
        ),
        _entry(
            "LinearRegression: one step",
            lambda: l.LinearRegression(target=(0, 1), mu=1.0, steps=1, clip=1.0, **shape).measurement(1),
            _examples(),
        ),
        _entry(
            "GaussianClasses: moments",
            lambda: GaussianClasses(classes=CLASSES, norm=1.0, mu=1.0).measurement(1),
            _examples(),
        ),
    ]


def _always(label: int) -> Any:
    return lambda rows: [label] * len(rows)


def _sure(rows: Any) -> list[list[float]]:
    return [[0.1, 0.9]] * len(rows)


def _choices() -> list[Entry]:
    models = {"no": _always(0), "yes": _always(1)}
    asked: dict[str, Any] = {"classes": CLASSES, "unit": EXAMPLE}
    trials = {str(k): m.laplace(m.Count(), unit=EXAMPLE, epsilon=0.5) for k in range(2)}
    counts = [Proposal("one example or none", [1.0], []), Proposal("two or one", [1.0, 1.0], [1.0])]
    return [
        _entry("choose_model: permute and flip", lambda: l.choose_model(models, epsilon=1, **asked), _examples()),
        _entry(
            "choose_model: exponential",
            lambda: l.choose_model(models, epsilon=1, bounded_range=True, **asked),
            _examples(),
        ),
        _entry("accuracy: share", lambda: l.accuracy(_always(1), examples=4, epsilon=1, **asked), _examples()),
        _entry(
            "best_of_random_runs: largest",
            lambda: l.best_of_random_runs(trials, score=_largest, mean=3).map(lambda best: best[2]),
            counts,
        ),
        _entry(
            "calibration: cells",
            lambda: l.calibration(_sure, epsilon=1, bins=2, **asked).map(lambda found: [*found.right, *found.wrong]),
            _examples(),
        ),
    ]


def _largest(name: str, answer: object) -> Any:
    del name
    return answer


def _teach(rows: object, labels: Any) -> Any:
    del rows
    most = round(float(np.mean([float(label) for label in labels])))  # fails where there are none: no vote
    return lambda asked: [most] * len(asked)


def _others() -> list[Entry]:
    plan = l.Aggregation(vertices=3, width=1, hops=1)
    ones = np.ones((3, 1))
    labelled = l.teachers_labels(_teach, teachers=2, classes=CLASSES, questions=1, unit=EXAMPLE, mu=1.0)
    return [
        _entry("teachers_labels: one question", lambda: labelled, _examples(), asks=[[[0.0]]]),
        _entry(
            "Aggregation: one edge",
            lambda: plan.measurement(unit=Edge(), mu=1.0),
            [
                Proposal("one edge or none", [(0, 1)], []),
                Proposal("an edge that closes a triangle", [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]),
            ],
            asks=[ones],
        ),
        _entry(
            "Aggregation: one vertex",
            lambda: plan.measurement(unit=Node(max_degree=1), mu=1.0),
            [
                Proposal("a vertex with one edge or none", [(0, 1)], []),
                Proposal("a vertex between two others", [(0, 1), (1, 2)], []),
                Proposal("a vertex that takes a neighbor away", [(0, 1), (1, 2)], [(0, 1)]),
            ],
            asks=[ones],
        ),
    ]
