"""A lease: a slice of budget, reserved with one flush of the disk and spent from memory.

Guarantee:
    At every moment the price of all runs that were opened on the lease is at most the slice, and the slice is
    charged, durably, before the first of them. So the accounts are never overspent. A crash loses the memory of
    what was spent: then the whole slice stays charged, which counts too much and never too little.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from mosha.accounting.rules import Price
from mosha.core.account import Account, Reservation
from mosha.core.errors import AccountFrozen, BudgetExceeded, InvalidParameter, RunClosed, StepFailed
from mosha.core.event import Event, compose
from mosha.core.measurement import Measurement, Rng
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.ledger.paying.charge import Charge, charge, check_ends, price_charges, write_charging
from mosha.ledger.paying.holder import count_failure, draw_secret, make_lock, refuse_frozen
from mosha.ledger.paying.payment import remainder, settle, surplus
from mosha.ledger.paying.receipts import make_receipt, remember_purchase, scope_of
from mosha.ledger.storage.chain import Content, Entry
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import Terms

__all__ = ["Lease"]

REMEMBERED = 4096  # prices of events that a lease keeps at hand


class Lease(Account):
    """An account in memory whose limit is a slice of a durable one. Made by `LedgerAccount.lease`.

    It keeps no answers and takes no keys, and only the process that took it may use it.

    `event` is the slice that is paid now, from `storage`, by `payers`, for `unit`; `scope` names the accounts that
    lease.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> with account.lease(mosha.events.Pure(epsilon=0.5)) as lease:
    ...     lease.affords(mosha.events.Pure(epsilon=0.4))
    True
    """

    def __init__(
        self, storage: Storage, unit: Unit, scope: tuple[str, ...], payers: tuple[Payer, ...], event: Event
    ) -> None:
        if not isinstance(event, Event):
            raise InvalidParameter("ledger.lease_without_event", parameter="event")
        self._storage = storage
        self._unit = unit
        self._scope = scope
        self._payers = payers
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open = True
        self._frozen: tuple[str, int] | None = None  # the account that is frozen, and its allowance
        self._uncounted: deque[int] = deque()  # the steps of failures that are not in the book yet
        self._opened: Counter[Event] = Counter()
        self._prices: dict[Event, list[Price]] = {}
        self._receipts: dict[Event, Receipt] = {}
        self._secret = draw_secret()  # what shows that this is the holder (`holder.py`)
        self._entry, self._charges = write_charging(storage, lambda t: self._reserve_slice(t, event), payers)
        self._latest = self._entry.at
        self._left = [done.price for done in self._charges]

    def _reserve_slice(self, transaction: Transaction, event: Event) -> tuple[Entry, list[Charge]]:
        refuse_frozen(transaction, self._payers, paid=False)
        paid = charge(transaction, self._payers, price_charges(self._payers, event))
        content: Content = {
            "event": event.to_dict(),
            "scope": list(self._scope),
            "lock": make_lock(self._secret),
        }
        entry = transaction.append("lease", content | {"charges": [done.to_dict() for done in paid]})
        bought = remember_purchase(transaction, "lease", "lease", event.to_dict(), 1, paid)
        insert = "INSERT INTO payments VALUES (?, ?, NULL, 1, 1, 0, ?, 0, 0)"
        transaction.run(insert, entry.sequence, scope_of(self._scope), bought)
        return entry, paid

    @property
    def name(self) -> str:
        return " + ".join(self._scope)

    @property
    def unit(self) -> Unit:
        return self._unit

    def affords(self, event: Event) -> bool:
        """Whether the slice has enough left for `event`."""
        return all(price <= left for price, left in zip(self._price(event), self._left, strict=True))

    def _price(self, event: Event) -> list[Price]:
        found = self._prices.get(event)
        if found is None:
            if len(self._prices) >= REMEMBERED:
                self._prices.clear()
                self._receipts.clear()
            found = self._prices[event] = [done.price for done in price_charges(self._payers, event)]
        return found

    def _receipt(self, event: Event) -> Receipt:
        """The receipt of a debit: all of one event are alike, for the accounts have paid the slice as a whole."""
        found = self._receipts.get(event)
        if found is None:
            charges = [replace(c, price=p) for c, p in zip(self._charges, self._price(event), strict=True)]
            label = self._entry.label
            found = make_receipt(self._scope, self._payers, charges, event=event, entry=label, leased=True)
            self._receipts[event] = found
        return found

    def _reserve(self, measurement: Measurement, key: str | None) -> Reservation:
        if key is not None:
            raise InvalidParameter("ledger.lease_takes_no_key", parameter="key", spent="nothing")
        self._usable()  # before the lock, which a fork may have copied while somebody held it
        prices = self._price(measurement.event)
        with self._lock:
            self._count_failures()
            self._usable()
            self._latest = max(self._latest, self._storage.clock())
            check_ends(self._payers, self._latest)
            left = []
            for position, price in enumerate(prices):
                if not price <= self._left[position]:
                    raise self._refusal(position, price)
                left.append(self._left[position] - price)
            self._left = left
            self._opened[measurement.event] += 1
        return _Debit(self, measurement)

    def _usable(self) -> None:
        self._check_process()
        if not self._open:
            raise RunClosed("ledger.lease_over")
        if self._frozen is not None:
            raise self._refusal_of_frozen(paid=False)

    def _check_process(self) -> None:
        """Refuse a fork, which holds a copy of the slice that is not its own."""
        if self._process != os.getpid():
            raise RunClosed("ledger.lease_of_another_process")

    def _refusal(self, position: int, price: Price) -> BudgetExceeded:
        terms, slice_ = self._payers[position].terms, self._charges[position].price
        rule, spent, measure = terms.rule, slice_ - self._left[position], terms.rule.measure
        way = self._charges[position].way
        asks, spends, limits = (rule.amount_of(value, way) for value in (price, spent, slice_))
        if price.amount <= self._left[position].amount and price.rho <= self._left[position].rho:
            measure, (asks, spends, limits) = "delta", (value.as_floats()[1] for value in (price, spent, slice_))
        name = f"{terms.name} (lease)"
        return BudgetExceeded(account=name, measure=measure, asked=asks, used=spends, limit=limits)

    def _hand_back(self, event: Event, kept: Event) -> None:
        """Steps that were never started return to the slice, where every payer's rule allows it."""
        if kept == event or not all(payer.terms.rule.returns_unused for payer in self._payers):
            return
        if self._process != os.getpid():
            return
        before, after = self._price(event), self._price(kept)
        with self._lock:
            if not self._open or not all(keep <= paid for keep, paid in zip(after, before, strict=True)):
                return
            triples = zip(self._left, before, after, strict=True)
            self._left = [left + (paid - keep) for left, paid, keep in triples]
            self._opened[event] -= 1
            if kept.parts():
                self._opened[kept] += 1

    def _tell(self, failed: int | None = None) -> None:
        """Let an outcome leave: an answer, or a failure of a step, which is counted first, durably.

        One after the other: what comes after a failure that could not be counted waits with it, and from the moment
        that the account is known to be frozen this lease tells nothing more.
        """
        self._check_process()
        with self._lock:
            if failed is not None:
                self._uncounted.append(failed)
            frozen_before = self._count_failures()
            if frozen_before or (self._frozen is not None and failed is None):
                raise self._refusal_of_frozen(paid=True)

    def _count_failures(self) -> bool:
        """Count what waits; whether the account was frozen before all of it was counted."""
        while self._uncounted and self._frozen is None:
            try:
                frozen = self._storage.write(self._count_first)
            except AccountFrozen as refusal:
                self._frozen = (str(refusal.account), refusal.failures)
                break
            self._uncounted.popleft()
            if frozen is not None:
                self._frozen = (frozen.name, frozen.failures)
        return bool(self._uncounted)

    def _count_first(self, transaction: Transaction) -> Terms | None:
        return count_failure(transaction, self._payers, self._entry.sequence, self._uncounted[0])

    def _refusal_of_frozen(self, *, paid: bool) -> AccountFrozen:
        assert self._frozen is not None
        return AccountFrozen(account=self._frozen[0], failures=self._frozen[1], paid=paid)

    def _randomness(self) -> Rng:
        from mosha.noise import secure  # noqa: PLC0415  (as in LedgerAccount)

        return secure()

    def close(self) -> None:
        """End the lease; what is left of the slice goes back to the accounts whose rules allow it."""
        if self._process != os.getpid():
            return
        with self._lock:
            if not self._open:
                return
            self._count_failures()
            self._open = False
            kept = compose((event, count) for event, count in self._opened.items() if count)
            left = self._left
        spent = [paid.price - rest for paid, rest in zip(self._charges, left, strict=True)]
        keeping = [Charge(c.account, c.family, c.lanes, p) for c, p in zip(self._charges, spent, strict=True)]
        back = surplus(self._payers, self._charges, keeping)
        self._storage.write(lambda t: settle(t, self._entry, self._charges, back, kept, self._secret))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Debit:
    """A payment from a slice (a `Reservation`): nothing of it is written until the lease ends."""

    def __init__(self, lease: Lease, measurement: Measurement) -> None:
        self._lease = lease
        self._measurement = measurement
        self._touched = self._touched_before = 0
        self._waiting: tuple[int, Any] | None = None  # an answer that waits for a failure to be counted
        self._broken: int | None = None  # a step whose own failure could not be counted yet

    @property
    def receipt(self) -> Receipt:
        return self._lease._receipt(self._measurement.event)  # noqa: SLF001

    def find_answer(self, step: int) -> tuple[bool, Any]:
        if self._waiting and self._waiting[0] == step:
            answer = self._waiting[1]
            self._let_go()
            return True, answer
        if self._broken == step:
            self._let_go()
            raise StepFailed("ledger.step_failed", step=step, measurement=self._measurement.name, spent="paid")
        return False, None

    def _let_go(self) -> None:
        """Let the outcome leave that waits."""
        self._lease._tell()  # noqa: SLF001
        self._waiting = self._broken = None

    def note_start(self, step: int) -> None:
        self._lease._usable()  # noqa: SLF001
        self._lease._tell()  # noqa: SLF001
        if step <= self._touched:
            raise StepFailed("ledger.step_never_answered", step=step, measurement=self._measurement.name, spent="paid")
        self._touched_before, self._touched = self._touched, step

    def note_answer(self, step: int, answer: object) -> None:
        """The slice is on disk, and nobody can ask for this answer again: there is nothing to note of it."""
        self._waiting = step, answer
        self._let_go()

    def note_unreached(self, step: int) -> None:  # noqa: ARG002
        self._touched = self._touched_before

    def note_failure(self, step: int) -> None:
        self._broken = step
        self._lease._tell(step)  # noqa: SLF001
        self._broken = None

    def note_interruption(self, step: int) -> None:
        self.note_failure(step)

    def note_cancellation(self, step: int) -> None:
        """Nothing was told."""

    def close(self, unused: int) -> None:
        event, horizon = self._measurement.event, self._measurement.horizon
        self._lease._hand_back(event, remainder(event, horizon, max(horizon - unused, self._touched)))  # noqa: SLF001
