"""Pictures of trainings: what accuracy cost how much, one curve for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mosha.core.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from mosha.federated.training import History

__all__ = ["accuracy_against_epsilon"]


def accuracy_against_epsilon(histories: Sequence[History], *, metric: str | None = None) -> Any:
    """One figure with a curve for each history: its metric against what had been paid by then.

    Args:
        histories: trainings whose rounds have metrics; central, client-side and distributed ones side by side.
        metric: what to call it, and which one where the metrics are dictionaries.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingExtra("plot", needed_for="a picture of a training") from None
    if not isinstance(histories, Sequence) or not histories or not all(hasattr(h, "rounds") for h in histories):
        raise InvalidParameter("federated.picture_without_histories", parameter="histories")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    drawn = 0
    for history in histories:
        points = [(r.epsilon, _value(r.metrics, metric)) for r in history.rounds if r.metrics is not None]
        private = [(epsilon, value) for epsilon, value in points if epsilon is not None]
        drawn += len(points)
        if private:
            axes.plot(*zip(*private, strict=True), marker=".", label=history.name)
        elif points:
            axes.axhline(points[-1][1], linestyle="--", color="grey", label=f"{history.name} (no price)")
    if not drawn:
        raise InvalidParameter("federated.picture_without_metrics")
    axes.set_xlabel("epsilon paid so far")
    axes.set_ylabel(metric or "metric")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _value(metrics: Any, metric: str | None) -> float:
    try:
        if isinstance(metrics, dict):
            return float(next(iter(metrics.values())) if metric is None else metrics[metric])
        return float(metrics)
    except (KeyError, StopIteration, TypeError, ValueError):
        raise InvalidParameter(
            "federated.picture_of_unknown_metric", parameter="metric", metric=metric or "metric"
        ) from None
