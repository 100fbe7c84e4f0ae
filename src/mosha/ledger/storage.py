"""Where the book is kept: one serialised transaction at a time, shared by every thread that waits for it.

Two engines (`sqlite.py`, `postgresql.py`) differ in how they connect, lock and name their troubles; the schema
and every statement are the same text. A transaction that returns is on disk (SQLite `synchronous=FULL`,
PostgreSQL `synchronous_commit=on`).
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

from mosha.core.errors import LedgerTampered, LedgerUnavailable, MoshaError
from mosha.ledger.chain import GENESIS, Entry, Head, follow
from mosha.ledger.witness import Witness

__all__ = ["SCHEMA", "Storage", "Transaction"]

Result = TypeVar("Result")
BATCH = 256  # operations that share one commit at most: bounds what waits behind one of them

# `entries` is the book. The other tables are an index of it, made from it and compared with it by `verify`.
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (sequence BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL,
        body TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, terms TEXT NOT NULL, amount TEXT NOT NULL,
        delta TEXT NOT NULL, retired INTEGER NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS lanes (account TEXT NOT NULL, family TEXT NOT NULL, lane TEXT NOT NULL,
        amount TEXT NOT NULL, delta TEXT NOT NULL, PRIMARY KEY (account, family, lane))""",
    """CREATE TABLE IF NOT EXISTS payments (entry BIGINT PRIMARY KEY, scope TEXT NOT NULL, key TEXT,
        claim INTEGER NOT NULL, attempts INTEGER NOT NULL, closed INTEGER NOT NULL, UNIQUE (scope, key))""",
    """CREATE TABLE IF NOT EXISTS steps (payment BIGINT NOT NULL, step BIGINT NOT NULL, entry BIGINT NOT NULL,
        PRIMARY KEY (payment, step))""",
    """CREATE TABLE IF NOT EXISTS failures (account TEXT PRIMARY KEY, count BIGINT NOT NULL)""",
)
ADDED = SCHEMA[-1:]  # tables that a book may lack which was begun before they were there; empty then


class Transaction(ABC):
    """The book, held by one writer: nobody else changes it until the transaction ends."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        row = self.row("SELECT sequence, hash, at FROM entries ORDER BY sequence DESC LIMIT 1")
        self.head, self.last_at = (Head(row[0], row[1]), int(row[2])) if row else (GENESIS, 0)
        self._next_at: int | None = None

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        """All rows of a SELECT; `?` stands for a value."""

    @abstractmethod
    def run(self, statement: str, *values: Any) -> None:
        """A statement that changes something."""

    def row(self, statement: str, *values: Any) -> Sequence[Any] | None:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def now(self) -> int:
        """The date of the next row. Time never runs backwards in a book, whatever the clock does."""
        if self._next_at is None:
            self._next_at = max(self.last_at, self._clock())
        return self._next_at

    def append(self, kind: str, content: dict[str, Any]) -> Entry:
        """Write the next row of the book."""
        self.last_at, self._next_at = self.now(), None
        entry = follow(self.head, self.last_at, kind, content)
        self.run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", entry.sequence, entry.at, kind, entry.body, entry.hash)
        self.head = entry.head
        return entry

    def entry(self, sequence: int) -> Entry:
        row = self.row("SELECT sequence, at, kind, body, hash FROM entries WHERE sequence = ?", sequence)
        if row is None:
            raise LedgerTampered(f"row {sequence} is missing from the book: run `mosha ledger verify`.")
        return Entry(*row)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What is inside happens wholly or not at all, whatever else shares the transaction."""
        before = self.head, self.last_at
        self.run("SAVEPOINT operation")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK TO SAVEPOINT operation")
            self.head, self.last_at = before
            self._next_at = None
            raise
        finally:
            self.run("RELEASE SAVEPOINT operation")


class _Ticket(Generic[Result]):
    """An operation that waits for its transaction."""

    def __init__(self, operation: Callable[[Transaction], Result]) -> None:
        self.operation = operation
        self.settled = False
        self.value: Result
        self.error: BaseException | None = None

    def result(self) -> Result:
        if self.error is not None:
            raise self.error
        return self.value


