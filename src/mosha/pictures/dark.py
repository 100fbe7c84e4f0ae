"""The dark look: the same picture on dark paper, whatever is drawn in it."""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import ColorType

__all__ = ["PAPER", "darken", "is_dark"]

PAPER = "#161b22"
GREY = 0.3
"""Colors of less saturation are ink, grids and paper, which change places; others keep their hue and grow lighter."""

DEEPEST, LIGHTEST, CLEAR, FAINT = 0.11, 0.93, 0.62, 0.45


def is_dark(color: ColorType) -> bool:
    """Whether a color of matplotlib is dark, as paper.

    >>> is_dark("black"), is_dark("white")
    (True, False)
    """
    from matplotlib.colors import to_rgba  # noqa: PLC0415  (an extra)

    red, green, blue, _ = to_rgba(color)
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


def darken(figure: Figure) -> Figure:
    """The same figure on dark paper, for dark pages and slides; its heat maps stay as they are.

    Args:
        figure: any picture of Mosha; it is changed itself.

    >>> from mosha.pictures import darken, draw_band
    >>> is_dark(darken(draw_band([3, 5, 4], 1.0)).get_facecolor())
    True
    """
    from matplotlib.collections import Collection  # noqa: PLC0415  (an extra)
    from matplotlib.colors import to_rgba_array  # noqa: PLC0415
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415
    from matplotlib.text import Text  # noqa: PLC0415

    if is_dark(figure.get_facecolor()):
        return figure
    on_images = {id(text) for axes in figure.axes if axes.images for text in axes.texts}
    for part in figure.findobj():
        if isinstance(part, Text) and id(part) not in on_images:
            part.set_color(_turn(part.get_color()))
        elif isinstance(part, Line2D):
            part.set_color(_turn(part.get_color()))
            part.set_markerfacecolor(_turn(part.get_markerfacecolor()))
            part.set_markeredgecolor(_turn(part.get_markeredgecolor()))
        elif isinstance(part, Patch):
            face, edge = part.get_facecolor(), part.get_edgecolor()
            part.set_facecolor(_turn(face))
            part.set_edgecolor(_turn(edge))
        elif isinstance(part, Collection) and part.get_array() is None:
            part.set_facecolor([_turn(tuple(each)) for each in to_rgba_array(part.get_facecolor())])
            part.set_edgecolor([_turn(tuple(each)) for each in to_rgba_array(part.get_edgecolor())])
    for axes in figure.axes:
        _turn_axes(axes)
    figure.set_facecolor(PAPER)
    return figure


def _turn_axes(axes: Axes) -> None:
    """The paper of axes, and ticks that are drawn later."""
    axes.set_facecolor(PAPER)
    for name in ("x", "y"):
        axis = getattr(axes, f"{name}axis")
        lines, labels = axis.get_ticklines(), axis.get_ticklabels()
        if lines and labels:
            axes.tick_params(axis=name, which="both", color=lines[0].get_color(), labelcolor=labels[0].get_color())


def _turn(color: ColorType) -> ColorType:
    """A color of light paper as it is on dark paper; what has none stays so."""
    from matplotlib.colors import to_rgba  # noqa: PLC0415

    if isinstance(color, str) and color in {"none", "auto", ""}:
        return color
    red, green, blue, alpha = to_rgba(color)
    if not alpha:
        return "none"
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < GREY or light > LIGHTEST:
        turned = colorsys.hls_to_rgb(hue, LIGHTEST - (LIGHTEST - DEEPEST) * light, saturation / 2)
    else:
        turned = colorsys.hls_to_rgb(hue, CLEAR if light < CLEAR else FAINT, saturation)
    return (*turned, alpha)
