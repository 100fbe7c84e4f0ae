"""The trade-off curve as a picture: dots in a terminal, or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "save"]

_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the dots of one cell, from the top
_FORMATS = (".png", ".svg", ".pdf")


def draw(curve: Callable[[float], float], *, width: int = 44, height: int = 12, unicode: bool = True) -> str:
    """The curve as text, false alarms to the right and misses upwards, over the dotted line of pure guessing.

    >>> print(draw(lambda rate: max(0.0, 1 - 9 * rate, (1 - rate) / 9), width=24, height=4, unicode=False))
    missed
      100% |** **
           | *    ** **
           | **         ** ** *
        0% |  **********************
           +------------------------
            0%   false alarms   100%
    """
    dots = (_Dots if unicode else _Letters)(width, height)
    rates = [column / (dots.columns - 1) for column in range(dots.columns)]
    for column in range(0, dots.columns, 3):
        dots.stroke(column, 1 - rates[column], 1 - rates[column])
    misses = [curve(rate) for rate in rates]
    for column, (before, now) in enumerate(zip([misses[0], *misses], misses, strict=False)):
        dots.stroke(column, before, now)
    wall, corner, floor = "│└─" if unicode else "|+-"
    ends = {0: "100%", height - 1: "0%"}
    rows = [f"{ends.get(row, ''):>6} {wall}{text}" for row, text in enumerate(dots.rows())]
    below = f"{'':>8}0%{say('cli.curve_alarms'):^{width - 6}}100%"
    return "\n".join([say("cli.curve_missed"), *rows, f"{corner:>8}{floor * width}", below])


class _Dots:
    """A grid of Braille cells, each two dots wide and four dots high."""

    def __init__(self, width: int, height: int) -> None:
        self.columns, self._lines = 2 * width, 4 * height
        self._cells = [[0] * width for _ in range(height)]

    def stroke(self, column: int, start: float, end: float) -> None:
        """A vertical stroke between two heights, so that a steep curve stays in one piece."""
        first, last = sorted((self._line(start), self._line(end)))
        for row in range(first, last + 1):
            self._cells[row // 4][column // 2] |= _BRAILLE[row % 4][column % 2]

    def _line(self, share: float) -> int:
        return round((1 - min(1.0, max(0.0, share))) * (self._lines - 1))

    def rows(self) -> list[str]:
        return ["".join(chr(0x2800 + cell) for cell in row) for row in self._cells]


class _Letters(_Dots):
    """The same on a terminal that knows letters alone: one character for a cell."""

    def rows(self) -> list[str]:
        return ["".join("*" if cell else " " for cell in row) for row in self._cells]


def save(curve: Callable[[float], float], path: Path, *, title: str, rates: Sequence[float]) -> None:
    """The curve as a picture in a file; the ending of its name chooses the format."""
    if path.suffix.lower() not in _FORMATS:
        raise InvalidParameter("cli.picture_format", parameter="--plot", formats=list(_FORMATS))
    from mosha.pictures.curves import draw_with  # noqa: PLC0415  (a guest: only here)
    from mosha.pictures.figure import BAND, LINE  # noqa: PLC0415

    misses = [curve(rate) for rate in rates]

    def paint(axes: Axes) -> None:
        axes.plot([0, 1], [1, 0], color="0.7", linestyle=":", label=say("cli.curve_guessing"))
        axes.plot(rates, misses, color=LINE, label=title)
        axes.fill_between(rates, misses, color=BAND, alpha=0.3)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.legend(frameon=False, loc="upper right")

    across, up = say("cli.curve_across"), say("cli.curve_up")
    figure = draw_with(paint, title=say("cli.curve_title"), across=across, up=up, size=(5, 5))
    try:
        figure.savefig(path)
    except OSError as error:
        raise InvalidParameter(
            "cli.picture_not_written", parameter="--plot", path=str(path), reason=describe_system_error(error)
        ) from None
