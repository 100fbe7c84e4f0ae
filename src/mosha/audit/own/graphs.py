"""Graph mechanisms as the attacker meets them: small graphs on which one edge or one vertex tells the most."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.events import Approx
from mosha.core.measurement import Measurement
from mosha.core.unit import Edge, Node
from mosha.graphs import Graph, protect, protect_arcs
from mosha.graphs.local_model import local_degrees, local_triangles
from mosha.graphs.statistics.directed import DirectedGraph

__all__ = ["own_entries"]

VERTICES = 6


def own_entries() -> list[Entry]:
    """One entry for each question, on its worst neighbors."""
    return [*_edge_entries(), *_node_entries(), *_local_entries(), *_arc_entries()]


def _graph(pairs: Iterable[tuple[int, int]], vertices: int = VERTICES) -> Graph:
    return Graph.of(list(pairs), vertices=vertices)


def _everything(vertices: int = VERTICES) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(vertices), 2))


def _edge_proposals() -> tuple[Proposal, ...]:
    book = [(0, 1), *((end, page) for end in (0, 1) for page in range(2, VERTICES))]
    star = [(0, other) for other in range(1, VERTICES)]
    return (
        Proposal("the first edge", _graph([(0, 1)]), _graph([])),
        Proposal("an edge that closes the most triangles", _graph(book), _graph(book[1:])),
        Proposal("an edge of a star", _graph(star), _graph(star[1:])),
        Proposal("the last edge", _graph(_everything()), _graph(_everything()[1:])),
    )


def _node_proposals() -> tuple[Proposal, ...]:
    inner, hub = VERTICES - 1, VERTICES - 1
    star = [(hub, other) for other in range(inner)]
    path = [(i, i + 1) for i in range(inner - 1)]
    return (
        Proposal("a hub in an empty graph", _graph(star), _graph([], inner)),
        Proposal("a hub beside a path", _graph([*star, *path]), _graph(path, inner)),
        Proposal("a hub in a complete graph", _graph(_everything()), _graph(_everything(inner), inner)),
        Proposal("somebody without edges", _graph(path), _graph(path, inner)),
    )


def _entry(name: str, build: Callable[[], Measurement], proposals: tuple[Proposal, ...]) -> Entry:
    return Entry(f"graphs: {name}", build, proposals, "graphs")


def _read_answers(measurement: Measurement, read: Callable[[Any], Any]) -> Measurement:
    """The same measurement with answers that an attacker can sort; as private as it was."""
    return measurement.map(read)


def _both(answer: Any) -> tuple[float, ...]:
    return tuple(float(part) for part in answer.values())


def _first_parts(answer: Any) -> tuple[float, ...]:
    return (answer["max_degree"], answer["vertices"], *np.round(answer["value"][:3], 2).tolist())


def _edge_entries() -> list[Entry]:
    behind = protect(_graph([]), unit=Edge())
    near = _edge_proposals()
    halves = [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1], [0] * 6]
    asked: dict[str, tuple[Any, float, Callable[[Any], Any] | None]] = {
        "edges": (behind.edges(), 0.0, None),
        "components": (behind.components(), 0.0, None),
        "maximum degree": (behind.maximum_degree(), 0.0, None),
        "degree sequence": (behind.degree_sequence(), 0.0, lambda a: tuple(np.round(a, 3).tolist())),
        "degree histogram": (behind.degree_histogram(), 0.0, None),
        "triangles by the ladder": (behind.triangles(), 0.0, _both),
        "triangles by smooth Laplace noise": (behind.triangles(), 1e-2, _both),
        "triangles by smooth Cauchy noise": (behind.triangles(method="smooth"), 0.0, _both),
        "stars by the ladder": (behind.stars(3), 0.0, _both),
        "triangles, degrees bounded": (behind.triangles(max_degree=3), 0.0, None),
        "stars, degrees clamped": (behind.stars(2, max_degree=3), 0.0, None),
        "seeds": (behind.seeds(2), 0.0, tuple),
        "communities": (behind.communities(), 0.0, lambda a: tuple(a.tolist())),
        "best partition": (behind.best_partition(halves, density=0.5), 0.0, None),
        "adjacency": (behind.adjacency(), 0.0, lambda a: (*np.isin([0, 1, 14], a["value"]).tolist(), a["edges"])),
        "synthetic, filter": (behind.synthetic("filter"), 0.0, lambda a: _cells(a["value"])),
        "synthetic, communities": (behind.synthetic("communities"), 0.0, lambda a: _cells(a["value"])),
        "synthetic, clustered": (
            behind.synthetic(),
            0.0,
            lambda a: (len(a["value"]), int(a["edges"]), int(a["triangles"])),
        ),
    }

    def build(question: Any, delta: float, read: Callable[[Any], Any] | None) -> Callable[[], Measurement]:
        def make() -> Measurement:
            made: Measurement = question.measurement(epsilon=1.0, delta=delta)
            if delta:  # the sum of its parts, as one claim
                made = replace(made, event=Approx(1.0, delta))
            return made if read is None else _read_answers(made, read)

        return make

    return [_entry(name, build(*how), near) for name, how in asked.items()]


def _cells(pairs: Any) -> tuple[bool, ...]:
    """Whether the edges that the proposals add are there."""
    there = {(int(a), int(b)) for a, b in pairs}
    return tuple(pair in there for pair in ((0, 1), (0, 2), (4, 5)))


def _node_entries() -> list[Entry]:
    near = _node_proposals()
    bounded, free = protect(_graph([]), unit=Node(max_degree=2)), protect(_graph([]), unit=Node())
    asked: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "edges, node level": (bounded.edges(), lambda a: a["value"]),
        "edges, node level, bound chosen": (free.edges(), lambda a: (a["max_degree"], a["value"])),
        "cumulative degrees, node level": (bounded.cumulative_degrees(), lambda a: tuple(a["value"].tolist())),
        "degree histogram, node level": (bounded.degree_histogram(), lambda a: tuple(a["value"].tolist())),
        "degree distribution, bound chosen": (free.degree_distribution(), _first_parts),
        "stars, node level": (bounded.stars(2), lambda a: a["value"]),
        "components, node level": (bounded.components(), _both),
        "triangles, node level": (protect(_graph([]), unit=Node(max_degree=4)).triangles(), _both),
        "vertices, node level": (free.vertices(), lambda a: a),
    }

    def build(question: Any, read: Callable[[Any], Any]) -> Callable[[], Measurement]:
        return lambda: _read_answers(question.measurement(epsilon=1.0), read)

    return [_entry(name, build(*how), near) for name, how in asked.items()]


def _local_entries() -> list[Entry]:
    near = _edge_proposals()
    return [
        _entry(
            "degrees, local", lambda: _read_answers(local_degrees(1.0, count=VERTICES), lambda a: tuple(a[:2])), near
        ),
        _entry("triangles, local", lambda: local_triangles(1.0, count=VERTICES, cap=3), near),
    ]


def _arc_entries() -> list[Entry]:
    def graph(arcs: list[tuple[int, int]]) -> DirectedGraph:
        return DirectedGraph.of(arcs, vertices=VERTICES)

    order = list(itertools.combinations(range(VERTICES), 2))
    everything = list(itertools.permutations(range(VERTICES), 2))
    near = (
        Proposal("the first arc", graph([(0, 1)]), graph([])),
        Proposal("an arc of an order, in the most loops", graph(order), graph(order[1:])),
        Proposal("the last arc", graph(everything), graph(everything[1:])),
    )
    behind = protect_arcs([], vertices=VERTICES)
    return [
        _entry("arcs", lambda: behind.arcs().measurement(epsilon=1.0), near),
        _entry("out degrees", lambda: behind.out_degrees(up_to=4).measurement(epsilon=1.0), near),
        _entry("in degrees", lambda: behind.in_degrees(up_to=4).measurement(epsilon=1.0), near),
        _entry(
            "feed-forward loops",
            lambda: _read_answers(behind.feed_forward_loops().measurement(epsilon=1.0), _both),
            near,
        ),
    ]
