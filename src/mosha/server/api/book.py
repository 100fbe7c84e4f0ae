"""The ledger as its readers see it: head, rows, statements, verification; and what was published."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mosha.core.errors import UnknownAccount
from mosha.ledger.publishing.statement import Statement
from mosha.ledger.terms.weakness import Weakness
from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.registry import as_file, complete_entry, draw_entry
from mosha.server.api.schemas import integer, one_of, record, text
from mosha.server.api.shapes import NEWEST
from mosha.server.asking.answers import notes_in
from mosha.server.asking.requests import find_request
from mosha.server.catalogue.datasets import list_promises_beside
from mosha.server.catalogue.publications import (
    decide_publication,
    describe_publication,
    find_publication,
    list_publications,
    propose_publication,
)
from mosha.server.catalogue.webhooks import announce
from mosha.server.clock import as_text
from mosha.server.errors import NotFound
from mosha.server.people.permissions import EVERYWHERE, RULES, Thing, may
from mosha.server.people.principals import owners_of

__all__ = ["OPERATIONS"]


def read_head(call: Call) -> Reply:
    """The head, for those who may read the chain; for everybody else that of the last full minute.

    The chain grows when a question is paid and when its answer is released: whoever saw every row at once would know
    how long the data were worked on, before the answer's tick.
    """
    service, live = call.service, may(call.principal, "ledger.read", Thing())
    return Reply({"head": str(service.ledger.head if live else service.public.find_head())})


def read_entries(call: Call) -> Reply:
    """Rows of the chain after a place: payments and decisions, nothing private. Answers that were kept are left out."""
    after, most = call.query.get("after", 0), call.query.get("limit", 100)
    entries = call.service.ledger.entries(after, most=most)
    described = []
    for entry in entries:
        content = entry.content()
        content.pop("answer", None)
        described.append(
            {
                "sequence": entry.sequence,
                "at": as_text(entry.at),
                "kind": entry.kind,
                "content": content,
                "hash": entry.hash,
            }
        )
    return Reply({"entries": described, "next": entries[-1].sequence if entries else after})


def verify(call: Call) -> Reply:
    call.service.rates.take("", "verify", per_minute=6)
    report = call.service.ledger.verify(head=call.body.get("head"))
    problems = list(report.problems)
    return Reply({"well": report.ok, "problems": problems[:100], "head": str(report.head)})


def _account_thing(call: Call) -> Thing:
    """An account belongs to the dataset at its root, and to whoever holds the grant."""
    name, database = call.query.get("account", ""), call.service.database
    grant = database.row("SELECT principal, dataset FROM grants WHERE account = ?", name)
    if grant is not None:
        return Thing(grant["dataset"], owners_of(database, grant["principal"]))
    dataset = database.row("SELECT name FROM datasets WHERE account = ?", name.split("/")[0])
    return Thing(dataset["name"] if dataset else None)


def _draw_up(call: Call, account: str) -> Statement:
    """A statement with the head that this reader may see: it is not another way to watch every row.

    It says of which promises the store knows that are about the same rows: the ledger cannot know.
    """
    statement, database = call.service.ledger.statement(account), call.service.database
    row = database.row("SELECT name FROM datasets WHERE account = ?", account.partition("/")[0])
    beside = [] if row is None else list_promises_beside(database, row["name"])
    said = tuple(Weakness("registered-again", other=other, detail=reason) for other, reason in beside)
    head = statement.head if may(call.principal, "ledger.read", Thing()) else call.service.public.find_head()
    return replace(statement, weaknesses=statement.weaknesses + said, head=head)


STATEMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A statement is one file that carries its own look, and no script at all."""


def read_statement(call: Call) -> Reply:
    name = call.query.get("account")
    if name is None:
        raise NotFound("server.not_found")
    try:
        statement = _draw_up(call, name)
    except UnknownAccount:
        raise NotFound("server.not_found") from None
    form = call.query.get("format", "json")
    if form == "json":
        return Reply(statement.to_dict())
    if form == "registry":
        dataset = _account_thing(call).dataset or ""
        return as_file(complete_entry(call.service, statement, dataset, {}), name)
    if form == "markdown":
        return Reply(statement.markdown(call.language), media="text/markdown; charset=utf-8")
    headers = {"Content-Security-Policy": STATEMENT_POLICY}
    return Reply(statement.to_html(call.language), media="text/html; charset=utf-8", headers=headers)


def propose(call: Call) -> Reply:
    row = propose_publication(call.service.database, call.body, call.principal.id)
    announce(call.service.database, "publication.proposed", publication=row["slug"])
    return Reply(describe_publication(call.service.database, row), 201)


def _proposed_thing(call: Call) -> Thing:
    row = find_request(call.service.database, call.body["request"])
    return Thing(row["dataset"], owners_of(call.service.database, row["principal"]))


def _publication_thing(call: Call) -> Thing:
    row = find_publication(call.service.database, call.path["slug"])
    request = find_request(call.service.database, row["request"])
    owners = owners_of(call.service.database, row["author"]) | owners_of(call.service.database, request["principal"])
    return Thing(request["dataset"], owners)


