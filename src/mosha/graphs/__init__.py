"""Graphs: private statistics and synthetic graphs, when an edge or a vertex with all its edges is hidden.

`protect(source, unit=mosha.Edge() | mosha.Node(max_degree=D), account=...)` gives a graph to ask; `sensitivities` shows
how far one unit moves each statistic; `read` and `Graph` are for public graphs.
"""

from mosha.graphs.bounded import projection_bias
from mosha.graphs.graph import Graph
from mosha.graphs.protect import ProtectedGraph, protect
from mosha.graphs.question import Answer, Question
from mosha.graphs.reading import read
from mosha.graphs.sensitivity_table import sensitivities

__all__ = ["Answer", "Graph", "ProtectedGraph", "Question", "projection_bias", "protect", "read", "sensitivities"]