class Storage(ABC):
    """A place for a book. Threads may share it; a process that was forked off opens it anew."""

    def __init__(self, *, clock: Callable[[], int], patience: float, witness: Witness | None, create: bool) -> None:
        self._clock = clock
        self._patience = patience
        self._witness = witness
        self._create = create
        self._seen = GENESIS
        self._over = False
        self._fresh()

    def clock(self) -> int:
        """Microseconds since 1970, as the clock of this book says."""
        return self._clock()

    def _fresh(self) -> None:
        self._process = os.getpid()
        self._queue: deque[_Ticket[Any]] = deque()
        self._turn = threading.Lock()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """The book for writing: committed durably on leaving, rolled back on an error."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """One unchanging view of the book."""

    def __del__(self) -> None:
        with suppress(Exception):
            if not self._over and os.getpid() == self._process:
                self._disconnect()

    @property
    @abstractmethod
    def place(self) -> str:
        """Where this is, for people: no password in it."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Give the file or the connection back."""

    def close(self) -> None:
        """Use this place no more."""
        with self._turn:
            if not self._over and os.getpid() == self._process:
                self._disconnect()
            self._over = True
        if self._witness:
            self._witness.flush()

    @abstractmethod
    def _connect(self) -> None:
        """Open the place anew, and begin a book where there is none and `create` allows it."""

    def _ours(self) -> None:
        if self._over:
            raise LedgerUnavailable(
                f"the ledger {self.place} was closed. Nothing left the private side. Open it again."
            )
        if os.getpid() != self._process:  # forked: the parent's connection and locks are not ours to touch
            self._fresh()
            self._connect()

    def read(self, operation: Callable[[Transaction], Result]) -> Result:
        self._ours()
        with self._turn, self.reading() as transaction:
            return operation(transaction)

    def write(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run `operation` alone in the book and return when it is on disk.

        Threads that come while another one commits queue up; the first to get its turn takes all that wait
        into one transaction, so that they share one flush of the disk.
        """
        self._ours()
        ticket = _Ticket(operation)
        self._queue.append(ticket)
        with self._turn:
            while not ticket.settled:
                self._serve(ticket)
        return ticket.result()

    def _serve(self, mine: _Ticket[Any]) -> None:
        if not self._queue:  # an interrupt took the ticket out of the queue and went no further
            mine.error, mine.settled = _told(KeyboardInterrupt()), True
            return
        batch: list[_Ticket[Any]] = []
        try:
            while self._queue and len(batch) < BATCH:
                batch.append(self._queue.popleft())
            with self.transaction() as transaction:
                self._recognise(transaction)
                _perform(batch, transaction)
            self._note(transaction.head)
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            for ticket in batch:
                ticket.error = error if ticket is mine else _told(error)
        for ticket in batch:
            ticket.settled = True

    def recognise(self) -> None:
        """Refuse a book that is older than its witness, or another one."""
        try:
            expected = self.witnessed  # before the book, which may grow meanwhile
            self._seen = max(self._seen, expected or GENESIS, key=lambda head: head.sequence)
            self.read(self._recognise)
        except BaseException:
            self.close()
            raise

    def _missing(self) -> LedgerUnavailable:
        return LedgerUnavailable(f"there is no ledger at {self.place}. Open an account to begin one.")

    @property
    def witnessed(self) -> Head | None:
        """The last head that the witness remembers, where there is a witness."""
        return self._witness.read() if self._witness else None

    def _recognise(self, transaction: Transaction) -> None:
        seen = self._seen
        if seen == transaction.head:
            return
        if seen.sequence > transaction.head.sequence:
            raise LedgerTampered(
                f"the book ends at row {transaction.head.sequence} and was seen at row {seen.sequence}: an older "
                "copy was put in its place. What was spent since then would be spent again. Nothing was spent."
            )
        if seen.sequence and transaction.entry(seen.sequence).hash != seen.hash:
            raise LedgerTampered(
                f"row {seen.sequence} of the book is not the row that was seen there: the history was rewritten, "
                "or this is another book. Nothing was spent."
            )

    def _note(self, head: Head) -> None:
        if head != self._seen:
            self._seen = head
            if self._witness:
                self._witness.note(head)


def _told(error: BaseException) -> MoshaError:
    """What a thread hears of the failure of the one that committed for it."""
    if isinstance(error, MoshaError):
        return type(error)(*error.args)
    return LedgerUnavailable("the commit was interrupted. No data was read; a retry with the same key is safe.")


def _perform(batch: list[_Ticket[Any]], transaction: Transaction) -> None:
    if len(batch) == 1:
        batch[0].value = batch[0].operation(transaction)  # an error rolls the whole transaction back
        return
    for ticket in batch:
        try:
            with transaction.attempt():
                ticket.value = ticket.operation(transaction)
        except MoshaError as error:
            ticket.error = error
