"""Datasets: proposed by a curator, opened by a reviewer's signature, frozen, thawed and retired.

Opening a dataset opens its account in the ledger, and that of its population: the promise. Both stay what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from mosha.core.language import phrase
from mosha.core.unit import Unit
from mosha.ledger import Ledger, LedgerAccount
from mosha.server.catalogue.declarations import check_declaration, describe_declaration, sha256_of, unit_of
from mosha.server.catalogue.graphs import check_graph, is_graph
from mosha.server.catalogue.sources import hash_source, shares_rows
from mosha.server.clock import as_text, now
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.store.database import Database, Row, Transaction

__all__ = [
    "add_version",
    "change_dataset_state",
    "countersign",
    "declaration_of",
    "describe_dataset",
    "describe_proposed",
    "find_author",
    "find_changeable",
    "find_dataset",
    "list_datasets",
    "list_promises_beside",
    "page_datasets",
    "propose_dataset",
]

BATCH, LOOKS = 200, 20  # so many datasets are read at once for a page, and so often
LIMITS = ("epsilon", "delta", "rho", "mu", "rule", "disjoint_blocks", "size", "failures")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def propose_dataset(
    database: Database, said: Mapping[str, Any], source: Mapping[str, Any], found: Mapping[str, str], author: str
) -> str:
    """Write a dataset down that waits for a reviewer's signature; its name."""
    name = said["name"]
    if not _NAME.fullmatch(name):
        raise BadRequest("server.field_wrong", parameter="name", expected=phrase("server.column_letters"))
    kind = said.get("kind", "table")
    declared = said["declaration"]
    kept = check_graph(declared, source) if kind == "graph" else check_declaration(declared, found)
    population = said.get("population")
    if population is not None:
        kept["unit"] = kept["unit"] | {"of": population["name"]}
        unit_of(kept)
    promise = {"dataset": said["promise"], "population": population}
    with database.transaction() as transaction:
        if transaction.row("SELECT 1 AS found FROM datasets WHERE name = ?", name):
            raise Conflict("server.exists", parameter="name", name=name)
        same, certain = _find_same(transaction, source)
        if same is not None and not said.get("again"):
            code = "server.registered_before" if certain else "server.may_be_registered"
            raise Conflict(code, parameter="source", name=same)
        again = None if same is None else said["again"]
        promise |= {} if same is None else {"beside": same}
        transaction.run(
            "INSERT INTO datasets (name, kind, title, population, source, source_hash, account, promise, timing,"
            " deadline, version, state, curator, again, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0,"
            " 'proposed', ?, ?, ?)",
            *(name, kind, said.get("title") or name, population and population["name"], json.dumps(dict(source))),
            *(hash_source(source), name, json.dumps(promise), said["timing"], said["deadline"], author),
            *(again, now()),
        )
        _add(transaction, name, 1, kept, author)
    return str(name)


