"""Discrete Laplace noise, and the geometric noise that is one half of it."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, overload

from mosha.noise.envelope import Envelope
from mosha.noise.parameters import TABLES, draw, scale_ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Real, Size

__all__ = ["LaplaceLaw", "discrete_laplace", "geometric"]


class LaplaceLaw:
    """Weights exp(-|x| / scale)."""

    squared = False

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale
        self.rate = float(min(1 / scale, Fraction(1 << 60)))  # beyond that, exp(-rate) is zero anyway

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude / self.scale

    def exponents(self, magnitudes: NDArray[np.float64]) -> NDArray[np.float64]:
        return magnitudes * self.rate

    def reach(self, exponent: float) -> float:
        return float(self.scale) * exponent

    def decay(self, start: int) -> Fraction:  # noqa: ARG002 - the same from everywhere: no memory
        return self.scale


@lru_cache(maxsize=TABLES)
def _table(top: int, bottom: int) -> Envelope:
    return Envelope(LaplaceLaw(Fraction(top, bottom)))


@overload
def discrete_laplace(scale: Real, size: None = None, *, rng: Rng | None = None) -> int: ...
@overload
def discrete_laplace(scale: Real, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.int64]: ...
def discrete_laplace(scale: Real, size: Size = None, *, rng: Rng | None = None) -> int | NDArray[np.int64]:
    """Integers with P(x) proportional to exp(-|x| / scale); one of them when `size` is None.

    Guarantee:
        Exact for the rational number that `scale` is, but for |x| >= 2**62, which is never drawn: the total
        variation gap of n samples is at most `gap(n)`. Proof: `envelope.md`. Added to an integer of
        sensitivity D, the noise gives (D / scale)-differential privacy.

    Units:
        `scale` is in steps of the integer grid, above 0 and at most 2**50. The standard deviation is
        close to scale * sqrt(2) for large scales; P(x = 0) = tanh(1 / (2 scale)).

    Raises:
        InvalidParameter: for a scale that is not a finite number in that range, or a bad `size`.

    Args:
        scale: the width of the noise, taken as the exact rational that it is.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> from mosha.noise import SeededRandom
    >>> discrete_laplace(10, 4, rng=SeededRandom(1)).dtype
    dtype('int64')
    >>> isinstance(discrete_laplace(2.5), int)
    True
    """
    return draw(_table(*scale_ratio("scale", scale)), size, rng)


@overload
def geometric(scale: Real, size: None = None, *, rng: Rng | None = None) -> int: ...
@overload
def geometric(scale: Real, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.int64]: ...
def geometric(scale: Real, size: Size = None, *, rng: Rng | None = None) -> int | NDArray[np.int64]:
    """Integers k >= 0 with P(k) proportional to exp(-k / scale): discrete exponential noise.

    Guarantee:
        Exact up to `gap`, like `discrete_laplace`. Proof: let X be discrete Laplace, q = exp(-1 / scale),
        and fold it: K = X for X >= 0 and K = -1 - X for X < 0. Then P(K = k) = P(X = k) + P(X = -1 - k), which
        is proportional to q**k + q**(k + 1) = (1 + q) q**k, hence to q**k.

    Units:
        `scale` is in steps of the integer grid, above 0 and at most 2**50. The success probability
        of the usual parametrisation is 1 - exp(-1 / scale).

    Args:
        scale: the width of the noise, taken as the exact rational that it is.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> geometric(1e-9)
    0
    """
    noise = discrete_laplace(scale, size, rng=rng)
    return noise ^ (noise >> 63)
