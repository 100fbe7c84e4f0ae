"""Predicted errors: how far what is published strays from the truth, at each step, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.streams.noise.blt import Buffers
from mosha.streams.noise.blt_error import EXACT, curve
from mosha.streams.noise.toeplitz import decoder
from mosha.streams.noise.tree import SignedTree
from mosha.streams.readout import Decayed, Readout, Running, Sliding

__all__ = ["Profile", "profile_band", "profile_buffers", "profile_increments", "profile_tree"]

LONGEST = 1 << 17  # responses are followed so far; later they hardly change
TIMES = 96  # from each end of a horizon, and of a window, so many are worked out; those between follow a straight line
_BETWEEN = 1 + 2.0**-11  # more than a straight line lies below the curve


@dataclass(frozen=True)
class Profile:
    """Standard deviations per unit of noise: after a number of steps, the largest, and the root of the mean square."""

    at: Callable[[int], float]
    largest: float
    root_mean_square: float


def _of_response(response: NDArray[np.float64], horizon: int, factor: float = 1.0) -> Profile:
    """From the response to one unit of noise: variances add up over all noise so far."""
    deviations = factor * np.sqrt(np.cumsum(response**2))
    last = deviations.size

    def at(time: int) -> float:
        return float(deviations[min(time, last) - 1])

    square = float(np.sum(deviations**2)) + (horizon - last) * float(deviations[-1]) ** 2
    return Profile(at, float(deviations[-1]), math.sqrt(square / horizon))


def profile_increments(readout: Readout, horizon: int) -> Profile:
    """Noise on each step by itself."""
    if isinstance(readout, Running):
        return Profile(math.sqrt, math.sqrt(horizon), math.sqrt((horizon + 1) / 2))
    return _of_response(readout.respond(np.ones(min(horizon, LONGEST))), horizon)


def profile_tree(tree: SignedTree, readout: Readout, horizon: int) -> Profile:
    """Trees: a running sum uses `weight` nodes, a window those that its two ends do not share; decay is bounded."""
    if isinstance(readout, Running):
        mean = math.sqrt(tree.mean_weight(horizon))
        return Profile(lambda time: math.sqrt(tree.weight(time)), math.sqrt(tree.largest_weight(horizon)), mean)
    most = math.sqrt(2 * tree.largest_weight(horizon))
    if isinstance(readout, Decayed):
        return Profile(lambda _: most * math.sqrt(2), most * math.sqrt(2), most * math.sqrt(2))
    steps = readout.steps if isinstance(readout, Sliding) else 1

    def weigh(times: NDArray[np.int64]) -> NDArray[np.int64]:
        return tree.weigh_between(np.maximum(times - steps, 0), times)

    def at(time: int) -> float:
        return math.sqrt(int(weigh(np.array([time]))[0]))

    if horizon > LONGEST:
        return Profile(at, most, most)
    weights = weigh(np.arange(1, horizon + 1))
    return Profile(at, math.sqrt(int(weights.max())), math.sqrt(float(weights.mean())))


def profile_band(coefficients: NDArray[np.float64], readout: Readout, horizon: int) -> Profile:
    """Bands of a square root."""
    return _of_response(readout.respond(decoder(coefficients, horizon)), horizon)


def profile_buffers(buffers: Buffers, readout: Readout, horizon: int, *, normalised: bool) -> Profile:
    """Buffered linear Toeplitz noise."""
    if isinstance(readout, Running):
        found = curve(buffers, horizon, normalised=normalised)
        return Profile(found.at, found.largest, found.root_mean_square)
    steps = np.arange(min(horizon, LONGEST))
    first, betas = buffers.decoder_residues()
    sums = first + np.exp(np.multiply.outer(steps, np.log1p(-np.array(buffers.eta)))) @ betas
    sums[0] = 1.0
    if not normalised:
        return _of_response(readout.respond(sums), horizon)
    if horizon > EXACT:  # the noise of the first steps is the largest
        return _of_response(readout.respond(sums), horizon, math.sqrt(buffers.encoder_square(horizon)))
    return _of_scaled_steps(np.diff(sums, prepend=0.0), readout, buffers, horizon)


def _of_scaled_steps(steps: NDArray[np.float64], readout: Readout, buffers: Buffers, horizon: int) -> Profile:
    """From the response of each step to one unit of noise, where step u is scaled by what is left of its column.

    At time t noise s enters with the sum over u of weight(t - u) scale(u) steps(u - s); squares add up over s.
    """
    weights = readout.respond(np.ones(horizon))
    scales = np.sqrt(buffers.encoder_squares(np.arange(horizon, 0, -1, dtype=np.float64)))
    early = np.minimum(np.unique(np.rint(np.geomspace(1, horizon, TIMES)).astype(np.int64)), horizon)
    full = int(np.flatnonzero(weights)[-1]) + 1  # from here on a window forgets as much as it learns
    times = np.unique(np.concatenate([early, horizon + 1 - early, full + early, full + 1 - early]))
    times = times[(times >= 1) & (times <= horizon)]
    away = times[:, None] - 1 - np.arange(horizon)
    heavy = np.where(away >= 0, weights[np.maximum(away, 0)], 0.0) * scales
    size = 2 * horizon
    entered = np.fft.irfft(np.fft.rfft(heavy, size) * np.conj(np.fft.rfft(steps, size)), size)[:, :horizon]
    deviations = np.sqrt(np.sum(entered**2, axis=1))
    every = np.interp(np.arange(1, horizon + 1), times, deviations) * _BETWEEN

    def at(time: int) -> float:
        return float(every[min(max(time, 1), horizon) - 1])

    return Profile(at, float(every.max()), math.sqrt(float(np.mean(every**2))))
