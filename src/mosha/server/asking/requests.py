"""Requests: a question that somebody wants to pay for, from the first POST to its end.

    waiting ──approved──► queued ──claimed──► running ──► answered | failed | refused
       │                    │                                  (paid)  (paid)   (nothing was paid)
       ├──► denied, expired │
       └──► withdrawn ◄─────┘

Guarantee:
    A request is found again by its principal and its Idempotency-Key, and pays under a ledger key that is made of both:
    however often it is sent, and whatever is lost of this store, the ledger charges it once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mosha.ledger import Ledger
from mosha.server.asking.previews import find_limits, is_above_most, needs_approval, prepare
from mosha.server.catalogue.datasets import find_dataset
from mosha.server.catalogue.grants import can_use, find_grant, has_other_blocks
from mosha.server.clock import as_text, now
from mosha.server.errors import BadRequest, Conflict, TooMany
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.people.principals import load_principal
from mosha.server.settings import Settings
from mosha.server.store.database import Database, Row, marks

__all__ = [
    "FINAL",
    "describe_request",
    "expire_requests",
    "find_request",
    "is_stale",
    "is_visible",
    "ledger_key",
    "list_requests",
    "request_id",
    "shown_state",
    "submit",
    "withdraw",
]

FINAL = ("answered", "failed", "refused", "denied", "expired", "withdrawn")
DAY = 86_400_000_000


def request_id(principal: str, key: object) -> str:
    """The name of the request that a principal makes under a key."""
    if not isinstance(key, str) or not (0 < len(key) <= 200 and key.isascii() and key.isprintable()):
        raise BadRequest("server.idempotency_key", parameter="Idempotency-Key")
    return f"r-{hashlib.sha256(f'{principal} {key}'.encode()).hexdigest()[:32]}"


SHOWN = {
    "running": "(state = 'running' OR (state = 'done' AND visible > ?))",
    "done": "(state = 'done' AND visible <= ?)",
}
"""States as they are seen from outside, in SQL: a request runs until its tick, whoever asks and however; `?` is now."""


def ledger_key(identity: str) -> str:
    return f"request {identity}"


def submit(
    database: Database,
    ledger: Ledger,
    settings: Settings,
    principal: Principal,
    body: Mapping[str, object],
    key: object,
) -> tuple[Row, bool]:
    """Ask: the request, and whether it is new. Refused without a trace where it cannot be paid for."""
    identity = request_id(principal.id, key)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    if (known := database.row("SELECT * FROM requests WHERE id = ?", identity)) is not None:
        return _check_same(known, digest), False
    _check_queue(database, settings, principal)
    ready = prepare(database, ledger, principal, body, paying=True)
    grant = ready.grant
    assert grant is not None
    quote = ready.quote()
    limits = find_limits(database, grant, quote)
    own = next(share for share in quote.shares if share.account == grant["account"])
    if is_above_most(limits, principal):
        said = (*(row["most_per_question"] for row, _ in limits), principal.scope.most_per_question)
        most = min(m for m in said if m is not None)
        raise Conflict(
            "server.above_most", parameter="price", spent="nothing", measure=own.measure, cost=own.cost, most=most
        )
    if not quote.fits:
        numbers: dict[str, Any] = {}
        if quote.lacking:
            numbers = {"measure": own.measure, "cost": own.cost, "left": max(0.0, own.left)}
        if quote.lacking and own.left_as is not None:
            numbers["left_as"] = own.left_as.to_dict()
        raise Conflict("server.not_enough", parameter="price", spent="nothing", **numbers)
    state = "waiting" if needs_approval(limits) else "queued"
    with database.transaction() as transaction:
        made = transaction.run(
            "INSERT INTO requests (id, principal, person, grant_id, dataset, block, body_hash, question, price,"
            " purpose, fingerprint, version, cost, measure, state, accounts, attempts, created, expires, hidden)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 0) ON CONFLICT DO NOTHING",
            *(identity, principal.id, principal.person, grant["id"], ready.dataset["name"], ready.block, digest),
            *(
                json.dumps(ready.said),
                json.dumps(ready.price),
                body.get("purpose") or "",
                ready.fingerprint,
                ready.dataset["version"],
            ),
            *(own.cost, own.measure, state, json.dumps(ready.accounts), now()),
            now() + settings.approval_days * DAY,
        )
    row = find_request(database, identity)
    return _check_same(row, digest), made == 1


def _check_same(row: Row, digest: str) -> Row:
    if row["body_hash"] != digest:
        raise BadRequest("server.key_reused", parameter="Idempotency-Key")
    return row


def _check_queue(database: Database, settings: Settings, principal: Principal) -> None:
    statement = (
        "SELECT (SELECT COUNT(*) FROM requests WHERE person = ? AND state IN ('waiting', 'queued', 'running'))"
        " + (SELECT COUNT(*) FROM requests WHERE person = ? AND visible > ?) AS many"
    )
    found = database.row(statement, principal.person, principal.person, now())
    if found and found["many"] >= settings.waiting_per_principal:
        raise TooMany("server.queue_full", most=settings.waiting_per_principal)


def find_request(database: Database, identity: str) -> Row:
    return database.find("SELECT * FROM requests WHERE id = ?", identity)


def list_requests(
    database: Database,
    *,
    principal: str | None = None,
    dataset: str | None = None,
    of: Sequence[str] | None = None,
    state: str | None = None,
    before: int | None = None,
    most: int = 50,
) -> list[Row]:
    """Requests, the newest first; with `of`, those about these datasets beside those of the principal."""
    where = {"principal": principal if of is None else None, "dataset": dataset}
    tests = [f"{name} = ?" for name, value in where.items() if value is not None]
    values: list[Any] = [value for value in where.values() if value is not None]
    if of is not None:
        tests.append(f"(principal = ? OR dataset IN ({marks(of)}))")
        values += [principal, *of]
    if state is not None:
        tests.append(SHOWN.get(state, "state = ?"))
        values.append(now() if state in SHOWN else state)
    if before is not None:
        tests.append("created < ?")
        values.append(before)
    chosen = f" WHERE {' AND '.join(tests)}" if tests else ""
    statement = f"SELECT * FROM requests{chosen} ORDER BY created DESC LIMIT ?"  # noqa: S608
    return database.rows(statement, *values, most)


def is_stale(database: Database, row: Row) -> bool:
    """Whether the dataset, its blocks, the grant or who may use it are not what they were when it was asked."""
    dataset, grant = find_dataset(database, row["dataset"]), find_grant(database, row["grant_id"])
    if dataset["version"] != row["version"] or dataset["state"] != "open" or grant["state"] != "open":
        return True
    asker = load_principal(database, row["principal"])
    if asker is None or not may(asker, "ask", Thing(row["dataset"])) or not can_use(database, asker, grant):
        return True
    return has_other_blocks(database, row)


def is_visible(row: Row) -> bool:
    """Whether the end of a request may be seen: its tick has come."""
    return row["state"] == "done" and row["visible"] is not None and row["visible"] <= now()


def shown_state(row: Row) -> str:
    """What a request looks like from outside: it runs until its tick."""
    if row["state"] != "done":
        return str(row["state"])
    return str(row["outcome"]) if is_visible(row) else "running"


def withdraw(database: Database, row: Row) -> Row:
    """Take a request back: free before it runs; afterwards it is only hidden, and stays paid.

    One that ran and is queued again, because its server was killed, may have been paid for: it goes on to its end.
    """
    change = "UPDATE requests SET state = 'withdrawn' WHERE id = ? AND state IN ('waiting', 'queued') AND attempts = 0"
    if database.run(change, row["id"]) == 0:
        database.run("UPDATE requests SET hidden = 1 WHERE id = ?", row["id"])
    return find_request(database, row["id"])


def expire_requests(database: Database) -> int:
    """End what waited for a decision for too long."""
    statement = (
        "UPDATE requests SET state = 'expired' WHERE state IN ('waiting', 'queued') AND attempts = 0 AND expires < ?"
    )
    return database.run(statement, now())


def describe_request(row: Row, *, own: bool) -> dict[str, Any]:
    """A request for those who may see it; its answer, and how it ended in detail, for its owner alone."""
    described: dict[str, Any] = {
        name: row[name] for name in ("id", "principal", "dataset", "block", "purpose", "version", "cost", "measure")
    }
    described |= {"grant": row["grant_id"], "question": json.loads(row["question"]), "price": json.loads(row["price"])}
    described |= {"state": shown_state(row), "created": as_text(row["created"]), "fingerprint": row["fingerprint"]}
    described["accounts"] = json.loads(row["accounts"])
    described["hidden"] = bool(row["hidden"])
    described["final"] = described["state"] in FINAL
    if is_visible(row):
        described["ended"] = as_text(row["visible"])
        result = json.loads(row["result"] or "{}")
        if own and not row["hidden"]:
            described |= {"answer": result.get("answer"), "problem": result.get("problem")}
        elif row["outcome"] == "refused":
            described["problem"] = result.get("problem")
    return described
