"""A graph behind glass: every question about it has a price, a forecast and a receipt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, WrongUnit
from mosha.core.language import say
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.options import ArcReading, SubgraphMethod, SyntheticGraph
from mosha.core.showing import Card, Shown
from mosha.core.unit import Edge, Node, Unit
from mosha.graphs.data.graph import AnyGraph, Graph
from mosha.graphs.data.reading import read
from mosha.graphs.question import VERBS, Question
from mosha.graphs.sensitivity_table import sensitivities
from mosha.graphs.statistics import counting, degree_questions, subgraph_questions
from mosha.graphs.statistics.bounded import expect_on_public
from mosha.graphs.statistics.choice_of_bound import CHOICE_SHARE
from mosha.graphs.statistics.statistic import check_unit
from mosha.graphs.synthesis.adjacency import adjacency
from mosha.graphs.synthesis.communities import best_partition, communities
from mosha.graphs.synthesis.seeds import seeds
from mosha.graphs.synthesis.synthetic import synthetic

__all__ = ["MOST_BINS", "ProtectedGraph", "protect"]

MOST_BINS = 1 << 12
"""Of a degree histogram unless `up_to` says more: a public number, as noise is drawn for every entry."""


@explain_wrong_calls
def protect(
    source: object,
    *,
    unit: Unit,
    account: Account | None = None,
    vertices: object = None,
    directed: ArcReading = "refuse",
    columns: tuple[str, str] | None = None,
) -> ProtectedGraph:
    """Put a graph behind glass; see `mosha.graphs.read` for what it may be.

    Edges with an end that is none of `vertices` (outside of 0, ..., n - 1 where that is a number) are left out, without
    a word: that there are any is private.

    `unit` is `Edge()` or `Node()`, `account` pays for what is asked; `source`, `vertices`, `directed` and `columns` are
    those of `mosha.graphs.read`.

    Guarantee:
        Reading drops self loops and merges repeated edges, pair by pair, so neighboring lists give neighboring
        graphs. At edge level the vertices are public: they come with a graph object or are declared. At node level they
        are private. At neither are they read off the ends of edges: with an edge its lonely ends would vanish. Each
        label is read and placed by itself, so that no vertex changes the order of the others (`labels`).

    >>> import mosha
    >>> friends = protect([(0, 1), (1, 2)], unit=mosha.Edge(), vertices=10)
    >>> friends.edges().forecast(epsilon=1)
    3.0
    """
    check_unit(unit)
    if account is not None and not isinstance(account, Account):
        raise InvalidParameter("graphs.not_an_account", parameter="account")
    if account is not None and not account.unit.covers(unit):
        raise WrongUnit(
            "graphs.account_of_other_unit",
            account=account.name,
            spent="nothing",
            theirs=account.unit.describe(),
            ours=unit.describe(),
        )
    if isinstance(vertices, str):
        raise InvalidParameter("graphs.private_vertices", parameter="vertices")
    if type(source).__module__.startswith("pyspark."):
        from mosha.graphs.data.spark import SparkGraph  # noqa: PLC0415  (Spark is heavy)

        return ProtectedGraph(SparkGraph.of(source, vertices=vertices, columns=columns), unit, account)
    return ProtectedGraph(read(source, vertices=vertices, directed=directed, columns=columns), unit, account)


@explain_wrong_calls
@dataclass(frozen=True, repr=False)
class ProtectedGraph(Shown):
    """Questions that may be asked of a graph. Nothing is spent before `release`.

    `graph` is what is behind the glass, `unit` whose presence is hidden, `account` who pays. Methods take public
    numbers alone: `leaves` of a star, `max_degree` where degrees are cut, `k`, `partitions` to choose from, the
    `density` that is assumed, a `kind`, a `method`.

    >>> import mosha
    >>> friends = mosha.graphs.protect([(0, 1), (1, 2)], vertices=50, unit=mosha.Edge())
    >>> friends.edges().forecast(epsilon=1)
    3.0
    """

    graph: AnyGraph = field(repr=False)
    unit: Unit
    account: Account | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        """Public words alone: at node level not even how many vertices there are."""
        vertices = f"{self._count:,} vertices, " if isinstance(self.unit, Edge) else ""
        return f"ProtectedGraph({vertices}unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        """Who is hidden, who pays, and what can be asked."""
        payer = say("core.shown_nobody") if self.account is None else self.account.name
        facts = [(say("core.shown_hidden"), self.unit.describe()), (say("core.shown_account"), payer)]
        if isinstance(self.unit, Edge):
            facts.insert(0, (say("graphs.shown_vertices"), f"{self._count:,}"))
        return Card(title=say("graphs.shown_graph"), facts=facts, notes=[say("graphs.shown_ask", verbs=sorted(VERBS))])

    @property
    def _count(self) -> int:
        """How many vertices there are: public at edge level, and used only there."""
        return int(self.graph.vertices) if isinstance(self.unit, Edge) else 0

    @property
    def _pairs(self) -> int | None:
        return self._count * (self._count - 1) // 2 if isinstance(self.unit, Edge) else None

    def sensitivities(self, *, leaves: int = 2, max_degree: int | None = None) -> dict[str, int | None]:
        """How far one unit can move each statistic in the worst case."""
        vertices = self._count if isinstance(self.unit, Edge) else None
        return sensitivities(self.unit, vertices=vertices, leaves=leaves, max_degree=max_degree)

    def _bound_for_edges(self, max_degree: int | None, method: SubgraphMethod | None) -> None:
        if max_degree is not None and (method is not None or not isinstance(self.unit, Edge)):
            raise InvalidParameter("graphs.max_degree_at_node_level", parameter="max_degree")

    def _require_memory(self, needed: bool = True) -> None:  # noqa: FBT001, FBT002  (one line says when)
        if needed and not isinstance(self.graph, Graph):
            raise InvalidParameter("graphs.needs_memory", spent="nothing")

    @property
    def labels(self) -> Sequence[Any]:
        """The labels of the vertices that answers call 0, 1, ...; at node level they are private and refused.

        >>> friends = protect([("ann", "bob")], unit=Edge(), vertices=["bob", "ann", "cleo"])
        >>> [friends.labels[number] for number in (0, 2)]
        ['ann', 'cleo']
        """
        if not isinstance(self.unit, Edge):
            raise InvalidParameter("graphs.vertices_private", parameter="unit")
        known = self.graph.labels
        return range(self._count) if known is None else tuple(getattr(known, "tolist", lambda: known)())

    def _ask(
        self,
        title: str,
        build: Callable[[float, float], Measurement],
        guess: Callable[[Graph], Mapping[str, float] | None] | None = None,
        **options: object,
    ) -> Question:
        return Question(
            title=title,
            unit=self.unit,
            verb=title.replace(" ", "_"),
            options={name: value for name, value in options.items() if value is not None},
            build=build,
            graph=self.graph,
            account=self.account,
            sensitivity=self.sensitivities().get(title),
            guess=guess,
        )

    def _guess_from(self, like: Graph) -> Mapping[str, float] | None:
        """What a public graph says of the bound on degrees, for a forecast."""
        return expect_on_public(self.unit, like, 1 - CHOICE_SHARE) if isinstance(self.unit, Node) else None

    def edges(self) -> Question:
        """How many edges there are."""
        return self._ask("edges", lambda e, _: counting.edges(self.unit, e, most=self._pairs), self._guess_from)

    def vertices(self) -> Question:
        """How many vertices there are; at edge level that is public and refused."""
        return self._ask("vertices", lambda e, _: counting.vertices(self.unit, e))

    def density(self) -> Question:
        """The part of all pairs of vertices that are edges."""
        return self._ask("density", lambda e, _: counting.density(self.unit, e, count=self._count))

    def average_degree(self) -> Question:
        """Twice the edges over the vertices."""
        return self._ask("average degree", lambda e, _: counting.average_degree(self.unit, e, count=self._count))

    def maximum_degree(self) -> Question:
        """The highest degree."""
        most = max(self._count - 1, 0) if isinstance(self.unit, Edge) else None
        return self._ask("maximum degree", lambda e, _: counting.maximum_degree(self.unit, e, most=most))

    def components(self) -> Question:
        """How many connected components there are; at node level by forests of bounded degree."""
        self._require_memory(isinstance(self.unit, Node))
        return self._ask("components", lambda e, _: counting.components(self.unit, e, most=self._count))

    def degree_sequence(self) -> Question:
        """All degrees in increasing order."""
        build = degree_questions.degree_sequence
        return self._ask("degree sequence", lambda e, _: build(self.unit, e, count=self._count))

    def degree_histogram(self, *, up_to: int | None = None) -> Question:
        """How many vertices have degree 0, 1, ..., `up_to` (4095 by default); higher degrees count as the last one."""
        if up_to is not None:
            positive_integer("up_to", up_to)
        length = max(1, min(self._count, MOST_BINS) if up_to is None else up_to + 1)
        build = degree_questions.degree_histogram
        return self._ask("degree histogram", lambda e, _: build(self.unit, e, length=length), up_to=up_to)

    def cumulative_degrees(self) -> Question:
        """How many vertices have degree at most 0, 1, ..."""
        build = degree_questions.cumulative_degrees
        return self._ask("cumulative degrees", lambda e, _: build(self.unit, e, count=self._count))

    def degree_distribution(self) -> Question:
        """The part of the vertices with degree at most 0, 1, ..."""
        build = degree_questions.degree_distribution
        return self._ask("degree distribution", lambda e, _: build(self.unit, e, count=self._count))

    def triangles(self, *, method: SubgraphMethod | None = None, max_degree: int | None = None) -> Question:
        """How many triangles there are: the ladder, or smooth sensitivity where delta is paid; or under a bound.

        At node level a forecast is that of the noise alone, and the answer has no error bar: see `node_triangles`.
        """
        self._bound_for_edges(max_degree, method)
        self._require_memory(isinstance(self.unit, Node) or max_degree is not None)
        build = subgraph_questions.triangles
        return self._ask(
            "triangles",
            lambda e, d: build(self.unit, e, d, count=self._count, method=method, max_degree=max_degree),
            lambda like: {"width": like.most_common_neighbors, "cap": like.most_common_neighbors},
            method=method,
            max_degree=max_degree,
        )

    def stars(self, leaves: int, *, method: SubgraphMethod | None = None, max_degree: int | None = None) -> Question:
        """How many stars with this many leaves there are; at edge level degrees may be clamped to a bound."""
        self._bound_for_edges(max_degree, method)
        build = subgraph_questions.stars
        return self._ask(
            "stars",
            lambda e, d: build(self.unit, leaves, e, d, count=self._count, method=method, max_degree=max_degree),
            lambda like: {"width": like.highest_degrees()[0], "max_degree": like.highest_degrees()[0]},
            leaves=leaves,
            method=method,
            max_degree=max_degree,
        )

    def seeds(self, k: int) -> Question:
        """The numbers of k vertices whose neighborhoods together cover the most."""
        self._require_memory()
        return self._ask("seeds", lambda e, _: seeds(self.unit, e, k=k, count=self._count), k=k)

    def communities(self) -> Question:
        """A community for each vertex."""
        self._require_memory()
        return self._ask("communities", lambda e, _: communities(self.unit, e, count=self._count))

    def best_partition(self, partitions: Any, *, density: float) -> Question:
        """Which of some public partitions holds the most edges inside, beyond a public density."""
        self._require_memory()
        return self._ask(
            "best partition",
            lambda e, _: best_partition(self.unit, e, partitions=partitions, density=density, count=self._count),
            partitions=partitions,
            density=density,
        )

    def adjacency(self) -> Question:
        """The adjacency matrix under randomized response; read it with `NoisyAdjacency.of(answer)`."""
        self._require_memory()
        return self._ask("adjacency", lambda e, _: adjacency(self.unit, e, count=self._count))

    def synthetic(self, kind: SyntheticGraph = "clustered") -> Question:
        """A whole graph, as pairs of vertices: "clustered", "communities" or "filter"."""
        self._require_memory()
        return self._ask("synthetic", lambda e, _: synthetic(self.unit, e, count=self._count, kind=kind), kind=kind)

    def clustering(self) -> Question:
        """The global clustering coefficient; at node level without an error bar, as its triangles have none."""
        build = subgraph_questions.clustering
        return self._ask("clustering", lambda e, d: build(self.unit, e, d, count=self._count))
