"""Pictures as SVG: drawn here, styled by classes, with nothing inline that a strict policy would refuse.

Each stands beside a table of the same numbers; a picture of its own has a title for those who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from markupsafe import Markup

from mosha.server.pages.numbers import write_plainly

__all__ = ["axis", "bar_row", "curves", "dots", "gauge", "key", "picture", "reach"]


def _svg(body: str, *, view: str, kind: str, title: str = "", stretch: bool = False) -> Markup:
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    named = f' role="img" aria-label="{escape(title)}"' if title else ' aria-hidden="true"'
    return Markup(f'<svg class="{kind}" viewBox="{view}"{ratio}{named}>{body}</svg>')  # noqa: S704


def gauge(spent: float, limit: float, more: float = 0.0, title: str = "", mark: float | None = None) -> Markup:
    """What is spent of a limit, what one more question would take, and a mark at a part of the limit."""
    if not limit or not math.isfinite(limit):
        return Markup("")
    used = min(1.0, max(0.0, spent / limit)) * 200
    if mark is not None:
        more = min(more, max(0.0, mark - spent))
    next_one = min(200 - used, max(0.0, more / limit * 200))
    body = '<rect class="track" width="200" height="8"/>'
    body += f'<rect class="used" width="{used:.2f}" height="8"/>'
    if next_one:
        body += f'<rect class="next" x="{used:.2f}" width="{next_one:.2f}" height="8"/>'
    if mark is not None and mark < limit:
        body += f'<rect class="mark" x="{mark / limit * 200 - 0.4:.2f}" width="0.8" height="8"/>'
    return _svg(body, view="0 0 200 8", kind="gauge", title=title, stretch=True)


def axis(values: Sequence[float | None], bars: Sequence[float | None]) -> tuple[float, float]:
    """The range that holds zero, all values and all of their bars."""
    ends = [0.0]
    for value, bar in zip(values, bars, strict=True):
        if value is not None:
            reach = bar if bar is not None and math.isfinite(bar) else 0.0
            ends += [value - reach, value + reach, value]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low, low + 1.0)


def bar_row(value: float | None, bar: float | None, between: tuple[float, float]) -> Markup:
    """One row of a chart: a bar from zero, and the range in which the truth lies most often."""
    if value is None:
        return _svg("", view="0 0 400 20", kind="row", stretch=True)
    low, high = between
    place = _scale(low, high, 2, 398)
    zero, end = place(0.0), place(value)
    left, width = min(zero, end), abs(end - zero)
    body = f'<rect class="bar" x="{left:.2f}" y="5" width="{width:.2f}" height="10"/>'
    body += f'<line class="zero" x1="{zero:.2f}" x2="{zero:.2f}" y1="0" y2="20"/>'
    if bar is not None and math.isfinite(bar):
        first, last = place(value - bar), place(value + bar)
        body += f'<path class="error" d="M{first:.2f} 10H{last:.2f}M{first:.2f} 6V14M{last:.2f} 6V14"/>'
    return _svg(body, view="0 0 400 20", kind="row", stretch=True)


def reach(bar: float | None, low: float, high: float) -> Markup:
    """How much of a range an error bar takes: the range as a line, the bar in the middle of it."""
    if bar is None or not math.isfinite(bar) or high <= low:
        return Markup("")
    half = min(198.0, bar / (high - low) * 396)
    first, last = 200 - half, 200 + half
    body = '<path class="range" d="M2 10H398M2 5V15M398 5V15"/>'
    body += f'<rect class="bar" x="{first:.2f}" y="5" width="{2 * half:.2f}" height="10"/>'
    body += f'<path class="error" d="M{first:.2f} 10H{last:.2f}M{first:.2f} 5V15M{last:.2f} 5V15"/>'
    return _svg(body, view="0 0 400 20", kind="row", stretch=True)


def dots(share: float, title: str) -> Markup:
    """A hundred dots, as many of them filled as `share` says (rounded)."""
    filled = round(share * 100)
    body = "".join(
        f'<circle class="{"on" if place < filled else "off"}" cx="{6 + place % 20 * 12}" cy="{6 + place // 20 * 12}"'
        ' r="4.2"/>'
        for place in range(100)
    )
    return _svg(body, view="0 0 240 60", kind="dots", title=title)


def _scale(
    low: float, high: float, first: float, last: float, *, logarithmic: bool = False
) -> Callable[[float], float]:
    """From a number to its place in the picture; what lies outside stands at the edge."""
    of = math.log10 if logarithmic else float
    start, span = of(low), (of(high) - of(low)) or 1.0
    return lambda x: first + (of(min(max(x, low), high)) - start) / span * (last - first)


def _ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    if logarithmic:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [tick for power in powers if low * 0.999 <= (tick := 10.0**power) <= high * 1.001]
    rough = (high - low) / 4
    step = 10 ** math.floor(math.log10(rough))
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor >= rough)
    first = math.ceil(low / step)
    return [step * place for place in range(first, math.floor(high / step + 1e-3) + 1)]


def _write_tick(tick: float) -> str:
    return f"{tick:g}".replace("-", "−")  # noqa: RUF001  (a minus is as wide as the figures)


def curves(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    *,
    title: str,
    across: str,
    up: str,
    log_x: bool = False,
    log_y: bool = False,
    top: float | None = None,
    wide: bool = False,
) -> Markup:
    """Lines over a pair of axes; a line is a name and its points. Names stand in a legend of the page."""
    right = 926 if wide else 452
    points = [point for _, line in lines for point in line if all(map(math.isfinite, point))]
    if not points:
        return Markup("")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x0, x1 = min(xs), max(xs)
    y0, y1 = (min(ys) if log_y else min(0.0, *ys)), top or max(ys)
    y1 = y1 if y1 > y0 else y0 + 1
    place_x = _scale(x0, x1, 52, right, logarithmic=log_x)
    place_y = _scale(y0, y1, 216, 36, logarithmic=log_y)
    body = ""
    for tick in _ticks(y0, y1, logarithmic=log_y):
        y = place_y(tick)
        body += f'<line class="grid" x1="52" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        body += f'<text class="tick" x="46" y="{y + 4:.1f}" text-anchor="end">{_write_tick(tick)}</text>'
    for tick in _ticks(x0, x1, logarithmic=log_x):
        body += f'<text class="tick" x="{place_x(tick):.1f}" y="234" text-anchor="middle">{_write_tick(tick)}</text>'
    body += f'<text class="label" x="{right + 18}" y="256" text-anchor="end">{escape(across)}</text>'
    body += f'<text class="label" x="4" y="14">{escape(up)}</text>'
    for number, (name, line) in enumerate(lines):
        shown = [(x, y) for x, y in line if math.isfinite(x) and math.isfinite(y) and (y > 0 or not log_y)]
        steps = "L".join(f"{place_x(x):.1f} {place_y(y):.1f}" for x, y in shown)
        if steps:
            body += f'<path class="line line-{number}" d="M{steps}"><title>{escape(name)}</title></path>'
    return _svg(body, view=f"0 0 {right + 22} 264", kind="curves wide-only" if wide else "curves", title=title)


def key(number: int) -> Markup:
    """A short piece of a line of `curves`, as it stands in a legend: in its colour and with its dashes."""
    return _svg(f'<path class="line line-{number}" d="M1 5H29"/>', view="0 0 30 10", kind="key")


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def picture(
    labels: Sequence[str], panels: Sequence[tuple[str, Sequence[float | None], Sequence[float | None]]], note: str
) -> str:
    """A chart that stands alone, as a file, with its own colours: bars with error bars and the numbers beside them.

    A panel is a name, its values and their bars.
    """
    body, y = "", 0
    for name, values, bars in panels:
        body += f'<text x="10" y="{y + 24}" font-size="16">{escape(_shorten(name, 80))}</text>'
        place = _scale(*axis(values, bars), 190, 570)
        y += 34
        zero, end = place(0.0), y + 26 * len(labels) - 8
        body += f'<path d="M{zero:.1f} {y}V{end}" stroke="#8a94a0" fill="none"/>'
        for label, value, bar in zip(labels, values, bars, strict=True):
            body += f'<text x="180" y="{y + 14}" text-anchor="end" font-size="13">{escape(_shorten(label, 24))}</text>'
            body += "" if value is None else _draw_alone(value, bar, y, place)
            y += 26
        y += 14
    body += f'<text x="10" y="{y + 10}" font-size="11" fill="#5b6675">{escape(note)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {y + 20}" font-family="sans-serif">'
        f'<rect width="720" height="{y + 20}" fill="#fff"/>{body}</svg>\n'
    )


def _draw_alone(value: float, bar: float | None, y: int, place: Callable[[float], float]) -> str:
    """A bar with its error bar, and both as numbers."""
    left, right = sorted((place(0.0), place(value)))
    drawn = f'<rect x="{left:.1f}" y="{y + 2}" width="{right - left:.1f}" height="14" fill="#7fb9bd"/>'
    said = write_plainly(value, bar)
    if bar is not None and math.isfinite(bar):
        first, last = place(value - bar), place(value + bar)
        path = f"M{first:.1f} {y + 9}H{last:.1f}M{first:.1f} {y + 4}v10M{last:.1f} {y + 4}v10"
        drawn += f'<path d="{path}" stroke="#1c2430" fill="none" stroke-width="1.5"/>'
        said += f" ± {write_plainly(bar, bar)}"
    return drawn + f'<text x="710" y="{y + 14}" text-anchor="end" font-size="13">{said}</text>'
