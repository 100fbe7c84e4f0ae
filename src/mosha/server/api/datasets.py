"""The catalogue: datasets, their declarations, blocks and grants."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from mosha.core.errors import LedgerError
from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import integer, number, one_of, record, text
from mosha.server.api.shapes import DECLARATION, GRANT, LIMITS, NEWEST, PAGE, PATHS, POPULATION, PROMISE, REASON, SOURCE
from mosha.server.catalogue.datasets import (
    add_version,
    change_dataset_state,
    countersign,
    describe_dataset,
    describe_proposed,
    find_author,
    find_changeable,
    find_dataset,
    page_datasets,
    propose_dataset,
)
from mosha.server.catalogue.grants import (
    add_block,
    check_booking,
    describe_booking,
    describe_grant,
    find_grant,
    grants_below,
    grants_of,
    make_grant,
    read_tree,
    revoke_grant,
)
from mosha.server.catalogue.series import charge_block
from mosha.server.catalogue.sources import check_source, open_place
from mosha.server.catalogue.webhooks import announce
from mosha.server.errors import BadRequest, NotFound
from mosha.server.people.permissions import Thing, may
from mosha.server.people.principals import find_agent_of, find_principal, owners_of

__all__ = ["OPERATIONS", "describe_budget"]


def _dataset_thing(call: Call) -> Thing:
    """The dataset in the path. Who registered it, or declared it last, owns it: they never countersign it."""
    row = find_dataset(call.service.database, call.path["dataset"])
    return Thing(row["name"], frozenset({row["curator"], find_author(call.service.database, row["name"])}))


def list_visible(call: Call) -> Reply:
    """One page of them; `next` is where the following page begins, and null where there is none."""
    database = call.service.database
    after, most = call.query.get("after", ""), call.query.get("limit", 100)
    rows, following = page_datasets(
        database, lambda name: may(call.principal, "dataset.read", Thing(name)), after, most
    )
    return Reply({"datasets": [describe_dataset(database, row, full=False) for row in rows], "next": following})


def read_dataset(call: Call) -> Reply:
    service, name = call.service, call.path["dataset"]
    described = describe_dataset(service.database, row := find_dataset(service.database, name))
    if row["version"] and may(call.principal, "budget.see", Thing(name)):
        described["budget"] = describe_budget(call, row["account"])
        if row["population"]:
            described["population_budget"] = describe_budget(call, row["population"])
        for found in service.database.rows("SELECT name, account FROM blocks WHERE dataset = ?", name):
            block = next(block for block in described["blocks"] if block["name"] == found["name"])
            block["budget"] = describe_budget(call, found["account"])
    if may(call.principal, "dataset.declare", Thing(name)):
        described["source"] = {part: value for part, value in json.loads(row["source"]).items() if part not in PATHS}
    if row["version"] and any(
        may(call.principal, f"dataset.{verb}", Thing(name)) for verb in ("declare", "countersign")
    ):
        described["proposed"] = describe_proposed(service.database, row)
    etag = f'"{described["declaration"]["sha256"][:32]}"'
    return Reply(described, headers={"ETag": etag})


def describe_budget(call: Call, account: str) -> dict[str, Any] | None:
    """What is spent of an account and left, for those who may see it."""
    try:
        found = call.service.ledger.account(account)
        numbers = {"measure": found.rule.measure, "spent": found.spent, "limit": found.limit, "left": found.remaining}
        numbers["left_as"] = None if found.remaining_as is None else found.remaining_as.to_dict()
        return {"account": account} | numbers | {"frozen": found.frozen, "retired": found.retired}
    except LedgerError:
        return None


def _look(call: Call, said: Any, kind: str = "table") -> tuple[dict[str, Any], dict[str, str]]:
    """The reference to a source as it is kept, and its columns; no row is read, and of an edge list nothing at all."""
    source = check_source(said, call.service.settings)
    if kind == "graph":
        return source, {}
    found = call.service.slots.look(open_place(source))
    if found["outcome"] != "looked":
        detail = str(found.get("error", {}).get("message", "")) if found["outcome"] == "refused" else ""
        raise BadRequest("server.source_unreadable", parameter="source", detail=detail)
    return source | {part: found[part] for part in ("identity", "origin") if found.get(part)}, found["columns"]


def look_at_source(call: Call) -> Reply:
    columns = _look(call, call.body["source"])[1].items()
    return Reply({"columns": [{"name": name, "type": kind} for name, kind in columns]})


def create_dataset(call: Call) -> Reply:
    service, said = call.service, dict(call.body)
    if said.get("again") and not (service.settings.two_signatures or call.principal.has("reviewer", None)):
        raise BadRequest("server.field_unknown", parameter="again")  # else a reviewer reads and signs it
    said.setdefault("timing", service.settings.timing)
    said.setdefault("deadline", service.settings.deadline)
    source, columns = _look(call, said["source"], said.get("kind", "table"))
    name = propose_dataset(service.database, said, source, columns, call.principal.id)
    if not service.settings.two_signatures:
        countersign(service.database, service.ledger, name, call.principal.name)
    announce(service.database, "dataset.proposed", dataset=name)
    return Reply(describe_dataset(service.database, find_dataset(service.database, name)), 201)


def declare(call: Call) -> Reply:
    """A new version of the declaration, in force once a reviewer has signed it."""
    service, name = call.service, call.path["dataset"]
    row = find_changeable(service.database, name)
    columns = _look(call, json.loads(row["source"]), row["kind"])[1]
    add_version(service.database, name, call.body["declaration"], columns, call.principal.id)
    if not service.settings.two_signatures:
        countersign(service.database, service.ledger, name, call.principal.name)
    return Reply(describe_dataset(service.database, find_dataset(service.database, name)), 201)


def sign(call: Call) -> Reply:
    service, name = call.service, call.path["dataset"]
    version, signer = call.query.get("version"), call.principal.name
    row = countersign(service.database, service.ledger, name, signer, version=version)
    return Reply(describe_dataset(service.database, row))


def _change(state: str) -> Any:
    def change(call: Call) -> Reply:
        service, name = call.service, call.path["dataset"]
        reason = call.body.get("reason", "")
        change_dataset_state(service.database, service.ledger, name, state, author=call.principal.name, reason=reason)
        return Reply(describe_dataset(service.database, find_dataset(service.database, name)))

    return change


def lift(call: Call) -> Reply:
    """Say that the failures of this dataset's questions were looked into."""
    ledger, row = call.service.ledger, find_dataset(call.service.database, call.path["dataset"])
    lifted = {"failures": ledger.account(row["account"]).lift()}
    said = {"dataset": row["name"], "by": call.principal.name, "reason": call.body["reason"]}
    ledger.note("dataset/lifted", said | lifted, about=row["account"])
    return Reply(lifted)


