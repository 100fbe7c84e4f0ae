"""A directed graph behind glass: arcs, degrees in and out, feed-forward loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from mosha.core.account import Account
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.unit import Edge
from mosha.graphs.question import Question
from mosha.graphs.statistics.directed import ArcCount, ArcDegrees, DirectedGraph, FeedForwardLoops
from mosha.graphs.statistics.ladder import ladder
from mosha.mechanisms import laplace

__all__ = ["ProtectedArcs", "protect_arcs"]


@explain_wrong_calls
def protect_arcs(arcs: ArrayLike, *, vertices: int, account: Account | None = None) -> ProtectedArcs:
    """Put a directed graph behind glass: each single arc is hidden, the vertices 0, ..., n - 1 are public.

    Guarantee:
        Loops are dropped and repeated arcs merged pair by pair, so lists that differ in one arc give neighbors.

    Args:
        arcs: pairs (from, to) of whole numbers below `vertices`; others are left out without a word.
        vertices: how many there are.
        account: who pays.

    >>> import mosha
    >>> genes = protect_arcs([(0, 1), (1, 2), (0, 2)], vertices=100)
    >>> genes.out_degrees(up_to=20).forecast(epsilon=1).max().item()
    6.0
    """
    return ProtectedArcs(DirectedGraph.of(arcs, vertices=vertices), account)


@explain_wrong_calls
@dataclass(frozen=True, repr=False)
class ProtectedArcs:
    """Questions that may be asked of a directed `graph`; `account` pays. Nothing is spent before `release`.

    >>> genes = protect_arcs([(0, 1), (1, 2), (0, 2)], vertices=100)
    >>> genes.arcs().forecast(epsilon=1)
    3.0
    """

    graph: DirectedGraph = field(repr=False)
    account: Account | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        """Public words alone."""
        return f"ProtectedArcs({self.graph.vertices:,} vertices)"

    def _ask(self, title: str, statistic: ArcCount | ArcDegrees | FeedForwardLoops, **options: object) -> Question:
        def build(epsilon: float, delta: float) -> Measurement:
            del delta
            if isinstance(statistic, FeedForwardLoops):
                return ladder(statistic, unit=Edge(), epsilon=epsilon)
            return laplace(statistic, unit=Edge(), epsilon=epsilon)

        return Question(
            title=title,
            unit=Edge(),
            verb=title.replace(" ", "_").replace("-", "_"),
            options=options,
            build=build,
            graph=self.graph,
            account=self.account,
        )

    def arcs(self) -> Question:
        """How many arcs there are."""
        return self._ask("arcs", ArcCount())

    def out_degrees(self, *, up_to: int) -> Question:
        """How many vertices have 0, 1, ..., `up_to` arcs out; more count as the last."""
        return self._ask("out degrees", ArcDegrees(positive_integer("up_to", up_to) + 1, "out"), up_to=up_to)

    def in_degrees(self, *, up_to: int) -> Question:
        """How many vertices have 0, 1, ..., `up_to` arcs in; more count as the last."""
        return self._ask("in degrees", ArcDegrees(positive_integer("up_to", up_to) + 1, "in"), up_to=up_to)

    def feed_forward_loops(self) -> Question:
        """How many triples a -> b, b -> c, a -> c there are, by the ladder."""
        return self._ask("feed-forward loops", FeedForwardLoops(self.graph.vertices))
