"""One payment and what became of it: reserved, then released or failed, step by step.

    paid ──started──► released | failed          the answer leaves only after `note_answer` is on disk
      ▲        │
      └────────┴── unreached                     the data did not answer: may be started again
      └────────┴── interrupted                   broken off in the middle: counts as a failure, may be started once more
    claimed by another holder                    a retry under the same key; the first holder can no longer release

A step that was started may have met the data. If its holder is gone without a word, one other holder may start it
again for the same payment, once. The next one, of a run whose state can be found again, gives the step up (`fail`): it
stays paid, and the run goes on after it. A measurement that replays may be started at will. Proof: `payment.md`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from mosha.accounting.rules import FREE
from mosha.core.errors import (
    AccountFrozen,
    AlreadyReleased,
    LedgerUnavailable,
    RunClosed,
    StepFailed,
    StepGivenUp,
)
from mosha.core.event import NOTHING, Event, from_dict
from mosha.core.release import Receipt
from mosha.ledger.paying.charge import Charge, charge, hand_back, price_charges, write_charging
from mosha.ledger.paying.codec import Unkept, decode, encode
from mosha.ledger.paying.holder import begin, count_failure, draw_secret, end, make_lock, refuse_frozen
from mosha.ledger.paying.receipts import Order, find_same, make_receipt, remember_purchase, scope_of
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.payers import Payer

__all__ = ["ATTEMPTS", "CLOSED", "VOID", "Payment", "pay", "remainder", "settle", "surplus"]

ATTEMPTS = 2  # how often one step may be started without ever being answered
CLOSED, VOID = 1, 2  # ended; ended before anything was started, and handed back in full: the key is free again


def pay(storage: Storage, order: Order) -> Payment:
    """Charge every payer in one transaction, or find the payment that was made under the same key."""
    charges = price_charges(order.payers, order.event)
    scope, secret = scope_of(order.scope), draw_secret()

    def reserve(transaction: Transaction) -> tuple[Entry, list[Charge] | None]:
        found = order.key is not None and transaction.row(
            "SELECT entry, closed FROM payments WHERE scope = ? AND key = ?", scope, order.key
        )
        if found and found[1] != VOID:
            return find_same(transaction.entry(found[0]), order), None
        if found:
            transaction.run("UPDATE payments SET key = NULL WHERE entry = ?", found[0])
        refuse_frozen(transaction, order.payers, paid=False)
        paid = charge(transaction, order.payers, charges)
        content = order.describe() | {"charges": [done.to_dict() for done in paid], "lock": make_lock(secret)}
        entry = transaction.append("pay", content)
        bought = remember_purchase(transaction, "pay", order.name, order.event.to_dict(), order.horizon, paid)
        insert = "INSERT INTO payments VALUES (?, ?, ?, 1, 1, 0, ?, 0, 0)"
        transaction.run(insert, entry.sequence, scope, order.key, bought)
        return entry, paid

    entry, paid = write_charging(storage, reserve, order.payers)
    if paid is None:  # of the offers for one run, the one that was taken
        order = replace(order, event=from_dict(entry.content()["event"]))
    return Payment(storage, order, entry, paid, secret)


class Payment:
    """The payment of one run, held by one process (a `Reservation`)."""

    def __init__(self, storage: Storage, order: Order, entry: Entry, paid: list[Charge] | None, secret: str) -> None:
        self._storage = storage
        self._order = order
        self._entry = entry
        self._charges = paid or [Charge.from_dict(stored) for stored in entry.content()["charges"]]
        self._claim = 1 if paid else 0  # 0: found under its key; not ours to use until claimed
        self._secret = secret  # what shows that this is the holder (`holder.py`)
        self._ready = self._claim == 1  # the payment itself announces the start of step 1
        self._process = os.getpid()  # a fork has to claim the payment like anybody else
        self._touched = self._touched_before = 0  # the last step that may have met the data
        self._waiting: tuple[int, Any, dict[str, Any]] | None = None  # an answer that could not be noted yet
        self._broken: tuple[int, bool] | None = None  # a step that broke, unnoted as yet, and whether it is over

    @cached_property
    def receipt(self) -> Receipt:
        order = self._order
        return make_receipt(order.scope, order.payers, self._charges, event=order.event, entry=self._entry.label)

    def find_answer(self, step: int) -> tuple[bool, Any]:
        if self._waiting and self._waiting[0] == step:
            answer = self._waiting[1]
            self._note()
            return True, answer
        if self._broken and self._broken[0] == step:
            over = self._broken[1]
            self._note_break()
            if over:
                raise StepFailed("ledger.step_failed", step=step, measurement=self._order.name, spent="paid")
        if self._claim:
            return False, None
        entry = self._storage.read(lambda transaction: _outcome(transaction, self._entry.sequence, step))
        if entry is None:
            return False, None
        content = entry.content()
        if entry.kind == "fail":
            raise StepFailed("ledger.step_failed_earlier", step=step, measurement=self._order.name, spent="paid")
        if "answer" not in content:
            raise AlreadyReleased("ledger.answer_not_kept", step=step, measurement=self._order.name)
        return True, decode(content["answer"])

    def note_start(self, step: int) -> None:
        begin(self._storage, self._entry.sequence, self, name=self._order.name)
        try:
            self._start(step)
        except BaseException:
            end(self._storage, self._entry.sequence, self)
            raise

    def _start(self, step: int) -> None:
        if self._broken is not None:
            self._note_break()
        self._touched_before = self._touched
        if self._ready and self._process == os.getpid():
            self._ready = False
        else:
            secret = draw_secret()
            self._claim, abandoned = self._storage.write(lambda transaction: self._take(transaction, step, secret))
            self._secret = secret
            self._touched_before = max(self._touched_before, step if abandoned else 0)
            self._ready, self._process = abandoned >= ATTEMPTS and not self._order.replays, os.getpid()
        self._touched = step
        if self._ready:
            raise StepGivenUp(
                "ledger.step_given_up", step=step, measurement=self._order.name, attempts=ATTEMPTS, spent="paid"
            )

    def _take(self, transaction: Transaction, step: int, secret: str) -> tuple[int, int]:
        """Become the holder, who starts the step or gives it up; its claim, and how many starts came before it."""
        claim, attempts, closed = self._row(transaction)
        if not self._claim and (closed or (step > 1 and not self._order.resumable)):
            raise RunClosed("ledger.run_lost", measurement=self._order.name)
        overtaken = self._claim and (closed or claim != self._claim)
        if overtaken or _outcome(transaction, self._entry.sequence, step):
            raise self._overtaken(step)
        refuse_frozen(transaction, self._order.payers, paid=True)  # first: whether a step has an answer is not told
        lost = attempts >= ATTEMPTS and not self._order.replays
        if lost and not self._order.resumable:
            raise StepFailed(
                "ledger.started_too_often", step=step, measurement=self._order.name, attempts=ATTEMPTS, spent="paid"
            )
        self._set(transaction, claim=claim + 1, attempts=attempts + 1)
        content = {"payment": self._entry.sequence, "step": step, "claim": claim + 1, "lock": make_lock(secret)}
        if lost:
            _end_step(transaction, "fail", content)
            count_failure(transaction, self._order.payers, self._entry.sequence, step)
        else:
            transaction.append("claim", content)
        return claim + 1, attempts

    def note_answer(self, step: int, answer: object) -> None:
        content = self._about(step) | {"mark": secrets.token_hex(8)}  # tells this very answer from a fork's
        if self._order.key is not None:  # without a key nobody can ask for it again
            with suppress(Unkept):
                content["answer"] = encode(answer)
        self._waiting = (step, answer, content)
        try:
            self._note()
        finally:
            end(self._storage, self._entry.sequence, self)

    def _note(self) -> None:
        """Write down the answer that waits; where the book is out of reach it goes on waiting."""
        assert self._waiting is not None
        content = self._waiting[2]
        try:
            self._storage.write(lambda transaction: self._resolve(transaction, "release", content))
        except (LedgerUnavailable, AccountFrozen):
            raise
        except BaseException:
            self._waiting = None
            raise
        self._waiting = None
        self._ready = True

    def _resolve(self, transaction: Transaction, kind: str, content: Content) -> bool:
        """Write down how a step ended; whether that was still to be done."""
        done = _outcome(transaction, content["payment"], content["step"])
        if done is not None and done.body == canonical(content):
            return False  # the first commit of this very answer got through, and only its confirmation was lost
        self._check_held(transaction, content["step"])
        refuse_frozen(transaction, self._order.payers, paid=True)
        _end_step(transaction, kind, content)
        return True

    def _check_held(self, transaction: Transaction, step: int) -> None:
        """Refuse a holder that was overtaken, and a step that has ended."""
        claim, _, closed = self._row(transaction)
        if closed or claim != self._claim or _outcome(transaction, self._entry.sequence, step) is not None:
            raise self._overtaken(step)

    def note_unreached(self, step: int) -> None:
        def note(transaction: Transaction) -> None:
            claim, attempts, closed = self._row(transaction)
            if claim == self._claim and not closed:
                transaction.append("unreached", self._about(step) | {"unlock": self._secret})
                self._set(transaction, claim=claim, attempts=attempts - 1)

        with suppress(LedgerUnavailable):  # not noted, it counts as an attempt
            self._storage.write(note)
            self._touched = self._touched_before
        end(self._storage, self._entry.sequence, self)

    def note_failure(self, step: int) -> None:
        self._break(step, over=True)

    def note_interruption(self, step: int) -> None:
        self._break(step, over=False)

    def _break(self, step: int, *, over: bool) -> None:
        self._broken = step, over
        try:
            self._note_break()
        finally:
            end(self._storage, self._entry.sequence, self)

    def _note_break(self) -> None:
        """Note that a step broke; where that cannot be told now it goes on waiting, as an answer would.

        Who was overtaken hears that alone, as after an answer, and goes no further.
        """
        assert self._broken is not None
        step, over = self._broken

        def note(transaction: Transaction) -> None:
            if not over:
                self._check_held(transaction, step)
            if not over or self._resolve(transaction, "fail", self._about(step)):
                count_failure(transaction, self._order.payers, self._entry.sequence, step)

        try:
            self._storage.write(note)
        except (LedgerUnavailable, AccountFrozen):
            raise
        except BaseException:
            self._broken = None
            raise
        self._broken, self._ready = None, over

    def note_cancellation(self, step: int) -> None:  # noqa: ARG002
        end(self._storage, self._entry.sequence, self)

    def _about(self, step: int) -> dict[str, Any]:
        return {"payment": self._entry.sequence, "step": step, "claim": self._claim}

    def close(self, unused: int) -> None:
        order = self._order
        used = max(order.horizon - unused, self._touched)
        if not self._claim or not self._surplus(used)[0]:
            return

        def give(transaction: Transaction) -> None:
            claim, _, closed = self._row(transaction)
            if claim == self._claim and not closed:
                back, kept = self._surplus(max(used, self._last_resolved(transaction)))
                if back:
                    settle(transaction, self._entry, self._charges, back, kept, self._secret)

        self._storage.write(give)

    def _surplus(self, used: int) -> tuple[list[Charge], Event]:
        """What goes back after so many steps, and what stays paid."""
        order = self._order
        kept = remainder(order.event, order.horizon, used)
        return surplus(order.payers, self._charges, price_charges(order.payers, kept)), kept

    def _last_resolved(self, transaction: Transaction) -> int:
        """The last step that was answered or broke, whoever held the payment then."""
        row = transaction.row("SELECT MAX(step) FROM steps WHERE payment = ?", self._entry.sequence)
        return int(row[0]) if row and row[0] is not None else 0

    def _row(self, transaction: Transaction) -> tuple[int, int, int]:
        row = transaction.row("SELECT claim, attempts, closed FROM payments WHERE entry = ?", self._entry.sequence)
        assert row is not None
        return row[0], row[1], row[2]

    def _set(self, transaction: Transaction, *, claim: int, attempts: int) -> None:
        statement = "UPDATE payments SET claim = ?, attempts = ? WHERE entry = ?"
        transaction.run(statement, claim, attempts, self._entry.sequence)

    def _overtaken(self, step: int) -> AlreadyReleased:
        return AlreadyReleased("ledger.taken_over", step=step, measurement=self._order.name)


def _end_step(transaction: Transaction, kind: str, content: Content) -> None:
    """Write the row that ends a step: it announces the first start of the one that follows."""
    entry = transaction.append(kind, content)
    transaction.run("INSERT INTO steps VALUES (?, ?, ?)", content["payment"], content["step"], entry.sequence)
    ended = "released" if kind == "release" else "failed"
    statement = f"UPDATE payments SET attempts = 1, {ended} = {ended} + 1 WHERE entry = ?"  # noqa: S608
    transaction.run(statement, content["payment"])


def _outcome(transaction: Transaction, payment: int, step: int) -> Entry | None:
    """The row that says how a step ended, if it ended."""
    row = transaction.row("SELECT entry FROM steps WHERE payment = ? AND step = ?", payment, step)
    return None if row is None else transaction.entry(row[0])


def remainder(event: Event, horizon: int, started: int) -> Event:
    """What a run costs that started so many of its steps: a repeated event is cut, any other one stays whole.

    >>> from mosha.core.events import Gaussian
    >>> remainder(Gaussian(2) * 10, 10, 3) == Gaussian(2) * 3
    True
    """
    if started == 0:
        return NOTHING
    each = event.per_step(horizon)
    return event if each is None else each * started


def surplus(payers: Sequence[Payer], paid: Sequence[Charge], kept: Sequence[Charge]) -> list[Charge]:
    """What was paid above what is kept, at every account whose rule hands back what was never started."""
    triples = zip(payers, paid, kept, strict=True)
    return [
        replace(done, price=done.price - keep.price)
        for payer, done, keep in triples
        if payer.terms.rule.returns_unused and keep.price <= done.price and keep.price != done.price
    ]


def settle(
    transaction: Transaction, payment: Entry, paid: Sequence[Charge], back: Sequence[Charge], kept: Event, secret: str
) -> None:
    """End a payment: hand back what was not used and note what stays paid; on the word of its holder."""
    void = kept == NOTHING and [done.price for done in back] == [done.price for done in paid]
    given = [done.to_dict() for done in hand_back(transaction, back)]
    content = {"payment": payment.sequence, "void": void, "kept": kept.to_dict(), "returned": given}
    content["unlock"] = secret
    transaction.append("close", content)
    bought, less = payment.content(), {done.account: done.price for done in back}
    stays = [replace(done, price=done.price - less.get(done.account, FREE)) for done in paid]
    what = payment.kind, bought.get("name", payment.kind), kept.to_dict(), bought.get("horizon", 1)
    kind = remember_purchase(transaction, *what, stays)
    statement = "UPDATE payments SET closed = ?, purchase = ? WHERE entry = ?"
    transaction.run(statement, VOID if void else CLOSED, kind, payment.sequence)
