"""What is promised: four kinds of guarantee, ordered by what implies what.

`a <= b` reads "a is at least as strong as b": whoever keeps `a` also keeps `b`. The order is partial;
two guarantees of which neither implies the other by a closed form are simply not comparable.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative, probability

__all__ = ["Approx", "Gaussian", "Guarantee", "Pure", "ZeroConcentrated"]

_NORMAL = NormalDist()


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """The least delta of mu-GDP at epsilon (Balle and Wang 2018, Dong et al. 2022)."""
    if mu == 0:
        return 0.0
    first = _NORMAL.cdf(mu / 2 - epsilon / mu)
    second = _NORMAL.cdf(-mu / 2 - epsilon / mu)
    if second == 0.0:
        return first
    return max(0.0, first - math.exp(min(700.0, epsilon + math.log(second))))


@dataclass(frozen=True)
class Guarantee:
    """The root of all guarantees."""

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee also has `other` (False where no closed form says so)."""
        raise NotImplementedError

    def __le__(self, other: object) -> bool:
        return self.implies(other) if isinstance(other, Guarantee) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return other.implies(self) if isinstance(other, Guarantee) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return self.implies(other) and not other.implies(self)

    def __gt__(self, other: object) -> bool:
        return other < self if isinstance(other, Guarantee) else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        return {"guarantee": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_dict(stored: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` described.

        >>> Guarantee.from_dict(Approx(1, 1e-6).to_dict())
        Approx(epsilon=1.0, delta=1e-06)
        """
        kinds: dict[str, type[Guarantee]] = {k.__name__: k for k in (Pure, Approx, ZeroConcentrated, Gaussian)}
        arguments = dict(stored)
        kind = kinds.get(arguments.pop("guarantee", ""))
        if kind is None:
            raise InvalidParameter("this is not the description of a known guarantee.")
        return kind(**arguments)


@dataclass(frozen=True)
class Pure(Guarantee):
    """Pure differential privacy: no output becomes more than e^epsilon times as likely.

    >>> Pure(1) <= Approx(1, 1e-6), Pure(1) <= ZeroConcentrated(0.5), Pure(2) <= Pure(1)
    (True, True, False)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))

    def implies(self, other: Guarantee) -> bool:
        match other:
            case Pure(epsilon) | Approx(epsilon, _):
                return self.epsilon <= epsilon
            case ZeroConcentrated(rho):  # Bun and Steinke 2016, proposition 3.3
                return self.epsilon**2 / 2 <= rho
            case Gaussian(mu):  # randomized response is the worst pure mechanism (Kairouz, Oh, Viswanath 2015)
                return math.tanh(self.epsilon / 2) <= 2 * _NORMAL.cdf(mu / 2) - 1 if self.epsilon else True
        return False

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g}"


@dataclass(frozen=True)
class Approx(Guarantee):
    """Approximate differential privacy: pure, up to an additive delta.

    >>> print(Approx(1, 1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def implies(self, other: Guarantee) -> bool:
        if isinstance(other, Approx):
            return self.epsilon <= other.epsilon and self.delta <= other.delta
        return self.delta == 0 and Pure(self.epsilon).implies(other)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g}, delta {self.delta:.3g}"


@dataclass(frozen=True)
class ZeroConcentrated(Guarantee):
    """Zero-concentrated differential privacy: Rényi divergence of order a at most rho a, for all a > 1."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative("rho", self.rho))

    def implies(self, other: Guarantee) -> bool:
        match other:
            case ZeroConcentrated(rho):
                return self.rho <= rho
            case Approx(epsilon, delta) if delta > 0:  # Bun and Steinke 2016, proposition 1.3
                return self.rho + 2 * math.sqrt(self.rho * -math.log(delta)) <= epsilon
        return self.rho == 0

    def __str__(self) -> str:
        return f"rho {self.rho:.6g}"


@dataclass(frozen=True)
class Gaussian(Guarantee):
    """Gaussian differential privacy: no easier than telling N(0, 1) from N(mu, 1).

    >>> Gaussian(1) <= ZeroConcentrated(0.5)
    True
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", non_negative("mu", self.mu))

    def implies(self, other: Guarantee) -> bool:
        match other:
            case Gaussian(mu):
                return self.mu <= mu
            case ZeroConcentrated(rho):
                return self.mu**2 / 2 <= rho
            case Approx(epsilon, delta):
                return _gaussian_delta(self.mu, epsilon) <= delta
        return self.mu == 0

    def __str__(self) -> str:
        return f"mu {self.mu:.6g} (Gaussian)"
