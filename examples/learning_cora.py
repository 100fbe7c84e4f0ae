"""Which field is a paper of? A graph network that hides every citation, or every paper with all its citations (Cora).

    python examples/learning_cora.py [folder with cora.edges.gz and cora_features.npz]

Words and fields of papers are public, citations are private. A linear model of the words gives every paper a guess;
noisy sums over the papers it cites and is cited by are bought; a second linear model reads guess and sums.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mosha import Edge, Ledger, Node
from mosha.core.unit import Unit
from mosha.learning.graph_aggregation import Aggregation, unit_rows

FIELDS = 7
DELTA = 1e-5
EDGE, PAPER = Edge(), Node(max_degree=1)
NONE = np.zeros((0, 2), np.int64)


def folder() -> Path:
    return Path(os.environ.get("MOSHA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "graphs"


def read(home: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Edges, words (papers by 1,433), fields, and which papers are tested on."""
    with gzip.open(home / "cora.edges.gz", "rt") as file:
        edges = np.array([line.split() for line in file if not line.startswith("#")], np.int64)
    stored = np.load(home / "cora_features.npz")
    words = np.zeros(tuple(stored["shape"]))
    words[np.repeat(np.arange(len(words)), np.diff(stored["indptr"])), stored["indices"]] = 1.0
    tested = np.zeros(len(words), bool)
    tested[stored["test_index"]] = True
    return edges, words, stored["labels"].astype(int), tested


def trained(rows: np.ndarray, labels: np.ndarray, *, penalty: float, steps: int = 120) -> np.ndarray:
    """Weights of an ordinary softmax regression, by accelerated gradient descent; no privacy is needed for it."""
    steep = rows.sum(axis=0)
    for _ in range(20):
        steep = rows.T @ (rows @ (steep / np.linalg.norm(steep)))
    rate = 1.8 / (np.linalg.norm(steep) / len(rows) + penalty)
    weights = ahead = np.zeros((rows.shape[1], FIELDS))
    goals = np.eye(FIELDS)[labels]
    for turn in range(steps):
        gradient = rows.T @ (softmax(rows @ ahead) - goals) / len(rows) + penalty * ahead
        following = ahead - rate * gradient
        ahead = following + turn / (turn + 3) * (following - weights)
        weights = following
    return weights


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def guesses(words: np.ndarray, labels: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Probabilities of the fields by words alone, of each paper by models that were not trained on it."""
    rows, found = unit_rows(words), np.zeros((len(words), FIELDS))
    part = np.where(tested, 5, np.arange(len(words)) % 5)
    for k in range(6):
        others = ~tested & (part != k)
        found[part == k] = softmax(rows[part == k] @ trained(rows[others], labels[others], penalty=1e-3))
    return found


def main(home: Path) -> None:
    edges, words, labels, tested = read(home)
    own = guesses(words, labels, tested)
    told = np.where(tested[:, None], own, np.eye(FIELDS)[labels])  # papers of a known field say it
    print(f"words alone: {accuracy(NONE, own, told, labels, tested, None):.1%}")
    for unit, epsilons in ((EDGE, (1.0, 2.0, 4.0, 8.0, None)), (PAPER, (1.0, 2.0, 4.0, 8.0, None))):
        print(unit.describe())
        for epsilon in epsilons:
            scores = [accuracy(edges, own, told, labels, tested, epsilon, unit) for _ in range(5)]
            name = "not private" if epsilon is None else f"epsilon {epsilon:g}"
            print(f"words and citations, {name}: {np.mean(scores):.1%} ± {np.std(scores):.1%}")


def accuracy(edges: Any, own: Any, told: Any, labels: Any, tested: Any, epsilon: Any, unit: Unit = EDGE) -> float:
    """The share of tested papers whose field is found; without an epsilon the citations as `unit` bounds them."""
    hops = 1 if unit == PAPER or (epsilon is not None and epsilon <= 4) else 2
    plan = Aggregation(vertices=len(own), width=FIELDS, hops=hops)
    sums, vectors = [], unit_rows(told)
    if epsilon is None:
        for _ in range(hops):
            sums.append(plan.evaluate(edges, vectors, unit=unit))
            vectors = unit_rows(sums[-1])
    else:
        account = Ledger.memory().account("citations", unit=unit, epsilon=epsilon, delta=DELTA)
        with account.open(plan.measurement(unit=unit, epsilon=epsilon, delta=DELTA)) as run:
            for _ in range(hops):
                sums.append(run.step(edges, ask=vectors).value)
                vectors = unit_rows(sums[-1])
    seen = np.hstack([np.log(own + 1e-3), *sums, np.ones((len(own), 1))])
    weights = trained(seen[~tested], labels[~tested], penalty=1e-2)
    return float(np.mean((seen @ weights).argmax(1)[tested] == labels[tested]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else folder())
