"""What the scripts of the gallery share: one command line, and pictures in two languages, light and dark.

python examples/gallery/NAME.py [--small] [--pictures FOLDER]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mosha
from mosha.pictures import begin_figure
from mosha.pictures.figure import use_style

DATA = Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LOOKS = {
    "light": {"paper": "#ffffff", "ink": "#1c2430", "grid": "#d9dee6", "pale": "#9aa4b2"},
    "dark": {"paper": "#1e2129", "ink": "#e2e4e9", "grid": "#3a404c", "pale": "#7d8796"},
}
COLORS = {"light": ["#2f6f8f", "#c4572e", "#5f8f3e", "#7a5aa6"], "dark": ["#6db3d3", "#ee8a62", "#9cc97a", "#b79be0"]}


class Sheet:
    """A picture in one language and one look; `word(english, chinese)` picks the text."""

    def __init__(self, language: str, look: str, columns: int, size: tuple[float, float]) -> None:
        self.language, self.look = language, LOOKS[look]
        self.colors = COLORS[look]
        self.figure: Any = begin_figure(*size)
        self.figure.set_facecolor(self.look["paper"])
        self.axes: list[Any] = list(np.atleast_1d(self.figure.subplots(1, columns)))
        for axes in self.axes:
            self.style(axes)

    def word(self, english: str, chinese: str) -> str:
        return chinese if self.language == "zh" else english

    def style(self, axes: Any) -> None:
        axes.set_facecolor(self.look["paper"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(self.look["pale"])
        axes.tick_params(which="both", colors=self.look["ink"])
        axes.grid(axis="y", color=self.look["grid"], linewidth=0.6)
        axes.set_axisbelow(True)

    def title(self, axes: Any, title: str, across: str = "", up: str = "") -> None:
        axes.set_title(title, color=self.look["ink"], loc="left")
        axes.set_xlabel(across, color=self.look["ink"])
        axes.set_ylabel(up, color=self.look["ink"])

    def mark(self, axes: Any, values: Any) -> None:
        """A logarithmic axis across that shows these values and no others."""
        axes.set_xscale("log")
        axes.set_xticks(list(values), [f"{value:g}" for value in values])
        axes.minorticks_off()

    def legend(self, axes: Any, *, above: bool = False, **how: Any) -> None:
        """What the colors mean; `above` makes room for it over curves that fill the whole picture."""
        if above:
            low, high = axes.get_ylim()
            axes.set_ylim(low, high + 0.3 * (high - low))
            how = {"loc": "upper left", "ncol": 2, "columnspacing": 1.2, **how}
        axes.legend(frameon=False, labelcolor=self.look["ink"], fontsize=8, **how)


def wallet(unit: Any, epsilon: float | None = None, delta: float = 0.0, *, rho: float | None = None) -> Any:
    """An account for one release: each setting that a script compares is a study of its own."""
    limit: dict[str, Any] = {"epsilon": epsilon, "delta": delta} if rho is None else {"rho": rho}
    return mosha.Ledger.memory().account("gallery", unit=unit, **limit)


def draw_all(
    name: str, draw: Callable[[Any, Sheet], None], found: Any, folder: Path, *, columns: int = 2, size: Any = (8.6, 3.3)
) -> list[Path]:
    """The four pictures of a page: `draw(found, sheet)` fills each."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for language in ("en", "zh"):
        for look in ("light", "dark"):
            with use_style():
                sheet = Sheet(language, look, columns, size)
                draw(found, sheet)
                path = folder / f"{name}-{language}-{look}.png"
                sheet.figure.savefig(path, dpi=110, facecolor=sheet.look["paper"])
            written.append(_shrink(path))
    return written


def _shrink(path: Path) -> Path:
    """64 colors are enough for lines and letters."""
    from PIL import Image  # noqa: PLC0415  (comes with the guest that draws)

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(64)
    small.save(path, optimize=True)
    return path


def show(name: str, run: Callable[..., dict[str, Any]], draw: Callable[[Any, Sheet], None], **how: Any) -> None:
    """Run, print what was found, and draw if a folder is named."""
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--small", action="store_true", help="a minute at most")
    parser.add_argument("--pictures", type=Path, help="write the pictures there")
    asked = parser.parse_args()
    found = run(small=asked.small)
    for what, value in found.items():
        if isinstance(value, int | float | str):
            print(f"{what}: {value:.4g}" if isinstance(value, float) else f"{what}: {value}")
    if asked.pictures:
        draw_all(name, draw, found, asked.pictures, **how)
