"""Triangles at node level: a Lipschitz extension whose cap is chosen privately."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive
from mosha.core.unit import Node
from mosha.graphs.statistics.choice_of_bound import CHOICE_SHARE, choose_bound, powers_of_two
from mosha.graphs.statistics.lipschitz import capped_triangles_at
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.mechanisms.picture import draw_bars
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["LARGEST_CAP", "node_triangles"]

LARGEST_CAP = 1 << 16
"""Of the caps that are tried where no bound on degrees is declared."""


def node_triangles(unit: Node, epsilon: float) -> Measurement:
    """How many triangles there are, when a vertex with all its edges comes or goes.

    No vertex counts for more than a cap of them, by a linear programme (`capped_triangles`). The cap is a power of two,
    at most C(D, 2) for a declared maximum degree D, which makes no promise: larger degrees only lose triangles.

    Guarantee:
        epsilon-differential privacy. `capped_triangles` moves by -1 to cap + 1 when a vertex is added, so differences
        of caps i, j move by at most max(cap_i, cap_j) + 2, all that `choose_bound` needs of steps = cap + 2;
        discrete Laplace noise of scale (cap + 2) / rest, without an end, is rest-private. Both compose.

    Units:
        Triangles. An answer has no error bar: the cap that was chosen may lose triangles, even where D loses none, and
        how many is private. Without an answer `error` is that of the noise alone, at the largest cap or an assumed one.
        The programme is solved for every cap: seconds for 5e4 triangles, and more than linear beyond.

    >>> from mosha import noise
    >>> from mosha.graphs.data.graph import Graph
    >>> clique = Graph.of([(i, j) for i in range(30) for j in range(i)], vertices=30)
    >>> answer, _ = node_triangles(Node(max_degree=30), 4.0).step(None, clique, None, noise.SeededRandom(1))
    >>> 0 <= answer["value"] < 20000
    True
    """
    epsilon = positive("epsilon", epsilon)
    most = LARGEST_CAP if unit.max_degree is None else math.comb(unit.max_degree, 2)
    if most < 1:
        raise InvalidParameter("graphs.no_triangles", parameter="max_degree")
    caps = powers_of_two(most)
    choice = epsilon * CHOICE_SHARE
    rest = (epsilon - choice) * (1 - 2.0**-40)
    multiplier = laplace_multiplier(rest)
    if Fraction(multiplier) * (caps[-1] + 2) > LARGEST_SCALE:
        raise InvalidParameter("graphs.epsilon_too_small", parameter="epsilon")

    def step(state: object, data: Any, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        values = capped_triangles_at(data, caps)
        i = choose_bound(values, [cap + 2 for cap in caps], epsilon=choice, noise=rest, rng=rng)
        noise = int(unbounded_laplace(Fraction(multiplier) * (caps[i] + 2), 1, rng=rng)[0])
        return {"value": max(values[i] + noise, 0), "cap": caps[i]}, state

    def error(confidence: float, answer: Any) -> float:
        if answer is not None and "value" in answer:
            raise InvalidParameter("graphs.triangles_without_bar")
        cap = caps[-1] if answer is None else answer["cap"]
        return float(laplace_width(multiplier * (cap + 2), confidence))

    return Measurement(
        unit=unit,
        event=Pure(choice) + DiscreteLaplace(multiplier),
        step=step,
        error=error,
        draw=lambda answer, bar: draw_bars(answer["value"], bar, title="triangles, node level", labels=None),
        name="node_triangles",
        question=f"node_triangles:{most}",
    )
