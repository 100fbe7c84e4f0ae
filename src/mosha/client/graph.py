"""A graph of a server with the verbs of a protected graph: checked and forecast here, answered there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mosha.client.table import Asker
from mosha.core.errors import InvalidParameter
from mosha.core.unit import Edge, Node, Unit
from mosha.graphs import ProtectedGraph, protect
from mosha.graphs.question import Question
from mosha.tables import Answer

__all__ = ["RemoteGraph", "RemoteGraphQuestion", "remote_graph"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RemoteGraphQuestion(Question):
    """A question about a graph that a server is asked."""

    lab: Asker
    dataset: str

    def _body(self, price: Mapping[str, object]) -> dict[str, Any]:
        said = {name: value for name, value in price.items() if value is not None}
        return {"dataset": self.dataset, "plan": self.to_dict(), "price": said}

    def preview(self, **price: object) -> dict[str, Any]:
        """What the server says of price, payers, bars and what is left. Nothing is spent."""
        return self.lab.preview_body(self._body(price))

    def release(  # type: ignore[override]  # the answer is a table, as all answers of a server are
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        key: str | None = None,
        purpose: str = "",
    ) -> Answer:
        """Pay, ask and answer, at the server; the same key finds the same answer again."""
        price = {"epsilon": epsilon, "delta": delta, "rho": rho, "within": within, "confidence": confidence}
        return self.lab.release_body(self._body(price) | ({"purpose": purpose} if purpose else {}), key=key)


@dataclass(frozen=True, repr=False)
class RemoteGraph(ProtectedGraph):
    """A protected graph of a server: `edges()`, `triangles()`, `degree_histogram()` and the others, then ask."""

    lab: Asker | None = None
    dataset: str = ""

    def _ask(self, *arguments: Any, **options: Any) -> RemoteGraphQuestion:
        found = super()._ask(*arguments, **options)
        assert self.lab is not None
        parts = {name: getattr(found, name) for name in found.__dataclass_fields__}
        return RemoteGraphQuestion(**parts, lab=self.lab, dataset=self.dataset)


def remote_graph(lab: Asker, described: Mapping[str, Any]) -> RemoteGraph:
    """The graph that a server describes; no edge of it is here."""
    if described["kind"] != "graph":
        raise InvalidParameter("client.not_a_graph", parameter="dataset", dataset=described["name"])
    declared = described["declaration"]
    said = declared["unit"]
    unit: Unit = Edge() if said.get("edge") else Node(max_degree=said.get("max_degree"))
    unit = replace(unit, of=said.get("of"))
    plain = protect([], unit=unit, vertices=declared["vertices"] or 0)
    return RemoteGraph(plain.graph, plain.unit, None, lab=lab, dataset=described["name"])
