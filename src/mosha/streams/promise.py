"""What a stream promises, in a sentence, and what the promise to the other unit would cost in error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mosha.core.errors import MoshaError
from mosha.core.unit import Person, Reading, Unit, Window
from mosha.streams.plan import Plan

__all__ = ["Planned", "describe"]


class Planned(Protocol):
    """A stream, as far as a comparison of units needs it."""

    @property
    def plan(self) -> Plan: ...


def describe(
    plan: Plan, unit: Unit, *, options: Mapping[str, object], replan: Callable[..., Planned] | None = None
) -> str:
    """The promise, the mechanism, the error, and the other unit.

    Args:
        plan: what is described.
        unit: whose presence it hides.
        options: what the planner was asked for, but for the unit.
        replan: plans the same for another unit; without it nothing is compared.

    >>> from mosha.streams.planner import best
    >>> from mosha import Reading
    >>> print(best(unit=Reading(), horizon=96, epsilon=1).describe())
    Nobody can tell whether any one reading was made, such as whether Zhang was on the third floor at 10:05. All
    of a person's readings together are not hidden. Published: a running value for 96 steps, by ...; standard
    deviation at most ..., ... on average. Hiding whole persons who may come at every step ... would give ....
    """
    told = [_promise(unit, plan.presence.most, plan.presence.apart)]
    told.append(
        f"Published: a {plan.readout.word} value for {plan.horizon} steps, by {plan.name}; standard deviation at most "
        f"{plan.largest_deviation:.4g}, {plan.root_mean_square:.4g} on average."
    )
    other = "" if replan is None else _describe_other_unit(plan, unit, dict(options), replan)
    return " ".join([*told, other] if other else told)


def _promise(unit: Unit, most: int, apart: int) -> str:
    if isinstance(unit, Reading):
        return (
            "Nobody can tell whether any one reading was made, such as whether Zhang was on the third floor at 10:05. "
            "All of a person's readings together are not hidden."
        )
    if isinstance(unit, Window):
        return (
            f"Nobody can tell what any one person did within any {unit.steps} consecutive steps, such as where Zhang "
            "was this morning. Longer habits are not hidden."
        )
    limit = f"at most {most} of them count" + (f", {apart} or more steps apart" if apart > 1 else ", one a step")
    return f"Nobody can tell whether any one person, such as Zhang, was here at all: of each person's readings {limit}."


def _describe_other_unit(plan: Plan, unit: Unit, options: dict[str, object], replan: Callable[..., Planned]) -> str:
    neighbors = unit.neighbors
    column = unit.column if isinstance(unit, Person | Window) else "person"
    if isinstance(unit, Reading):
        other: Unit = Person(column, neighbors=neighbors)
        words = "Hiding whole persons who may come at every step (unit=Person(...))"
    else:
        other, words = Reading(neighbors=neighbors), "Hiding single readings only (unit=Reading())"
    if isinstance(other, Reading):
        options["apart"] = 1
    try:
        error = replan(unit=other, **options).plan.root_mean_square
    except MoshaError:
        return ""
    ratio = error / plan.root_mean_square
    return f"{words} would give {error:.4g} on average, {ratio:.3g} times as much."
