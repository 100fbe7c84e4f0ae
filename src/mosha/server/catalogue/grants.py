"""Grants: who may spend how much of a dataset, until when. Each is a new account beneath another; none is ever raised.

    population                          every account of a dataset is charged together with it
    dataset                             visits
    block                               visits/2026
    team > person > agent               visits/team-a/li/helper, each a grant beneath the other
    an agent's day                      visits/team-a/li/helper/2026-11-17

A question is paid from the innermost grant and from the blocks that it reads: by all above them, in one transaction.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from mosha.core.errors import LedgerError, UnknownAccount
from mosha.core.language import phrase
from mosha.ledger import Ledger, LedgerAccount
from mosha.server.catalogue.datasets import LIMITS, declaration_of, find_dataset
from mosha.server.clock import END_OF_TIME, as_text, now
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.people.permissions import Principal
from mosha.server.people.principals import find_principal, give_role
from mosha.server.store.database import Database, Row, marks

__all__ = [
    "add_block", "can_use", "check_booking", "check_room", "choose_grant", "describe_booking", "describe_grant",
    "find_grant", "find_grants_above", "grants_below", "grants_of", "has_other_blocks", "is_beneath", "make_grant",
    "paying_accounts", "read_tree", "revoke_beneath", "revoke_grant",
]  # fmt: skip


def make_grant(
    database: Database, ledger: Ledger, dataset: str, said: Mapping[str, Any], author: str, *, parent: Row | None = None
) -> Row:
    """Open an account for somebody beneath the dataset's, or beneath another grant."""
    row = find_dataset(database, dataset)
    if row["state"] != "open":
        raise Conflict("server.dataset_closed", state=row["state"])
    holder = find_principal(database, said["principal"])
    limits = {part: said[part] for part in ("epsilon", "delta", "rho", "mu") if said.get(part) is not None}
    if not limits:
        raise BadRequest("server.one_of", names="epsilon, rho, mu")
    if _end_of(said["expires"]) <= datetime.now(UTC).isoformat():
        raise BadRequest("server.field_wrong", parameter="expires", expected=phrase("server.a_day_to_come"))
    day = said.get("limit_per_day")
    if holder["kind"] == "agent" and not day:
        raise BadRequest("server.field_missing", parameter="limit_per_day")
    above = ledger.account(parent["account"] if parent else row["account"])
    identity = f"g-{secrets.token_hex(6)}"
    account = _open(ledger, above, holder["name"].rpartition("/")[2], said, limits)
    with database.transaction() as transaction:
        transaction.run(
            "INSERT INTO grants (id, dataset, principal, parent, account, limits, most_per_question, approve_above,"
            " limit_per_day, expires, purpose, state, author, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?)",
            *(identity, dataset, holder["id"], parent and parent["id"], account.name, json.dumps(limits)),
            *(said.get("most_per_question"), said.get("approve_above"), json.dumps(day) if day else None),
            *(said["expires"], said.get("purpose") or "", author, now()),
        )
    if holder["kind"] != "agent" and parent is None:  # members may ask as their team may, as long as they are of it
        give_role(database, holder["id"], "analyst", dataset)
    note = {"grant": identity, "to": holder["name"], "by": author, "expires": said["expires"]}
    ledger.note("grant/made", note, about=account)
    return find_grant(database, identity)


def check_booking(database: Database, ledger: Ledger, dataset: str, said: Mapping[str, Any]) -> None:
    """Refuse a grant where all grants together would be more than the dataset has: then each is a reserve.

    Grants that are over or were taken back count by what was spent of them, for that is gone.
    """
    part = next((p for p in ("epsilon", "rho", "mu") if said.get(p)), "epsilon")
    if json.loads(find_dataset(database, dataset)["promise"])["dataset"].get(part) is None:
        raise BadRequest("server.one_of", names="epsilon, rho, mu")
    check_room(database, ledger, dataset, float(said.get(part) or 0.0), parameter=part)


def check_room(database: Database, ledger: Ledger, dataset: str, cost: float, *, parameter: str = "epsilon") -> None:
    """Refuse what would take from that which others were promised: a grant, a series, a training."""
    booked = describe_booking(database, ledger, dataset)
    taken, limit = booked["granted"] + booked["elsewhere"], booked["limit"]
    if taken + cost > limit * (1 + 1e-12):
        raise Conflict(
            "server.overbooked", parameter=parameter, spent="nothing", granted=taken, wanted=cost, limit=limit
        )


