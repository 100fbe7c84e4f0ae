"""What is promised: four kinds of guarantee, ordered by what implies what.

`a <= b` reads "a is at least as strong as b": whoever keeps `a` also keeps `b`. The order is partial;
two guarantees of which neither implies the other by a closed form are simply not comparable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative, probability

__all__ = ["Approx", "Gaussian", "Guarantee", "Pure", "ZeroConcentrated"]

_UP = 1 + 2**-48  # more than the rounding of a few operations


def _normal_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """The least delta of mu-GDP at epsilon (Balle and Wang 2018), rounded up; never zero unless mu is.

    The arguments of both tails are moved by more than their rounding, so that the first is not too small and the
    second not too large; a second tail that is too small for full precision is left out.
    """
    if mu == 0:
        return 0.0
    far = (epsilon / mu + mu / 2) * _UP
    near = epsilon / mu - mu / 2 - 2**-50 * far
    tail = _normal_tail(far)
    subtracted = math.exp(epsilon + math.log(tail)) * (1 - 2**-40) if tail > 1e-300 else 0.0
    return max(1e-300, _normal_tail(near) * _UP - subtracted)


@dataclass(frozen=True)
class Guarantee:
    """The root of all guarantees.

    >>> Pure(1.0), str(Approx(1.0, 1e-6))
    (Pure(epsilon=1.0), 'epsilon 1, delta 1e-06')
    """

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
        """Plain data: the kind of guarantee and its numbers."""
        return {"guarantee": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_dict(stored: Mapping[str, object]) -> Guarantee:
        """The guarantee that `to_dict` described, from what it `stored`.

        >>> Guarantee.from_dict(Approx(1, 1e-6).to_dict())
        Approx(epsilon=1.0, delta=1e-06)
        """
        kinds: dict[str, type[Guarantee]] = {k.__name__: k for k in (Pure, Approx, ZeroConcentrated, Gaussian)}
        arguments = dict(stored)
        kind = kinds.get(str(arguments.pop("guarantee", "")))
        if kind is None:
            raise InvalidParameter("core.unknown_guarantee")
        try:
            return kind(**arguments)
        except TypeError:
            raise InvalidParameter("core.unknown_guarantee_fields", kind=kind.__name__) from None


@dataclass(frozen=True)
class Pure(Guarantee):
    """Pure differential privacy: no output becomes more than e^`epsilon` times as likely.

    >>> Pure(1) <= Approx(1, 1e-6), Pure(1) <= ZeroConcentrated(0.5), Pure(2) <= Pure(1)
    (True, True, False)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))

    def implies(self, other: Guarantee) -> bool:
        """Exact for every kind: the worst pure mechanism is randomized response (Kairouz, Oh, Viswanath 2015).

        For rho: with s = a - 1/2 its divergence of order a is (g(s^2) - g(1/4)) / (a - 1), g(u) = log cosh(epsilon
        sqrt(u)). g is concave because tanh(x) / x falls, so that is at most g'(1/4) (s^2 - 1/4) / (a - 1) = a epsilon
        tanh(epsilon / 2), with equality as a tends to 1. For mu: both trade-off curves are convex from (0, 1) to
        (1, 0), so the corner of randomized response decides.
        """
        e = self.epsilon
        match other:
            case Pure(epsilon):
                return e <= epsilon
            case Approx(epsilon, delta):
                return e <= epsilon or -math.expm1(epsilon - e) / (1 + math.exp(-e)) * _UP <= delta
            case ZeroConcentrated(rho):
                return e * math.tanh(e / 2) * _UP <= rho
            case Gaussian(mu):
                corner = math.exp(-e) / (1 + math.exp(-e))
                return e == 0 or (corner > 1e-300 and _normal_tail(mu / 2) * (1 + 2**-48 * mu * mu) * _UP <= corner)
        return False

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g}"


@dataclass(frozen=True)
class Approx(Guarantee):
    """Approximate differential privacy: pure with `epsilon`, up to an additive `delta`.

    >>> print(Approx(1, 1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def implies(self, other: Guarantee) -> bool:
        if self.delta == 0:
            return Pure(self.epsilon).implies(other)
        return isinstance(other, Approx) and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g}, delta {self.delta:.3g}"


@dataclass(frozen=True)
class ZeroConcentrated(Guarantee):
    """Zero-concentrated differential privacy: Rényi divergence of order a at most `rho` a, for all a > 1.

    >>> str(ZeroConcentrated(0.5))
    'rho 0.5'
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative("rho", self.rho))

    def implies(self, other: Guarantee) -> bool:
        match other:
            case ZeroConcentrated(rho):
                return self.rho <= rho
            case Approx(epsilon, delta) if delta > 0:  # Bun and Steinke 2016, proposition 1.3
                return (self.rho + 2 * math.sqrt(self.rho * -math.log(delta))) * _UP <= epsilon
        return self.rho == 0

    def __str__(self) -> str:
        return f"rho {self.rho:.6g}"


@dataclass(frozen=True)
class Gaussian(Guarantee):
    """Gaussian differential privacy: no easier than telling N(0, 1) from N(`mu`, 1).

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
                return Fraction(self.mu) ** 2 <= 2 * Fraction(rho)
            case Approx(epsilon, delta):
                return _gaussian_delta(self.mu, epsilon) <= delta
        return self.mu == 0

    def __str__(self) -> str:
        return f"mu {self.mu:.6g} (Gaussian)"
