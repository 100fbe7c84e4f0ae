"""`mosha plan`: the least epsilon for an accuracy, and the error of an epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

from mosha.cli.terminal import Json, console, number, percent, write_json
from mosha.core.language import say
from mosha.core.number import positive, strict_probability

__all__ = ["Mechanism", "Plan", "plan"]


class Mechanism(StrEnum):
    """The kinds of noise that a plan can be made for."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class Plan:
    """One number with noise: what it costs and how far off it is; the keys of the JSON document."""

    mechanism: Mechanism
    sensitivity: float
    epsilon: float
    delta: float
    standard_deviation: float
    within: float
    confidence: float


def plan(
    *,
    mechanism: Annotated[Mechanism, typer.Option(help="The kind of noise.")],
    sensitivity: Annotated[float, typer.Option(help="How far one unit can move the number.")],
    standard_deviation: Annotated[float | None, typer.Option(help="The standard deviation of the noise.")] = None,
    within: Annotated[str | None, typer.Option(help="The noise stays within this; 5% is 5% of --of.")] = None,
    of: Annotated[float | None, typer.Option(help="What a percentage in --within is of (a public guess).")] = None,
    confidence: Annotated[float, typer.Option(help="The probability that it stays within.")] = 0.95,
    epsilon: Annotated[float | None, typer.Option(help="Show the error of this epsilon.")] = None,
    delta: Annotated[float | None, typer.Option(help="Needed by gaussian.")] = None,
    grid: Annotated[float | None, typer.Option(help="The grid: 1 for whole numbers, finer otherwise.")] = None,
    as_json: Json = False,
) -> None:
    """Find the least epsilon for an accuracy, or the error of an epsilon."""
    if (epsilon is None) == (standard_deviation is None and within is None):
        raise typer.BadParameter(say("cli.plan_one"))
    if (mechanism is Mechanism.GAUSSIAN) != (delta is not None):
        raise typer.BadParameter(say("cli.plan_delta"))
    width = None if within is None else _width(within, of)
    strict_probability("confidence", confidence)
    noise = _noise(sensitivity, grid, delta)
    demands = [] if width is None else [noise.epsilon(within=width, confidence=confidence)]
    if standard_deviation is not None:
        demands.append(noise.epsilon(standard_deviation=standard_deviation))
    epsilon = positive("epsilon", max(demands, default=epsilon))
    deviation, reach = noise.deviation(epsilon=epsilon), noise.within(epsilon=epsilon, confidence=confidence)
    found = Plan(mechanism, sensitivity, epsilon, delta or 0.0, deviation, reach, confidence)
    if as_json:
        write_json(asdict(found))
    else:
        _show(found)


class _Noise(NamedTuple):
    """Three questions about one kind of noise."""

    epsilon: Callable[..., float]
    deviation: Callable[..., float]
    within: Callable[..., float]


def _noise(sensitivity: float, grid: float | None, delta: float | None) -> _Noise:
    from mosha.exact.grid import grid_for  # noqa: PLC0415
    from mosha.mechanisms import planning  # noqa: PLC0415  (numerics are loaded when they are needed)

    if grid is None:
        grid = 1.0 if positive("sensitivity", sensitivity).is_integer() else grid_for(sensitivity)
    if delta is None:
        asked: Any = (planning.laplace_epsilon, planning.laplace_deviation, planning.laplace_within)
        return _Noise(*(partial(question, sensitivity, grid=grid) for question in asked))
    asked = (planning.gaussian_epsilon, planning.gaussian_deviation, planning.gaussian_within)
    return _Noise(*(partial(question, sensitivity, delta=delta) for question in asked))


def _width(within: str, of: float | None) -> float:
    share = within.endswith("%")
    if share != (of is not None):
        raise typer.BadParameter(say("cli.plan_percentage"))
    try:
        value = float(within.removesuffix("%"))
    except ValueError:
        raise typer.BadParameter(say("cli.plan_width", given=within)) from None
    return positive("within", value) if of is None else positive("within", value) / 100 * positive("of", of)


def _show(found: Plan) -> None:
    from rich.table import Table  # noqa: PLC0415

    cost = f"epsilon {found.epsilon:.6g}" + (f", delta {found.delta:.3g}" if found.delta else "")
    screen = console()
    title = say("cli.plan_title", mechanism=found.mechanism.value, sensitivity=number(found.sensitivity), cost=cost)
    screen.print(title, style="bold")
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row(say("cli.plan_deviation"), number(found.standard_deviation))
    table.add_row(say("cli.plan_within", confidence=percent(found.confidence)), number(found.within))
    screen.print(table)
    also = f" --delta {found.delta:.3g}" if found.delta else ""
    command = f"mosha explain --epsilon {found.epsilon:.6g}{also}"
    screen.print("  " + say("cli.plan_explain", command=command))
