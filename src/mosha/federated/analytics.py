"""Federated analytics: histograms, means, quantiles and popular texts, opened by secure aggregation alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, RunError, SourceUnavailable
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive, real, strict_probability
from mosha.core.unit import Client
from mosha.exact.grid import check_bounds
from mosha.exact.statistic import root_up
from mosha.federated.plans.plan import check_count
from mosha.federated.plans.secure_plan import SecureFederation
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.session import Session
from mosha.federated.secure.simulation import securely_summed
from mosha.federated.share_error import ShareError
from mosha.local.collect.hitters import find_hitters
from mosha.local.collect.sum_tables import SumTables
from mosha.local.heavy_hitters import check_alphabet, check_buckets
from mosha.local.protocols.prefixes import Prefixes
from mosha.mechanisms.error_bars import GaussianError
from mosha.mechanisms.plans.priced_plan import PricedPlan
from mosha.noise import discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["Analytics", "heavy_hitters", "histogram", "mean", "quantile"]

_SHARE = 16  # steps: the least noise of one client; see `shared_noise.md`
_RING = 1 << 32
_MOST = 1 << 30  # steps: neither sums nor noise reach it
_ROWS = 4  # tables for each length of a text: a value must stand out in all of them
_MOST_BUCKETS = 1 << 16


@renamed_argument(neighbours="partners")
@dataclass(frozen=True, kw_only=True)
class Analytics(PricedPlan):
    """One question to all clients, answered by a sum that nobody sees the parts of.

    Fields:
        name: what is asked.
        coordinates: how many whole numbers a client adds.
        square: the square of the Euclidean length of what one client adds, in units.
        clients, survivors: planned with, and the least number of honest ones in a sum (see Distributed).
        noise_multiplier, delta: chosen for the promise, and sold at.
        encode_value, decode: a client's value as integers (at most `units` each stands for one), the sum as an answer.
        question: a fingerprint of what is asked, to which clients hold the server.
        partners: with how many others each client shares masks under secure aggregation.

    Guarantee:
        As for `Distributed`, with sensitivity sqrt(square) units: a client adds whole numbers whose squares sum to at
        most `square` units squared, which is checked on the client, or zeros with its noise. A value that cannot be
        read counts as none.

    >>> question = mean(between=(0, 10), clients=100, survivors=60, epsilon=1, delta=1e-6)
    >>> question.name, question.coordinates
    ('mean', 2)
    """

    name: str
    coordinates: int
    square: int
    clients: int
    survivors: int
    noise_multiplier: float | None = None
    delta: float | None = None
    question: str
    encode_value: Callable[[Any, int], NDArray[np.int64]] = field(repr=False, compare=False)
    decode: Callable[[NDArray[np.float64]], Any] = field(repr=False, compare=False)
    partners: int = 20
    unit = Client()

    @property
    def units(self) -> int:
        """How many steps stand for one: enough for the noise of one client to be exact, so few that sums fit."""
        return self._units(self.chosen_noise)

    def _units(self, noise: float) -> int:
        wanted = _SHARE * math.sqrt(self.survivors / self.square) / noise
        return 1 << max(10, math.ceil(math.log2(max(wanted, 1.0))))

    @property
    def _sensitivity(self) -> float:
        return root_up(self.square * self.units**2)

    @property
    def length(self) -> int:
        """One: a question is asked once."""
        return 1

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What the answer costs with this noise."""
        sensitivity = root_up(self.square * self._units(noise_multiplier) ** 2)
        return DiscreteGaussian(noise_multiplier, sensitivity, max(self.coordinates, 2)) * length

    @property
    def _share(self) -> Fraction:
        whole = enlarge_scale(Fraction(self.chosen_noise) * Fraction(self._sensitivity))
        if whole * 8 > _MOST or self.clients * self.units > _MOST:
            raise InvalidParameter("federated.sums_too_large")
        return Fraction(math.sqrt(whole * whole / self.survivors)) * (1 + Fraction(1, 1 << 50))

    def encode(self, value: object, rng: Rng) -> Ring:
        """What a client adds: its `value` and its share of the noise from `rng`, modulo 2**32. Runs on the client."""
        steps = self._steps(value) + discrete_gaussian(self._share, self.coordinates, rng=rng)
        return (steps & (_RING - 1)).astype(np.uint32)

    def _steps(self, value: object) -> NDArray[np.int64]:
        try:
            steps = np.asarray(self.encode_value(value, self.units), np.int64)
        except Exception:  # noqa: BLE001  (a failure would tell)
            return np.zeros(self.coordinates, np.int64)
        fits = steps.shape == (self.coordinates,) and int(np.dot(steps, steps)) <= self.square * self.units**2
        return steps if fits else np.zeros(self.coordinates, np.int64)

    def session(self, members: Sequence[int], rng: Rng) -> Session:
        """The terms of secure aggregation among `members`, whose graph `rng` draws."""
        terms = {"partners": self.partners, "survivors": self.survivors, "width": self.coordinates}
        return Session.begin(members, rng=rng, agreed=self.agreed, **terms)

    @property
    def agreed(self) -> str:
        """The fingerprint of all that the noise and its price come from; server and clients must have the same."""
        noise = (self.coordinates, self.square, self.survivors, self.noise_multiplier, self.delta)
        return fingerprint(self.question, self.unit, self.name, self.clients, *noise)

    def check(self, session: Session) -> None:
        """Refuse a `session` with another question, other terms, or fewer clients than the noise is calibrated for."""
        if session.agreed != self.agreed:
            raise RunError("federated.other_question")
        if session.survivors < self.survivors or session.width != self.coordinates:
            raise RunError("federated.question_of_too_few")

    def measurement(self) -> Measurement:
        """The question as a measurement.

        Its data is a mapping from clients to values, whoever is missing vanished; or a `SecureFederation`, whose
        clients encode and mask their values themselves.
        """
        wide = float(self._share) * math.sqrt(self.clients)
        return Measurement(
            unit=self.unit,
            event=self.event_after(1),
            delta=self.delta,
            step=self._step,
            error=self._error(wide),
            name=f"federated {self.name}",
            question=self.question,
        )

    def _error(self, wide: float) -> Any:
        if self.name == "accuracy":
            return ShareError(wide / self.units)
        return GaussianError(wide, 1 / self.units, self.coordinates) if self.name == "histogram" else None

    def _step(self, state: object, values: Any, ask: object, rng: Rng) -> tuple[Any, Any]:
        if isinstance(values, SecureFederation):
            opened = values.secure_sum(values.clients(), ask)
            self._check_enough(opened.survivors)
            return self.decode(opened.total.view(np.int32) / self.units), state
        self._check_enough(len(values))
        inputs = {member: self.encode(value, rng) for member, value in enumerate(values.values(), 1)}
        total = securely_summed(self.session(list(inputs), rng), inputs, rng)
        return self.decode(total.view(np.int32) / self.units), state

    def _check_enough(self, clients: int) -> None:
        if clients < max(3, self.survivors):
            raise SourceUnavailable("federated.too_few_answered")


