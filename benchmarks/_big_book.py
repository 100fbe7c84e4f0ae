"""A big book, quickly: payments and releases through the code that writes every row, many in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mosha

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


def open_accounts(ledger: mosha.Ledger, above: str, names: Sequence[str], *, epsilon: float) -> None:
    """Open an account beneath another for each name, until the end of the century."""
    account = ledger.account(above)

    def many(some: Sequence[str]) -> None:
        for name in some:
            account.grant(name, expires="2099-01-01", epsilon=epsilon)

    for begin in range(0, len(names), CHUNK):
        _in_one(ledger, lambda begin=begin: many(names[begin : begin + CHUNK]))  # type: ignore[misc]
