"""Lessons about three uses: many questions of which few matter, the seven steps of a private training, graphs."""

from __future__ import annotations

import math
from typing import Any

from mosha.core.budget import Budget
from mosha.core.errors import MoshaError
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.unit import Edge, Node
from mosha.graphs.statistics.statistic import DegreeHistogram, EdgeCount, MaximumDegree, SortedDegrees
from mosha.learning.plan import DPSGD
from mosha.streams.alarms import alarm_noise

__all__ = ["compare_graph_units", "follow_training", "watch_thresholds"]


def watch_thresholds(*, epsilon: float, most: int, alarms: int = 5) -> dict[str, Any]:
    """The sparse vector: many counts are compared with a threshold, and only those above it are paid for.

    All of up to `most` comparisons, of which at most `alarms` may come out above, cost `epsilon` together.

    Units:
        People. `bar` is how far a count must lie from the threshold to be judged rightly 95 times out of 100; beside
        it the bar of Laplace noise where every one of the questions is answered from the same epsilon.

    >>> found = watch_thresholds(epsilon=1.0, most=1000)
    >>> round(found["sparse"][-1][1], 1), round(found["each"][-1][1])
    (20.7, 2996)
    """
    epsilon, most = positive("epsilon", epsilon), positive_integer("most", most)
    noise = alarm_noise(Budget(epsilon=epsilon), alarms=alarms, moved=1, monotone=True)
    counts = sorted({max(1, round(most ** (place / 12))) for place in range(13)})
    bar = noise.width(0.95)
    return {
        "alarms": alarms,
        "counts": counts,
        "sparse": [(count, bar) for count in counts],
        "each": [(count, math.log(20) * count / epsilon) for count in counts],
    }


def follow_training(
    *, epsilon: float, delta: float, population: int, batch: int = 256, epochs: int = 10, clip: float = 1.0
) -> dict[str, Any]:
    """The seven steps of a private training (DP-SGD) and the number that each of them has.

    Args:
        epsilon: what the whole training may cost, at
        delta: this delta.
        population: how many people's data are learned from.
        batch: how many people are drawn for an update, on average.
        epochs: how often everybody is drawn, on average.
        clip: the most that one person moves a sum of gradients.

    Each of them gives one example; the whole training costs `epsilon` at `delta`.

    Units:
        `rate` is a probability, `noise` in units of `clip`, `per_person` the noise on one coordinate of the mean
        gradient; `spent` has epsilon after so many updates.

    >>> found = follow_training(epsilon=1.0, delta=1e-6, population=100_000)
    >>> found["steps"], round(found["noise"], 2), found["spent"][-1][1] <= 1.0
    (3906, 0.97, True)
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    people, batch, epochs = (
        positive_integer(name, value)
        for name, value in (("population", population), ("batch", batch), ("epochs", epochs))
    )
    clip, rate = positive("clip", clip), min(1.0, batch / people)
    steps = max(epochs, epochs * people // batch)
    plan = DPSGD(steps=steps, rate=rate, clip=clip).calibrate(epsilon=epsilon, delta=delta)
    noise = plan.noise_multiplier or 0.0
    places = sorted({max(1, round(steps ** (place / 8))) for place in range(9)})
    spent = [
        (place, DPSGD(steps=place, rate=rate, clip=clip, noise_multiplier=noise).epsilon(delta=delta))
        for place in places
    ]
    drawn = people * rate
    return {
        "people": people,
        "steps": steps,
        "epochs": epochs,
        "rate": rate,
        "batch": drawn,
        "clip": clip,
        "noise": noise,
        "per_person": noise * clip / drawn,
        "spent": spent,
    }


def compare_graph_units(*, epsilon: float, max_degree: int) -> list[dict[str, Any]]:
    """How far one edge, and one person with all edges, can move statistics of a graph, and the noise that hides it.

    `epsilon` is what the statistic costs, and nobody has more than `max_degree` edges.

    Units:
        `edge` and `node` are l1 sensitivities; the bars hold 95 times out of 100 for each number of the statistic.

    >>> [(row["name"], row["edge"], row["node"]) for row in compare_graph_units(epsilon=1.0, max_degree=20)][:1]
    [('edges', 1, 20)]
    """
    epsilon, most = positive("epsilon", epsilon), positive_integer("max_degree", max_degree)
    statistics: dict[str, EdgeCount | MaximumDegree | DegreeHistogram | SortedDegrees] = {
        "edges": EdgeCount(),
        "largest_degree": MaximumDegree(),
        "degrees": DegreeHistogram(most + 1),
        "sorted_degrees": SortedDegrees(1000),
    }
    rows: list[dict[str, Any]] = []
    for name, statistic in statistics.items():
        edge = statistic.sensitivity(Edge()).l1
        try:
            node = statistic.sensitivity(Node(max_degree=most)).l1
        except MoshaError:  # not every statistic has a bound when a whole person goes
            node = None
        bars = [None if size is None else math.log(20) * size / epsilon for size in (edge, node)]
        rows.append({"name": name, "edge": edge, "node": node, "edge_bar": bars[0], "node_bar": bars[1]})
    return rows
