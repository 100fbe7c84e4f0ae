"""The privacy statement: what was promised, to whom, and what has been released under the promise.

Markdown for people, JSON for programs, and an entry of the public registry of deployments (`registry.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mosha.core.errors import UnknownAccount, Unpriced
from mosha.core.event import Event, from_dict
from mosha.core.guarantee import Approx, Guarantee, Pure
from mosha.core.language import Language, Phrase, current_language, phrase, say, translate
from mosha.core.number import probability
from mosha.core.release import write_left
from mosha.core.showing import Card, Shown, escape_markdown
from mosha.ledger.checking.replay import Balance
from mosha.ledger.paying.charge import from_columns
from mosha.ledger.paying.payment import VOID
from mosha.ledger.paying.receipts import Purchase, compose_purchases, find_purchases
from mosha.ledger.paying.room import count_like_last
from mosha.ledger.publishing.facts import ReleaseLine, StatementFacts
from mosha.ledger.publishing.registry import draft_entry, make_entry, missing_fields
from mosha.ledger.publishing.words import words_in
from mosha.ledger.showing import make_statement_card
from mosha.ledger.storage.chain import canonical
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.moment import as_text
from mosha.ledger.terms.payers import ancestry, payers
from mosha.ledger.terms.policy import find_policy
from mosha.ledger.terms.terms import Terms
from mosha.ledger.terms.weakness import Weakness, find_weaknesses

__all__ = ["Statement", "draw_up", "price_tightly", "read_balances"]


@dataclass(frozen=True, repr=False)
class Statement(Shown, StatementFacts):
    """What one account has promised and paid for. Public numbers, all of it."""

    def __repr__(self) -> str:
        return f"Statement({self.account!r}, at={self.at!r})"

    def make_card(self) -> Card:
        return make_statement_card(self)

    def to_dict(self) -> dict[str, Any]:
        """The statement for programs; `registry` is what the ledger can say for the registry of deployments."""
        terms = self.balance.terms
        rule, spent = terms.rule, self.balance.spent
        numbers = {"amount": rule.amount_of(spent, self.balance.way), "delta": rule.delta_of(spent)}
        return {
            "account": self.account,
            "unit": terms.unit.to_dict(),
            "hidden": terms.unit.describe(),
            "neighbors": str(terms.unit.neighbors),
            "promise": self.promise.to_dict(),
            "rule": terms.rule.to_dict(),
            "measure": terms.rule.measure,
            "spent": numbers | {"as": self.spent.to_dict()},
            "limit": {"amount": rule.amount_limit, "delta": rule.delta_limit},
            "left": self.left,
            "left_as": None if self.left_as is None else self.left_as.to_dict(),
            "more_like_last": self.more,
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

    def registry(self, details: Mapping[str, object] | None = None, *, tier: int | None = None) -> dict[str, Any]:
        """The statement as an entry of the public registry of deployments, in its current form.

        Args:
            details: what no ledger knows, by the registry's names: data_curators, description, intended_use,
                data_product_type, data_product_region and registry_authors at least; further fields for higher tiers,
                or in place of what the ledger would say.
            tier: 1 (basic), 2 (variant, unit, parameters, model) or 3 (accounting and implementation too); the highest
                one that the fields reach by default.
        """
        return make_entry(draft_entry(self), details, tier)

    def to_html(self, lang: Language = "en") -> str:
        """The statement as one page that needs nothing else, in English or Chinese (`lang="zh"`)."""
        from mosha.ledger.publishing.page import write_page  # noqa: PLC0415  (only where it is asked for)

        return write_page(self, lang)

    def markdown(self, lang: Language | None = None) -> str:
        """The statement for people.

        Args:
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        language = lang or current_language()
        facts = [(say(f"ledger.row_{name}", language), said) for name, said in self._list_facts(language)]
        title = say("ledger.statement_title", language, account=escape_markdown(self.account))
        parts = [f"# {title}", _table(("", ""), facts)]
        if self.weaknesses:
            said = [weakness.render(language) for weakness in self.weaknesses]
            parts += [
                f"## {say('ledger.statement_warnings', language)}",
                "\n".join(f"- {each}" for each in map(escape_markdown, said)),
            ]
        measure = self.balance.terms.rule.measure
        if self.accounts:
            head = tuple(say(f"ledger.head_{name}", language) for name in ("account", "promise", "spent", "state"))
            beneath = [_describe_beneath(each, language) for each in self.accounts]
            parts += [f"## {say('ledger.statement_beneath', language)}", _table(head, beneath)]
        first = tuple(say(f"ledger.head_{name}", language) for name in ("row", "date", "what", "event"))
        lines = [_cells(line, language) for line in self.releases]
        none = say("ledger.statement_none", language)
        last = (measure, say("ledger.head_state", language))
        parts += [f"## {say('ledger.statement_releases', language)}", _table((*first, *last), lines) if lines else none]
        return "\n\n".join(parts) + "\n"

    def _list_facts(self, language: Language) -> Iterator[tuple[str, str]]:
        """The rows of the first table: their names, and what they say."""
        terms, rule, words = self.balance.terms, self.balance.terms.rule, words_in(language)
        spent, limit = rule.amount_of(self.balance.spent, self.balance.way), rule.amount_limit
        yield "promise", say("ledger.fact_promise", language, promise=str(self.promise))
        yield "hidden", say("ledger.fact_hidden", language, unit=terms.unit.describe(language))
        yield "neighbors", str(terms.unit.neighbors)
        if terms.size is not None:
            yield "size", say("ledger.fact_size", language, size=f"{terms.size:,}")
        if terms.unit.of not in (None, self.account):
            yield "population", say("ledger.fact_population", language, population=terms.unit.of)
        how = rule.describe(self.balance.way)
        yield "rule", say("ledger.fact_rule", language, name=rule.name, rule=how, limit=f"{limit:.6g}")
        numbers = {"measure": rule.measure, "spent": f"{spent:.6g}", "limit": f"{limit:.6g}"}
        yield "spent", say("ledger.fact_spent", language, meaning=str(self.spent), **numbers)
        left = write_left(self.left, limit, rule.measure, self.more, digits=6)
        yield "left", words.describe_left(rule.measure, left, self.more, self.left_as)
        if self.today is not None:
            yield "today", say("ledger.fact_today", language, today=str(self.today))
        if terms.disjoint_blocks:
            yield "blocks", say("ledger.fact_blocks", language)
        yield "releases", f"{sum(line.count for line in self.releases):,}"
        retired = say("ledger.fact_retired", language)
        yield "state", retired if self.balance.retired else _condition(self.balance, language)
        yield "book", say("ledger.fact_book", language, head=str(self.head), at=self.at)


