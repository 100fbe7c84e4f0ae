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
from mosha.client.transport import Transport
from mosha.core.errors import AnswerPending

if TYPE_CHECKING:
    from mosha.client.table import RemoteTable
    from mosha.tables import Answer

__all__ = ["Lab", "connect_to"]

PAUSE = 0.1
LONGEST_PAUSE = 2.0


class Lab:
    """The datasets of one server, for the holder of one token."""

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
        self, sql: str, *, dataset: str | None = None, rows: float | None = None, **price: object
    ) -> dict[str, Any]:
        """Price for every payer, error bars, what is left and cheaper alternatives. Nothing is spent."""
        body = {"dataset": dataset or self._dataset_in(sql), "sql": sql, "price": _said(price)}
        return self.preview_body(body | ({} if rows is None else {"rows": rows}))

    def preview_body(self, body: Mapping[str, object]) -> dict[str, Any]:
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
        **options: Any,
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
        body = {"dataset": dataset or self._dataset_in(sql), "sql": sql, "price": _said(price), **options}
        return self.release_body(body | _said({"block": block, "purpose": purpose or None}), key=key)

    def release_body(self, body: Mapping[str, object], *, key: str | None) -> Answer:
        """Ask, wait, and answer as the library does; refusals are the library's errors."""
        key = key or secrets.token_hex(16)
        found = self._transport.call("POST", "/requests", dict(body), key=key)
        pause, end = PAUSE, time.monotonic() + self._patience
        while not found["final"]:
            if time.monotonic() > end:
                waits = {"seconds": self._patience, "state": found["state"], "key": key}
                raise AnswerPending("client.too_slow", spent="waits", **waits)
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            found = self._transport.call("GET", f"/requests/{found['id']}")
        if found["state"] == "answered":
            return revive_answer(found["answer"])
        if found.get("problem"):
            raise revive_problem(found["problem"])
        reason = (found.get("decision") or {}).get("reason", "")
        raise RequestDenied("client.denied", spent="nothing", state=found["state"], reason=reason)

    def requests(self, *, mine: bool = True) -> list[dict[str, Any]]:
        """Questions that were asked, the newest first."""
        query = {"mine": "true"} if mine else {}
        found: list[dict[str, Any]] = self._transport.call("GET", "/requests", query=query)["requests"]
        return found

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
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


def _said(options: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def connect_to(url: str, *, token: str, timeout: float = 30.0, patience: float = 3600.0) -> Lab:
    """A server of Mosha, as a laboratory.

    Args:
        url: its address.
        token: what the server gave you.
        timeout: seconds that one request may take.
        patience: seconds that an answer is waited for, a review included; later, the same key finds it.
    """
    return Lab(Transport(url, token, timeout=timeout), patience=patience)