def describe_booking(database: Database, ledger: Ledger, dataset: str) -> dict[str, float]:
    """What is granted of a dataset's budget, and what series and trainings took of it beside all grants.

    Grants that are over or were taken back count by what was spent of them, for that is gone.
    """
    above = ledger.account(find_dataset(database, dataset)["account"])
    today, granted, spent = datetime.now(UTC).isoformat(), 0.0, 0.0
    for grant in database.rows("SELECT * FROM grants WHERE dataset = ? AND parent IS NULL", dataset):
        account = ledger.account(grant["account"])
        spent += account.spent
        is_open = grant["state"] == "open" and _end_of(grant["expires"]) > today
        granted += account.limit if is_open else account.spent
    return {"granted": granted, "elsewhere": max(0.0, above.spent - spent), "limit": above.limit}


def _open(
    ledger: Ledger, above: LedgerAccount, name: str, said: Mapping[str, Any], limits: Mapping[str, Any]
) -> LedgerAccount:
    """A new account of that name: terms never change, so the next grant to the same person has another number."""
    number, chosen = 1, name
    while _is_known(ledger, f"{above.name}/{chosen}"):
        number += 1
        chosen = f"{name}-{number}"
    return above.grant(chosen, expires=said["expires"], purpose=said.get("purpose") or None, **limits)


def _is_known(ledger: Ledger, account: str) -> bool:
    try:
        ledger.account(account)
    except UnknownAccount:
        return False
    return True


def is_beneath(account: str, above: str) -> bool:
    """Whether an account is that one, or one beneath it.

    >>> is_beneath("visits/li/2026-11-17", "visits/li"), is_beneath("visits/2026", "visits/20")
    (True, False)
    """
    return account == above or account.startswith(above + "/")


def find_grant(database: Database, identity: str) -> Row:
    return database.find("SELECT * FROM grants WHERE id = ?", identity)


def find_grants_above(database: Database, grant: Row) -> list[Row]:
    """A grant and those it was taken from, one after the other: what was agreed for each of them holds for it too."""
    found = [grant]
    while found[-1]["parent"] is not None:
        found.append(find_grant(database, found[-1]["parent"]))
    return found


def grants_of(
    database: Database, *, dataset: str | None = None, holders: frozenset[str] | None = None, most: int = 500
) -> list[Row]:
    """Grants of a dataset, or of these principals, the newest first."""
    where, values = [], []
    if dataset is not None:
        where.append("dataset = ?")
        values.append(dataset)
    if holders is not None:
        listed = sorted(holders)
        where.append(f"principal IN ({marks(listed)})")
        values += listed
    chosen = f" WHERE {' AND '.join(where)}" if where else ""
    return database.rows(f"SELECT * FROM grants{chosen} ORDER BY created DESC, id LIMIT ?", *values, most)  # noqa: S608


def read_tree(database: Database, *, dataset: str, before: int = END_OF_TIME, most: int = 200) -> list[Row]:
    """Grants that are taken from a dataset itself, the newest first."""
    find = "SELECT * FROM grants WHERE dataset = ? AND parent IS NULL AND created < ? ORDER BY created DESC, id LIMIT ?"
    return database.rows(find, dataset, before, most)


def grants_below(database: Database, grants: Sequence[Row]) -> list[Row]:
    """All grants that are taken from these, from those, and so on."""
    found: list[Row] = []
    level = [grant["id"] for grant in grants]
    while level:
        find = f"SELECT * FROM grants WHERE parent IN ({marks(level)}) ORDER BY created DESC, id"  # noqa: S608
        below = database.rows(find, *level)
        found += below
        level = [grant["id"] for grant in below]
    return found


def revoke_grant(database: Database, ledger: Ledger, row: Row, *, author: str, reason: str) -> None:
    """Close a grant and all beneath it at once: what runs goes on, nothing new is paid."""
    account = ledger.account(row["account"])
    ledger.note("grant/revoked", {"grant": row["id"], "by": author, "reason": reason}, about=account)
    account.retire(reason=reason or None)
    beneath = row["account"] + "/"
    change = "UPDATE grants SET state = 'revoked' WHERE id = ? OR substr(account, 1, ?) = ?"
    database.run(change, row["id"], len(beneath), beneath)