def create_block(call: Call) -> Reply:
    service, name = call.service, call.path["dataset"]
    book = (service.database, service.ledger, name)
    add_block(*book, call.body, call.principal.name, opened=partial(charge_block, *book))
    return Reply(describe_dataset(service.database, find_dataset(service.database, name)), 201)


def create_grant(call: Call) -> Reply:
    service, said = call.service, call.body
    if service.settings.overbooking == "refuse":
        check_booking(service.database, service.ledger, call.path["dataset"], said)
    row = make_grant(service.database, service.ledger, call.path["dataset"], said, call.principal.name)
    return Reply(describe_grant(row, service.ledger), 201)


def list_of_dataset(call: Call) -> Reply:
    """One page of grants with all that were taken from them, and how much is granted or taken by series in all."""
    database, ledger, name = call.service.database, call.service.ledger, call.path["dataset"]
    rows, following = call.read_page(read_tree, database, dataset=name)
    described = [describe_grant(row, ledger) for row in [*rows, *grants_below(database, rows)]]
    booked = describe_booking(database, ledger, name) if find_dataset(database, name)["version"] else None
    return Reply({"grants": described, "next": following, "booked": booked})


def list_mine(call: Call) -> Reply:
    rows = grants_of(call.service.database, holders=call.principal.identities)
    return Reply({"grants": [describe_grant(row, call.service.ledger) for row in rows]})


def _grant_thing(call: Call) -> Thing:
    row = find_grant(call.service.database, call.path["grant"])
    return Thing(row["dataset"], owners_of(call.service.database, row["principal"]))


def read_grant(call: Call) -> Reply:
    return Reply(describe_grant(find_grant(call.service.database, call.path["grant"]), call.service.ledger))


def delegate(call: Call) -> Reply:
    """A grant beneath a grant of mine: for a member of my team, or for an agent of mine."""
    service, above = call.service, find_grant(call.service.database, call.path["grant"])
    said = {**call.body, "principal": _find_below(call, above["principal"])}
    row = make_grant(service.database, service.ledger, above["dataset"], said, call.principal.name, parent=above)
    return Reply(describe_grant(row, service.ledger), 201)


def _find_below(call: Call, team: str) -> str:
    """The id of somebody whom a grant may be passed on to: an agent of the caller's, or a member of the team."""
    database, said = call.service.database, call.body["principal"]
    try:
        return str(find_agent_of(database, call.principal, said)["id"])
    except NotFound:
        holder = find_principal(database, said)["id"]
        find = "SELECT 1 AS found FROM members WHERE team = ? AND person = ?"
        if database.row(find, team, holder) is None:
            raise
        return str(holder)


def revoke(call: Call) -> Reply:
    service, author, reason = call.service, call.principal.name, call.query.get("reason", "")
    row = find_grant(service.database, call.path["grant"])
    revoke_grant(service.database, service.ledger, row, author=author, reason=reason)
    return Reply(describe_grant(find_grant(service.database, row["id"]), service.ledger))