def decide(call: Call) -> Reply:
    row = decide_publication(
        call.service.database,
        call.service.ledger,
        call.path["slug"],
        call.principal.name,
        verdict=call.body["verdict"],
        reason=call.body["reason"],
    )
    return Reply(describe_publication(call.service.database, row))


def list_proposed(call: Call) -> Reply:
    seen = call.principal.datasets_as(*RULES["publication.list"].roles)
    of = None if EVERYWHERE in seen else sorted(seen)
    rows, following = call.read_page(list_publications, call.service.database, state="proposed", of=of)
    shown = [row for row in rows if may(call.principal, "publication.list", Thing(row["dataset"]))]
    described = [describe_publication(call.service.database, row) for row in shown]
    return Reply({"publications": described, "next": following})


def _of_many(_: Call) -> Thing:
    return Thing(anywhere=True)


def list_public(call: Call) -> Reply:
    rows, following = call.read_page(list_publications, call.service.database, state="published")
    described = [describe_publication(call.service.database, row, full=False) for row in rows]
    return Reply({"publications": described, "next": following})


def _find_published(call: Call) -> dict[str, Any]:
    row = find_publication(call.service.database, call.path["slug"])
    if row["state"] != "published":
        raise NotFound("server.not_found")
    return row


def read_public(call: Call) -> Reply:
    described = describe_publication(call.service.database, _find_published(call))
    described["answer"]["notes"] = notes_in(described["answer"], call.language)
    return Reply(described)


def read_registry(call: Call) -> Reply:
    """The entry of the public registry of deployments; words of the publication go before those of its dataset."""
    row = _find_published(call)
    request = find_request(call.service.database, row["request"])
    kind = "Synthetic data" if "synthesize" in json.loads(request["question"]).get("plan", {}) else "Summary statistics"
    said = {"name": row["title"], "data_product_type": kind} | json.loads(row["words"])
    entry = draw_entry(call, request["dataset"], said)
    return as_file(entry, row["slug"]) if call.query.get("format") == "yaml" else Reply(entry)


_ACCOUNT = {"account": text(300), "format": one_of("json", "html", "markdown", "registry")}
_SLUG = text(80, pattern="^[a-z0-9][a-z0-9-]*$")

OPERATIONS = (
    Operation(
        name="readHead",
        method="GET",
        path="/ledger/head",
        verb="ledger.head",
        tag="ledger",
        summary="The head of the chain: keep it, and no row up to it can change unnoticed.",
        handler=read_head,
    ),
    Operation(
        name="readEntries",
        method="GET",
        path="/ledger/entries",
        verb="ledger.read",
        tag="ledger",
        summary="Rows of the chain after a place.",
        handler=read_entries,
        query={"after": integer(), "limit": integer(least=1, most=1000)},
    ),
    Operation(
        name="verifyLedger",
        method="POST",
        path="/ledger/verify",
        verb="ledger.verify",
        tag="ledger",
        summary="Read the whole chain again.",
        handler=verify,
        body=record({}, {"head": text(200)}),
    ),
    Operation(
        name="readStatement",
        method="GET",
        path="/statements",
        verb="statement.read",
        tag="ledger",
        thing=_account_thing,
        summary="What was promised and released under an account.",
        handler=read_statement,
        query=_ACCOUNT,
    ),
    Operation(
        name="proposePublication",
        method="POST",
        path="/publications",
        verb="publication.propose",
        status=201,
        tag="public",
        summary="Propose to publish an answer.",
        handler=propose,
        thing=_proposed_thing,
        body=record(
            {"request": text(40), "slug": _SLUG, "title": text(200)},
            {
                "words": record(
                    {}, {"description": text(4000), "intended_use": text(2000), "data_product_region": text(200)}
                )
            },
        ),
    ),
    Operation(
        name="listProposedPublications",
        method="GET",
        path="/publications",
        verb="publication.list",
        tag="public",
        summary="What waits to be published.",
        handler=list_proposed,
        thing=_of_many,
        query=NEWEST,
    ),
    Operation(
        name="decidePublication",
        method="POST",
        path="/publications/{slug}/decision",
        verb="publication.decide",
        tag="public",
        summary="Publish an answer, or deny it.",
        handler=decide,
        thing=_publication_thing,
        body=record({"verdict": one_of("approve", "deny"), "reason": text(2000)}),
    ),
    Operation(
        name="listPublished",
        method="GET",
        path="/public",
        verb="publication.read",
        tag="public",
        summary="Answers that were published.",
        handler=list_public,
        query=NEWEST,
    ),
    Operation(
        name="readPublished",
        method="GET",
        path="/public/{slug}",
        verb="publication.read",
        tag="public",
        summary="A published answer: values, error bars, unit, promise, head of the chain.",
        handler=read_public,
    ),
    Operation(
        name="readRegistryEntry",
        method="GET",
        path="/public/{slug}/registry",
        verb="publication.read",
        tag="public",
        summary="What the public registry of deployments wants to know, as JSON or YAML.",
        handler=read_registry,
        query={"format": one_of("json", "yaml")},
    ),
)
