"""Distributed noise: every client adds a share of it, and secure aggregation opens nothing but the noisy sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, RunError, SourceUnavailable
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian
from mosha.core.measurement import Measurement, StatePolicy
from mosha.core.randomness import Rng
from mosha.core.unit import Client
from mosha.exact.grid import enlarge_scale
from mosha.exact.statistic import fingerprint, root_up
from mosha.federated.clipping import clip_in_range, lengths
from mosha.federated.federation import Federation, accept_updates
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plan import COORDINATES, MOST, FederatedPlan, check_count
from mosha.federated.round_number import Turn
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.rotation import Rotation
from mosha.federated.secure.rounding import longest_rounded, round_within
from mosha.federated.secure.session import Session
from mosha.noise import discrete_gaussian

__all__ = ["Distributed", "Opened", "SecureFederation"]

_FINEST_SHARE = 8  # steps: below, a sum of shares is not close enough to one discrete Gaussian
_RING = 1 << 32


@dataclass(frozen=True)
class Opened:
    """What secure aggregation gives: the sum modulo 2**32, of how many, and the label that their rotation had."""

    total: Ring
    survivors: int
    label: bytes


@runtime_checkable
class SecureFederation(Protocol):
    """A federation whose clients encode and mask what they add themselves (`Distributed.encode`)."""

    def clients(self) -> Sequence[Hashable]: ...

    def secure_sum(self, chosen: Sequence[Hashable], ask: Any) -> Opened: ...


@dataclass(frozen=True, kw_only=True)
class Distributed(FederatedPlan):
    """Federated rounds with differential privacy for each client against the server too.

    Fields:
        rounds, clients, clip, outer, proximal, delta: as in ServerSide.
        survivors: the least number of honest clients whose noise is in a sum; with fewer, a round is never opened.
            If some clients may tell the server their noise, count them out here.
        period: each client takes part once in so many rounds, in its turn (all always do without it). Who takes part
            is known to the server, so nothing is gained by drawing at random.
        coordinates: the most weights a model may have; rounding makes vectors of many coordinates a little longer.
        neighbours: with how many others each client shares masks.
        noise_multiplier: standard deviation of the noise of `survivors` clients over the sensitivity.

    Guarantee:
        For whoever sees the opened sums (the server included): neighbours are federations in which one client has data
        or sends zeros with its noise. A client adds an integer vector of length at most B (`round_within`) and a
        discrete Gaussian share of variance s^2 / survivors; the shares of `survivors` or more clients are as good as
        one discrete Gaussian of parameter s (`shared_noise.md`), s >= noise_multiplier B. Reducing modulo 2**32 is
        post-processing. That the server sees nothing but sums is what `secure_aggregation.md` proves and assumes.

    >>> plan = Distributed(rounds=10, clients=100, clip=1.0, survivors=80).calibrate(epsilon=8, delta=1e-5)
    >>> round(plan.noise_multiplier, 3)
    1.898
    """

    rounds: int
    clients: int
    clip: float
    survivors: int
    period: int | None = None
    coordinates: int = 1 << 20
    neighbours: int = 20
    noise_multiplier: float | None = None
    delta: float | None = None
    outer: OuterOptimizer = field(default_factory=FedAvg)
    proximal: float = 0.0

    def __post_init__(self) -> None:
        self._check_fields()
        for name, most in (("survivors", MOST), ("neighbours", MOST), ("coordinates", 1 << 30)):
            object.__setattr__(self, name, check_count(name, getattr(self, name), at_most=most))
        object.__setattr__(self, "clip", clip_in_range(self.clip))
        if self.neighbours < 2:
            raise InvalidParameter("federated.too_few_partners", parameter="neighbours")
        if not 2 <= self.survivors <= self.sampling.expected_size(self.clients):
            raise InvalidParameter("federated.survivors_of_round", parameter="survivors")
        if self.noise_multiplier is not None:
            self._share(self.noise_multiplier)

    @property
    def unit(self) -> Client:
        """A client that has data or sends zeros with its noise."""
        return Client(neighbours=self.sampling.neighbors)

    @property
    def grid(self) -> int:
        """How many steps the clip has: so few that no sum of twice the expected clients leaves the ring."""
        most = math.ceil(2 * self.sampling.expected_size(self.clients))
        return min(1 << 20, 1 << max(1, 30 - (most - 1).bit_length()))

    @property
    def _square(self) -> int:
        """The square of B."""
        return longest_rounded(self.grid, self.coordinates)

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` rounds cost with this noise."""
        event = DiscreteGaussian(noise_multiplier, root_up(self._square), COORDINATES)
        return self.sampling.price(event, steps=length, population=self.clients)

    def _share(self, noise: float) -> Fraction:
        """The parameter of one client's share of the noise, rounded up."""
        whole = enlarge_scale(Fraction(noise) * Fraction(root_up(self._square)))
        share = Fraction(math.sqrt(whole * whole / self.survivors)) * (1 + Fraction(1, 1 << 50))
        if not share >= _FINEST_SHARE or whole > 1 << 28:
            raise InvalidParameter(
                "federated.share_of_noise_off_grid", parameter="noise_multiplier", least=_FINEST_SHARE
            )
        return share

    def _check_width(self, width: int) -> None:
        if width > self.coordinates:
            raise InvalidParameter(
                "federated.more_weights_than_planned", parameter="coordinates", most=self.coordinates, spent="nothing"
            )

    def session(self, members: Sequence[int], width: int, rng: Rng) -> Session:
        """The terms of one round of secure aggregation among these members."""
        terms = {"neighbours": self.neighbours, "survivors": self.survivors, "width": width}
        return Session.begin(members, rng=rng, agreed=self.agreed, **terms)

    @property
    def agreed(self) -> str:
        """The fingerprint of all that the noise of a round and its price come from; server and clients have the same.

        Rounds are no part of it: each side counts its own.
        """
        noise = (self.clip, self.survivors, self.coordinates, self.chosen_noise)
        return fingerprint("distributed rounds", self.unit, self.clients, self.period, *noise)

    def check(self, session: Session) -> None:
        """Refuse a round that is paid for under another plan, or that could open a sum with less noise than planned."""
        if session.agreed != self.agreed:
            raise RunError("federated.other_plan")
        if session.survivors < self.survivors or session.width > self.coordinates:
            raise RunError("federated.plan_of_too_few")

    def encode(self, update: NDArray[Any], label: bytes, rng: Rng) -> Ring:
        """What a client sums up with the others: clipped, rotated, rounded, with its share of the noise; modulo 2**32.

        Runs on the client. Anything but finite numbers counts as no update at all: zeros and noise.
        """
        values = np.asarray(update, np.float64).reshape(1, -1)
        turn = Rotation(values.shape[1], label)
        self._check_width(turn.width)
        length = lengths(values)[0]
        with np.errstate(all="ignore"):
            scale = self.grid / max(length, self.clip) if np.isfinite(length) else 0.0
            steps = turn(values[0] * scale if np.isfinite(length) else np.zeros(values.shape[1]))
        whole = round_within(steps, square=self._square, rng=rng)
        noisy = whole + discrete_gaussian(self._share(self.chosen_noise), turn.width, rng=rng)
        return (noisy & (_RING - 1)).astype(np.uint32)

    def measurement(self, coordinates: int, *, about: str = "") -> Measurement:
        """All rounds as one measurement on a model with so many weights.

        On a `SecureFederation` a step asks for the opened sum; on any other one it stands for all clients, and forms
        the very sum that secure aggregation would open.
        """
        width = check_count("coordinates", coordinates, at_most=self.coordinates)
        self._check_width(Rotation(width, b"").width)
        self._share(self.chosen_noise)

        def step(turn: Turn, federation: Any, ask: Any, rng: Rng) -> tuple[dict[str, Any], Turn]:
            with turn.round() as number:
                chosen = self.sampling.draw(federation.clients(), self.clients, number, rng)
                if isinstance(federation, SecureFederation):
                    opened = federation.secure_sum(chosen, ask)
                else:
                    opened = self._simulate(federation, chosen, ask, width, rng)
            if opened.survivors < self.survivors:
                raise SourceUnavailable("federated.fewer_than_planned_survived")
            steps = opened.total.view(np.int32).astype(np.int64)
            known = {"survivors": opened.survivors, "label": opened.label, "coordinates": width}
            return {"steps": steps, "clip": self.clip, **known}, turn.after()

        return Measurement(
            unit=self.unit,
            event=self.event,
            step=step,
            init=Turn,
            horizon=self.rounds,
            state=StatePolicy(resume=lambda turn, _: turn.after()),  # an answer is one round more
            name="federated rounds, noise of all clients",
            question=fingerprint(self, self.unit, width, about),
        )

    def _simulate(self, federation: Federation, chosen: Sequence[Hashable], ask: Any, width: int, rng: Rng) -> Opened:
        label = rng.bytes(16)
        total = np.zeros(Rotation(width, label).width, np.uint32)
        survivors = 0
        for block in accept_updates(federation.updates(chosen, ask), chosen, width):
            for row in block.updates:
                total += self.encode(row, label, rng)
                survivors += 1
        return Opened(total, survivors, label)

    def decoder(self) -> Callable[[dict[str, Any]], Floats]:
        """What makes a noisy mean update of an answer: post-processing. Who took part is public here, so it divides."""

        def decode(answer: dict[str, Any]) -> Floats:
            turn = Rotation(answer["coordinates"], answer["label"])
            step = self.clip / self.grid / answer["survivors"]
            mean: Floats = turn.back(answer["steps"].astype(np.float64)) * step
            return mean

        return decode
