"""The claim that a guarantee or an event makes; that of an event is what its price allows an attacker to see."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from mosha.audit.claims.claim import ApproxClaim, Claim, CurveClaim, GaussianClaim, RenyiClaim, ZeroConcentratedClaim
from mosha.core import events, guarantee
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.number import positive

__all__ = ["claim_of", "claim_of_event"]

_SMOOTH = 32.0  # grid steps of deviation from which a discrete Gaussian is priced like the continuous one
_REACHES = (1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5)  # deltas at which a curve ends: the first that is reached
_POINTS = 33  # points of a curve that are attacked


@lru_cache(maxsize=256)
def claim_of_event(event: Event, *, delta: float) -> Claim:
    """The tightest claim in the measure that fits the event: mu, rho, epsilon or a whole curve.

    >>> claim_of_event(events.Gaussian(2) * 4, delta=1e-6).describe()
    'mu (Gaussian) 1'
    """
    parts = event.parts()
    if parts and all(_is_gaussian(part) for part, _ in parts):
        from mosha.accounting.measures import gaussian  # noqa: PLC0415  (loaded when it is needed)

        return GaussianClaim(gaussian.mu(event)[0])
    if parts and all(isinstance(part, events.ZeroConcentrated) for part, _ in parts):
        return ZeroConcentratedClaim(sum(part.rho * count for part, count in parts))  # type: ignore[attr-defined]
    if len(parts) == 1 and parts[0][1] == 1:
        single = _single(parts[0][0])
        if single is not None:
            return single
    return _curve(event, delta)


def _is_gaussian(event: Event) -> bool:
    """Whether the event is Gaussian noise, or so finely discrete that only a probability of 2^-100 tells it apart.

    That probability is added to the false-alarm rate of an attack once a run: nothing, next to 1 - confidence.
    """
    match event:
        case events.Gaussian() | events.Matrix() | events.Tree(noise="gaussian"):
            return True
        case events.DiscreteGaussian(multiplier, sensitivity, _):
            return multiplier * sensitivity >= _SMOOTH
    return False


def _single(event: Event) -> Claim | None:
    """Events that say themselves what they allow, and allow all of it."""
    match event:
        case events.Pure(epsilon) | events.RandomizedResponse(epsilon, 2) | events.Exponential(epsilon):
            return ApproxClaim(epsilon)
        case events.DiscreteLaplace(multiplier, 1):
            return ApproxClaim(1 / multiplier)
        case events.SparseVector(threshold, answers, _):
            return ApproxClaim(threshold + answers)
        case events.Approx(epsilon, delta):
            return ApproxClaim(epsilon, delta)
        case events.Renyi((order,), (value,)):
            return RenyiClaim(order, value)
    return None


def _curve(event: Event, delta: float) -> Claim:
    """Points of the curve delta(epsilon), each an upper bound, and the pure epsilon where there is one."""
    from mosha import accounting  # noqa: PLC0415
    from mosha.accounting.measures import pure  # noqa: PLC0415

    strict = pure.epsilon(event)
    if strict == 0:
        return ApproxClaim(0.0)
    reached = (accounting.epsilon(event, reach) for reach in _REACHES)  # an event may have a delta of its own
    far = min(strict, next((epsilon for epsilon in reached if math.isfinite(epsilon)), 0.0))
    epsilons = [float(epsilon) for epsilon in np.linspace(0.0, far, _POINTS)]
    deltas = [min(accounting.delta(event, epsilon), 1.0) for epsilon in epsilons]
    if math.isfinite(strict):
        return CurveClaim((*epsilons, strict), (*deltas, 0.0), epsilon=strict, delta=0.0)
    return CurveClaim(tuple(epsilons), tuple(deltas), epsilon=accounting.epsilon(event, delta), delta=delta)


def claim_of(promise: Claim | guarantee.Guarantee | Event, *, delta: float | None = None) -> Claim:
    """The claim that `promise` makes: a guarantee, an event, or a claim already.

    `delta` names the point of an event's curve in which its report is written; the whole curve is attacked.

    >>> claim_of(guarantee.Pure(1)).describe()
    'epsilon 1'
    """
    match promise:
        case Claim():
            return promise
        case guarantee.Pure(epsilon):
            return ApproxClaim(epsilon)
        case guarantee.Approx(epsilon, own_delta):
            return ApproxClaim(epsilon, own_delta)
        case guarantee.ZeroConcentrated(rho):
            return ZeroConcentratedClaim(rho)
        case guarantee.Gaussian(mu):
            return GaussianClaim(mu)
        case Event():
            return claim_of_event(promise, delta=1e-6 if delta is None else positive("delta", delta))
    raise InvalidParameter("audit.not_a_claim", parameter="claim", kind=type(promise).__name__)
