"""Where the book is kept: one serialised transaction at a time, shared by every thread that waits for it.

Two engines (`sqlite.py`, `postgresql.py`) differ in how they connect, lock and name their troubles; the schema
and every statement are the same text. A transaction that returns is on disk (SQLite `synchronous=FULL`,
PostgreSQL `synchronous_commit=on`).
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from typing import Any, Generic, TypeVar

from mosha.core.errors import LedgerTampered, LedgerUnavailable, MoshaError
from mosha.ledger.storage.chain import GENESIS, Content, Entry, Head, Witness, follow
from mosha.ledger.storage.fork import notice_fork, watch
from mosha.ledger.storage.key import LedgerKey
from mosha.ledger.storage.readers import Disturbed, Readers
from mosha.ledger.storage.seal import check_payer, write_tag

__all__ = ["INDEX", "SCHEMA", "Storage", "Transaction", "read_clock"]

Result = TypeVar("Result")
COURTESY = 0.05  # seconds that a reader waits for a payer at most, at each breath
DISTURBANCES = 20  # forks that one reading outlives
SHARED = 1.0  # seconds for which a book in which somebody else wrote counts as shared
BATCH = 256  # operations that share one commit at most: bounds what waits behind one of them

# `entries` is the book. The other tables are an index of it, made from it and compared with it by `verify`. What was
# added to the first layout stands last in its table (`index.py`); `accounts.entry` is the row that states the balance.
FAILURES = "CREATE TABLE IF NOT EXISTS failures (account TEXT PRIMARY KEY, count BIGINT NOT NULL)"
INDEX = (
    """CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, terms TEXT NOT NULL, amount TEXT NOT NULL,
        delta TEXT NOT NULL, retired INTEGER NOT NULL, entry BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS lanes (account TEXT NOT NULL, family TEXT NOT NULL, lane TEXT NOT NULL,
        amount TEXT NOT NULL, delta TEXT NOT NULL, PRIMARY KEY (account, family, lane))""",
    """CREATE TABLE IF NOT EXISTS payments (entry BIGINT PRIMARY KEY, scope TEXT NOT NULL, key TEXT,
        claim INTEGER NOT NULL, attempts INTEGER NOT NULL, closed INTEGER NOT NULL, purchase TEXT NOT NULL,
        released BIGINT NOT NULL, failed BIGINT NOT NULL, UNIQUE (scope, key))""",
    "CREATE INDEX IF NOT EXISTS payments_of ON payments (purchase, closed, released, failed, entry)",
    """CREATE TABLE IF NOT EXISTS steps (payment BIGINT NOT NULL, step BIGINT NOT NULL, entry BIGINT NOT NULL,
        PRIMARY KEY (payment, step))""",
    FAILURES,
    "CREATE INDEX IF NOT EXISTS entries_notes ON entries (sequence) WHERE kind = 'note'",
    """CREATE TABLE IF NOT EXISTS purchases (account TEXT NOT NULL, purchase TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (account, purchase))""",
)
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (sequence BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL,
        body TEXT NOT NULL, hash TEXT NOT NULL)""",
    *INDEX,
)
ADDED = (FAILURES,)  # tables that a book may lack which was begun before they were there; empty then


