"""Who regulates whom: degrees and feed-forward loops of a directed network in which every single arc is hidden.

    python examples/gallery/pathways.py [--small] [--pictures FOLDER]

The network is drawn: a few regulators with many targets, and cascades (a -> b, b -> c) that are closed (a -> c) more
often than chance would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show, wallet

import mosha
from mosha.graphs import protect_arcs
from mosha.graphs.statistics.directed import DirectedGraph

EPSILONS = (0.25, 0.5, 1.0, 2.0)


def network(genes: int, rng: np.random.Generator) -> np.ndarray:
    """Arcs from regulators to targets, with closed cascades."""
    strength = rng.pareto(1.2, genes) + 0.05
    sources = rng.choice(genes, 4 * genes, p=strength / strength.sum())
    arcs = np.column_stack([sources, rng.integers(0, genes, 4 * genes)])
    first = arcs[rng.integers(0, len(arcs), genes)]
    after = dict(arcs.tolist())
    closed = [(a, after[b]) for a, b in first if b in after]
    return np.vstack([arcs, np.array(closed, np.int64).reshape(-1, 2)])


def guess_arc(arcs: np.ndarray, genes: int, epsilon: float | None, runs: int) -> float:
    """How often an attacker who knows all other arcs tells whether the arc of the most loops is there."""
    exact = DirectedGraph.of(arcs, vertices=genes)
    matrix = np.zeros((genes, genes), np.int64)
    matrix[exact.arcs[:, 0], exact.arcs[:, 1]] = 1
    inside = (matrix @ matrix.T + matrix @ matrix + matrix.T @ matrix) * matrix
    source, target = np.unravel_index(inside.argmax(), inside.shape)
    without = exact.arcs[~((exact.arcs[:, 0] == source) & (exact.arcs[:, 1] == target))]
    graphs = {True: exact, False: DirectedGraph.of(without, vertices=genes)}
    counts = {there: graph.loops[0] for there, graph in graphs.items()}
    if epsilon is None:
        return float(counts[True] != counts[False])
    question = protect_arcs([], vertices=genes).feed_forward_loops().measurement(epsilon=epsilon)
    right = 0
    for turn in range(runs):
        there = turn % 2 == 0
        answer, _ = question.step(None, graphs[there], None, mosha.noise.secure())
        closer = abs(answer["value"] - counts[True]) <= abs(answer["value"] - counts[False])
        right += closer == there
    return right / runs


def private(arcs: np.ndarray, genes: int, epsilon: float) -> Any:
    return protect_arcs(arcs, vertices=genes, account=wallet(mosha.Edge(), epsilon))


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    genes, draws, guesses = (300, 3, 60) if small else (1000, 10, 200)
    arcs = network(genes, rng)
    exact = DirectedGraph.of(arcs, vertices=genes)
    truth = exact.loops[0]
    shuffled = np.column_stack([exact.arcs[:, 0], rng.permutation(exact.arcs[:, 1])])
    chance = DirectedGraph.of(shuffled, vertices=genes).loops[0]
    found: dict[str, Any] = {"genes": genes, "arcs": exact.arc_count, "loops": truth, "loops by chance": chance}
    for epsilon in EPSILONS:
        asked = (private(arcs, genes, epsilon).feed_forward_loops() for _ in range(draws))
        released = [question.release(epsilon=epsilon) for question in asked]
        errors = [abs(answer.value - truth) / truth for answer in released]
        found[f"error of loops, epsilon {epsilon:g}"] = float(np.mean(errors))
    answer = private(arcs, genes, 1).out_degrees(up_to=40).release(epsilon=1)
    found["out degrees"] = (np.bincount(np.minimum(exact.degrees("out"), 40), minlength=41), np.asarray(answer.value))
    found["bar of out degrees"] = float(np.max(answer.error(0.95)))
    found["right guesses, in the open"] = guess_arc(arcs, genes, None, guesses)
    found["right guesses, epsilon 1"] = guess_arc(arcs, genes, 1.0, guesses)
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    truth, noisy = found["out degrees"]
    left.bar(np.arange(41), truth, color=sheet.look["grid"], label=sheet.word("exact", "真实"))
    label = sheet.word("epsilon 1", "ε=1")
    left.errorbar(np.arange(41), noisy, found["bar of out degrees"], fmt=".", color=sheet.colors[0], label=label)
    left.set_yscale("symlog", linthresh=10)
    title, across = sheet.word("Genes by number of targets", "按调控靶点数统计的基因"), sheet.word("targets", "靶点数")
    sheet.title(left, title, across, sheet.word("genes", "基因数"))
    sheet.legend(left)
    right.semilogy(EPSILONS, [found[f"error of loops, epsilon {e:g}"] for e in EPSILONS], "o-", color=sheet.colors[0])
    sheet.mark(right, EPSILONS)
    lift = abs(found["loops"] - found["loops by chance"]) / found["loops"]
    right.axhline(lift, color=sheet.colors[1], ls="--")
    text = sheet.word("difference from chance", "与随机网络的差别")
    right.text(EPSILONS[-1], lift * 1.15, text, color=sheet.colors[1], fontsize=8, ha="right")
    right.set_ylim(1e-2, 2)
    title = sheet.word("Relative error of feed-forward loops", "前馈环计数的相对误差")
    sheet.title(right, title, sheet.word("epsilon", "ε"))


if __name__ == "__main__":
    show("pathways", run, draw)
