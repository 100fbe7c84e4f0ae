"""Curves in one look: bands over steps, cumulative steps, degrees, intervals, trainings, trade-offs, budget trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.canvas import draw_as_asked, find_wishes
from mosha.pictures.figure import BAND, INK, LINE, WARM, style_axes, use_style
from mosha.pictures.panels import begin_panels, frame_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mosha.core.release import Release

__all__ = [
    "draw_band", "draw_degrees", "draw_intervals", "draw_steps", "draw_tradeoff", "draw_training", "draw_tree",
    "draw_with",
]  # fmt: skip


NEARLY = 0.98
"""A curve that has come so far is nearly still: as much again is drawn of it."""

BEYOND = 4.0
"""Times the last degree that is above its error bar: so far the picture goes on."""


def draw_with(
    paint: Callable[[Axes], None], *, title: str, across: str = "", up: str = "", footer: str = "",
    ax: Axes | None = None, size: tuple[float, float] = (6.4, 3.6),
) -> Figure:  # fmt: skip
    """Paint on axes of one's own, or on a new figure; labels, grid and footer are the same for all.

    A title, a unit and axes that are wanted (`mosha.core.canvas`) go before those that are given here.
    """
    if ax is not None:
        return cast("Figure", draw_as_asked(lambda: draw_with(paint, title=title, across=across, up=up), ax=ax))
    with use_style():
        figure, (axes,) = begin_panels(*size)
        style_axes(axes)
        paint(axes)
        axes.set_xlabel(across)
        if axes.yaxis.get_visible():
            axes.set_ylabel(up if (wanted := find_wishes().unit) is None else wanted)
        frame_picture(figure, [axes], title=title, footer=footer, labels=across + axes.get_ylabel())
        return figure


def draw_band(
    values: ArrayLike | Sequence[Release], errors: ArrayLike | None = None, *, title: str = "", across: str = "",
    up: str = "", footer: str = "", ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """A line over steps with the band that holds the noise: a stream.

    Args:
        values: one number for each step, or the releases of a stream's steps, which bring bars and footer along.
        errors: half-widths of the error bars.
        title: stands above the picture.
        across: the label of the horizontal axis.
        up: the label of the vertical axis.
        footer: stands below the picture: who is protected, and what was paid.
        ax: axes to draw on; a figure of its own where they are left out.

    >>> draw_band([3, 5, 4], 1.0, title="Arrivals").axes[0].get_title(loc="left")
    'Arrivals'
    """
    if errors is None:
        releases = cast("Sequence[Release]", values)
        footer = footer or (releases[-1].receipt.write_footer() if len(releases) else "")
        values, errors = [each.value for each in releases], [each.error(0.95) for each in releases]
    line = np.asarray(values, np.float64)
    width = np.broadcast_to(np.asarray(errors, np.float64), line.shape)
    places = np.arange(1, line.size + 1)

    def paint(axes: Axes) -> None:
        axes.fill_between(places, line - width, line + width, color=BAND, alpha=0.4, linewidth=0)
        axes.plot(places, line, color=LINE, linewidth=1.6)

    return draw_with(paint, title=title, across=across, up=up, footer=footer, ax=ax)


def draw_steps(
    values: ArrayLike, errors: ArrayLike | None = None, *, title: str = "", across: str = "", up: str = "",
    footer: str = "", ax: Axes | None = None, between: tuple[float | None, float | None] = (None, None),
    still: bool = False,
) -> Figure:  # fmt: skip
    """A curve in steps, for cumulative numbers, with a band where there is an error bar.

    Args:
        values: one number for each step.
        errors: half-widths of the error bars.
        title: stands above the picture.
        across: the label of the horizontal axis.
        up: the label of the vertical axis.
        footer: stands below the picture: who is protected, and what was paid.
        ax: axes to draw on; a figure of its own where they are left out.
        between: what the numbers can be, by what they are: the band is drawn no further.
        still: whether a curve that is nearly at its end is drawn a little way on, and not to the last step.

    >>> draw_steps([1, 4, 9]).axes[0].lines[0].get_drawstyle()
    'steps-mid'
    """
    line = np.asarray(values, np.float64)
    places = np.arange(line.size)

    def paint(axes: Axes) -> None:
        if errors is not None:
            width = np.broadcast_to(np.asarray(errors, np.float64), line.shape)
            low, high = (np.clip(end, *between) if any(b is not None for b in between) else end
                         for end in (line - width, line + width))  # fmt: skip
            axes.fill_between(places, low, high, step="mid", color=BAND, alpha=0.4, linewidth=0)
        if still and line.size and (below := np.flatnonzero(line < NEARLY * line[-1])).size:
            axes.set_xlim(-1, min(line.size - 1, max(10.0, 2.0 * float(below[-1]))))
        axes.step(places, line, where="mid", color=LINE, linewidth=1.6)
        axes.locator_params(axis="x", integer=True)

    return draw_with(paint, title=title, across=across, up=up, footer=footer, ax=ax)


def draw_degrees(
    counts: ArrayLike, errors: ArrayLike | None = None, *, title: str = "", across: str = "", up: str = "",
    footer: str = "", ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """How many vertices have each degree, both axes logarithmic; what lies below its error bar is drawn pale.

    Args:
        counts: how many vertices have each degree.
        errors: half-widths of the error bars.
        title: stands above the picture.
        across: the label of the horizontal axis.
        up: the label of the vertical axis.
        footer: stands below the picture: who is protected, and what was paid.
        ax: axes to draw on; a figure of its own where they are left out.

    >>> draw_degrees([10, 100, 50, 7, 1]).axes[0].get_xscale()
    'log'
    """
    heights = np.asarray(counts, np.float64)
    width = np.broadcast_to(np.asarray(0.0 if errors is None else errors, np.float64), heights.shape)
    degrees = np.arange(heights.size)
    shown = (degrees > 0) & (heights > 0)
    sure = shown & (heights > width)

    def paint(axes: Axes) -> None:
        unsure = shown & ~sure
        axes.scatter(degrees[unsure], heights[unsure], s=9, color=BAND, alpha=0.6)
        low = np.minimum(width[sure], heights[sure] * 0.999)
        axes.errorbar(
            degrees[sure], heights[sure], yerr=[low, width[sure]], fmt="o", markersize=4, color=LINE, ecolor=BAND,
            elinewidth=1,
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        if sure.any() and unsure.any():  # thousands of empty degrees are a cloud of noise that tells nobody anything
            axes.set_xlim(0.8, min(float(degrees[-1]) * 1.2, BEYOND * float(degrees[sure][-1])))
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            axes.locator_params(axis=name, subs=(1, 2, 5))  # type: ignore[arg-type]
            axis.set_major_formatter(lambda number, _: f"{number:,.10g}")
            axis.set_minor_formatter(lambda *_: "")
        if errors is not None and np.any(width > 0):
            axes.axhline(float(np.max(width)), color=INK, linewidth=0.7, linestyle=":")

    return draw_with(paint, title=title, across=across, up=up, footer=footer, ax=ax)


def draw_intervals(
    labels: Sequence[str], values: ArrayLike, errors: ArrayLike, *, title: str = "", up: str = "", footer: str = "",
    ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """A dot with its interval for each label, from left to right: quantiles.

    Args:
        labels: what each interval is called.
        values: one number for each step.
        errors: half-widths of the error bars.
        title: stands above the picture.
        up: the label of the vertical axis.
        footer: stands below the picture: who is protected, and what was paid.
        ax: axes to draw on; a figure of its own where they are left out.

    >>> len(draw_intervals(["25%", "50%"], [1, 2], [0.5, 0.5]).axes[0].get_xticks())
    2
    """
    middle = np.asarray(values, np.float64)
    places = np.arange(middle.size)

    def paint(axes: Axes) -> None:
        axes.errorbar(places, middle, yerr=errors, fmt="o", color=LINE, ecolor=INK, capsize=5, markersize=6)
        axes.set_xticks(places, list(labels))
        axes.set_xlim(-0.6, max(middle.size - 0.4, 0.6))

    return draw_with(paint, title=title, up=up, footer=footer, ax=ax)


def draw_training(
    steps: ArrayLike, scores: ArrayLike, epsilons: ArrayLike, *, title: str = "", score: str = "accuracy",
    across: str = "step", footer: str = "", ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """A training: how good the model is by step, and beside it what it has cost so far.

    At each of `steps` the model had one of `scores` (called `score`) and had cost one of `epsilons`; `title`, `across`,
    `footer` and `ax` are those of `draw_band`.

    >>> len(draw_training([1, 2], [0.5, 0.8], [0.3, 0.5]).axes)
    2
    """

    def paint(axes: Axes) -> None:
        axes.plot(steps, scores, color=LINE, linewidth=1.8)
        axes.yaxis.label.set_color(LINE)
        price = axes.twinx()
        price.plot(steps, epsilons, color=WARM, linewidth=1.4, linestyle="--")
        price.set_ylabel("epsilon", color=WARM)
        price.spines[["top"]].set_visible(False)
        price.set_ylim(bottom=0)

    return draw_with(paint, title=title, across=across, up=score, footer=footer, ax=ax)


def draw_tradeoff(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, title: str = "", across: str = "false alarms",
    up: str = "misses", footer: str = "", ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """What an attacker can achieve: for each rate of false alarms the least rate of misses, by name of the curve.

    `curves` are (false alarms, misses) by name; `title`, `across` and `up` (the axes), `footer` and `ax` are those of
    `draw_band`.

    >>> draw_tradeoff({"epsilon 1": ([0, 1], [1, 0])}).axes[0].get_xlabel()
    'false alarms'
    """

    def paint(axes: Axes) -> None:
        axes.plot([0, 1], [1, 0], color=INK, linewidth=0.7, linestyle=":")
        styles = [(LINE, "-"), (WARM, "--"), (BAND, "-."), (INK, "-")]
        for place, (name, (alarms, misses)) in enumerate(curves.items()):
            color, style = styles[place % len(styles)]
            axes.plot(alarms, misses, color=color, linestyle=style, linewidth=1.8, label=name)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.legend(frameon=False)

    return draw_with(paint, title=title, across=across, up=up, footer=footer, ax=ax, size=(4.8, 4.2))


def draw_tree(
    accounts: Sequence[tuple[str, int, float, str]], *, title: str = "", footer: str = "", ax: Axes | None = None
) -> Figure:
    """Budgets as a tree: a line for each of `accounts` with its depth, the share that is spent and a text.

    `title`, `footer` and `ax` are those of `draw_band`.

    >>> draw_tree([("all", 0, 0.5, "1 of 2"), ("ward", 1, 0.1, "0.1 of 1")]).axes[0].get_title(loc="left")
    ''
    """

    def paint(axes: Axes) -> None:
        for place, (name, depth, share, text) in enumerate(accounts):
            axes.barh(-place, 1.0, height=0.5, left=0, color=BAND, alpha=0.25)
            axes.barh(-place, min(max(share, 0.0), 1.0), height=0.5, color=LINE if share < 0.9 else WARM)
            axes.text(-0.02, -place, "└ " * min(depth, 1) + name, ha="right", va="center", fontsize=9)
            axes.text(1.02, -place, text, ha="left", va="center", fontsize=8, color=INK)
        axes.yaxis.set_visible(False)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
        axes.grid(visible=False)
        axes.spines[["left"]].set_visible(False)

    size, across = (7.2, 1.1 + 0.42 * len(accounts)), find_wishes().unit or ""
    return draw_with(paint, title=title, across=across, footer=footer, ax=ax, size=size)
