"""How far buffered linear Toeplitz noise strays, step by step: from the covariance of its few numbers of state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.streams.noise.blt import Buffers

__all__ = ["Curve", "curve"]

EXACT = 4096  # up to here every step is a piece of its own


@dataclass(frozen=True)
class Curve:
    """Standard deviations of the running sum after `times` steps, per unit of noise."""

    times: NDArray[np.int64]
    deviations: NDArray[np.float64]

    def at(self, time: int) -> float:
        """After `time` steps (1 or more), between two known points by a straight line."""
        return float(np.interp(time, self.times, self.deviations))

    @property
    def largest(self) -> float:
        return float(self.deviations.max())

    @property
    def root_mean_square(self) -> float:
        squares = self.deviations**2
        lengths = np.diff(self.times, prepend=0)
        middles = (squares + np.concatenate([squares[:1], squares[:-1]])) / 2
        exact = lengths == 1
        return math.sqrt(float(np.sum(np.where(exact, squares, middles) * lengths) / self.times[-1]))


@lru_cache(maxsize=64)
def curve(buffers: Buffers, horizon: int, *, normalised: bool) -> Curve:
    """The deviations over the horizon; exact up to 4096 steps, beyond that on a grid that follows both ends.

    A piece of 2^j steps is one matrix product: the state moves by X' = F X + G z, so L steps move its covariance by
    F^L K (F^L)^T plus a sum that doubles with L. Within a piece d_t is taken as constant; it moves by
    less than a part in 10^3 there.
    """
    powers = _powers(buffers, horizon)
    size = len(buffers) + 1
    covariance = np.zeros((size, size))
    times, variances, norm, time = [], [], 1.0, 0
    while time < horizon:
        room = 1 if horizon <= EXACT else max(1, min(time + 1, horizon - time) // 24)
        level = room.bit_length() - 1
        length = 1 << level
        new = math.sqrt(buffers.encoder_square(horizon - time - length // 2)) if normalised else 1.0
        covariance[0, :] *= norm / new
        covariance[:, 0] *= norm / new
        move, added = powers[level]
        covariance = move @ covariance @ move.T + added
        norm, time = new, time + length
        times.append(time)
        variances.append(covariance[0, 0] * norm**2)
    return Curve(np.array(times), np.sqrt(np.array(variances)))


def _powers(buffers: Buffers, horizon: int) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    eta = np.array(buffers.eta)
    _, betas = buffers.decoder_residues()
    size = len(buffers) + 1
    move, gain = np.diag(np.concatenate([[1.0], 1 - eta])), np.concatenate([[1.0], 1 - eta])
    move[0, 1:] = -betas * eta / (1 - eta)
    added = np.outer(gain, gain)
    found = []
    for _ in range(max(1, horizon.bit_length())):
        found.append((move, added))
        added = added + move @ added @ move.T
        move = move @ move
    assert found[0][0].shape == (size, size)
    return found
