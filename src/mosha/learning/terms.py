"""The terms of a private training: sampling, clip, noise and price are fields of one frozen object."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from typing import ClassVar, Self

from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import Event
from mosha.core.events import Gaussian
from mosha.core.names.calls import renamed_argument
from mosha.core.names.deprecation import warn_of_old_name
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.options import ClippingName, SamplingName, choose
from mosha.core.unit import Example, Neighbors, Person, Unit
from mosha.learning.physical_batches import USUAL_ROWS, choose_size
from mosha.mechanisms.plans.buffered import BufferedEncoder
from mosha.mechanisms.plans.correlated import SCALE, Coefficients
from mosha.mechanisms.plans.priced_plan import PricedPlan
from mosha.mechanisms.plans.sampling import FixedSize, Poisson, Sampling, Shuffled

__all__ = ["SHARE", "TrainingTerms"]

SHARE = 0.1
"""The share of the norm of a contribution that a declared loss, and the bit of adaptive clipping, may take each."""

LARGEST_PHYSICAL = 1024


@dataclass(frozen=True, kw_only=True)
class TrainingTerms(PricedPlan):
    """What a private training promises, step by step: see `DPSGD` for its fields.

    A training reads its terms from here, and a plan that can be trained lies above both.
    """

    steps: int = 0
    epochs: InitVar[float | None] = None
    rate: float = 0.0
    clip: float
    noise_multiplier: float | None = None
    batch: float | None = None
    clipping: ClippingName = "flat"
    sampling: SamplingName | Sampling = "poisson"
    population: int | None = None
    unit: Unit = field(default_factory=Example)
    physical: int | None = None
    loss_at_most: float | None = None
    quantile: float = 0.5
    views: int = 1
    average: float | None = None
    delta: float | None = None
    bands: ClassVar[int] = 1
    buffers: ClassVar[int | None] = None

    def __post_init__(self, epochs: float | None) -> None:
        self._read_sampling()
        self._set(rate=positive, clip=positive)
        self._read_epochs(epochs)
        self._set(steps=positive_integer, views=positive_integer)
        self._set_given(noise_multiplier=positive, batch=positive, population=positive_integer)
        self._set_given(physical=positive_integer)
        self._set_given(loss_at_most=positive, delta=strict_probability, quantile=strict_probability)
        self._set_given(average=strict_probability)
        clipping = choose("clipping", self.clipping, ClippingName, renamed={"per layer": "per_layer"})
        object.__setattr__(self, "clipping", clipping)
        if self.rate > 1:
            raise InvalidParameter("learning.rate_range", parameter="rate", rate=self.rate)
        if not 2.0**-64 <= self.clip <= 2.0**64:
            raise InvalidParameter("learning.clip_range", parameter="clip")
        if (self.physical or 1) > LARGEST_PHYSICAL:
            raise InvalidParameter("learning.physical_too_large", parameter="physical", most=LARGEST_PHYSICAL)
        if self.clipping == "adaptive" and self.bands > 1:
            raise InvalidParameter("learning.adaptive_with_bands", parameter="clipping")
        self._check_unit()

    def _read_sampling(self) -> None:
        """Bring `sampling` to its name and `rate` to its number: `replace(plan, rate=...)` works on either."""
        given = self.sampling
        if not isinstance(given, Sampling):
            name = choose("sampling", given, SamplingName, renamed={"fixed size": "fixed_size"})
            object.__setattr__(self, "sampling", name)
            return
        if isinstance(given, Poisson):
            name, rate = "poisson", given.rate
        elif isinstance(given, Shuffled):
            name, rate = "shuffled", 1 / given.batches
        elif isinstance(given, FixedSize) and self.population is not None:
            name, rate = "fixed_size", given.size / positive_integer("population", self.population)
        else:
            raise InvalidParameter("learning.unknown_sampling", parameter="sampling")
        if self.rate not in (0.0, rate):
            raise InvalidParameter("learning.rate_twice", parameter="rate")
        object.__setattr__(self, "sampling", name)
        object.__setattr__(self, "rate", rate)

    def _read_epochs(self, epochs: float | None) -> None:
        """Turn epochs into steps, once: `replace(plan, steps=...)` works on either."""
        if (epochs is None) == (self.steps == 0):
            raise InvalidParameter("learning.steps_or_epochs", parameter="steps", spent="nothing")
        if epochs is not None:
            object.__setattr__(self, "steps", max(1, round(positive("epochs", epochs) / self.rate)))

    def _check_unit(self) -> None:
        if not isinstance(self.unit, Example | Person):
            raise InvalidParameter("learning.unit_of_training", parameter="unit")
        if isinstance(self.unit, Person) and self.unit.at_most is None:
            raise InvalidParameter("learning.person_at_most", parameter="unit")
        replaced = self.unit.neighbors is Neighbors.REPLACE_ONE
        if replaced != (self.sampling == "fixed_size"):
            raise InvalidParameter("learning.neighbors_of_sampling", parameter="unit")
        if (self.population is not None) != (self.sampling == "fixed_size"):
            raise InvalidParameter("learning.population_of_fixed_size", parameter="population")
        if self.sampling == "fixed_size" and round(self.rate * (self.population or 0)) < 1:
            raise InvalidParameter("learning.less_than_one_unit", parameter="rate")

    def _set(self, **checks: Callable[[str, object], object]) -> None:
        for name, check in checks.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def _set_given(self, **checks: Callable[[str, object], object]) -> None:
        self._set(**{name: check for name, check in checks.items() if getattr(self, name) is not None})

    @property
    def length(self) -> int:
        """The number of steps."""
        return self.steps

    @property
    def drawing(self) -> Sampling:
        """Who is drawn, with the price and the sensitivity of that."""
        if self.sampling == "poisson":
            return Poisson(self.rate)
        if self.sampling == "fixed_size":
            return FixedSize(round(self.rate * (self.population or 0)))
        return Shuffled(self.bins, repeated=self.bands > 1)

    @property
    def each(self) -> int:
        """How many examples of one unit may be in a batch."""
        return self.unit.at_most or 1 if isinstance(self.unit, Person) else 1

    @property
    def rows_of_unit(self) -> int:
        """How many rows of a physical batch belong to one unit."""
        return self.each * self.views

    @property
    def bins(self) -> int:
        """The number of batches in an epoch."""
        return max(1, round(1 / self.rate))

    @property
    def divisor(self) -> float:
        """What the noisy sum is divided by: declared, never counted."""
        return 1 / self.rate if self.batch is None else self.batch

    @property
    def at_once(self) -> int:
        """The most units that pass through the model at once: physical batches are filled up to it, or to less.

        If `batch` is declared, it is chosen so that batches of that size leave little to fill.
        """
        most = max(1, (self.physical or USUAL_ROWS) // self.rows_of_unit)
        if self.sampling == "fixed_size":
            size = math.ceil(self.drawing.expected_size(self.population or 0))
            return choose_size(size, most, random=False)
        return most if self.batch is None else choose_size(self.batch, most, random=True)

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the noise in each coordinate of an update, apart from `gradient_share`."""
        return self.chosen_noise * self.clip / self.divisor

    @property
    def encoding(self) -> Coefficients | BufferedEncoder:
        """A column of the encoder of noise: none, for noise is not correlated here."""
        return (SCALE,)

    @property
    def error_of_sums(self) -> float:
        """The noise in sums of gradients from the first step on, root mean square over all of them, in units of `clip`.

        >>> terms = TrainingTerms(steps=3, rate=0.1, clip=1.0, noise_multiplier=2.0)
        >>> terms.error_of_sums == 2 * math.sqrt((1 + 2 + 3) / 3)
        True
        """
        return self.chosen_noise * math.sqrt((self.steps + 1) / 2)

    @property
    def gradient_share(self) -> float:
        """The share of the norm that is left for the gradient: the squares of all shares add up to one."""
        others = (self.loss_at_most is not None) + (self.clipping == "adaptive")
        return math.sqrt(1 - others * SHARE**2)

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` steps cost with this noise.

        The multiplier is over the norm of one contribution, and a step moves by `drawing.moves` of them at most.
        """
        rule = self.drawing
        return rule.price(Gaussian(noise_multiplier / rule.moves), steps=length, population=self.population or 1)

    @property
    def sold_as(self) -> Event:
        """The former name of `event`."""
        warn_of_old_name("sold_as", "event")
        return self.event

    @renamed_argument(steps="after")
    def epsilon(self, delta: float | None = None, *, after: int | None = None) -> float:
        """The tight price after `after` steps (all of them by default), at `delta` (the promised one by default)."""
        return super().epsilon(delta, after=after)

    def most_steps(self, *, epsilon: float, delta: float) -> Self:
        """The same plan with as many steps as (epsilon, delta) pays for with this noise: one more would be too many.

        >>> plan = TrainingTerms(steps=1, rate=0.01, clip=1.0, noise_multiplier=1.0).most_steps(epsilon=1, delta=1e-5)
        >>> plan.epsilon() <= 1 < replace(plan, steps=plan.steps + 1).epsilon()
        True
        """
        from mosha.accounting import epsilon as least_epsilon  # noqa: PLC0415  (numerical)

        wanted, promised = positive("epsilon", epsilon), strict_probability("delta", delta)

        def fits(steps: int) -> bool:
            plan = replace(self, steps=steps)  # what noise is correlated by may follow from the length
            return least_epsilon(plan.price(self.chosen_noise, steps), promised) <= wanted

        if not fits(1):
            raise Unpriced("learning.one_step_too_much", spent="nothing")
        low = 1
        while low < 1 << 24 and fits(2 * low):
            low *= 2
        high = 2 * low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return replace(self, steps=low, delta=promised)

    def within(self, *, epsilon: float, delta: float) -> Self:
        """The former name of `most_steps`."""
        warn_of_old_name("within", "most_steps")
        return self.most_steps(epsilon=epsilon, delta=delta)
