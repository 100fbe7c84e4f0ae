"""What accounts have bought, equal payments together: the index that statements are read from.

A purchase is what payments have in common: kind, name, event, horizon, and what each account pays. Its name is the hash
of that, so that equal payments find each other; `payments` says for each payment which purchase it is and how many of
its steps were released or failed. A statement of an account with many payments reads a line for each kind of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mosha.accounting.rules import Price
from mosha.core.event import Event, compose, from_dict
from mosha.core.events import Parallel
from mosha.ledger.paying.charge import Charge
from mosha.ledger.storage.chain import Content, canonical
from mosha.ledger.storage.transactions import Transaction

__all__ = ["Purchase", "compose_purchases", "describe_purchase", "find_purchases", "remember_purchase"]

SHORT = 32  # hexadecimal digits: 128 bits tell purchases apart


def describe_purchase(
    kind: str, name: str, event: Content, horizon: int, charges: Sequence[Charge]
) -> tuple[str, list[tuple[str, str]]]:
    """The name of a purchase, and its description at each account that pays."""
    what = {"kind": kind, "name": name, "event": event, "horizon": horizon}
    pieces = [(charge.account, _describe_charge(charge)) for charge in charges]
    digest = hashlib.sha256(canonical([what, pieces]).encode()).hexdigest()[:SHORT]
    return digest, [(account, canonical(what | piece)) for account, piece in pieces]


def _describe_charge(charge: Charge) -> dict[str, Any]:
    stored = charge.to_dict()
    return {part: stored[part] for part in stored if part not in ("account", "spent")}


def remember_purchase(
    transaction: Transaction, kind: str, name: str, event: Content, horizon: int, charges: Sequence[Charge]
) -> str:
    """Note a purchase where it is the first of its kind; its name."""
    digest, pieces = describe_purchase(kind, name, event, horizon, charges)
    for account, body in pieces:
        if transaction.row("SELECT 1 FROM purchases WHERE account = ? AND purchase = ?", account, digest):
            break  # all accounts of a purchase are noted together
        transaction.run("INSERT INTO purchases VALUES (?, ?, ?)", account, digest, body)
    return digest


@dataclass(frozen=True)
class Purchase:
    """Equal payments of one account: what they are for, how they ended, how many, their first and last row."""

    kind: str
    name: str
    event: Content
    horizon: int
    charge: Charge
    closed: int
    released: int
    failed: int
    count: int
    first: int
    last: int

    @property
    def price(self) -> Price:
        """What all of them cost together."""
        return self.charge.price * self.count


_COUNT = """SELECT purchase, closed, released, failed, COUNT(*), MIN(entry), MAX(entry) FROM payments
    WHERE purchase IN (SELECT purchase FROM purchases WHERE account = ?)
    GROUP BY purchase, closed, released, failed"""  # in the order of the index `payments_of`, and from it alone


def find_purchases(transaction: Transaction, account: str) -> list[Purchase]:
    """All that an account has bought, in the order of first rows."""
    noted = transaction.rows("SELECT purchase, body FROM purchases WHERE account = ?", account)
    bodies = {purchase: body for purchase, body in noted}  # noqa: C416  (rows are sequences of any kind)
    found = []
    for purchase, *numbers in transaction.rows(_COUNT, account):
        stored = json.loads(bodies[purchase])
        what = {part: stored.pop(part) for part in ("kind", "name", "event", "horizon")}
        charge = Charge.from_dict(stored | {"account": account, "spent": ["0", "0"]})
        ended = dict(zip(("closed", "released", "failed", "count", "first", "last"), map(int, numbers), strict=True))
        found.append(Purchase(charge=charge, **what, **ended))  # type: ignore[arg-type]
    return sorted(found, key=lambda bought: bought.first)


def compose_purchases(purchases: Iterable[Purchase]) -> Event:
    """All that was bought, as one event; of disjoint blocks the dearest one counts."""
    own: list[tuple[Event, int]] = []
    families: dict[str, dict[str, list[tuple[Event, int]]]] = {}
    for bought in purchases:
        part = from_dict(bought.event), bought.count
        lanes = families.setdefault(bought.charge.family, {}) if bought.charge.lanes else {}
        for lane in bought.charge.lanes:
            lanes.setdefault(lane, []).append(part)
        if not bought.charge.lanes:
            own.append(part)
    blocks = [(Parallel(tuple(compose(parts) for parts in lanes.values())), 1) for lanes in families.values()]
    return compose([*own, *blocks])
