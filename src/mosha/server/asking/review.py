"""Review: what waits for a privacy officer, decided on public facts alone, noted in the ledger's chain.

A decision is bound to the fingerprint of the question, its price, the dataset's version and the grant. It is never
one's own, and it is over after some days.
"""

from __future__ import annotations

import json
from typing import Any

from mosha.ledger import Ledger
from mosha.server.asking.requests import DAY, find_request, is_stale, shown_state
from mosha.server.catalogue.grants import find_grant
from mosha.server.clock import now
from mosha.server.errors import Conflict
from mosha.server.people.permissions import Principal
from mosha.server.settings import Settings
from mosha.server.store.database import Database, Row

__all__ = ["decide", "facts_for_review"]


def decide(
    database: Database, ledger: Ledger, settings: Settings, reviewer: Principal, row: Row, *, verdict: str, reason: str
) -> Row:
    """Approve or deny a request that waits."""
    if row["state"] != "waiting":
        raise Conflict("server.wrong_state", state=shown_state(row))
    grant, approved = find_grant(database, row["grant_id"]), verdict == "approve"
    if approved and is_stale(database, row):
        raise Conflict("server.approval_stale")
    bound = {"fingerprint": row["fingerprint"], "price": json.loads(row["price"]), "version": row["version"]}
    bound |= {"grant": row["grant_id"]}
    said = {"request": row["id"], "by": reviewer.name, "verdict": verdict, "reason": reason} | bound
    note = ledger.note("decision/question", said, about=grant["account"])
    expires = now() + settings.approval_days * DAY
    with database.transaction() as transaction:
        change = "UPDATE requests SET state = ?, expires = ? WHERE id = ? AND state = 'waiting'"
        if transaction.run(change, "queued" if approved else "denied", expires, row["id"]) != 1:
            raise Conflict("server.wrong_state", state="decided")
        insert = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        transaction.run(insert, row["id"], reviewer.id, verdict, reason, json.dumps(bound), note.entry, now(), expires)
    return find_request(database, row["id"])


def facts_for_review(database: Database, ledger: Ledger, row: Row) -> dict[str, Any]:
    """What a reviewer sees beside the question: what would be left, and who asked the same before."""
    grant = find_grant(database, row["grant_id"])
    account = ledger.account(grant["account"])
    same = database.rows(
        "SELECT principal, COUNT(*) AS many FROM requests WHERE dataset = ? AND question = ? AND id <> ?"
        " GROUP BY principal ORDER BY principal",
        *(row["dataset"], row["question"], row["id"]),
    )
    return {
        "grant_left": account.remaining,
        "grant_left_as": None if account.remaining_as is None else account.remaining_as.to_dict(),
        "grant_limit": account.limit,
        "measure": account.rule.measure,
        "asked_before": sum(found["many"] for found in same),
        "asked_by": [found["principal"] for found in same][:10],
    }
