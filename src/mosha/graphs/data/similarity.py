"""How like the original a synthetic graph is: twelve of the metrics of the PGB benchmark (Liu et al. 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.names.calls import explain_wrong_calls
from mosha.graphs.data.graph import Graph, kernels
from mosha.graphs.data.louvain import find_communities, modularity

__all__ = ["METRICS", "profile", "similarity"]

METRICS = (
    "edges",
    "triangles",
    "degree variance",
    "degree divergence",
    "diameter",
    "mean path",
    "distance divergence",
    "global clustering",
    "local clustering",
    "modularity",
    "assortativity",
    "eigenvector centrality",
)
_FLOOR = 1e-10
_EMPTY = float(np.finfo(np.float64).eps)  # as the benchmark has it


def _assortativity(graph: Graph) -> float:
    """The correlation of the degrees at both ends of an edge."""
    sources = np.repeat(graph.degrees, graph.degrees).astype(np.float64)
    targets = graph.degrees[graph.ends].astype(np.float64)
    spread = sources.var() if sources.size else 0.0
    return float(((sources - sources.mean()) * (targets - targets.mean())).mean() / spread) if spread > 0 else 0.0


def _local_clustering(graph: Graph) -> float:
    closed = kernels().triangles_at(graph.starts, graph.ends)
    wedges = graph.degrees * (graph.degrees - 1) / 2
    return (
        float(np.divide(closed, wedges, out=np.zeros_like(wedges), where=wedges > 0).mean()) if graph.vertices else 0.0
    )


def _centrality(graph: Graph) -> NDArray[np.float64]:
    """Sorted entries of the leading eigenvector, by powers of the adjacency matrix plus one."""
    vector = np.full(graph.vertices, 1 / max(graph.vertices, 1) ** 0.5)
    for _ in range(200):
        sums = np.append(0.0, np.cumsum(vector[graph.ends]))
        following = vector + sums[graph.starts[1:]] - sums[graph.starts[:-1]]
        following /= max(float(np.linalg.norm(following)), _FLOOR)
        if np.abs(following - vector).max() < 1e-9:
            break
        vector = following
    return np.sort(np.abs(vector))


def profile(graph: Graph) -> dict[str, Any]:
    """All that the metrics compare, of one public graph."""
    lengths = kernels().distance_counts(graph.starts, graph.ends)
    lengths = np.trim_zeros(lengths, "b")
    pairs = max(int(lengths.sum()), 1)
    labels = find_communities(graph.starts, graph.ends)
    return {
        "edges": graph.edge_count,
        "triangles": graph.triangles,
        "degree variance": float(graph.degrees.var()) if graph.vertices else 0.0,
        "degree divergence": np.bincount(graph.degrees) / max(graph.vertices, 1),
        "diameter": max(len(lengths) - 1, 0),
        "mean path": float((lengths * np.arange(len(lengths))).sum()) / pairs,
        "distance divergence": lengths / pairs,
        "global clustering": 3 * graph.triangles / max(graph.stars(2), 1),
        "local clustering": _local_clustering(graph),
        "modularity": modularity(graph.starts, graph.ends, labels),
        "assortativity": _assortativity(graph),
        "eigenvector centrality": _centrality(graph),
    }


def _divergence(truth: NDArray[Any], other: NDArray[Any]) -> float:
    """Kullback-Leibler, in nats, of the truth against the other; empty places count as one unit in the last place."""
    length = max(len(truth), len(other))
    p, q = (np.pad(x, (0, length - len(x))) for x in (truth, other))
    return float((p * np.log((p + _EMPTY) / (q + _EMPTY))).sum())


@explain_wrong_calls
def similarity(original: Graph | dict[str, Any], synthetic: Graph | dict[str, Any]) -> dict[str, float]:
    """The error of `synthetic` in each metric, zero for the `original` itself; the original must be public.

    Relative errors; Kullback-Leibler divergences for the distributions of degrees and distances; the mean absolute
    difference of the sorted eigenvector centralities. Louvain's choices are random, so modularity wavers a little.

    >>> ring = Graph.of([(i, (i + 1) % 9) for i in range(9)], vertices=9)
    >>> similarity(ring, ring)["mean path"]
    0.0
    """
    truth, other = (found if isinstance(found, dict) else profile(found) for found in (original, synthetic))
    scores = {}
    for name in METRICS:
        one, two = truth[name], other[name]
        if name.endswith("divergence"):
            scores[name] = _divergence(one, two)
        elif name == "eigenvector centrality":
            length = max(len(one), len(two))
            one, two = (np.pad(x, (length - len(x), 0)) for x in (one, two))
            scores[name] = float(np.abs(one - two).mean()) if length else 0.0
        else:
            scores[name] = abs(two - one) / abs(one) if one else float(two != one)
    return scores
