"""Rounds with correlated noise (`mechanisms/plans/correlated`) that go on after a crash: `correlated_rounds.md`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import RunError, StateRefused
from mosha.core.measurement import Rng
from mosha.exact.grid import LARGEST_STEPS, add_noise
from mosha.exact.statistic import root_up
from mosha.federated.clipping import STEPS
from mosha.federated.noise_secret import MarkedNoise
from mosha.federated.round_number import Turn
from mosha.mechanisms.plans.buffered import BufferedEncoder, encode_step
from mosha.mechanisms.plans.correlated import SCALE, Coefficients, squared_column
from mosha.noise import discrete_gaussian

__all__ = ["MOST_BANDS", "MOST_BUFFERED", "CorrelatedRounds", "buffered_sensitivity", "total_sensitivity"]

MOST_BANDS = 64
MOST_BUFFERED = 1 << 30
"""Weights of a model whose noise is taken back by buffers: what they round grows with the root of their number."""

Past = tuple[NDArray[np.int64], ...]
_LARGEST_SUM = 1 << 44  # of one round, in steps: 64 bands of such sums stay within HELD once they are encoded


def total_sensitivity(bands: int, participations: int) -> float:
    """How far one client moves all encoded rounds together, in the l2 norm (`mechanisms/plans/correlated.md`)."""
    return root_up(participations * squared_column(bands) * STEPS**2)


def buffered_sensitivity(encoder: BufferedEncoder, rounds: int, period: int) -> float:
    """The same for buffers, whose columns overlap, with what they round (`mechanisms/plans/buffered.md`)."""
    return SCALE * STEPS * encoder.norm(rounds, period) + encoder.doubt * math.sqrt(rounds * MOST_BUFFERED)


class CorrelatedRounds:
    """Round t answers sum over j of c_j x_(t-j), plus fresh noise; the last exact sums are the state, and secret.

    With buffers these are the state, and the sum goes back to the first round. With a secret, noise is marked: an
    answer and its mark give back the exact sum, so that a killed run goes on.
    """

    def __init__(
        self, sums: Any, encoding: Coefficients | BufferedEncoder, sigma: Fraction, secret: bytes | None = None
    ) -> None:
        self.sums, self.sigma, self.encoding = sums, sigma, encoding
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
            encoded, kept = encode_step(self.encoding, exact, past)
            noisy = add_noise(encoded, noise)
        return {"steps": noisy, "clip": clip, **how}, (kept, turn.after())

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
        known, _ = encode_step(self.encoding, np.zeros_like(noise), state[0])
        exact = (answer["steps"] - noise - known) // SCALE  # every encoder begins with one
        return encode_step(self.encoding, exact, state[0])[1], state[1].after()