def revoke_beneath(database: Database, ledger: Ledger, team: str, person: str, *, author: str, reason: str) -> None:
    """Close what was passed on of a team's grants to somebody, or to an agent of theirs: what is left is the team's."""
    find = (
        "SELECT g.* FROM grants g JOIN principals p ON p.id = g.principal"
        " WHERE g.state = 'open' AND g.parent IS NOT NULL AND (p.id = ? OR p.parent = ?) ORDER BY g.created"
    )
    for row in database.rows(find, person, person):
        above = find_grants_above(database, row)
        if any(grant["principal"] == team for grant in above) and find_grant(database, row["id"])["state"] == "open":
            revoke_grant(database, ledger, row, author=author, reason=reason)


def can_use(database: Database, principal: Principal, grant: Row) -> bool:
    """Whether a grant is theirs, and those from whom it was passed on would still pass it on to them.

    What comes from a team is good for those who belong to it, and for their agents, while the team is not disabled.
    """
    if grant["principal"] not in principal.identities:
        return False
    find = "SELECT kind FROM principals WHERE id = ?"
    belongs = (
        "SELECT 1 AS found FROM members m JOIN principals t ON t.id = m.team"
        " WHERE m.team = ? AND m.person = ? AND t.state = 'active'"
    )
    return not any(
        database.find(find, above["principal"])["kind"] == "team"
        and database.row(belongs, above["principal"], principal.person) is None
        for above in find_grants_above(database, grant)[1:]
    )


def choose_grant(database: Database, principal: Principal, dataset: str, wanted: str | None = None) -> Row:
    """The grant that pays: the one that is named, or the newest open one that is not over."""
    today = datetime.now(UTC).isoformat()
    for row in grants_of(database, dataset=dataset, holders=principal.identities):
        is_open = wanted in (None, row["id"]) and row["state"] == "open" and _end_of(row["expires"]) > today
        if is_open and can_use(database, principal, row):
            return row
    raise Conflict("server.no_grant")


def _end_of(expires: str) -> str:
    """A date lasts until the end of its day (UTC)."""
    return f"{expires}T23:59:59.999999+00:00" if len(expires) == 10 else expires


def paying_accounts(database: Database, ledger: Ledger, grant: Row, block: str | None) -> list[LedgerAccount]:
    """All that pay for a question under this grant: the grant, or its day, and the blocks that are read.

    A cap a day holds for all that was passed on of a grant: the days of those above pay too.
    """
    above = find_grants_above(database, grant)
    days = [
        _day_of(ledger.account(row["account"]), json.loads(row["limit_per_day"]))
        for row in above
        if row["limit_per_day"]
    ]
    own = days if grant["limit_per_day"] else [ledger.account(grant["account"]), *days]
    rows = database.rows("SELECT * FROM blocks WHERE dataset = ?", grant["dataset"])
    if block is not None:
        rows = [row for row in rows if row["name"] == block]
        if not rows:
            raise NotFound("server.not_found")
    return [*own, *(ledger.account(row["account"]) for row in rows)]


def has_other_blocks(database: Database, request: Row) -> bool:
    """Whether a question about all of the data would read a block that was opened after it was asked.

    Its rows would be read, and the block's account would not pay for them.
    """
    if request["block"] is not None:
        return False
    rows = database.rows("SELECT account FROM blocks WHERE dataset = ?", request["dataset"])
    return not {row["account"] for row in rows} <= set(json.loads(request["accounts"]))


def _day_of(account: LedgerAccount, limits: Mapping[str, Any]) -> LedgerAccount:
    """The account of today (UTC), which is over at midnight."""
    today = datetime.now(UTC).date()
    midnight = datetime.combine(today + timedelta(days=1), time(), UTC).isoformat()
    ends = account.expires
    expires = midnight if ends is None else min(midnight, ends.isoformat())
    return account.grant(today.isoformat(), expires=expires, **limits)


