"""Noise at the server: it sums clipped updates, adds noise to the sum and divides by the expected cohort."""

from __future__ import annotations

import math
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
from mosha.core.number import positive_integer, probability
from mosha.core.options import NoiseName, choose
from mosha.core.unit import Client
from mosha.exact.grid import add_noise
from mosha.exact.statistic import root_up
from mosha.federated.clipping import STEPS, bounded_sum_steps, clip_in_range, lengths, scaled_steps
from mosha.federated.federation import Block, Federation, accept_updates
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plans.correlated_rounds import (
    MOST_BANDS,
    MOST_BUFFERED,
    CorrelatedRounds,
    buffered_sensitivity,
    total_sensitivity,
)
from mosha.federated.plans.plan import COORDINATES, FederatedPlan
from mosha.federated.round_number import Turn
from mosha.federated.weights import Weights
from mosha.mechanisms.plans.adaptive_clip import AdaptiveClip
from mosha.mechanisms.plans.buffered import MOST_BUFFERS, BufferedEncoder, make_decoder, optimized_buffers
from mosha.mechanisms.plans.correlated import Coefficients, encoder
from mosha.mechanisms.plans.sampling import FixedSize, FreshSampling, Poisson
from mosha.noise import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from mosha.noise.parameters import enlarge_scale

__all__ = ["ServerSide"]

MOST_ROUNDS = 1 << 20  # with buffers
_FINEST, _COARSEST = 1 << 10, LARGEST_SCALE  # a standard deviation has at least and at most so many steps


