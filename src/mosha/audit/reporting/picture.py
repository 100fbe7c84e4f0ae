"""Small pictures as SVG text, for reports that need nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from mosha.audit.claims.claim import Claim
from mosha.audit.reporting.outcome import Witness
from mosha.core.language import say

__all__ = ["bars", "tradeoff"]

SIZE, MARGIN = 260, 42
Points = Iterable[tuple[float, float]]


def tradeoff(name: str, claim: Claim, curve: Iterable[tuple[float, float]], witness: Witness | None) -> str:
    """The claimed trade-off curve (nothing may lie above it) and what the best attack reached on fresh answers."""
    grid = np.unique(np.concatenate([np.linspace(0, 1, 61), np.geomspace(1e-4, 1, 30)]))
    allowed = [(0.0, 0.0), *zip(grid.tolist(), claim.greatest(grid).tolist(), strict=True)]
    reached = sorted(max(point, (1 - point[1], 1 - point[0]), key=lambda p: p[1] - p[0]) for point in curve)
    parts = [
        _axes(say("audit.false_positives"), say("audit.true_positives")),
        f'<polygon class="allowed" points="{_path([*allowed, (1, 1)])}"/>',
        f'<polyline class="claim" points="{_path(allowed)}"/>',
        f'<polyline class="guess" points="{_path([(0, 0), (1, 1)])}"/>',
        f'<polyline class="seen" points="{_path(reached)}"/>',
    ]
    if witness is not None:
        x, y = _place(
            witness.count_against / witness.trials_against,
            witness.count / witness.trials,
        )
        title = f"<title>{escape(say('audit.the_witness'))}</title>"
        parts.append(f'<circle class="witness" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>')
    return _frame(parts, say("audit.tradeoff_of", name=name))


def bars(rows: Sequence[tuple[str, float, float]], *, unit: str) -> str:
    """Horizontal bars: (label, value, limit); the limit is a tick, a bar beyond it is marked."""
    top = max([value for _, value, _ in rows] + [limit for _, _, limit in rows] + [1e-9]) * 1.1
    height, width, left = 22, 420, 200
    parts = []
    for i, (label, value, limit) in enumerate(rows):
        y, length, tick = 8 + i * height, (width - left) * value / top, left + (width - left) * limit / top
        kind = "over" if value > limit else "within"
        parts += [
            f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="{kind}" x="{left}" y="{y}" width="{length:.1f}" height="14"/>',
            f'<line class="limit" x1="{tick:.1f}" y1="{y - 2}" x2="{tick:.1f}" y2="{y + 16}"/>',
            f'<text x="{left + length + 5:.1f}" y="{y + 11}">{value:.3g}</text>',
        ]
    total = 16 + len(rows) * height
    return (
        f'<svg role="img" aria-label="{escape(unit)}" viewBox="0 0 {width + 50} {total}" width="{width + 50}">'
        + "".join(parts)
        + "</svg>"
    )


def _place(x: float, y: float) -> tuple[float, float]:
    return MARGIN + SIZE * min(max(x, 0.0), 1.0), 10 + SIZE * (1 - min(max(y, 0.0), 1.0))


def _path(points: Points) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in (_place(*point) for point in points))


def _axes(below: str, beside: str) -> str:
    left, bottom = _place(0, 0)
    right, top = _place(1, 1)
    ticks = "".join(
        f'<text x="{_place(t, 0)[0]:.0f}" y="{bottom + 15:.0f}" text-anchor="middle">{t:g}</text>'
        f'<text x="{left - 5:.0f}" y="{_place(0, t)[1] + 4:.0f}" text-anchor="end">{t:g}</text>'
        for t in (0, 0.5, 1)
    )
    return (
        f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/>{ticks}'
        f'<text x="{(left + right) / 2}" y="{bottom + 30}" text-anchor="middle">{below}</text>'
        f'<text transform="translate(12 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">{beside}</text>'
    )


def _frame(parts: Sequence[str], title: str) -> str:
    width, height = SIZE + MARGIN + 12, SIZE + 46
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">' + "".join(parts) + "</svg>"
    )