def _find_same(transaction: Transaction, source: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The name of a dataset that reads the same data already, or may do so; and whether that is certain."""
    find = "SELECT name FROM datasets WHERE source_hash IN (?, ?) AND state <> 'refused' ORDER BY created"
    row = transaction.row(find, hash_source(source), hash_source(source, identity=False))
    if row is not None:
        return str(row["name"]), True
    others = transaction.rows("SELECT name, source FROM datasets WHERE state <> 'refused' ORDER BY created")
    shared = {str(other["name"]): shares_rows(source, json.loads(other["source"])) for other in others}
    certain = next((name for name, same in shared.items() if same), None)
    return certain or next((name for name, same in shared.items() if same is None), None), certain is not None


def _add(transaction: Any, name: str, version: int, kept: Mapping[str, Any], author: str) -> None:
    statement = (
        "INSERT INTO declarations (dataset, version, content, sha256, author, created) VALUES (?, ?, ?, ?, ?, ?)"
    )
    transaction.run(statement, name, version, json.dumps(kept), sha256_of(kept), author, now())


def add_version(
    database: Database, name: str, said: Mapping[str, object], found: Mapping[str, str], author: str
) -> int:
    """Write down a new version of a declaration, which waits for a signature; its number. The unit stays."""
    row = find_changeable(database, name)
    before, _ = declaration_of(database, name, None)
    kept = check_graph(said, json.loads(row["source"])) if is_graph(before) else check_declaration(said, found)
    kept["unit"] = kept["unit"] | ({"of": before["unit"]["of"]} if "of" in before["unit"] else {})
    old, new = (unit_of(each) for each in (before, kept))
    if not old.protects_same(new):
        raise Conflict("server.wrong_state", parameter="declaration.unit", state=old.phrase())
    with database.transaction() as transaction:
        last = transaction.row("SELECT MAX(version) AS version FROM declarations WHERE dataset = ?", name)
        version = (last or {"version": 0})["version"] + 1
        _add(transaction, name, version, kept, author)
    return int(version)


def countersign(database: Database, ledger: Ledger, name: str, signer: str, *, version: int | None = None) -> Row:
    """Put the newest version into force; the first time, open the accounts that promise.

    With the `version` that the signer has read, one that was written meanwhile is not signed in its place.
    """
    row = find_changeable(database, name)
    kept, newest = declaration_of(database, name, None)
    if newest == row["version"]:
        raise Conflict("server.wrong_state", state=row["state"])
    if version not in (None, newest):
        raise Conflict("server.newer_version", parameter="version", version=newest)
    if row["version"] == 0:
        _open_accounts(ledger, row, unit_of(kept))
    content = {"dataset": name, "version": newest, "sha256": sha256_of(kept), "countersigned_by": signer}
    content |= {"author": find_author(database, name)} | ({"again": row["again"]} if row["again"] else {})
    ledger.note("dataset/declared", content, about=row["account"])
    with database.transaction() as transaction:
        change = "UPDATE declarations SET countersigned = ? WHERE dataset = ? AND version = ?"
        transaction.run(change, signer, name, newest)
        state = "open" if row["state"] == "proposed" else row["state"]
        transaction.run("UPDATE datasets SET version = ?, state = ? WHERE name = ?", newest, state, name)
    return find_dataset(database, name)


def _open_accounts(ledger: Ledger, row: Row, unit: Unit) -> LedgerAccount:
    promise = json.loads(row["promise"])
    if promise["population"]:
        limits = {part: promise["population"][part] for part in LIMITS if promise["population"].get(part) is not None}
        ledger.population(promise["population"]["name"], **limits)
    limits = {part: promise["dataset"][part] for part in LIMITS if promise["dataset"].get(part) is not None}
    return ledger.account(row["account"], unit=unit, **limits)


def find_dataset(database: Database, name: str) -> Row:
    return database.find("SELECT * FROM datasets WHERE name = ?", name)


def find_changeable(database: Database, name: str) -> Row:
    """A dataset about which more may be declared and signed: one that was retired or refused stays what it is."""
    row = find_dataset(database, name)
    if row["state"] in ("retired", "refused"):
        raise Conflict("server.wrong_state", state=row["state"])
    return row


def declaration_of(database: Database, name: str, version: int | None) -> tuple[dict[str, Any], int]:
    """The declaration of a version, or the newest one, signed or not."""
    if version is None:
        row = database.row("SELECT * FROM declarations WHERE dataset = ? ORDER BY version DESC LIMIT 1", name)
    else:
        row = database.row("SELECT * FROM declarations WHERE dataset = ? AND version = ?", name, version)
    if row is None:
        raise NotFound("server.not_found")
    return json.loads(row["content"]), int(row["version"])


def find_author(database: Database, name: str) -> str:
    """Who wrote the newest declaration: somebody else signs it."""
    return str(database.find("SELECT author FROM declarations WHERE dataset = ? ORDER BY version DESC", name)["author"])


def describe_proposed(database: Database, row: Row) -> dict[str, Any] | None:
    """The newest declaration, for those who write or sign it; None where it is in force."""
    kept, version = declaration_of(database, row["name"], None)
    if version == row["version"]:
        return None
    return describe_declaration(kept) | {"sha256": sha256_of(kept), "version": version}


def list_promises_beside(database: Database, name: str) -> list[tuple[str, str]]:
    """Other datasets about the same rows, which a reviewer allowed a budget of their own, each with the reason."""
    found = []
    for row in database.rows("SELECT name, promise, again FROM datasets WHERE again > '' AND version > 0"):
        beside = json.loads(row["promise"]).get("beside") or row["name"]
        if name in (row["name"], beside):
            found.append((beside if name == row["name"] else row["name"], row["again"]))
    return found


def change_dataset_state(
    database: Database, ledger: Ledger, name: str, state: str, *, author: str, reason: str
) -> None:
    """Freeze, thaw or retire; retiring closes the account for good."""
    allowed = {"frozen": ("open",), "open": ("frozen",), "retired": ("open", "frozen"), "refused": ("proposed",)}
    row = find_dataset(database, name)
    if row["state"] not in allowed[state]:
        raise Conflict("server.wrong_state", state=row["state"])
    about = row["account"] if row["version"] else None
    ledger.note(f"dataset/{state}", {"dataset": name, "by": author, "reason": reason}, about=about)
    if state == "retired":
        ledger.account(row["account"]).retire(reason=reason or None)
    database.run("UPDATE datasets SET state = ? WHERE name = ?", state, name)


def list_datasets(database: Database, *, after: str = "", most: int = 100) -> list[Row]:
    return database.rows("SELECT * FROM datasets WHERE name > ? ORDER BY name LIMIT ?", after, most)


def page_datasets(
    database: Database, may_read: Callable[[str], bool], after: str, most: int
) -> tuple[list[Row], str | None]:
    """Datasets that somebody may read, in order of their names, and where the next page begins (None: nowhere).

    Where most of them are for others, a page may have fewer than it could, for a page reads so many and no more.
    """
    shown: list[Row] = []
    for _ in range(LOOKS):
        rows = list_datasets(database, after=after, most=BATCH)
        for row in rows:
            if len(shown) == most:
                return shown, after
            after = row["name"]
            if may_read(after):
                shown.append(row)
        if len(rows) < BATCH:
            return shown, None
    return shown, after


def describe_dataset(database: Database, row: Row, *, full: bool = True) -> dict[str, Any]:
    """What may be known about a dataset by those who may ask it: never a row, never where it lies."""
    described = {
        name: row[name] for name in ("name", "kind", "title", "population", "timing", "deadline", "version", "state")
    }
    promise = json.loads(row["promise"])
    described |= {"promise": promise["dataset"], "created": as_text(row["created"])}
    if not full:
        return described
    if row["again"]:
        described["again"] = {"beside": promise.get("beside"), "reason": row["again"]}
    kept, version = declaration_of(database, row["name"], row["version"] or None)
    described |= {"declaration": describe_declaration(kept) | {"sha256": sha256_of(kept), "version": version}}
    rows = database.rows("SELECT name, condition, state FROM blocks WHERE dataset = ? ORDER BY name", row["name"])
    described["blocks"] = [block | {"condition": json.loads(block["condition"])} for block in rows]
    described["population_promise"] = promise["population"]
    newest = database.row("SELECT MAX(version) AS version FROM declarations WHERE dataset = ?", row["name"])
    described["newest_version"] = (newest or {"version": version})["version"]
    return described
