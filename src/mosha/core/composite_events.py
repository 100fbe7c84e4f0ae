"""Events made of other events: on a sample, the best of several, in parallel, for a group, failing, or as a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event, check_fields
from mosha.core.fingerprint import stored_as, write_fields
from mosha.core.names.calls import renamed_argument
from mosha.core.names.deprecation import renamed_attribute
from mosha.core.number import positive, positive_integer, probability, real, strict_probability
from mosha.core.options import RunsName
from mosha.core.unit import Neighbors

__all__ = [
    "Failure",
    "FixedSizeSampled",
    "Group",
    "Parallel",
    "Plan",
    "Sampled",
    "Selected",
    "one_of",
]


def _is_event(name: str, value: object) -> Event:
    if not isinstance(value, Event):
        raise InvalidParameter("core.not_an_event", parameter=name, kind=type(value).__name__)
    return value


def one_of(*choices: str) -> Any:
    """A check that takes one of some words."""

    def check(name: str, value: object) -> str:
        if value not in choices:
            raise InvalidParameter("core.unknown_option", parameter=name, options=[repr(choice) for choice in choices])
        return str(value)

    return check


@renamed_argument(neighbours="neighbors")
@dataclass(frozen=True)
class Sampled(Event):
    """`event` on a Poisson sample: every unit is drawn with probability `rate`, independently, for such `neighbors`.

    >>> from mosha import accounting, events
    >>> step = events.Sampled(events.Gaussian(noise_multiplier=1), rate=0.01)
    >>> accounting.epsilon(step, delta=1e-6) < accounting.epsilon(step.event, delta=1e-6)
    True
    """

    event: Event
    rate: float
    neighbors: Neighbors = field(default=Neighbors.ADD_REMOVE, metadata=stored_as("neighbours"))
    neighbours: ClassVar = renamed_attribute("neighbours", "neighbors")
    __repr__ = write_fields

    def __post_init__(self) -> None:
        check_fields(self, event=_is_event, rate=positive)
        if self.rate > 1:
            raise InvalidParameter("core.not_a_rate", parameter="rate", value=self.rate)
        try:
            object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        except ValueError:
            raise InvalidParameter(
                "core.unknown_option", parameter="neighbors", options=[repr(str(kind)) for kind in Neighbors]
            ) from None

    def suits(self, neighbors: Neighbors) -> bool:
        """Whether these are the `neighbors` that it was priced for."""
        return self.neighbors is neighbors and self.event.suits(neighbors)


@dataclass(frozen=True)
class FixedSizeSampled(Event):
    """`event` on `size` of `population` units, with or without `replacement`; neighbors replace one unit.

    The noise multiplier of `event` is relative to the sensitivity under *replacement* of one unit.

    >>> from mosha import events
    >>> events.FixedSizeSampled(events.Gaussian(noise_multiplier=1), size=10, population=1_000).replacement
    False
    """

    event: Event
    size: int
    population: int
    replacement: bool = False

    def __post_init__(self) -> None:
        check_fields(self, event=_is_event, size=positive_integer, population=positive_integer)
        if not isinstance(self.replacement, bool):
            raise InvalidParameter("core.not_true_or_false", parameter="replacement")
        if self.size > self.population and not self.replacement:
            raise InvalidParameter("core.sample_above_population", parameter="size")

    def suits(self, neighbors: Neighbors) -> bool:
        """Only where `neighbors` replace one unit."""
        return neighbors is Neighbors.REPLACE_ONE and self.event.suits(neighbors)


@dataclass(frozen=True)
class Selected(Event):
    """The best of a random number of runs of `event` (Papernot and Steinke 2022).

    The number of runs is `distribution`: "poisson" with `mean` (any above zero; that there was no run may be seen),
    or "negative-binomial" truncated to at least one run with `shape` (1: geometric, 0: logarithmic) and this `mean`.

    >>> from mosha import accounting, events
    >>> round(accounting.epsilon(events.Selected(events.Pure(epsilon=1), mean=10), delta=0), 6)
    3.0
    """

    event: Event
    mean: float
    distribution: RunsName = "negative-binomial"
    shape: float = 1.0

    def __post_init__(self) -> None:
        check = one_of("poisson", "negative-binomial")
        check_fields(self, event=_is_event, mean=positive, distribution=check, shape=real)
        if self.shape <= -1:
            raise InvalidParameter("core.shape_too_small", parameter="shape")
        if self.distribution == "negative-binomial" and self.mean < 1:
            raise InvalidParameter("core.mean_below_one", parameter="mean")


@dataclass(frozen=True)
class Parallel(Event):
    """The `events` on disjoint parts of the data: a unit is in at most one part; the most expensive is the price.

    >>> from mosha import accounting, events
    >>> accounting.epsilon(events.Parallel((events.Pure(epsilon=1), events.Pure(epsilon=2))), delta=0)
    2.0
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        events = tuple(_is_event("events", e) for e in self.events)
        if not events:
            raise InvalidParameter("core.no_events", parameter="events")
        object.__setattr__(self, "events", tuple(sorted(set(events), key=lambda e: e.to_json())))

    def suits(self, neighbors: Neighbors) -> bool:
        """Only where `neighbors` add or remove: a unit that is replaced may leave one part and enter another."""
        return neighbors is Neighbors.ADD_REMOVE and super().suits(neighbors)


@dataclass(frozen=True)
class Group(Event):
    """`event`, seen by a group of `size` units at once.

    >>> from mosha import accounting, events
    >>> accounting.epsilon(events.Group(events.Pure(epsilon=0.5), size=3), delta=0)
    1.5
    """

    event: Event
    size: int

    def __post_init__(self) -> None:
        check_fields(self, event=_is_event, size=positive_integer)


@dataclass(frozen=True)
class Failure(Event):
    """`event`, but with `probability` everything is revealed.

    >>> from mosha import accounting, events
    >>> accounting.epsilon(events.Failure(events.Pure(epsilon=1), probability=1e-9), delta=1e-9)
    1.0
    """

    event: Event
    probability: float

    def __post_init__(self) -> None:
        check_fields(self, event=_is_event, probability=probability)


@dataclass(frozen=True)
class Plan(Event):
    """An `event` that is fixed, with all its parameters, before it starts, and is sold at `delta` as one piece.

    Because nothing in it can be chosen adaptively, its (epsilon, delta) is what the tight numerical
    accountant says; an account may charge that pair instead of the sum of the parts.

    >>> from mosha import accounting, events
    >>> plan = events.Plan(events.Gaussian(noise_multiplier=2) * 10, delta=1e-6)
    >>> round(accounting.epsilon(plan, delta=1e-6), 1)
    8.3
    """

    event: Event
    delta: float

    def __post_init__(self) -> None:
        check_fields(self, event=_is_event, delta=strict_probability)
