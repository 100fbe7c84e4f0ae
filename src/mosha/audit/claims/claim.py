"""What a mechanism promises, as the attacker reads it: how likely one event may be in two neighboring worlds.

Every promise of differential privacy, seen through one event E with probability p in one world and q in the
other, says which pairs (p, q) are allowed. A claim answers one question: what is the least promise of its kind
that allows p or more against q or less? If that is more than was promised, the promise is broken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase, say
from mosha.core.number import non_negative, probability, real

__all__ = ["ApproxClaim", "Claim", "CurveClaim", "GaussianClaim", "RenyiClaim", "ZeroConcentratedClaim"]

Floats = NDArray[np.float64]


class Claim(ABC):
    """A promise of one kind: `amount` of `measure`, which larger amounts weaken.

    >>> claim = ApproxClaim(1.0)
    >>> claim.describe(), claim.to_dict()
    ('epsilon 1', {'measure': 'epsilon', 'amount': 1.0})
    >>> bool(claim.least(0.5, 0.1) > claim.amount)  # an event of 50% against 10% breaks it
    True
    >>> round(float(claim.greatest(0.1)), 3)  # up to 27% against 10% is allowed
    0.272
    """

    @property
    @abstractmethod
    def measure(self) -> str:
        """The name of what is promised, for a report."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """How much is promised."""

    @abstractmethod
    def _least(self, p: Floats, q: Floats) -> Floats:
        """`least`, for p > q only."""

    def least(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """The least amount under which an event may have probability >= `p` in one world and <= `q` in the other.

        Guarantee:
            Whoever keeps this claim with a smaller amount has no such event, in either direction.
        """
        p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
        found = np.zeros(p.shape)
        above = p > q
        if np.any(above):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                found[above] = np.maximum(self._least(p[above], q[above]), 0.0)
        return found

    def greatest(self, q: ArrayLike) -> Floats:
        """The greatest probability this claim allows in one world for an event of probability `q` in the other."""
        against: Floats = np.asarray(q, dtype=np.float64)
        low, high = against.copy(), np.ones_like(against)
        for _ in range(60):
            middle = (low + high) / 2
            allowed = self.least(middle, against) <= self.amount
            low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
        return low

    def describe(self) -> str:
        """The claim in a few words."""
        return say("audit.claim", measure=self.measure, amount=self.amount)

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data."""
        return {"measure": self.measure, "amount": self.amount}


def _log_ratios(p: Floats, q: Floats, delta: float) -> Floats:
    """The least epsilon with p <= e^epsilon q + delta and 1 - q <= e^epsilon (1 - p) + delta."""
    event = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
    complement = np.log(np.maximum(1 - q - delta, 0.0)) - np.log1p(-p)
    ratios: Floats = np.maximum(event, complement)
    return ratios


@dataclass(frozen=True)
class ApproxClaim(Claim):
    """(epsilon, delta)-differential privacy: p <= e^epsilon q + delta, for the event and for its complement.

    >>> ApproxClaim(1.0).least(0.5, 0.1)
    array(1.60943791)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def measure(self) -> str:
        return phrase("audit.epsilon_at_delta", delta=self.delta) if self.delta else "epsilon"

    @property
    def amount(self) -> float:
        return self.epsilon

    def _least(self, p: Floats, q: Floats) -> Floats:
        return _log_ratios(p, q, self.delta)


@dataclass(frozen=True)
class GaussianClaim(Claim):
    """mu-Gaussian differential privacy: the quantiles of p and q are at most mu apart."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", non_negative("mu", self.mu))

    @property
    def measure(self) -> str:
        return phrase("audit.mu_gaussian")

    @property
    def amount(self) -> float:
        return self.mu

    def _least(self, p: Floats, q: Floats) -> Floats:
        from scipy.special import ndtri  # noqa: PLC0415

        found: Floats = ndtri(p) - ndtri(q)
        return found


def _divergence(p: Floats, q: Floats, order: Floats) -> Floats:
    """The larger Rényi divergence between the coins p and q; data processing makes it a lower bound."""

    def one_way(first: Floats, second: Floats) -> Floats:
        head = order * np.log(first) + (1 - order) * np.log(second)
        tail = order * np.log1p(-first) + (1 - order) * np.log1p(-second)
        total: Floats = np.logaddexp(head, tail) / (order - 1)
        return total

    return np.fmax(one_way(p, q), one_way(q, p))


@dataclass(frozen=True)
class ZeroConcentratedClaim(Claim):
    """rho-zCDP: Rényi divergence of order a at most rho a. Every order gives a lower bound on rho."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative("rho", self.rho))

    @property
    def measure(self) -> str:
        return phrase("audit.rho_zero_concentrated")

    @property
    def amount(self) -> float:
        return self.rho

    def _least(self, p: Floats, q: Floats) -> Floats:
        orders = 1 + np.geomspace(1e-3, 1e3, 49)
        return np.asarray(np.max(_divergence(p[..., None], q[..., None], orders) / orders, axis=-1))


@dataclass(frozen=True)
class RenyiClaim(Claim):
    """Rényi divergence of one fixed order at most `divergence`."""

    order: float
    divergence: float

    def __post_init__(self) -> None:
        if real("order", self.order) <= 1:
            raise InvalidParameter("audit.order_too_small", parameter="order")
        object.__setattr__(self, "divergence", non_negative("divergence", self.divergence))

    @property
    def measure(self) -> str:
        return phrase("audit.renyi_of_order", order=self.order)

    @property
    def amount(self) -> float:
        return self.divergence

    def _least(self, p: Floats, q: Floats) -> Floats:
        return _divergence(p, q, np.asarray(float(self.order)))


@dataclass(frozen=True)
class CurveClaim(Claim):
    """A whole privacy curve: (epsilons[i], deltas[i])-differential privacy for every i at once.

    The amount is epsilon at `delta`; a larger amount is the same curve moved to the right, which is what
    composing with that much pure epsilon allows.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    epsilon: float
    delta: float

    @property
    def measure(self) -> str:
        return phrase("audit.whole_curve_at_delta", delta=self.delta) if self.delta else phrase("audit.whole_curve")

    @property
    def amount(self) -> float:
        return self.epsilon

    def _least(self, p: Floats, q: Floats) -> Floats:
        shift = np.full(p.shape, -math.inf)
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            shift = np.fmax(shift, _log_ratios(p, q, delta) - epsilon)
        return self.epsilon + shift
