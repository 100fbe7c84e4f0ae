"""What one release may cost: an epsilon (with or without a delta), a rho or a mu."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.number import positive, probability

__all__ = ["Budget", "choose_budget"]

_MEASURES = ("epsilon", "rho", "mu")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The price of one release, the same for tables, graphs, streams and synthetic data.

    Fields:
        epsilon: pure differential privacy, or with `delta` approximate; or
        rho: zero-concentrated; or
        mu: Gaussian differential privacy.
        delta: 0.0 if none is meant. Beside rho or mu it is the price of whatever those measures cannot express, such as
            groups that come from the data.

    >>> Budget(epsilon=1, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    >>> Budget.from_dict(Budget(rho=0.5).to_dict())
    Budget(rho=0.5)
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in _MEASURES if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidParameter("core.one_measure")
        object.__setattr__(self, given[0], positive(given[0], getattr(self, given[0])))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def measure(self) -> str:
        """Which of epsilon, rho and mu it is given in."""
        return next(name for name in _MEASURES if getattr(self, name) is not None)

    @property
    def amount(self) -> float:
        """How much of its measure."""
        return float(getattr(self, self.measure))

    @property
    def guarantee(self) -> Guarantee:
        """What the release as a whole promises, its delta beside rho or mu left aside."""
        if self.rho is not None:
            return ZeroConcentrated(self.rho)
        if self.mu is not None:
            return Gaussian(self.mu)
        return Approx(self.amount, self.delta) if self.delta else Pure(self.amount)

    @property
    def allows_gaussian(self) -> bool:
        """Whether Gaussian noise can keep it."""
        return self.epsilon is None or self.delta > 0

    def scale(self, factor: float) -> Budget:
        """The same budget with epsilon (or rho, or mu) times `factor`; delta stays."""
        return replace(self, **{self.measure: self.amount * factor})

    def to_dict(self) -> dict[str, float]:
        """Plain data: the measure, and delta if there is one."""
        return {self.measure: self.amount} | ({"delta": self.delta} if self.delta else {})

    @staticmethod
    def from_dict(data: Mapping[str, object]) -> Budget:
        """The budget that `to_dict` described as `data`; anything else is refused."""
        if not isinstance(data, Mapping) or not set(data) <= {*_MEASURES, "delta"}:
            raise InvalidParameter("core.unknown_budget_fields")
        return Budget(**data)  # type: ignore[arg-type]  # checked when it is built

    def __repr__(self) -> str:
        return f"Budget({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __str__(self) -> str:
        also = f", delta {self.delta:.3g}" if self.delta else ""
        return f"{self.measure} {self.amount:.6g}{also}"


def choose_budget(
    plan: Callable[[float, float], Budget],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    within: float | None = None,
    confidence: float | None = None,
) -> Budget:
    """The budget that the arguments of a release ask for: as it was given, or the least one for an error bar.

    Args:
        plan: (within, confidence) -> the least budget for it.
        epsilon: the price, or
        rho: the same, or
        mu: the same, or
        within: how wide the widest error bar may be.
        delta: goes with each of them.
        confidence: with `within`; 0.95 if it is left out.
    """
    if within is None:
        if confidence is not None:
            raise InvalidParameter("core.confidence_without_within", parameter="confidence")
        return Budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    if epsilon is not None or rho is not None or mu is not None:
        raise InvalidParameter("core.within_and_price", parameter="within")
    return plan(within, 0.95 if confidence is None else confidence)