def price_tightly(event: Event, balance: Balance, *, delta: float | None = None) -> Guarantee | None:
    """All that an account has bought by the tightest accounting of today; None where a delta or a price is missing."""
    from mosha.accounting import epsilon  # noqa: PLC0415  (numerical, and only for display)

    at = balance.terms.rule.to_dict().get("delta", 0.0) if delta is None else probability("delta", delta)
    if not at or not balance.spent.amount:
        return None
    try:
        found = epsilon(event, at)
    except Unpriced:
        return None
    meant = balance.terms.rule.spent_as(balance.spent, balance.way)
    if isinstance(meant, Pure) or (isinstance(meant, Approx) and meant.delta <= at):
        found = min(found, meant.epsilon)  # both are valid, and the last digit of one is rounded up
    return Approx(found, at) if math.isfinite(found) else None


def draw_up(transaction: Transaction, account: str) -> Statement:
    """The statement of one account, from the index of the book: its length depends on what differs, not on how much."""
    known = read_balances(transaction, account)
    balance, bought = known[account], find_purchases(transaction, account)
    beneath = tuple(b for _, b in sorted(known.items()) if _pays_into(b.terms, account))
    lines = tuple(_line(transaction, purchase, balance) for purchase in bought)
    today = price_tightly(compose_purchases(bought), balance)
    at = transaction.last_at
    more = count_like_last(transaction, payers((account,), {n: b.terms for n, b in known.items()}), account)
    drawn = account, balance, lines, beneath, today, transaction.head, _date(at)
    return Statement(*drawn, _weaknesses(transaction, known, account, at), more)


def read_balances(transaction: Transaction, account: str) -> dict[str, Balance]:
    """An account, those above it and its population, and those that pay into it."""
    failures = {name: int(count) for name, count in transaction.rows("SELECT account, count FROM failures")}
    population = f'"of":{canonical(account)}'
    rows = transaction.rows("SELECT name, terms, amount, delta, retired FROM accounts")
    above = {*ancestry(account)} | {json.loads(terms)["unit"].get("of") for name, terms, *_ in rows if name == account}
    found = {}
    for name, terms, amount, delta, retired in rows:
        if name in above or name.startswith(account + "/") or population in terms:
            spent, way = from_columns(amount, delta)
            said, failed = Terms.parse(terms), failures.get(name, 0)
            found[name] = Balance(said, spent, way=way, retired=bool(retired), failures=failed)
    if account not in found:
        raise UnknownAccount("ledger.no_account", account=account)
    return found