def _ask(
    name: str,
    coordinates: int,
    square: int,
    encode: Callable[[object, int], NDArray[np.int64]],
    decode: Callable[[NDArray[np.float64]], object],
    about: object,
    *,
    clients: int,
    survivors: int,
    epsilon: float,
    delta: float,
) -> Analytics:
    budget = {"epsilon": positive("epsilon", epsilon), "delta": strict_probability("delta", delta)}
    people, least = check_count("clients", clients), check_count("survivors", survivors)
    if not 2 <= least <= people:
        raise InvalidParameter("federated.survivors_of_clients", parameter="survivors")
    asked = Analytics(
        name=name,
        coordinates=coordinates,
        square=square,
        clients=people,
        survivors=least,
        question=fingerprint((name, about), Client(), people, least, *budget.values()),
        encode_value=encode,
        decode=decode,
    )
    return asked.calibrate(**budget)


def histogram(*, keys: Sequence[Hashable], clients: int, survivors: int, epsilon: float, delta: float) -> Analytics:
    """How many clients hold which of the public `keys`; another value counts nowhere.

    The answer is one number for each key, in order.

    `clients` are planned with, a sum has at least `survivors` honest ones, and all of it costs `epsilon` at `delta`.

    >>> asked = histogram(keys=["a", "b"], clients=100, survivors=80, epsilon=1, delta=1e-6)
    >>> asked.coordinates, round(asked.noise_multiplier, 2)
    (2, 4.22)
    """
    try:
        places = {} if isinstance(keys, str) else {key: i for i, key in enumerate(keys)}
        alike = len(keys) - len(places)
    except TypeError:
        raise InvalidParameter("federated.keys_not_public_values", parameter="keys") from None
    if not places or alike:
        raise InvalidParameter("federated.keys_not_distinct", parameter="keys")

    def encode(value: object, units: int) -> NDArray[np.int64]:
        steps = np.zeros(len(places), np.int64)
        if value in places:
            steps[places[value]] = units
        return steps

    terms: dict[str, Any] = {"clients": clients, "survivors": survivors, "epsilon": epsilon, "delta": delta}
    return _ask("histogram", len(places), 1, encode, lambda total: total, tuple(keys), **terms)


