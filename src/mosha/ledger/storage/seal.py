"""Keyed rows: who may write, and what tags say about who has written.

A book has a key from its first row on, or from a row `key` on; a row `key` also changes it, and bears the tags of both
keys. Every row from then on has a tag in the table `tags`, which is made when a book gets its first key: rows, hashes
and tables of books without a key are what they always were.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from mosha.core.errors import InvalidParameter, LedgerKeyRefused, LedgerTampered
from mosha.core.language import phrase
from mosha.ledger.storage.chain import GENESIS, Content, Entry, Head
from mosha.ledger.storage.key import LedgerKey

__all__ = ["TagCheck", "check_key", "check_payer", "key_in_force", "make_tags", "rotate", "write_tag"]

TAGS = (
    "CREATE TABLE tags (sequence BIGINT NOT NULL, key TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (sequence, key))",
    "CREATE INDEX IF NOT EXISTS entries_keys ON entries (sequence) WHERE kind = 'key'",
)
WINDOW = 1000  # rows whose tags are read together


class Rows(Protocol):
    """A transaction, as far as keys and tags need it."""

    head: Head
    key: LedgerKey | None

    def has_table(self, name: str) -> bool: ...

    def row(self, statement: str, *values: object) -> Sequence[Any] | None: ...

    def rows(self, statement: str, *values: object) -> list[Sequence[Any]]: ...

    def run(self, statement: str, *values: object) -> None: ...

    def entry(self, sequence: int) -> Entry: ...

    def append(self, kind: str, content: Content) -> Entry: ...


def make_tags(transaction: Rows) -> None:
    """Make room for tags in a book that gets its first key."""
    if not transaction.has_table("tags"):
        for statement in TAGS:
            transaction.run(statement)


def write_tag(transaction: Rows, head: Head, key: LedgerKey) -> None:
    transaction.run("INSERT INTO tags VALUES (?, ?, ?)", head.sequence, key.id, key.tag(head))


def key_in_force(transaction: Rows) -> str | None:
    """The name of the key that the next row needs; None where the book has no key."""
    if transaction.has_table("tags"):
        row = transaction.row("SELECT body FROM entries WHERE kind = 'key' ORDER BY sequence DESC LIMIT 1")
        if row is not None:
            return str(json.loads(row[0]).get("key"))
    first = transaction.row("SELECT body FROM entries WHERE sequence = 1")
    named = json.loads(first[0]).get("key") if first is not None else None
    return None if named is None else str(named)


def check_key(transaction: Rows, key: LedgerKey | None) -> None:
    """Refuse a key that is not the one of the book; none is refused where the book has one."""
    needed = key_in_force(transaction) if transaction.head.sequence else None if key is None else key.id
    given = None if key is None else key.id
    if given == needed:
        return
    if needed is None:
        raise LedgerKeyRefused("ledger.key_not_needed", needed=needed, given=given)
    code = "ledger.key_missing" if given is None else "ledger.other_key"
    raise LedgerKeyRefused(code, needed=needed, given=given)


def check_payer(transaction: Rows, key: LedgerKey | None) -> None:
    """Refuse whoever lacks the key, and a book whose last row was written by somebody who lacked it."""
    check_key(transaction, key)
    head = transaction.head
    if key is None or not head.sequence:
        return
    row = transaction.row("SELECT tag FROM tags WHERE sequence = ? AND key = ?", head.sequence, key.id)
    before = transaction.entry(head.sequence - 1).head if head.sequence > 1 else GENESIS
    if row is None or not key.matches(head, row[0]) or not transaction.entry(head.sequence).follows(before):
        raise LedgerTampered("ledger.row_without_key", row=head.sequence, spent="nothing")


def rotate(transaction: Rows, new: LedgerKey) -> Entry:
    """Write the row from which on the book has another key, or its first one."""
    used = [json.loads(row[0]).get("key") for row in _key_rows(transaction)]
    if new.id in used:
        raise InvalidParameter("ledger.key_used_before", parameter="key")
    make_tags(transaction)
    former = transaction.key
    content = {"key": new.id} | ({} if former is None else {"previous": former.id})
    entry = transaction.append("key", content)  # with the tag of the former key
    write_tag(transaction, entry.head, new)
    transaction.key = new
    return entry


def _key_rows(transaction: Rows) -> list[Sequence[Any]]:
    later = "SELECT body FROM entries WHERE kind = 'key'" if transaction.has_table("tags") else None
    first = transaction.rows("SELECT body FROM entries WHERE sequence = 1")
    return [*first, *(transaction.rows(later) if later else ())]


class TagCheck:
    """Reads rows in order, with their tags: which of them were not written with the key that was in force then."""

    def __init__(self, transaction: Rows, keys: Sequence[LedgerKey], after: int = 0, named: Sequence[str] = ()) -> None:
        self._transaction = transaction
        self._has_tags = transaction.has_table("tags")
        self._keys = {key.id: key for key in keys}
        self._window: dict[int, dict[str, str]] = {}
        self._until = after
        self._after, self._expected = after, 0
        self._known = set(named)  # keys that rows have named up to here
        self._unchecked: dict[str, list[int]] = {}  # key -> its first and last row that it could not be tried on
        self._bare = 0  # the last row from before there was a key
        self.force = named[-1] if named else None

    def read(self, entry: Entry) -> list[str]:
        """What is wrong with the tags of the next row."""
        needed = [self.force] if self.force else []
        if (entry.kind == "ledger" and entry.sequence == 1) or entry.kind == "key":
            named = _named_key(entry)
            if named is not None:
                needed, self.force = [*needed, named], named
                self._known.add(named)
        if not needed:
            self._bare = entry.sequence
        found = self._find(entry.sequence)
        self._expected += len(needed)
        problems: list[str] = [
            phrase("ledger.wrong_tag", row=entry.sequence, key=key)
            for key in needed
            if not self._is_right(entry.head, key, found.get(key))
        ]
        if set(found) - set(needed):
            problems.append(phrase("ledger.wrong_key_of_tag", row=entry.sequence))
        return problems

    def _is_right(self, head: Head, key: str, tag: str | None) -> bool:
        if tag is None:
            return False
        if key in self._keys:
            return self._keys[key].matches(head, tag)
        self._unchecked.setdefault(key, [head.sequence, 0])[1] = head.sequence
        return True

    def _find(self, sequence: int) -> dict[str, str]:
        if self._has_tags and sequence > self._until:
            statement = "SELECT sequence, key, tag FROM tags WHERE sequence >= ? AND sequence < ?"
            self._window, self._until = {}, sequence + WINDOW - 1
            for row, key, tag in self._transaction.rows(statement, sequence, sequence + WINDOW):
                self._window.setdefault(int(row), {})[key] = tag
        return self._window.get(sequence, {})

    def finish(self) -> tuple[list[str], list[str]]:
        """What is wrong with the tags as a whole, and what could not be looked at."""
        problems, notes = list[str](), list[str]()
        if self._has_tags:
            count = self._transaction.row("SELECT COUNT(*) FROM tags WHERE sequence > ?", self._after)
            if count is not None and int(count[0]) > self._expected:
                problems.append(phrase("ledger.wrong_tags"))
        unknown = sorted(set(self._keys) - self._known)
        if self._keys and len(unknown) == len(self._keys):
            problems.append(phrase("ledger.wrong_keys"))
        notes += [
            phrase("ledger.note_key_not_given", first=first, last=last, key=key)
            for key, (first, last) in self._unchecked.items()
        ]
        if self._bare and self.force:
            notes.append(phrase("ledger.note_before_key", row=self._bare))
        return problems, notes


def _named_key(entry: Entry) -> str | None:
    try:
        named = entry.content().get("key")
    except (ValueError, AttributeError):
        return None
    return named if isinstance(named, str) else None
