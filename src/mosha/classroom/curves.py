"""Pictures of the classroom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosha.classroom.windows import Composition
from mosha.core.language import say
from mosha.pictures.figure import begin_figure, style_axes, use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_compositions"]

_RULES = ("basic", "advanced", "renyi", "tight")


def draw_compositions(rows: Sequence[Composition], *, epsilon: float, delta: float) -> Figure:
    """The epsilon of all questions against their number, one curve for each rule, on logarithmic axes."""
    with use_style():
        figure: Figure = begin_figure(6.4, 4.2)
        axes = figure.add_subplot()
        for rule in _RULES:
            axes.plot(
                [row.questions for row in rows],
                [getattr(row, rule) for row in rows],
                marker="o",
                markersize=3,
                label=say(f"classroom.column_{rule}"),
            )
        axes.set(xscale="log", yscale="log", title=say("classroom.curves_title", epsilon=epsilon, delta=delta))
        axes.set_xlabel(say("classroom.column_questions"))
        axes.set_ylabel(say("classroom.curves_total"))
        axes.legend(frameon=False)
        style_axes(axes)
    return figure