def add_block(
    database: Database,
    ledger: Ledger,
    dataset: str,
    said: Mapping[str, Any],
    author: str,
    *,
    opened: Callable[[LedgerAccount], None],
) -> None:
    """Open the account of a part of the data, such as a year: rows whose column lies in a public range.

    Before the block is there, `opened` is done with its account, such as paying for what will read it anyway.
    """
    row = find_dataset(database, dataset)
    if row["state"] != "open":
        raise Conflict("server.dataset_closed", state=row["state"])
    kept, _ = declaration_of(database, dataset, row["version"])
    _check_range(kept, said["condition"])
    limits = {part: said[part] for part in LIMITS if said.get(part) is not None}
    account = ledger.account(row["account"]).block(said["name"], **limits)
    opened(account)
    with database.transaction() as transaction:
        if transaction.row("SELECT 1 AS found FROM blocks WHERE dataset = ? AND name = ?", dataset, said["name"]):
            raise Conflict("server.exists", parameter="name", name=said["name"])
        transaction.run(
            "INSERT INTO blocks (dataset, name, condition, account, state, created) VALUES (?, ?, ?, ?, 'open', ?)",
            *(dataset, said["name"], json.dumps(said["condition"]), account.name, now()),
        )
    ledger.note("block/opened", {"dataset": dataset, "block": said["name"], "by": author}, about=account)


def _check_range(kept: Mapping[str, Any], condition: Mapping[str, Any]) -> None:
    """Refuse a part of the data that a question about it could not be asked of, or that holds nothing."""
    column = kept.get("columns", {}).get(condition["column"])
    if column is None:
        raise BadRequest("server.field_unknown", parameter="condition.column")
    kind, parts = str(column.get("type", "text")), [p for p in ("equals", "from", "until") if p in condition]
    ends = [_read_end(condition[part], kind, f"condition.{part}") for part in parts]
    if not ends:
        raise BadRequest("server.one_of", parameter="condition.from", names="equals, from, until")
    if "from" in condition and "until" in condition and not ends[-2] < ends[-1]:
        raise BadRequest("server.field_wrong", parameter="condition.until", expected=phrase("server.after_from"))


def _read_end(value: Any, kind: str, parameter: str) -> Any:
    """A value as its column compares it."""
    wanted = {
        "date": "a_day",
        "timestamp": "a_day",
        "instant": "a_day",
        "text": "kind_string",
        "boolean": "kind_boolean",
    }
    try:
        if kind == "date":
            return date.fromisoformat(value)
        if kind in ("timestamp", "instant"):
            return datetime.fromisoformat(value)
        fits = isinstance(value, bool) if kind == "boolean" else not isinstance(value, bool)
        if fits and isinstance(value, str if kind == "text" else int | float):
            return value
    except (TypeError, ValueError):
        pass
    raise BadRequest(
        "server.field_wrong", parameter=parameter, expected=phrase(f"server.{wanted.get(kind, 'a_number')}")
    )


def describe_grant(row: Row, ledger: Ledger | None = None) -> dict[str, Any]:
    """A grant; with the ledger, also what is spent of it and left."""
    described = {
        name: row[name]
        for name in (
            "id",
            "dataset",
            "principal",
            "parent",
            "account",
            "most_per_question",
            "approve_above",
            "expires",
            "purpose",
            "state",
        )
    }
    described |= {"limits": json.loads(row["limits"]), "created": as_text(row["created"])}
    described["limit_per_day"] = json.loads(row["limit_per_day"]) if row["limit_per_day"] else None
    if ledger is not None:
        try:
            described["budget"] = _budget_of(ledger.account(row["account"]))
        except LedgerError:
            described["budget"] = None
        if described["limit_per_day"]:
            described["today"] = _budget_of_today(ledger, row["account"])
    return described


def _budget_of(account: LedgerAccount) -> dict[str, Any]:
    return {
        "measure": account.rule.measure,
        "spent": account.spent,
        "limit": account.limit,
        "left": account.remaining,
        "left_as": None if account.remaining_as is None else account.remaining_as.to_dict(),
    }


def _budget_of_today(ledger: Ledger, account: str) -> dict[str, Any] | None:
    """What is spent and left today (UTC) of a cap a day; None before the first question of the day."""
    try:
        return _budget_of(ledger.account(f"{account}/{datetime.now(UTC).date().isoformat()}"))
    except LedgerError:
        return None
