"""What every way of reporting a category has in common: reports support values, and supports are counted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.core.number import positive, positive_integer
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.randomizer import Randomizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LARGEST_SIZE", "Protocol"]

LARGEST_SIZE = 1 << 22


@dataclass(frozen=True)
class Protocol(Randomizer):
    """A randomizer of one of `size` values (0, 1, ...) whose reports each support some of them.

    A report supports the true value with probability `truth`, and each other value with probability `lie`. Then

        (share of reports that support x - lie) / (truth - lie)

    estimates the share of x without bias, with variance `variance` / n for a rare value.

    Fields:
        size: how many values there are.
        epsilon: what a report may reveal.
    """

    size: int
    epsilon: float
    kinds: ClassVar[dict[str, type[Protocol]]] = {}
    name: ClassVar[str]

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if "name" in vars(cls):
            Protocol.kinds[cls.name] = cls

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_integer("size", self.size))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if not 2 <= self.size <= LARGEST_SIZE:
            raise InvalidParameter("local.survey_size", parameter="size", most=LARGEST_SIZE)
        Odds.of(self.epsilon)

    @property
    @abstractmethod
    def truth(self) -> Fraction:
        """The probability that a report supports the true value."""

    @property
    @abstractmethod
    def lie(self) -> Fraction:
        """The probability that a report supports a value that is not the true one."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a report supports two values: the true one and another, and two that are not true.

        On average over values, where it differs between them.
        """

    @abstractmethod
    def draw(self, value: int, rng: Rng) -> bytes:
        """One report, with the standard library alone."""

    @abstractmethod
    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each value."""

    @property
    def variance(self) -> float:
        """N times the variance of the estimated share of a rare value.

        >>> from mosha.local.protocols.k_ary import KAry
        >>> round(KAry(100, 1.0).variance, 2)
        34.11
        """
        truth, lie = self.truth, self.lie
        return float(lie * (1 - lie) / (truth - lie) ** 2)

    @property
    def largest_support(self) -> int:
        """The most values that one report can support."""
        return self.size
