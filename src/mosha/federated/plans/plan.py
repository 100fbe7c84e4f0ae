"""What all federated plans share: fields that are checked before anything is paid, and who takes part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import non_negative, positive, positive_integer
from mosha.core.unit import Unit
from mosha.federated.optimizer import Floats, OuterOptimizer
from mosha.mechanisms.plans.priced_plan import PricedPlan
from mosha.mechanisms.plans.sampling import Everybody, FreshSampling, TakingTurns

__all__ = ["COORDINATES", "MOST", "FederatedPlan", "check_count", "first_weights"]

MOST = 1 << 40
"""No plan has more rounds, clients or weights."""

COORDINATES = MOST
"""Noise is priced for this many coordinates, whatever the model has: the price barely depends on it."""


def check_count(name: str, value: object, *, at_most: int = MOST) -> int:
    """A whole number from one to `at_most`.

    >>> check_count("rounds", 10)
    10
    """
    number = positive_integer(name, value)
    if number > at_most:
        raise InvalidParameter("federated.above_most", parameter=name, most=at_most, spent="nothing")
    return number


def first_weights(initial: object) -> NDArray[np.float64]:
    """The weights to begin with, as a copy."""
    try:
        given = np.asarray(initial)
        weights = given.astype(np.float64) if given.dtype.kind in "fiu" else np.empty(0)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.ndim != 1 or weights.size == 0 or not np.isfinite(weights).all():
        raise InvalidParameter("federated.initial_not_flat", parameter="initial", spent="nothing")
    return weights


class FederatedPlan(PricedPlan):
    """Rounds of many clients, fixed before they start: ServerSide, ClientSide and Distributed."""

    if TYPE_CHECKING:  # fields of the dataclasses

        @property
        def rounds(self) -> int: ...

        @property
        def clients(self) -> int: ...

        @property
        def period(self) -> int | None: ...

        @property
        def outer(self) -> OuterOptimizer: ...

        @property
        def proximal(self) -> float: ...

    @property
    def length(self) -> int:
        """The number of rounds."""
        return self.rounds

    @property
    def sampling(self) -> FreshSampling:
        """Who takes part in a round."""
        return Everybody() if self.period is None else TakingTurns(self.period)

    def takes(self, federation: object) -> bool:
        """Whether this plan can be run on that federation."""
        del federation
        return True

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """Whose data is hidden."""

    @abstractmethod
    def measurement(self, coordinates: int, *, about: str = "") -> Measurement:
        """All rounds as one measurement, on a model with this many weights."""

    @abstractmethod
    def decoder(self) -> Callable[[dict[str, Any]], Floats]:
        """The function that turns each answer, taken in order, into a mean update: post-processing."""

    def _check_fields(self) -> None:
        """Bring the shared fields into their types, or refuse them."""
        found: dict[str, object] = {name: check_count(name, getattr(self, name)) for name in ("rounds", "clients")}
        found["proximal"] = non_negative("proximal", self.proximal)
        if self.period is not None:
            found["period"] = check_count("period", self.period)
        if self.noise_multiplier is not None:
            found["noise_multiplier"] = positive("noise_multiplier", self.noise_multiplier)
        if self.delta is not None:
            found["delta"] = self.check_delta(self.delta)
        for name, value in found.items():
            object.__setattr__(self, name, value)
        outer = self.outer
        if isinstance(outer, type) or not all(callable(getattr(outer, do, None)) for do in ("begin", "advance")):
            raise InvalidParameter("federated.not_an_optimizer", parameter="outer")
