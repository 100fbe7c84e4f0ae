"""Surveys in the local model: each device randomises its answer before it leaves; here the reports are counted.

Nobody has to be trusted with a truth, this server included: it never gets one. No account pays, because the promise is
kept on the device.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mosha.core.language import phrase
from mosha.local import Collector, Survey
from mosha.server.clock import END_OF_TIME, as_text, now
from mosha.server.errors import BadRequest, Conflict
from mosha.server.store.database import Database, Row, Transaction

__all__ = [
    "add_reports",
    "close_survey",
    "describe_survey",
    "device_part",
    "estimate_survey",
    "find_survey",
    "list_surveys",
    "open_survey",
]

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def open_survey(database: Database, said: Mapping[str, Any], author: str) -> Row:
    if not _NAME.fullmatch(said["name"]):
        raise BadRequest("server.field_wrong", parameter="name", expected=phrase("server.name_letters"))
    survey = Survey.from_json(json.dumps(said["survey"]))
    with database.transaction() as transaction:
        if transaction.row("SELECT 1 AS found FROM surveys WHERE name = ?", said["name"]):
            raise Conflict("server.exists", parameter="name", name=said["name"])
        transaction.run(
            "INSERT INTO surveys (name, title, content, state, author, collected, reports, created, tickets)"
            " VALUES (?, ?, ?, 'open', ?, ?, 0, ?, ?)",
            *(said["name"], said["title"], survey.to_json(), author, _state(survey.collector()), now()),
            said.get("tickets", "optional"),
        )
    return find_survey(database, said["name"])


def _state(collector: Collector) -> str:
    return base64.b64encode(collector.to_bytes()).decode()


def _collector(row: Row) -> Collector:
    return Collector.from_bytes(Survey.from_json(row["content"]), base64.b64decode(row["collected"]))


def find_survey(database: Database, name: str) -> Row:
    return database.find("SELECT * FROM surveys WHERE name = ?", name)


def list_surveys(database: Database, *, before: int = END_OF_TIME, most: int = 200) -> list[Row]:
    return database.list_newest("surveys", before=before, most=most)


def add_reports(database: Database, name: str, reports: Sequence[str], tickets: Sequence[str] | None) -> dict[str, int]:
    """Count reports in their wire format; how many were taken. What is not this survey's own is refused and counted.

    A report with a ticket counts once. Without one, a copy counts as often as it is sent: two devices may well say the
    same, so nobody can tell. A survey that asks for tickets takes no report without. Each ticket is kept, and not a
    filter of them: made-up ones make no honest one look used.
    """
    try:
        found = [base64.b64decode(report, validate=True) for report in reports]
        passes = None if tickets is None else [base64.b64decode(ticket, validate=True) for ticket in tickets]
    except (binascii.Error, ValueError):
        raise BadRequest("server.field_wrong", parameter="reports", expected="base64") from None
    with database.transaction() as transaction:
        lock = " FOR UPDATE" if database.shared else ""
        row = transaction.row(f"SELECT * FROM surveys WHERE name = ?{lock}", name)  # noqa: S608
        if row is None or row["state"] != "open":
            raise Conflict("server.wrong_state", state="closed")
        if passes is not None and len(passes) != len(found):
            raise BadRequest("local.ticket_per_report", parameter="tickets")
        if row["tickets"] == "required" and passes is None:
            raise BadRequest("server.tickets_needed", parameter="tickets")
        collector = _collector(row)
        if passes is not None:
            fresh = [report for report, ticket in zip(found, passes, strict=True) if _use(transaction, name, ticket)]
            collector.rejected["replayed"] += len(found) - len(fresh)
        taken = collector.add(found if passes is None else fresh)
        change = "UPDATE surveys SET collected = ?, reports = ? WHERE name = ?"
        transaction.run(change, _state(collector), collector.accepted, name)
    return {"accepted": taken, "rejected": len(found) - taken}


def _use(transaction: Transaction, survey: str, ticket: bytes) -> bool:
    """Whether a ticket is new; it is used up by this."""
    statement = "INSERT INTO tickets (survey, hash) VALUES (?, ?) ON CONFLICT DO NOTHING"
    return transaction.run(statement, survey, hashlib.sha256(ticket).hexdigest()) == 1


def close_survey(database: Database, name: str) -> Row:
    database.run("UPDATE surveys SET state = 'closed' WHERE name = ?", name)
    return find_survey(database, name)


def estimate_survey(row: Row) -> dict[str, Any]:
    """The estimate with its error bars, and how many reports were taken and refused."""
    collector = _collector(row)
    numbers = {"accepted": collector.accepted, "rejected": dict(collector.rejected)}
    return numbers | {"estimate": _as_json(collector.estimate()) if collector.has_enough else None}


def _as_json(estimate: Any) -> Any:
    if isinstance(estimate, dict):
        return {name: _as_json(part) for name, part in estimate.items()}
    if hasattr(estimate, "table"):
        return estimate.table()
    if hasattr(estimate, "quantile"):
        return {"mean": estimate.mean} | {
            f"{share:g}": estimate.quantile(share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)
        }
    return {"mean": estimate.value, "error": estimate.error(), "reports": estimate.reports}


def describe_survey(row: Row) -> dict[str, Any]:
    described = {name: row[name] for name in ("name", "title", "state", "reports", "tickets")}
    survey = json.loads(row["content"])
    return described | {"survey": survey, "device": device_part(survey), "created": as_text(row["created"])}


def device_part(survey: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `survey.js` needs in order to answer; None where the survey is of a kind that it does not speak."""
    if survey.get("survey") != "frequency" or survey.get("protocol") != "k-ary":
        return None
    made = Survey.from_json(json.dumps(survey))
    values = [str(value) for value in made.values]  # type: ignore[attr-defined]
    if len(values) > 100:
        return None
    top, bottom = survey["odds"]
    tag = made.report(made.values[0])[0]  # type: ignore[attr-defined]
    parts = {"size": len(values), "top": str(top), "bottom": str(bottom), "width": made.randomizer.width, "tag": tag}
    return parts | {"values": values}
