"""A softmax regression in NumPy, and readings that every ward makes up for itself, with a tilt of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Model = dict[str, NDArray[Any]]
Readings, Labels = NDArray[np.float64], NDArray[np.int64]

KINDS, READINGS = 4, 12


def data(ward: int, rows: int = 200, mix: float = 0.0) -> tuple[Readings, Labels]:  # type: ignore[valid-type]
    """Readings and kinds; `mix` is the share of cases that are of the ward's own kind, whatever comes to the others."""
    centres = np.random.default_rng(1).normal(size=(KINDS, READINGS)) * 1.5
    own = np.random.default_rng(100 + ward)
    labels = own.integers(0, KINDS, rows)
    labels[own.random(rows) < mix] = ward % KINDS
    return centres[labels] + own.normal(size=(rows, READINGS)) + 0.2 * own.normal(size=READINGS), labels


def blank() -> Model:
    return {"weights": np.zeros((READINGS, KINDS), np.float32), "bias": np.zeros(KINDS, np.float32)}


def chances(model: Model, readings: Readings) -> Readings:  # type: ignore[valid-type]
    scores = readings @ model["weights"] + model["bias"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Readings = scores / scores.sum(axis=1, keepdims=True)  # type: ignore[valid-type]
    return found


def fit(model: Model, readings: Readings, labels: Labels, steps: int = 20, rate: float = 0.3) -> Model:  # type: ignore[valid-type]
    model = {name: array.astype(np.float64) for name, array in model.items()}
    for _ in range(steps):
        wrong = chances(model, readings) - np.eye(KINDS)[labels]
        model["weights"] -= rate * readings.T @ wrong / len(labels)  # type: ignore[attr-defined]
        model["bias"] -= rate * wrong.mean(axis=0)
    return {name: array.astype(np.float32) for name, array in model.items()}


def accuracy(model: Model, readings: Readings, labels: Labels) -> float:  # type: ignore[valid-type]
    return float((chances(model, readings).argmax(axis=1) == labels).mean())  # type: ignore[attr-defined]
