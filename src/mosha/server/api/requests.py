"""Asking: previews, requests, decisions, answers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from mosha.core.errors import LedgerUnavailable
from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import array, integer, mapping, number, one_of, record, text
from mosha.server.asking.answers import LEVELS, MARK, notes_in, own_receipt, to_arrow, to_csv
from mosha.server.asking.requests import describe_request, find_request, is_visible, list_requests, submit, withdraw
from mosha.server.asking.review import decide, facts_for_review
from mosha.server.catalogue.grants import find_grant, is_beneath
from mosha.server.catalogue.webhooks import announce
from mosha.server.errors import Conflict, NotFound
from mosha.server.people.permissions import EVERYWHERE, RULES, Thing, may
from mosha.server.people.principals import owners_of
from mosha.server.problems import stored_problem
from mosha.server.store.database import Row

__all__ = ["OPERATIONS"]

SAMPLES = 12  # a minute, for each who asks: every one fits a model again


def _body_thing(call: Call) -> Thing:
    return Thing(call.body["dataset"])


def make_preview(call: Call) -> Reply:
    from mosha.server.asking.previews import preview  # noqa: PLC0415  (numerics are loaded with the first preview)

    service = call.service
    service.rates.take(call.principal.person, "preview", per_minute=service.settings.previews_per_minute)
    return Reply(preview(service.database, service.ledger, call.principal, call.body))


def ask(call: Call) -> Reply:
    service = call.service
    service.rates.take(call.principal.person, "request", per_minute=service.settings.requests_per_minute)
    row, new = submit(service.database, service.ledger, service.settings, call.principal, call.body, call.key)
    if new:
        service.slots.wake()
        if row["state"] == "waiting":
            announce(service.database, "request.waiting", request=row["id"], dataset=row["dataset"])
    described = _describe(call, row)
    return Reply(described, 202, headers={"Location": f"/api/v1/requests/{row['id']}"})


def _describe(call: Call, row: Row) -> dict[str, Any]:
    database = call.service.database
    thing = Thing(row["dataset"], owners_of(database, row["principal"]))
    described = describe_request(row, own=may(call.principal, "answer.read", thing))
    if described.get("problem"):
        described["problem"] = stored_problem(described["problem"], call.language, own=_own_accounts(call, row))
    if described.get("answer"):
        described["answer"]["notes"] = notes_in(described["answer"], call.language)
    if described.get("answer") and not may(call.principal, "budget.see", thing):
        account = find_grant(database, row["grant_id"])["account"]
        described["answer"]["receipt"] = own_receipt(described["answer"]["receipt"], account)
    if row["state"] == "waiting" and may(call.principal, "request.decide", thing):
        with suppress(LedgerUnavailable):  # what waits is listed all the same
            described["review"] = facts_for_review(database, call.service.ledger, row)
    decision = database.row("SELECT reviewer, verdict, reason, note FROM decisions WHERE request = ?", row["id"])
    described["decision"] = decision
    return described


def _own_accounts(call: Call, row: Row) -> list[str]:
    """Accounts of which the numbers may be told: those of the grant, not the dataset's nor a block's."""
    if row["principal"] != call.principal.id:
        return []
    own = find_grant(call.service.database, row["grant_id"])["account"]
    return [account for account in json.loads(row["accounts"]) if is_beneath(account, own)]


def _request_thing(call: Call) -> Thing:
    row = find_request(call.service.database, call.path["request"])
    return Thing(row["dataset"], owners_of(call.service.database, row["principal"]))


def read_request(call: Call) -> Reply:
    return Reply(_describe(call, find_request(call.service.database, call.path["request"])))


def list_visible(call: Call) -> Reply:
    """Requests of mine; for those who may see those of others, of all datasets that they may see them of."""
    database, query = call.service.database, call.query
    dataset = query.get("dataset")
    seen = call.principal.datasets_as(*RULES["request.read"].roles)
    mine = query.get("mine") == "true" or not seen
    if dataset is not None and not mine:
        mine = not may(call.principal, "request.read", Thing(dataset))
    everywhere = EVERYWHERE in seen and not mine
    rows = list_requests(
        database,
        principal=None if everywhere else call.principal.id,
        dataset=dataset,
        of=None if everywhere or mine else sorted(seen),
        state=query.get("state"),
        before=query.get("before"),
        most=query.get("limit", 50),
    )
    described = [_brief(call, row) for row in rows if _is_listed(call, row)]
    return Reply({"requests": described, "next": rows[-1]["created"] if rows else None})


def _is_listed(call: Call, row: Row) -> bool:
    """Whether a request stands in somebody's list: a token for some datasets lists those of these alone."""
    if not call.principal.scope.allows("request.list", row["dataset"]):
        return False
    return row["principal"] == call.principal.id or may(call.principal, "request.read", Thing(row["dataset"]))


