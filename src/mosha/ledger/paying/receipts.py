"""Receipts: who paid how much for a release, and what each of them has left, in words and numbers for people.

A purchase is what equal payments have in common: kind, name, event, horizon, and what each account pays. Its name is
the hash of that, so that equal payments find each other; `payments` says for each payment which purchase it is and
how many of its steps were released or failed. A statement of an account with many payments reads one line for each
kind of them.

An order is what is to be paid for: by whom, under which key; and whether a key is used for the same thing again. A
measurement is sold as its event, or as one piece with the delta that it was asked for with. Whoever asks for noise at
(epsilon, delta) has bought a fixed event whose tight price is that pair. A rule that adds up epsilons and deltas can
charge it as a `Plan`, and the concentrated sum still sees the event inside.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mosha.accounting.measures import pure
from mosha.accounting.rules import EitherRule, Price, PureRule, Rule
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event, compose, from_dict
from mosha.core.events import Parallel, Plan
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.measurement import Measurement
from mosha.core.release import PaidShare, Quote, Receipt
from mosha.ledger.paying.charge import Charge
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import LONGEST

__all__ = [
    "Order",
    "Purchase",
    "compose_purchases",
    "describe_purchase",
    "find_purchases",
    "find_same",
    "make_quote",
    "make_receipt",
    "offers",
    "remember_purchase",
    "scope_of",
]


def offers(measurement: Measurement, rule: Rule) -> tuple[Event, ...]:
    """The events by which this may be paid for, the best one first; all of them price the same run.

    What was not asked for with a delta is sold as it is. An event that has a pure price is offered as it is first: it
    needs no delta, and all of it is there for others. Steps of a repetition can be handed back, those of a plan cannot:
    such a run is offered as it is first, too.

    >>> from mosha.core.events import Gaussian
    >>> from mosha.core.unit import Row
    >>> asked = Measurement(unit=Row(), event=Gaussian(4), step=lambda *_: (None, None), delta=1e-6)
    >>> offers(asked, PureRule(1.0, 1e-5))
    (Plan(event=Gaussian(noise_multiplier=4.0), delta=1e-06), Gaussian(noise_multiplier=4.0))
    """
    event, delta = measurement.event, measurement.delta
    if delta is None:
        return (event,)
    if math.isfinite(pure.approx(event)[0]):
        return event, Plan(event, delta)
    repeats = measurement.horizon > 1 and event.per_step(measurement.horizon) is not None
    if isinstance(rule, EitherRule | PureRule) and not repeats:
        return Plan(event, delta), event
    return event, Plan(event, delta)


@dataclass(frozen=True)
class Order:
    """What is to be paid for, by whom, under which key."""

    scope: tuple[str, ...]
    payers: tuple[Payer, ...]
    event: Event
    horizon: int
    name: str
    key: str | None
    question: str = ""
    resumable: bool = False  # the measurement finds its state again, so that another holder may go on
    replays: bool = False  # a step that is started again gets the same answer: no limit on attempts

    @staticmethod
    def of(measurement: Measurement, scope: tuple[str, ...], payers: tuple[Payer, ...], key: str | None) -> Order:
        if key is not None and not (len(key) <= LONGEST and key.isprintable()):
            raise InvalidParameter("ledger.bad_key", parameter="key", longest=LONGEST, spent="nothing")
        asked = str(measurement.question)
        what = measurement.event, measurement.horizon, str(measurement.name), key, asked
        state = measurement.state
        return Order(scope, payers, *what, resumable=state.resume is not None, replays=state.replays)

    def describe(self) -> dict[str, Any]:
        what = {"event": self.event.to_dict(), "horizon": self.horizon, "name": self.name}
        what |= {"question": self.question} if self.question else {}
        what |= {"replays": True} if self.replays else {}
        return what | {"scope": list(self.scope)} | ({} if self.key is None else {"key": self.key})


@lru_cache(maxsize=1024)
def scope_of(names: tuple[str, ...]) -> str:
    """What the index calls a set of accounts; of one length, however many they are."""
    return hashlib.sha256(canonical(list(names)).encode()).hexdigest()


def _open_plan(event: Content) -> dict[str, Any]:
    """The event inside a plan: what was run, whatever it was sold as."""
    return event["event"] | {"mosha": event["mosha"]} if event["kind"] == "Plan" else event


def find_same(entry: Entry, order: Order) -> Entry:
    """The payment that was made under the key of this order; refused where it was for something else."""
    stored = entry.content()
    wanted = order.describe()
    same = _open_plan(stored["event"]) == _open_plan(wanted["event"])
    if not same or any(stored.get(part) != wanted.get(part) for part in ("horizon", "name", "question", "replays")):
        raise InvalidParameter("ledger.key_of_another_payment", parameter="key", key=order.key, spent="nothing")
    return entry


def make_receipt(
    scope: Sequence[str],
    payers: Sequence[Payer],
    charges: Sequence[Charge],
    *,
    event: Event,
    entry: str,
    leased: bool = False,
) -> Receipt:
    """The receipt for `event`, paid by these payers with these charges: of its first account, with all the others.

    What was paid from a lease does not say how many more like it would fit: most of them go through the lease.
    """
    pairs = list(zip(payers, charges, strict=True))
    shares = tuple(_share(payer.terms.rule, paid) for payer, paid in pairs)
    fitting = [count for payer, paid in pairs if (count := _count_more(payer.terms.rule, paid)) is not None]
    position = [payer.terms.name for payer in payers].index(scope[0])
    own, rule, paid = shares[position], payers[position].terms.rule, charges[position]
    return Receipt(
        account=" + ".join(scope),
        entry=entry,
        unit=payers[position].terms.unit,
        event=event,
        measure=own.measure,
        cost=own.cost,
        delta=own.delta,
        spent=own.spent,
        limit=own.limit,
        left=own.left,
        left_as=own.left_as,
        spent_as=_find_meaning(rule, paid),
        payers=shares,
        more=None if leased else min(fitting, default=None),
    )


def make_quote(foreseen: Sequence[tuple[Charge, bool]], payers: Sequence[Payer]) -> Quote:
    """The quote for charges that were not taken."""
    shares = tuple(_share(payer.terms.rule, paid) for payer, (paid, _) in zip(payers, foreseen, strict=True))
    return Quote(shares=shares, lacking=tuple(paid.account for paid, fits in foreseen if not fits))


def _share(rule: Rule, paid: Charge) -> PaidShare:
    return PaidShare(
        account=paid.account,
        measure=rule.measure,
        cost=rule.amount_of(paid.price, paid.way),
        delta=rule.delta_of(paid.price),
        spent=rule.amount_of(paid.spent, paid.way),
        limit=rule.amount_limit,
        left=rule.amount_left(paid.spent, paid.way),
        left_as=rule.left_as(paid.spent),
    )


def _count_more(rule: Rule, paid: Charge) -> int | None:
    """How often an account could pay the same once more; unknown where disjoint blocks share what they cost."""
    return None if paid.lanes else rule.repeats(paid.price, paid.way, paid.spent)


def _find_meaning(rule: Rule, paid: Charge) -> Guarantee | None:
    """What has been spent as epsilon and delta, where the rule counts in another measure or in two."""
    meant = rule.spent_as(paid.spent, paid.way) if rule.measure != "epsilon" or isinstance(rule, EitherRule) else None
    return meant if isinstance(meant, Approx) and meant.delta else None


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
