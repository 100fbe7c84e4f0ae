"""Pictures of answers with their error bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.extras import load_guest
from mosha.core.language import phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_bars", "make_drawing"]


def make_drawing(title: str, labels: tuple[object, ...] | None) -> Callable[[ArrayLike, ArrayLike | None], Figure]:
    """What `Measurement.draw` wants: (answer, error at 95%) -> a figure."""

    def draw(answer: ArrayLike, error: ArrayLike | None) -> Figure:
        return draw_bars(answer, error, title=title, labels=labels)

    return draw


def draw_bars(answer: ArrayLike, error: ArrayLike | None, *, title: str, labels: tuple[object, ...] | None) -> Figure:
    """Bars for the coordinates of an answer, or one dot for a single number, each with its error bar.

    Needs the extra `plot`. Nothing is shown or saved: that is for the caller to do with the figure.
    """
    figures = load_guest("matplotlib.figure", extra="plot", needed_for=phrase("mechanisms.picture"))
    heights = np.atleast_1d(np.asarray(answer, np.float64))
    widths = None if error is None else np.broadcast_to(np.asarray(error, np.float64), heights.shape)
    figure: Figure = figures.Figure(figsize=(max(3.0, min(12.0, 1.2 + 0.5 * heights.size)), 3.2), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(heights.size)
    if labels is None:
        axes.errorbar(places, heights, yerr=widths, fmt="o", capsize=6)
        axes.set_xticks([])
    else:
        axes.bar(places, heights, yerr=widths, capsize=3, color="#7d9fb5", ecolor="#333333")
        axes.set_xticks(places, [str(label) for label in labels], rotation=45 if heights.size > 6 else 0)
    axes.set_title(title if error is None else f"{title} (bars: 95% of the noise)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
