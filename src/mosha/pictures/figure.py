"""A figure that shows in a notebook, with fonts that hold Chinese, and the footer that says what was promised."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mosha.core.language import is_known, phrase, say
from mosha.core.names.extras import load_guest
from mosha.pictures.dark import darken, is_dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BAND",
    "INK",
    "LINE",
    "PALE",
    "WARM",
    "begin_figure",
    "has_chinese_font",
    "let_chinese_show",
    "name_in_words",
    "style_axes",
    "use_style",
    "write_footer",
]

LINE, BAND, INK, PALE = "#2f6f8f", "#8fb8cc", "#1c2430", "#5b6675"
WARM = "#c2703d"
"""A second line beside the first."""

LIGHT = dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white") | dict.fromkeys(
    ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
)
"""What a style that somebody has chosen for matplotlib may have changed; it is drawn in light, and then darkened."""

_DARK: ContextVar[bool | None] = ContextVar("_DARK", default=None)

CHINESE = re.compile(r"[\u2e80-\u9fff\uff00-\uffee]+")

LETTERS = 19
"""Letters of the footer in an inch of the figure."""

CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "SimHei", "Heiti SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Sans CJK JP",
    "Arial Unicode MS",
)  # fmt: skip


@cache
def _find_fonts() -> tuple[str, ...]:
    """The Chinese fonts that this machine has, best first.

    matplotlib remembers which fonts there were when it was first used: those that came later are looked for.
    """
    manager = load_guest("matplotlib.font_manager", extra="plot", needed_for=phrase("mechanisms.picture"))
    logging.getLogger(manager.__name__).addFilter(_tells_more_than_a_lack_of_bold)
    found = _list_chinese_fonts(manager)
    if not found:  # matplotlib keeps a list of fonts; one that was installed after it was made is not in it
        known = {font.fname for font in manager.fontManager.ttflist}
        for path in sorted(set(manager.findSystemFonts()) - known):
            with contextlib.suppress(Exception):  # a file that is no font
                manager.fontManager.addfont(path)
        found = _list_chinese_fonts(manager)
    return found


def _tells_more_than_a_lack_of_bold(record: logging.LogRecord) -> bool:
    """Chinese fonts without a bold face are drawn plain, which nobody needs to be told in every cell."""
    lacks = str(record.msg).startswith("findfont: Failed to find font weight")
    return not (lacks and any(font in record.getMessage() for font in CHINESE_FONTS))


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
    token = _DARK.set(_has_dark_style())
    colors = guest.cycler(color=[LINE, WARM, "#5f8f3e", "#7a5aa6", "#b08a2e", "#5b6675"])
    try:
        with guest.rc_context(settings | {"axes.unicode_minus": False, "axes.prop_cycle": colors} | LIGHT):
            yield
    finally:
        _DARK.reset(token)


def _has_dark_style() -> bool:
    """Whether matplotlib's own style is dark, outside of this one."""
    guest = load_guest("matplotlib", extra="plot", needed_for=phrase("mechanisms.picture"))
    inside = _DARK.get()
    return is_dark(guest.rcParams["figure.facecolor"]) if inside is None else inside


_TURNED = ".mosha-picture{filter:invert(.9) hue-rotate(180deg)}"
PAGE = (
    f"@media (prefers-color-scheme:dark){{{_TURNED}}}[data-jp-theme-light=true] .mosha-picture{{filter:none}}"
    + "".join(f"{where} {_TURNED}" for where in ("[data-jp-theme-light=false]", ".vscode-dark", "[theme=dark]"))
    + ".vscode-light .mosha-picture{filter:none}@media print{.mosha-picture{filter:none!important}}"
)
"""What a page says of pictures that it shows: on a dark one light becomes dark, as in the cards of other objects."""