@dataclass(frozen=True, kw_only=True)
class ServerSide(FederatedPlan):
    """Federated rounds with differential privacy for each client, given by a server that is trusted with updates.

    Fields:
        rounds: how many.
        clients: how many clients are planned with; public. Fewer make the answer smaller and no less private.
        clip: the longest update, or an AdaptiveClip.
        rate: each client takes part with this probability (Poisson), or
        cohort: exactly so many take part, or
        period: each client takes part once in so many rounds, in its turn, or none of these: everybody always does.
        bands: with a period, noise that is correlated over so many rounds (DP-FTRL); at most the period. One band is
            independent noise.
        buffers: in place of bands: noise is taken back until the last round, by so many numbers a weight (BLT).
        noise_multiplier: standard deviation over sensitivity; see `calibrate`.
        delta: the plan is sold as one piece at this delta; without it the account pays round by round.
        outer: what the server does with the mean update.
        proximal: the pull of FedProx, told to clients.
        weights: clients count alike (None) or by bounded weights.
        noise: "gaussian" (the clip bounds the Euclidean length) or "laplace" (it bounds the sum of absolute values,
            for small models; delta may be 0).

    Guarantee:
        A round answers z + sum over drawn clients of v, z discrete Gaussian with parameter s >= noise_multiplier D.
        Each v depends on its client alone (`accept_updates`, `bounded_steps`) and is an integer vector with
        |v|^2 <= STEPS^2 + half^2 (`half`: the bit of an adaptive clip), so that sums of neighbors differ by at most
        D = moves * sqrt(STEPS^2 + half^2). Drawing is the sampling's own and priced by it; whose turn it is
        follows from the run's own count of rounds (`Turn`), whatever is asked. Who drops out adds zero and
        the divisor is public: dropouts change no noise. The clip in force is a function of earlier answers; rounds
        compose, `resume` computes that same function. Finite support: `exact/clamping.md`; correlated noise:
        `correlated_rounds.md`. Laplace: |v|_1 <= STEPS (`bounded_sum_steps`; shares only cut entries towards zero), so
        sums differ by at most moves STEPS in l1, and noise of scale nm moves STEPS costs 1 / nm, as in `laplace`.

    Units:
        `clip` is in the unit of the weights; answers are whole steps of clip / STEPS.

    >>> plan = ServerSide(rounds=100, clients=1000, rate=0.01, clip=1.0, noise_multiplier=1.0)
    >>> round(plan.epsilon(1e-6), 3)
    0.954
    """

    rounds: int
    clients: int
    clip: float | AdaptiveClip
    rate: float | None = None
    cohort: int | None = None
    period: int | None = None
    bands: int = 1
    buffers: int | None = None
    noise_multiplier: float | None = None
    delta: float | None = None
    outer: OuterOptimizer = field(default_factory=FedAvg)
    proximal: float = 0.0
    weights: Weights | None = None
    noise: NoiseName = "gaussian"

    def __post_init__(self) -> None:
        choose("noise", str(self.noise), NoiseName)
        self._check_fields()
        if not isinstance(self.clip, AdaptiveClip):
            object.__setattr__(self, "clip", clip_in_range(self.clip))
        if self.cohort is not None:
            object.__setattr__(self, "cohort", positive_integer("cohort", self.cohort))
        if sum(choice is not None for choice in (self.rate, self.cohort, self.period)) > 1:
            raise InvalidParameter("federated.how_clients_are_chosen", parameter="rate")
        object.__setattr__(self, "bands", positive_integer("bands", self.bands))
        if self.bands > 1 and (isinstance(self.clip, AdaptiveClip) or self.bands > min(self.period or 1, MOST_BANDS)):
            raise InvalidParameter("federated.correlated_needs_period", parameter="bands", most=MOST_BANDS)
        self._check_buffers()
        if self.noise == "laplace" and (isinstance(self.clip, AdaptiveClip) or self.is_correlated):
            raise InvalidParameter("federated.laplace_terms", parameter="noise")
        if not (self.weights is None or isinstance(self.weights, Weights)):
            raise InvalidParameter("federated.not_weights", parameter="weights")
        if self.expected_size <= 0:
            raise InvalidParameter("federated.nobody_takes_part", parameter="rate")
        if self.noise_multiplier is not None:
            self._sigma(self.noise_multiplier)

    def _check_buffers(self) -> None:
        if self.buffers is None:
            return
        object.__setattr__(self, "buffers", positive_integer("buffers", self.buffers))
        turns = self.period is not None and not isinstance(self.clip, AdaptiveClip) and self.bands == 1
        if not turns or self.buffers > MOST_BUFFERS or self.rounds > MOST_ROUNDS:
            raise InvalidParameter("federated.buffers_need_period", parameter="buffers", most=MOST_BUFFERS)

    @property
    def is_correlated(self) -> bool:
        """Whether noise of one round is partly taken back in later ones."""
        return self.bands > 1 or self.buffers is not None

    @property
    def encoding(self) -> Coefficients | BufferedEncoder:
        """A column of the encoder of noise, or its buffers."""
        if self.buffers is not None and self.period is not None:
            return optimized_buffers(self.buffers, self.rounds, self.period)
        return encoder(self.bands)

    @property
    def sampling(self) -> FreshSampling:
        """Who takes part in a round."""
        if self.rate is not None:
            return Poisson(self.rate)
        return super().sampling if self.cohort is None else FixedSize(self.cohort)

    @property
    def unit(self) -> Client:
        """A client, under the neighbors that the sampling is priced for."""
        return Client(neighbors=self.sampling.neighbors)

    @property
    def expected_size(self) -> float:
        """The expected number of clients in a round: what sums are divided by."""
        return self.sampling.expected_size(self.clients)

    def _half(self, noise: float) -> int:
        """How many steps the bit of an adaptive clip is worth, up or down; zero without one."""
        if not isinstance(self.clip, AdaptiveClip):
            return 0
        least = noise * self.sampling.moves / 2
        wanted = self.clip.count_noise or max(self.expected_size / 20, 2 * least)
        if wanted <= least * 1.0001:
            raise InvalidParameter("federated.count_noise_too_low", parameter="count_noise", least=least)
        return max(1, math.floor(STEPS / math.sqrt((wanted / least) ** 2 - 1)))

    def _sensitivity(self, noise: float) -> float:
        """How far two neighbors are apart: in one round, or in all of them where noise is correlated."""
        if self.noise == "laplace":
            return float(self.sampling.moves * STEPS)
        if isinstance(self.encoding, BufferedEncoder) and self.period is not None:
            return buffered_sensitivity(self.encoding, self.rounds, self.period)
        if self.bands > 1:
            return total_sensitivity(self.bands, self.sampling.participations(self.rounds))
        return root_up(self.sampling.moves**2 * (STEPS**2 + self._half(noise) ** 2))

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` rounds cost with this noise; correlated noise is priced as one vector of all rounds."""
        if self.noise == "laplace":
            return self.sampling.price(DiscreteLaplace(noise_multiplier), steps=length, population=self.clients)
        event = DiscreteGaussian(noise_multiplier, self._sensitivity(noise_multiplier), COORDINATES)
        return event if self.is_correlated else self.sampling.price(event, steps=length, population=self.clients)

    def check_delta(self, delta: float) -> float:
        """A delta that this plan can be sold at: with Laplace noise it may be 0."""
        return probability("delta", delta) if self.noise == "laplace" else super().check_delta(delta)

    def _sigma(self, noise: float) -> Fraction:
        sigma = enlarge_scale(Fraction(noise) * Fraction(self._sensitivity(noise)))
        if not _FINEST <= sigma <= _COARSEST:
            raise InvalidParameter("federated.noise_out_of_range", parameter="noise_multiplier")
        return sigma

    def measurement(self, coordinates: int, *, about: str = "", secret: bytes | None = None) -> Measurement:
        """All rounds as one measurement, on a model of so many `coordinates`; `about` tells runs apart in a ledger.

        With correlated noise, `secret` (see `load_secret`) makes the run resumable under its key.
        """
        width = positive_integer("coordinates", coordinates)
        if width >= COORDINATES or (self.buffers is not None and width > MOST_BUFFERED):
            most = "2**40 - 1" if self.buffers is None else "2**30"
            raise InvalidParameter("federated.model_too_large", most=most)
        sums = _Sums(self, width, self._half(self.chosen_noise))
        sigma = self._sigma(self.chosen_noise)
        rounds = CorrelatedRounds(sums, self.encoding, sigma, secret) if self.is_correlated else _Rounds(sums, sigma)
        return Measurement(
            unit=self.unit,
            event=self.event,
            step=rounds.step,
            init=rounds.init,
            horizon=self.rounds,
            state=StatePolicy(resume=rounds.resume),
            name="federated rounds, noise at the server",
            question=fingerprint(self, self.unit, width, about),
        )

    def decoder(self) -> Callable[[dict[str, Any]], Floats]:
        """What makes a noisy mean update of each answer, taken in order: post-processing."""
        decode_steps = make_decoder(self.encoding)

        def decode(answer: dict[str, Any]) -> Floats:
            mean: Floats = decode_steps(answer["steps"]) * (answer["clip"] / STEPS / self._counted)
            return mean

        return decode

    @property
    def _counted(self) -> float:
        """What sums are divided by, in updates of full weight."""
        return self.expected_size * (1.0 if self.weights is None else self.weights.typical / self.weights.at_most)


class _Sums:
    """The exact sum of one round: clipped, in whole steps, with the bits of an adaptive clip behind them."""

    def __init__(self, plan: ServerSide, coordinates: int, half: int) -> None:
        self.plan, self.coordinates, self.half = plan, coordinates, half
        self.width = coordinates + (half > 0)

    def first_clip(self) -> float:
        clip = self.plan.clip
        return clip.start if isinstance(clip, AdaptiveClip) else clip

    def of(self, federation: Federation, ask: Any, clip: float, number: int, rng: Rng) -> NDArray[np.int64]:
        chosen = self.plan.sampling.draw(federation.clients(), self.plan.clients, number, rng)
        total = np.zeros(self.width, np.int64)
        for block in accept_updates(federation.updates(chosen, ask), chosen, self.coordinates):
            total += self._sum(block, clip)
        return total

    def _sum(self, block: Block, clip: float) -> NDArray[np.int64]:
        if self.plan.noise == "laplace":
            return self._sum_absolute(block, clip)
        norms = lengths(block.updates)
        steps = scaled_steps(block.updates, norms, clip, self._shares(block))
        total = steps.sum(axis=0, dtype=np.int64)
        if not self.half:
            return np.asarray(total)
        within = 2 * int((norms <= clip).sum()) - len(norms)
        return np.append(total, within * self.half)

    def _sum_absolute(self, block: Block, clip: float) -> NDArray[np.int64]:
        steps, shares = bounded_sum_steps(block.updates, clip), self._shares(block)
        if shares is not None:
            steps = np.trunc(steps * np.clip(np.nan_to_num(shares), 0.0, 1.0)[:, None]).astype(np.int64)
        return np.asarray(steps.sum(axis=0, dtype=np.int64))

    def _shares(self, block: Block) -> NDArray[np.float64] | None:
        if self.plan.weights is None:
            return None
        claims = block.weights if block.weights is not None else [0.0] * len(block.clients)
        return np.array([self.plan.weights.share(claim) for claim in claims])

    def next_clip(self, answer: dict[str, Any]) -> float:
        clip: float = answer["clip"]
        if not isinstance(self.plan.clip, AdaptiveClip):
            return clip
        share = (answer["within"] / self.half / self.plan.expected_size + 1) / 2
        return self.plan.clip.follow(clip, share)


class _Rounds:
    """Fresh noise in each round; the state is the clip in force and the count of rounds; earlier answers give it."""

    def __init__(self, sums: _Sums, sigma: Fraction) -> None:
        self.sums, self.sigma = sums, sigma

    def init(self) -> tuple[float, Turn]:
        return self.sums.first_clip(), Turn()

    def step(
        self, state: tuple[float, Turn], federation: Federation, ask: Any, rng: Rng
    ) -> tuple[dict[str, Any], tuple[float, Turn]]:
        clip, turn = state
        with turn.round() as number:
            total = self.sums.of(federation, ask, clip, number, rng)
            draw = discrete_laplace if self.sums.plan.noise == "laplace" else discrete_gaussian
            noisy = add_noise(total, draw(self.sigma, self.sums.width, rng=rng))
        answer: dict[str, Any] = {"steps": noisy[: self.sums.coordinates], "clip": clip}
        if self.sums.half:
            answer["within"] = int(noisy[-1])
        return answer, self.resume(state, answer)

    def resume(self, state: tuple[float, Turn], answer: dict[str, Any]) -> tuple[float, Turn]:
        return self.sums.next_clip(answer), state[1].after()
