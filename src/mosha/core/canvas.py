"""What somebody wants of a picture, on its way to whatever draws it: axes of their own, a title, a unit, a language."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, keep_language, set_language

__all__ = ["Wishes", "draw_as_asked", "find_wishes"]


@dataclass(frozen=True)
class Wishes:
    """Axes `ax` to draw on, a `title` above, the `unit` on the axis, a `footer` beneath; None is left to the drawing.

    >>> Wishes(title="Visits").unit is None
    True
    """

    ax: object | None = None
    title: str | None = None
    unit: str | None = None
    footer: str | None = None


_WISHES: ContextVar[Wishes] = ContextVar("_WISHES", default=Wishes())  # noqa: B039  (frozen)


def find_wishes() -> Wishes:
    """What is wanted of the picture that is drawn now.

    >>> find_wishes().title is None
    True
    """
    return _WISHES.get()


def draw_as_asked(
    draw: Callable[[], Any], *, ax: object | None = None, title: str | None = None, unit: str | None = None,
    lang: Language | None = None, footer: Callable[[], str] | None = None,
) -> Any:  # fmt: skip
    """The figure that `draw` makes, with what is wanted of it; the chosen language is the same before and after.

    Args:
        draw: makes the figure.
        ax: axes of matplotlib to draw on, in place of a figure of its own; then there is no footer.
        title: what stands above.
        unit: what the numbers are counted in, on the axis.
        lang: "en" or "zh"; the chosen language where it is left out.
        footer: the line beneath, in the language that is chosen inside.

    >>> draw_as_asked(lambda: find_wishes().title, title="Visits")
    'Visits'
    """
    for name, text in (("title", title), ("unit", unit)):
        if text is not None and not isinstance(text, str):
            raise InvalidParameter("core.picture_text", parameter=name)
    if ax is not None and not hasattr(ax, "set_title"):
        raise InvalidParameter("core.no_axes", parameter="ax")
    with keep_language():
        if lang is not None:
            set_language(lang)
        token = _WISHES.set(Wishes(ax, title, unit, footer() if footer is not None else None))
        try:
            drawn = draw()
        finally:
            _WISHES.reset(token)
        if ax is not None and drawn is not getattr(ax, "figure", None):
            raise InvalidParameter("core.picture_of_its_own", parameter="ax")
        if ax is None and hasattr(drawn, "add_labels"):  # a drawing of a user's own may be any figure
            drawn.add_labels(title=title, unit=unit, footer=footer() if footer is not None else "")
    return drawn
