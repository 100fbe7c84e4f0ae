"""How often 95% bars of graphs and of local surveys hold, on skewed degrees, shares and values.

Bars of a survey hold for the population that its devices were drawn from.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mosha
from benchmarks._rows import Row
from benchmarks.bars import judge, open_account

DRAWS: Final = 1000
VERTICES: Final = 200


def graphs() -> list[Row]:
    """Questions about one graph with heavy-tailed degrees, at edge level."""
    generator = np.random.default_rng()
    weights = 1 + generator.pareto(1.8, VERTICES)
    chances = np.minimum(1, np.outer(weights, weights) * 4 / (VERTICES * weights.mean()))
    linked = np.triu(generator.random((VERTICES, VERTICES)) < chances, 1)
    both = (linked | linked.T).astype(np.int64)
    degrees, pairs = both.sum(axis=1), VERTICES * (VERTICES - 1) / 2
    edges, unit = float(linked.sum()), mosha.Edge()
    graph = mosha.graphs.protect(np.argwhere(linked).tolist(), vertices=VERTICES, unit=unit, account=open_account(unit))
    asked: dict[str, tuple[Any, Any]] = {
        "edges": (graph.edges(), edges),
        "density": (graph.density(), edges / pairs),
        "average degree": (graph.average_degree(), 2 * edges / VERTICES),
        "largest degree": (graph.maximum_degree(), degrees.max()),
        "triangles": (graph.triangles(), np.trace(both @ both @ both) / 6),
        "stars of two": (graph.stars(2), (degrees * (degrees - 1) // 2).sum()),
        "degree sequence": (graph.degree_sequence(), np.sort(degrees)),
        "degrees, cumulative": (
            graph.cumulative_degrees(),
            np.searchsorted(np.sort(degrees), np.arange(VERTICES) + 0.5),
        ),
        "degree histogram": (graph.degree_histogram(up_to=60), np.bincount(np.minimum(degrees, 60), minlength=61)),
    }
    found = []
    for name, (question, truth) in asked.items():
        off, bars = [], []
        for _ in range(DRAWS // 5 if name.startswith("degree") else DRAWS):
            answer = question.release(epsilon=0.5)
            value = np.asarray(answer.value, float)
            expected = np.asarray(truth, float)
            size = min(value.size, expected.size)
            off.append(np.abs(value.reshape(-1)[:size] - expected.reshape(-1)[:size]))
            bars.append(np.broadcast_to(np.ravel(answer.error(0.95)), value.size)[:size])
        wide = name in ("triangles", "stars of two", "largest degree", "degree sequence", "degrees, cumulative")
        found.append(judge(f"{name} of a graph", np.concatenate(off), np.concatenate(bars), at_least=wide))
    return found


def surveys() -> list[Row]:
    """Shares of a Zipf law by every size of survey, and means of skewed values."""
    generator, found, people = np.random.default_rng(), [], 5000
    for size, epsilon in ((2, 1.0), (5, 2.0), (50, 1.0), (50, 4.0)):
        chances = 1 / np.arange(1, size + 1) ** 1.2
        survey = mosha.local.Frequency([f"v{i}" for i in range(size)], epsilon=epsilon)
        off, bars = [], []
        for _ in range(max(40, 2000 // size)):
            told = generator.choice(size, people, p=chances / chances.sum())
            shares = survey.estimate(survey.reports([f"v{i}" for i in told]))
            off.append(np.abs(shares.raw - chances / chances.sum()))
            bars.append(shares.error(0.95))
        what = f"share of {size} values, epsilon {epsilon:g}, {survey.protocol.name}"
        found.append(judge(what, np.concatenate(off), np.concatenate(bars)))
    truth = np.minimum(generator.lognormal(1, 1.2, 10**7), 50).mean()  # to within 0.003
    for epsilon in (0.5, 4.0):
        mean = mosha.local.Mean(between=(0, 50), epsilon=epsilon)
        off, bars = [], []
        for _ in range(DRAWS):
            values = np.minimum(generator.lognormal(1, 1.2, 1000), 50)
            average = mean.estimate(mean.reports(values.tolist()))
            off.append(abs(average.value - truth))
            bars.append(average.error(0.95))
        found.append(judge(f"mean of a survey, epsilon {epsilon:g}", np.array(off), np.array(bars)))
    return found


PIECES: Final = {"graphs": graphs, "surveys": surveys}
