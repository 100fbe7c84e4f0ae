"""How objects show themselves: one card, written as plain text for terminals and as HTML for notebooks."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from mosha.core.language import say
from mosha.core.names.attributes import explain_attribute

__all__ = [
    "MISSING",
    "Bar",
    "BarsAhead",
    "Card",
    "Prose",
    "Shown",
    "digits_of",
    "draw_bars",
    "escape_markdown",
    "find_widest",
    "make_list_card",
    "make_value_card",
    "summarize_value",
    "write_number",
]

MISSING = "\N{EN DASH}"
"""In place of what is no number."""

MOST_LINES = 40
"""Lines of a table that are shown; the rest is counted."""

STYLE = (
    ".mosha-card{--mosha-fill:#2f6f8f;--mosha-whisker:#1c2430}"
    "@media (prefers-color-scheme:dark){.mosha-card{--mosha-fill:#6fb3d2;--mosha-whisker:#e6eaf0}}"
    "[data-jp-theme-light=true] .mosha-card{--mosha-fill:#2f6f8f;--mosha-whisker:#1c2430}"
    "[data-jp-theme-light=false] .mosha-card,.vscode-dark .mosha-card,[theme=dark] .mosha-card"
    "{--mosha-fill:#6fb3d2;--mosha-whisker:#e6eaf0}"
)
_BOX = (
    "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;max-width:60em;line-height:1.5;"
    "overflow-x:auto"
)
_DIM = "opacity:.7"
_CELL = "padding:2px 14px 2px 0;text-align:left;border:0;background:none"
_NUMBER = "padding:2px 14px 2px 0;text-align:right;border:0;background:none;font-variant-numeric:tabular-nums"
_TRACK = "display:inline-block;position:relative;height:.75em;background:rgba(128,128,128,.18);border-radius:3px"


def digits_of(error: float | None) -> int | None:
    """How many decimals a number deserves whose error bar is `error`: two digits of the bar; None if there is no bar.

    >>> [digits_of(error) for error in (36.2, 4.21, 0.0123, 88_512)]
    [0, 1, 3, -3]
    """
    if error is None or not math.isfinite(error) or error <= 0:
        return None
    return 1 - math.floor(math.log10(error))


def write_number(value: object, error: float | None = None, *, whole: bool = False) -> str:
    """A number with as many digits as its error bar supports, and no decimals where it counts something.

    >>> write_number(2735.80464172, 36.2), write_number(3.14159, 0.02), write_number(7.4, 0.5, whole=True)
    ('2,736', '3.142', '7')
    """
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return MISSING if value is None else str(value)
    if not math.isfinite(value):
        return MISSING
    if whole or isinstance(value, int):
        return f"{round(value):,}"
    digits = digits_of(error)
    if digits is None:
        return f"{value:z,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{round(value, min(digits, 12)):z,.{min(max(digits, 0), 12)}f}"  # z: a zero has no sign


@dataclass(frozen=True)
class Bar:
    """A number as a bar in a cell: from 0 to `value`, with a whisker of `error`; `least` and `most` are the ends."""

    value: float
    error: float
    least: float
    most: float

    def write_html(self) -> str:
        span = self.most - self.least
        if not (span > 0 and math.isfinite(span) and math.isfinite(self.value)):
            return ""
        low, high = sorted((self._place(0.0), self._place(self.value)))
        marks = _box(low, high, "top:0;height:100%;background:var(--mosha-fill);opacity:.8;border-radius:3px")
        if math.isfinite(self.error):
            left, right = self._place(self.value - self.error), self._place(self.value + self.error)
            marks += _box(left, right, "top:45%;height:10%;min-height:1px;background:var(--mosha-whisker)")
        return f'<span style="{_TRACK};width:12em">{marks}</span>'

    def _place(self, at: float) -> float:
        """Where a value lies between the ends, in percent."""
        return 100 * min(max((at - self.least) / (self.most - self.least), 0.0), 1.0)


def draw_bars(numbers: Sequence[float], errors: Sequence[float]) -> list[Bar]:
    """A bar for each number, all on one scale."""
    ends = [0.0]
    for number, error in zip(numbers, errors, strict=True):
        if math.isfinite(number):
            ends += [number, *((number - error, number + error) if math.isfinite(error) else ())]
    return [Bar(number, error, min(ends), max(ends)) for number, error in zip(numbers, errors, strict=True)]


def _box(left: float, right: float, style: str) -> str:
    return f'<span style="position:absolute;left:{left:.1f}%;width:{right - left:.1f}%;{style}"></span>'


@dataclass(frozen=True, kw_only=True)
class Card:
    """What an object says of itself: a title, facts, gauges, a table and notes. Public words alone.

    Fields:
        title: what it is.
        facts: names and values.
        gauges: a name, the share that is used (0 to 1) and a text.
        heads: of the table.
        lines: of the table: texts, with a `Bar` where one is drawn (HTML alone).
        numbers: how many of the first columns are no numbers.
        notes: sentences beneath.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    gauges: Sequence[tuple[str, float, str]] = ()
    heads: Sequence[str] = ()
    lines: Sequence[Sequence[str | Bar]] = ()
    numbers: int = 1
    notes: Sequence[str] = ()

    def write_text(self) -> str:
        """For terminals."""
        parts = [self.title, *(f"  {name}: {value}" if name else f"  {value}" for name, value in self.facts)]
        for name, share, text in self.gauges:
            full = round(20 * min(max(share, 0.0), 1.0))
            parts.append(f"  {name}  [{'#' * full}{'.' * (20 - full)}]  {text}")
        parts += self._write_lines()
        return "\n".join([*parts, *self.notes])

    def _write_lines(self) -> list[str]:
        shown = [[cell for cell in line if isinstance(cell, str)] for line in self.lines[:MOST_LINES]]
        if not shown:
            return []
        drawn = [isinstance(cell, Bar) for cell in self.lines[0]]
        heads = [head for head, picture in zip(self.heads, drawn, strict=False) if not picture]
        table = [heads, *shown] if any(heads) else shown
        widths = [max(_width(line[i]) for line in table) for i in range(len(table[0]))]
        written = [
            "  " + "  ".join(_pad(cell, widths[i], right=i >= self.numbers) for i, cell in enumerate(line)).rstrip()
            for line in table
        ]
        return [*written, *([f"  {self._rest}"] if self._rest else [])]

    @property
    def _rest(self) -> str:
        rest = len(self.lines) - MOST_LINES
        return say("core.shown_rest", count=f"{rest:,}") if rest > 0 else ""

    def write_html(self) -> str:
        """For notebooks: no script; colours follow the page, and accents the reader's choice of light or dark."""
        parts = [f'<div style="font-weight:600">{escape(self.title)}</div>']
        if self.facts:
            parts.append(_table([(_dim(name), escape(value)) for name, value in self.facts], [_CELL, _CELL]))
        parts += [_gauge(*each) for each in self.gauges]
        if self.lines:
            styles = [_CELL if i < self.numbers else _NUMBER for i in range(len(self.lines[0]))]
            body = [[c.write_html() if isinstance(c, Bar) else escape(c) for c in line] for line in self.lines]
            heads = [_dim(head) for head in self.heads]
            parts.append(_table(body[:MOST_LINES], styles, heads))
        notes = [*([self._rest] if self._rest else []), *self.notes]
        parts += [f'<div style="{_DIM};font-size:.92em">{escape(note)}</div>' for note in notes]
        return f'<div class="mosha-card" style="{_BOX}"><style>{STYLE}</style>{"".join(parts)}</div>'


