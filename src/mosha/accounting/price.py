"""What a release costs an account: exact integers, so that no sum depends on its order and no cent is lost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from mosha.accounting.rounding import round_up
from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative

__all__ = ["FREE", "UNIT", "Price"]

UNIT = 2**128


@dataclass(frozen=True)
class Price:
    """An amount in the measure of a rule, and a delta; both count units of 2^-128.

    Guarantee:
        `Price.of` rounds up, sums and multiples are exact: no rounding ever makes a release cheaper.

    `a <= b` means that neither amount nor delta of `a` exceeds that of `b`.

    >>> Price.of(0.5) * 2 == Price.of(1.0), Price.of(0.1) * 10 <= Price.of(1.0)
    (True, False)
    """

    amount: int
    delta: int = 0

    def __post_init__(self) -> None:
        for value in (self.amount, self.delta):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidParameter("a price counts units of 2^-128: whole numbers, zero or above.")

    @classmethod
    def of(cls, amount: float, delta: float = 0.0) -> Self:
        """The price that covers these numbers."""
        return cls(_ceiling(non_negative("amount", amount)), _ceiling(non_negative("delta", delta)))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.amount + other.amount, self.delta + other.delta)

    def __radd__(self, other: int) -> Self:
        return self if other == 0 else NotImplemented  # lets sum(prices) work

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.amount - other.amount, self.delta - other.delta)

    def __mul__(self, count: int) -> Self:
        if isinstance(count, bool) or not isinstance(count, int):
            return NotImplemented
        return type(self)(self.amount * count, self.delta * count)

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        return self.amount <= other.amount and self.delta <= other.delta

    def __ge__(self, other: Self) -> bool:
        return other <= self

    def as_floats(self) -> tuple[float, float]:
        """Amount and delta as floats, rounded up.

        >>> Price.of(0.25, 1e-6).as_floats()
        (0.25, 1e-06)
        """
        return round_up(Fraction(self.amount, UNIT)), round_up(Fraction(self.delta, UNIT))

    def to_dict(self) -> dict[str, str]:
        """The price as decimal strings, which no JSON reader rounds.

        >>> Price.from_dict(Price.of(0.1, 1e-9).to_dict()) == Price.of(0.1, 1e-9)
        True
        """
        return {"amount": str(self.amount), "delta": str(self.delta)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The price that `to_dict` described."""
        try:
            amount, delta = str(stored["amount"]), str(stored["delta"])
        except (KeyError, TypeError):
            raise InvalidParameter("this is not the description of a price.") from None
        if not (amount.isascii() and amount.isdigit() and delta.isascii() and delta.isdigit()):
            raise InvalidParameter("this is not the description of a price.")
        return cls(int(amount), int(delta))


def _ceiling(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * UNIT // denominator)


FREE = Price(0, 0)
