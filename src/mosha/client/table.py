"""A dataset of a server with the verbs of a protected table: the same checks here, the same answer from there.

Questions are built, checked, priced and forecast on this machine, from what the server declares; `release` sends the
question as data (`question.to_dict()`) and waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from mosha.connect.engines.absent import absent_table
from mosha.tables import Answer, Question, Table, protect
from mosha.tables.parts.additive import Aggregate
from mosha.tables.table import Grouped

__all__ = ["Asker", "RemoteGrouped", "RemoteQuestion", "RemoteTable", "remote_table"]


class Asker(Protocol):
    """What carries a question to a server and its answer back."""

    def preview_body(self, body: Mapping[str, object]) -> dict[str, Any]: ...

    def release_body(self, body: Mapping[str, object], *, key: str | None) -> Answer: ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RemoteQuestion(Question):
    """A question that a server is asked."""

    lab: Asker
    dataset: str
    block: str | None = None

    def _body(self, price: Mapping[str, object]) -> dict[str, Any]:
        said = {name: value for name, value in price.items() if value is not None}
        body = {"dataset": self.dataset, "plan": self.to_dict(), "price": said}
        return body | ({} if self.block is None else {"block": self.block})

    def preview(self, *, rows: float | None = None, at_most: int | None = None, **price: object) -> dict[str, Any]:
        """What the server says of price, payers, bars and what is left. Nothing is spent."""
        guesses = {"rows": rows, "at_most": at_most}
        said = {part: guess for part, guess in guesses.items() if guess is not None}
        return self.lab.preview_body(self._body(price) | said)

    def release(  # type: ignore[override]  # the deadline is the server's; a purpose is for its reviewers
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        rows: float | None = None,
        key: str | None = None,
        purpose: str = "",
    ) -> Answer:
        """Pay, ask and answer, at the server; the same key finds the same answer again."""
        price = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "within": within,
            "confidence": confidence,
            "rows": rows,
        }
        return self.lab.release_body(self._body(price) | ({"purpose": purpose} if purpose else {}), key=key)


def _remote(question: Question, table: RemoteTable) -> RemoteQuestion:
    parts = {part.name: getattr(question, part.name) for part in fields(Question)}
    assert table.lab is not None
    return RemoteQuestion(**parts, lab=table.lab, dataset=table.dataset, block=table.block)


@dataclass(frozen=True, eq=False, repr=False)
class RemoteTable(Table):
    """A protected table of a server: `where`, `compute`, `group_by`, then ask."""

    lab: Asker | None = None
    dataset: str = ""
    block: str | None = None

    def ask(self, *arguments: Any, **named: Any) -> RemoteQuestion:
        return _remote(super().ask(*arguments, **named), self)

    def group_by(self, *columns: object, keys: object = None, **computed: object) -> RemoteGrouped:
        found = super().group_by(*columns, keys=keys, **computed)
        return RemoteGrouped(self, found.keys, found.only)


@dataclass(frozen=True, eq=False, repr=False)
class RemoteGrouped(Grouped):
    """A protected table of a server, in groups."""

    def aggregate(self, /, **named: Aggregate) -> RemoteQuestion:
        assert isinstance(self.table, RemoteTable)
        return _remote(super().aggregate(**named), self.table)


def remote_table(lab: Asker, described: Mapping[str, Any], block: str | None) -> RemoteTable:
    """The table that a server describes."""
    declared = described["declaration"]
    columns = {
        column["name"]: {part: column[part] for part in ("type", "between", "keys") if part in column}
        for column in declared["columns"]
    }
    types = {name: column["type"] for name, column in columns.items()}
    plain = protect(absent_table(described["name"], types), schema={"unit": declared["unit"], "columns": columns})
    return RemoteTable(
        plain.relation, plain.unit, None, plain.declared, lab=lab, dataset=described["name"], block=block
    )
