"""Series: one number, or one for each group, published step by step; paid for whole when it begins.

A series is a stream of the library (`mosha.streams`) on a dataset's account. Its whole horizon is charged in one
transaction before the first row is seen, so that questions can never starve it. The curator feeds it, one step after
another; a step that was published is never published otherwise. Its state lies sealed in a folder.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosha.core.errors import StateRefused
from mosha.core.language import phrase
from mosha.ledger import Ledger, LedgerAccount
from mosha.server.catalogue.datasets import declaration_of, find_dataset
from mosha.server.catalogue.declarations import describe_declaration
from mosha.server.catalogue.grants import check_room
from mosha.server.clock import END_OF_TIME, as_text, now
from mosha.server.errors import BadRequest, Conflict, StoreUnavailable
from mosha.server.store.database import Database, Row

__all__ = [
    "charge_block",
    "count_points",
    "create_series",
    "describe_series",
    "feed_series",
    "find_series",
    "list_series",
]

SECOND = 1_000_000
PATIENCE = 10.0  # seconds to wait for another process that feeds the same series
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_NAMED_BY = {"integer": (int, "server.kind_integer"), "text": (str, "server.kind_string")}
"""How people are named in rows: somebody who is 7 in one step and "7" in the next would count as two."""
_turn = threading.Lock()  # one step at a time in this process; the state's own lock keeps other processes out


def create_series(
    database: Database, ledger: Ledger, folder: Path, said: Mapping[str, Any], author: str, *, overbooks: bool = True
) -> Row:
    """Pay for a series and open it; refused without a trace where it cannot be paid for.

    Where the server does not overbook, it leaves untouched what was granted to others.
    """
    if not _NAME.fullmatch(said["name"]):
        raise BadRequest("server.field_wrong", parameter="name", expected=phrase("server.name_letters"))
    dataset = find_dataset(database, said["dataset"])
    if dataset["state"] != "open":
        raise Conflict("server.dataset_closed", state=dataset["state"])
    if database.row("SELECT 1 AS found FROM schedules WHERE name = ?", said["name"]):
        raise Conflict("server.exists", parameter="name", name=said["name"])
    content = {part: value for part, value in said.items() if part not in ("name", "dataset")}
    content |= {"version": dataset["version"], "accounts": _paying(database, dataset)}
    row = {"name": said["name"], "dataset": said["dataset"], "content": json.dumps(content)}
    if not overbooks:
        shares = ledger.account(dataset["account"]).quote(_stream(database, ledger, row)).shares
        cost = next(share.cost for share in shares if share.account == dataset["account"])
        check_room(database, ledger, said["dataset"], cost)
    with _turn, _serve(database, ledger, folder, row):
        database.run(
            "INSERT INTO schedules (id, dataset, name, content, state, author, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(said["name"], said["dataset"], said["name"], row["content"], "open", author, now()),
        )
    ledger.note("series/opened", {"series": said["name"], "dataset": said["dataset"], "by": author})
    return find_series(database, said["name"])


def _stream(database: Database, ledger: Ledger, row: Mapping[str, Any]) -> Any:
    """The stream that was declared: its ranges and groups are those of the dataset's declaration."""
    from mosha import streams  # noqa: PLC0415  (numerics are loaded with the first series)

    content = json.loads(row["content"])
    dataset = find_dataset(database, row["dataset"])
    kept, _ = declaration_of(database, row["dataset"], content["version"])
    unit, column = ledger.account(dataset["account"]).unit, content.get("column")
    options = {part: content[part] for part in ("epsilon", "delta", "rho") if content.get(part) is not None}
    options |= {"unit": unit, "horizon": int(content["horizon"]), "release": content.get("shows", "instant")}
    if content["measure"] == "count":
        return streams.counter(**options)
    declared = kept["columns"].get(column) or {}
    needed, meant = ("between", "a_ranged_column") if content["measure"] == "sum" else ("keys", "a_listed_column")
    if not isinstance(declared, Mapping) or needed not in declared:
        raise BadRequest("server.field_wrong", parameter="column", expected=phrase(f"server.{meant}"))
    if content["measure"] == "sum":
        return streams.total(between=tuple(declared["between"]), column=column, **options)
    return streams.histogram(keys=declared["keys"], column=column, **options)


def _serve(database: Database, ledger: Ledger, folder: Path, row: Mapping[str, Any]) -> Any:
    from mosha import streams  # noqa: PLC0415

    accounts = json.loads(row["content"]).get("accounts") or _paying(database, find_dataset(database, row["dataset"]))
    payer = ledger.together([ledger.account(account) for account in accounts])
    folder.mkdir(exist_ok=True, parents=True, mode=0o700)
    stream, end = _stream(database, ledger, row), time.monotonic() + PATIENCE
    while True:
        try:
            return streams.serve(payer, stream, name=f"series {row['name']}", state=folder / f"{row['name']}.state")
        except StateRefused as error:
            if error.code != "streams.state_in_use":
                raise
            if time.monotonic() > end:
                raise StoreUnavailable("server.store_unavailable") from None
            time.sleep(0.05)  # another process of this machine feeds it just now


