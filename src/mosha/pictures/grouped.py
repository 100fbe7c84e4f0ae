"""Groups as a picture: bars with error bars, a line with a band over time, a heat map for two keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from mosha.core.showing import MISSING, write_number
from mosha.pictures.dark import is_dark
from mosha.pictures.figure import BAND, INK, LINE, PALE, begin_figure, style_axes, use_style, write_footer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["draw_groups", "name_quantile"]

MOST_LABELS = 24
FEW = 16
"""Up to so many bars, and cells in a row, are numbered."""

QUANTILE = "quantile_"
SHADES = ("#8fb8cc", "#5b93b0", "#2f6f8f", "#1d4a61", "#c2703d", "#8f4f28")
"""Quantiles of the same groups stand side by side, one shade each."""

MANY = 60
"""From so many groups on, bars become a line of dots."""


def draw_groups(
    keys: Mapping[str, Sequence[object]],
    columns: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float] | None],
    *,
    notes: Mapping[str, str],
    title: str | None = None,
    unit: str | None = None,
    footer: str = "",
    ax: Axes | None = None,
) -> Any:
    """One panel for each column; all of them free post-processing.

    Args:
        keys: the keys of the groups, by name.
        columns: the numbers, by name.
        errors: half-widths of error bars, or None.
        notes: what is written behind a panel's name.
        title: of the whole picture.
        unit: what the numbers are counted in, beside the axis.
        footer: the small line beneath.
        ax: axes to draw the one column on; a figure is made otherwise.

    >>> figure = draw_groups({"ward": ["a", "b"]}, {"count": [3, 5]}, {"count": [1, 1]}, notes={"count": ""})
    >>> len(figure.axes)
    1
    """
    written = [[_write_values(column)[value] for value in column] for column in keys.values()]
    labels = [", ".join(parts) for parts in zip(*written, strict=True)] if keys else ["all"]
    count = len(next(iter(columns.values())))
    with use_style():
        if ax is not None:
            ((name, values),) = columns.items()
            _draw_panel(ax, keys, labels[:count], values, errors[name])
            ax.set_title(title or f"{name}{notes[name]}", loc="left")
            ax.set_ylabel(unit or "")
            return ax.figure
        together = (
            1 < len(columns) <= len(SHADES) and count <= FEW and all(name.startswith(QUANTILE) for name in columns)
        )
        if together and all(error is not None for error in errors.values()):
            return _draw_quantiles(
                labels, columns, errors, title=title, unit=unit, footer=footer, across=", ".join(keys)
            )
        grid = _is_grid(keys, count)
        height = 0.9 + (0.32 * len(set(next(iter(keys.values())))) + 1.2 if grid else 2.6) * len(columns)
        width = 2.5 + (0.7 * len(set(list(keys.values())[1])) if grid else 0.45 * count)
        figure = begin_figure(max(5.0, min(12.0, width)), min(height, 40.0))
        for place, (name, values) in enumerate(columns.items()):
            axes = figure.add_subplot(len(columns), 1, place + 1)
            if grid:
                _draw_heat_map(figure, axes, keys, values, max(errors[name] or [0.0]))
            else:
                _draw_panel(axes, keys, labels[:count], values, errors[name])
                axes.set_ylabel(unit or "")
            error = errors[name]
            widest = f" (± {_write_widths(error)})" if grid and error is not None else notes[name]
            axes.set_title(f"{name}{widest}", loc="left", fontsize=9, color=PALE)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        write_footer(figure, footer, labels="".join(labels) + "".join(keys) + "".join(columns) + (title or ""))
        return figure


def _draw_quantiles(
    labels: Sequence[str], columns: Mapping[str, Sequence[float]], errors: Mapping[str, Any], *,
    title: str | None, unit: str | None, footer: str, across: str,
) -> Figure:  # fmt: skip
    """Several quantiles of the same groups: intervals side by side, on one axis."""
    figure: Figure = begin_figure(max(6.4, min(12.0, 2.5 + 0.3 * len(labels) * len(columns))), 4.0)
    axes = figure.add_subplot()
    style_axes(axes)
    places = np.arange(len(labels))
    for shade, (name, values) in enumerate(columns.items()):
        shifted = places + (shade - (len(columns) - 1) / 2) * 0.6 / len(columns)
        style: Any = {"fmt": "o", "color": SHADES[shade], "capsize": 4, "markersize": 6, "elinewidth": 1.4}
        axes.errorbar(shifted, values, yerr=errors[name], label=name_quantile(name), **style)
    slanted: Any = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, labels)) > 50 else {}
    axes.set_xticks(places, list(labels), **slanted)
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.set_xlabel(across)
    axes.set_ylabel(unit or "")
    axes.legend(frameon=False, fontsize=8, ncols=len(columns), loc="lower left", bbox_to_anchor=(0, 1))
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    write_footer(figure, footer, labels="".join(labels) + across + (title or ""))
    return figure


def name_quantile(name: str) -> str:
    """What a quantile is called beside its dots.

    >>> name_quantile("quantile_0.25"), name_quantile("quantile_low")
    ('25%', 'low')
    """
    part = name.removeprefix(QUANTILE)
    if part == name:
        return name
    try:
        return f"{float(part):.4g}" if not 0 <= float(part) <= 1 else f"{100 * float(part):.4g}%"
    except ValueError:
        return part


def _write_widths(errors: Sequence[float]) -> str:
    """The error bars of all cells: one number, or the least and the largest.

    >>> _write_widths([3.0, 3.0]), _write_widths([0.22, 1.8])
    ('3.0', '0.22–1.8')
    """
    ends = dict.fromkeys(write_number(end, end) for end in (min(errors), max(errors)))
    return "\N{EN DASH}".join(ends)


def _is_grid(keys: Mapping[str, Sequence[object]], count: int) -> bool:
    sides = [len(set(column)) for column in keys.values()]
    return len(sides) == 2 and min(sides) > 1 and math.prod(sides) == count


def _draw_panel(
    axes: Axes,
    keys: Mapping[str, Sequence[object]],
    labels: Sequence[str],
    values: Sequence[float],
    error: Sequence[float] | None,
) -> None:
    places = list(range(len(values)))
    over_time = len(keys) == 1 and len(values) > 2 and all(isinstance(v, date) for v in next(iter(keys.values())))
    if over_time:
        axes.plot(places, values, color=LINE, marker="o", markersize=3)
        if error is not None:
            low, high = ([v + sign * e for v, e in zip(values, error, strict=True)] for sign in (-1, 1))
            axes.fill_between(places, low, high, color=BAND, alpha=0.4, linewidth=0)
    elif len(values) > MANY:
        axes.errorbar(places, values, yerr=error, fmt=".", markersize=3, color=LINE, ecolor=BAND, elinewidth=0.8)
    else:
        axes.bar(places, values, yerr=error, color=LINE, alpha=0.85, ecolor=INK, capsize=3, error_kw={"linewidth": 1})
        _write_numbers(axes, values, error)
    ticks = places[:: max(1, math.ceil(len(places) / MOST_LABELS))]
    slanted = sum(len(labels[i]) for i in ticks) > 50
    style: Any = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(ticks, [labels[i] for i in ticks], fontsize=8, **style)
    axes.set_xlabel(", ".join(keys))
    style_axes(axes)


def _write_numbers(axes: Axes, values: Sequence[float], error: Sequence[float] | None) -> None:
    """Each number at the end of its bar, where there are few."""
    if len(values) > FEW:
        return
    widths = [0.0] * len(values) if error is None else error
    whole = _are_whole(values)
    for place, (value, width) in enumerate(zip(values, widths, strict=True)):
        if math.isfinite(value + width):
            end, offset = (max(value + width, 0.0), (0, 4)) if value >= 0 else (min(value - width, 0.0), (0, -11))
            axes.annotate(
                _round_number(value, width, whole=whole), (place, end), offset, textcoords="offset points", ha="center",
                fontsize=8, color=INK,
            )  # fmt: skip
    axes.margins(y=0.12)


def _are_whole(values: Iterable[float]) -> bool:
    return all(float(value).is_integer() for value in values if math.isfinite(value))


def _round_number(value: float, width: float, *, whole: bool) -> str:
    """A number with the digits that its error bar supports: two of the bar's own, none where all are `whole`.

    >>> _round_number(1234.0, 3.2, whole=True), _round_number(4.712, 2.8, whole=False)
    ('1,234', '4.7')
    """
    places = 0 if whole else 3 if width <= 0 else max(0, 1 - math.floor(math.log10(width)))
    return f"{value:,.{places}f}"


def _write_cells(image: AxesImage, axes: Axes, cells: list[list[float]], width: float) -> None:
    """Each number in its cell, where there are few."""
    if sum(map(len, cells)) > MANY or max(map(len, cells)) > FEW:
        return
    whole = _are_whole(value for line in cells for value in line)
    for row, line in enumerate(cells):
        for column, value in enumerate(line):
            if math.isfinite(value):
                ink = "white" if is_dark(image.to_rgba(np.array([[value]]))[0][0].tolist()) else INK
                axes.text(
                    column,
                    row,
                    _round_number(value, width, whole=whole),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=ink,
                )


def _draw_heat_map(
    figure: Figure, axes: Axes, keys: Mapping[str, Sequence[object]], values: Sequence[float], width: float
) -> None:
    (first, second), (rows, across) = keys, (list(dict.fromkeys(column)) for column in keys.values())
    cells = [[math.nan] * len(across) for _ in rows]
    for row, column, value in zip(keys[first], keys[second], values, strict=True):
        cells[rows.index(row)][across.index(column)] = value
    image = axes.imshow(cells, cmap="YlGnBu", aspect="auto")
    figure.colorbar(image, ax=axes, shrink=0.8, format=lambda number, _: f"{number:,.10g}")
    _write_cells(image, axes, cells, width)
    step, down = (max(1, math.ceil(len(side) / MOST_LABELS)) for side in (across, rows))
    names = [_write_values(rows), _write_values(across)]
    slanted = sum(len(names[1][value]) for value in across[::step]) > 50
    style: Any = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(0, len(across), step), [names[1][value] for value in across[::step]], fontsize=8, **style)
    axes.set_yticks(range(0, len(rows), down), [names[0][value] for value in rows[::down]], fontsize=8)
    axes.set_xlabel(second)
    axes.set_ylabel(first)


def _write_values(column: Sequence[object]) -> dict[object, str]:
    """What stands beside each value of a key; first days of months and years without what all of them have.

    >>> _write_values([date(2024, 1, 1), date(2024, 2, 1)])[date(2024, 2, 1)]
    '2024-02'
    """
    texts = {value: MISSING if value is None else str(value) for value in column}
    texts = {value: text.removesuffix("+00:00").removesuffix(" 00:00:00") for value, text in texts.items()}
    for ending in ("-01", "-01"):
        days = [text for value, text in texts.items() if isinstance(value, date)]
        if len(days) > 1 and len(days) == len(texts) and all(text.endswith(ending) for text in days):
            texts = {value: text.removesuffix(ending) for value, text in texts.items()}
    return {value: text if len(text) <= 24 else f"{text[:23]}…" for value, text in texts.items()}
