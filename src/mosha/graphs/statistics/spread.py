"""How wide the noise of a subgraph count was: its width is private, so a noisy bound on it is paid for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.randomness import Rng
from mosha.graphs.statistics.subgraphs import SubgraphCount
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.mechanisms.picture import draw_bars
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["SPREAD_SHARE", "draw_spread", "picture", "split_confidence", "spread_event", "widen"]

SPREAD_SHARE = 2.0**-3
"""The part of epsilon that pays for the error bar."""

WIDTH_DOUBT = 0.3
"""The part of the doubt that a bar leaves to its width; the rest is left to the noise of the count."""


def split_confidence(confidence: float) -> tuple[float, float]:
    """How sure a bound on the width and a bar of the noise must be, so that both hold with this confidence.

    >>> [round(part, 3) for part in split_confidence(0.95)]
    [0.985, 0.965]
    """
    return 1 - WIDTH_DOUBT * (1 - confidence), 1 - (1 - WIDTH_DOUBT) * (1 - confidence)


def draw_spread(widths: tuple[int, ...], share: float, rng: Rng) -> int:
    """The largest width plus discrete Laplace noise of scale 1 / share: one edge moves it by one at most."""
    scale = Fraction(laplace_multiplier(share))
    return max(widths) + int(unbounded_laplace(scale, 1, rng=rng)[0])


def spread_event(share: float) -> Event:
    return DiscreteLaplace(laplace_multiplier(share))


def widen(answer: Any, statistic: SubgraphCount, share: float, confidence: float) -> tuple[int, ...]:
    """Widths that the true ones do not exceed, with this confidence; all that is possible where nothing is known.

    Only noise that made the width smaller can hurt: one side of the law, half as often as both.
    """
    if answer is None:
        bound = statistic.cap
    elif "width" in answer:  # a public guess, for a forecast
        bound = int(answer["width"])
    else:
        bound = answer["spread"] + laplace_width(1 / share, 1 - 2 * (1 - confidence))
    return (min(max(bound, 0), statistic.cap),) * statistic.parts


def picture(title: str) -> Callable[[Any, Any], Any]:
    """What `Measurement.draw` wants, for answers with a value and a spread."""

    def draw(answer: Any, error: Any) -> Any:
        return draw_bars(answer["value"], error, title=title, labels=None)

    return draw
