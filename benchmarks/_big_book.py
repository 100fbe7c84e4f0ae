"""A big book, quickly: payments and releases through the code that writes every row, many in one transaction."""

from __future__ import annotations

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


def fill(ledger: mosha.Ledger, name: str, measurement: mosha.Measurement, times: int, data: Any = None) -> None:
    """Open and step `measurement` so many times on the account `name`."""
    storage = ledger._storage  # noqa: SLF001
    account = ledger.account(name)

    def many(transaction: Any, count: int) -> None:
        ledger._storage = _Inside(storage, transaction)  # type: ignore[assignment]  # noqa: SLF001
        try:
            for _ in range(count):
                account.open(measurement).step(data)
        finally:
            ledger._storage = storage  # noqa: SLF001

    while times > 0:
        count = min(CHUNK, times)
        storage.write(lambda transaction, count=count: many(transaction, count))
        times -= count