def mean(*, between: tuple[float, float], clients: int, survivors: int, epsilon: float, delta: float) -> Analytics:
    """The mean of one number of each client, clamped into `between`; who has none is left out.

    Clients add their number as a distance from the middle, and a one; the answer is the noisy sum over the noisy count.

    `clients` are planned with, a sum has at least `survivors` honest ones, and all of it costs `epsilon` at `delta`.

    >>> mean(between=(0, 10), clients=100, survivors=60, epsilon=1, delta=1e-6).clients
    100
    """
    low, high = check_bounds("mean", between)
    middle, half = low / 2 + high / 2, high / 2 - low / 2

    def encode(value: object, units: int) -> NDArray[np.int64]:
        share = (min(max(real("value", value), low), high) - middle) / half
        return np.array([math.trunc(min(max(share, -1.0), 1.0) * units), units])

    def decode(total: NDArray[np.float64]) -> float:
        share = total[0] / max(total[1], 1.0)
        return float(min(max(middle + half * share, low), high))

    terms: dict[str, Any] = {"clients": clients, "survivors": survivors, "epsilon": epsilon, "delta": delta}
    return _ask("mean", 2, 2, encode, decode, (low, high), **terms)


def quantile(
    *,
    at: float,
    between: tuple[float, float],
    clients: int,
    survivors: int,
    epsilon: float,
    delta: float,
    bins: int = 64,
) -> Analytics:
    """The value below which a share `at` of clients lies, from a private histogram of `bins` parts of `between`.

    `clients` are planned with, a sum has at least `survivors` honest ones, and all of it costs `epsilon` at `delta`.

    >>> quantile(at=0.5, between=(0, 10), clients=100, survivors=60, epsilon=1, delta=1e-6, bins=16).coordinates
    16
    """
    share, parts = strict_probability("at", at), check_count("bins", bins, at_most=1 << 20)
    low, high = check_bounds("quantile", between)
    edges = np.linspace(low, high, parts + 1)

    def encode(value: object, units: int) -> NDArray[np.int64]:
        steps = np.zeros(parts, np.int64)
        place = int(np.searchsorted(edges, min(max(real("value", value), low), high), side="right")) - 1
        steps[min(max(place, 0), parts - 1)] = units
        return steps

    def decode(total: NDArray[np.float64]) -> float:
        below = np.maximum.accumulate(np.concatenate([[0.0], np.cumsum(total)]))
        if below[-1] <= 0:
            return low / 2 + high / 2
        return float(np.interp(share * below[-1], below + 1e-9 * np.arange(parts + 1), edges))

    terms: dict[str, Any] = {"clients": clients, "survivors": survivors, "epsilon": epsilon, "delta": delta}
    return _ask("quantile", parts, 1, encode, decode, (share, low, high, parts), **terms)


def heavy_hitters(
    *,
    longest: int,
    clients: int,
    survivors: int,
    epsilon: float,
    delta: float,
    alphabet: Sequence[str] | None = None,
    buckets: int = 2048,
    kept: int = 256,
) -> Analytics:
    """Which texts many clients have, without a list of them: rows of `value`, `count` and `error` (95%).

    A client adds a one to four tables for each length of how its text may begin, in one round. Tables are searched as
    those of `mosha.local.HeavyHitters` are.

    Args:
        longest: how much of a text is told, in bytes of UTF-8 or in members of `alphabet`; the rest is cut.
        clients: how many are expected.
        survivors: the least number of honest ones in the sum.
        epsilon: of the answer.
        delta: of the answer.
        alphabet: the characters of texts; a list of words makes values lists of words.
        buckets: of one table; a message has four bytes for each bucket of each table.
        kept: how many beginnings are followed at a time.

    >>> asked = heavy_hitters(longest=6, alphabet="abcdefgh", clients=1000, survivors=900, epsilon=2, delta=1e-6)
    >>> asked.coordinates, asked.square
    (16384, 8)
    """
    size = check_buckets(buckets, _MOST_BUCKETS)
    code = Prefixes(check_count("longest", longest), check_alphabet(alphabet), size, _ROWS)
    tables, follow = code.levels * _ROWS, check_count("kept", kept)

    def encode(value: object, units: int) -> NDArray[np.int64]:
        steps = np.zeros((tables, size), np.int64)
        steps[np.arange(tables), code.buckets_of(value)] = units
        return steps.reshape(-1)

    def decode(total: NDArray[np.float64]) -> list[dict[str, Any]]:
        found = SumTables(total.reshape(code.levels, _ROWS, size))
        return find_hitters(code, found, clients, kept=follow, confidence=0.95).table()

    terms: dict[str, Any] = {"clients": clients, "survivors": survivors, "epsilon": epsilon, "delta": delta}
    about = (code.longest, code.alphabet, size, follow)
    return _ask("heavy hitters", tables * size, tables, encode, decode, about, **terms)
