"""A figure that shows in a notebook, with fonts that hold Chinese, and the footer that says what was promised."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mosha.core.language import phrase, say
from mosha.core.names.extras import load_guest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BAND", "INK", "LINE", "begin_figure", "has_chinese_font", "style_axes", "use_style", "write_footer"]

LINE, BAND, INK = "#2f6f8f", "#8fb8cc", "#1c2430"
LETTERS = 19
"""Letters of the footer in an inch of the figure."""

CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "SimHei", "Heiti SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Sans CJK JP",
    "Arial Unicode MS",
)  # fmt: skip


@cache
def _find_fonts() -> tuple[str, ...]:
    """The Chinese fonts that this machine has, best first."""
    manager = load_guest("matplotlib.font_manager", extra="plot", needed_for=phrase("mechanisms.picture"))
    found = _list_chinese_fonts(manager)
    if not found:  # matplotlib keeps a list of fonts; one that was installed after it was made is not in it
        known = {font.fname for font in manager.fontManager.ttflist}
        for path in sorted(set(manager.findSystemFonts()) - known):
            with contextlib.suppress(Exception):  # a file that is no font
                manager.fontManager.addfont(path)
        found = _list_chinese_fonts(manager)
    return found


def _list_chinese_fonts(manager: ModuleType) -> tuple[str, ...]:
    installed = {font.name for font in manager.fontManager.ttflist}
    return tuple(name for name in CHINESE_FONTS if name in installed)


def has_chinese_font() -> bool:
    """Whether Chinese labels can be drawn here."""
    return bool(_find_fonts())


@contextlib.contextmanager
def use_style() -> Iterator[None]:
    """Fonts and sizes for whatever is drawn inside; the settings of the process stay as they were."""
    guest = load_guest("matplotlib", extra="plot", needed_for=phrase("mechanisms.picture"))
    settings = {"font.family": ["DejaVu Sans", *_find_fonts()], "font.size": 9, "axes.titlesize": 11}
    with guest.rc_context(settings | {"axes.unicode_minus": False, "text.color": INK}):
        yield


@cache
def _figure_class() -> Any:
    figures = load_guest("matplotlib.figure", extra="plot", needed_for=phrase("mechanisms.picture"))
    plain: Any = figures.Figure

    class Picture(plain):  # type: ignore[misc]  # a guest without types
        """A figure that a notebook shows as it is, whatever backend is chosen."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            with use_style():
                self.savefig(buffer, format="png", dpi=144, facecolor="white")
            return buffer.getvalue()

    return Picture


def begin_figure(width: float, height: float) -> Any:
    """An empty figure, `width` by `height` inches.

    >>> begin_figure(4, 3).get_size_inches().tolist()
    [4.0, 3.0]
    """
    load_guest("matplotlib.figure", extra="plot", needed_for=phrase("mechanisms.picture"))
    return _figure_class()(figsize=(width, height), layout="constrained", facecolor="white")


def style_axes(axes: Axes) -> None:
    """No frame above and to the right; a light grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#d9dee6", linewidth=0.6)
    axes.set_axisbelow(True)


def _break_line(text: str, most: int) -> str:
    """A line in pieces of at most so many letters, of which Chinese ones count twice."""
    lines, line, width = [], "", 0
    for word in re.findall(r"[\u2e80-\uffee]|[^\s\u2e80-\uffee]+\s*|\s+", text):
        size = sum(2 if letter > "\u2e80" else 1 for letter in word)
        if width + size > most and line:
            lines.append(line.rstrip())
            line, width = "", 0
        line, width = line + word, width + size
    return "\n".join([*lines, line])


def write_footer(figure: Figure, text: str, *, labels: str = "") -> None:
    """One small line of `text` beneath `figure`; where it or `labels` are Chinese and no font has it, how to get one.

    >>> figure = begin_figure(4, 3)
    >>> write_footer(figure, "epsilon 1")
    """
    missing = any("\u2e80" <= letter <= "\u9fff" for letter in labels + text) and not has_chinese_font()
    said = f"{text}\n{say('mechanisms.no_chinese_font', 'en')}" if missing else text
    said = "\n".join(_break_line(line, int(figure.get_figwidth() * LETTERS)) for line in said.split("\n"))
    figure.supxlabel(said, x=0.01, ha="left", fontsize=7, color="#5b6675")
