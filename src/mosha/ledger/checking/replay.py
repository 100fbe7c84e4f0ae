"""What the rows of a book say, worked out from the first row on: the second opinion that `verify` needs.

This is written apart from the code that charges (`charge.py`, `payment.py`): sums are formed anew from all rows, every
event is priced again (`opinion.py`) and every payment goes through its states again (`state.py`), so that a mistake
or a forgery in one is seen by the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mosha.accounting.numerics.price import FREE, Price
from mosha.core.errors import MoshaError
from mosha.core.event import NOTHING, Event, from_dict
from mosha.core.language import phrase
from mosha.core.unit import Member
from mosha.ledger.checking.opinion import Opinion, keeps_enough
from mosha.ledger.checking.state import PaymentState
from mosha.ledger.paying.charge import Charge, to_columns
from mosha.ledger.paying.lanes import Lanes
from mosha.ledger.paying.payment import CLOSED, VOID
from mosha.ledger.paying.receipts import describe_purchase, scope_of
from mosha.ledger.storage.chain import Content, Entry, canonical
from mosha.ledger.terms.edition import EDITION, read_edition
from mosha.ledger.terms.edition import TOPIC as EDITION_TOPIC
from mosha.ledger.terms.note import is_well_formed
from mosha.ledger.terms.payers import check_disjoint, join_name, payers
from mosha.ledger.terms.policy import TOPIC, Policy, read_policy
from mosha.ledger.terms.terms import Terms

__all__ = ["Balance", "Replay"]

ANOTHER_HAND = "ledger.wrong_hand"


@dataclass
class Balance:
    """One account as the rows describe it."""

    terms: Terms
    own: Price = FREE
    way: str = ""
    families: dict[str, Lanes] = field(default_factory=lambda: defaultdict(Lanes))
    retired: bool = False
    failures: int = 0  # since the last lift
    entry: int = 0  # the last row that states what the account has spent

    @property
    def frozen(self) -> bool:
        return self.failures >= self.terms.failures

    @property
    def spent(self) -> Price:
        return sum((lanes.top for lanes in self.families.values()), self.own)

    def move(self, moved: Charge, sign: int) -> None:
        def change(before: Price) -> Price:
            return before + moved.price if sign > 0 else before - moved.price

        if not moved.lanes:
            self.own = change(self.own)
            return
        self.families[moved.family].change(moved.lanes, change)


class Replay:
    """Reads rows one by one; `problems` are what it would not accept, in sentences."""

    def __init__(self) -> None:
        self.accounts: dict[str, Balance] = {}
        self._terms: dict[str, Terms] = {}
        self.payments: dict[int, PaymentState] = {}
        self.keys: dict[tuple[tuple[str, ...], str], int] = {}
        self.purchases: dict[str, list[tuple[str, str]]] = {}
        self.problems: list[str] = []
        self.opinion = Opinion()
        self.policy: Policy | None = None
        self.edition = 1
        self._uncounted: Entry | None = None  # a failed step whose failure the next row must count
        self.book_keys: list[str] = []  # the names of all keys that the book has had
        self._kinds: dict[str, Callable[[Entry, dict[str, Any]], None]] = {
            "ledger": self._ledger,
            "key": self._key,
            "open": self._open,
            "retire": self._retire,
            "pay": self._pay,
            "lease": self._pay,
            "claim": self._claim,
            "unreached": self._take_back,
            "release": self._resolve,
            "fail": self._resolve,
            "failure": self._failure,
            "lift": self._lift,
            "close": self._close,
            "note": self._note,
        }

    def read(self, entry: Entry) -> None:
        if self._uncounted is not None and entry.kind != "failure":
            self.finish()
        try:
            self._kinds[entry.kind](entry, entry.content())
        except (KeyError, ValueError, TypeError, AttributeError, MoshaError):
            self.problem(entry, "ledger.wrong_no_sense", kind=entry.kind)

    def finish(self) -> None:
        """A failure that was not counted by the row after it is not counted at all."""
        if self._uncounted is not None:
            self.problem(self._uncounted, "ledger.wrong_failure_uncounted")
            self._uncounted = None

    def problem(self, entry: Entry, code: str, **fields: object) -> None:
        self.problems.append(phrase("ledger.wrong_row", row=entry.sequence, what=phrase(code, **fields)))

    def _require(self, entry: Entry, condition: bool, code: str, **fields: object) -> None:  # noqa: FBT001
        if not condition:
            self.problem(entry, code, **fields)

    def _ledger(self, entry: Entry, content: Content) -> None:
        keyed = "key" in content
        well = entry.sequence == 1 and content["version"] == (2 if keyed else 1)
        self._require(entry, well, "ledger.wrong_other_kind")
        self.book_keys += [str(content["key"])] if keyed else []
        self.edition = read_edition(content)

    def _key(self, entry: Entry, content: Content) -> None:
        follows = content.get("previous") == (self.book_keys[-1] if self.book_keys else None)
        self._require(entry, follows, "ledger.wrong_key_not_there")
        self._require(entry, content["key"] not in self.book_keys, "ledger.wrong_key_again")
        self.book_keys.append(str(content["key"]))

    def _open(self, entry: Entry, content: Content) -> None:
        terms = Terms.from_dict(content)
        join_name(None, terms.name)  # raises where it is no name
        if terms.disjoint_blocks:
            check_disjoint(terms.unit)
        parent = terms.name.rpartition("/")[0]
        self._require(entry, terms.name not in self.accounts, "ledger.wrong_opened_twice")
        self._require(entry, not parent or parent in self.accounts, "ledger.wrong_child_without_parent")
        self._require(entry, self._is_protected(terms), "ledger.wrong_unit_unprotected")
        self._require(entry, terms.expires is None or entry.at < terms.expires, "ledger.wrong_opened_after_end")
        fits = self.policy is None or not self.policy.violations(terms, entry.at)
        self._require(entry, fits, "ledger.wrong_against_policy")
        self.admit(Balance(terms, entry=entry.sequence))

    def admit(self, balance: Balance) -> None:
        """Know an account from now on."""
        self.accounts[balance.terms.name] = balance
        self._terms[balance.terms.name] = balance.terms

    def _is_protected(self, terms: Terms) -> bool:
        """Whether the accounts that pay with a new one protect its unit: its parent, and its population."""
        parent, of = self._terms.get(terms.name.rpartition("/")[0]), terms.unit.of
        if parent is not None and not parent.unit.covers(terms.unit):
            return False
        if of is None or (isinstance(terms.unit, Member) and terms.name == of):
            return True
        return of in self._terms and self._terms[of].unit == Member(of=of, neighbors=terms.unit.neighbors)

    def _retire(self, entry: Entry, content: Content) -> None:
        self._require(entry, not self.accounts[content["account"]].retired, "ledger.wrong_retired_twice")
        self.accounts[content["account"]].retired = True

    def _pay(self, entry: Entry, content: Content) -> None:
        charges = [Charge.from_dict(stored) for stored in content["charges"]]
        payment = PaymentState.of(entry, content, charges)
        whole = type(payment.horizon) is int and payment.horizon >= 1 and (entry.kind == "pay" or payment.key is None)
        self._require(entry, whole, "ledger.wrong_not_a_payment")
        self._require(entry, self._is_locked(payment.lock), "ledger.wrong_no_lock")
        expected = payers(payment.scope, self._terms)
        named = [(paid.account, paid.family, paid.lanes) for paid in charges]
        right = named == [(payer.terms.name, payer.family, payer.lanes) for payer in expected]
        self._require(entry, right, "ledger.wrong_other_payers")
        for paid in charges:
            balance = self.accounts[paid.account]
            balance.way = balance.way or balance.terms.rule.way(paid.price)
            balance.move(paid, 1)
            self._require(entry, paid.way == balance.way, "ledger.wrong_way_misstated", account=paid.account)
            ended = balance.terms.expires is not None and balance.terms.expires <= entry.at
            balance.entry = entry.sequence
            self._require(entry, not balance.retired, "ledger.wrong_retired_charged", account=paid.account)
            self._require(entry, not ended, "ledger.wrong_ended_charged", account=paid.account)
            self._require(entry, not balance.frozen, "ledger.wrong_frozen_charged", account=paid.account)
            within = balance.terms.rule.admits(balance.spent, balance.way)
            self._require(entry, within, "ledger.wrong_overspent", account=paid.account)
            self._require(entry, balance.spent == paid.spent, "ledger.wrong_spent_misstated", account=paid.account)
            self._judge(entry, paid.account, payment.event, paid.price)
        self._check_lanes(entry, content)
        if payment.key is not None:
            known = payment.scope, payment.key
            unused = known not in self.keys or self.payments[self.keys[known]].closed == VOID
            self._require(entry, unused, "ledger.wrong_paid_twice")
            self.keys[known] = entry.sequence
        self.payments[entry.sequence] = payment
        self._remember(payment, charges)

    def _remember(self, payment: PaymentState, charges: list[Charge]) -> None:
        """The purchase that a payment is now."""
        event = self.opinion.event(payment.event).to_dict()
        payment.purchase, pieces = describe_purchase(payment.kind, payment.name, event, payment.horizon, charges)
        self.purchases[payment.purchase] = pieces

    def _judge(self, entry: Entry, account: str, event: str, paid: Price) -> None:
        """Price an event again, by the rule of the account."""
        possible = self.opinion.judge(entry.sequence, account, self._terms[account].rule, event, paid)
        self._require(entry, possible, "ledger.wrong_too_cheap", account=account)

    def _claim(self, entry: Entry, content: Content) -> None:
        payment = self.payments[content["payment"]]
        fair = payment.take_claim(content["claim"], content["step"], content.get("lock"))
        self._require(entry, fair, "ledger.wrong_claim_refused")
        self._require(entry, not self._is_frozen(payment), "ledger.wrong_frozen_claimed")
        self._require(entry, self._is_locked(payment.lock), "ledger.wrong_no_lock")

    def _is_locked(self, lock: object) -> bool:
        return self.edition < EDITION or isinstance(lock, str)

    def _take_back(self, entry: Entry, content: Content) -> None:
        payment = self.payments[content["payment"]]
        self._require(entry, payment.is_word_of_holder(content), ANOTHER_HAND)
        fair = payment.take_back_start(content["claim"], content["step"])
        self._require(entry, fair, "ledger.wrong_start_not_taken_back")

    def _resolve(self, entry: Entry, content: Content) -> None:
        payment, step = self.payments[content["payment"]], content["step"]
        self._require(entry, step not in payment.steps, "ledger.wrong_step_twice")
        if entry.kind == "fail" and "lock" in content:
            fair = payment.give_up(content["claim"], step, entry.sequence, content["lock"])
            self._require(entry, self._is_locked(payment.lock), "ledger.wrong_no_lock")
        else:
            fair = payment.end_step(content["claim"], step, entry.sequence, entry.kind)
        self._require(entry, fair, "ledger.wrong_step_unpaid")
        if entry.kind == "fail" and self.edition >= EDITION:
            self._uncounted = entry
        told = entry.kind == "release" and self._is_frozen(payment)
        self._require(entry, not told, "ledger.wrong_frozen_released")

    def _is_frozen(self, payment: PaymentState) -> bool:
        return any(self.accounts[paid.account].frozen for paid in payment.charges)

    def _failure(self, entry: Entry, content: Content) -> None:
        payment, failed = self.payments[content["payment"]], self._uncounted
        if failed is not None and _place(failed.content()) != _place(content):
            self.finish()
        self._uncounted = None
        self._require(entry, not self._is_frozen(payment), "ledger.wrong_frozen_failure")
        for paid in payment.charges:
            self.accounts[paid.account].failures += 1
        counts = {paid.account: self.accounts[paid.account].failures for paid in payment.charges}
        self._require(entry, content["failures"] == counts, "ledger.wrong_failures_misstated")

    def _lift(self, entry: Entry, content: Content) -> None:
        name = content["account"]
        beneath = [known for known in self.accounts if known == name or known.startswith(name + "/")]
        counts = {known: self.accounts[known].failures for known in beneath if self.accounts[known].failures}
        self._require(entry, bool(counts) and content["failures"] == counts, "ledger.wrong_lift_of_nothing")
        for known in counts:
            self.accounts[known].failures = 0

    def _close(self, entry: Entry, content: Content) -> None:
        payment = self.payments[content["payment"]]
        self._require(entry, not payment.closed, "ledger.wrong_closed_twice")
        self._require(entry, payment.is_word_of_holder(content), ANOTHER_HAND)
        returned = [Charge.from_dict(stored) for stored in content["returned"]]
        kept = from_dict(content["kept"])
        self._hand_back(entry, payment, returned, kept)
        self._check_lanes(entry, content)
        if payment.kind == "pay":
            enough = keeps_enough(self.opinion.event(payment.event), payment.horizon, kept, payment.touched)
            self._require(entry, enough, "ledger.wrong_used_handed_back")
        void = content.get("void", False)
        untouched = kept == NOTHING and [back.price for back in returned] == [done.price for done in payment.charges]
        self._require(entry, void is (untouched and not payment.touched), "ledger.wrong_used_voided")
        payment.closed, payment.returned = VOID if void else CLOSED, returned
        payment.event = canonical(kept.to_dict())
        less = {back.account: back.price for back in returned}
        self._remember(payment, [replace(c, price=c.price - less.get(c.account, FREE)) for c in payment.charges])

    def _hand_back(self, entry: Entry, payment: PaymentState, returned: list[Charge], kept: Event) -> None:
        """Each payer gets back at most what it paid, once, and what stays paid is the price of what is kept."""
        back = {given.account: given for given in returned}
        self._require(entry, len(back) == len(returned), "ledger.wrong_handed_back_twice")
        text = canonical(kept.to_dict())
        for paid in payment.charges:
            given = back.pop(paid.account, None)
            if given is None:
                continue
            rule = self._terms[paid.account].rule
            same = (given.family, given.lanes, given.way) == (paid.family, paid.lanes, paid.way)
            fair = same and rule.returns_unused and given.price <= paid.price
            self._require(entry, fair, "ledger.wrong_too_much_handed_back")
            self._judge(entry, paid.account, text, paid.price - given.price)
            self.accounts[paid.account].move(given, -1)
            self.accounts[paid.account].entry = entry.sequence
        self._require(entry, not back, "ledger.wrong_handed_back_to_other")
        for given in returned:
            right = self.accounts[given.account].spent == given.spent
            self._require(entry, right, "ledger.wrong_spent_misstated", account=given.account)

    def _check_lanes(self, entry: Entry, content: Content) -> None:
        """Rows of earlier versions state nothing about lanes."""
        for account, said in content.get("lanes", {}).items():
            families = self.accounts[account].families
            tops = {family: [str(part) for part in lanes.top.parts] for family, lanes in families.items()}
            sums = said.get("sums", {}) | said.get("apart", {})
            right = said.get("tops") == tops and all(
                [str(part) for part in families[lane.rpartition("/")[0]].paid[lane].parts] == price
                for lane, price in sums.items()
            )
            self._require(entry, right, "ledger.wrong_blocks_misstated", account=account)

    def _note(self, entry: Entry, content: Content) -> None:
        about = content.get("about")
        self._require(entry, is_well_formed(content), "ledger.wrong_not_a_note")
        self._require(entry, about is None or about in self.accounts, "ledger.wrong_note_about_nobody")
        if content["topic"] == TOPIC:
            self.policy = read_policy(content["content"])
        if content["topic"] == EDITION_TOPIC:
            self.edition = max(self.edition, read_edition(content["content"]))

    def table(self, name: str) -> set[tuple[Any, ...]]:
        """What the index `name` of the book must hold."""
        return set(getattr(self, f"_{name}_table")())

    def _accounts_table(self) -> list[tuple[Any, ...]]:
        return [
            (name, canonical(b.terms.to_dict()), *to_columns(b.spent, b.way), int(b.retired), b.entry)
            for name, b in self.accounts.items()
        ]

    def _lanes_table(self) -> list[tuple[Any, ...]]:
        return [
            (name, family, lane, *to_columns(price, balance.way))
            for name, balance in self.accounts.items()
            for family, lanes in balance.families.items()
            for lane, price in (lanes.paid | {"": lanes.top}).items()
        ]

    def _payments_table(self) -> list[tuple[Any, ...]]:
        current = {sequence: key for (_, key), sequence in self.keys.items()}
        return [
            (sequence, scope_of(p.scope), current.get(sequence), p.claim, p.attempts, p.closed, *p.bought)
            for sequence, p in self.payments.items()
        ]

    def _purchases_table(self) -> list[tuple[Any, ...]]:
        return [(account, name, body) for name, pieces in self.purchases.items() for account, body in pieces]

    def _steps_table(self) -> list[tuple[Any, ...]]:
        return [(payment, step, row) for payment, p in self.payments.items() for step, (row, _) in p.steps.items()]

    def _failures_table(self) -> list[tuple[Any, ...]]:
        return [(name, balance.failures) for name, balance in self.accounts.items() if balance.failures]


def _place(content: Content) -> tuple[int, int]:
    return content["payment"], content["step"]
