"""One budget for all parts of a report: every wish at the lowest cost found, and the rest for those without one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mosha import accounting
from mosha.accounting.measures import concentrated, pure
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter, MoshaError
from mosha.core.event import NOTHING, Event
from mosha.core.number import positive
from mosha.reports.parts import BOUGHT_LATER, Part

__all__ = ["PlannedPart", "Split", "split_budget"]

LEAST, LARGEST, LEAST_SHARE = 2.0**-30, 2.0**10, 2.0**-12
TO = 1.002
"""Searches end when both ends are that close."""

MOST_WIDENING = 2.0**40
DELTA_FOR_PARTS = 0.5
"""The share of delta for parts that need one of their own; the rest is for pricing all of them together."""


@dataclass(frozen=True, kw_only=True)
class PlannedPart:
    """A part, what it may cost, and the error bar that is to be expected."""

    part: Part
    budget: Budget
    width: float
    event: Event

    @property
    def meets_wish(self) -> bool:
        """Whether the bar is as narrow as it was wished (to two parts in a thousand)."""
        return self.part.wish.within is None or self.width <= self.part.wish.within * TO


@dataclass(frozen=True, kw_only=True, repr=False)
class Split:
    """How a budget (`limit`) is divided: the `parts` with their prices, their joint `cost`, and the widening.

    `widening` is by how much all wished bars had to be widened to fit the budget: 1.0 where every wish is met.

    >>> import mosha
    >>> visits = mosha.protect({"ward": ["A", "B", "A"]}, unit=mosha.Row())
    >>> mosha.Report("Visits", epsilon=1).add("all", visits.count(), within=9).forecast().split.widening
    1.0
    """

    parts: tuple[PlannedPart, ...]
    cost: float
    limit: Budget
    widening: float = 1.0

    def __repr__(self) -> str:
        met = "all wishes met" if self.meets_wishes else f"wished bars {self.widening:.2f} times as wide"
        return f"Split({len(self.parts)} questions, epsilon {self.cost:.4g} of {self.limit}, {met})"

    @property
    def meets_wishes(self) -> bool:
        return self.widening == 1.0

    @property
    def event(self) -> Event:
        return sum((planned.event for planned in self.parts), start=NOTHING)


@dataclass(frozen=True)
class _Planner:
    """Prices and widths of the parts of one report."""

    parts: Sequence[Part]
    limit: Budget
    delta: float

    @property
    def measures(self) -> tuple[str, ...]:
        return ("epsilon", "rho") if self.limit.delta or self.limit.rho is not None else ("epsilon",)

    def make_budget(self, part: Part, measure: str, amount: float) -> Budget:
        return Budget(delta=self.delta if part.needs_delta else 0.0, **{measure: amount})

    def price(self, events: Sequence[Event]) -> float:
        """What these cost together, in the measure of the limit."""
        whole = sum(events, start=NOTHING)
        if self.limit.rho is not None:
            amount, delta = concentrated.rho(whole)
            return amount if delta <= self.limit.delta else math.inf
        plain, delta = pure.approx(whole)
        summed = plain if delta <= self.limit.delta else math.inf
        return min(summed, float(accounting.epsilon(whole, self.limit.delta))) if self.limit.delta else summed

    def event(self, part: Part, budget: Budget) -> Event:
        return part.prepare(budget).measurement.event

    def least(self, part: Part, measure: str, within: float) -> Budget | None:
        """The least amount of a measure whose widest bar is within; None where no amount is enough."""

        def width(amount: float) -> float:
            try:
                return part.width(self.make_budget(part, measure, amount))
            except MoshaError:
                return math.inf

        low, high = LEAST, LARGEST
        if not width(high) <= within:
            return None
        while high > low * TO:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if width(middle) <= within else (middle, high)
        return self.make_budget(part, measure, high)

    def check_forecast(self, part: Part) -> None:
        """Refuse a wish for a part whose bar nobody can forecast, because a bound is to be bought."""
        try:
            part.width(self.make_budget(part, self.measures[0], LARGEST))
        except MoshaError as error:
            if error.code not in BOUGHT_LATER:
                return
        else:
            return
        raise InvalidParameter("reports.wish_of_bought_bound", parameter="within", part=part.name, spent="nothing")

    def meet(self, wished: Sequence[Part], factor: float) -> tuple[dict[str, Budget], float]:
        """A budget for every wish, its bar widened by a factor: the cheapest measure for each, found by exchange."""
        options: dict[str, dict[str, Budget]] = {}
        for part in wished:
            target = float(part.wish.within or math.inf) * factor
            found = {measure: self.least(part, measure, target) for measure in self.measures}
            options[part.name] = {measure: budget for measure, budget in found.items() if budget is not None}
            if not options[part.name]:
                self.check_forecast(part)
                raise InvalidParameter("reports.wish_never_met", parameter="within", part=part.name, spent="nothing")
        events = {
            (part.name, measure): self.event(part, budget)
            for part in wished
            for measure, budget in options[part.name].items()
        }

        def cost(chosen: Mapping[str, str]) -> float:
            return self.price([events[name, measure] for name, measure in chosen.items()])

        starts = [
            {name: measure if measure in known else next(iter(known)) for name, known in options.items()}
            for measure in self.measures
        ]
        chosen = min(starts, key=cost)
        best = cost(chosen)
        for name, known in options.items():
            for measure in known:
                tried = {**chosen, name: measure}
                if (price := cost(tried)) < best:
                    chosen, best = tried, price
        return {name: options[name][measure] for name, measure in chosen.items()}, best

    def share(self, free: Sequence[Part], spent: Sequence[Event], measure: str) -> dict[str, Budget] | None:
        """What is left for parts without a wish, by their weights; None where nothing is."""

        def make(scale: float) -> dict[str, Budget]:
            return {part.name: self.make_budget(part, measure, scale * part.wish.weight) for part in free}

        def fits(scale: float) -> bool:
            try:
                budgets = make(scale)
                return (
                    self.price([*spent, *(self.event(part, budgets[part.name]) for part in free)]) <= self.limit.amount
                )
            except MoshaError:
                return False

        low, high = self.limit.amount * LEAST_SHARE, LARGEST
        if not fits(low):
            return None
        while high > low * TO:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return make(low)

    def finish(self, budgets: Mapping[str, Budget], widening: float) -> Split:
        planned = tuple(
            PlannedPart(
                part=part, budget=budgets[part.name], width=part.width(budgets[part.name]),
                event=self.event(part, budgets[part.name]),
            )
            for part in self.parts
        )  # fmt: skip
        cost = self.price([each.event for each in planned])
        return Split(parts=planned, cost=cost, limit=self.limit, widening=widening)


def split_budget(parts: Sequence[Part], limit: Budget) -> Split:
    """The budgets of all `parts`: wishes first, at the lowest joint cost found; the rest by weight.

    Where the wishes cost more than there is, all their bars are widened by the least common factor that fits, half of
    the budget being left for parts without a wish, if there are any. Nothing is read and nothing is spent.

    All of them together stay within `limit`.

    >>> import mosha
    >>> from mosha.reports.period import find_period
    >>> visits = mosha.protect({"ward": ["A", "B", "A"]}, unit=mosha.Row())
    >>> report = mosha.Report("Visits", epsilon=1).add("all", visits.count(), within=9)
    >>> round(split_budget(report.make_parts(find_period("once", None)), report.budget).cost, 2)
    0.33
    """
    if limit.mu is not None:
        raise InvalidParameter("reports.budget_measure", parameter="budget")
    needing = sum(part.needs_delta for part in parts)
    if needing and not limit.delta:
        names = [part.name for part in parts if part.needs_delta]
        raise InvalidParameter("reports.needs_delta", parameter="delta", parts=names, spent="nothing")
    planner = _Planner(parts, limit, limit.delta * DELTA_FOR_PARTS / needing if needing else 0.0)
    wished = [part for part in parts if part.wish.within is not None]
    free = [part for part in parts if part.wish.within is None]
    budgets, cost = planner.meet(wished, 1.0) if wished else ({}, 0.0)
    widening, room = 1.0, limit.amount
    if cost > room:
        widening = _find_widening(lambda factor: planner.meet(wished, factor)[1], room * (0.5 if free else 1.0))
        budgets, _ = planner.meet(wished, widening)
    if free:
        spent = [planner.event(part, budgets[part.name]) for part in wished]
        offers = [offer for m in planner.measures if (offer := planner.share(free, spent, m)) is not None]
        if not offers:
            raise InvalidParameter("reports.nothing_left", parameter="budget", parts=[p.name for p in free])
        cheapest = min(offers, key=lambda offer: _mean_width(free, offer))
        budgets |= cheapest
    return planner.finish(budgets, widening)


def _find_widening(cost: Callable[[float], float], room: float) -> float:
    low, high = 1.0, 2.0
    while cost(high) > room:
        low, high = high, high * 2
        if high > MOST_WIDENING:
            raise InvalidParameter("reports.nothing_fits", parameter="budget", spent="nothing")
    while high > low * 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) > room else (low, middle)
    return high


def _mean_width(parts: Sequence[Part], offer: Mapping[str, Budget]) -> float:
    """The geometric mean of the bars, in logarithms; a part that has no bar counts with its price."""
    found = [part.width(offer[part.name]) for part in parts]
    known = [math.log(positive("width", width)) for width in found if math.isfinite(width) and width > 0]
    return sum(known) / len(known) if known else 0.0
