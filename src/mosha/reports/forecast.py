"""What a report will cost and how accurate it will be, as one table, before anything is paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mosha import accounting
from mosha.accounting.measures import concentrated, pure
from mosha.core.budget import Budget
from mosha.core.event import Event
from mosha.core.language import say
from mosha.core.showing import MISSING, Card, Shown, write_number
from mosha.reports.period import Period
from mosha.reports.split import PlannedPart, Split

__all__ = ["Forecast"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Forecast(Shown):
    """The plan of a report (`title`) for a `period`: a line for each question, and what all cost together (`split`).

    >>> import mosha
    >>> visits = mosha.protect({"ward": ["A", "B", "A"]}, unit=mosha.Row())
    >>> mosha.Report("Visits", epsilon=1).add("all", visits.count()).forecast().title
    'Visits'
    """

    title: str
    period: Period
    split: Split

    def __repr__(self) -> str:
        return f"Forecast({self.title!r}, {self.split.limit.measure} {self.cost:.4g} of {self.split.limit.amount:g})"

    @property
    def cost(self) -> float:
        """What all questions cost together, in the measure of the budget."""
        return self.split.cost

    @property
    def meets_wishes(self) -> bool:
        return self.split.meets_wishes

    def make_card(self) -> Card:
        limit = self.split.limit
        heads = [say(f"reports.head_{name}") for name in ("question", "wish", "expected", "alone")]
        lines = [[each.part.heading, *_describe_part(each, limit)] for each in self.split.parts]
        facts = [
            (say("reports.fact_period"), self.period.label),
            (say("reports.fact_budget"), str(limit)),
        ]
        share = min(self.cost / limit.amount, 1.0)
        gauge = (say("reports.fact_together"), share, f"{limit.measure} {self.cost:.4g} / {limit.amount:g}")
        notes = [say("reports.forecast_note")]
        if not self.meets_wishes:
            notes.insert(0, say("reports.forecast_widened", factor=f"{self.split.widening:.2f}"))
        return Card(title=self.title, facts=facts, gauges=[gauge], heads=heads, lines=lines, numbers=1, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs."""
        parts = [
            {
                "name": each.part.name, "within": each.part.wish.within, "confidence": each.part.wish.confidence,
                "expected": each.width, "meets_wish": each.meets_wish, "budget": each.budget.to_dict(),
            }
            for each in self.split.parts
        ]  # fmt: skip
        whole = {"title": self.title, "period": self.period.label, "budget": self.split.limit.to_dict()}
        return whole | {"cost": self.cost, "widening": self.split.widening, "parts": parts}


def _describe_part(each: PlannedPart, limit: Budget) -> list[str]:
    wish = each.part.wish
    wished = MISSING if wish.within is None else f"± {wish.within:g}"
    expected = f"± {write_number(each.width, each.width)}" if each.width < float("inf") else MISSING
    return [wished, expected, f"{price_alone(each.event, limit):.3g}"]


def price_alone(event: Event, limit: Budget) -> float:
    """What one part would cost by itself, in the measure of the budget."""
    if limit.rho is not None:
        return concentrated.rho(event)[0]
    plain, delta = pure.approx(event)
    if not limit.delta:
        return plain
    tight = float(accounting.epsilon(event, limit.delta))
    return min(plain, tight) if delta <= limit.delta else tight