class Transaction(ABC):
    """The book, held by one writer: nobody else changes it until the transaction ends."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self._process = clock, os.getpid()
        row = self.row("SELECT sequence, hash, at FROM entries ORDER BY sequence DESC LIMIT 1")
        self.head, self.last_at = (Head(row[0], row[1]), int(row[2])) if row else (GENESIS, 0)
        self._next_at: int | None = None
        self.key: LedgerKey | None = None  # whose tag the next row bears
        self.stated: dict[str, Any] = {}  # what the next row states about lanes (`statements.py`)

    @abstractmethod
    def rows(self, statement: str, *values: object) -> list[Sequence[Any]]:
        """All rows of a SELECT; `?` stands for a value."""

    @abstractmethod
    def run(self, statement: str, *values: object) -> None:
        """A statement that changes something."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether the book has a table of this name."""

    def breathe(self) -> None:  # noqa: B027  (nothing to do for a writer)
        """Whoever reads for long calls this now and then: payers go first, also where threads share one core."""

    def row(self, statement: str, *values: object) -> Sequence[Any] | None:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def now(self) -> int:
        """The date of the next row. Time never runs backwards in a book, whatever the clock does."""
        if self._next_at is None:
            self._next_at = max(self.last_at, self._clock())
        return self._next_at

    def append(self, kind: str, content: Content) -> Entry:
        """Write the next row of the book."""
        self.last_at, self._next_at = self.now(), None
        stated, self.stated = self.stated, {}
        entry = follow(self.head, self.last_at, kind, content | ({"lanes": stated} if stated else {}))
        self.run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", entry.sequence, entry.at, kind, entry.body, entry.hash)
        self.head = entry.head
        if self.key is not None:
            write_tag(self, entry.head, self.key)
        return entry

    def entry(self, sequence: int) -> Entry:
        row = self.row("SELECT sequence, at, kind, body, hash FROM entries WHERE sequence = ?", sequence)
        if row is None and os.getpid() != self._process:  # what a copied connection shows is no evidence
            raise LedgerUnavailable("ledger.inherited_inside", spent="nothing")
        if row is None:
            raise LedgerTampered("ledger.row_missing", row=sequence)
        return Entry(*row)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What is inside happens wholly or not at all, whatever else shares the transaction."""
        before = self.head, self.last_at, self.key
        self.run("SAVEPOINT operation")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK TO SAVEPOINT operation")
            self.head, self.last_at, self.key = before
            self._next_at, self.stated = None, {}
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
    """A place for a book. Threads may share it; a process that was forked off opens it anew.

    Whoever pays takes a turn, and all who pay share one connection. Readings have connections of their own.
    """

    def __init__(self, *, clock: Callable[[], int], patience: float, witness: Witness | None, create: bool) -> None:
        self._clock = clock
        self._patience = patience
        self._witness = witness
        self._create = create
        self._seen = GENESIS
        self.key: LedgerKey | None = None
        self.is_of_this_edition = False  # known to be: see `edition.py`
        self._endorsed: Head | None = None  # the last row that was written or checked here, under this key
        self._others_wrote_at = -SHARED  # by the clock of this machine
        self._over = False
        self._lost = ""  # why this process cannot use the place: the code of a sentence
        self._connection: Any = None  # the one that writes; opened when it is needed
        self._fresh()
        watch(self)

    def clock(self) -> int:
        """Microseconds since 1970, as the clock of this book says."""
        return self._clock()

    def is_same_book(self, other: Storage) -> bool:
        """Whether both lead to one book."""
        return self is other

    def _fresh(self) -> None:
        self._process = os.getpid()
        self._queue: deque[_Ticket[Any]] = deque()
        self._turn = threading.RLock()
        self._committed = threading.Event()  # nobody is paying right now
        self._committed.set()
        self._readers = Readers()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """The book for writing: committed durably on leaving, rolled back on an error."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """One unchanging view of the book."""

    @abstractmethod
    def _open_reader(self) -> Any:
        """A connection that only reads."""

    @abstractmethod
    def _begin_reading(self, connection: Any) -> None:
        """Begin a view of the book."""

    def __del__(self) -> None:
        with suppress(Exception):
            if not self._over and os.getpid() == self._process:
                self._disconnect()

    @property
    @abstractmethod
    def place(self) -> str:
        """Where this is, for people: no password in it."""

    def _disconnect(self) -> None:
        """Give the file or the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._readers.clear()

    def close(self) -> None:
        """Use this place no more."""
        notice_fork()
        with self._turn:
            if not self._over and not self._lost:
                self._readers.close()
                self._disconnect()
            self._over = True
        if self._witness:
            self._witness.flush()

    @abstractmethod
    def _connect(self) -> None:
        """Open the place anew, and begin a book where there is none and `create` allows it."""

    def _ours(self) -> None:
        notice_fork()
        if self._lost:
            raise LedgerUnavailable(self._lost, place=self.place, spent="nothing")
        if self._over:
            raise LedgerUnavailable("ledger.closed", place=self.place)

    @abstractmethod
    def prepare_fork(self) -> None:
        """Close what must not be open in two processes."""

    @abstractmethod
    def resume_in_parent(self) -> None:
        """Let everybody go on."""

    def _check_process(self, process: int) -> None:
        """Refuse to end, in a child, a transaction that its parent began."""
        if os.getpid() != process:
            raise LedgerUnavailable("ledger.inherited", place=self.place, spent="nothing")

    @abstractmethod
    def begin_in_child(self) -> None:
        """Forget all that belongs to the parent."""

    def read(self, operation: Callable[[Transaction], Result], *, recognise: bool = True) -> Result:
        """Run `operation` on one unchanging view of the book, beside whoever pays.

        Args:
            operation: changes nothing, so that it may be run again where a fork broke it off.
            recognise: refuse a book that was set back or exchanged. To look into such a book, leave it out.
        """
        self._ours()
        for _ in range(DISTURBANCES):
            expected = self._find_expected() if recognise else ()  # before the book, which may grow meanwhile
            with suppress(Disturbed), self.reading() as transaction:
                transaction.breathe = self._give_way  # type: ignore[method-assign]
                _recognise(transaction, expected)
                return operation(transaction)
        raise LedgerUnavailable("ledger.forked_too_often", place=self.place, times=DISTURBANCES, spent="nothing")

    def write(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run `operation` alone in the book and return when it is on disk.

        Threads that come while another one commits queue up; the first to get its turn takes all that wait
        into one transaction, so that they share one flush of the disk.
        """
        self._ours()
        if self._is_inside():
            raise LedgerUnavailable("ledger.used_inside_itself", spent="nothing")
        ticket = _Ticket(operation)
        self._queue.append(ticket)
        with self._turn:
            while not ticket.settled:
                self._serve(ticket)
        return ticket.result()

    def _give_way(self) -> None:
        """Let the payment that is being made come to its end; stop where the process is about to fork."""
        if self._readers.must_stop():
            raise Disturbed
        if not self._is_inside():
            self._committed.wait(COURTESY)

    def _is_inside(self) -> bool:
        """Whether this very thread has its turn right now."""
        owned: bool = self._turn._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001
        return owned

    def _serve(self, mine: _Ticket[Any]) -> None:
        if not self._queue:  # an interrupt took the ticket out of the queue and went no further
            mine.error, mine.settled = _explain_to_waiting(KeyboardInterrupt()), True
            return
        batch: list[_Ticket[Any]] = []
        self._committed.clear()
        try:
            while self._queue and len(batch) < BATCH:
                batch.append(self._queue.popleft())
            if self._connection is None:
                self._connect()
            with self.transaction() as transaction:
                # read while the book is held: nobody commits now, so no witness can be ahead of an untouched book
                _recognise(transaction, self._find_expected())
                if transaction.head != self._endorsed:
                    self._others_wrote_at = time.monotonic()
                    check_payer(transaction, self.key)
                transaction.key = self.key
                _perform(batch, transaction)
            self.key, self._endorsed = transaction.key, transaction.head
            self._note(transaction.head)
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            for ticket in batch:
                ticket.error = error if ticket is mine else _explain_to_waiting(error)
        self._committed.set()
        for ticket in batch:
            ticket.settled = True

    def recognise(self) -> None:
        """Refuse a book that is older than its witness, or another one."""
        try:
            self._seen = self.read(lambda transaction: transaction.head)
        except BaseException:
            self.close()
            raise

    def _missing(self) -> LedgerUnavailable:
        return LedgerUnavailable("ledger.no_ledger", place=self.place)

    @property
    def witnessed(self) -> Head | None:
        """The last head that the witness remembers, where there is a witness."""
        return self._witness.read() if self._witness else None

    def _find_expected(self) -> tuple[Head, ...]:
        """The heads that the book must hold: the last one seen here, and the last one that anybody saw."""
        own, witnessed = self._seen, self.witnessed
        return (own,) if witnessed is None or witnessed == own else (own, witnessed)

    def _note(self, head: Head) -> None:
        if head != self._seen:
            self._seen = head
            if self._witness:
                self._witness.note(head)


def _recognise(transaction: Transaction, expected: Sequence[Head]) -> None:
    """Refuse a book that lacks one of these heads."""
    for seen in expected:
        if seen == transaction.head:
            continue
        if seen.sequence > transaction.head.sequence:
            ends = transaction.head.sequence
            code = "ledger.older_copy" if ends else "ledger.book_is_gone"
            raise LedgerTampered(code, ends=ends, seen=seen.sequence, spent="nothing")
        if seen.sequence and transaction.entry(seen.sequence).hash != seen.hash:
            raise LedgerTampered("ledger.history_rewritten", row=seen.sequence, spent="nothing")


def _explain_to_waiting(error: BaseException) -> MoshaError:
    """The error for a waiting thread when the thread that committed on its behalf failed."""
    if isinstance(error, MoshaError):
        return copy(error)
    return LedgerUnavailable("ledger.commit_interrupted")


def _perform(batch: list[_Ticket[object]], transaction: Transaction) -> None:
    if len(batch) == 1:
        batch[0].value = batch[0].operation(transaction)  # an error rolls the whole transaction back
        return
    for ticket in batch:
        try:
            with transaction.attempt():
                ticket.value = ticket.operation(transaction)
        except MoshaError as error:
            ticket.error = error


def read_clock() -> int:
    """Now, in microseconds."""
    return time.time_ns() // 1000
