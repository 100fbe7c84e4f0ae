"""What all plans share: a run that is fixed before it starts, with a noise that is chosen and a price that follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import Event
from mosha.core.events import Plan
from mosha.core.language import say
from mosha.core.number import positive_integer, strict_probability
from mosha.core.showing import Card, Shown, write_number

if TYPE_CHECKING:
    from mosha.core.unit import Unit

__all__ = ["PricedPlan"]


class PricedPlan(Shown, ABC):
    """A frozen plan of a run: how long it is, how much noise it has, what it costs.

    Guarantee:
        `price(noise_multiplier, length)` bounds what the first `length` steps of the run tell about a unit, whatever is
        chosen in between. A plan with a delta is fixed with all its parameters before it starts, so an account may
        charge it as one (epsilon, delta) event at that delta (`Plan`).

    Subclasses are frozen dataclasses with the fields `noise_multiplier` and `delta`.
    """

    if TYPE_CHECKING:  # fields of the dataclasses below

        @property
        def noise_multiplier(self) -> float | None: ...

        @property
        def delta(self) -> float | None: ...

        @property
        def unit(self) -> Unit: ...

        @property
        def clip(self) -> object: ...

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of steps (or rounds) of the whole run."""

    @abstractmethod
    def price(self, noise_multiplier: float, length: int) -> Event:
        """What the first `length` steps cost with this noise."""

    def make_card(self) -> Card:
        """Who is hidden, how long the run is, its clip and noise, and what it promises."""
        noise = self.noise_multiplier
        facts = [
            (say("core.shown_hidden"), self.unit.describe()),
            (say("mechanisms.shown_length"), f"{self.length:,}"),
            (say("mechanisms.shown_clip"), f"{self.clip:g}" if isinstance(self.clip, float | int) else str(self.clip)),
            (say("mechanisms.shown_noise"), say("mechanisms.shown_open") if noise is None else f"{noise:.4g}"),
        ]
        if noise is not None and self.delta is not None:
            promise = f"epsilon {write_number(self.epsilon(), 0.001)}, delta {self.delta:g}"
            facts.append((say("core.shown_promise"), promise))
        return Card(title=type(self).__name__, facts=facts)

    @property
    def event(self) -> Event:
        """What an account is charged for the whole run: one event at the plan's delta, or step by step without one."""
        whole = self.event_after(self.length)
        return Plan(whole, self.delta) if self.delta else whole

    def event_after(self, length: int) -> Event:
        """What the first `length` steps (or rounds) cost, as a composition.

        Args:
            length: a whole number from 0 to the length of the plan.
        """
        if isinstance(length, bool) or not isinstance(length, int) or not 0 <= length <= self.length:
            raise InvalidParameter("mechanisms.beyond_the_plan", parameter="length", longest=self.length)
        return self.price(self.chosen_noise, length)

    @property
    def chosen_noise(self) -> float:
        """The noise multiplier, or an error if it was not chosen yet."""
        if self.noise_multiplier is None:
            raise Unpriced("mechanisms.plan_without_noise", parameter="noise_multiplier", spent="nothing")
        return self.noise_multiplier

    def epsilon(self, delta: float | None = None, *, after: int | None = None) -> float:
        """The tight price of the run at `delta`.

        Args:
            delta: by default the delta that the plan was calibrated for.
            after: the price of only so many steps (or rounds); of all of them by default.
        """
        from mosha.accounting import epsilon  # noqa: PLC0415  (numerical)

        wanted = self.delta if delta is None else delta
        if wanted is None:
            raise InvalidParameter("mechanisms.plan_without_delta", parameter="delta")
        length = self.length if after is None else min(positive_integer("after", after), self.length)
        return epsilon(self.price(self.chosen_noise, length), self.check_delta(wanted))

    def calibrate(self, *, epsilon: float, delta: float) -> Self:
        """The same plan with the least noise that keeps (epsilon, delta), to be charged as one event.

        An account charges the epsilon at delta, which is rounded up; noise is added until that fits as well.

        Args:
            epsilon: the most that the whole run may cost.
            delta: at this delta.
        """
        from mosha.accounting import calibrate  # noqa: PLC0415  (numerical)

        promised = self.check_delta(delta)
        found = calibrate(lambda noise: self.price(noise, self.length), epsilon=epsilon, delta=promised)
        plan = self._with(noise_multiplier=found, delta=promised)
        while (price := plan.epsilon()) > epsilon:
            found *= 1 + 2 * (price / epsilon - 1)
            plan = self._with(noise_multiplier=found, delta=promised)
        return plan

    def check_delta(self, delta: float) -> float:
        """A delta that this plan can be sold at."""
        return strict_probability("delta", delta)

    def _with(self, **fields: object) -> Self:
        return replace(self, **fields)  # type: ignore[type-var]
