"""Rounds with correlated noise (`mechanisms/plans/correlated`) that go on after a crash: `correlated_rounds.md`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import RunError, StateRefused
from mosha.core.randomness import Rng
from mosha.exact.grid import LARGEST_STEPS, add_noise
from mosha.exact.statistic import root_up
from mosha.federated.clipping import STEPS
from mosha.federated.noise_secret import MarkedNoise
from mosha.federated.round_number import Turn
from mosha.mechanisms.plans.correlated import encode_sums, encoder, squared_column
from mosha.noise import discrete_gaussian

__all__ = ["MOST_BANDS", "CorrelatedRounds", "total_sensitivity"]

MOST_BANDS = 64
Past = tuple[NDArray[np.int64], ...]
_LARGEST_SUM = 1 << 44  # of one round, in steps: 64 bands of such sums stay within HELD once they are encoded


def total_sensitivity(bands: int, participations: int) -> float:
    """How far one client moves all encoded rounds together, in the l2 norm (`mechanisms/plans/correlated.md`)."""
    return root_up(participations * squared_column(bands) * STEPS**2)


class CorrelatedRounds:
    """Round t answers sum over j of c_j x_(t-j), plus fresh noise; the last exact sums are the state, and secret.

    With a secret, noise is marked: an answer and its mark give back the exact sum, so that a killed run goes on.
    """

    def __init__(self, sums: Any, bands: int, sigma: Fraction, secret: bytes | None = None) -> None:
        self.sums, self.sigma, self.bands = sums, sigma, bands
        self.marked = None if secret is None else MarkedNoise(secret)
        self.resume = None if self.marked is None else self._resume

    def init(self) -> tuple[Past, Turn]:
        return (), Turn()

    def step(
        self, state: tuple[Past, Turn], federation: Any, ask: Any, rng: Rng
    ) -> tuple[dict[str, Any], tuple[Past, Turn]]:
        past, turn = state
        if turn.broken:
            raise RunError("federated.round_broke")
        clip = self.sums.first_clip()
        with turn.round() as number:
            exact = np.clip(self.sums.of(federation, ask, clip, number, rng), -_LARGEST_SUM, _LARGEST_SUM)
            noise, how = self._noise(rng)
            noisy = add_noise(encode_sums((exact, *past), self.bands), noise)
        return {"steps": noisy, "clip": clip, **how}, self._after(state, exact)

    def _after(self, state: tuple[Past, Turn], exact: NDArray[np.int64]) -> tuple[Past, Turn]:
        return (exact, *state[0])[: self.bands - 1], state[1].after()

    def _draw(self, rng: Rng) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = discrete_gaussian(self.sigma, self.sums.width, rng=rng)
        return drawn

    def _noise(self, rng: Rng) -> tuple[NDArray[np.int64], dict[str, bytes]]:
        """Noise of one round, and what is told about it."""
        if self.marked is None:
            return self._draw(rng), {}
        mark = rng.bytes(16)
        noise = self._draw(self.marked.source(mark))
        return noise, {"mark": mark, "seal": self.marked.seal(mark, noise)}

    def _resume(self, state: tuple[Past, Turn], answer: dict[str, Any]) -> tuple[Past, Turn]:
        """The state after a round that an earlier process answered: its noise is made again and taken away."""
        assert self.marked is not None
        if "mark" not in answer or np.abs(answer["steps"]).max() >= LARGEST_STEPS:
            raise StateRefused("federated.begun_without_secret", spent="nothing")
        noise = self._draw(self.marked.source(answer["mark"]))
        self.marked.check(answer["mark"], noise, answer["seal"])
        known = encode_sums((np.zeros_like(noise), *state[0]), self.bands)
        return self._after(state, (answer["steps"] - noise - known) // encoder(self.bands)[0])
