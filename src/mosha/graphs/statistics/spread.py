"""How wide the noise of a subgraph count was: its width is private, so a noisy bound on it is paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.measurement import Rng
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.mechanisms.picture import draw_bars
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["SPREAD_SHARE", "Noise", "draw_spread", "find_doubt", "picture", "read_width", "spread_event"]

SPREAD_SHARE = 2.0**-3
"""The part of epsilon that pays for the error bar."""

FINENESS = 32
"""Widths that stand for all others lie so close together: a 32nd of the width and of the noise on it."""

HALVINGS = 6
"""The doubt is found to about a hundredth."""

LEAST_DOUBT = 2.0**-1000
"""Where the search ends: confidences closer to one than numbers can tell."""

Numbers = NDArray[np.float64]


class Noise(Protocol):
    """The noise of a count, by the width of its graph: at a larger width it strays beyond any bar more often."""

    def reach(self, width: int, doubt: float) -> float:
        """A bar that the noise exceeds with this chance at most."""

    def exceed(self, width: int, bars: Numbers) -> Numbers:
        """The chance that the noise exceeds each of these bars."""


def find_doubt(noise: Noise, cap: int, share: float, confidence: float) -> float:
    """The doubt for which a bar of the noise at the *noisy* width holds with this confidence, whatever the width is.

    Guarantee:
        See *The bar* in `ladder.md`: the chance of a miss is worked out over both noises together, at widths that stand
        for all others, each with the larger noise and the smaller bar of those between.

    Args:
        noise: of the count.
        cap: the largest width that there can be.
        share: of epsilon, for the noisy width.
        confidence: of the bar.
    """
    widths, allowed = _place_widths(cap, 1 / share), 1 - confidence
    chances = _find_chances(np.array(widths), share)

    def miss(doubt: float) -> float:
        bars = np.array([noise.reach(width, doubt) for width in widths])
        above = [*widths[1:], widths[-1]]
        return max(float(chance @ noise.exceed(width, bars)) for chance, width in zip(chances, above, strict=True))

    low = high = allowed
    while miss(low) > allowed and low > LEAST_DOUBT:
        low, high = low / 2, low
    for _ in range(HALVINGS if low < high else 0):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if miss(middle) <= allowed else (low, middle)
    return low


def _place_widths(cap: int, scale: float) -> list[int]:
    """Widths from 0 to the largest, the further apart the larger they are."""
    widths = [0]
    while widths[-1] < cap:
        widths.append(min(widths[-1] + max(1, int((widths[-1] + scale) / FINENESS)), cap))
    return widths


def _find_chances(widths: NDArray[np.int64], share: float) -> Numbers:
    """For each width, how likely its noisy width lies from each of the others (or below the first) up to the next."""
    away = widths[None, 1:] - widths[:, None]
    ratio = math.exp(-share)
    tail = ratio ** np.maximum(np.abs(away) + (away <= 0), 1) / (1 + ratio)
    reached = np.where(away > 0, tail, 1 - tail)  # P(noise >= away)
    edge = np.ones((len(widths), 1))
    return -np.diff(np.hstack([edge, reached, 0 * edge]), axis=1)


def draw_spread(widths: tuple[int, ...], share: float, rng: Rng) -> int:
    """The largest width plus discrete Laplace noise of scale 1 / share: one edge moves it by one at most."""
    scale = Fraction(laplace_multiplier(share))
    return max(widths) + int(unbounded_laplace(scale, 1, rng=rng)[0])


def spread_event(share: float) -> Event:
    return DiscreteLaplace(laplace_multiplier(share))


def read_width(answer: Any, cap: int) -> int:
    """The width that a bar is made for: the noisy one, a public guess for a forecast, or the largest there is."""
    found = cap if answer is None else int(answer["width"] if "width" in answer else answer["spread"])
    return min(max(found, 0), cap)


def picture(title: str) -> Callable[[Any, Any], Any]:
    """What `Measurement.draw` wants, for answers with a value and a spread."""

    def draw(answer: Any, error: Any) -> Any:
        return draw_bars(answer["value"], error, title=title, labels=None)

    return draw