class Shown:
    """An object that has a card: `str` writes it as text, a notebook shows it as HTML."""

    __slots__ = ()

    def make_card(self) -> Card:
        """What is shown of it, as data: title, facts, gauges, lines."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.make_card().write_text()

    def _repr_html_(self) -> str:
        return self.make_card().write_html()

    if not TYPE_CHECKING:  # a checker of types knows which names there are

        def __getattr__(self, name: str) -> Any:
            """Only for names that do not exist: the answer names the right one."""
            explain = getattr(super(), "__getattr__", None)
            if explain is not None:
                return explain(name)
            if name.startswith("_") or name in (known := dir(type(self))):
                return object.__getattribute__(self, name)  # as Python says it
            raise AttributeError(explain_attribute(type(self).__name__, name, known))


class Prose(str):
    """A few lines of text that a notebook shows as lines.

    >>> print(Prose("Asked: count."))
    Asked: count.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        first, *others = self.split("\n")
        return Card(title=first, notes=tuple(others)).write_html()


class BarsAhead(dict[str, Any]):
    """Error bars before anything is spent, by aggregate; a notebook shows how wide they are.

    >>> BarsAhead(count=[31.0])["count"]
    [31.0]
    """

    def __str__(self) -> str:
        return "\n".join(f"{name} {widths}" for name, widths in self._list_widths())

    def _repr_html_(self) -> str:
        return Card(title=say("core.shown_forecast"), lines=self._list_widths(), heads=("", "")).write_html()

    def _list_widths(self) -> list[tuple[str, str]]:
        """The least and the widest bar of each aggregate."""
        lines = []
        for name, bars in self.items():
            widths = [float(width) for width in bars if math.isfinite(width)]
            ends = sorted({write_number(end, end) for end in (min(widths), max(widths))}, key=len) if widths else ["?"]
            lines.append((str(name), f"± {' … '.join(ends)}"))
        return lines