def _paying(database: Database, dataset: Row) -> list[str]:
    """The accounts of a dataset and of all its blocks: a series reads the rows of each."""
    blocks = database.rows("SELECT account FROM blocks WHERE dataset = ? ORDER BY created", dataset["name"])
    return [dataset["account"], *(block["account"] for block in blocks)]


def charge_block(database: Database, ledger: Ledger, dataset: str, block: LedgerAccount) -> None:
    """Let a new block pay for each series that has steps to come, whole, as the other blocks did when it began.

    The dataset above it pays once more, for nothing is paid by a block alone; where that is too much, no block is
    opened. So no step finds later that it has to be paid for again.
    """
    for row in database.rows("SELECT * FROM schedules WHERE dataset = ?", dataset):
        content = json.loads(row["content"])
        if count_points(database, row) >= content["horizon"]:
            continue
        if "accounts" not in content:  # of a server that did not write them down
            content["accounts"] = _paying(database, find_dataset(database, dataset))
            database.run("UPDATE schedules SET content = ? WHERE id = ?", json.dumps(content), row["id"])
        block.open(_stream(database, ledger, row), key=f"series {row['name']}")


def count_points(database: Database, row: Row) -> int:
    """How many steps were published, those that are not shown yet among them."""
    return int(
        (database.row("SELECT COUNT(*) AS many FROM points WHERE schedule = ?", row["id"]) or {"many": 0})["many"]
    )


def find_series(database: Database, name: str) -> Row:
    return database.find("SELECT * FROM schedules WHERE name = ?", name)


def list_series(
    database: Database, *, dataset: str | None = None, before: int = END_OF_TIME, most: int = 200
) -> list[Row]:
    return database.list_newest("schedules", dataset=dataset, before=before, most=most)


def feed_series(
    database: Database, ledger: Ledger, folder: Path, row: Row, step: int, rows: Mapping[str, object]
) -> dict[str, Any]:
    """Publish the next step; one that was published already is shown as it was, whatever rows come with it now."""
    with _turn:
        find = "SELECT * FROM points WHERE schedule = ? AND step = ?"
        known = database.row(find, row["id"], step)
        if known is not None:
            return _point(known)
        with _serve(database, ledger, folder, row) as service:
            # An answer that was computed before a crash, and not written down here, is asked for by its number.
            if step not in (service.taken, service.taken + 1) or step < 1:
                raise Conflict("server.series_step", parameter="step", expected=str(service.taken + 1))
            _check_rows(database, row, rows)
            release = service.step(dict(rows), number=step)
        value = json.dumps({"value": _as_json(release.value), "error": _as_json(release.error(0.95))})
        visible = (now() // SECOND + 2) * SECOND  # on a whole second: how long a step took is nobody's business
        keep = "INSERT INTO points (schedule, step, value, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        database.run(keep, row["id"], step, value, visible)
        found = database.row(find, row["id"], step)
        assert found is not None
        return _point(found)


def _check_rows(database: Database, row: Row, rows: Mapping[str, object]) -> None:
    """Whether rows have the columns that this series reads, of one length, and people named as their column says.

    So a step is not lost to a slip.
    """
    content = json.loads(row["content"])
    kept, _ = declaration_of(database, row["dataset"], content["version"])
    person = kept["unit"].get("person")
    needed = [name for name in (person, content.get("column")) if isinstance(name, str)]
    for name in needed:
        if name not in rows:
            raise BadRequest("server.field_missing", parameter=f"rows.{name}", spent="nothing")
    wanted = _NAMED_BY.get(str(kept["columns"].get(person, {}).get("type")))
    if wanted and not all(type(one) is wanted[0] for one in rows[str(person)]):  # type: ignore[attr-defined]
        expected = phrase(wanted[1])
        raise BadRequest("server.field_wrong", parameter=f"rows.{person}", expected=expected, spent="nothing")
    sizes = {len(column) if isinstance(column, Sequence) else 0 for column in rows.values()}
    if len(sizes) > 1:
        raise BadRequest("server.field_wrong", parameter="rows", expected=phrase("server.one_length"), spent="nothing")


def _as_json(value: object) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _point(row: Row) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(row["value"])
    return {"step": row["step"], "at": as_text(row["created"])} | said


def describe_series(database: Database, row: Row, *, full: bool = True) -> dict[str, Any]:
    """A series for everybody: what it shows, what it promises, and its points so far."""
    content = json.loads(row["content"])
    described: dict[str, Any] = {"name": row["name"], "dataset": row["dataset"], "created": as_text(row["created"])}
    described |= {"title": content.get("title") or row["name"], "horizon": content["horizon"]}
    described |= {"measure": content["measure"], "column": content.get("column")}
    described["shows"] = content.get("shows", "instant")
    if not full:
        return described
    kept, _ = declaration_of(database, row["dataset"], content["version"])
    described |= {"hidden": describe_declaration(kept)["hidden"], "unit": kept["unit"]}
    described["price"] = {part: content[part] for part in ("epsilon", "delta", "rho") if content.get(part) is not None}
    groups = (kept["columns"].get(content.get("column")) or {}).get("keys") if content["measure"] == "groups" else None
    described["groups"] = groups
    points = "SELECT * FROM points WHERE schedule = ? AND created <= ? ORDER BY step"
    described["points"] = [_point(found) for found in database.rows(points, row["id"], now())]
    return described
