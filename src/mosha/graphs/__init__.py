"""Graphs: private statistics and synthetic graphs, when an edge or a vertex with all its edges is hidden.

`protect(source, unit=mosha.Edge() | mosha.Node(max_degree=D), account=...)` gives a graph to ask, `protect_arcs` a
directed one; `sensitivities` shows how far one unit moves each statistic; `read`, `Graph`, `similarity`,
`projection_bias` and `compare_models` are for public graphs; `NoisyAdjacency` reads a released matrix,
`find_degree_distribution` degrees that devices reported; `local_model` has what runs on devices.
"""

from mosha.core.names.lazy import keep_public_names
from mosha.graphs import local_model
from mosha.graphs.data.graph import Graph
from mosha.graphs.data.reading import read
from mosha.graphs.data.similarity import similarity
from mosha.graphs.directed import ProtectedArcs, protect_arcs
from mosha.graphs.local_model import compare_models, find_degree_distribution
from mosha.graphs.protect import ProtectedGraph, protect
from mosha.graphs.question import Answer, Question
from mosha.graphs.sensitivity_table import sensitivities
from mosha.graphs.statistics.bounded import projection_bias
from mosha.graphs.synthesis.adjacency import NoisyAdjacency

__all__ = [
    "Answer",
    "Graph",
    "NoisyAdjacency",
    "ProtectedArcs",
    "ProtectedGraph",
    "Question",
    "compare_models",
    "find_degree_distribution",
    "local_model",
    "projection_bias",
    "protect",
    "protect_arcs",
    "read",
    "sensitivities",
    "similarity",
]
keep_public_names(__name__)