def summarize_value(value: object, error: object = None) -> str:
    """A released value in a few words: the number with its bar, or how many numbers there are.

    >>> summarize_value(2735.8, 36.2), summarize_value([1.0, 2.0])
    ('2,736 ± 36', '2 numbers')
    """
    plain, bar = _to_plain(value), _to_plain(error)
    if isinstance(plain, int | float):
        width = float(bar) if isinstance(bar, int | float) else None
        return write_number(plain, width) + ("" if width is None else f" ± {write_number(width, width)}")
    if isinstance(plain, list | tuple):
        return f"{len(plain):,} {'numbers' if _are_numbers(plain) else 'values'}"
    return ", ".join(map(str, plain)) if isinstance(plain, dict) else type(value).__name__


def find_widest(bars: object) -> float | None:
    """The largest of some error bars, however deep they lie; None where there is no number among them.

    >>> find_widest({"count": [[31.0], [28.0]]}), find_widest("none")
    (31.0, None)
    """
    plain = _to_plain(bars)
    if isinstance(plain, int | float):
        return float(plain) if math.isfinite(plain) else None
    parts = plain.values() if isinstance(plain, Mapping) else plain if isinstance(plain, list | tuple) else ()
    return max((width for part in parts if (width := find_widest(part)) is not None), default=None)


def make_list_card(
    title: str,
    heads: tuple[str, str],
    labels: Sequence[object],
    numbers: Sequence[float],
    errors: Sequence[float],
    *,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> Card:
    """Released numbers with a label and a bar each.

    >>> print(make_list_card("Tea", ("kind", "share"), ["green"], [0.1234], [0.02]).write_text())
    Tea
      kind   share      ±
      green  0.123  0.020
    """
    drawn = draw_bars(numbers, errors)
    lines: list[list[str | Bar]] = [
        [str(label), write_number(number, error), write_number(error, error), bar]
        for label, number, error, bar in zip(labels, numbers, errors, drawn, strict=True)
    ]
    return Card(title=title, facts=facts, heads=[*heads, "±", ""], lines=lines, notes=notes)


def make_value_card(value: object, error: object = None, *, title: str = "", notes: Sequence[str] = ()) -> Card:
    """The card of a released value: a number, or a list of numbers, with error bars; anything else in a few words."""
    plain, bar = _to_plain(value), _to_plain(error)
    if isinstance(plain, list | tuple) and plain and _are_numbers(plain):
        many = bar if isinstance(bar, list | tuple) and len(bar) == len(plain) else [bar] * len(plain)
        widths = [float(width) if isinstance(width, int | float) else math.nan for width in many]
        lines: list[list[str | Bar]] = [
            [f"{i:,}", write_number(number, width), write_number(width, width), drawn]
            for i, (number, width, drawn) in enumerate(zip(plain, widths, draw_bars(plain, widths), strict=True))
        ]
        said = (say("core.shown_bars"), *notes) if any(map(math.isfinite, widths)) else notes
        return Card(title=title or say("core.shown_answer"), heads=["#", "", "±", ""], lines=lines, notes=said)
    return Card(title=title or say("core.shown_answer"), facts=[("", summarize_value(value, error))], notes=notes)


def _to_plain(value: object) -> Any:
    """Arrays and their numbers as lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _are_numbers(values: Sequence[object]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _dim(text: str) -> str:
    return f'<span style="{_DIM}">{escape(text)}</span>'


def _gauge(name: str, share: float, text: str) -> str:
    used = _box(0, 100 * min(max(share, 0.0), 1.0), "top:0;height:100%;background:var(--mosha-fill);border-radius:3px")
    return (
        f'<div style="margin:2px 0">{_dim(name)} <span style="{_TRACK};width:16em;vertical-align:middle">{used}</span>'
        f" {escape(text)}</div>"
    )


def _table(lines: Sequence[Sequence[str]], styles: Sequence[str], heads: Sequence[str] = ()) -> str:
    """Rows of cells whose content is HTML already."""
    head = f"<thead>{_row(heads, styles, 'th')}</thead>" if any(heads) else ""
    body = "".join(_row(line, styles, "td") for line in lines)
    return f'<table style="border-collapse:collapse;border:0;margin:4px 0">{head}<tbody>{body}</tbody></table>'


def _row(cells: Sequence[str], styles: Sequence[str], tag: str) -> str:
    written = (f'<{tag} style="{style}">{cell}</{tag}>' for cell, style in zip(cells, styles, strict=False))
    return f'<tr style="background:none">{"".join(written)}</tr>'


_MARKUP = re.compile(r"[\\`\[\]<>|~@]|\*(?=\S)|(?<=\S)\*|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|(?<=\w):(?=//)|(?<=www)\.")


def escape_markdown(text: str) -> str:
    r"""Text as it is, in one line of Markdown: what people wrote makes no link, no picture and no tag there.

    Args:
        text: a name, a purpose, a key of a group.

    >>> print(escape_markdown("<b>[li](javascript:x)</b> | ward_2"))
    \<b\>\[li\](javascript:x)\</b\> \| ward_2
    """
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
