"""Weights of clients: how much an update counts, bounded whatever is claimed."""

from __future__ import annotations

from dataclasses import dataclass

from mosha.core.number import positive

__all__ = ["Weights"]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Clients that count differently: a claimed weight is cut to `at_most`; `typical` is what is divided by.

    Guarantee:
        A client's clipped update is multiplied by min(claim, at_most) / at_most, between 0 and 1, whatever was
        claimed: the bound on its length stays. `typical` is public and enters the division alone.

    >>> Weights(at_most=100, typical=20).typical
    20.0
    """

    at_most: float
    typical: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", positive("at_most", self.at_most))
        object.__setattr__(self, "typical", positive("typical", self.typical))

    def share(self, claim: float) -> float:
        """What a `claim` counts, as a share of `at_most`.

        >>> Weights(at_most=100, typical=50).share(1e6), Weights(at_most=100, typical=50).share(float("nan"))
        (1.0, 0.0)
        """
        return min(claim / self.at_most, 1.0) if claim > 0 else 0.0
