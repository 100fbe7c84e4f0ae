"""Opening: the place of a book, its first row, and accounts in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter, LedgerUnavailable
from mosha.core.unit import Unit
from mosha.ledger.storage.chain import Content, canonical
from mosha.ledger.storage.seal import make_tags
from mosha.ledger.storage.sqlite import SQLiteStorage
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.edition import EDITION
from mosha.ledger.terms.policy import find_policy
from mosha.ledger.terms.terms import Terms
from mosha.ledger.terms.wanted import Wanted

__all__ = ["begin_book", "check_version", "choose_storage", "find_or_open", "protect_same", "read_terms"]

VERSION = 2  # of the newest books that can be read
UNKEYED, KEYED = 1, 2  # versions that know no keys refuse to pay from a book that was begun with one


def choose_storage(place: str | os.PathLike[str], options: dict[str, Any]) -> Storage:
    """PostgreSQL for a URL, SQLite for a file."""
    if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")):
        from mosha.ledger.storage.postgresql import PostgreSQLStorage  # noqa: PLC0415  (an extra)

        return PostgreSQLStorage(place, **options)
    if not isinstance(place, str | os.PathLike) or not os.fspath(place):
        raise InvalidParameter("ledger.no_place", parameter="place")
    if isinstance(place, str) and "://" in place:
        raise InvalidParameter("ledger.unknown_url", parameter="place")
    return SQLiteStorage(Path(place), **options)


def begin_book(transaction: Transaction) -> None:
    """Write the first row."""
    if transaction.head.sequence == 0:
        named: Content = {"version": UNKEYED} if transaction.key is None else {"version": KEYED}
        if transaction.key is not None:
            make_tags(transaction)
            named["key"] = transaction.key.id
        transaction.append("ledger", named | {"edition": EDITION, "book": os.urandom(16).hex()})


def check_version(transaction: Transaction) -> None:
    row = transaction.row("SELECT body FROM entries WHERE sequence = 1")
    if row is not None and json.loads(row[0]).get("version", VERSION) > VERSION:
        raise LedgerUnavailable("ledger.newer_version", spent="nothing")


def read_terms(transaction: Transaction, names: list[str] | None) -> dict[str, Terms]:
    """The terms of these accounts, as far as there are any; of all by default."""
    chosen = "" if names is None else f" WHERE name IN ({', '.join('?' * len(names))})"
    rows = transaction.rows(f"SELECT name, terms FROM accounts{chosen}", *(names or ()))  # noqa: S608
    return {name: Terms.parse(terms) for name, terms in rows}


def find_or_open(transaction: Transaction, wanted: Wanted, path: list[str]) -> tuple[dict[str, Terms], bool]:
    """The terms of an account and of those that pay with it, and whether it was opened for this."""
    known = read_terms(transaction, path)
    if wanted.name in known:
        return known, False
    terms = known[wanted.name] = wanted.terms(known, transaction.now())
    if policy := find_policy(transaction):
        policy.check(terms, transaction.now())
    opened = transaction.append("open", terms.to_dict())
    insert = "INSERT INTO accounts VALUES (?, ?, '0', '0', 0, ?)"
    transaction.run(insert, terms.name, canonical(terms.to_dict()), opened.sequence)
    return known, True


def protect_same(unit: Unit, other: Unit) -> bool:
    """Whether one release can protect both: the same unit, or persons of one population, however they are named."""
    of_one = unit.of is not None and unit.of == other.of and unit.neighbors is other.neighbors
    return unit.protects_same(other) or of_one
