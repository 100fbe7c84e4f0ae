"""The trade-off curve as a picture: dots in a terminal, or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mosha.core.errors import InvalidParameter, MissingExtra

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
    return "\n".join(["missed", *rows, f"{corner:>8}{floor * width}", f"{'':>8}0%{'false alarms':^{width - 6}}100%"])


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
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (a guest: only here)
    except ImportError:
        raise MissingExtra("plot", needed_for="a picture in a file") from None
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [1, 0], color="0.7", linestyle=":", label="guessing")
    axes.plot(rates, [curve(rate) for rate in rates], color="C0", label=title)
    axes.fill_between(rates, [curve(rate) for rate in rates], color="C0", alpha=0.08)
    axes.set(xlabel="false alarms (accused, was not there)", ylabel="missed (was there, not found)")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="What no attacker can beat")
    axes.legend(frameon=False, loc="upper right")
    try:
        figure.savefig(path)
    except OSError as error:
        raise InvalidParameter(
            "cli.picture_not_written", parameter="--plot", path=str(path), reason=error.strerror
        ) from None
