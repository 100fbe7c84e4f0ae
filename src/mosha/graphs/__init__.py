"""Graphs: private statistics and synthetic graphs, when an edge or a vertex with all its edges is hidden.

`protect(source, unit=mosha.Edge() | mosha.Node(max_degree=D), account=...)` gives a graph to ask, `protect_arcs` a
directed one; `sensitivities` shows how far one unit moves each statistic; `read`, `Graph`, `similarity`,
`projection_bias` and `compare_models` are for public graphs; `NoisyAdjacency` reads a released matrix,
`find_degree_distribution` degrees that devices reported; `local_model` has what runs on devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.graphs import local_model as local_model
    from mosha.graphs.data.graph import Graph as Graph
    from mosha.graphs.data.reading import read as read
    from mosha.graphs.data.similarity import similarity as similarity
    from mosha.graphs.directed import ProtectedArcs as ProtectedArcs
    from mosha.graphs.directed import protect_arcs as protect_arcs
    from mosha.graphs.local_model import compare_models as compare_models
    from mosha.graphs.local_model import find_degree_distribution as find_degree_distribution
    from mosha.graphs.protect import ProtectedGraph as ProtectedGraph
    from mosha.graphs.protect import protect as protect
    from mosha.graphs.question import Answer as Answer
    from mosha.graphs.question import Question as Question
    from mosha.graphs.sensitivity_table import sensitivities as sensitivities
    from mosha.graphs.statistics.bounded import projection_bias as projection_bias
    from mosha.graphs.synthesis.adjacency import NoisyAdjacency as NoisyAdjacency

_NAMES = {
    "Answer": "question",
    "Graph": "data.graph",
    "NoisyAdjacency": "synthesis.adjacency",
    "ProtectedArcs": "directed",
    "ProtectedGraph": "protect",
    "Question": "question",
    "compare_models": "local_model",
    "find_degree_distribution": "local_model",
    "projection_bias": "statistics.bounded",
    "protect": "protect",
    "protect_arcs": "directed",
    "read": "data.reading",
    "sensitivities": "sensitivity_table",
    "similarity": "data.similarity",
}
_MODULES = ("local_model",)
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
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES, _MODULES)
