"""What accounts and their ledger share: where the book is kept, the terms that were read, and what stands in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from mosha.accounting.rules import Price
from mosha.core.errors import UnknownAccount
from mosha.core.event import Event
from mosha.core.faults.weakness import WeakPromise
from mosha.core.unit import Unit
from mosha.ledger.checking.index import is_current, renew
from mosha.ledger.opening import begin_book, check_version, find_or_open, read_terms
from mosha.ledger.paying.charge import from_columns
from mosha.ledger.paying.holder import failures_of, lift
from mosha.ledger.paying.receipts import compose_purchases, find_purchases
from mosha.ledger.storage.key import LedgerKey
from mosha.ledger.storage.seal import check_key
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.payers import ancestry, join_name
from mosha.ledger.terms.terms import Terms
from mosha.ledger.terms.wanted import GrantTerms, Limits, Wanted
from mosha.ledger.terms.weakness import find_weaknesses

__all__ = ["Book"]


class Book:
    """A stored book of accounts, by their names."""

    def _begin(self, storage: Storage, key: LedgerKey | None = None) -> None:
        self._storage = storage
        self._terms: dict[str, Terms] = {}
        storage.key = key
        if key is not None:
            storage.read(lambda transaction: check_key(transaction, key))
        if storage.read(lambda transaction: transaction.head.sequence) == 0:
            storage.write(begin_book)
        storage.read(check_version)
        if not storage.read(is_current):
            storage.write(renew)

    @property
    def place(self) -> str:
        """Where the book is kept (without a password)."""
        return self._storage.place

    def _open(
        self, parent: str | None, name: str, unit: Unit | None, limits: Limits | GrantTerms, *, block: bool = False
    ) -> Terms:
        """Find an account under these terms, or open it; a weak promise is said to whoever called the caller."""
        wanted = Wanted.of(join_name(parent, name), unit, limits, block=block)
        population = () if unit is None or unit.of is None else (unit.of,)
        path = [*ancestry(wanted.name), *population]
        known = self._storage.read(lambda transaction: read_terms(transaction, path))
        if wanted.name not in known:
            known, opened = self._storage.write(lambda transaction: find_or_open(transaction, wanted, path))
            for weakness in find_weaknesses(known[wanted.name], known) if opened else ():
                warnings.warn(f"account {wanted.name!r}: {weakness}", WeakPromise, stacklevel=4)
        wanted.compare(known[wanted.name])
        self._terms |= known
        return known[wanted.name]

    def _find_terms(self, names: Iterable[str]) -> dict[str, Terms]:
        """The terms of these accounts, all above them and their populations; terms never change: they are read once."""
        self._read_terms({above for name in names for above in ancestry(name)})
        populations = (self._terms[name].unit.of for name in names if name in self._terms)
        self._read_terms({of for of in populations if of is not None})
        return self._terms

    def _read_terms(self, needed: set[str]) -> None:
        if missing := sorted(name for name in needed if name not in self._terms):
            self._terms |= self._storage.read(lambda transaction: read_terms(transaction, missing))

    def _read_all_terms(self) -> list[Terms]:
        known = self._storage.read(lambda transaction: read_terms(transaction, None))
        self._terms |= known
        return [terms for _, terms in sorted(known.items())]

    def _now(self) -> int:
        return self._storage.read(lambda transaction: transaction.now())

    def _balance(self, name: str) -> tuple[Price, str, bool]:
        """What an account has spent, the way it adds up, and whether it is retired."""
        row = self._storage.read(
            lambda transaction: transaction.row("SELECT amount, delta, retired FROM accounts WHERE name = ?", name)
        )
        if row is None:
            raise UnknownAccount("ledger.no_account", account=name)
        return *from_columns(row[0], row[1]), bool(row[2])

    def _retire(self, name: str, reason: str | None = None) -> None:
        def retire(transaction: Transaction) -> None:
            row = transaction.row("SELECT retired FROM accounts WHERE name = ?", name)
            if row and not row[0]:
                transaction.append("retire", {"account": name} | ({"reason": reason} if reason else {}))
                transaction.run("UPDATE accounts SET retired = 1 WHERE name = ?", name)

        self._storage.write(retire)

    def _failures(self, name: str) -> int:
        return self._storage.read(lambda transaction: failures_of(transaction, name))

    def _lift(self, name: str) -> int:
        return self._storage.write(lambda transaction: lift(transaction, name)).get(name, 0)

    def _event(self, name: str) -> Event:
        self._balance(name)
        return self._storage.read(lambda transaction: compose_purchases(find_purchases(transaction, name)))
