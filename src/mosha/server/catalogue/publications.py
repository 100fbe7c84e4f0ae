"""Publications: an answer that a reviewer has released to everybody, with the head of the chain at that moment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mosha.ledger import Ledger
from mosha.server.catalogue.datasets import declaration_of, find_dataset
from mosha.server.catalogue.declarations import describe_declaration
from mosha.server.clock import END_OF_TIME, as_text, now
from mosha.server.errors import Conflict, TooMany
from mosha.server.store.database import Database, Row, marks

__all__ = [
    "decide_publication",
    "describe_publication",
    "find_publication",
    "list_publications",
    "propose_publication",
]


MOST_OPEN = 50  # proposals of one author that wait for a decision


def propose_publication(database: Database, said: Mapping[str, Any], author: str) -> Row:
    """Write a proposal down that waits for a reviewer: one for each answer, and not too many of one author."""
    request = database.row("SELECT * FROM requests WHERE id = ?", said["request"])
    if request is None or request["outcome"] != "answered" or (request["visible"] or 0) > now() or request["hidden"]:
        raise Conflict("server.wrong_state", state="not_answered")
    with database.transaction() as transaction:
        if transaction.row("SELECT 1 AS found FROM publications WHERE slug = ?", said["slug"]):
            raise Conflict("server.exists", parameter="slug", name=said["slug"])
        if transaction.row(
            "SELECT 1 AS found FROM publications WHERE request = ? AND state = 'proposed'", said["request"]
        ):
            raise Conflict("server.wrong_state", parameter="request", state="at_review")
        waiting = transaction.row(
            "SELECT COUNT(*) AS many FROM publications WHERE author = ? AND state = 'proposed'", author
        )
        if waiting and waiting["many"] >= MOST_OPEN:
            raise TooMany("server.queue_full", most=MOST_OPEN)
        transaction.run(
            "INSERT INTO publications (slug, request, title, words, author, state, created)"
            " VALUES (?, ?, ?, ?, ?, 'proposed', ?)",
            *(said["slug"], said["request"], said["title"], json.dumps(said.get("words") or {}), author, now()),
        )
    return find_publication(database, said["slug"])


def find_publication(database: Database, slug: str) -> Row:
    return database.find("SELECT * FROM publications WHERE slug = ?", slug)


def list_publications(
    database: Database,
    *,
    state: str,
    of: Sequence[str] | None = None,
    before: int = END_OF_TIME,
    most: int = 200,
) -> list[Row]:
    """Publications in a state, the newest first; `of` these datasets, where it is said."""
    chosen = "" if of is None else f" AND r.dataset IN ({marks(of)})"
    statement = (
        "SELECT p.*, r.dataset FROM publications p JOIN requests r ON r.id = p.request"  # noqa: S608
        f" WHERE p.state = ? AND p.created < ?{chosen} ORDER BY p.created DESC LIMIT ?"
    )
    return database.rows(statement, state, before, *(of or ()), most)


def decide_publication(
    database: Database, ledger: Ledger, slug: str, reviewer: str, *, verdict: str, reason: str
) -> Row:
    """Publish or deny; the decision is noted in the chain, and the page shows the head after it."""
    row = find_publication(database, slug)
    if row["state"] != "proposed":
        raise Conflict("server.wrong_state", state=row["state"])
    said = {"slug": slug, "request": row["request"], "by": reviewer, "verdict": verdict, "reason": reason}
    ledger.note("decision/publication", said)
    head = str(ledger.head)
    state = "published" if verdict == "approve" else "denied"
    with database.transaction() as transaction:
        change = "UPDATE publications SET state = ?, approved = ?, head = ? WHERE slug = ? AND state = 'proposed'"
        if transaction.run(change, state, reviewer, head, slug) != 1:
            raise Conflict("server.wrong_state", state="decided")
        transaction.run("INSERT INTO heads (head, created) VALUES (?, ?) ON CONFLICT DO NOTHING", head, now())
    return find_publication(database, slug)


def describe_publication(database: Database, row: Row, *, full: bool = True) -> dict[str, Any]:
    described: dict[str, Any] = {name: row[name] for name in ("slug", "title", "state", "head")}
    described |= {"created": as_text(row["created"]), "words": json.loads(row["words"])}
    request = database.row("SELECT * FROM requests WHERE id = ?", row["request"]) or {}
    described["dataset"] = request.get("dataset")
    if not full:
        return described
    dataset = find_dataset(database, request["dataset"])
    kept, _ = declaration_of(database, dataset["name"], request["version"])
    described["hidden"] = describe_declaration(kept)["hidden"]
    described |= {"question": json.loads(request["question"]), "price": json.loads(request["price"])}
    described["promise"] = json.loads(dataset["promise"])["dataset"]
    if row["state"] == "published":
        described["answer"] = _without_others(json.loads(request["result"])["answer"])
    else:
        described["request"] = row["request"]
    return described


def _without_others(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without what its receipt says of accounts: those are of people, not of the public."""
    receipt = {part: answer["receipt"][part] for part in ("entry", "unit", "event") if part in answer["receipt"]}
    return answer | {"receipt": receipt}
