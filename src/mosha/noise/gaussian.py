"""Discrete Gaussian noise."""

from __future__ import annotations

import importlib.util
import math
import sys
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, overload

from mosha.core.errors import InvalidParameter
from mosha.noise.envelope import Envelope
from mosha.noise.parameters import TABLES, draw, generator, scale_ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Real, Size

__all__ = ["GaussianLaw", "add_discrete_gaussian", "discrete_gaussian", "prepare_draws", "scaled_discrete_gaussian"]


_LARGE: Final = 1 << 17  # values for which it pays to load numba
_SMALL: Final = 1 << 10  # values for which it pays to use what was loaded
_MANY: Final = 1 << 24  # values, in many draws, for which it pays to load numba


class GaussianLaw:
    """Weights exp(-x**2 / (2 sigma**2))."""

    squared = True

    def __init__(self, sigma: Fraction) -> None:
        self.variance = sigma * sigma
        self._deviation = float(sigma)
        rate = min(1 / (2 * self.variance), Fraction(1 << 60))  # beyond that, exp(-rate) is zero anyway
        self.rate = float(rate)

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude * magnitude / (2 * self.variance)

    def exponents(self, magnitudes: NDArray[np.float64]) -> NDArray[np.float64]:
        return magnitudes * magnitudes * self.rate

    def reach(self, exponent: float) -> float:
        return self._deviation * math.sqrt(2 * exponent)

    def decay(self, start: int) -> Fraction:
        return self.variance / start


@lru_cache(maxsize=TABLES)
def _table(top: int, bottom: int) -> Envelope:
    return Envelope(GaussianLaw(Fraction(top, bottom)))


@overload
def discrete_gaussian(sigma: Real, size: None = None, *, rng: Rng | None = None) -> int: ...
@overload
def discrete_gaussian(sigma: Real, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.int64]: ...
def discrete_gaussian(sigma: Real, size: Size = None, *, rng: Rng | None = None) -> int | NDArray[np.int64]:
    """Integers with P(x) proportional to exp(-x**2 / (2 sigma**2)); one of them when `size` is None.

    Guarantee:
        Exact for the rational number that `sigma` is, but for |x| >= 2**62, which is never drawn: the total
        variation gap of n samples is at most `gap(n)`. Proof: `envelope.md`. Added to integers of
        l2-sensitivity D, the noise gives rho-zCDP with rho = D**2 / (2 sigma**2) (Canonne, Kamath, Steinke 2020).

    Units:
        `sigma` is in steps of the integer grid, above 0 and at most 2**50. The standard deviation is at
        most sigma, and equals it to 15 digits for sigma >= 2.

    Raises:
        InvalidParameter: for a sigma that is not a finite number in that range, or a bad `size`.

    Args:
        sigma: the width of the noise, taken as the exact rational that it is.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> from mosha.noise import SeededRandom
    >>> discrete_gaussian(10, (2, 3), rng=SeededRandom(1)).shape
    (2, 3)
    >>> discrete_gaussian(1e-9)
    0
    """
    return draw(_table(*scale_ratio("sigma", sigma)), size, rng)


def add_discrete_gaussian(values: NDArray[np.int64], sigma: Real, *, rng: Rng | None = None) -> None:
    """Add an independent `discrete_gaussian` to each of the values, in place: no second array of their size is made.

    Guarantee:
        What is added is what `discrete_gaussian(sigma, len(values))` would be.

    Units:
        As there. The values are whole steps, below 2**62 in magnitude, so that no sum leaves 64 bits. Large arrays take
        compiled passes where numba is installed (the extra `fast`).

    Args:
        values: a writable array of 64-bit integers with one dimension.
        sigma: the width of the noise, in steps.
        rng: a random generator; the secure one of the process by default.

    >>> import numpy as np
    >>> from mosha.noise import SeededRandom
    >>> values = np.full(1000, 7)
    >>> add_discrete_gaussian(values, 10, rng=SeededRandom(1))
    >>> bool((values == 7 + discrete_gaussian(10, 1000, rng=SeededRandom(1))).all())
    True
    """
    if getattr(values, "dtype", None) != "int64" or values.ndim != 1 or not values.flags.writeable:
        raise InvalidParameter("noise.not_an_array_of_integers", parameter="values")
    _table(*scale_ratio("sigma", sigma)).add_to(values, generator(rng), compiled=_is_worth_compiling(values))


def scaled_discrete_gaussian(
    values: NDArray[np.float32], sigma: Real, factor: float, *, rng: Rng | None = None
) -> None:
    """Turn each of the values into (value + noise) * factor, in place and in one pass: a noisy sum as it is used.

    Guarantee:
        Each value is cut towards zero to a whole number, a `discrete_gaussian` of its own is added exactly, and what
        is rounded to single precision and multiplied afterwards is the noisy whole number alone: post-processing.

    Units:
        `sigma` is in steps of the integer grid. The values are finite and below 2**52 in magnitude (not looked at).

    Args:
        values: a writable array in single precision with one dimension.
        sigma: the width of the noise, in steps.
        factor: what each noisy value is multiplied by.
        rng: a random generator; the secure one of the process by default.

    >>> import numpy as np
    >>> from mosha.noise import SeededRandom
    >>> values = np.full(1000, 7.9, np.float32)
    >>> scaled_discrete_gaussian(values, 10, 0.5, rng=SeededRandom(1))
    >>> bool((values == 0.5 * (7 + discrete_gaussian(10, 1000, rng=SeededRandom(1)))).all())
    True
    """
    if getattr(values, "dtype", None) != "float32" or values.ndim != 1 or not values.flags.writeable:
        raise InvalidParameter("noise.not_an_array_of_floats", parameter="values")
    table = _table(*scale_ratio("sigma", sigma))
    table.scale_with(values, factor, generator(rng), compiled=_is_worth_compiling(values))


def prepare_draws(values: int, times: int) -> None:
    """Load the compiled passes, where so many draws of so many values will pay for that: samples are the same.

    Args:
        values: how many are drawn at a time.
        times: how many times.

    >>> prepare_draws(10, 10)
    """
    if values >= _SMALL and values * times >= _MANY and importlib.util.find_spec("numba") is not None:
        import mosha.noise.compiled  # noqa: F401, PLC0415


def _is_worth_compiling(values: NDArray[np.generic]) -> bool:
    if "mosha.noise.compiled" in sys.modules:
        return len(values) >= _SMALL
    return len(values) >= _LARGE and importlib.util.find_spec("numba") is not None
