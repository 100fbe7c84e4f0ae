"""Trainings that are charged from outside: a program reserves what it will cost, runs where the data are, and reports.

    reserved ──reports──► finished | failed | abandoned

The server never sees the model or the rows. What it guarantees is the book: the whole plan is charged to the dataset,
its blocks, its population and the grant, in one transaction, before the program is told that it may begin. That the
program does what its plan says is the word of whoever reserved it, and the chain says so. Nothing is handed back: the
server cannot see how often a program that ended early has met the data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mosha.core.errors import InvalidParameter, StepFailed
from mosha.core.event import Event, from_dict
from mosha.core.measurement import Measurement
from mosha.core.unit import Unit
from mosha.ledger import JointAccount, Ledger
from mosha.server.catalogue.datasets import find_dataset
from mosha.server.catalogue.grants import check_room, find_grant, paying_accounts
from mosha.server.clock import END_OF_TIME, as_text, now
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.store.database import Database, Row

__all__ = ["describe_training", "find_training", "list_trainings", "price_training", "report_training", "reserve"]

ENDS = ("finished", "failed", "abandoned")


def _read_event(said: Mapping[str, Any]) -> Event:
    try:
        return from_dict(said)
    except (InvalidParameter, TypeError, ValueError, KeyError):
        raise BadRequest("server.field_wrong", parameter="event", expected="plan.event.to_dict()") from None


def _payer(database: Database, ledger: Ledger, said: Mapping[str, Any]) -> tuple[JointAccount, list[str]]:
    """Everybody who pays: the grant, or the dataset itself, and all blocks that are read."""
    dataset = find_dataset(database, said["dataset"])
    if dataset["state"] != "open":
        raise Conflict("server.dataset_closed", state=dataset["state"])
    if said.get("grant") is not None:
        grant = find_grant(database, said["grant"])
        if grant["dataset"] != dataset["name"] or grant["state"] != "open":
            raise NotFound("server.not_found")
        accounts = paying_accounts(database, ledger, grant, None)
    else:
        blocks = database.rows("SELECT account FROM blocks WHERE dataset = ?", dataset["name"])
        accounts = [ledger.account(name) for name in (dataset["account"], *(block["account"] for block in blocks))]
    return ledger.together(accounts), [account.name for account in accounts]


def _measurement(ledger: Ledger, accounts: list[str], said: Mapping[str, Any]) -> Measurement:
    """The plan as the ledger sees it; its one step is the program's own report."""
    own = ledger.account(accounts[0]).unit
    unit = own if said.get("unit") is None else Unit.from_dict(said["unit"])

    def step(state: None, data: Mapping[str, object], ask: object, rng: object) -> tuple[dict[str, Any], None]:
        del ask, rng
        if data["state"] != "finished":
            raise StepFailed("server.training_ended", spent="paid")
        return {"steps": data["steps"]}, state

    name = f"training {said['name']}"
    event, delta = _read_event(said["event"]), said.get("delta")
    return Measurement(unit=unit, event=event, step=step, name=name, question=name, delta=delta)


def price_training(database: Database, ledger: Ledger, said: Mapping[str, object]) -> dict[str, Any]:
    """What a plan would cost everybody who pays, and how many of them would fit. Nothing is paid."""
    payer, accounts = _payer(database, ledger, said)
    measurement = _measurement(ledger, accounts, {"name": "preview"} | dict(said))
    if not payer.unit.covers(measurement.unit):
        payer.open(measurement)  # says why it is refused
    quote = payer.quote(measurement)
    shown = [share.to_dict() | {"fits": share.account not in quote.lacking} for share in quote.shares]
    return {"payers": shown, "fits": quote.fits, "more": payer.how_many(measurement)}


