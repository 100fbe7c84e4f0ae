"""An audit of accountants: is any price below what a mechanism that it pays for really leaks?

The prices of Mosha are proved, and this does not believe the proofs: for each event a mechanism is written down
(`mosha.audit.contracts.worlds`), its privacy loss is drawn many times, and the drawn delta is held against the price.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosha.audit.attacks.interval import at_least, at_most
from mosha.audit.contracts.worlds import Worlds, worlds_of
from mosha.audit.reporting.report import Report
from mosha.core import events
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.language import say
from mosha.core.number import positive_integer, strict_probability

__all__ = ["AccountantAudit", "Priced", "accountant_events", "audit_accountant"]

LEVELS = (0.3, 0.1, 0.01, 0.001)  # deltas near which a price is tried
HIGHEST = 60.0  # no epsilon above this is tried


@dataclass(frozen=True)
class Priced:
    """One price: delta at an epsilon as claimed, and between what the true one lies if the worlds are the worst."""

    event: str
    epsilon: float
    claimed: float
    shown: float
    at_most: float

    @property
    def broken(self) -> bool:
        return self.claimed < self.shown


@dataclass(frozen=True)
class AccountantAudit(Report):
    """Prices held against what was drawn.

    `prices` are those that were tried, with `runs` draws each; the events named in `without_worlds` have no explicit
    pair of worlds to draw from; `confidence` is that of all prices together.

    Guarantee:
        If no price is below the truth, P(any is called broken) <= 1 - confidence.

    >>> AccountantAudit(prices=(), without_worlds=("Plan",), runs=0, confidence=0.999).to_dict()["runs"]
    0
    """

    prices: tuple[Priced, ...]
    without_worlds: tuple[str, ...]
    runs: int
    confidence: float

    @property
    def broken(self) -> tuple[Priced, ...]:
        return tuple(price for price in self.prices if price.broken)

    @property
    def events(self) -> int:
        return len({price.event for price in self.prices})

    def __str__(self) -> str:
        head = say(
            "audit.accountant",
            events=self.events,
            prices=len(self.prices),
            broken=len(self.broken),
            confidence=self.confidence,
        )
        lines = [say("audit.price_broken", **vars(price)) for price in self.broken]
        if self.without_worlds:
            lines.append(say("audit.prices_not_tried", names=", ".join(self.without_worlds)))
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "prices": [vars(price) | {"broken": price.broken} for price in self.prices],
            "without_worlds": list(self.without_worlds),
            "runs": self.runs,
            "confidence": self.confidence,
        }


def audit_accountant(
    delta: Callable[[Event, float], float] | None = None,
    *,
    prices_of: Sequence[Event] | None = None,
    runs: int = 200_000,
    confidence: float = 0.999,
) -> AccountantAudit:
    """Hold an accountant's prices against explicit mechanisms: `delta(event, epsilon)`, Mosha's own by default.

    `prices_of` are the events that are tried (one of every kind by default); `confidence` is that of all of them
    together.

    Guarantee:
        Under p, the mean of w = max(0, 1 - e^(epsilon - loss)) is the delta at epsilon that the pair of worlds needs. A
        coin of bias w is thrown for each of `runs` draws, made after the epsilons were chosen: heads are binomial with
        that very delta, and `at_least` exceeds it with probability at most (1 - confidence) over the number of prices.

    >>> audit_accountant(lambda event, epsilon: 0.0, prices_of=[events.Gaussian(1.0)], runs=2000).broken[0].event
    'Gaussian(noise_multiplier=1.0)'
    """
    from mosha import accounting  # noqa: PLC0415  (loaded when it is needed)

    price = accounting.delta if delta is None else delta
    chosen = accountant_events() if prices_of is None else list(prices_of)
    if not chosen:
        raise InvalidParameter("audit.no_events", parameter="prices_of")
    positive_integer("runs", runs)
    pairs = [(event, worlds_of(event)) for event in chosen]
    tried = [(event, worlds) for event, worlds in pairs if worlds is not None]
    share = (1 - strict_probability("confidence", confidence)) / max(1, 2 * len(LEVELS) * len(tried))
    rng = np.random.default_rng()
    found = [
        priced
        for event, worlds in tried
        for direction in (worlds, worlds.swap())
        for priced in _audit_event(event, direction, price, runs, share, rng)
    ]
    return AccountantAudit(tuple(found), tuple(str(e) for e, worlds in pairs if worlds is None), runs, confidence)


def _audit_event(
    event: Event,
    worlds: Worlds,
    price: Callable[[Event, float], float],
    runs: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[Priced]:
    pilot = np.sort(worlds.losses(min(runs, 20_000), True, rng))
    losses, coins = worlds.losses(runs, True, rng), rng.random(runs)
    found = []
    for epsilon in sorted({_epsilon_near(pilot, level) for level in LEVELS}):
        heads = int(np.count_nonzero(coins < -np.expm1(np.minimum(0.0, epsilon - losses))))
        low, high = at_least(heads, runs, alpha=alpha), at_most(heads, runs, alpha=alpha)
        found.append(Priced(str(event), epsilon, float(price(event, epsilon)), low, high))
    return found


def _epsilon_near(losses: Any, level: float) -> float:
    """The epsilon, to three digits, at which these losses need about this delta; never below 0."""
    low, high = 0.0, HIGHEST
    for _ in range(40):
        middle = (low + high) / 2
        needed = float(-np.expm1(np.minimum(0.0, middle - losses)).mean())
        low, high = (middle, high) if needed > level else (low, middle)
    return float(f"{high:.3g}") if high > 1e-6 else 0.0


def accountant_events() -> list[Event]:
    """One of each kind, alone, repeated, sampled, mixed: what is audited unless something else is asked for."""
    laplace, gaussian = events.Laplace(2.0), events.Gaussian(1.5)
    return [
        laplace,
        laplace * 8,
        gaussian,
        gaussian * 100,
        laplace + gaussian * 2,
        events.DiscreteLaplace(2.5, 4) * 3,
        events.DiscreteGaussian(2.0, 8.0) * 2,
        events.RandomizedResponse(1.0, 5) * 4,
        events.Exponential(1.0) * 6,
        events.Pure(0.5) * 5,
        events.Approx(0.5, 0.01) * 3,
        gaussian.sample(0.1) * 30,
        laplace.sample(0.2) * 10,
        gaussian.sample(0.1, neighbors="replace-one") * 10,
        events.FixedSizeSampled(gaussian, 10, 100) * 10,
        events.Shuffled(1.0, 1000),
        events.Shuffled(2.0, 100) * 3,
        events.Tree(4.0, 8),
        events.Tree(20.0, 8, "laplace"),
        events.Matrix(2.0, 1.7),
        events.Selected(events.RandomizedResponse(0.5), 5.0),
        events.Selected(events.RandomizedResponse(0.5), 5.0, "poisson"),
        events.Selected(events.RandomizedResponse(0.5), 5.0, shape=0.0),
        events.Parallel((laplace, gaussian)),
        events.Group(gaussian, 2),
        events.Failure(laplace, 0.01) * 2,
        events.Plan(gaussian.sample(0.1) * 30, 1e-6),
        events.SparseVector(0.1, 0.4, 3),
        events.ZeroConcentrated(0.1),
        events.Renyi((2.0, 8.0), (0.1, 0.5)),
    ]
