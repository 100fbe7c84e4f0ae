"""Where a falling curve meets a level, from the side that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["crossing"]

LARGEST = 1e12


def crossing(curve: Callable[[float], float], level: float, guess: float, *, above: bool, close: float = 1e-9) -> float:
    """The least x >= 0 with curve(x) <= level, too large (`above`) or too small by a relative `close`; or infinity.

    Guarantee:
        With `above`, curve(answer) <= level was seen. Without it, either the answer is zero or curve(answer) > level.

    >>> round(crossing(lambda x: math.exp(-x), 1e-3, 1.0, above=True), 8)
    6.90775528
    """
    target = math.log(level)

    def height(x: float) -> float:
        value = curve(x)
        if math.isnan(value):
            return 700.0 if above else -700.0  # what is not known is not claimed
        return math.log(value) - target if value > 0 else -700.0

    low = high = (guess, height(guess))
    while high[1] > 0:
        low, high = high, (high[0] * 1.25, height(high[0] * 1.25))
        if high[0] > LARGEST:
            return math.inf
    for part in (0.002, 0.02, 0.08, 0.3, 1.0):  # a first guess is often a little too large
        if low[1] <= 0:
            low, high = (guess * (1 - part), height(guess * (1 - part))), low
    if low[1] <= 0:
        return 0.0
    return _narrow(height, low, high, close)[1 if above else 0]


def _narrow(
    height: Callable[[float], float], low: tuple[float, float], high: tuple[float, float], close: float
) -> tuple[float, float]:
    """A bracket of relative width `close` around the root of a falling function (Chandrupatla's method)."""
    last = low
    share = low[1] / (low[1] - high[1])
    for _ in range(200):
        width = high[0] - low[0]
        if width <= close * high[0]:
            break
        # a little past the root, so that both ends of the bracket close in
        least = 0.4 * close * high[0] / width
        share = min(max(share, least), 1 - least)
        x = low[0] + share * width
        point = (x, height(x))
        low, high, last = (point, high, low) if point[1] > 0 else (low, point, high)
        share = _share(low, high, last)
    return low[0], high[0]


def _share(low: tuple[float, float], high: tuple[float, float], last: tuple[float, float]) -> float:
    """The next point by inverse quadratic interpolation where it can be trusted, else the middle."""
    (a, fa), (b, fb), (c, fc) = low, high, last
    if fb in (fa, fc) or fa == fc or c == a:
        return 0.5
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (phi * phi < xi and (1 - phi) ** 2 < 1 - xi) and not (xi >= 1 or xi <= 0):
        return 0.5
    t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return t if 0 < t < 1 else fa / (fa - fb)
