"""Lifted noise by the block: z_t + Q_t for many steps at once, exact where floats cannot be trusted.

Q_t depends on noise alone, so a block of it is made ahead of the data: one product of matrices whose entries are whole
numbers small enough for floats to be exact, and one exact update of the buffers every 64 steps. If many steps are taken
at once and numba is installed (the extra `fast`), the spans are compiled: the same numbers. Proof: `exact_toeplitz.md`.
"""

from __future__ import annotations

import importlib.util
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPAN", "Lifting"]

SPAN = 64  # steps between two updates of the buffers
BITS = 60  # of coefficients and of buffers
DEEP = 200  # of powers of h_i, on the way
DECAY = 160  # of h_i^64
LIMIT = 1 << 40  # larger noise takes the exact road, and so does
TAME = 2.0**45  # a larger past
READ, KEPT = 27, 16  # bits of a piece of a coefficient: to read off, to update by
PARTS = 2  # pieces of a coefficient to read off
PIECE = 20  # low bits of noise
FEW = 16


class Lifting:
    """What a block of noise adds, for coefficients beta_0, beta_i and h_i that are whole numbers over 2**60."""

    def __init__(self, first: int, betas: tuple[int, ...], rates: tuple[int, ...]) -> None:
        self._first, self._betas, self._rates = first, betas, rates
        powers = [[1 << DEEP] for _ in rates]
        for column, rate in zip(powers, rates, strict=True):
            for _ in range(SPAN):
                column.append(column[-1] * rate >> BITS)
        self._decays = [column[SPAN] >> (DEEP - DECAY) for column in powers]
        responses = [
            first + (sum(beta * column[j] for beta, column in zip(betas, powers, strict=True)) >> DEEP)
            for j in range(SPAN)
        ]
        self._readout = [
            np.array([(beta * power) / (1 << (DEEP + BITS)) for power in column[:SPAN]])
            for beta, column in zip(betas, powers, strict=True)
        ]
        cuts = [BITS - READ * (i + 1) for i in range(PARTS)]
        pieces = [_toeplitz([r >> cut & ((1 << READ) - 1) for r in responses]) for cut in cuts]
        for i in range(6):
            shift = DEEP - KEPT * (i + 1)
            pieces.append(
                np.array([[column[SPAN - j] >> shift & ((1 << KEPT) - 1) for column in powers] for j in range(SPAN)])
            )
        self._matrix = np.hstack(pieces).astype(np.float64)

    def block(
        self, noise: NDArray[Any], total: object, buffers: tuple[object, ...], *, hurry: bool = False
    ) -> tuple[NDArray[Any], Any, Any]:
        """z_t + Q_t for each row of `noise`, and sum and buffers afterwards; the quick road takes spans of 64.

        In a hurry the spans are compiled, which takes its time once and gives the same numbers.
        """
        width = noise.shape[1]
        totals, kept = np.atleast_1d(np.array(total, object)), [np.atleast_1d(np.array(b, object)) for b in buffers]
        whole = len(noise) - len(noise) % SPAN
        parts = []
        if whole:
            lifted, totals, kept = self._lift_quickly(noise[:whole], totals, kept, hurry=hurry)
            parts.append(lifted)
        if whole < len(noise):
            parts.append(self._lift_each(noise[whole:], totals, kept))
        lifted = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if width == 1:
            return lifted, totals[0], tuple(buffer[0] for buffer in kept)
        return lifted, totals, tuple(kept)

    def _lift_each(self, noise: NDArray[Any], totals: Any, buffers: list[Any]) -> NDArray[Any]:
        """The exact road for each coordinate; sums and buffers are brought up to date where they are."""
        lifted = np.empty(noise.shape, object)
        for c in range(noise.shape[1]):
            lifted[:, c], totals[c], ends = self._lift_exactly(noise[:, c], totals[c], [b[c] for b in buffers])
            for buffer, end in zip(buffers, ends, strict=True):
                buffer[c] = end
        return lifted

    def _lift_exactly(self, noise: Any, total: int, buffers: list[int]) -> tuple[list[int], int, list[int]]:
        """Step by step in whole numbers of any size, rounding down once a step; for one coordinate."""
        lifted = []
        for z in map(int, noise):
            past = (total * self._first) << BITS
            for i, beta in enumerate(self._betas):
                past += beta * buffers[i]
                buffers[i] = ((buffers[i] + (z << BITS)) * self._rates[i]) >> BITS
            lifted.append(z + (past >> (2 * BITS)))
            total += z
        return lifted, total, buffers

    def _lift_quickly(
        self, noise: NDArray[Any], totals: Any, buffers: list[Any], *, hurry: bool = False
    ) -> tuple[NDArray[Any], Any, list[Any]]:
        steps, width = noise.shape
        large = np.abs(noise) >= LIMIT
        tame = np.where(large, 0, noise).astype(np.int64) if large.any() else noise.astype(np.int64, copy=False)
        spans = steps // SPAN
        # rows: span after span, within it coordinate after coordinate
        rows = tame.reshape(spans, SPAN, width).transpose(0, 2, 1).reshape(spans * width, SPAN)
        high, low = self._product(rows >> PIECE), self._product(rows & ((1 << PIECE) - 1))
        if hurry and not large.any() and (made := self._run_kernel(rows, high, low, totals, buffers)) is not None:
            lifted, ends, end = made
            return lifted.reshape(spans, width, SPAN).transpose(0, 2, 1).reshape(steps, width), ends, end
        sums, starts, ends, end = self._advance(rows.reshape(spans, width, SPAN), high, low, totals, buffers)
        within = np.zeros((rows.shape[0], SPAN))
        for i in reversed(range(PARTS)):  # the smallest first
            part = slice(i * SPAN, (i + 1) * SPAN)
            within += (high[:, part] * 2.0**PIECE + low[:, part]) * 2.0 ** (-READ * (i + 1))
        past = (sums * (self._first / (1 << BITS)))[:, None] + np.zeros(SPAN)
        weight = np.abs(past[:, 0])
        for readout, start in zip(self._readout, starts, strict=True):
            past += start[:, None] * readout
            weight += np.abs(start) * readout[0]
        wild = weight >= TAME
        with np.errstate(invalid="ignore"):
            quotients = np.floor(within + np.where(wild[:, None], 0.0, past)).astype(np.int64)
        lifted = (rows + quotients).reshape(spans, width, SPAN).transpose(0, 2, 1).reshape(steps, width)
        if not (wild.any() or large.any()):
            return lifted, ends, end
        far = np.repeat(wild.reshape(spans, width), SPAN, axis=0)
        return self._repair(noise, (large, far), lifted.astype(object), totals.copy(), [b.copy() for b in buffers])

    @cached_property
    def _kernel(self) -> Any:
        if importlib.util.find_spec("numba") is None:
            return None
        from mosha.streams.noise import exact_toeplitz_compiled as compiled  # noqa: PLC0415  (needs numba)

        decays = np.array([compiled.decay_digits(decay) for decay in self._decays])
        return compiled, decays, np.array(self._readout), 2.0 ** -(READ * np.arange(PARTS, 0, -1.0))

    def _run_kernel(
        self, rows: Any, high: object, low: object, totals: Any, buffers: list[Any]
    ) -> tuple[Any, Any, Any] | None:
        """Lifted rows, sums and buffers after them; None where there is no compiler or a number is too large for it."""
        if self._kernel is None or any(abs(total) >> 61 for total in totals):
            return None
        compiled, decays, readout, scales = self._kernel
        if any(abs(number) >> 139 for buffer in buffers for number in buffer):
            return None
        digits = np.array([[compiled.to_digits(int(b[c])) for b in buffers] for c in range(len(totals))], np.int64)
        sums, lifted = np.array([int(total) for total in totals]), np.empty_like(rows)
        first = self._first / (1 << BITS)
        rows = np.ascontiguousarray(rows)
        done = compiled.lift_spans(rows, high, low, sums, digits, decays, first, readout, scales, TAME, lifted)
        if not done:
            return None
        ends = [np.array([compiled.from_digits(row[i]) for row in digits], object) for i in range(len(buffers))]
        return lifted, sums.astype(object), ends

    def _product(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows times the matrix: whole numbers below 2**53, so exact in any order; few at a time stay in one thread."""
        count = rows.shape[0]
        padded = np.zeros((-(-count // FEW) * FEW, SPAN))
        padded[:count] = rows
        return np.asarray(padded.reshape(-1, FEW, SPAN) @ self._matrix).reshape(-1, self._matrix.shape[1])[:count]

    def _advance(self, rows: Any, high: Any, low: Any, totals: Any, buffers: list[Any]) -> tuple[Any, ...]:
        """Sums and buffers at the start of each span, as floats, and at the end of the last one, exact."""
        spans, width, _ = rows.shape
        count = len(buffers)
        kept = [slice(PARTS * SPAN + i * count, PARTS * SPAN + (i + 1) * count) for i in range(6)]
        parts = [(high[:, s].astype(np.int64) << PIECE) + low[:, s].astype(np.int64) for s in kept]
        for i in range(5, 0, -1):
            parts[i - 1] += parts[i] >> KEPT
            parts[i] &= (1 << KEPT) - 1
        rest = (parts[1] << 28) + (parts[2] << 12) + (parts[3] >> 4)
        arrived = [array.astype(object).reshape(spans, width, count) for array in (parts[0], rest)]
        added = rows.sum(axis=2).astype(object)
        ends, seen = list(buffers), []
        if width == 1:  # plain numbers are quicker than arrays of one
            ends, totals = [buffer[0] for buffer in buffers], totals[0]
            arrived, added = [array[:, 0] for array in arrived], added[:, 0]
        for n, (tops, rests) in enumerate(zip(*(array.swapaxes(1, -1) for array in arrived), strict=True)):
            seen.append([totals, *ends])
            totals = totals + added[n]
            ends = [
                (end * decay >> DECAY) + (top << (BITS - KEPT)) + rest
                for end, decay, top, rest in zip(ends, self._decays, tops, rests, strict=True)
            ]
        starts = np.array(seen, np.float64).reshape(spans, count + 1, width)
        if width == 1:
            ends, totals = [np.array([end], object) for end in ends], np.array([totals], object)
        past = starts[:, 1:].transpose(1, 0, 2).reshape(count, -1) * 2.0**-BITS
        return starts[:, 0].ravel(), past, totals, ends

    def _repair(
        self, noise: Any, wrong: tuple[Any, Any], lifted: Any, totals: Any, buffers: list[Any]
    ) -> tuple[Any, Any, list[Any]]:
        """Coordinates that leave the range of floats: from there on exactly, each by itself, whatever comes later.

        Noise that is too large changes the road of the steps after it, a past that is too large that of its own step:
        which road a step takes depends on earlier noise alone.
        """
        large, far = wrong
        for c in range(noise.shape[1]):
            mine = [buffer[c : c + 1] for buffer in buffers]
            bad = np.flatnonzero(large[:, c] | far[:, c])
            until = int(bad[0]) // SPAN * SPAN if bad.size else noise.shape[0]
            if until:
                _, totals[c : c + 1], mine = self._lift_quickly(noise[:until, c : c + 1], totals[c : c + 1], mine)
            state = [buffer[0] for buffer in mine]
            if bad.size:
                exact, totals[c], state = self._lift_exactly(noise[until:, c], totals[c], state)
                place = int(bad[0]) if far[bad[0], c] else int(bad[0]) + 1
                lifted[place:, c] = exact[place - until :]
                lifted[bad[0] : place, c] += noise[bad[0] : place, c].astype(object)  # set aside above
            for buffer, end in zip(buffers, state, strict=True):
                buffer[c] = end
        return lifted, totals, buffers


def _toeplitz(column: list[int]) -> NDArray[np.int64]:
    """From noise at place l of a span to what it adds at place j > l."""
    made = np.zeros((SPAN, SPAN), np.int64)
    for later in range(1, SPAN):
        made[np.arange(SPAN - later), np.arange(later, SPAN)] = column[later]
    return made
