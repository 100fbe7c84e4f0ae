"""Pictures of trainings: what accuracy cost how much, one curve for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.pictures.figure import begin_figure, style_axes, use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MeasuredRound", "MeasuredTraining", "accuracy_against_epsilon"]


class MeasuredRound(Protocol):
    """A round, as far as a picture needs it."""

    @property
    def epsilon(self) -> float | None: ...

    @property
    def metrics(self) -> Any: ...


class MeasuredTraining(Protocol):
    """A training, as far as a picture needs it: `History` is one."""

    name: str

    @property
    def rounds(self) -> Sequence[MeasuredRound]: ...


def accuracy_against_epsilon(histories: Sequence[MeasuredTraining], *, metric: str | None = None) -> Figure:
    """One figure with a curve for each history: its metric against what had been paid by then.

    Args:
        histories: trainings whose rounds have metrics; central, client-side and distributed ones side by side.
        metric: what to call it, and which one where the metrics are dictionaries.

    >>> accuracy_against_epsilon([])
    Traceback (most recent call last):
    mosha.core.errors.InvalidParameter: ...
    """
    if not isinstance(histories, Sequence) or not histories or not all(hasattr(h, "rounds") for h in histories):
        raise InvalidParameter("federated.picture_without_histories", parameter="histories")
    curves = [
        (h.name, [(r.epsilon, _value(r.metrics, metric)) for r in h.rounds if r.metrics is not None]) for h in histories
    ]
    if not any(points for _, points in curves):
        raise InvalidParameter("federated.picture_without_metrics")
    with use_style():
        figure: Figure = begin_figure(7, 4.5)
        axes = figure.subplots()
        for name, points in curves:
            private = [(epsilon, value) for epsilon, value in points if epsilon is not None]
            if private:
                axes.plot(*zip(*private, strict=True), marker=".", label=name)
            elif points:
                axes.axhline(points[-1][1], linestyle="--", color="grey", label=say("federated.no_price", name=name))
        style_axes(axes)
        axes.set_xlabel(say("federated.epsilon_so_far"))
        axes.set_ylabel(metric or say("federated.metric"))
        axes.legend(frameon=False)
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
