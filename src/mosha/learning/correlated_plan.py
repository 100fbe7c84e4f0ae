"""The plan of a training whose noise is correlated over steps: what is added in one step is partly taken back later."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Gaussian, Matrix
from mosha.core.number import positive_integer
from mosha.core.options import EncoderName, SamplingName, choose
from mosha.learning.plan import DPSGD
from mosha.mechanisms.plans.buffered import MOST_BUFFERS, BufferedEncoder, optimized_buffers
from mosha.mechanisms.plans.correlated import SCALE, Coefficients, column_norm, encoder
from mosha.mechanisms.plans.optimized_bands import mean_error, optimized_encoder
from mosha.mechanisms.plans.sampling import CyclicPoisson, Sampling

__all__ = ["DPFTRL"]

ENLARGED = 1 + 2.0**-40  # more than a few roundings of a norm take away
LONGEST = 1 << 20  # steps of a run with buffers
SPARE = 1.5  # what the grid leaves for the rounding of buffers, in root coordinates (`mechanisms/plans/buffered.md`)


@dataclass(frozen=True, kw_only=True)
class DPFTRL(DPSGD):
    """Descent with correlated noise: noise added in one step is partly taken back in the next ones.

    Guarantee:
        As `DPSGD`, with the encoder C of `plans/correlated.md`, whose columns are `bands` long. "shuffled": a unit
        is in one batch of each epoch, always the same, `bins >= bands` steps apart, so columns do not overlap and the
        sensitivity is sqrt(epochs) |C e_1|. "poisson": each unit has one of `bands` groups, which take turns, and
        within its group it is drawn by coins of rate * bands: one sampled Gaussian for each column, |C e_1| its norm.
        With `buffers` columns have no end: the sensitivity is the norm of the sum of a unit's columns (`buffered.md`).

    Fields:
        bands: the length of a column: for how many steps a sum is part of what is released. One band is `DPSGD`.
        coefficients: "optimized" for the least error of sums over all steps, or "square_root".
        buffers: in place of bands, with "shuffled" batches: noise is taken back until the end of the run, by so many
            numbers a coordinate (a buffered linear Toeplitz matrix). Two or three do better than many bands.

    >>> plan = DPFTRL(steps=200, rate=0.05, clip=1.0, bands=8).calibrate(epsilon=2, delta=1e-5)
    >>> plain = DPSGD(steps=200, rate=0.05, clip=1.0, sampling="shuffled").calibrate(epsilon=2, delta=1e-5)
    >>> plan.noise_multiplier > plain.noise_multiplier, plan.error_of_sums < plain.error_of_sums
    (True, True)
    >>> buffered = DPFTRL(steps=200, rate=0.05, clip=1.0, buffers=2).calibrate(epsilon=2, delta=1e-5)
    >>> buffered.error_of_sums < 0.9 * plan.error_of_sums
    True
    """

    sampling: SamplingName | Sampling = "shuffled"
    bands: int = 4  # type: ignore[misc]
    coefficients: EncoderName = "optimized"
    buffers: int | None = None  # type: ignore[misc]

    def __post_init__(self, epochs: float | None) -> None:
        super().__post_init__(epochs)
        self._set(bands=positive_integer)
        self._set_given(buffers=positive_integer)
        choose("coefficients", self.coefficients, EncoderName)
        if self.buffers is not None:
            self._check_buffers(self.buffers)
            return
        most = {"shuffled": self.bins, "poisson": math.floor(1 / self.rate)}.get(str(self.sampling), 0)
        if self.bands > most:
            raise InvalidParameter("learning.too_many_bands", parameter="bands", most=most, spent="nothing")

    def _check_buffers(self, buffers: int) -> None:
        """Buffers need a unit's steps to be known; what they round away must be less than the grid leaves for it."""
        object.__setattr__(self, "bands", max(2, self.steps))  # a column is as long as the run
        if buffers > MOST_BUFFERS or self.sampling != "shuffled" or self.steps > LONGEST:
            raise InvalidParameter("learning.buffers_shuffled", parameter="buffers", most=MOST_BUFFERS, spent="nothing")
        found = optimized_buffers(buffers, self.steps, self.bins)
        if found.doubt * math.sqrt(self.steps) > SPARE * SCALE:
            raise InvalidParameter("learning.too_long_for_buffers", parameter="steps", spent="nothing")

    @property
    def drawing(self) -> Sampling:
        """Who is drawn: with Poisson batches, groups of units take turns."""
        cyclic = self.sampling == "poisson" and self.bands > 1
        return CyclicPoisson(self.rate, self.bands) if cyclic else super().drawing

    @property
    def encoding(self) -> Coefficients | BufferedEncoder:
        """A column of the encoder, in whole multiples of 1 / SCALE; or its buffers."""
        if self.buffers is not None:
            return optimized_buffers(self.buffers, self.steps, self.bins)
        if self.coefficients == "optimized":
            return optimized_encoder(self.bands, self.steps)
        return encoder(self.bands)

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` steps cost with this noise: one vector of all of them, or one a turn of sampled groups."""
        encoding, rule = self.encoding, self.drawing
        if isinstance(encoding, BufferedEncoder):
            return Matrix(noise_multiplier, encoding.norm(length, self.bins))
        norm = column_norm(encoding) * ENLARGED
        if self.sampling == "poisson":
            return rule.price(Gaussian(noise_multiplier / norm), steps=length, population=1)
        return Matrix(noise_multiplier, math.sqrt(rule.participations(length)) * norm)

    def choose_bands(self, *, epsilon: float, delta: float) -> Self:
        """The plan calibrated to `epsilon` with the number of bands, a power of two, at which sums have least noise.

        Only the plan is looked at, so the choice is free. With "poisson" the best is never worse than `DPSGD`, which is
        one band: few bands keep amplification, many take more noise back.

        >>> plan = DPFTRL(steps=100, rate=0.02, clip=1.0, sampling="poisson").choose_bands(epsilon=8, delta=1e-5)
        >>> plan.bands, plan.error_of_sums < DPSGD(steps=100, rate=0.02, clip=1.0, noise_multiplier=0.7).error_of_sums
        (16, True)
        """
        most = self.bins if self.sampling == "shuffled" else math.floor(1 / self.rate)
        sizes = [2**power for power in range(min(most, self.steps).bit_length())]
        plans = [replace(self, bands=bands, buffers=None).calibrate(epsilon=epsilon, delta=delta) for bands in sizes]
        return min(plans, key=lambda plan: plan.error_of_sums)

    @property
    def error_of_sums(self) -> float:
        """As for `DPSGD`: less, where noise is taken back."""
        encoding = self.encoding
        if isinstance(encoding, BufferedEncoder):
            return self.chosen_noise * encoding.error_of_sums(self.steps)
        return self.chosen_noise * mean_error(encoding, self.steps)
