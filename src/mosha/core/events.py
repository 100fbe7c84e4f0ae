"""The vocabulary of events: every randomised thing that can be paid for.

A *noise multiplier* is the scale (Laplace) or standard deviation (Gaussian) of the noise divided by the
sensitivity of what it is added to, under the neighbours of the account's unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Composed, Event, compose, from_dict, from_json
from mosha.core.number import (
    non_negative,
    positive,
    positive_integer,
    probability,
    real,
    strict_probability,
)
from mosha.core.unit import Neighbors

__all__ = [
    "NOTHING",
    "Approx",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Failure",
    "FixedSizeSampled",
    "Gaussian",
    "Group",
    "Laplace",
    "Matrix",
    "Parallel",
    "Plan",
    "Pure",
    "RandomizedResponse",
    "Renyi",
    "Sampled",
    "Selected",
    "Shuffled",
    "SparseVector",
    "Tree",
    "ZeroConcentrated",
    "compose",
    "from_dict",
    "from_json",
]


def _check(event: Event, /, **checks: Any) -> None:
    for name, check in checks.items():
        object.__setattr__(event, name, check(name, getattr(event, name)))


def _is_event(name: str, value: object) -> Event:
    if not isinstance(value, Event):
        raise InvalidParameter("core.not_an_event", parameter=name, kind=type(value).__name__)
    return value


def _one_of(*choices: str) -> Any:
    def check(name: str, value: object) -> str:
        if value not in choices:
            raise InvalidParameter("core.unknown_option", parameter=name, options=[repr(choice) for choice in choices])
        return str(value)

    return check


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a number or a vector (l1 sensitivity): epsilon = 1 / noise_multiplier.

    On a vector it costs no more than on one number that moves by as much (`accounting/dominating.md`).
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=positive)


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a vector (l2 sensitivity): mu = 1 / noise_multiplier."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=positive)


@dataclass(frozen=True)
class DiscreteLaplace(Event):
    """Discrete Laplace noise on integers.

    `sensitivity` counts grid steps: the number, or the vector in the l1 norm, moves by at most so many of them. With 1,
    the default, the event is as costly as any mechanism with epsilon = 1 / noise_multiplier; with more it is cheaper
    to compose. On a vector it costs no more than on one number that moves by as much (`accounting/dominating.md`).
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=positive, sensitivity=positive_integer)


@dataclass(frozen=True)
class DiscreteGaussian(Event):
    """Discrete Gaussian noise on integers; standard deviation parameter = noise_multiplier * sensitivity.

    `sensitivity` is the l2 sensitivity in grid steps (a whole number for a single number),
    `coordinates` is how many numbers are noised at once.
    """

    noise_multiplier: float
    sensitivity: float = 1.0
    coordinates: int = 1

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=positive, sensitivity=positive, coordinates=positive_integer)


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """The truth with probability e^epsilon / (e^epsilon + categories - 1), else any other category."""

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        _check(self, epsilon=positive, categories=positive_integer)
        if self.categories < 2:
            raise InvalidParameter("core.one_category", parameter="categories")


@dataclass(frozen=True)
class Exponential(Event):
    """A choice by the exponential mechanism or a better one of bounded range (permute-and-flip is not one)."""

    epsilon: float

    def __post_init__(self) -> None:
        _check(self, epsilon=positive)


@dataclass(frozen=True)
class SparseVector(Event):
    """Above-threshold tests until `alarms` of them were positive.

    `threshold_epsilon` pays for the noise on the threshold, `answer_epsilon` for the noise on all answers.
    """

    threshold_epsilon: float
    answer_epsilon: float
    alarms: int = 1

    def __post_init__(self) -> None:
        _check(self, threshold_epsilon=positive, answer_epsilon=positive, alarms=positive_integer)


@dataclass(frozen=True)
class Pure(Event):
    """Anything that is proved epsilon-differentially private."""

    epsilon: float

    def __post_init__(self) -> None:
        _check(self, epsilon=non_negative)


@dataclass(frozen=True)
class Approx(Event):
    """Anything that is proved (epsilon, delta)-differentially private."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check(self, epsilon=non_negative, delta=probability)


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """Anything that is proved rho-zero-concentrated differentially private."""

    rho: float

    def __post_init__(self) -> None:
        _check(self, rho=non_negative)


@dataclass(frozen=True)
class Renyi(Event):
    """Anything whose Rényi divergences are proved at some orders: `values[i]` at `orders[i]`."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        orders = tuple(real("orders", a) for a in self.orders)
        values = tuple(non_negative("values", v) for v in self.values)
        if not orders or len(orders) != len(values) or min(orders) <= 1 or list(orders) != sorted(set(orders)):
            raise InvalidParameter("core.renyi_orders", parameter="orders")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Sampled(Event):
    """`event` on a Poisson sample: every unit is drawn with probability `rate`, independently."""

    event: Event
    rate: float
    neighbours: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        _check(self, event=_is_event, rate=positive)
        if self.rate > 1:
            raise InvalidParameter("core.not_a_rate", parameter="rate", value=self.rate)
        try:
            object.__setattr__(self, "neighbours", Neighbors(self.neighbours))
        except ValueError:
            raise InvalidParameter(
                "core.unknown_option", parameter="neighbours", options=[repr(str(kind)) for kind in Neighbors]
            ) from None

    def suits(self, neighbours: Neighbors) -> bool:
        return self.neighbours is neighbours and self.event.suits(neighbours)


