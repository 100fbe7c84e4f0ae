"""Noise on the client: every update is clipped and noised before it leaves, and nobody needs to be trusted with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian, DiscreteLaplace
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.core.number import probability
from mosha.core.options import NoiseName, choose
from mosha.core.unit import Own
from mosha.exact.grid import add_noise
from mosha.federated.clipping import STEPS, bounded_steps, bounded_sum_steps, clip_in_range
from mosha.federated.federation import Federation, accept_updates
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plans.plan import COORDINATES, FederatedPlan, check_count
from mosha.federated.round_number import Turn
from mosha.noise import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from mosha.noise.parameters import enlarge_scale

__all__ = ["ClientSide"]


@dataclass(frozen=True, kw_only=True)
class ClientSide(FederatedPlan):
    """Federated rounds in the local model: each client pays, from an account of its own, for what it sends.

    Fields:
        rounds, clients, clip, outer, proximal, delta: as in ServerSide.
        noise: "gaussian" (the clip bounds the Euclidean length) or "laplace" (it bounds the sum of absolute values).
        period: each client takes part once in so many rounds; in all of them without it.
        noise_multiplier: standard deviation or scale of the noise over the sensitivity, which is twice the clip.

    Guarantee:
        Any update could have been any other: two bounded integer vectors differ by at most 2 STEPS in the norm that was
        bounded, and each report is their value plus discrete noise of noise_multiplier times that. A client sends at
        most ceil(rounds / period) reports. Nothing is gained by sampling: the collector knows who reports.

    >>> plan = ClientSide(rounds=10, clients=100, clip=1.0, noise="laplace", noise_multiplier=2.0)
    >>> plan.epsilon(0.0)
    5.0
    """

    rounds: int
    clients: int
    clip: float
    noise: NoiseName = "gaussian"
    period: int | None = None
    noise_multiplier: float | None = None
    delta: float | None = None
    outer: OuterOptimizer = field(default_factory=FedAvg)
    proximal: float = 0.0

    def __post_init__(self) -> None:
        self._check_fields()
        object.__setattr__(self, "clip", clip_in_range(self.clip))
        choose("noise", str(self.noise), NoiseName)
        if self.noise_multiplier is not None:
            self._scale()

    @property
    def unit(self) -> Own:
        """The client's own value."""
        return Own()

    @property
    def reports(self) -> int:
        """How many reports one client sends at most."""
        return self.sampling.participations(self.rounds)

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` rounds cost one client at most."""
        event = self._report(noise_multiplier)
        return self.sampling.price(event, steps=length, population=self.clients)

    def check_delta(self, delta: float) -> float:
        """A delta that this plan can be sold at: with Laplace noise it may be 0."""
        return probability("delta", delta)

    def _report(self, noise: float) -> Event:
        if self.noise == "laplace":
            return DiscreteLaplace(noise, 2 * STEPS)
        return DiscreteGaussian(noise, 2.0 * STEPS, COORDINATES)

    def _scale(self) -> Fraction:
        scale = enlarge_scale(Fraction(self.chosen_noise) * 2 * STEPS)
        if not 1 << 10 <= scale <= LARGEST_SCALE:
            raise InvalidParameter("federated.noise_out_of_range", parameter="noise_multiplier")
        return scale

    def report(self, updates: NDArray[Any], rng: Rng) -> NDArray[np.int64]:
        """Noisy steps for each row of `updates`, from `rng`: what leaves a client. Runs on the client."""
        if self.noise == "laplace":
            return add_noise(
                bounded_sum_steps(updates, self.clip), discrete_laplace(self._scale(), updates.shape, rng=rng)
            )
        steps = bounded_steps(updates, self.clip)[0].astype(np.int64)
        return add_noise(steps, discrete_gaussian(self._scale(), updates.shape, rng=rng))

    def device(self, coordinates: int, *, about: str = "") -> Measurement:
        """All reports of one client as a measurement for its own account; its data is one update, flat.

        A model has so many `coordinates`; `about` tells runs apart in a ledger.
        """
        width = check_count("coordinates", coordinates)
        self._scale()

        def step(turn: Turn, update: Any, ask: Any, rng: Rng) -> tuple[dict[str, Any], Turn]:
            del ask
            values = np.asarray(update)
            fits = values.shape == (width,) and values.dtype.kind in "fiu"
            row = values.astype(np.float64)[None] if fits else np.zeros((1, width))
            return {"steps": self.report(row, rng)[0], "clip": self.clip}, turn.after()

        name = "reports of one client"
        return self._measure(step, self.reports, name, fingerprint(self, self.unit, width, about))

    def measurement(self, coordinates: int, *, about: str = "") -> Measurement:
        """All rounds of all clients, in one process: the promise to each of them, and the sum of their reports.

        A model has so many `coordinates`; `about` tells runs apart in a ledger.
        """
        width = check_count("coordinates", coordinates)
        self._scale()

        def step(turn: Turn, federation: Federation, ask: Any, rng: Rng) -> tuple[dict[str, Any], Turn]:
            total, count = np.zeros(width, np.int64), 0
            with turn.round() as number:
                chosen = self.sampling.draw(federation.clients(), self.clients, number, rng)
                for block in accept_updates(federation.updates(chosen, ask), chosen, width):
                    total += self.report(block.updates, rng).sum(axis=0)
                    count += len(block.clients)
            return {"steps": total, "clip": self.clip, "reports": count}, turn.after()

        name = "federated rounds, noise on the clients"
        return self._measure(step, self.rounds, name, fingerprint(self, self.unit, width, about))

    def _measure(self, step: Any, horizon: int, name: str, question: str) -> Measurement:
        return Measurement(
            unit=self.unit,
            event=self.event,
            step=step,
            init=Turn,
            horizon=horizon,
            state=StatePolicy(resume=lambda turn, _: turn.after()),  # an answer is one round more
            name=name,
            question=question,
        )

    def decoder(self) -> Callable[[dict[str, Any]], Floats]:
        """What makes a mean update of a sum of reports: post-processing. Who reported is public here."""

        def decode(answer: dict[str, Any]) -> Floats:
            mean: Floats = answer["steps"].astype(np.float64) * (self.clip / STEPS / max(answer["reports"], 1))
            return mean

        return decode
