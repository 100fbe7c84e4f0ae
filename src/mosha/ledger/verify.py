"""Reading the whole book again: is every row untouched, in its place, and right?

What is found, and by what:

    an edited row                 its hash
    a removed row                 the gap in the sequence, and the hash of the next row
    reordered rows                their hashes
    a truncated tail              the index tables, the witness beside the book, a head kept elsewhere
    an older copy of the book     the witness, a head kept elsewhere
    a rewritten history           the witness, a head kept elsewhere
    an edited balance             the sums formed anew from all rows
    an appended gift              what the row says: a refund of steps that were released or started, a price below what
                                  the event certainly costs, a limit that is raised, a step that nobody paid for

    any row of another hand       its tag, where the book has a key and the key is given (`seal.py`)

What is not found, where rows have no key: an appended row that an honest ledger could have written. Somebody who can
write the book can settle an open lease as if nothing of it had been used (a lease keeps no book of its runs), and can
declare a start unreached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.ledger.chain import GENESIS, Entry, Head
from mosha.ledger.key import LedgerKey
from mosha.ledger.replay import Replay
from mosha.ledger.seal import TagCheck
from mosha.ledger.storage import Storage, Transaction

__all__ = ["Report", "entries", "inspect", "replay", "verify_book"]

_UNWITNESSED = "There is no witness of this book: only a head that was kept elsewhere would show an older copy of it."

PAGE = 1000
BREATH = 32  # rows between two moments at which payers go first
TABLES = ("accounts", "lanes", "payments", "steps", "failures", "purchases")


@dataclass(frozen=True)
class Report:
    """What `Ledger.verify` found; `problems` is empty for a book that is well, `notes` say what was not looked at."""

    entries: int
    head: Head
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        found = {"ok": self.ok, "entries": self.entries, "head": str(self.head)}
        return found | {"problems": list(self.problems), "notes": list(self.notes)}


def entries(transaction: Transaction, after: int = 0) -> Iterator[Entry]:
    """All rows after a place, in order."""
    statement = "SELECT sequence, at, kind, body, hash FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?"
    while page := [Entry(*row) for row in transaction.rows(statement, after, PAGE)]:
        for position, entry in enumerate(page):
            if position % BREATH == 0:
                transaction.breathe()
            yield entry
        after = page[-1].sequence


def replay(transaction: Transaction) -> Replay:
    """What the rows say, without looking at their hashes."""
    said = Replay()
    for entry in entries(transaction):
        said.read(entry)
    return said


def verify_book(storage: Storage, head: Head | str | None, keys: Sequence[LedgerKey]) -> Report:
    """Inspect a book in its place, with the heads and keys that are known of it."""
    heads: list[tuple[str, Head | str]] = []
    if witnessed := storage.witnessed:
        heads.append(("the witness", witnessed))
    if head is not None:
        heads.append(("elsewhere", parsed(head)))
    own = () if storage.key is None else (storage.key,)
    report = storage.read(lambda transaction: inspect(transaction, heads, (*keys, *own)), recognise=False)
    return report if witnessed else replace(report, notes=(_UNWITNESSED, *report.notes))


def inspect(transaction: Transaction, heads: list[tuple[str, Head | str]], keys: Sequence[LedgerKey] = ()) -> Report:
    """Check every row, every sum, every tag, and every head that is known from elsewhere (with its source)."""
    said, problems, tags = Replay(), list[str](), TagCheck(transaction, keys)
    previous, last_at, count = GENESIS, 0, 0
    wanted = {head.sequence: "" for _, head in heads if isinstance(head, Head)}
    hashes = {head: False for _, head in heads if isinstance(head, str)}
    for entry in entries(transaction):
        problems += _misplaced(entry, previous, last_at)
        problems += tags.read(entry)
        said.read(entry)
        previous, last_at, count = entry.head, max(last_at, entry.at), count + 1
        if entry.sequence in wanted:
            wanted[entry.sequence] = entry.hash
        if entry.hash in hashes:
            hashes[entry.hash] = True
    problems += said.problems
    for table in TABLES:
        if set(map(tuple, transaction.rows(f"SELECT * FROM {table}"))) != said.table(table):  # noqa: S608
            problems.append(f"the index {table!r} does not say what the rows say")
    for source, head in heads:
        known = hashes[head] if isinstance(head, str) else not head.sequence or wanted[head.sequence] == head.hash
        if not known:
            problems.append(f"the book does not hold the head from {source}: it was cut, rewritten or rolled back")
    wrong, notes = tags.finish()
    return Report(count, previous, (*problems, *wrong), (*notes, *said.opinion.notes()))


def _misplaced(entry: Entry, previous: Head, last_at: int) -> list[str]:
    problems = []
    if entry.sequence != previous.sequence + 1:
        problems.append(f"rows {previous.sequence + 1} to {entry.sequence - 1} are missing")
    elif not entry.follows(previous):
        problems.append(f"row {entry.sequence} was edited, moved, or written by another hand: its hash is wrong")
    if entry.at < last_at:
        problems.append(f"row {entry.sequence} is dated before the row that it follows")
    return problems


def parsed(head: Head | str) -> Head | str:
    """A head as people hand it over: 'sequence:hash', or the hash alone."""
    if isinstance(head, Head):
        return head
    if isinstance(head, str) and len(head) == 64 and all(c in "0123456789abcdef" for c in head):
        return head
    if isinstance(head, str):
        return Head.parse(head)
    raise InvalidParameter("a head is text: 'sequence:hash', as `mosha ledger show` prints it.")
