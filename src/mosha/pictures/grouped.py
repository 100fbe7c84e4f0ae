"""Groups as a picture: bars with error bars, a line with a band over time, a heat map for two keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from mosha.core.canvas import draw_as_asked, find_wishes
from mosha.core.language import say
from mosha.core.showing import MISSING, write_number
from mosha.pictures.dark import is_dark
from mosha.pictures.figure import BAND, INK, LINE, PALE, style_axes, use_style
from mosha.pictures.panels import begin_panels, frame_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["draw_groups", "draw_panel", "name_quantile", "slant"]

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
    if ax is not None or title is not None or unit is not None:
        inner = find_wishes()
        return draw_as_asked(
            lambda: draw_groups(keys, columns, errors, notes=notes, footer=footer),
            ax=inner.ax if ax is None else ax, title=inner.title if title is None else title,
            unit=inner.unit if unit is None else unit,
        )  # fmt: skip
    written = [[_write_values(column)[value] for value in column] for column in keys.values()]
    labels = [", ".join(parts) for parts in zip(*written, strict=True)] if keys else ["all"]
    count = len(next(iter(columns.values())))
    with use_style():
        together = (
            1 < len(columns) <= len(SHADES) and count <= FEW and all(name.startswith(QUANTILE) for name in columns)
        )
        if together and all(error is not None for error in errors.values()):
            return _draw_quantiles(labels, columns, errors, footer=footer, across=", ".join(keys))
        grid = _is_grid(keys, count)
        height = 0.9 + (0.32 * len(set(next(iter(keys.values())))) + 1.2 if grid else 2.6) * len(columns)
        width = 2.5 + (0.7 * len(set(list(keys.values())[1])) if grid else 0.45 * count)
        figure, panels = begin_panels(max(5.0, min(12.0, width)), min(height, 40.0), down=len(columns))
        for axes, (name, values) in zip(panels, columns.items(), strict=True):
            error = errors[name]
            if grid:
                _draw_heat_map(axes, keys, values, max(error or [0.0]))
            else:
                draw_panel(axes, labels[:count], values, error, across=", ".join(keys), over_time=_is_over_time(keys))
                axes.set_ylabel(find_wishes().unit or "")
            widest = "" if not error else f" ({say('tables.picture_cells', width=_write_widths(error))})"
            axes.set_title(f"{name}{widest if grid else notes[name]}", loc="left", fontsize=9, color=PALE)
        _frame_groups(figure, panels, footer, "".join(labels) + "".join(keys) + "".join(columns))
        return figure


def _frame_groups(figure: Figure, panels: Sequence[Axes], footer: str, labels: str) -> None:
    """A title stands above what each panel says of itself; on one panel that somebody gave, in its place."""
    alone = find_wishes().ax is not None and len(panels) == 1
    said = panels[0].get_title(loc="left") if alone else ""
    frame_picture(figure, panels, title=said, footer=footer, labels=labels, above=not alone)


def _draw_quantiles(
    labels: Sequence[str], columns: Mapping[str, Sequence[float]], errors: Mapping[str, Any], *, footer: str,
    across: str,
) -> Figure:  # fmt: skip
    """Several quantiles of the same groups: intervals side by side, on one axis."""
    figure, (axes,) = begin_panels(max(6.4, min(12.0, 2.5 + 0.3 * len(labels) * len(columns))), 4.0)
    style_axes(axes)
    places = np.arange(len(labels))
    for shade, (name, values) in enumerate(columns.items()):
        shifted = places + (shade - (len(columns) - 1) / 2) * 0.6 / len(columns)
        style: Any = {"fmt": "o", "color": SHADES[shade], "capsize": 4, "markersize": 6, "elinewidth": 1.4}
        axes.errorbar(shifted, values, yerr=errors[name], label=name_quantile(name), **style)
    axes.set_xticks(places, list(labels), **slant(labels))
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.set_xlabel(across)
    axes.set_ylabel(find_wishes().unit or "")
    beside: Any = {"loc": "best"} if find_wishes().ax is not None else {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    axes.legend(frameon=False, fontsize=8, ncols=len(columns), **beside)
    _frame_groups(figure, [axes], footer, "".join(labels) + across)
    return figure


def slant(labels: Sequence[str]) -> dict[str, Any]:
    """How labels stand below an axis: slanted where they would run into each other.

    >>> slant(["a", "b"])
    {}
    """
    return {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, labels)) > 50 else {}


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


def _is_over_time(keys: Mapping[str, Sequence[object]]) -> bool:
    return len(keys) == 1 and all(isinstance(value, date) for value in next(iter(keys.values())))


def draw_panel(
    axes: Axes, labels: Sequence[str], values: Sequence[float], error: Sequence[float] | None, *, across: str = "",
    over_time: bool = False,
) -> None:  # fmt: skip
    """Bars with their error bars; a line with a band over time; dots where there are many groups.

    Args:
        axes: where it is drawn.
        labels: what each group is called.
        values: a number for each group.
        error: half-widths of error bars, or None.
        across: what stands below the axis.
        over_time: whether the groups are dates.

    >>> _, (axes,) = begin_panels(5, 3)
    >>> draw_panel(axes, ["a", "b"], [3, 5], [1, 1])
    >>> len(axes.patches)
    2
    """
    places = list(range(len(values)))
    if over_time and len(values) > 2:
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
    shown = [labels[place] for place in ticks]
    axes.set_xticks(ticks, shown, fontsize=8, **slant(shown))
    axes.set_xlabel(across)
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


def _draw_heat_map(axes: Axes, keys: Mapping[str, Sequence[object]], values: Sequence[float], width: float) -> None:
    (first, second), (rows, across) = keys, (list(dict.fromkeys(column)) for column in keys.values())
    cells = [[math.nan] * len(across) for _ in rows]
    for row, column, value in zip(keys[first], keys[second], values, strict=True):
        cells[rows.index(row)][across.index(column)] = value
    image = axes.imshow(cells, cmap="YlGnBu", aspect="auto")
    scale = axes.figure.colorbar(image, ax=axes, shrink=0.8, format=lambda number, _: f"{number:,.10g}")
    scale.set_label(find_wishes().unit or "")
    _write_cells(image, axes, cells, width)
    step, down = (max(1, math.ceil(len(side) / MOST_LABELS)) for side in (across, rows))
    names = [_write_values(rows), _write_values(across)]
    shown = [names[1][value] for value in across[::step]]
    axes.set_xticks(range(0, len(across), step), shown, fontsize=8, **slant(shown))
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
