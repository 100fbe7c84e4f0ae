"""Pictures of trainings: what accuracy cost how much, one curve for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, say
from mosha.pictures.curves import draw_with

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mosha.core.release import Receipt

__all__ = ["MeasuredRound", "MeasuredTraining", "accuracy_against_epsilon"]


class MeasuredRound(Protocol):
    """A round, as far as a picture needs it."""

    @property
    def epsilon(self) -> float | None: ...

    @property
    def metrics(self) -> Any: ...

    @property
    def receipt(self) -> Receipt | None: ...


class MeasuredTraining(Protocol):
    """A training, as far as a picture needs it: `History` is one."""

    name: str

    @property
    def rounds(self) -> Sequence[MeasuredRound]: ...


def accuracy_against_epsilon(
    histories: Sequence[MeasuredTraining], *, metric: str | None = None, ax: object | None = None,
    title: str | None = None, unit: str | None = None, lang: Language | None = None,
) -> Figure:  # fmt: skip
    """One figure with a curve for each history: its metric against what had been paid by then.

    Args:
        histories: trainings whose rounds have metrics; central, client-side and distributed ones side by side.
        metric: what to call it, and which one where the metrics are dictionaries.
        ax: axes of matplotlib to draw on.
        title: what stands above.
        unit: what the metric is counted in.
        lang: "en" or "zh"; the chosen language where it is left out.

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

    def paint(axes: Axes) -> None:
        for name, points in curves:
            private = [(epsilon, value) for epsilon, value in points if epsilon is not None]
            if private:
                axes.plot(*zip(*private, strict=True), marker=".", label=name)
            elif points:
                axes.axhline(points[-1][1], linestyle="--", color="grey", label=say("federated.no_price", name=name))
        axes.legend(frameon=False)

    def draw() -> Figure:
        words: Any = {"across": say("federated.epsilon_so_far"), "up": metric or say("federated.metric")}
        return draw_with(paint, title=say("federated.picture_title"), size=(7, 4.5), **words)

    receipts = [h.rounds[-1].receipt for h in histories if h.rounds]
    footer = receipts[0].write_footer if len(receipts) == 1 and receipts[0] is not None else None
    return cast("Figure", draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang, footer=footer))


def _value(metrics: Any, metric: str | None) -> float:
    try:
        if isinstance(metrics, dict):
            return float(next(iter(metrics.values())) if metric is None else metrics[metric])
        return float(metrics)
    except (KeyError, StopIteration, TypeError, ValueError):
        raise InvalidParameter(
            "federated.picture_of_unknown_metric", parameter="metric", metric=metric or "metric"
        ) from None