def _brief(call: Call, row: Row) -> dict[str, Any]:
    described = _describe(call, row)
    described.pop("answer", None)
    return described


def take_back(call: Call) -> Reply:
    row = withdraw(call.service.database, find_request(call.service.database, call.path["request"]))
    return Reply(_describe(call, row))


def make_decision(call: Call) -> Reply:
    service = call.service
    row = decide(
        service.database,
        service.ledger,
        service.settings,
        call.principal,
        find_request(service.database, call.path["request"]),
        verdict=call.body["verdict"],
        reason=call.body["reason"],
    )
    service.slots.wake()
    announce(service.database, "request.decided", request=row["id"], dataset=row["dataset"])
    return Reply(_describe(call, row))


def read_answer(call: Call) -> Reply:
    """The answer alone: as JSON, or as CSV with a column of error bars for each number."""
    row = find_request(call.service.database, call.path["request"])
    if not is_visible(row) or row["outcome"] != "answered" or row["hidden"]:
        raise Conflict("server.wrong_state", state=describe_request(row, own=False)["state"])
    answer = _describe(call, row)["answer"]
    if call.query.get("format", "json") == "json":
        return Reply(answer)
    level = str(call.query.get("confidence", 0.95))
    if level not in answer["errors"]:
        raise NotFound("server.not_found")
    if (form := call.query["format"]) != "csv":
        name = f'attachment; filename="{row["id"]}.{form}"'
        media = {"arrow": "application/vnd.apache.arrow.file", "parquet": "application/vnd.apache.parquet"}[form]
        return Reply(to_arrow(answer, level, form), media=media, headers={"Content-Disposition": name})
    name = f'attachment; filename="{row["id"]}.csv"'
    marked = (MARK if call.query.get("bom") == "true" else "") + to_csv(answer, level)
    return Reply(marked, media="text/csv; charset=utf-8", headers={"Content-Disposition": name})


def draw_table(call: Call) -> Reply:
    """Rows of a synthetic table, as a file that says what it is: the same seed draws the same rows, for nothing."""
    service, row = call.service, find_request(call.service.database, call.path["request"])
    if not is_visible(row) or row["outcome"] != "answered" or row["hidden"]:
        raise Conflict("server.wrong_state", state=describe_request(row, own=False)["state"])
    if "synthesize" not in json.loads(row["question"]).get("plan", ()):
        raise NotFound("server.not_found")
    service.rates.take(call.principal.person, "sample", per_minute=SAMPLES)
    form = call.query.get("format", "csv")
    drawn = service.slots.sample(row, rows=call.query.get("rows"), seed=call.query.get("seed", 0), form=form)
    if form == "csv" and call.query.get("bom") == "true":
        drawn = MARK.encode() + drawn
    media = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}[form]
    name = f'attachment; filename="synthetic-{row["id"]}.{form}"'
    return Reply(drawn, media=media, headers={"Content-Disposition": name, "X-Synthetic": "true"})


