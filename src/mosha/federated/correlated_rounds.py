"""Noise that is correlated over rounds: the matrix mechanism with a banded Toeplitz encoder, on integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import RunError, StateRefused
from mosha.core.randomness import Rng
from mosha.exact.grid import HELD, noised
from mosha.exact.statistic import root_up
from mosha.federated.clipping import STEPS
from mosha.federated.noise_secret import Marked
from mosha.federated.round_number import Turn
from mosha.noise import discrete_gaussian

__all__ = ["MOST_BANDS", "CorrelatedRounds", "Inverse", "scale_of", "whole_sensitivity"]

MOST_BANDS = 64
Past = tuple[NDArray[np.int64], ...]
_SCALE = 1 << 12
_LARGEST_SUM = 1 << 44  # of one round, in steps: 64 bands of such sums stay within HELD once they are encoded


@lru_cache(maxsize=64)
def encoder(bands: int) -> tuple[int, ...]:
    """The first coefficients of 1 / sqrt(1 - x), in steps of 2**-12: the square root of summing, cut to a band.

    >>> encoder(3)
    (4096, 2048, 1536)
    """
    found, coefficient = [], Fraction(1)
    for j in range(bands):
        found.append(round(coefficient * _SCALE))
        coefficient *= Fraction(2 * j + 1, 2 * j + 2)
    return tuple(found)


def scale_of(bands: int) -> float:
    """How many steps of noise stand for one step of a sum."""
    return float(_SCALE) if bands > 1 else 1.0


def whole_sensitivity(bands: int, participations: int) -> float:
    """How far one client moves all encoded rounds together, in the Euclidean norm; proved in `correlated_rounds.md`."""
    return root_up(participations * sum(c * c for c in encoder(bands)) * STEPS**2)


class CorrelatedRounds:
    """Round t answers sum over j of c_j x_(t-j), plus fresh noise; the last exact sums are the state, and secret.

    With a secret, noise is marked: an answer and its mark give back the exact sum, so that a killed run goes on.
    """

    def __init__(self, sums: Any, bands: int, sigma: Fraction, secret: bytes | None = None) -> None:
        self.sums, self.sigma, self.encoder = sums, sigma, encoder(bands)
        self.marked = None if secret is None else Marked(secret)
        self.resume = None if self.marked is None else self._resume

    def init(self) -> tuple[Past, Turn]:
        return (), Turn()

    def step(
        self, state: tuple[Past, Turn], federation: Any, ask: Any, rng: Rng
    ) -> tuple[dict[str, Any], tuple[Past, Turn]]:
        past, turn = state
        if turn.broken:
            raise RunError("a round broke, and the noise of later ones leans on it: this run is over.")
        clip = self.sums.first_clip()
        with turn.round() as number:
            exact = np.clip(self.sums.of(federation, ask, clip, number, rng), -_LARGEST_SUM, _LARGEST_SUM)
            noise, how = self._noise(rng)
            noisy = noised(self._encoded((exact, *past)), noise)
        return {"steps": noisy, "clip": clip, **how}, self._after(state, exact)

    def _encoded(self, sums: Past) -> NDArray[np.int64]:
        """What is noised, of the sums of this round and earlier ones."""
        total = sum(c * x for c, x in zip(self.encoder, sums, strict=False))
        return np.asarray(total, np.int64)

    def _after(self, state: tuple[Past, Turn], exact: NDArray[np.int64]) -> tuple[Past, Turn]:
        return (exact, *state[0])[: len(self.encoder) - 1], state[1].after()

    def _drawn(self, rng: Rng) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = discrete_gaussian(self.sigma, self.sums.width, rng=rng)
        return drawn

    def _noise(self, rng: Rng) -> tuple[NDArray[np.int64], dict[str, bytes]]:
        """Noise of one round, and what is told about it."""
        if self.marked is None:
            return self._drawn(rng), {}
        mark = rng.bytes(16)
        noise = self._drawn(self.marked.source(mark))
        return noise, {"mark": mark, "seal": self.marked.seal(mark, noise)}

    def _resume(self, state: tuple[Past, Turn], answer: dict[str, Any]) -> tuple[Past, Turn]:
        """The state after a round that an earlier process answered: its noise is made again and taken away."""
        assert self.marked is not None
        if "mark" not in answer or np.abs(answer["steps"]).max() >= HELD:
            raise StateRefused(
                "this run was begun without a secret, or its numbers left their range: it cannot go on. No client was "
                "asked and nothing was spent."
            )
        noise = self._drawn(self.marked.source(answer["mark"]))
        self.marked.check(answer["mark"], noise, answer["seal"])
        known = self._encoded((np.zeros_like(noise), *state[0]))
        return self._after(state, (answer["steps"] - noise - known) // self.encoder[0])


class Inverse:
    """Makes noisy sums of encoded ones, in order: x_t = (y_t - sum over j >= 1 of c_j x_(t-j)) / c_0."""

    def __init__(self, bands: int) -> None:
        self.encoder = encoder(bands) if bands > 1 else (1,)
        self._past: list[NDArray[np.float64]] = []

    def __call__(self, encoded: NDArray[np.int64]) -> NDArray[np.float64]:
        found = encoded.astype(np.float64)
        for c, x in zip(self.encoder[1:], self._past, strict=False):
            found = found - c * x
        found = found / self.encoder[0]
        self._past = [found, *self._past][: len(self.encoder) - 1]
        return found
