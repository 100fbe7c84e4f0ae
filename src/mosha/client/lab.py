"""A laboratory: the datasets of a server, asked with the verbs of the library.

lab = mosha.connect_to("https://privacy.example.org", token=...)
lab.query("SELECT ward, AVG(days) FROM visits GROUP BY ward", epsilon=0.1)
lab.table("visits").where(mosha.col("days") > 3).group_by("ward").mean("days").release(epsilon=0.1)
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mosha.client.answers import revive_answer
from mosha.client.errors import RequestDenied, revive_problem
from mosha.client.synthetic import RemoteSynthetic
from mosha.client.training import RemoteTraining
from mosha.client.transport import Transport
from mosha.core.errors import AnswerPending
from mosha.core.event import Event
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Unit

if TYPE_CHECKING:
    from mosha.client.graph import RemoteGraph
    from mosha.client.table import RemoteTable
    from mosha.tables import Answer

__all__ = ["Lab", "connect_to"]

PAUSE = 0.1
LONGEST_PAUSE = 2.0


@explain_wrong_calls
class Lab:
    """The datasets of one server, for the holder of one token.

    `transport` sends requests, for at most `patience` seconds. Methods take the name of a `dataset`, a `block` of it, a
    question as `sql` or as the `body` of a request, its `price`, a `key` that makes a retry free, a `method` and a
    `path`.

    >>> import mosha
    >>> lab = mosha.connect_to("https://mosha.example", token="secret")
    >>> isinstance(lab, Lab)
    True
    """

    def __init__(self, transport: Transport, *, patience: float) -> None:
        self._transport = transport
        self._patience = patience

    def datasets(self) -> list[dict[str, Any]]:
        """What there is to ask about: names, titles, promises."""
        found: list[dict[str, Any]] = self._transport.call("GET", "/datasets")["datasets"]
        return found

    def describe(self, dataset: str) -> dict[str, Any]:
        """A dataset: columns, ranges, keys, unit, promise; nothing of its rows."""
        found: dict[str, Any] = self._transport.call("GET", f"/datasets/{dataset}")
        return found

    def grants(self) -> list[dict[str, Any]]:
        """What I may spend, on what, until when, and what is left of it."""
        found: list[dict[str, Any]] = self._transport.call("GET", "/grants")["grants"]
        return found

    def table(self, dataset: str, *, block: str | None = None) -> RemoteTable:
        """A dataset with the verbs of a protected table; what they build is asked of the server."""
        from mosha.client.table import remote_table  # noqa: PLC0415  (SQL needs no tables on this side)

        return remote_table(self, self.describe(dataset), block)

    def preview(
        self,
        sql: str,
        *,
        dataset: str | None = None,
        rows: float | None = None,
        at_most: int | None = None,
        **price: object,
    ) -> dict[str, Any]:
        """Price for every payer, error bars for about `rows` rows, what is left, cheaper alternatives.

        Where nobody declared how many rows of one person count, `at_most` guesses it; without a guess there are no
        bars. Nothing is spent.
        """
        body = {"dataset": dataset or self._dataset_in(sql), "sql": sql, "price": _drop_absent(price)}
        return self.preview_body(body | _drop_absent({"rows": rows, "at_most": at_most}))

    def preview_body(self, body: Mapping[str, object]) -> dict[str, Any]:
        """The preview of a request that is written out as `body`, as the server takes it."""
        found: dict[str, Any] = self._transport.call("POST", "/previews", dict(body))
        return found

    def query(
        self,
        sql: str,
        *,
        dataset: str | None = None,
        block: str | None = None,
        key: str | None = None,
        purpose: str = "",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        rows: float | None = None,
        **options: object,
    ) -> Answer:
        """Answer a SELECT about one dataset, and wait for it.

        Args:
            sql: one SELECT.
            dataset: its name, where FROM alone does not say it.
            block: a part of the data, such as a year.
            key: makes a retry free: the same key finds the same answer.
            purpose: what a reviewer reads, where one is needed.
            epsilon: the price, or one of
            rho: the same, or
            within: how wide the widest error bar may be.
            delta: allows Gaussian noise.
            confidence: with `within`.
            rows: with `within`.
            options: ranges, keys and bars, as for `mosha.query`.
        """
        price = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "within": within,
            "confidence": confidence,
            "rows": rows,
        }
        body = {"dataset": dataset or self._dataset_in(sql), "sql": sql, "price": _drop_absent(price), **options}
        return self.release_body(body | _drop_absent({"block": block, "purpose": purpose or None}), key=key)

    def graph(self, dataset: str) -> RemoteGraph:
        """A graph with the verbs of a protected graph: `lab.graph("friends").triangles().release(epsilon=1)`."""
        from mosha.client.graph import remote_graph  # noqa: PLC0415  (SQL needs no graphs on this side)

        return remote_graph(self, self.describe(dataset))

    def synthesize(
        self,
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        key: str | None = None,
        purpose: str = "",
        **options: object,
    ) -> RemoteSynthetic:
        """A synthetic table, paid for once; its rows are drawn as often as one likes.

        Args:
            dataset: the table.
            epsilon: the price, with
            delta: as for any Gaussian noise; or
            rho: the same.
            key: makes a retry free.
            purpose: what a reviewer reads, where one is needed.
            options: columns, keys, between, bins, hierarchy, nulls, rows, method: as for `table.synthesize`.
        """
        price = _drop_absent({"epsilon": epsilon, "delta": delta, "rho": rho})
        body = {"dataset": dataset, "plan": {"synthesize": _drop_absent(options)}, "price": price}
        found = self._ask(body | ({"purpose": purpose} if purpose else {}), key=key)
        return RemoteSynthetic(self._transport, found["id"], found["answer"])

    def train(
        self,
        dataset: str,
        event: Event,
        *,
        name: str,
        key: str,
        delta: float | None = None,
        steps: int | None = None,
        unit: Unit | None = None,
        purpose: str = "",
        grant: str | None = None,
    ) -> RemoteTraining:
        """Pay for a training that runs here: the whole of it, before it begins. For programs that hold the data.

        Args:
            dataset: whose budget pays.
            event: what the whole training costs: `plan.event`.
            name: what the book calls it.
            key: makes a retry free.
            delta: at which the plan is sold as one piece, at its tight price; else it is charged as its events are.
            steps: how many steps were planned.
            unit: whom the plan hides, where that is not said by the dataset.
            purpose: what readers of the book should know.
            grant: who pays beside the dataset.
        """
        body = {
            "dataset": dataset,
            "event": event.to_dict(),
            "name": name,
            "steps": steps,
            "grant": grant,
            "delta": delta,
        }
        body |= {"unit": None if unit is None else unit.to_dict(), "purpose": purpose or None}
        return RemoteTraining(self._transport, self._transport.call("POST", "/trainings", _drop_absent(body), key=key))

    def release_body(self, body: Mapping[str, object], *, key: str | None) -> Answer:
        """Ask, wait, and answer as the library does; refusals are the library's errors."""
        return revive_answer(self._ask(body, key=key)["answer"])

    def _ask(self, body: Mapping[str, object], *, key: str | None) -> dict[str, Any]:
        """Ask, and wait for the end: the request that was answered."""
        key = key or secrets.token_hex(16)
        found: dict[str, Any] = self._transport.call("POST", "/requests", dict(body), key=key)
        pause, end = PAUSE, time.monotonic() + self._patience
        while not found["final"]:
            if time.monotonic() > end:
                waits = {"seconds": self._patience, "state": found["state"], "key": key}
                raise AnswerPending("client.too_slow", spent="waits", **waits)
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            found = self._transport.call("GET", f"/requests/{found['id']}")
        if found["state"] == "answered":
            return found
        if found.get("problem"):
            raise revive_problem(found["problem"])
        reason = (found.get("decision") or {}).get("reason", "")
        raise RequestDenied("client.denied", spent="nothing", state=found["state"], reason=reason)

    def answer(self, request: str) -> Answer:
        """The answer that a request of one's own was given, read again: that costs nothing.

        Args:
            request: its name, as `requests()` and the console's pages show it.
        """
        found: dict[str, Any] = self._transport.call("GET", f"/requests/{request}/answer")
        return revive_answer(found)

    def requests(self, *, mine: bool = True) -> list[dict[str, Any]]:
        """Questions that were asked, the newest first: only one's own where `mine` is true."""
        query = {"mine": "true"} if mine else {}
        found: list[dict[str, Any]] = self._transport.call("GET", "/requests", query=query)["requests"]
        return found

    def call(self, method: str, path: str, body: object = None, *, key: str | None = None) -> Any:
        """Anything else that the server's openapi.json knows."""
        return self._transport.call(method, path, body, key=key)

    def _dataset_in(self, sql: str) -> str:
        """The dataset that FROM names."""
        words = sql.replace("(", " ").replace(")", " ").replace(",", " ").split()
        names = {each["name"].lower(): each["name"] for each in self.datasets()}
        for before, word in pairwise(words):
            if before.lower() in ("from", "join") and word.strip('"').lower() in names:
                return str(names[word.strip('"').lower()])
        return next(iter(names.values()), "")

    def __repr__(self) -> str:
        return f"<Lab {self._transport.url}>"


def _drop_absent(options: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@explain_wrong_calls
def connect_to(url: str, *, token: str, timeout: float = 30.0, patience: float = 3600.0) -> Lab:
    """A server of Mosha, as a laboratory.

    Args:
        url: its address.
        token: what the server gave you.
        timeout: seconds that one request may take.
        patience: seconds that an answer is waited for, a review included; later, the same key finds it.

    >>> lab = connect_to("https://mosha.example", token="secret")
    >>> lab.datasets()
    Traceback (most recent call last):
    mosha.client.errors.ServerUnreachable: ...
    """
    return Lab(Transport(url, token, timeout=timeout), patience=patience)
