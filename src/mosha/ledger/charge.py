"""Charging: every payer can pay, or nobody pays. Whole numbers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mosha.accounting.rule import Converted
from mosha.accounting.rules import FREE, Price, Rule
from mosha.core.errors import AccountExpired, AccountRetired, BudgetExceeded, LedgerError, UnknownAccount
from mosha.core.event import Event
from mosha.ledger.moment import as_text
from mosha.ledger.note import OWN, append_note
from mosha.ledger.storage import Storage, Transaction
from mosha.ledger.tree import Payer, Terms

__all__ = ["Charge", "charge", "check_ends", "greatest", "hand_back", "priced", "refusal", "write_charging"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Charge:
    """What one account pays for one release, and what it has spent with it."""

    account: str
    family: str
    lanes: tuple[str, ...]
    price: Price
    spent: Price = FREE

    def to_dict(self) -> dict[str, Any]:
        described = {"account": self.account, "price": _plain(self.price), "spent": _plain(self.spent)}
        return described | ({"family": self.family, "lanes": list(self.lanes)} if self.lanes else {})

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Charge:
        price, spent = (Price(*map(int, stored[part])) for part in ("price", "spent"))
        return Charge(stored["account"], stored.get("family", ""), tuple(stored.get("lanes", ())), price, spent)


def _plain(price: Price) -> list[str]:
    return [str(price.amount), str(price.delta)]


def greatest(prices: Iterable[Price]) -> Price:
    """The least price that is at least each of these, part by part."""
    amount = delta = 0
    for price in prices:
        amount, delta = max(amount, price.amount), max(delta, price.delta)
    return Price(amount, delta)


def priced(payers: Sequence[Payer], event: Event) -> list[Charge]:
    """What every payer would pay for `event`, each by its own rule (Unpriced where a rule has no price)."""
    return [Charge(p.terms.name, p.family, p.lanes, p.terms.rule.price(event)) for p in payers]


def charge(transaction: Transaction, payers: Sequence[Payer], charges: Sequence[Charge]) -> list[Charge]:
    """Take every charge, or raise and take none."""
    check_ends(payers, transaction.now())
    balances = _balances(transaction, [payer.terms.name for payer in payers])
    paid, lanes = [], []
    for payer, asked in zip(payers, charges, strict=True):
        increase, changed = _increase(transaction, asked)
        spent = balances[asked.account]
        if not spent + increase <= payer.terms.limit:
            raise refusal(payer.terms, increase, spent)
        paid.append(replace(asked, spent=spent + increase))
        lanes.append(changed)
    for done, changed in zip(paid, lanes, strict=True):
        _write(transaction, done, changed)
    return paid


def check_ends(payers: Sequence[Payer], now: int) -> None:
    """Refuse where one of the payers was granted until a date that has passed."""
    for terms in (payer.terms for payer in payers):
        if terms.expires is not None and terms.expires <= now:
            raise AccountExpired(account=terms.name, ended=as_text(terms.expires))


def write_charging(storage: Storage, operation: Callable[[Transaction], Result], payers: Sequence[Payer]) -> Result:
    """Run an operation that charges. That a grant was found to have ended is noted: the clock cannot bring it back."""
    try:
        return storage.write(operation)
    except AccountExpired as error:
        ended = next(payer.terms for payer in payers if payer.terms.name == error.account)
        with suppress(LedgerError):
            storage.write(lambda transaction: _note_end(transaction, ended))
        raise


def _note_end(transaction: Transaction, ended: Terms) -> None:
    """Any row that is dated after the end will do: no later row can be dated before it."""
    if ended.expires is not None and transaction.last_at < ended.expires <= transaction.now():
        append_note(transaction, f"{OWN}expired", {"expires": as_text(ended.expires)}, ended.name)


def refusal(terms: Terms, asked: Price, spent: Price) -> BudgetExceeded:
    """Say which part of the limit is too small: public numbers, all of them."""
    limit, part, measure = terms.limit, 0, terms.rule.measure
    if asked.amount + spent.amount <= limit.amount:
        part, measure = 1, "delta"
    asks, spends, limits = (price.as_floats()[part] for price in (asked, spent, limit))
    return BudgetExceeded(
        account=terms.name, measure=measure, asked=asks, spent=spends, limit=limits, advice=_advice(terms.rule, asked)
    )


def _advice(rule: Rule, asked: Price) -> str:
    """For a price that the whole limit could not pay, where the rule adds up another measure than it promises."""
    if asked <= rule.limit or not isinstance(rule, Converted) or rule.epsilon is None:
        return ""
    amount, delta = rule.limit.as_floats()
    return (
        f"This account promises {rule.promise()} and adds up {rule.measure}, of which that is {amount:.6g}, with delta "
        f"{delta:.6g} for releases that carry one: good for many small releases, and this one is more than all of it. "
        'An account opened with rule="pure" adds up epsilons and deltas themselves: good for a few large ones.'
    )


def hand_back(transaction: Transaction, charges: Sequence[Charge]) -> list[Charge]:
    """Undo a part of earlier charges, for steps that were never started."""
    given = []
    for back in charges:
        decrease, changed = _decrease(transaction, back)
        row = transaction.row("SELECT amount, delta FROM accounts WHERE name = ?", back.account)
        assert row is not None
        given.append(replace(back, spent=Price(int(row[0]), int(row[1])) - decrease))
        _write(transaction, given[-1], changed)
    return given


def _balances(transaction: Transaction, names: list[str]) -> dict[str, Price]:
    marks = ", ".join("?" * len(names))
    statement = f"SELECT name, amount, delta, retired FROM accounts WHERE name IN ({marks})"  # noqa: S608
    rows = transaction.rows(statement, *names)
    for name in set(names) - {row[0] for row in rows}:
        raise UnknownAccount(f"this ledger has no account {name!r}.")
    for name, *_, retired in rows:
        if retired:
            raise AccountRetired(f"account {name!r} is retired: nothing is charged to it or beneath it any more.")
    return {name: Price(int(amount), int(delta)) for name, amount, delta, _ in rows}


def _lanes(transaction: Transaction, account: str, family: str, lanes: Sequence[str] = ()) -> dict[str, Price]:
    """What was paid in these lanes (all of the family by default); the lane "" holds the greatest of them."""
    chosen = f" AND lane IN ({', '.join('?' * len(lanes))})" if lanes else ""
    statement = f"SELECT lane, amount, delta FROM lanes WHERE account = ? AND family = ?{chosen}"  # noqa: S608
    rows = transaction.rows(statement, account, family, *lanes)
    return {lane: Price(int(amount), int(delta)) for lane, amount, delta in rows}


def _increase(transaction: Transaction, asked: Charge) -> tuple[Price, dict[str, Price]]:
    """How much an account's spending grows: by the price, or by what a lane rises above the greatest one."""
    if not asked.lanes:
        return asked.price, {}
    paid = _lanes(transaction, asked.account, asked.family, (*asked.lanes, ""))
    changed = {lane: paid.get(lane, FREE) + asked.price for lane in asked.lanes}
    top = paid.get("", FREE)
    changed[""] = greatest([top, *changed.values()])
    return changed[""] - top, changed


def _decrease(transaction: Transaction, back: Charge) -> tuple[Price, dict[str, Price]]:
    """How much an account's spending shrinks: the greatest lane may now be another one."""
    if not back.lanes:
        return back.price, {}
    paid = _lanes(transaction, back.account, back.family)
    top = paid.pop("")
    changed = {lane: paid[lane] - back.price for lane in back.lanes}
    changed[""] = greatest((paid | changed).values())
    return top - changed[""], changed


def _write(transaction: Transaction, done: Charge, lanes: Mapping[str, Price]) -> None:
    statement = "UPDATE accounts SET amount = ?, delta = ? WHERE name = ?"
    transaction.run(statement, *_plain(done.spent), done.account)
    statement = (
        "INSERT INTO lanes VALUES (?, ?, ?, ?, ?) ON CONFLICT (account, family, lane) "
        "DO UPDATE SET amount = excluded.amount, delta = excluded.delta"
    )
    for lane, price in lanes.items():
        transaction.run(statement, done.account, done.family, lane, *_plain(price))