def reserve(
    database: Database, ledger: Ledger, said: Mapping[str, Any], author: str, key: object, *, overbooks: bool = True
) -> tuple[Row, bool]:
    """Pay for a whole training, once for each key; refused without a trace where it cannot be paid for."""
    if not isinstance(key, str) or not (0 < len(key) <= 200 and key.isascii() and key.isprintable()):
        raise BadRequest("server.idempotency_key", parameter="Idempotency-Key")
    identity = f"t-{hashlib.sha256(json.dumps([author, key]).encode()).hexdigest()[:32]}"
    content = {part: said.get(part) for part in ("event", "delta", "unit", "steps", "purpose", "grant")}
    known = database.row("SELECT * FROM trainings WHERE id = ?", identity)
    if known is not None:
        if (known["name"], known["dataset"], json.loads(known["content"])) != (said["name"], said["dataset"], content):
            raise BadRequest("server.key_reused", parameter="Idempotency-Key")
        return known, False
    payer, accounts = _payer(database, ledger, said)
    planned = _measurement(ledger, accounts, said)
    if not overbooks and said.get("grant") is None:
        share = next(share for share in payer.quote(planned).shares if share.account == accounts[0])
        check_room(database, ledger, said["dataset"], share.cost)
    payer.open(planned, key=f"training {identity}")
    note = {"training": identity, "name": said["name"], "dataset": said["dataset"], "on_the_word_of": author}
    ledger.note("training/reserved", note, about=accounts[0])
    made = database.run(
        "INSERT INTO trainings (id, dataset, name, content, accounts, state, steps, author, created)"
        " VALUES (?, ?, ?, ?, ?, 'reserved', 0, ?, ?) ON CONFLICT DO NOTHING",
        *(identity, said["dataset"], said["name"], json.dumps(content), json.dumps(accounts), author, now()),
    )
    return find_training(database, identity), made == 1


def report_training(database: Database, ledger: Ledger, row: Row, *, steps: int, state: str | None) -> Row:
    """Note how far a training is, and how it ended. What it reports never lowers what was paid."""
    content = json.loads(row["content"])
    if row["state"] in ENDS:
        if (steps, state) != (row["steps"], row["state"]):
            raise Conflict("server.wrong_state", state=row["state"])
        return row
    if steps < row["steps"] or (content["steps"] is not None and steps > content["steps"]):
        expected = f"{row['steps']}, ..., {content['steps'] if content['steps'] is not None else ''}"
        raise BadRequest("server.field_wrong", parameter="steps", expected=expected)
    if state is not None:
        _end(ledger, row, steps, state)
    change = "UPDATE trainings SET steps = ?, state = ?, ended = ? WHERE id = ? AND state = 'reserved'"
    database.run(change, steps, state or "reserved", now() if state is not None else None, row["id"])
    return find_training(database, row["id"])


def _end(ledger: Ledger, row: Row, steps: int, state: str) -> None:
    """Settle the payment: released where it finished, a failure of a paid step where it did not."""
    accounts = json.loads(row["accounts"])
    payer = ledger.together([ledger.account(name) for name in accounts])
    said = json.loads(row["content"]) | {"name": row["name"]}
    run = payer.open(_measurement(ledger, accounts, said), key=f"training {row['id']}")
    try:
        run.step({"state": state, "steps": steps})
    except StepFailed:
        if state == "finished":
            raise
    note = {"training": row["id"], "steps": steps, "end": state, "on_the_word_of": row["author"]}
    ledger.note("training/ended", note, about=accounts[0])


def find_training(database: Database, identity: str) -> Row:
    return database.find("SELECT * FROM trainings WHERE id = ?", identity)


def list_trainings(
    database: Database, *, dataset: str | None = None, before: int = END_OF_TIME, most: int = 200
) -> list[Row]:
    return database.list_newest("trainings", dataset=dataset, before=before, most=most)


def describe_training(row: Row) -> dict[str, Any]:
    """A training as the book knows it: its plan, who pays, how far it says it is."""
    described: dict[str, Any] = {part: row[part] for part in ("id", "name", "dataset", "state")}
    described |= {"reported_steps": row["steps"], "accounts": json.loads(row["accounts"])}
    described |= json.loads(row["content"]) | {"created": as_text(row["created"])}
    return described | {"ended": None if row["ended"] is None else as_text(row["ended"])}