def _weaknesses(transaction: Transaction, known: Mapping[str, Balance], account: str, at: int) -> tuple[Weakness, ...]:
    terms = known[account].terms
    found = find_weaknesses(terms, {name: balance.terms for name, balance in known.items()})
    if policy := find_policy(transaction):
        lasting = replace(terms, expires=None, block=True)  # an end was judged when it was set
        found += [Weakness("policy", detail=each) for each in policy.violations(lasting, at)]
    return tuple(found)


def _pays_into(terms: Terms, account: str) -> bool:
    """Whether what these terms pay for is paid by `account` too: one above them, or their population."""
    return terms.name != account and account in {*ancestry(terms.name), terms.unit.of}


def _line(transaction: Transaction, bought: Purchase, balance: Balance) -> ReleaseLine:
    rule = balance.terms.rule
    first = transaction.entry(bought.first)
    last = first if bought.last == bought.first else transaction.entry(bought.last)
    cost, delta = rule.amount_of(bought.price, balance.way), rule.delta_of(bought.price)
    what = first.label, _date(first.at), bought.name, bought.event, cost, delta, _state(bought)
    return ReleaseLine(*what, bought.count, last.label, _date(last.at))


def _state(bought: Purchase) -> Phrase:
    if bought.closed == VOID:
        return phrase("ledger.state_handed_back")
    if bought.kind == "lease":
        return phrase("ledger.state_settled" if bought.closed else "ledger.state_leased")
    released, failed = bought.released, bought.failed
    if bought.horizon == 1:
        return phrase(f"ledger.state_{'released' if released else 'failed' if failed else 'reserved'}")
    if failed:
        return phrase("ledger.state_steps_failed", released=released, steps=bought.horizon, failed=failed)
    return phrase("ledger.state_steps", released=released, steps=bought.horizon)


def _beneath(balance: Balance) -> dict[str, Any]:
    spent, limit = balance.terms.rule.amount_of(balance.spent, balance.way), balance.terms.rule.amount_limit
    described = {"account": balance.terms.name, "block": balance.terms.block, "retired": balance.retired}
    described |= {"promise": balance.terms.rule.promise().to_dict(), "spent": spent, "limit": limit}
    return described | {"expires": _end(balance), "purpose": balance.terms.purpose}


def _end(balance: Balance) -> str | None:
    return None if balance.terms.expires is None else as_text(balance.terms.expires)


def _condition(balance: Balance, language: Language) -> str:
    """Whether an account can still pay, until when and for what."""
    until = _end(balance)
    name = "retired" if balance.retired else "open" if until is None else "granted"
    state = say(f"ledger.state_{name}", language, until=until)
    purpose = balance.terms.purpose
    return say("ledger.fact_purpose", language, state=state, purpose=purpose) if purpose else state


def _describe_beneath(balance: Balance, language: Language) -> tuple[str, ...]:
    """An account beneath: its name, its promise, what it has spent, its state."""
    spent, limit = balance.terms.rule.amount_of(balance.spent, balance.way), balance.terms.rule.amount_limit
    numbers = {"measure": balance.terms.rule.measure, "spent": f"{spent:.6g}", "limit": f"{limit:.6g}"}
    share = say("ledger.fact_share", language, **numbers)
    return balance.terms.name, str(balance.terms.rule.promise()), share, _condition(balance, language)


def _cells(line: ReleaseLine, language: Language) -> tuple[str, ...]:
    """One line of the table; equal releases are counted, with their first and last row."""
    row, date, name = line.entry, line.at, line.name
    if line.count > 1:
        row = say("ledger.from_to", language, first=row, last=line.last)
        date = date if date == line.until else say("ledger.from_to", language, first=date, last=line.until)
        name = say("ledger.so_many_times", language, name=name, count=f"{line.count:,}")
    return row, date, name, repr(from_dict(line.event)), _cost(line), translate(line.state, language)


def _cost(line: ReleaseLine) -> str:
    return f"{line.cost:.6g}" + (f", delta {line.delta:.3g}" if line.delta else "")


def _date(at: int) -> str:
    return as_text(at)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(map(escape_markdown, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
