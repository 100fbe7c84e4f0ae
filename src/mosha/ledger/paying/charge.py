"""Charging: every payer can pay, or nobody pays. Whole numbers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mosha.accounting.admission import Converted, read_limit, repeats_within
from mosha.accounting.either import ANY
from mosha.accounting.numerics.price import as_float, cover_prices
from mosha.accounting.rules import FREE, Price
from mosha.core.errors import (
    AccountExpired,
    AccountRetired,
    BudgetExceeded,
    LedgerError,
    LedgerTampered,
    UnknownAccount,
)
from mosha.core.event import Event
from mosha.core.language import phrase
from mosha.ledger.paying.statements import Row, check_lanes, state_lanes, states_tops
from mosha.ledger.storage.transactions import Storage, Transaction
from mosha.ledger.terms.edition import begin_edition
from mosha.ledger.terms.moment import as_text
from mosha.ledger.terms.note import OWN, append_note
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import Terms

__all__ = [
    "Charge",
    "charge",
    "check_ends",
    "count_room",
    "foresee",
    "from_columns",
    "hand_back",
    "price_charges",
    "refusal",
    "to_columns",
    "write_charging",
]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Charge:
    """What one account pays for one release, and what it has spent with it.

    `way` is how the account adds up, where its rule knows several ways: chosen by its first payment, and kept.
    """

    account: str
    family: str
    lanes: tuple[str, ...]
    price: Price
    spent: Price = FREE
    way: str = ""

    def to_dict(self) -> dict[str, Any]:
        described = {
            "account": self.account,
            "price": self._describe_price(self.price),
            "spent": self._describe_price(self.spent),
        }
        described |= {"way": self.way} if self.way else {}
        return described | ({"family": self.family, "lanes": list(self.lanes)} if self.lanes else {})

    def _describe_price(self, price: Price) -> list[str]:
        return [str(part) for part in price.parts[: 4 if self.way else 2]]

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Charge:
        price, spent = (Price(*map(int, stored[part])) for part in ("price", "spent"))
        lanes, way = tuple(stored.get("lanes", ())), stored.get("way", "")
        return Charge(stored["account"], stored.get("family", ""), lanes, price, spent, way)


def price_charges(payers: Sequence[Payer], event: Event) -> list[Charge]:
    """What every payer would pay for `event`, each by its own rule (Unpriced where a rule has no price)."""
    return [Charge(p.terms.name, p.family, p.lanes, p.terms.rule.price(event)) for p in payers]


def charge(transaction: Transaction, payers: Sequence[Payer], charges: Sequence[Charge]) -> list[Charge]:
    """Take every charge, or raise and take none. A first payment chooses the way of an account, for good."""
    check_ends(payers, transaction.now())
    balances, rows = _balances(transaction, [payer.terms.name for payer in payers])
    paid, lanes = [], []
    for payer, asked in zip(payers, charges, strict=True):
        increase, changed = _increase(transaction, asked, rows)
        spent, chosen = balances[asked.account]
        rule = payer.terms.rule
        way = chosen or rule.way(asked.price)
        if not rule.admits(spent + increase, way):
            raise refusal(payer.terms, increase, spent, way)
        paid.append(replace(asked, spent=spent + increase, way=way))
        lanes.append(changed)
    _write_all(transaction, paid, lanes, rows)
    return paid


def check_ends(payers: Sequence[Payer], now: int) -> None:
    """Refuse where one of the payers was granted until a date that has passed."""
    for terms in (payer.terms for payer in payers):
        if terms.expires is not None and terms.expires <= now:
            raise AccountExpired(account=terms.name, ended=as_text(terms.expires))


def write_charging(storage: Storage, operation: Callable[[Transaction], Result], payers: Sequence[Payer]) -> Result:
    """Run an operation that charges. That a grant was found to have ended is noted: the clock cannot bring it back."""

    def begin_and_run(transaction: Transaction) -> Result:
        begin_edition(transaction)
        return operation(transaction)

    try:
        result = storage.write(operation if storage.is_of_this_edition else begin_and_run)
    except AccountExpired as error:
        ended = next(payer.terms for payer in payers if payer.terms.name == error.account)
        with suppress(LedgerError):
            storage.write(lambda transaction: _note_end(transaction, ended))
        raise
    storage.is_of_this_edition = True
    return result


def _note_end(transaction: Transaction, ended: Terms) -> None:
    """Any row that is dated after the end will do: no later row can be dated before it."""
    if ended.expires is not None and transaction.last_at < ended.expires <= transaction.now():
        append_note(transaction, f"{OWN}expired", {"expires": as_text(ended.expires)}, ended.name)


def refusal(terms: Terms, asked: Price, spent: Price, way: str) -> BudgetExceeded:
    """Say which part of the limit is too small: public numbers, all of them."""
    rule, total = terms.rule, asked + spent
    delta = 0 if rule.amount_left(spent, way, asked.delta) == 0 else asked.delta
    left = rule.amount_left(spent, way, delta)
    prices = {"asked": asked, "used": spent, "reached": total}
    numbers = {name: rule.amount_of(price, way) for name, price in prices.items()}
    numbers["limit"], measure = rule.amount_limit, rule.measure
    lacking = _lacking_delta(rule.limits(way), total)
    if lacking is not None:
        part, limit = lacking
        numbers, measure = {name: as_float(getattr(price, part)) for name, price in prices.items()}, "delta"
        numbers["limit"] = read_limit(getattr(limit, part))
    advice = phrase("ledger.nothing_fits")
    if lacking is not None and numbers["limit"] == 0:  # no smaller release of this kind would fit either
        advice = phrase("ledger.needs_delta", delta=numbers["asked"])
    elif left and isinstance(rule, Converted):
        said = {"measure": rule.measure, "left": left, "epsilon": rule.pure_left(left)}
        code = "ledger.fits_converted_with_delta" if delta else "ledger.fits_converted"
        advice = phrase(code, **said | ({"delta": as_float(delta)} if delta else {}))
    elif left and delta:
        advice = phrase("ledger.fits_with_delta", measure=rule.measure, left=left, delta=as_float(delta))
    elif left:
        advice = phrase("ledger.fits", measure=rule.measure, left=left)
    return BudgetExceeded(account=terms.name, measure=measure, **numbers, advice=advice)


def _lacking_delta(limits: tuple[Price, ...], total: Price) -> tuple[str, Price] | None:
    """The limit that a sum would be within but for its delta, and which of its deltas that is."""
    for limit in limits:
        if limit.amount < ANY and total.amount <= limit.amount:
            return "delta", limit
        if limit.amount >= ANY and total.rho <= limit.rho:
            return "rho_delta", limit
    return None


def count_room(transaction: Transaction, payers: Sequence[Payer], charges: Sequence[Charge]) -> int | None:
    """How often every payer could pay its charge from now on; None where it is free.

    n more payments bring a lane to `lane + n price`, and the spending to what is outside of its family plus the
    greatest lane: they fit into a limit if what is spent now does, and the spending by way of these lanes.
    """
    check_ends(payers, transaction.now())
    balances, _ = _balances(transaction, [payer.terms.name for payer in payers])
    found = []
    for payer, asked in zip(payers, charges, strict=True):
        spent, chosen = balances[asked.account]
        rule, begun = payer.terms.rule, spent
        way = chosen or rule.way(asked.price)
        if asked.lanes:
            lanes = _lanes(transaction, asked.account, asked.family, (*asked.lanes, ""))
            top = lanes.pop("", FREE)
            begun = spent - top + cover_prices(lanes.values())
        open_limits = [limit for limit in rule.limits(way) if spent <= limit]
        counts = [repeats_within(limit, asked.price, begun) for limit in open_limits]
        found.append(None if None in counts else max((count for count in counts if count is not None), default=0))
    return min((count for count in found if count is not None), default=None)


def foresee(transaction: Transaction, payers: Sequence[Payer], charges: Sequence[Charge]) -> list[tuple[Charge, bool]]:
    """What `charge` would take from every payer, and whether that payer can pay it. Nothing is taken."""
    check_ends(payers, transaction.now())
    balances, rows = _balances(transaction, [payer.terms.name for payer in payers])
    found = []
    for payer, asked in zip(payers, charges, strict=True):
        increase, _ = _increase(transaction, asked, rows)
        spent, chosen = balances[asked.account]
        way = chosen or payer.terms.rule.way(asked.price)
        after = spent + increase
        found.append((replace(asked, spent=after, way=way), payer.terms.rule.admits(after, way)))
    return found


def hand_back(transaction: Transaction, charges: Sequence[Charge]) -> list[Charge]:
    """Undo a part of earlier charges, for steps that were never started."""
    names = {back.account for back in charges} | {lane for back in charges for lane in back.lanes}
    balances, rows = _balances(transaction, sorted(names), retired=True)
    given, lanes = [], []
    for back in charges:
        decrease, changed = _decrease(transaction, back, rows)
        given.append(replace(back, spent=balances[back.account][0] - decrease))
        lanes.append(changed)
    _write_all(transaction, given, lanes, rows)
    return given


def to_columns(price: Price, way: str) -> tuple[str, str]:
    """A sum as the columns `amount` and `delta` keep it: where an account has chosen a way, both of its sums.

    >>> to_columns(Price(5, 0), ""), to_columns(Price(5, 1, 3, 2), "either")
    (('5', '0'), ('either 5 3', '1 2'))
    """
    if not way:
        return str(price.amount), str(price.delta)
    return f"{way} {price.amount} {price.rho}", f"{price.delta} {price.rho_delta}"


def from_columns(amount: str, delta: str) -> tuple[Price, str]:
    """The sum, and the way, that the columns keep; no way where none is chosen or the rule knows one only.

    >>> from_columns("either 5 3", "1 2") == (Price(5, 1, 3, 2), "either")
    True
    """
    if " " not in amount:
        return Price(int(amount), int(delta)), ""
    way, epsilon, rho = amount.split(" ")
    beside_epsilon, beside_rho = delta.split(" ")
    return Price(int(epsilon), int(beside_epsilon), int(rho), int(beside_rho)), way


def _balances(
    transaction: Transaction, names: list[str], *, retired: bool = False
) -> tuple[dict[str, tuple[Price, str]], dict[str, dict[str, Any]]]:
    """What these accounts have spent and how they add up, and the last row about each, which says the same."""
    marks = ", ".join("?" * len(names))
    if not names:  # a slice that was used up gives nothing back, to nobody
        return {}, {}
    statement = f"SELECT name, amount, delta, retired, entry FROM accounts WHERE name IN ({marks})"  # noqa: S608
    rows = transaction.rows(statement, *names)
    for name in set(names) - {row[0] for row in rows}:
        raise UnknownAccount("ledger.no_account", account=name)
    last = {}
    for name, amount, delta, is_retired, entry in rows:
        last[name] = _compare(transaction, name, *from_columns(amount, delta), entry)
        if is_retired and not retired:
            raise AccountRetired("ledger.account_retired", account=name)
    return {name: from_columns(amount, delta) for name, amount, delta, *_ in rows}, last


def _compare(transaction: Transaction, account: str, spent: Price, way: str, entry: int) -> dict[str, Any]:
    """The last row about an account; refused where the balance is not what it says."""
    row = transaction.entry(entry)
    content = row.content()
    moved = (*content.get("charges", ()), *content.get("returned", ()))
    charges = [Charge.from_dict(stored) for stored in moved if stored["account"] == account]
    stated = [(charge.spent, charge.way) for charge in charges]
    if row.kind == "open" and content["name"] == account:
        stated = [(FREE, "")]
    if stated != [(spent, way)]:
        raise LedgerTampered("ledger.balance_edited", account=account, row=entry, spent="nothing")
    return content


def _lanes(transaction: Transaction, account: str, family: str, lanes: Sequence[str] = ()) -> dict[str, Price]:
    """What was paid in these lanes (all of the family by default); the lane "" holds the greatest of them."""
    chosen = f" AND lane IN ({', '.join('?' * len(lanes))})" if lanes else ""
    statement = f"SELECT lane, amount, delta FROM lanes WHERE account = ? AND family = ?{chosen}"  # noqa: S608
    rows = transaction.rows(statement, account, family, *lanes)
    return {lane: from_columns(amount, delta)[0] for lane, amount, delta in rows}


def _increase(transaction: Transaction, asked: Charge, rows: Mapping[str, Row]) -> tuple[Price, dict[str, Price]]:
    """How much an account's spending grows: by the price, or by what a lane rises above the greatest one."""
    if not asked.lanes:
        return asked.price, {}
    paid = _lanes(transaction, asked.account, asked.family, (*asked.lanes, ""))
    check_lanes(asked.account, asked.family, asked.lanes, paid, rows)
    changed = {lane: paid.get(lane, FREE) + asked.price for lane in asked.lanes}
    top = paid.get("", FREE)
    changed[""] = cover_prices([top, *changed.values()])
    return changed[""] - top, changed