_PRICE = record(
    {},
    {
        "epsilon": number(above=0, most=1e6),
        "delta": number(least=0, most=1),
        "rho": number(above=0, most=1e6),
        "within": number(above=0, most=1e300),
        "confidence": number(above=0, most=0.999999999),
        "rows": number(above=0, most=1e15),
        "at_most": integer(least=1, most=10**9),
    },
)
_QUESTION = {
    "sql": text(100_000),
    "plan": mapping(),
    "ranges": mapping(array({"type": "number"}, most=2)),
    "keys": mapping(),
    "bars": one_of("rows", "values"),
    "block": text(60),
    "grant": text(40),
}
_STATES = ("waiting", "queued", "running", "done", "denied", "expired", "withdrawn")


def _request(name: str, method: str, path: str, verb: str, summary: str, handler: Any, **more: Any) -> Operation:
    return Operation(
        name=name,
        method=method,
        path=f"/requests/{{request}}{path}",
        verb=verb,
        summary=summary,
        handler=handler,
        thing=_request_thing,
        tag="asking",
        **more,
    )


OPERATIONS = (
    Operation(
        name="preview",
        method="POST",
        path="/previews",
        verb="preview",
        tag="asking",
        thing=_body_thing,
        summary="Price for every payer, error bars, what is left, cheaper and better alternatives. No data are read.",
        handler=make_preview,
        body=record(
            {"dataset": text(63), "price": _PRICE},
            {
                **_QUESTION,
                "confidence": number(above=0, most=0.999999999),
                "rows": number(above=0, most=1e15),
                "at_most": integer(least=1, most=10**9),
            },
        ),
    ),
    Operation(
        name="ask",
        method="POST",
        path="/requests",
        verb="ask",
        status=202,
        tag="asking",
        spends=True,
        thing=_body_thing,
        summary="Ask: pays, and answers as a job. The header Idempotency-Key makes every retry free.",
        handler=ask,
        body=record({"dataset": text(63), "price": _PRICE}, {**_QUESTION, "purpose": text(2000, least=0)}),
    ),
    Operation(
        name="listRequests",
        method="GET",
        path="/requests",
        verb="request.list",
        tag="asking",
        handler=list_visible,
        summary="Requests, the newest first.",
        query={
            "mine": one_of("true", "false"),
            "dataset": text(63),
            "state": one_of(*_STATES),
            "before": integer(),
            "limit": integer(least=1, most=200),
        },
    ),
    _request(
        "readRequest",
        "GET",
        "",
        "request.read",
        "A request; its answer appears at its tick, to its owner.",
        read_request,
    ),
    _request(
        "withdrawRequest",
        "POST",
        "/withdraw",
        "request.withdraw",
        "Take a request back; once it runs, only hide it.",
        take_back,
    ),
    _request(
        "decideRequest",
        "POST",
        "/decision",
        "request.decide",
        "Approve or deny a request that waits.",
        make_decision,
        body=record({"verdict": one_of("approve", "deny"), "reason": text(2000)}),
    ),
    _request(
        "readAnswer",
        "GET",
        "/answer",
        "answer.read",
        "The answer alone, as JSON, CSV, Arrow or Parquet.",
        read_answer,
        query={
            "format": one_of("json", "csv", "arrow", "parquet"),
            "confidence": {"type": "number", "enum": list(LEVELS)},
            "bom": one_of("true", "false"),
        },
    ),
    _request(
        "drawSyntheticTable",
        "GET",
        "/table",
        "answer.read",
        "Rows of a synthetic table as CSV or Parquet, labeled as what they are. Free, as often as one likes.",
        draw_table,
        query={
            "format": one_of("csv", "parquet"),
            "rows": integer(least=1, most=1_000_000),
            "seed": integer(least=0, most=2**31),
            "bom": one_of("true", "false"),
        },
    ),
)
