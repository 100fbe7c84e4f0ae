"""Correlated noise whose columns have no end: a buffered linear Toeplitz encoder, on integers.

C has the coefficients c_0 = 1 and c_j = sum over buffers of a_i t_i^(j-1): a few numbers of state a coordinate, however
long the run (Dvijotham et al. 2024; McMahan et al. 2024). What is released is C x + z, as for bands; what the recursion
rounds away is bounded and paid for. Proof: `buffered.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive_integer
from mosha.mechanisms.plans.correlated import SCALE, Coefficients, Decoder, encode_sums

__all__ = ["MOST_BUFFERS", "BufferedDecoder", "BufferedEncoder", "encode_step", "make_decoder", "optimized_buffers"]

Sums = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_BUFFERS = 4
POLE = 30  # bits of a pole: t_i = poles[i] / 2**POLE
FINE = 12  # bits behind the point of a buffer
LOW = 24  # bits of the lower part of a buffer
HELD = 56  # bits of a buffer
PIECE = 1 << 15  # coordinates that are worked on together, so that they stay in the cache
ENLARGED = 1 + 2.0**-30  # more than the roundings of a norm take away, up to 2**20 steps


@dataclass(frozen=True)
class BufferedEncoder:
    """Poles in units of 2**-POLE, below one, and weights in units of 1 / SCALE, none negative.

    Guarantee:
        `encode` gives SCALE (C x)_t within (-doubt, 0] at every coordinate, for sums within `largest`, to which it
        holds them; every product and sum is below 2**63. `buffered.md` proves it.

    >>> encoder = BufferedEncoder((1 << 29,), (SCALE // 2,))
    >>> encoder.coefficients(4).tolist()
    [1.0, 0.5, 0.25, 0.125]
    >>> first, kept = encoder.encode(np.array([3]), ())
    >>> first.tolist(), (encoder.encode(np.array([0]), kept)[0] / SCALE).tolist()
    ([12288], [1.5])
    """

    poles: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.poles) == len(self.weights) <= MOST_BUFFERS
        assert all(0 <= pole < 1 << POLE for pole in self.poles)
        assert all(0 <= weight <= SCALE for weight in self.weights)

    @property
    def _gaps(self) -> list[float]:
        """1 - t_i, exact."""
        return [((1 << POLE) - pole) / (1 << POLE) for pole in self.poles]

    @property
    def largest(self) -> int:
        """What a coordinate of a sum is held to, so that no buffer outgrows its bits."""
        return int(2 ** (HELD - FINE) * min(self._gaps)) - 1

    @property
    def doubt(self) -> float:
        """How far two encoded numbers can differ by rounding alone, in units of 1 / SCALE."""
        lost = sum(weight / gap for weight, gap in zip(self.weights, self._gaps, strict=True))
        return (len(self.poles) + lost * 2.0**-FINE) * ENLARGED

    def coefficients(self, steps: int) -> Floats:
        """c_0, ..., c_(steps-1)."""
        poles, weights = np.array(self.poles) / (1 << POLE), np.array(self.weights) / SCALE
        return np.concatenate([[1.0], weights @ poles[:, None] ** np.arange(steps - 1)])

    def norm(self, steps: int, apart: int) -> float:
        """The norm of the sum of the columns of a unit that is there every `apart` steps, from the first on."""
        return math.sqrt(_square_pattern(self.coefficients(steps), apart)) * ENLARGED

    def encode(self, sums: Sums, buffers: Sequence[Sums]) -> tuple[Sums, tuple[Sums, ...]]:
        """SCALE (C x) in this step, from its exact sums and the buffers before it, and the buffers after it."""
        found = np.clip(sums, -self.largest, self.largest)
        after = tuple(b.copy() for b in buffers) or tuple(np.zeros_like(sums) for _ in self.poles)
        for start in range(0, len(sums), PIECE):
            part = slice(start, start + PIECE)
            self._encode_piece(found[part], [buffer[part] for buffer in after])
        return found, after

    def _encode_piece(self, sums: Sums, buffers: list[Sums]) -> None:
        """In place: products of numbers of more than 63 bits are made of an upper and a lower part."""
        given = sums << FINE
        sums *= SCALE
        for pole, weight, buffer in zip(self.poles, self.weights, buffers, strict=True):
            high, low = buffer >> LOW, buffer & ((1 << LOW) - 1)
            sums += (weight * high << (LOW - FINE)) + (weight * low >> FINE)
            np.add((pole * high + (pole * low >> LOW)) >> (POLE - LOW), given, out=buffer)

    def error_of_sums(self, steps: int) -> float:
        """The error of sums from the first step on (root mean square over all of them), for noise of deviation one."""
        poles, weights = np.array(self.poles) / (1 << POLE), np.array(self.weights) / SCALE
        return math.sqrt(_square_error(poles, weights, steps))


class BufferedDecoder:
    """Undoes the encoder, in order, from released numbers alone.

    >>> encoder = BufferedEncoder((1 << 29,), (SCALE // 2,))
    >>> decode, kept = BufferedDecoder(encoder), ()
    >>> first, kept = encoder.encode(np.array([8]), kept)
    >>> second, kept = encoder.encode(np.array([-3]), kept)
    >>> decode(first).tolist(), decode(second).tolist()
    ([8.0], [-3.0])
    """

    def __init__(self, encoder: BufferedEncoder) -> None:
        self._poles = [pole / (1 << POLE) for pole in encoder.poles]
        self._weights = [weight / SCALE for weight in encoder.weights]
        self._buffers: list[Floats] = []

    def __call__(self, released: Sums | Floats) -> Floats:
        found = released / SCALE
        self._buffers = self._buffers or [np.zeros_like(found) for _ in self._poles]
        for weight, buffer in zip(self._weights, self._buffers, strict=True):
            found -= weight * buffer
        for pole, buffer in zip(self._poles, self._buffers, strict=True):
            np.multiply(buffer, pole, out=buffer)
            np.add(buffer, found, out=buffer)
        return found

    def state(self) -> list[Floats]:
        """What a checkpoint has to keep: public, like everything made of released numbers."""
        return [buffer.copy() for buffer in self._buffers]

    def restore(self, state: Sequence[Floats]) -> None:
        """Go on after the steps of a checkpoint."""
        self._buffers = [np.array(buffer, np.float64) for buffer in state]


def encode_step(
    encoding: Coefficients | BufferedEncoder, sums: Sums, before: tuple[Sums, ...]
) -> tuple[Sums, tuple[Sums, ...]]:
    """SCALE (C x) in this step, and what the next one needs: earlier sums, the latest first, or buffers.

    >>> encode_step((SCALE, SCALE // 2), np.array([1]), (np.array([2]),))
    (array([8192]), (array([1]),))
    """
    if isinstance(encoding, BufferedEncoder):
        return encoding.encode(sums, before)
    known = (sums, *before)[: len(encoding)]
    return encode_sums(known, encoding), known[: len(encoding) - 1]


def make_decoder(encoding: Coefficients | BufferedEncoder) -> Decoder | BufferedDecoder:
    """What undoes this encoder.

    >>> make_decoder((SCALE,))(np.array([7])).tolist()
    [7.0]
    """
    return BufferedDecoder(encoding) if isinstance(encoding, BufferedEncoder) else Decoder(encoding)


def _square_pattern(column: Floats, apart: int) -> float:
    whole = np.zeros_like(column)
    for start in range(0, len(column), apart):
        whole[start:] += column[: len(column) - start]
    return float(whole @ whole)


def _square_error(poles: Floats, weights: Floats, steps: int) -> float:
    """The mean square error of sums: what the noise of one step adds later on, by C^-1 as a quotient of polynomials."""
    from scipy.signal import lfilter  # noqa: PLC0415  (planning alone needs it)

    below = np.poly(poles)
    above = below.copy()
    for place, weight in enumerate(weights):
        above[1:] += weight * np.poly(np.delete(poles, place))
    with np.errstate(all="ignore"):
        left = np.asarray(lfilter(below, above, np.ones(steps)))
        return float(np.arange(steps, 0, -1) @ np.square(left)) / steps


@lru_cache(maxsize=64)
def optimized_buffers(buffers: int, steps: int, apart: int) -> BufferedEncoder:
    """The encoder with the least norm times error of sums, over so many steps in which a unit is `apart` steps apart.

    Any encoder is private: the price is computed from it, so that a search that stops early costs accuracy alone.

    >>> encoder = optimized_buffers(2, 200, 20)
    >>> plain = math.sqrt(10) * BufferedEncoder((0,), (0,)).error_of_sums(200)
    >>> encoder.norm(200, 20) * encoder.error_of_sums(200) < plain / 2.5
    True
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (planning alone needs it)

    count, length = positive_integer("buffers", buffers), positive_integer("steps", steps)

    def read(logs: Floats) -> tuple[Floats, Floats]:
        return -np.expm1(-np.exp(logs[:count])), np.exp(logs[count:])

    def cost(logs: Floats) -> float:
        poles, weights = read(logs)
        column = np.concatenate([[1.0], weights @ poles[:, None] ** np.arange(length - 1)])
        found = _square_pattern(column, apart) * _square_error(poles, weights, length)
        return math.log(found) if np.isfinite(found) else 1e3

    gaps = np.geomspace(0.5, 2.0 / max(apart, 8), count) if count > 1 else np.array([2.0 / max(apart, 8)])
    start = np.concatenate([np.log(-np.log(gaps)), np.log(0.35 * np.sqrt(gaps))])
    bounds = [(-4.0, 2.2)] * count + [(-12.0, 0.0)] * count  # poles up to 1 - 2**-13
    with np.errstate(all="ignore"):
        found = minimize(cost, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    poles, weights = read(found.x)
    return BufferedEncoder(
        tuple(round(pole * 2**POLE) for pole in poles.tolist()), tuple(round(w * SCALE) for w in weights.tolist())
    )
