"""Where a picture is drawn: panels of a new figure, or the axes that somebody gave; and what is written around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mosha.core.canvas import find_wishes
from mosha.pictures.figure import begin_figure, let_chinese_show, write_footer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["begin_panels", "frame_picture"]

INSIDE = 0.9
"""The part of given axes that several panels fill from below: the rest is for their common title."""

GAP = 0.3
"""The part of a panel that is left free for its own names."""


def begin_panels(width: float, height: float, *, down: int = 1, across: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure, and its panels from left to right and from above.

    Guarantee:
        Where axes were given, nothing is drawn outside of them: one panel is these axes, several stand inside.

    Args:
        width: of a new figure, in inches.
        height: the same.
        down: so many panels, one below the other.
        across: so many beside each other.

    >>> figure, panels = begin_panels(5, 4, down=2)
    >>> len(panels)
    2
    """
    given = cast("Axes | None", find_wishes().ax)
    if given is None:
        figure: Figure = begin_figure(width, height)
        return figure, [figure.add_subplot(down, across, place + 1) for place in range(down * across)]
    if down * across == 1:
        return cast("Figure", given.figure), [given]
    given.set_axis_off()
    wide, high = 1 / across, INSIDE / down
    panels = []
    for place in range(down * across):
        left, above = place % across * wide, INSIDE - (place // across + 1) * high
        panels.append(given.inset_axes((left + GAP / 2 * wide, above, (1 - GAP / 2) * wide, (1 - GAP) * high)))
    return cast("Figure", given.figure), panels


def frame_picture(
    figure: Figure, panels: Sequence[Axes], *, title: str, footer: str = "", labels: str = "", above: bool = False
) -> None:
    """The title above and the line beneath: those that are wanted, or else these.

    Args:
        figure: where the panels are.
        panels: all of them.
        title: what stands above.
        footer: the small line beneath, which axes that were given do not get.
        labels: other texts of the picture, for which a font may be missing.
        above: whether the title stands above what a single panel says of itself.

    >>> figure, panels = begin_panels(5, 4)
    >>> frame_picture(figure, panels, title="Visits")
    >>> panels[0].get_title(loc="left")
    'Visits'
    """
    wishes = find_wishes()
    title = title if wishes.title is None else wishes.title
    if len(panels) == 1 and not above:
        panels[0].set_title("", loc="center")
        panels[0].set_title(title, loc="left", fontweight="bold")
    elif wishes.ax is not None:
        cast("Axes", wishes.ax).set_title(title, loc="left", fontweight="bold")
    elif title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    if wishes.ax is not None:
        let_chinese_show(cast("Axes", wishes.ax))
    footer = wishes.footer or footer
    if wishes.ax is None and footer:
        write_footer(figure, footer, labels=title + labels)
    figure.is_framed = True  # type: ignore[attr-defined]  # whoever asked for a title has it
