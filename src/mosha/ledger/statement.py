"""The privacy statement: what was promised, to whom, and what has been released under the promise.

Markdown for people, JSON for programs, and an entry of the public registry of deployments (`registry.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mosha.accounting.rules import Rule
from mosha.core.errors import Unpriced
from mosha.core.event import from_dict
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.number import probability
from mosha.ledger.chain import Head
from mosha.ledger.moment import as_text
from mosha.ledger.payment import VOID
from mosha.ledger.registry import draft_entry, make_entry, missing_fields
from mosha.ledger.replay import Balance, Replay
from mosha.ledger.state import PaymentState
from mosha.ledger.tree import Terms, ancestry
from mosha.ledger.weakness import Weakness, find_weaknesses

__all__ = ["ReleaseLine", "Statement", "drawn_up", "tight"]


@dataclass(frozen=True)
class ReleaseLine:
    """One payment, as a statement lists it."""

    entry: str
    at: str
    name: str
    event: dict[str, Any]
    cost: float
    delta: float
    state: str


@dataclass(frozen=True)
class Statement:
    """What one account has promised and paid for. Public numbers, all of it."""

    account: str
    balance: Balance = field(repr=False)
    releases: tuple[ReleaseLine, ...]
    accounts: tuple[Balance, ...] = field(repr=False)
    today: Guarantee | None
    head: Head
    at: str
    weaknesses: tuple[Weakness, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the promise is weak by anybody's standard, or above the present policy of the book, in sentences."""
        return tuple(map(str, self.weaknesses))

    @property
    def promise(self) -> Guarantee:
        return self.balance.terms.rule.promise()

    @property
    def spent(self) -> Guarantee:
        return self.balance.terms.rule.spent_as(self.balance.spent)

    def to_dict(self) -> dict[str, Any]:
        """The statement for programs; `registry` is what the ledger can say for the registry of deployments."""
        terms = self.balance.terms
        rule, spent = terms.rule, self.balance.spent
        numbers = {"amount": rule.amount_of(spent), "delta": spent.as_floats()[1]}
        return {
            "account": self.account,
            "unit": terms.unit.to_dict(),
            "hidden": terms.unit.describe(),
            "neighbours": str(terms.unit.neighbours),
            "promise": self.promise.to_dict(),
            "rule": terms.rule.to_dict(),
            "measure": terms.rule.measure,
            "spent": numbers | {"as": self.spent.to_dict()},
            "limit": {"amount": rule.amount_limit, "delta": terms.limit.as_floats()[1]},
            "left": rule.amount_left(spent, self.balance.way),
            "today": None if self.today is None else self.today.to_dict(),
            "retired": self.balance.retired,
            "disjoint_blocks": terms.disjoint_blocks,
            "population": terms.unit.of,
            "size": terms.size,
            "expires": _end(self.balance),
            "purpose": terms.purpose,
            "accounts": [_beneath(balance) for balance in self.accounts],
            "releases": [vars(line) for line in self.releases],
            "warnings": list(self.warnings),
            "head": str(self.head),
            "at": self.at,
            "registry": draft_entry(self) | {"missing": missing_fields(draft_entry(self), 1)},
        }

    def registry(self, details: Mapping[str, Any] | None = None, *, tier: int | None = None) -> dict[str, Any]:
        """The statement as an entry of the public registry of deployments, in its current form.

        Args:
            details: what no ledger knows, by the registry's names: data_curators, description, intended_use,
                data_product_type, data_product_region and registry_authors at least; further fields for higher tiers,
                or in place of what the ledger would say.
            tier: 1 (basic), 2 (variant, unit, parameters, model) or 3 (accounting and implementation too); the highest
                one that the fields reach by default.
        """
        return make_entry(self, details, tier)

    def to_html(self, lang: str = "en") -> str:
        """The statement as one page that needs nothing else, in English or Chinese (`lang="zh"`)."""
        from mosha.ledger.statement_page import write_page  # noqa: PLC0415  (only where it is asked for)

        return write_page(self, lang)

    def markdown(self) -> str:
        """The statement for people."""
        terms = self.balance.terms
        spent, limit = terms.rule.amount_of(self.balance.spent), terms.rule.amount_limit
        facts = [
            ("promise", f"{self.promise}, for all releases together"),
            ("hidden", f"whether {terms.unit.describe()}"),
            ("neighbours", str(terms.unit.neighbours)),
            ("rule", f"{terms.rule.name}: {terms.rule.describe(self.balance.way)}, to at most {limit:.6g}"),
            ("spent so far", f"{terms.rule.measure} {spent:.6g} of {limit:.6g}; this is {self.spent}"),
            ("releases", str(len(self.releases))),
            (
                "state",
                "retired: nothing can be released any more" if self.balance.retired else _condition(self.balance),
            ),
            ("book", f"row and hash {self.head}, {self.at}"),
        ]
        if terms.unit.of not in (None, self.account):
            facts.insert(3, ("population", f"{terms.unit.of}, which is charged with every release"))
        if terms.size is not None:
            facts.insert(3, ("size", f"about {terms.size:,} (declared, public)"))
        if self.today is not None:
            sentence = f"{self.today}, had all releases been fixed in advance (for reading; it admits nothing)"
            facts.insert(-3, ("tight today", sentence))
        if terms.disjoint_blocks:
            facts.insert(-3, ("blocks", "declared disjoint: nobody lies in two of them, and the dearest one counts"))
        parts = [f"# Privacy statement: {_cell(self.account)}", _table(("", ""), facts)]
        if self.warnings:
            parts += ["## Warnings", "\n".join(f"- {sentence}" for sentence in self.warnings)]
        if self.accounts:
            beneath = [(b.terms.name, str(b.terms.rule.promise()), _fraction(b), _condition(b)) for b in self.accounts]
            parts += ["## Accounts beneath", _table(("account", "promise", "spent", "state"), beneath)]
        lines = [(r.entry, r.at, r.name, repr(from_dict(r.event)), _cost(r), r.state) for r in self.releases]
        head = ("row", "date", "what", "event", f"{terms.rule.measure}", "state")
        parts += ["## Releases", _table(head, lines) if lines else "None."]
        return "\n\n".join(parts) + "\n"


