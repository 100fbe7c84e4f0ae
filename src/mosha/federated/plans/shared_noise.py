"""Distributed noise: every client adds a share of it, and secure aggregation opens nothing but the noisy sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian
from mosha.core.fingerprint import fingerprint, stored_as, write_fields
from mosha.core.measurement import Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.unit import Client
from mosha.exact.statistic import root_up
from mosha.federated.clipping import clip_in_range, lengths
from mosha.federated.federation import Federation, accept_updates
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plans.plan import COORDINATES
from mosha.federated.plans.secure_plan import Opened, SecurePlan
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.rotation import Rotation
from mosha.federated.secure.rounding import longest_rounded, round_within
from mosha.noise import discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["Distributed", "share_scale"]

_FINEST_SHARE = 8  # steps: below, a sum of shares is not close enough to one discrete Gaussian
_RING = 1 << 32


def share_scale(whole: Fraction, shares: int) -> Fraction:
    """The parameter of one of so many shares of noise of parameter `whole`, rounded up.

    >>> share_scale(Fraction(100), 4) >= 50
    True
    """
    share = Fraction(math.sqrt(whole * whole / shares)) * (1 + Fraction(1, 1 << 50))
    if not share >= _FINEST_SHARE or whole > 1 << 28:
        raise InvalidParameter("federated.share_of_noise_off_grid", parameter="noise_multiplier", least=_FINEST_SHARE)
    return share


@renamed_argument(neighbours="partners")
@dataclass(frozen=True, kw_only=True)
class Distributed(SecurePlan):
    """Federated rounds with differential privacy for each client against the server too.

    Fields:
        rounds, clients, clip, outer, proximal, delta: as in ServerSide.
        survivors: the least number of clients whose noise is in a sum; with fewer, a round is never opened.
        colluding: how many of them may tell the server their noise; the noise of the others alone keeps the promise.
        period: each client takes part once in so many rounds, in its turn (all always do without it). Who takes part
            is known to the server, so nothing is gained by drawing at random.
        coordinates: the most weights a model may have; rounding makes vectors of many coordinates a little longer.
        partners: with how many others each client shares masks.
        noise_multiplier: standard deviation of the noise of `survivors - colluding` clients over the sensitivity.

    Guarantee:
        For whoever sees the opened sums (the server included): neighbors are federations in which one client has data
        or sends zeros with its noise. A client adds an integer vector of length at most B (`round_within`) and a
        discrete Gaussian share of variance s^2 / m, m = survivors - colluding; the shares of m or more are as good as
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
    partners: int = field(default=20, metadata=stored_as("neighbours"))
    __repr__ = write_fields
    colluding: int = field(default=0, repr=False)  # told apart by `measurement`, so that older payments are found
    noise_multiplier: float | None = None
    delta: float | None = None
    outer: OuterOptimizer = field(default_factory=FedAvg)
    proximal: float = 0.0

    def __post_init__(self) -> None:
        self._check_fields()
        object.__setattr__(self, "clip", clip_in_range(self.clip))
        self._check_secure_fields()
        if self.noise_multiplier is not None:
            self._share(self.noise_multiplier)

    @property
    def unit(self) -> Client:
        """A client that has data or sends zeros with its noise."""
        return Client(neighbors=self.sampling.neighbors)

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
        return share_scale(enlarge_scale(Fraction(noise) * Fraction(root_up(self._square))), self.sharing)

    def _check_noise(self) -> None:
        self._share(self.chosen_noise)

    def width(self, coordinates: int) -> int:
        """A power of two: encoded updates are rotated."""
        return Rotation(coordinates, b"").width

    @property
    def agreed(self) -> str:
        """The fingerprint of all that the noise of a round and its price come from; server and clients have the same.

        Rounds are no part of it: each side counts its own.
        """
        noise = (self.clip, self.survivors, self.coordinates, self.chosen_noise, *self._told_apart)
        return fingerprint("distributed rounds", self.unit, self.clients, self.period, *noise)

    def encode(self, update: NDArray[Any], label: bytes, rng: Rng) -> Ring:
        """What a client sums up with the others: clipped, rotated, rounded, with its share of the noise; modulo 2**32.

        Runs on the client. Anything but finite numbers counts as no update at all: zeros and noise.

        `update` is flat; `label`, the same for all clients of a round, chooses the rotation; `rng` rounds and draws the
        noise.
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

    def sum_in_process(
        self, federation: Federation, chosen: Sequence[Hashable], ask: Any, coordinates: int, rng: Rng
    ) -> Opened:
        """The very sum that secure aggregation would open, of clients that send plain updates.

        The `chosen` clients of `federation` answer `ask`; `rng` draws what each of them would draw.
        """
        label = rng.bytes(16)
        total = np.zeros(self.width(coordinates), np.uint32)
        survivors = 0
        for block in accept_updates(federation.updates(chosen, ask), chosen, coordinates):
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
