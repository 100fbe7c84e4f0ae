"""What a growing history costs so far, in constant time whatever its length."""

from __future__ import annotations

from collections import Counter

from mosha.accounting import prices
from mosha.accounting.losses.history import History
from mosha.core.event import Event, compose

__all__ = ["Odometer"]

FEW = 16  # kinds of events for which the lattice accountant is asked where no lane converges


class Odometer(History):
    """A running price: `add` what was done, ask for epsilon or delta at any time.

    Guarantee:
        Every answer is a valid price of the composition of all that was added: it may be shown, and a plan fixed in
        advance may be sold at it. It does not decide what is admitted: parameters chosen after seeing earlier answers
        need a rule (`mosha.accounting.rules`).

    Units:
        Nats and probabilities. Memory and time of an answer do not grow with the history. With `quick`, the slower
        accountant is never asked where no quick bound is sharp: the answer is more than the truth then, for short
        histories by as much as half.

    >>> from mosha.core.events import Gaussian, Laplace
    >>> odometer = Odometer()
    >>> for _ in range(100):
    ...     odometer.add(Gaussian(10) + Laplace(20))
    >>> round(odometer.epsilon(1e-6), 3)
    5.536
    """

    def __init__(self, *, quick: bool = False) -> None:
        super().__init__()
        self._kinds: Counter[Event] | None = None if quick else Counter()

    def _add(self, part: Event, count: int) -> None:
        super()._add(part, count)
        if self._kinds is not None:
            self._kinds[part] += count
            if len(self._kinds) > FEW:
                self._kinds = None

    def _price_again(self, name: str, given: float, value: float) -> float:
        """What the lattice accountant says, where the kinds are few."""
        if self._kinds is None:
            return value
        other = prices.epsilon if name == "epsilon" else prices.delta
        return min(value, other(compose(self._kinds.items()), given))