@cache
def _figure_class() -> Any:
    figures = load_guest("matplotlib.figure", extra="plot", needed_for=phrase("mechanisms.picture"))
    plain: Any = figures.Figure

    class Picture(plain):  # type: ignore[misc]  # a guest without types
        """A figure that a notebook shows as it is, whatever backend is chosen."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            with use_style():
                self.savefig(buffer, format="png", dpi=144)
            return buffer.getvalue()

        def _repr_html_(self) -> str:
            """The same in HTML: on a dark page light and dark change places, and hues stay."""
            data, wide = base64.b64encode(self._repr_png_()).decode("ascii"), round(96 * self.get_figwidth())
            titles = [axes.get_title(loc="left") for axes in self.axes]
            said = escape(" ".join(text for text in (self.get_suptitle(), *titles) if text))
            dark = "" if is_dark(self.get_facecolor()) else "mosha-picture"
            return (
                f'<style>{PAGE}</style><img class="{dark}" alt="{said}" style="width:{wide}px;max-width:100%" '
                f'src="data:image/png;base64,{data}">'
            )

        def add_labels(self, *, title: str | None, unit: str | None, footer: str) -> None:
            """A title, what the numbers are counted in, and the small line beneath, on a picture that is drawn."""
            _add_labels(self, title=title, unit=unit, footer=footer)

        def savefig(self, *arguments: Any, **named: Any) -> None:
            """Written as matplotlib does; dark where its style is (`plt.style.use("dark_background")`)."""
            if self._follows_dark_style:
                darken(self)
            if not has_chinese_font():
                _number_chinese(self, self.axes)
            super().savefig(*arguments, **{"facecolor": self.get_facecolor()} | named)

    return Picture


def _add_labels(figure: Any, *, title: str | None, unit: str | None, footer: str) -> None:
    """What is wanted of a picture that knows nothing of it: one that somebody else draws on a figure of ours."""
    if getattr(figure, "is_framed", False) or not figure.axes:
        return
    with use_style():
        first = figure.axes[0]
        if title is not None:
            first.set_title("", loc="center")
            first.set_title(title, loc="left", fontweight="bold")
        if unit is not None:
            first.set_ylabel(unit)
        if not figure.get_supxlabel():
            write_footer(figure, footer, labels=(title or "") + (unit or ""))


def let_chinese_show(axes: Axes) -> None:
    """Axes that somebody gave have fonts of their own: Chinese texts on them get one that has Chinese, or numbers."""
    fonts = _find_fonts()
    if not fonts:
        _number_chinese(axes, [axes, *axes.child_axes])
    texts = axes.findobj(load_guest("matplotlib.text", extra="plot", needed_for=phrase("mechanisms.picture")).Text)
    for text in texts:
        if CHINESE.search(text.get_text()):
            text.set_fontfamily([*text.get_fontfamily(), *fonts])


def _number_chinese(part: Any, all_axes: Sequence[Any]) -> None:
    """Chinese texts as numbers, each its own, where no font could draw them: boxes would all be alike."""
    texts = part.findobj(load_guest("matplotlib.text", extra="plot", needed_for=phrase("mechanisms.picture")).Text)
    numbers: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        return f"[{numbers.setdefault(found.group(), len(numbers) + 1)}]"

    for axis in (axis for axes in all_axes for axis in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if any(CHINESE.search(label) for label in labels):
            axis.set_ticks(axis.get_ticklocs(), [CHINESE.sub(name, label) for label in labels])
    for text in texts:
        text.set_text(CHINESE.sub(name, text.get_text()))


def name_in_words(title: str) -> str:
    """What a picture calls a statistic or an axis, in the language chosen now; what is no word of ours stays as it is.

    >>> name_in_words("EdgeCount, Laplace noise"), name_in_words("my own")
    ('edges, Laplace noise', 'my own')
    """
    codes = {part: f"core.title_{re.sub(r'[^a-z]+', '_', part.lower())}" for part in title.split(", ")}
    return say("core.title_join").join(say(code) if is_known(code) else part for part, code in codes.items())


def begin_figure(width: float, height: float) -> Any:
    """An empty figure, `width` by `height` inches.

    >>> begin_figure(4, 3).get_size_inches().tolist()
    [4.0, 3.0]
    """
    load_guest("matplotlib.figure", extra="plot", needed_for=phrase("mechanisms.picture"))
    figure = _figure_class()(figsize=(width, height), layout="constrained", facecolor="white")
    figure._follows_dark_style = _has_dark_style()  # noqa: SLF001
    return figure


def style_axes(axes: Axes) -> None:
    """No frame above and to the right; a light grid behind; thousands with a comma."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#d9dee6", linewidth=0.6)
    axes.set_axisbelow(True)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")


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
    missing = CHINESE.search(labels + text) is not None and not has_chinese_font()
    said = say("mechanisms.no_chinese_font", "en") if missing else text
    said = "\n".join(_break_line(line, int(figure.get_figwidth() * LETTERS)) for line in said.split("\n"))
    figure.supxlabel(said, x=0.01, ha="left", fontsize=7, color=PALE)
