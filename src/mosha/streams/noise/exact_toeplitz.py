"""Buffered linear Toeplitz noise on the integers: exact where the promise is, floats only behind it.

With A the running sum, C the encoder and D the norms of its columns, the release is the integers

    V_t = P_t + z_t + Q_t(z_0, ..., z_(t-1)),

P_t the running sum of the rounded and weighted data, z the noise, Q_t the past part of A C^-1 z rounded to an integer.
d_t (V_t - V_(t-1)) estimates the data of step t, with errors that cancel in running sums. Proof: `exact_toeplitz.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.streams.noise.blt import Buffers
from mosha.streams.noise.exact_toeplitz_blocks import Lifting
from mosha.streams.noise.tape import Tape

__all__ = ["BandedToeplitz", "LiftedState", "LiftedToeplitz", "lifted_sensitivity", "lifted_unit"]

Vector = NDArray[np.float64]
FRACTION_BITS = 60  # of the buffers
COEFFICIENT_BITS = 60
WEIGHT_BITS = 40
HALF = 1 << (WEIGHT_BITS - 1)
LOW = 32  # bits of the lower half of a weight
WINDOW = 4096  # column norms are computed for so many steps at once
SPARE = 1 + 2.0**-30  # more than the rounding of every norm
DRIFT = 2.0**-54  # what rounding the coefficients adds to a norm, per step of the horizon
ROUNDING = 1.5  # how far two roundings of Q_t differ at most, in steps
MANY = 1 << 13  # so many steps at once are worth a compiler
FINENESS = 15  # what rounding adds to the sensitivity is below one part in 2**14


def lifted_unit(horizon: int, touched: int) -> int:
    """Into how many steps one contribution is divided, so that rounding adds less than a part in 2**14.

    >>> lifted_unit(1 << 20, 1) == 1 << 26
    True
    """
    return 1 << (math.ceil(math.log2(2 * math.sqrt(horizon * touched))) + FINENESS)


def lifted_sensitivity(
    *, gain: float, largest_norm: float, unit: int, touched: int, most: int, horizon: int, sides: int, width: int
) -> float:
    """How far one unit moves the noise that explains a release, in steps, along every path: `exact_toeplitz.md`.

    Args:
        gain: the largest norm of C D^-1 x over the contributions x of one unit, each of size 1.
        largest_norm: the largest d_t.
        unit: steps of the release in one contribution.
        touched: how many coordinates one contribution moves.
        most: how many contributions there are.
        horizon: how many steps.
        sides: 1 where a unit is added or removed, 2 where it is replaced.
        width: how many coordinates there are.
    """
    moved = (unit + largest_norm * math.sqrt(touched)) * (gain + DRIFT * horizon * most) * SPARE * sides
    rounded = (2 + DRIFT * horizon**1.5) * ROUNDING * math.sqrt(float(horizon) * touched * min(most, width) * sides)
    return float((moved + rounded) * SPARE)


@dataclass(slots=True)
class LiftedState:
    """All that a running stream remembers: the last lifted noise; the sum of noise and the buffers.

    Sum and buffers are those before step `since`, or before the present block of the tape if that began later:
    within a block noise is lifted ahead of the data.
    """

    time: int = 0
    noise: Any = 0
    total: Any = 0
    buffers: tuple[Any, ...] = ()
    since: int = 0


class _Window:
    """Weights of the data over 2**40, whole numbers, and what a step of the release is worth, for some steps."""

    def __init__(self, weights: Vector, worths: Vector) -> None:
        self.weights, self.worths = weights, worths
        tops = np.floor(weights * 2.0**-LOW)
        self._most = max(float(tops.max()), 2.0**LOW)
        self._rests = (weights - tops * 2.0**LOW).astype(np.int64)
        self._tops = tops.astype(np.int64)

    @cached_property
    def pairs(self) -> list[tuple[int, float]]:
        return [(int(weight), worth) for weight, worth in zip(self.weights.tolist(), self.worths.tolist(), strict=True)]

    def round_data(self, data: NDArray[np.int64], part: slice) -> NDArray[Any]:
        """floor(data weight / 2**40 + 1/2), in 64 bits where they suffice: the weight in two halves."""
        if max(float(data.max()), -float(data.min())) * self._most < 2.0**61:
            rests = data * self._rests[part]
            rests += HALF
            rests >>= LOW
            rests += data * self._tops[part]
            rests >>= WEIGHT_BITS - LOW
            return rests
        weights = np.array([int(weight) for weight in self.weights[part]], object)
        return np.asarray((data.astype(object) * weights + HALF) >> WEIGHT_BITS)


@dataclass(frozen=True)
class LiftedToeplitz:
    """Running sums by the encoder C D^-1 (or C, where `normalised` is false) over `horizon` steps.

    Units:
        `size` is how far one contribution moves one step's data, in steps of the data; `unit` into how many steps
        of the release that is divided.
    """

    buffers: Buffers
    horizon: int
    size: int
    unit: int
    normalised: bool = True
    _windows: dict[int, _Window] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _coefficients(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """beta_0, beta_i and h_i as integers over 2**60: the h_i are exact."""
        one = 1 << COEFFICIENT_BITS
        tau, eta = [Fraction(x) for x in self.buffers.tau], [Fraction(x) for x in self.buffers.eta]
        first = math.prod(tau) / math.prod(eta)
        others = []
        for i, mine in enumerate(eta):
            gaps = math.prod(other - mine for j, other in enumerate(eta) if j != i)
            others.append(math.prod(other - mine for other in tau) / (-mine * gaps))
        return round(first * one), tuple(round(b * one) for b in others), tuple(int((1 - x) * one) for x in eta)

    @property
    def memory(self) -> int:
        """How many numbers a running stream remembers, the estimate included."""
        return len(self.buffers) + 3

    @cached_property
    def largest_norm(self) -> float:
        """The largest d_t."""
        return math.sqrt(self.buffers.encoder_square(self.horizon)) * SPARE if self.normalised else 1.0

    def _window(self, time: int) -> _Window:
        """The weights of the data around a step."""
        number = time // WINDOW
        if number not in self._windows:
            norms = np.ones(WINDOW)
            last = self.horizon - (number + 1) * WINDOW + 1  # steps left at the end of the window
            if self.normalised:
                norms = np.sqrt(self.buffers.encoder_squares_from(max(1, last), WINDOW)) * SPARE
                norms = norms[::-1] if last >= 1 else norms[np.maximum(np.arange(WINDOW)[::-1] + last, 1) - 1]
            self._windows.clear()
            weights = (self.unit << WEIGHT_BITS) / self.size / norms
            np.floor(weights, out=weights)
            self._windows[number] = _Window(weights, norms * (self.size / self.unit))
        return self._windows[number]

    def _weights(self, time: int) -> tuple[int, float]:
        """The weight of the data at a step, over 2**40, rounded down, and what a step of the release is worth."""
        return self._window(time).pairs[time % WINDOW]

    def start(self, width: int) -> LiftedState:
        nothing: Any = 0 if width == 1 else np.zeros(width, object)
        return LiftedState(0, nothing, nothing, (nothing,) * len(self.buffers))

    @cached_property
    def _lifting(self) -> Lifting:
        return Lifting(*self._coefficients)

    def _next_block(self, state: LiftedState, tape: Tape, *, hurry: bool = False) -> _Block:
        """The block of lifted noise that the next step lies in."""
        number = state.time // tape.size
        if tape.made is None or tape.made[0] != number:
            start = max(state.since, number * tape.size)
            rows = tape.block(number)[start % tape.size :]
            tape.made = (number, _Block(start, *self._lifting.block(rows, state.total, state.buffers, hurry=hurry)))
        made: _Block = tape.made[1]
        return made

    def settle(self, state: LiftedState, tape: Tape) -> LiftedState:
        """The state with sum and buffers brought up to the present step: it needs nothing of this tape any more."""
        number = state.time // tape.size
        start = max(state.since, number * tape.size)
        if start == state.time:
            return replace(state, since=start)
        rows = tape.block(number)[start % tape.size : state.time % tape.size]
        _, total, buffers = self._lifting.block(rows, state.total, state.buffers)
        return LiftedState(state.time, state.noise, total, buffers, state.time)

    def step(self, state: LiftedState, data: Any, tape: Tape) -> tuple[Any, LiftedState]:
        """An estimate of the data of one step, in steps of the data."""
        time = state.time
        ahead = self._next_block(state, tape)
        weight, worth = self._weights(time)
        lifted = ahead.rows[time - ahead.start]
        if isinstance(data, np.ndarray):
            rounded: Any = self._window(time).round_data(data, slice(time % WINDOW, time % WINDOW + 1))
        else:
            rounded = (data * weight + HALF) >> WEIGHT_BITS
        released = rounded + (lifted - state.noise)  # V_t - V_(t-1); the rest is post-processing
        estimate = (released * worth).astype(np.float64) if isinstance(data, np.ndarray) else released * worth
        if (time + 1) % tape.size == 0:
            return estimate, LiftedState(time + 1, lifted, ahead.total, ahead.buffers, time + 1)
        return estimate, LiftedState(time + 1, lifted, state.total, state.buffers, state.since)

    def step_many(self, state: LiftedState, data: NDArray[np.int64], tape: Tape) -> tuple[Vector, LiftedState]:
        """Estimates of the data of many steps of one series at once: the very numbers that single steps give."""
        estimates, taken, hurry = np.empty(data.size), 0, data.size >= MANY
        while taken < data.size:
            ahead, place = self._next_block(state, tape, hurry=hurry), state.time % tape.size
            room = min(data.size - taken, tape.size - place, WINDOW - state.time % WINDOW)
            part = slice(state.time % WINDOW, state.time % WINDOW + room)
            offset, window = state.time - ahead.start, self._window(state.time)
            lifted = ahead.lifted[offset : offset + room, 0]
            rounded = window.round_data(data[taken : taken + room], part)
            moved = rounded + lifted
            moved[1:] -= lifted[:-1]
            moved[0] -= state.noise
            np.multiply(moved.astype(np.float64), window.worths[part], out=estimates[taken : taken + room])
            end = state.time + room
            past = (
                (ahead.total, ahead.buffers, end) if end % tape.size == 0 else (state.total, state.buffers, state.since)
            )
            state = LiftedState(end, int(lifted[-1]), *past)
            taken += room
        return estimates, state


class _Block:
    """Lifted noise of a block from step `start` on, and the sum and the buffers after it."""

    def __init__(self, start: int, lifted: NDArray[np.generic], total: object, buffers: tuple[object, ...]) -> None:
        self.start, self.lifted, self.total, self.buffers = start, lifted, total, buffers

    @cached_property
    def rows(self) -> list[Any]:
        """As numbers for one series, else as arrays of whole numbers: of 64 bits but where the exact road was taken."""
        return self.lifted[:, 0].tolist() if self.lifted.shape[1] == 1 else list(self.lifted)


@dataclass(frozen=True)
class BandedToeplitz:
    """Running sums by a banded encoder C with the falling coefficients c_0 = 1, c_1, ..., c_(p-1).

    Units:
        As for `LiftedToeplitz`; the memory is the last p - 1 numbers of C^-1 z.
    """

    coefficients: tuple[float, ...]
    horizon: int
    size: int
    unit: int
    largest_norm: float = 1.0

    def __post_init__(self) -> None:
        if self.coefficients[0] != 1 or list(self.coefficients) != sorted(self.coefficients, reverse=True):
            raise InvalidParameter("streams.band_not_falling", parameter="coefficients")
        if self.coefficients[-1] < 0 or self.horizon > 1 << 24:
            raise InvalidParameter("streams.band_negative", parameter="coefficients")

    @cached_property
    def _taps(self) -> tuple[int, ...]:
        return tuple(int(Fraction(c) * (1 << COEFFICIENT_BITS)) for c in self.coefficients[1:])

    @property
    def memory(self) -> int:
        return len(self.coefficients) + 2

    def start(self, width: int) -> LiftedState:
        nothing: Any = 0 if width == 1 else np.zeros(width, object)
        return LiftedState(0, nothing, nothing, (nothing,) * (len(self.coefficients) - 1))

    def step(self, state: LiftedState, data: Any, tape: Tape) -> tuple[Any, LiftedState]:
        """An estimate of the data of one step; `total` holds the past of A C^-1 z, `buffers` the last C^-1 z."""
        noise = tape.row(state.time)
        past = 0 * noise
        for tap, buffer in zip(self._taps, state.buffers, strict=True):
            past = past + tap * buffer
        fresh = (noise << FRACTION_BITS) - (past >> COEFFICIENT_BITS)
        total = state.total + fresh
        lifted = total >> FRACTION_BITS  # z_t plus a rounded function of the past: z_t is whole
        rounded = (data * ((self.unit << WEIGHT_BITS) // self.size) + HALF) >> WEIGHT_BITS
        released = rounded + (lifted - state.noise)
        buffers = (fresh, *state.buffers[:-1]) if state.buffers else ()
        return released * (self.size / self.unit), LiftedState(state.time + 1, lifted, total, buffers)
