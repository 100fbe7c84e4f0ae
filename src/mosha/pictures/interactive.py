"""The interactive twin of a picture of groups: an Altair chart with numbers under the pointer (extra `interactive`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from mosha.core.language import phrase
from mosha.core.names.extras import load_guest
from mosha.pictures.figure import BAND, LINE

__all__ = ["chart_groups"]


def chart_groups(
    keys: Mapping[str, Sequence[object]],
    values: Sequence[float],
    errors: Sequence[float] | None,
    *,
    name: str,
    title: str = "",
    footer: str = "",
) -> Any:
    """Bars, or a line with a band over dates, or a heat map for two keys: the same numbers as in the picture."""
    altair = load_guest("altair", extra="interactive", needed_for=phrase("mechanisms.picture"))
    first = list(keys)
    rows = [
        {key: str(column[i]) for key, column in keys.items()}
        | {name: values[i]}
        | ({} if errors is None else {"low": values[i] - errors[i], "high": values[i] + errors[i], "±": errors[i]})
        for i in range(len(values))
    ]
    told = [*first, name, *([] if errors is None else ["±"])]
    words = altair.TitleParams(title or name, subtitle=footer, anchor="start")
    chart = altair.Chart(altair.Data(values=rows)).properties(title=words, width="container")
    if len(first) == 2:
        marks = {"x": f"{_escape(first[1])}:N", "y": f"{_escape(first[0])}:N", "color": f"{_escape(name)}:Q"}
        return chart.mark_rect().encode(**marks, tooltip=[f"{_escape(column)}:N" for column in told])
    over_time = len(first) == 1 and all(isinstance(value, date) for value in keys[first[0]])
    x = f"{_escape(first[0])}:{'T' if over_time else 'N'}" if first else altair.value(40)
    encoded = {"x": x, "tooltip": [f"{_escape(column)}:N" for column in told]}
    body = chart.mark_line(color=LINE, point=True) if over_time else chart.mark_bar(color=LINE)
    drawn = body.encode(y=f"{_escape(name)}:Q", **encoded)
    if errors is None:
        return drawn
    whisker = chart.mark_area(color=BAND, opacity=0.4) if over_time else chart.mark_rule(strokeWidth=1.5)
    return drawn + whisker.encode(y=altair.Y("low:Q", title=name), y2="high:Q", x=x)


def _escape(name: str) -> str:
    """A name of a column as Altair reads it."""
    return "".join(f"\\{letter}" if letter in ".[]:" else letter for letter in name)