def tight(said: Replay, account: str, *, delta: float | None = None) -> Guarantee | None:
    """All releases of an account by the tightest accounting of today; None where a delta or a price is missing."""
    from mosha.accounting import epsilon  # noqa: PLC0415  (numerical, and only for display)

    balance = said.accounts[account]
    at = balance.terms.rule.to_dict().get("delta", 0.0) if delta is None else probability("delta", delta)
    if not at or not balance.spent.amount:
        return None
    try:
        found = epsilon(said.event(account), at)
    except Unpriced:
        return None
    return Approx(found, at) if math.isfinite(found) else None


def drawn_up(said: Replay, account: str, *, head: Head, at: int) -> Statement:
    """The statement of one account, from what the rows of the book say."""
    payments = [payment for payment in said.payments.values() if any(c.account == account for c in payment.charges)]
    beneath = tuple(b for name, b in sorted(said.accounts.items()) if _pays_into(b.terms, account))
    rule = said.accounts[account].terms.rule
    lines = tuple(_line(payment, account, rule) for payment in payments)
    drawn = account, said.accounts[account], lines, beneath, tight(said, account), head, _date(at)
    return Statement(*drawn, _weaknesses(said, account, at))


def _weaknesses(said: Replay, account: str, at: int) -> tuple[Weakness, ...]:
    known = {name: balance.terms for name, balance in said.accounts.items()}
    terms = known[account]
    found = find_weaknesses(terms, known)
    if said.policy is not None:
        lasting = replace(terms, expires=None, block=True)  # an end was judged when it was set
        above = said.policy.violations(lasting, at)
        found += [Weakness("policy", detail=each) for each in above]
    return tuple(found)


def _pays_into(terms: Terms, account: str) -> bool:
    """Whether what these terms pay for is paid by `account` too: one above them, or their population."""
    return terms.name != account and account in {*ancestry(terms.name), terms.unit.of}


def _line(payment: PaymentState, account: str, rule: Rule) -> ReleaseLine:
    paid = next(charge.price for charge in payment.charges if charge.account == account)
    back = next((charge.price for charge in payment.returned if charge.account == account), None)
    kept = paid if back is None else paid - back
    cost, delta = rule.amount_of(kept), kept.as_floats()[1]
    event = json.loads(payment.event)
    return ReleaseLine(payment.label, _date(payment.at), payment.name, event, cost, delta, _state(payment))


def _state(payment: PaymentState) -> str:
    if payment.closed == VOID:
        return "handed back"
    if payment.kind == "lease":
        return "settled" if payment.closed else "lease, not settled"
    kinds = [kind for _, kind in payment.steps.values()]
    released, failed = kinds.count("release"), kinds.count("fail")
    if payment.horizon == 1:
        return "released" if released else "failed" if failed else "reserved"
    return f"{released} of {payment.horizon} steps released" + (f", {failed} failed" if failed else "")


def _beneath(balance: Balance) -> dict[str, Any]:
    spent, limit = balance.terms.rule.amount_of(balance.spent), balance.terms.rule.amount_limit
    described = {"account": balance.terms.name, "block": balance.terms.block, "retired": balance.retired}
    described |= {"promise": balance.terms.rule.promise().to_dict(), "spent": spent, "limit": limit}
    return described | {"expires": _end(balance), "purpose": balance.terms.purpose}


def _end(balance: Balance) -> str | None:
    return None if balance.terms.expires is None else as_text(balance.terms.expires)


def _condition(balance: Balance) -> str:
    """Whether an account can still pay, until when and for what."""
    until = "open" if balance.terms.expires is None else f"granted until {_end(balance)}"
    state = "retired" if balance.retired else until
    return f"{state}, for: {balance.terms.purpose}" if balance.terms.purpose else state


def _fraction(balance: Balance) -> str:
    spent, limit = balance.terms.rule.amount_of(balance.spent), balance.terms.rule.amount_limit
    return f"{balance.terms.rule.measure} {spent:.6g} of {limit:.6g}"


def _cost(line: ReleaseLine) -> str:
    return f"{line.cost:.6g}" + (f", delta {line.delta:.3g}" if line.delta else "")


def _date(at: int) -> str:
    return as_text(at)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