def _dataset(name: str, method: str, path: str, verb: str, summary: str, handler: Any, **more: Any) -> Operation:
    more |= {"path": f"/datasets/{{dataset}}{path}", "thing": _dataset_thing, "tag": "catalogue"}
    return Operation(name=name, method=method, verb=verb, summary=summary, handler=handler, **more)


OPERATIONS = (
    Operation(
        name="listDatasets",
        method="GET",
        path="/datasets",
        verb="dataset.list",
        tag="catalogue",
        query=PAGE,
        summary="Datasets that I may see.",
        handler=list_visible,
    ),
    Operation(
        name="createDataset",
        method="POST",
        path="/datasets",
        verb="dataset.create",
        status=201,
        tag="catalogue",
        summary="Propose a dataset: its source, its declaration and its promise. A reviewer countersigns it.",
        handler=create_dataset,
        body=record(
            {
                "name": text(63, pattern="^[a-z][a-z0-9_]*$"),
                "source": SOURCE,
                "declaration": DECLARATION,
                "promise": record({}, {**LIMITS, **PROMISE}),
            },
            {
                "kind": one_of("table", "graph"),
                "title": text(200),
                "timing": one_of("ladder", "fixed", "off"),
                "deadline": number(least=1, most=3600),
                "population": POPULATION,
                "again": text(300),
            },
        ),
    ),
    Operation(
        name="lookAtSource",
        method="POST",
        path="/sources/columns",
        verb="source.look",
        tag="catalogue",
        summary="The names and types of the columns of a source. No row is read.",
        handler=look_at_source,
        body=record({"source": SOURCE}),
    ),
    _dataset(
        "readDataset", "GET", "", "dataset.read", "A dataset: its declaration and its promise, no row.", read_dataset
    ),
    _dataset(
        *("declareDataset", "PUT", "/declaration", "dataset.declare", "A new version of the declaration.", declare),
        body=record({"declaration": DECLARATION}),
        status=201,
    ),
    _dataset(
        "countersignDataset",
        "POST",
        "/countersign",
        "dataset.countersign",
        "Sign the newest declaration, if it is the `version` that was read; the first time, open the accounts.",
        sign,
        query={"version": integer(least=1)},
    ),
    _dataset(
        "freezeDataset",
        "POST",
        "/freeze",
        "dataset.freeze",
        "Answer nothing until it is thawed.",
        _change("frozen"),
        body=REASON,
    ),
    _dataset("thawDataset", "POST", "/thaw", "dataset.thaw", "Answer again.", _change("open"), body=REASON),
    _dataset(
        "retireDataset",
        "POST",
        "/retire",
        "dataset.retire",
        "Close a dataset and its account for good.",
        _change("retired"),
        body=REASON,
    ),
    _dataset(
        "liftDataset",
        "POST",
        "/lift",
        "dataset.lift",
        "Say that failures were looked into.",
        lift,
        body=record({"reason": text(300)}),
    ),
    _dataset(
        "createBlock",
        "POST",
        "/blocks",
        "block.create",
        "Open a block of the data, such as a year.",
        create_block,
        status=201,
        body=record(
            {
                "name": text(60, pattern="^[A-Za-z0-9_-]+$"),
                "condition": record({"column": text(200)}, {"equals": {}, "from": {}, "until": {}}),
            },
            {**LIMITS},
        ),
    ),
    _dataset("listGrants", "GET", "/grants", "budget.see", "Grants of a dataset.", list_of_dataset, query=NEWEST),
    _dataset(
        "createGrant",
        "POST",
        "/grants",
        "grant.create",
        "Grant somebody a part of the budget.",
        create_grant,
        body=GRANT,
        status=201,
    ),
    Operation(
        name="listMyGrants",
        method="GET",
        path="/grants",
        verb="grant.list",
        tag="catalogue",
        summary="Grants of mine and of my teams, and what is left of them.",
        handler=list_mine,
    ),
    Operation(
        name="readGrant",
        method="GET",
        path="/grants/{grant}",
        verb="grant.read",
        tag="catalogue",
        summary="A grant, and what is left of it.",
        handler=read_grant,
        thing=_grant_thing,
    ),
    Operation(
        name="delegateGrant",
        method="POST",
        path="/grants/{grant}/grants",
        verb="grant.delegate",
        status=201,
        tag="catalogue",
        summary="Grant a member of my team, or an agent of mine, a part of a grant of mine.",
        handler=delegate,
        thing=_grant_thing,
        body=GRANT,
    ),
    Operation(
        name="revokeGrant",
        method="DELETE",
        path="/grants/{grant}",
        verb="grant.revoke",
        tag="catalogue",
        summary="Close a grant and all beneath it.",
        handler=revoke,
        thing=_grant_thing,
        query={"reason": text(300, least=0)},
    ),
)