def _decrease(transaction: Transaction, back: Charge, rows: Mapping[str, Row]) -> tuple[Price, dict[str, Price]]:
    """How much an account's spending shrinks: the greatest lane may now be another one."""
    if not back.lanes:
        return back.price, {}
    paid = _lanes(transaction, back.account, back.family)
    check_lanes(back.account, back.family, back.lanes, paid, rows)
    top = paid.pop("")
    changed = {lane: paid[lane] - back.price for lane in back.lanes}
    changed[""] = cover_prices((paid | changed).values())
    return top - changed[""], changed


def _write_all(
    transaction: Transaction, moved: Sequence[Charge], lanes: Sequence[Mapping[str, Price]], rows: Mapping[str, Row]
) -> None:
    """Write what was charged or handed back into the index, and what the next row states about lanes."""
    movers = {done.account for done in moved}
    for done, changed in zip(moved, lanes, strict=True):
        row = rows[done.account]
        tops = {} if states_tops(row, done.account) else _tops(transaction, done.account)
        if stated := state_lanes(done.account, done.family, changed, tops, row, movers):
            transaction.stated[done.account] = stated
        _write(transaction, done, changed)


def _tops(transaction: Transaction, account: str) -> dict[str, Price]:
    """The greatest lane of each family, for a row that does not carry them on from the one before."""
    rows = transaction.rows("SELECT family, amount, delta FROM lanes WHERE account = ? AND lane = ''", account)
    return {family: from_columns(amount, delta)[0] for family, amount, delta in rows}


def _write(transaction: Transaction, done: Charge, lanes: Mapping[str, Price]) -> None:
    statement = "UPDATE accounts SET amount = ?, delta = ?, entry = ? WHERE name = ?"
    row = transaction.head.sequence + 1  # what is charged or handed back is stated by the row that comes next
    transaction.run(statement, *to_columns(done.spent, done.way), row, done.account)
    statement = (
        "INSERT INTO lanes VALUES (?, ?, ?, ?, ?) ON CONFLICT (account, family, lane) "
        "DO UPDATE SET amount = excluded.amount, delta = excluded.delta"
    )
    for lane, price in lanes.items():
        transaction.run(statement, done.account, done.family, lane, *to_columns(price, done.way))
