"""A big book, quickly: payments and releases through the code that writes every row, many in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import mosha
from mosha.ledger.paying.holder import draw_secret, make_lock
from mosha.ledger.storage.chain import follow

CHUNK = 5_000


class _Inside:
    """The storage of a ledger, seen from inside one of its transactions."""

    def __init__(self, storage: Any, transaction: Any) -> None:
        self._storage, self._transaction = storage, transaction

    def write(self, operation: Any) -> Any:
        return operation(self._transaction)

    def read(self, operation: Any, **_: Any) -> Any:
        return operation(self._transaction)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


def _in_one(ledger: mosha.Ledger, work: Callable[[], None]) -> None:
    """Do something to a ledger whose steps all go into one transaction."""
    storage = ledger._storage  # noqa: SLF001

    def run(transaction: Any) -> None:
        ledger._storage = _Inside(storage, transaction)  # type: ignore[assignment]  # noqa: SLF001
        try:
            work()
        finally:
            ledger._storage = storage  # noqa: SLF001

    storage.write(run)


def fill(ledger: mosha.Ledger, name: str, measurement: mosha.Measurement, times: int, data: Any = None) -> None:
    """Open and step `measurement` so many times on the account `name`."""
    account = ledger.account(name)

    def many(count: int) -> None:
        for _ in range(count):
            account.open(measurement).step(data)

    for done in range(0, times, CHUNK):
        _in_one(ledger, lambda done=done: many(min(CHUNK, times - done)))  # type: ignore[misc]


def repeat(ledger: mosha.Ledger, name: str, measurement: mosha.Measurement, times: int) -> None:
    """Charge and release so many times: the first through the code that pays, the others as copies of its rows.

    About ten times as quick as `fill`, for measurements of one step on accounts with one way of paying. Whether the
    book is what payments would have left is seen by `verify`, of a small one.
    """
    fill(ledger, name, measurement, 1)
    for done in range(1, times, CHUNK):
        count = min(CHUNK, times - done)
        ledger._storage.write(lambda transaction, count=count: _copy_last(transaction, count))  # type: ignore[misc]  # noqa: SLF001


def _copy_last(transaction: Any, times: int) -> None:
    """Append the last payment and its release so many times, with balances, locks and marks of their own."""
    release, pay = (transaction.entry(transaction.head.sequence - back) for back in (0, 1))
    payment = transaction.row("SELECT * FROM payments WHERE entry = ?", pay.sequence)
    bought, answered, head, at = pay.content(), release.content(), transaction.head, transaction.now()
    rows: dict[str, list[tuple[Any, ...]]] = {"entries": [], "payments": [], "steps": []}
    for _ in range(times):
        for charge in bought["charges"]:
            charge["spent"] = [str(int(a) + int(b)) for a, b in zip(charge["spent"], charge["price"], strict=True)]
        bought["lock"] = make_lock(draw_secret())
        paid = follow(head, at, "pay", bought)
        answered |= {"mark": secrets.token_hex(8), "payment": paid.sequence}
        done = follow(paid.head, at, "release", answered)
        rows["entries"] += [(e.sequence, e.at, e.kind, e.body, e.hash) for e in (paid, done)]
        rows["payments"].append((paid.sequence, *payment[1:]))
        rows["steps"].append((paid.sequence, 1, done.sequence))
        head = done.head
    for table, values in rows.items():
        marks = ", ".join("?" * len(values[0]))
        transaction._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: SLF001
    for charge in bought["charges"]:
        change = "UPDATE accounts SET amount = ?, delta = ?, entry = ? WHERE name = ?"
        transaction.run(change, *charge["spent"], head.sequence - 1, charge["account"])
    transaction.head, transaction.last_at = head, at


def open_accounts(ledger: mosha.Ledger, above: str, names: Sequence[str], *, epsilon: float) -> None:
    """Open an account beneath another for each name, until the end of the century."""
    account = ledger.account(above)

    def many(some: Sequence[str]) -> None:
        for name in some:
            account.grant(name, expires="2099-01-01", epsilon=epsilon)

    for begin in range(0, len(names), CHUNK):
        _in_one(ledger, lambda begin=begin: many(names[begin : begin + CHUNK]))  # type: ignore[misc]
