"""Pictures of answers with their error bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.language import say
from mosha.pictures.curves import draw_with
from mosha.pictures.figure import LINE, name_in_words
from mosha.pictures.grouped import draw_panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    heights = np.atleast_1d(np.asarray(answer, np.float64))
    widths = None if error is None else np.broadcast_to(np.asarray(error, np.float64), heights.shape)

    def paint(axes: Axes) -> None:
        if labels is None:
            axes.errorbar(np.arange(heights.size), heights, yerr=widths, fmt="o", capsize=6, color=LINE)
            axes.set_xticks([])
        else:
            bars = None if widths is None else widths.tolist()
            draw_panel(axes, [str(label) for label in labels], heights.tolist(), bars)

    said, bars = name_in_words(title), "" if error is None else f" ({say('tables.picture_bars')})"
    size = (max(5.0, min(12.0, 1.2 + 0.5 * heights.size)), 3.4)
    return draw_with(paint, title=f"{said}{bars}", size=size)
