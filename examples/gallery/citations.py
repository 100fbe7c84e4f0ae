"""Which field is a paper of? Learning on a graph whose citations are hidden, one by one or all those of a
paper together, and attackers who want one citation or one paper.

    python examples/gallery/citations.py [--small] [--pictures FOLDER]

Reads cora.edges.gz and cora_features.npz from $MOSHA_DATA/graphs (the model is in `examples/learning_cora.py`);
`--small` draws three fields that cite among themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from canvas import DATA, Sheet, show

import mosha
from mosha.learning.graph_aggregation import Aggregation, unit_rows

sys.path.append(str(Path(__file__).resolve().parents[1]))
import learning_cora

EPSILONS = (1.0, 2.0, 4.0, 8.0)


def draw_papers(count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Citations, words, fields and which papers are tested, for a small run."""
    fields = rng.integers(0, learning_cora.FIELDS, count)
    words = (rng.random((count, 40)) < 0.1 + 0.12 * (np.arange(40) % learning_cora.FIELDS == fields[:, None])).astype(
        float
    )
    pairs = rng.integers(0, count, (12 * count, 2))
    same = fields[pairs[:, 0]] == fields[pairs[:, 1]]
    kept = pairs[(same | (rng.random(len(pairs)) < 0.05)) & (pairs[:, 0] != pairs[:, 1])]
    tested = np.zeros(count, bool)
    tested[: count // 3] = True
    return kept, words, fields, tested


def guess_citation(edges: np.ndarray, vectors: np.ndarray, epsilon: float | None, runs: int) -> float:
    """How often an attacker who knows all other citations tells from the sums whether the first one is there."""
    without = np.array([pair for pair in edges.tolist() if set(pair) != set(edges[0].tolist())])
    return guess(edges, without, vectors, mosha.Edge(), epsilon, runs)


def guess_paper(edges: np.ndarray, vectors: np.ndarray, unit: Any, epsilon: float, runs: int) -> float:
    """How often an attacker who knows all else tells whether the paper with the most citations is there."""
    most = np.bincount(edges.ravel()).argmax()
    return guess(edges, edges[(edges != most).all(axis=1)], vectors, unit, epsilon, runs)


def guess(
    edges: np.ndarray, without: np.ndarray, vectors: np.ndarray, unit: Any, epsilon: float | None, runs: int
) -> float:
    plan = Aggregation(vertices=len(vectors), width=vectors.shape[1], hops=1)
    sums = {there: plan.evaluate(edges if there else without, vectors, unit=unit) for there in (True, False)}
    if epsilon is None:
        return float(not np.array_equal(sums[True], sums[False]))
    measured, right = plan.measurement(unit=unit, epsilon=epsilon, delta=learning_cora.DELTA), 0
    apart = sums[True] - sums[False]
    for turn in range(runs):
        there = turn % 2 == 0
        seen, _ = measured.step(measured.init(), edges if there else without, vectors, mosha.noise.secure())
        right += (float(((np.asarray(seen) - sums[False]) * apart).sum()) > float((apart**2).sum()) / 2) == there
    return right / runs


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    read = draw_papers(200, rng) if small else learning_cora.read(DATA / "graphs")
    edges, words, labels, tested = read
    own = learning_cora.guesses(words, labels, tested)
    known = np.where(tested[:, None], own, np.eye(learning_cora.FIELDS)[labels])
    found: dict[str, Any] = {"papers": len(words), "citations": len(edges)}
    found["by words alone"] = learning_cora.accuracy(learning_cora.NONE, own, known, labels, tested, None)
    for name, unit in (("words and citations", learning_cora.EDGE), ("whole papers hidden", learning_cora.PAPER)):
        for epsilon in (EPSILONS[:1] if small else EPSILONS) + (None,):
            runs = 1 if small or epsilon is None else 3
            scores = [learning_cora.accuracy(edges, own, known, labels, tested, epsilon, unit) for _ in range(runs)]
            setting = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
            found[f"{name}, {setting}"] = float(np.mean(scores))
    vectors, runs = unit_rows(known), 20 if small else 200
    for epsilon in (None, 1.0, 8.0):
        name = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
        found[f"citation guessed, {name}"] = guess_citation(edges, vectors, epsilon, runs)
    found["paper guessed, single citations hidden"] = guess_paper(edges, vectors, learning_cora.EDGE, 8.0, runs // 4)
    found["paper guessed, whole papers hidden"] = guess_paper(edges, vectors, learning_cora.PAPER, 8.0, runs // 4)
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    shown = [e for e in EPSILONS if f"words and citations, epsilon {e:g}" in found]
    lines = {
        "words and citations": sheet.word("single citations hidden", "隐藏单条引用"),
        "whole papers hidden": sheet.word("whole papers hidden", "隐藏整篇论文"),
    }
    for (name, label), color in zip(lines.items(), sheet.colors[:3:2], strict=True):
        left.plot(shown, [found[f"{name}, epsilon {e:g}"] for e in shown], "o-", color=color, label=label)
    sheet.mark(left, shown)
    names = {
        "words and citations, in the open": ("not private", "不加保护", "--"),
        "by words alone": ("words alone", "只看词", ":"),
    }
    for name, (english, chinese, dashes) in names.items():
        left.axhline(found[name], color=sheet.look["pale"], ls=dashes, label=sheet.word(english, chinese))
    sheet.legend(left, loc="center left")
    sheet.title(left, sheet.word("Papers whose field is found", "领域判断正确的论文"), sheet.word("epsilon", "ε"))
    bars = {
        "citation guessed, in the open": ("citation,\nnot private", "引用\n不加保护"),
        "citation guessed, epsilon 8": ("citation,\nepsilon 8", "引用\nε=8"),
        "citation guessed, epsilon 1": ("citation,\nepsilon 1", "引用\nε=1"),
        "paper guessed, single citations hidden": ("paper, single\ncitations\nhidden", "论文\n只隐藏单条引用"),
        "paper guessed, whole papers hidden": ("paper, whole\npapers\nhidden", "论文\n隐藏整篇"),
    }
    colors = [sheet.colors[number] for number in (1, 0, 0, 1, 2)]
    right.bar(range(5), [found[name] for name in bars], color=colors)
    right.axhline(0.5, color=sheet.look["pale"], ls="--")
    right.set_xticks(range(5), [sheet.word(*words) for words in bars.values()], fontsize=7)
    right.set_ylim(0, 1.02)
    sheet.title(right, sheet.word("Guessed right by an attacker", "攻击者猜对的比例"))


if __name__ == "__main__":
    show("citations", run, draw)