@dataclass(frozen=True)
class FixedSizeSampled(Event):
    """`event` on `size` of `population` units, drawn with or without replacement; neighbours replace one unit.

    The noise multiplier of `event` is relative to the sensitivity under *replacement* of one unit.
    """

    event: Event
    size: int
    population: int
    replacement: bool = False

    def __post_init__(self) -> None:
        _check(self, event=_is_event, size=positive_integer, population=positive_integer)
        if not isinstance(self.replacement, bool):
            raise InvalidParameter("core.not_true_or_false", parameter="replacement")
        if self.size > self.population and not self.replacement:
            raise InvalidParameter("core.sample_above_population", parameter="size")

    def suits(self, neighbours: Neighbors) -> bool:
        return neighbours is Neighbors.REPLACE_ONE and self.event.suits(neighbours)


@dataclass(frozen=True)
class Shuffled(Event):
    """The reports of `people` people, each `epsilon`-locally private, after a trusted shuffler.

    `categories` says that each of them is a randomized response over so many categories, which costs less.
    """

    epsilon: float
    people: int
    categories: int | None = None

    def suits(self, neighbours: Neighbors) -> bool:
        """Shuffling hides what a person said, never whether there is a report."""
        return neighbours is Neighbors.REPLACE_ONE

    def __post_init__(self) -> None:
        _check(self, epsilon=positive, people=positive_integer)
        if self.categories is not None:
            _check(self, categories=positive_integer)
            if self.categories < 2:
                raise InvalidParameter("core.one_category", parameter="categories")


@dataclass(frozen=True)
class Tree(Event):
    """Tree aggregation: a unit enters at most `levels` nodes by `noise_multiplier` of one node each."""

    noise_multiplier: float
    levels: int
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        check = _one_of("gaussian", "laplace")
        _check(self, noise_multiplier=positive, levels=positive_integer, noise=check)


@dataclass(frozen=True)
class Matrix(Event):
    """The matrix mechanism with Gaussian noise: `sensitivity` is that of the encoder C over all participations.

    `noise_multiplier` is the standard deviation over the norm of one contribution.
    """

    noise_multiplier: float
    sensitivity: float

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=positive, sensitivity=positive)


@dataclass(frozen=True)
class Selected(Event):
    """The best of a random number of runs of `event` (Papernot and Steinke 2022).

    The number of runs is `distribution`: "poisson" with `mean` (any above zero; that there was no run may be seen),
    or "negative-binomial" truncated to at least one run with `shape` (1: geometric, 0: logarithmic) and this `mean`.
    """

    event: Event
    mean: float
    distribution: str = "negative-binomial"
    shape: float = 1.0

    def __post_init__(self) -> None:
        check = _one_of("poisson", "negative-binomial")
        _check(self, event=_is_event, mean=positive, distribution=check, shape=real)
        if self.shape <= -1:
            raise InvalidParameter("core.shape_too_small", parameter="shape")
        if self.distribution == "negative-binomial" and self.mean < 1:
            raise InvalidParameter("core.mean_below_one", parameter="mean")


@dataclass(frozen=True)
class Parallel(Event):
    """Events on disjoint parts of the data: a unit is in at most one part; the most expensive is the price."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        events = tuple(_is_event("events", e) for e in self.events)
        if not events:
            raise InvalidParameter("core.no_events", parameter="events")
        object.__setattr__(self, "events", tuple(sorted(set(events), key=lambda e: e.to_json())))

    def suits(self, neighbours: Neighbors) -> bool:
        """A unit that is replaced may leave one part and enter another: two parts change, and not one."""
        return neighbours is Neighbors.ADD_REMOVE and super().suits(neighbours)


@dataclass(frozen=True)
class Group(Event):
    """`event`, seen by a group of `size` units at once."""

    event: Event
    size: int

    def __post_init__(self) -> None:
        _check(self, event=_is_event, size=positive_integer)


@dataclass(frozen=True)
class Failure(Event):
    """`event`, but with `probability` everything is revealed."""

    event: Event
    probability: float

    def __post_init__(self) -> None:
        _check(self, event=_is_event, probability=probability)


@dataclass(frozen=True)
class Plan(Event):
    """A composition that is fixed, with all its parameters, before it starts, and is sold at `delta` as one piece.

    Because nothing in it can be chosen adaptively, its (epsilon, delta) is what the tight numerical
    accountant says; an account may charge that pair instead of the sum of the parts.
    """

    event: Event
    delta: float

    def __post_init__(self) -> None:
        _check(self, event=_is_event, delta=strict_probability)
