"""Cross-silo training: each example is hidden, every silo adds a share of the noise, and one sum alone is opened."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.fingerprint import fingerprint, stored_as, write_fields
from mosha.core.measurement import Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive
from mosha.core.unit import Example
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plans.secure_plan import Opened, SecurePlan
from mosha.federated.plans.shared_noise import share_scale
from mosha.federated.secure.keys import Ring
from mosha.learning import DPSGD
from mosha.learning.rounding import COARSE, Grid, grid_of
from mosha.noise import discrete_gaussian

__all__ = ["DistributedExamples"]

_RING = 1 << 32
_ROOM = 30  # bits of the ring for sums of a batch of the declared size, and one more bit for larger ones


@renamed_argument(neighbours="partners")
@dataclass(frozen=True, kw_only=True)
class DistributedExamples(SecurePlan):
    """Gradient steps of several silos, such as hospitals, with differential privacy for each of their examples.

    Every silo draws its examples by coins of its own, clips the gradient of each, adds them up, and adds a share of one
    noise; the server opens the noisy sum of all silos and nothing else. The noise is that of one training on all data
    together, where `ExampleLevel` adds the noise of every silo.

    Fields:
        rounds: the number of gradient steps.
        clients: how many silos there are.
        survivors: the least number of silos whose noise is in a sum; with fewer, a round is never opened.
        colluding: from how many silos, that know their own noise and may tell the server, examples of the others are
            protected too: by default from any one.
        rate: the probability that an example is in the batch of a round; no one but its silo knows whether it was.
        clip: the most that one example may add to the sum of gradients, in the l2 norm.
        batch: how many examples you expect in a round, of all silos together: the divisor. Declared, never counted.
        physical: the most rows that pass through the model at once, the same in all silos.
        coordinates: the most weights a model may have.
        partners: with how many others each silo shares masks.
        noise_multiplier: the noise of `survivors - colluding` silos over the clip.
        outer: what the server makes of a noisy mean gradient; the rate of `FedAvg(rate=...)` is the learning rate.

    Guarantee:
        For whoever sees the opened sums, the server included, and knows the noise of `colluding` silos: neighbors
        differ in one example of one of the other silos, and rounds are no easier to tell apart than `event` says:
        Poisson samples, Gaussian noise of `noise_multiplier`. Proof: `shared_noise_of_examples.md`. There is no promise
        for a silo as a whole, and who takes part is public.

    >>> plan = DistributedExamples(rounds=100, clients=5, survivors=4, rate=0.02, clip=1.0, batch=64)
    >>> round(plan.calibrate(epsilon=2, delta=1e-5).noise_multiplier, 2)
    0.88
    """

    rounds: int
    clients: int
    survivors: int
    rate: float
    clip: float
    batch: float
    physical: int | None = None
    coordinates: int = 1 << 20
    partners: int = field(default=20, metadata=stored_as("neighbours"))
    __repr__ = write_fields
    colluding: int = 1
    noise_multiplier: float | None = None
    delta: float | None = None
    outer: OuterOptimizer = field(default_factory=FedAvg)
    period: ClassVar[int | None] = None
    proximal: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        self._check_fields()
        self._check_secure_fields()
        object.__setattr__(self, "batch", positive("batch", self.batch))
        terms = self.terms  # refuses a rate, a clip or a size that no training has
        object.__setattr__(self, "rate", terms.rate)
        object.__setattr__(self, "clip", terms.clip)
        if self.noise_multiplier is not None:
            self._check_noise()

    @property
    def unit(self) -> Example:
        """One example of one silo."""
        return Example()

    @property
    def terms(self) -> DPSGD:
        """The training of one silo: its part of the batch, with the noise of all."""
        return DPSGD(
            steps=self.rounds,
            rate=self.rate,
            clip=self.clip,
            batch=self.batch / self.clients,
            physical=self.physical,
            noise_multiplier=self.noise_multiplier,
            delta=self.delta,
        )

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` rounds cost with this noise: that of a training on all data together."""
        return self.terms.price(noise_multiplier, length)

    def grid(self, coordinates: int) -> Grid:
        """The public grid that sums of a model with so many weights are on."""
        known = {"physical": self.terms.at_once, "coordinates": coordinates, "fine": COARSE}
        return grid_of(noise_multiplier=self.chosen_noise, **known)

    def _share(self, coordinates: int) -> Fraction:
        """The parameter of one silo's share of the noise, rounded up."""
        return share_scale(self.grid(coordinates).sigma, self.sharing)

    def _check_noise(self) -> None:
        self._share(1)
        most = 1 << max(0, _ROOM - self.grid(1).bits)
        if self.batch > most:
            raise InvalidParameter("federated.batch_leaves_ring", parameter="batch", most=most, spent="nothing")

    def width(self, coordinates: int) -> int:
        """One number for each weight."""
        return coordinates

    @property
    def agreed(self) -> str:
        """See `SecurePlan.agreed`."""
        drawn = (self.rate, self.clip, self.batch, self.physical)
        noise = (self.survivors, self.colluding, self.coordinates, self.chosen_noise)
        return fingerprint("distributed rounds of examples", self.unit, self.clients, *drawn, *noise)

    def encode(self, sums: NDArray[np.int64], rng: Rng) -> Ring:
        """What a silo adds: its exact `sums`, on the grid, with its share of the noise from `rng`; modulo 2**32.

        Runs in the silo (`ExampleSums` makes the sum).
        """
        self._check_width(len(sums))
        noisy = sums + discrete_gaussian(self._share(len(sums)), len(sums), rng=rng)
        return (noisy & (_RING - 1)).astype(np.uint32)

    def sum_in_process(
        self, federation: object, chosen: Sequence[Hashable], ask: Any, coordinates: int, rng: Rng
    ) -> Opened:
        """Refused: what a client sends must have been made of single examples (`Silos`, `flower_examples`).

        It takes what `Distributed.sum_in_process` takes: `federation`, `chosen`, `ask`, `coordinates` and `rng`.
        """
        del federation, chosen, ask, coordinates, rng
        raise InvalidParameter("federated.sums_of_examples_needed", parameter="federation")

    def takes(self, federation: object) -> bool:
        """Only a `federation` that sums up examples, each silo by itself."""
        return callable(getattr(federation, "secure_sum", None))

    def decoder(self) -> Callable[[dict[str, Any]], Floats]:
        """What makes a step downhill of an answer: post-processing. The silos that took part are public."""

        def decode(answer: dict[str, Any]) -> Floats:
            grid = self.grid(answer["coordinates"])
            drawn = self.batch * answer["survivors"] / self.clients
            worth = self.clip / (grid.target * 2.0**grid.bits * drawn)
            step: Floats = answer["steps"].astype(np.float64) * -worth
            return step

        return decode
