"""Statistics at node level under a bound on degrees: public, or chosen privately first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Node
from mosha.graphs.data.graph import AnyGraph, Graph
from mosha.graphs.statistics.choice_of_bound import (
    BALANCE_SHARE,
    CHOICE_SHARE,
    balanced_bound,
    choose_bound,
    powers_of_two,
)
from mosha.mechanisms.laplace import laplace_multiplier

__all__ = ["LARGEST_BOUND", "bound_degrees", "expect_on_public", "projection_bias"]

LARGEST_BOUND = 1 << 12
"""Of the bounds that are tried where none is declared."""


def _edges(graph: AnyGraph, bound: int) -> int:
    return int(graph.projected_degrees(bound).sum()) // 2


def bound_degrees(
    unit: Node, epsilon: float, build: Callable[[Node, float], Measurement], *, balanced: bool = False
) -> Measurement:
    """A statistic with a declared bound on degrees, or with one that a part of epsilon chooses.

    Guarantee:
        With a declared bound, that of `build`. Else a choice of a bound (`choose_bound` or `balanced_bound`: adding a
        vertex raises the edges of the graph bounded by D by 0 to D, `projection.md`), then `build` under the chosen one
        with the rest. All its measurements have noise of one multiplier, and cost what `DiscreteLaplace` with it does.

    Units:
        As those of `build`; the answer also says which bound was chosen. `balanced` says that counts of vertices are
        asked and not of edges, so that a smaller bound serves.
    """
    if unit.max_degree is not None:
        return _add_bound(build(unit, epsilon), unit.max_degree)
    share, choose = (BALANCE_SHARE, balanced_bound) if balanced else (CHOICE_SHARE, choose_bound)
    choice, rest = epsilon * share, epsilon - epsilon * share
    rest *= 1 - 2.0**-40  # the two sum to no more than epsilon in exact arithmetic
    bounds = powers_of_two(LARGEST_BOUND)
    built = {bound: build(replace(unit, max_degree=bound), rest) for bound in bounds}

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        values = [_edges(data, bound) for bound in bounds]
        chosen = bounds[choose(values, bounds, epsilon=choice, noise=rest, rng=rng)]
        value, _ = built[chosen].step(None, data, ask, rng)
        return {"value": value, "max_degree": chosen}, state

    def error(confidence: float, answer: Any) -> Any:
        chosen = built[bounds[-1] if answer is None else answer["max_degree"]]
        return _error_with_bias(chosen, confidence, answer)

    first = built[bounds[0]]
    return Measurement(
        unit=unit,
        event=Pure(choice) + DiscreteLaplace(laplace_multiplier(rest)),
        step=step,
        error=error,
        draw=lambda answer, bar: _picture(built[answer["max_degree"]], answer, bar),
        name=f"bounded({first.name})",
        question=first.question,
    )


def _add_bound(measurement: Measurement, bound: int) -> Measurement:
    """The same measurement; its answer says under which bound it was made."""

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        value, state = measurement.step(state, data, ask, rng)
        return {"value": value, "max_degree": bound}, state

    def error(confidence: float, answer: object) -> Any:
        return _error_with_bias(measurement, confidence, answer)

    return replace(measurement, step=step, error=error, draw=lambda answer, bar: _picture(measurement, answer, bar))


def _error_with_bias(measurement: Measurement, confidence: float, answer: Any) -> Any:
    """The noise, and what a public graph would lose by its bound where a forecast was given one."""
    assert measurement.error is not None
    inner = None if answer is None else answer.get("value")
    return measurement.error(confidence, inner) + (0 if answer is None else answer.get("bias", 0))


def _picture(measurement: Measurement, answer: Any, bar: object) -> Any:
    assert measurement.draw is not None
    return measurement.draw(answer["value"], bar)


@explain_wrong_calls
def projection_bias(graph: Graph, bounds: Any) -> dict[int, float]:
    """The part of the edges of a *public* `graph` that is lost when degrees are bounded, for each of `bounds`.

    >>> star = Graph.of([(0, 1), (0, 2), (0, 3), (0, 4)], vertices=5)
    >>> projection_bias(star, [1, 2, 4])
    {1: 0.75, 2: 0.5, 4: 0.0}
    """
    return {int(bound): 1 - _edges(graph, int(bound)) / max(graph.edge_count, 1) for bound in bounds}


def expect_on_public(unit: Node, graph: Graph, noise: float) -> dict[str, Any]:
    """What a release about edges would be like on a public graph: the bound that fits best and what it loses."""
    bounds = (unit.max_degree,) if unit.max_degree is not None else powers_of_two(LARGEST_BOUND)
    lost = {bound: graph.edge_count - _edges(graph, bound) for bound in bounds}
    best = min(bounds, key=lambda bound: lost[bound] + 10 * bound / noise)
    return {"max_degree": best, "bias": lost[best]}
