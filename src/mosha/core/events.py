"""The vocabulary of events: every randomised thing that can be paid for.

A *noise multiplier* is the scale (Laplace) or standard deviation (Gaussian) of the noise divided by the
sensitivity of what it is added to, under the neighbors of the account's unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from mosha.core.composite_events import (
    Failure,
    FixedSizeSampled,
    Group,
    Parallel,
    Plan,
    Sampled,
    Selected,
    one_of,
)
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Composed, Event, check_fields, compose, from_dict, from_json
from mosha.core.number import (
    non_negative,
    positive,
    positive_integer,
    probability,
    real,
)
from mosha.core.options import NoiseName
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


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a number or a vector (l1 sensitivity): epsilon = 1 / `noise_multiplier`.

    On a vector it costs no more than on one number that moves by as much (`accounting/dominating.md`).

    >>> import mosha
    >>> mosha.accounting.epsilon(Laplace(noise_multiplier=2), delta=0)
    0.5
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive)


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a vector (l2 sensitivity): mu = 1 / `noise_multiplier`.

    >>> import mosha
    >>> round(mosha.accounting.epsilon(Gaussian(noise_multiplier=2), delta=1e-6), 2)
    2.25
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive)


@dataclass(frozen=True)
class DiscreteLaplace(Event):
    """Discrete Laplace noise on integers; scale = `noise_multiplier` * sensitivity.

    `sensitivity` counts grid steps: the number, or the vector in the l1 norm, moves by at most so many of them. With 1,
    the default, the event is as costly as any mechanism with epsilon = 1 / noise_multiplier; with more it is cheaper
    to compose. On a vector it costs no more than on one number that moves by as much (`accounting/dominating.md`).

    >>> import mosha
    >>> mosha.accounting.epsilon(DiscreteLaplace(noise_multiplier=2), delta=0)
    0.5
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, sensitivity=positive_integer)


@dataclass(frozen=True)
class DiscreteGaussian(Event):
    """Discrete Gaussian noise on integers; standard deviation parameter = `noise_multiplier` * sensitivity.

    `sensitivity` is the l2 sensitivity in grid steps (a whole number for a single number),
    `coordinates` is how many numbers are noised at once.

    >>> DiscreteGaussian(noise_multiplier=2, coordinates=10).to_dict()["coordinates"]
    10
    """

    noise_multiplier: float
    sensitivity: float = 1.0
    coordinates: int = 1

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, sensitivity=positive, coordinates=positive_integer)


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """The truth with probability e^`epsilon` / (e^epsilon + `categories` - 1), else any other category.

    >>> import mosha
    >>> mosha.accounting.epsilon(RandomizedResponse(epsilon=1, categories=4), delta=0)
    1.0
    """

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        check_fields(self, epsilon=positive, categories=positive_integer)
        if self.categories < 2:
            raise InvalidParameter("core.one_category", parameter="categories")


@dataclass(frozen=True)
class Exponential(Event):
    """A choice by the exponential mechanism or a better one of bounded range `epsilon` (permute-and-flip is not one).

    >>> import mosha
    >>> mosha.accounting.epsilon(Exponential(epsilon=0.5) * 2, delta=0)
    1.0
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=positive)


@dataclass(frozen=True)
class SparseVector(Event):
    """Above-threshold tests until `alarms` of them were positive.

    `threshold_epsilon` pays for the noise on the threshold, `answer_epsilon` for the noise on all answers.

    >>> import mosha
    >>> mosha.accounting.epsilon(SparseVector(threshold_epsilon=0.5, answer_epsilon=1, alarms=3), delta=0)
    1.5
    """

    threshold_epsilon: float
    answer_epsilon: float
    alarms: int = 1

    def __post_init__(self) -> None:
        check_fields(self, threshold_epsilon=positive, answer_epsilon=positive, alarms=positive_integer)


@dataclass(frozen=True)
class Pure(Event):
    """Anything that is proved `epsilon`-differentially private.

    >>> import mosha
    >>> mosha.accounting.epsilon(Pure(epsilon=0.5) + Pure(epsilon=1), delta=0)
    1.5
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=non_negative)


@dataclass(frozen=True)
class Approx(Event):
    """Anything that is proved (`epsilon`, `delta`)-differentially private.

    >>> import mosha
    >>> mosha.accounting.epsilon(Approx(epsilon=1, delta=1e-9), delta=1e-9)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=non_negative, delta=probability)


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """Anything that is proved `rho`-zero-concentrated differentially private.

    >>> import mosha
    >>> mosha.accounting.epsilon(ZeroConcentrated(rho=0.1), delta=1e-6) < 2.5
    True
    """

    rho: float

    def __post_init__(self) -> None:
        check_fields(self, rho=non_negative)


@dataclass(frozen=True)
class Renyi(Event):
    """Anything whose Rényi divergences are proved at some orders: `values[i]` at `orders[i]`.

    >>> Renyi(orders=(2, 8), values=(0.1, 0.5)).orders
    (2.0, 8.0)
    """

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
class Shuffled(Event):
    """The reports of `people` people, each `epsilon`-locally private, after a trusted shuffler.

    `categories` says that each of them is a randomized response over so many categories, which costs less.

    >>> import mosha
    >>> mosha.accounting.epsilon(Shuffled(epsilon=1, people=10_000), delta=1e-6) < 0.2
    True
    """

    epsilon: float
    people: int
    categories: int | None = None

    def suits(self, neighbors: Neighbors) -> bool:
        """Only where `neighbors` replace one: shuffling hides what a person said, never whether there is a report."""
        return neighbors is Neighbors.REPLACE_ONE

    def __post_init__(self) -> None:
        check_fields(self, epsilon=positive, people=positive_integer)
        if self.categories is not None:
            check_fields(self, categories=positive_integer)
            if self.categories < 2:
                raise InvalidParameter("core.one_category", parameter="categories")


@dataclass(frozen=True)
class Tree(Event):
    """Tree aggregation: a unit enters at most `levels` nodes by `noise_multiplier` of one node each.

    `noise` is "gaussian" or "laplace".

    >>> import mosha
    >>> round(mosha.accounting.epsilon(Tree(noise_multiplier=4, levels=8, noise="laplace"), delta=0), 6)
    2.0
    """

    noise_multiplier: float
    levels: int
    noise: NoiseName = "gaussian"

    def __post_init__(self) -> None:
        check = one_of("gaussian", "laplace")
        check_fields(self, noise_multiplier=positive, levels=positive_integer, noise=check)


@dataclass(frozen=True)
class Matrix(Event):
    """The matrix mechanism with Gaussian noise: `sensitivity` is that of the encoder C over all participations.

    `noise_multiplier` is the standard deviation over the norm of one contribution.

    >>> Matrix(noise_multiplier=4, sensitivity=2) == Matrix(noise_multiplier=4.0, sensitivity=2.0)
    True
    """

    noise_multiplier: float
    sensitivity: float

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, sensitivity=positive)
