"""Predicted errors: how far what is published strays from the truth, at each step, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.streams.noise.blt import Buffers
from mosha.streams.noise.blt_error import curve
from mosha.streams.noise.toeplitz import decoder
from mosha.streams.noise.tree import SignedTree
from mosha.streams.readout import Readout, Running

__all__ = ["Profile", "profile_band", "profile_buffers", "profile_increments", "profile_tree"]

LONGEST = 1 << 17  # responses are followed so far; later they hardly change


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
    """Trees: a running sum uses `weight` nodes; what is made of several running sums is bounded by their sum."""
    if isinstance(readout, Running):
        mean = math.sqrt(tree.mean_weight(horizon))
        return Profile(lambda time: math.sqrt(tree.weight(time)), math.sqrt(tree.largest_weight(horizon)), mean)
    most = math.sqrt(2 * tree.largest_weight(horizon)) * (
        1.0 if readout.word.startswith(("sl", "in")) else math.sqrt(2)
    )
    return Profile(lambda _: most, most, most)


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
    factor = math.sqrt(buffers.encoder_square(horizon)) if normalised else 1.0
    return _of_response(readout.respond(sums), horizon, factor)
