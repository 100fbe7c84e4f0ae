"""Review and audit: what waits for a decision, and one line of time with payments beside decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator

from starlette.responses import Response, StreamingResponse

from mosha.core.errors import LedgerError
from mosha.core.language import translate
from mosha.ledger.paying.charge import Charge
from mosha.server.catalogue.details import list_missing, read_details
from mosha.server.errors import BadRequest
from mosha.server.pages.site import PAGE, Data, Visit

__all__ = ["ROUTES", "list_unsigned"]

_PAGE = 100
_WAITING = 20
_GUESSED_ROWS = 1000.0
_TOPICS = (
    *("block/opened", "dataset/declared", "dataset/frozen", "dataset/lifted", "dataset/open", "dataset/retired"),
    *("decision/publication", "decision/question", "grant/made", "grant/revoked", "principal/changed"),
    *("principal/made", "series/opened", "survey/opened", "training/ended", "training/reserved"),
    *("webhook/deleted", "webhook/made"),
)
_NUMBERS = ("grant", "request", "training")
_ORDER = (
    *(
        "verdict",
        "to",
        "name",
        "dataset",
        "version",
        "series",
        "survey",
        "block",
        "slug",
        "expires",
        "reason",
        "author",
    ),
    *("countersigned_by", "by", "on_the_word_of", *_NUMBERS),
)


def show_review(visit: Visit) -> Response:
    """What waits, decided on public facts alone: nothing here comes from the data."""
    if not visit.has("reviewer"):
        visit.do("readEntries")
    found = visit.do("listRequests", query={"state": "waiting", "limit": _WAITING} | visit.read_place())
    waiting = found["requests"]
    proposals = visit.do("listProposedPublications", query={"limit": _WAITING} | visit.read_place("proposed"))
    asked = [name for one in waiting for name in one.get("review", {}).get("asked_by", ())]
    return visit.render(
        "review.html",
        waiting=[one | {"forecast": _forecast(visit, one)} for one in waiting],
        more=found["next"] if len(waiting) == _WAITING else None,
        proposed=proposals["publications"],
        more_proposed=proposals["next"],
        unsigned=[visit.do("readDataset", path={"dataset": name}) for name in list_unsigned(visit)],
        people=visit.read_names([*(one["principal"] for one in waiting), *asked]),
    )


def list_unsigned(visit: Visit) -> list[str]:
    """Datasets whose newest declaration nobody signed as yet."""
    find = (
        "SELECT name FROM datasets d WHERE state NOT IN ('retired', 'refused') AND EXISTS (SELECT 1 FROM declarations v"
        " WHERE v.dataset = d.name AND v.version > d.version) ORDER BY name"
    )
    return [row["name"] for row in visit.service.database.rows(find) if visit.may("dataset.read", row["name"])]


def _forecast(visit: Visit, one: Data) -> Data:
    """The widest error bar that a question would have, for each of its numbers, and the rows that it is worked out for.

    They follow from the dataset's public size; where it has none they are a guess, and the page says so.
    """
    body = {"dataset": one["dataset"], "price": one["price"]} | one["question"]
    try:
        found = visit.do("preview", body=body)["forecast"]
        if found["rows_assumed"] is None:
            found = visit.do("preview", body=body | {"rows": _GUESSED_ROWS})["forecast"]
    except Exception:  # noqa: BLE001  (a question may have become impossible; the reviewer decides without the bar)
        return {"bars": {}, "rows": None, "declared": False}
    widest = {name: max((bar for bar in bars if bar is not None), default=None) for name, bars in found["bars"].items()}
    return {"bars": widest, "rows": found["rows_assumed"], "declared": found["rows_declared"] is not None}


def _read_decision(visit: Visit) -> Data:
    """What was decided, and why: nobody is turned away without a reason."""
    verdict, reason = visit.read_field("verdict"), visit.read_field("reason").strip()
    if verdict not in ("approve", "deny"):
        raise BadRequest("server.field_missing", parameter="verdict")
    if verdict == "deny" and not reason:
        raise BadRequest("server.field_missing", parameter="reason", spent="nothing")
    return {"verdict": verdict, "reason": reason or visit.say("no_reason")}


def decide(visit: Visit) -> Response:
    visit.do("decideRequest", path=visit.path, body=_read_decision(visit))
    return visit.go("/review")


def decide_publication(visit: Visit) -> Response:
    visit.do("decidePublication", path=visit.path, body=_read_decision(visit))
    return visit.go("/review")


def show_audit(visit: Visit) -> Response:
    return _show_audit(visit)


def _show_audit(visit: Visit, verified: Data | None = None) -> Response:
    head = visit.do("readHead")["head"]
    before = visit.read_place().get("before", int(head.split(":")[0]) + 1)
    after = max(0, before - 1 - _PAGE)
    entries = visit.do("readEntries", query={"after": after, "limit": max(1, min(_PAGE, before - 1 - after))})[
        "entries"
    ]
    rows = visit.service.database.rows("SELECT account FROM datasets WHERE kind = 'graph'")
    graphs = frozenset(row["account"] for row in rows)
    datasets = visit.do("listDatasets", query={"limit": PAGE, "after": visit.read_field("datasets_after")[:300]})
    names = [one["name"] for one in datasets["datasets"]]
    lines = [_line(entry, graphs) | _read_price(visit, entry) for entry in reversed(entries)]
    return visit.render(
        "audit.html",
        entries=lines,
        people=visit.read_names(value for line in lines for _, value in line.get("said", ()) if isinstance(value, str)),
        head=head,
        first=entries[0]["sequence"] if entries else 0,
        verified=verified,
        topics=_TOPICS,
        datasets=datasets["datasets"],
        more=datasets["next"],
        has_entry={name for name in names if not list_missing(read_details(visit.service.database, name))},
    )


def _line(entry: Data, graphs: frozenset[str]) -> Data:
    """One row of the chain in a few words: who, what, how much."""
    content = entry["content"]
    line: Data = {part: entry[part] for part in ("sequence", "at", "kind", "hash")} | {"words": ""}
    if entry["kind"] == "pay":
        line["accounts"] = [charge["account"] for charge in content.get("charges", ())]
        is_graph = any(account.split("/")[0] in graphs for account in line["accounts"])
        key, name = str(content.get("key") or ""), str(content.get("name") or "")
        line["what"] = _what(key, name, is_graph=is_graph)
        line["words"] = _name_paid(line["what"], key, name)
    elif entry["kind"] == "note":
        said = content.get("content") or {}
        line["topic"] = content.get("topic", "")
        shown = {key: value for key, value in said.items() if isinstance(value, str | int | float) and key != "sha256"}
        line["said"] = [(key, shown[key]) for key in sorted(shown, key=_place_said) if key != "fingerprint"]
    elif entry["kind"] == "open":
        line["words"] = str(content.get("name", ""))
    elif entry["kind"] == "release":
        line["words"] = f"#{content.get('payment', '')}"
    return line


def _read_price(visit: Visit, entry: Data) -> Data:
    """What an account paid first, or may pay in all, in the measure in which it counts."""
    content = entry["content"]
    charges: list[Data] = content.get("charges") or []
    name = charges[0]["account"] if charges else content.get("name") if entry["kind"] == "open" else None
    if name is None or entry["kind"] not in ("pay", "open"):
        return {}
    try:
        rule = visit.service.ledger.account(name).rule
    except LedgerError:  # an account that this server does not know, in a book that others write too
        return {}
    if entry["kind"] == "open":
        return {"measure": rule.measure, "amount": rule.amount_limit}
    paid = Charge.from_dict(charges[0])
    return {"measure": rule.measure, "amount": rule.amount_of(paid.price, paid.way)}


def _what(key: str, name: str, *, is_graph: bool) -> str:
    """What was paid for: told by the key under which it was paid, and by the dataset that paid."""
    if key.startswith("training "):
        return "training"
    if name.startswith("synthetic table"):
        return "synthetic"
    if is_graph:
        return "graph"
    return "question" if key.startswith("request ") else "series"


def _name_paid(what: str, key: str, name: str) -> str:
    """What people call that which was paid for; names that only programs know are left out."""
    if what == "series":
        return key.removeprefix("series ").partition(" ")[0] if key.startswith("series ") else ""
    return name.removeprefix("training ") if what in ("question", "training") else ""


def _place_said(key: str) -> int:
    """A decision is told as people tell it: what, to whom, until when, by whom; numbers of things come last."""
    return _ORDER.index(key) if key in _ORDER else len(_ORDER) - len(_NUMBERS)


def export(visit: Visit) -> Response:
    """The whole chain as it can be verified elsewhere, one row of JSON a line, read while it is sent."""
    visit.do("readEntries", query={"limit": 1})

    def lines() -> Iterator[str]:
        after = 0
        while entries := visit.do("readEntries", query={"after": after, "limit": 1000})["entries"]:
            after = entries[-1]["sequence"]
            yield "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)

    headers = {"Content-Disposition": 'attachment; filename="ledger.jsonl"', "Cache-Control": "no-store"}
    return StreamingResponse(lines(), 200, headers, "application/x-ndjson")


def verify(visit: Visit) -> Response:
    head = visit.read_field("head").strip()
    found = visit.do("verifyLedger", body={"head": head[:200]} if head else {})
    problems = [translate(one, visit.language) for one in found["problems"]]
    return _show_audit(visit, found | {"problems": problems})


ROUTES = (
    ("GET", "/review", show_review),
    ("POST", "/review/publications/{slug}", decide_publication, show_review),
    ("POST", "/review/{request}", decide, show_review),
    ("GET", "/audit", show_audit),
    ("GET", "/audit/export.jsonl", export),
    ("POST", "/audit", verify, show_audit),
)
