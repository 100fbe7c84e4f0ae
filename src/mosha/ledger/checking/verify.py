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

    a word of another hand        the secret of the holder, which a refund and a start that is taken back must show
                                  (`holder.py`)
    an uncounted failure          a row `fail` that is not followed by the row that counts it

What is not found, where rows have no key: an appended row that an honest ledger could have written, such as a new
account, a note, a lift of failures, the end of an account. None of them makes an account pay less for what it
released. Rows from before a book was of the second edition (`edition.py`) show no secret and count no failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase
from mosha.ledger.checking.checkpoint import Checkpoint, check_apart
from mosha.ledger.checking.replay import Replay
from mosha.ledger.storage.chain import GENESIS, Entry, Head
from mosha.ledger.storage.key import LedgerKey
from mosha.ledger.storage.seal import TagCheck
from mosha.ledger.storage.transactions import Storage, Transaction

__all__ = ["Report", "entries", "inspect", "replay", "verify_book"]

PAGE = 1000
BREATH = 32  # rows between two moments at which payers go first
TABLES = ("accounts", "lanes", "payments", "steps", "failures", "purchases")


@dataclass(frozen=True)
class Report:
    """What `Ledger.verify` found; `problems` is empty for a book that is well, `notes` say what was not looked at.

    The book has so many `entries` and ends at `head`; `replayed` is the state that they lead to, and `last_at` the time
    of the last one.

    >>> import mosha
    >>> found = mosha.Ledger.memory().verify()
    >>> found.ok, found.problems
    (True, ())
    """

    entries: int
    head: Head
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    replayed: Replay | None = field(default=None, repr=False, compare=False)
    last_at: int = field(default=0, repr=False, compare=False)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """From where the next `verify(since=...)` can go on; None for a book that is not well."""
        if self.problems or self.replayed is None:
            return None
        return Checkpoint.of(self.replayed, self.head, self.entries, self.last_at)

    @property
    def ok(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        """Whether the book is intact: `if ledger.verify(): ...` asks what it seems to ask."""
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for programs."""
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


def verify_book(
    storage: Storage,
    *,
    head: Head | str | None,
    keys: Sequence[LedgerKey],
    since: Checkpoint | str | os.PathLike[str] | None,
    keep: bool,
) -> Report:
    """Inspect a book in its place, with the heads and keys that are known of it, from a checkpoint on."""
    heads: list[tuple[str, Head | str]] = []
    if witnessed := storage.witnessed:
        heads.append((phrase("ledger.from_witness"), witnessed))
    if head is not None:
        heads.append((phrase("ledger.from_elsewhere"), parse_head(head)))
    known = (*keys, *(() if storage.key is None else (storage.key,)))
    file = None if since is None or isinstance(since, Checkpoint) else Path(since)
    if keep and file is None:
        raise InvalidParameter("ledger.keep_without_file", parameter="keep")
    if file is not None and not known:
        check_apart(file, getattr(storage, "path", None))
    if file is not None and (file.exists() or not keep):
        since = Checkpoint.load(file, known)
    begun = since if isinstance(since, Checkpoint) else None
    report = storage.read(lambda transaction: inspect(transaction, heads, known, begun), recognise=False)
    if file is not None and keep and (checkpoint := report.checkpoint) is not None:
        checkpoint.save(file, _choose_signer(known, checkpoint))
    return report if witnessed else replace(report, notes=(phrase("ledger.note_unwitnessed"), *report.notes))


def _choose_signer(keys: Sequence[LedgerKey], checkpoint: Checkpoint) -> LedgerKey | None:
    """The key that the book has now, where it was given; else any that was."""
    named = {key.id: key for key in keys}
    return next((named[name] for name in reversed(checkpoint.state["book_keys"]) if name in named), None)


def inspect(
    transaction: Transaction,
    heads: list[tuple[str, Head | str]],
    keys: Sequence[LedgerKey] = (),
    since: Checkpoint | None = None,
) -> Report:
    """Check every row, every sum, every tag, and every head that is known from elsewhere (with its source)."""
    begun = since or Checkpoint.of(Replay(), GENESIS, 0, 0)
    said, problems, notes = begun.replay(), list[str](), list[str]()
    if not _holds(transaction, begun.head):
        return Report(0, transaction.head, (phrase("ledger.wrong_checkpoint"),))
    if since is not None:
        notes.append(phrase("ledger.note_checked_before", row=begun.head.sequence))
    tags = TagCheck(transaction, keys, begun.head.sequence, said.book_keys)
    previous, last_at, count = begun.head, begun.at, begun.entries
    found = _HeadsInside(transaction, heads, begun.head.sequence)
    for entry in entries(transaction, previous.sequence):
        problems += _find_misplacement(entry, previous, last_at)
        problems += tags.read(entry)
        said.read(entry)
        found.read(entry)
        previous, last_at, count = entry.head, max(last_at, entry.at), count + 1
    said.finish()
    problems += said.problems
    for table in TABLES:
        if set(map(tuple, transaction.rows(f"SELECT * FROM {table}"))) != said.table(table):  # noqa: S608
            problems.append(phrase("ledger.wrong_index", table=table))
    problems += found.problems()
    wrong, unseen = tags.finish()
    notes += [*unseen, *said.opinion.notes()]
    return Report(count, previous, (*problems, *wrong), tuple(notes), said, last_at)


def _holds(transaction: Transaction, head: Head) -> bool:
    row = transaction.row("SELECT hash FROM entries WHERE sequence = ?", head.sequence)
    return not head.sequence or (row is not None and row[0] == head.hash)


class _HeadsInside:
    """Which of the heads that are known from elsewhere the book holds, among rows that are read and those before."""

    def __init__(self, transaction: Transaction, heads: list[tuple[str, Head | str]], after: int) -> None:
        self._heads = heads
        self._wanted = {head for _, head in heads}
        self._found = {head for head in self._wanted if self._is_before(transaction, head, after)}

    @staticmethod
    def _is_before(transaction: Transaction, head: Head | str, after: int) -> bool:
        if isinstance(head, Head):
            return head.sequence <= after and _holds(transaction, head)
        row = transaction.row("SELECT 1 FROM entries WHERE hash = ? AND sequence <= ?", head, after) if after else None
        return row is not None

    def read(self, entry: Entry) -> None:
        self._found |= self._wanted & {entry.head, entry.hash}

    def problems(self) -> list[str]:
        return [phrase("ledger.wrong_head", source=source) for source, head in self._heads if head not in self._found]


def _find_misplacement(entry: Entry, previous: Head, last_at: int) -> list[str]:
    problems: list[str] = []
    if entry.sequence != previous.sequence + 1:
        problems.append(phrase("ledger.wrong_gap", first=previous.sequence + 1, last=entry.sequence - 1))
    elif not entry.follows(previous):
        problems.append(phrase("ledger.wrong_hash", row=entry.sequence))
    if entry.at < last_at:
        problems.append(phrase("ledger.wrong_date", row=entry.sequence))
    return problems


def parse_head(head: Head | str) -> Head | str:
    """A head as people hand it over: 'sequence:hash', or the hash alone."""
    if isinstance(head, Head):
        return head
    if isinstance(head, str) and len(head) == 64 and all(c in "0123456789abcdef" for c in head):
        return head
    if isinstance(head, str):
        return Head.parse(head)
    raise InvalidParameter("ledger.head_not_text", parameter="head")
