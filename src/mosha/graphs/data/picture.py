"""Pictures of sequences and comparisons (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mosha.core.language import say
from mosha.pictures.curves import draw_degrees, draw_steps
from mosha.pictures.figure import begin_figure, name_in_words

__all__ = ["draw_comparison", "draw_curve"]


def _figure() -> Any:
    return begin_figure(5.2, 3.2)


def draw_curve(values: Any, error: Any, *, title: str, across: str, up: str) -> Any:
    """A sequence by degree: a histogram on logarithmic axes, anything else in steps, with a band of its error bar."""
    said = name_in_words(title) + ("" if error is None else f" ({say('core.title_band')})")
    words: Any = {"title": said, "across": name_in_words(across), "up": name_in_words(up)}
    if "histogram" in title:
        return draw_degrees(values, error, **words)
    line = np.asarray(values, np.float64)
    rising = "cumulative" in title or "distribution" in title
    most = 1.0 if "distribution" in title else float(line[-1]) if rising and line.size and _is_exact(error) else None
    return draw_steps(values, error, between=(0.0, most), still=rising, **words)


def _is_exact(error: Any) -> bool:
    """Whether the last entry is the public number of vertices, which has no bar."""
    return error is not None and float(np.ravel(np.asarray(error, np.float64))[-1]) == 0


def draw_comparison(rows: Mapping[str, Sequence[float]], *, names: Sequence[str], title: str) -> Any:
    """Relative errors side by side on a logarithmic axis: one group of bars for each row, one bar for each name."""
    figure = _figure()
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        heights = [max(values[i], 1e-9) for values in rows.values()]
        axes.bar(places + (i - (len(names) - 1) / 2) * width, heights, width, label=name)
    axes.set_xticks(places, list(rows))
    axes.set_yscale("log")
    axes.set_ylabel("mean relative error")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
