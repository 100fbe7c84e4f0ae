"""Components at node level: vertices minus a forest of bounded degree, the bound declared or chosen privately."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive
from mosha.core.unit import Node
from mosha.graphs.statistics.choice_of_bound import CHOICE_SHARE, choose_bound
from mosha.graphs.statistics.forests import bounded_forest
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.mechanisms.picture import draw_bars
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["FOREST_BOUNDS", "node_components"]

FOREST_BOUNDS = tuple(1 << k for k in range(3, 13))
"""The bounds that are tried where none is declared: most graphs have spanning forests of degree 8 or so."""


def node_components(unit: Node, epsilon: float) -> Measurement:
    """How many connected components there are, when a vertex with all its edges comes or goes.

    Guarantee:
        epsilon-differential privacy: see `forests.md`. A declared maximum degree bounds the degrees of forests and
        makes no promise about the graph; without one, part of epsilon chooses the bound.

    Units:
        Components. The error bar is that of the noise; a bound below what spanning forests need counts too many.

    >>> from mosha import noise
    >>> from mosha.graphs.data.graph import Graph
    >>> pairs = Graph.of([(2 * i, 2 * i + 1) for i in range(500)], vertices=1000)
    >>> answer, _ = node_components(Node(max_degree=4), 2.0).step(None, pairs, None, noise.SeededRandom(1))
    >>> abs(answer["value"] - 500) < 60
    True
    """
    epsilon = positive("epsilon", epsilon)
    bounds = FOREST_BOUNDS if unit.max_degree is None else (unit.max_degree,)
    choice = epsilon * CHOICE_SHARE if len(bounds) > 1 else 0.0
    rest = (epsilon - choice) * (1 - 2.0**-40) if choice else epsilon
    multiplier = laplace_multiplier(rest)
    if Fraction(multiplier) * (bounds[-1] + 2) > LARGEST_SCALE:
        raise InvalidParameter("graphs.epsilon_too_small", parameter="epsilon")

    def step(state: Any, data: Any, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        steps = [bound + 2 for bound in bounds]
        forests = [bounded_forest(data, bound) for bound in bounds]
        i = choose_bound(forests, steps, epsilon=choice, noise=rest, rng=rng) if choice else 0
        noise = int(unbounded_laplace(Fraction(multiplier) * max(bounds[i], 2), 1, rng=rng)[0])
        return {"value": max(data.vertices - forests[i] + noise, 0), "max_degree": bounds[i]}, state

    def error(confidence: float, answer: Any) -> float:
        bound = bounds[-1] if answer is None else answer["max_degree"]
        return float(laplace_width(multiplier * max(bound, 2), confidence))

    spent = DiscreteLaplace(multiplier)
    return Measurement(
        unit=unit,
        event=Pure(choice) + spent if choice else spent,
        step=step,
        error=error,
        draw=lambda answer, bar: draw_bars(answer["value"], bar, title="components, node level", labels=None),
        name="node_components",
        question=f"node_components:{unit.max_degree}",
    )
