"""Pictures of answers with their error bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.language import say
from mosha.pictures.figure import INK, LINE, begin_figure, name_in_words, style_axes, use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_bars", "make_drawing"]

MOST_LABELS = 40


def make_drawing(title: str, labels: tuple[object, ...] | None) -> Callable[[ArrayLike, ArrayLike | None], Figure]:
    """What `Measurement.draw` wants: (answer, error at 95%) -> a figure."""

    def draw(answer: ArrayLike, error: ArrayLike | None) -> Figure:
        return draw_bars(answer, error, title=title, labels=labels)

    return draw


def draw_bars(answer: ArrayLike, error: ArrayLike | None, *, title: str, labels: tuple[object, ...] | None) -> Figure:
    """Bars for the coordinates of an answer, or one dot for a single number, each with its error bar.

    Needs the extra `plot`. Nothing is shown or saved: that is for the caller to do with the figure.
    """
    heights = np.atleast_1d(np.asarray(answer, np.float64))
    widths = None if error is None else np.broadcast_to(np.asarray(error, np.float64), heights.shape)
    places = np.arange(heights.size)
    with use_style():
        figure: Figure = begin_figure(max(5.0, min(12.0, 1.2 + 0.5 * heights.size)), 3.2)
        axes = figure.add_subplot()
        if labels is None:
            axes.errorbar(places, heights, yerr=widths, fmt="o", capsize=6, color=LINE)
            axes.set_xticks([])
        else:
            axes.bar(places, heights, yerr=widths, capsize=3, color=LINE, alpha=0.85, ecolor=INK)
            ticks = places[:: max(1, -(-heights.size // MOST_LABELS))]
            axes.set_xticks(ticks, [str(labels[i]) for i in ticks], rotation=45 if heights.size > 6 else 0)
        said, bars = name_in_words(title), "" if error is None else f" ({say('tables.picture_bars')})"
        axes.set_title(f"{said}{bars}", loc="left", fontsize=10)
        style_axes(axes)
    return figure
