"""Review and audit: what waits for a decision, and one line of time with payments beside decisions."""

from __future__ import annotations

from starlette.responses import Response

from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_PAGE = 100


def show_review(visit: Visit) -> Response:
    """What waits, decided on public facts alone: nothing here comes from the data."""
    if not visit.has("reviewer"):
        visit.do("readEntries")
    waiting = visit.do("listRequests", query={"state": "waiting"})["requests"]
    proposed = [one for one in visit.do("listProposedPublications")["publications"] if one["state"] == "proposed"]
    rows = visit.service.database.rows("SELECT id, name FROM principals")
    datasets = visit.do("listDatasets")["datasets"]
    unsigned = [visit.do("readDataset", path={"dataset": one["name"]}) for one in datasets]
    return visit.render(
        "review.html",
        waiting=[one | {"forecast": _forecast(visit, one)} for one in waiting],
        proposed=proposed,
        unsigned=[one for one in unsigned if one["version"] != one["newest_version"]],
        people={row["id"]: row["name"] for row in rows},
    )


def _forecast(visit: Visit, one: Data) -> Data:
    """The widest error bar that a question would have, for each of its numbers."""
    body = {"dataset": one["dataset"], "price": one["price"], "rows": 1000.0} | one["question"]
    try:
        bars = visit.do("preview", body=body)["forecast"]["bars"]
    except Exception:  # noqa: BLE001  (a question may have become impossible; the reviewer decides without the bar)
        return {}
    return {name: max((bar for bar in found if bar is not None), default=None) for name, found in bars.items()}


def decide(visit: Visit) -> Response:
    verdict = "approve" if visit.typed("verdict") == "approve" else "deny"
    body = {"verdict": verdict, "reason": visit.typed("reason").strip() or visit.say("no_reason")}
    visit.do("decideRequest", path=visit.path, body=body)
    return visit.go("/review")


def decide_publication(visit: Visit) -> Response:
    verdict = "approve" if visit.typed("verdict") == "approve" else "deny"
    body = {"verdict": verdict, "reason": visit.typed("reason").strip() or visit.say("no_reason")}
    visit.do("decidePublication", path=visit.path, body=body)
    return visit.go("/review")


def show_audit(visit: Visit) -> Response:
    return _show_audit(visit)


def _show_audit(visit: Visit, verified: Data | None = None) -> Response:
    after = visit.typed("after")
    query = {"limit": _PAGE, "after": int(after) if after.isdecimal() and len(after) < 15 else 0}
    head = visit.do("readHead")["head"]
    if not after:
        query["after"] = max(0, int(head.split(":")[0]) - _PAGE)
    entries = visit.do("readEntries", query=query)["entries"]
    return visit.render(
        "audit.html",
        entries=[_line(entry) for entry in reversed(entries)],
        head=head,
        first=entries[0]["sequence"] if entries else 0,
        page=_PAGE,
        verified=verified,
        datasets=visit.do("listDatasets")["datasets"],
    )


def _line(entry: Data) -> Data:
    """One row of the chain in a few words: who, what, how much."""
    content = entry["content"]
    line: Data = {part: entry[part] for part in ("sequence", "at", "kind", "hash")} | {"words": ""}
    if entry["kind"] == "pay":
        line["words"] = str(content.get("name") or "")
        line["accounts"] = [charge["account"] for charge in content.get("charges", ())]
        line["epsilon"] = content.get("event", {}).get("epsilon")
    elif entry["kind"] == "note":
        said = content.get("content") or {}
        line["topic"] = content.get("topic", "")
        shown = {key: value for key, value in said.items() if isinstance(value, str | int | float) and key != "sha256"}
        line["words"] = " · ".join(f"{key}: {value}" for key, value in shown.items() if key != "fingerprint")
    elif entry["kind"] == "open":
        line["words"] = str(content.get("name", ""))
        line["epsilon"] = content.get("rule", {}).get("epsilon")
    elif entry["kind"] == "release":
        line["words"] = f"#{content.get('payment', '')}"
    return line


def verify(visit: Visit) -> Response:
    head = visit.typed("head").strip()
    return _show_audit(visit, visit.do("verifyLedger", body={"head": head[:200]} if head else {}))


ROUTES = (
    ("GET", "/review", show_review),
    ("POST", "/review/publications/{slug}", decide_publication),
    ("POST", "/review/{request}", decide),
    ("GET", "/audit", show_audit),
    ("POST", "/audit", verify),
)
