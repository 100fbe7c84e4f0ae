"""The cards of accounts, ledgers and statements: gauges of what is spent, and what still fits."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import MoshaError
from mosha.core.language import Language, say
from mosha.core.release import describe_as, write_left
from mosha.core.showing import Card

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mosha.accounting.rules import Rule
    from mosha.core.guarantee import Approx, Guarantee
    from mosha.core.unit import Unit
    from mosha.ledger.publishing.facts import StatementFacts

__all__ = ["describe_left", "draw_ledger", "make_account_card", "make_ledger_card", "make_statement_card"]


class _Account(Protocol):
    """What a card tells about an account."""

    @property
    def name(self) -> str: ...
    @property
    def promise(self) -> Guarantee: ...
    @property
    def unit(self) -> Unit: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def spent(self) -> float: ...
    @property
    def limit(self) -> float: ...
    @property
    def remaining(self) -> float: ...
    @property
    def remaining_as(self) -> Approx | None: ...
    @property
    def more_like_last(self) -> int | None: ...
    @property
    def retired(self) -> bool: ...


class _Ledger(Protocol):
    """What a card tells about a ledger."""

    @property
    def place(self) -> str: ...
    def accounts(self) -> Sequence[_Account]: ...


def describe_left(account: _Account) -> str:
    """What is left of an account, in words; empty where its ledger cannot be read just now."""
    with contextlib.suppress(MoshaError):
        more, measure, limit = account.more_like_last, account.rule.measure, account.limit
        left = write_left(account.remaining, limit, measure, more)
        said = say("core.shown_left", measure=measure, left=left, limit=f"{limit:.4g}") + describe_as(
            account.remaining_as
        )
        return said + _describe_more(more)
    return ""


def make_account_card(account: _Account) -> Card:
    """The promise, who is hidden, and a gauge of what is spent."""
    title = f"{say('core.shown_account')} {account.name}"
    facts = [
        (say("core.shown_promise"), str(account.promise)),
        (say("core.shown_hidden"), account.unit.describe()),
    ]
    gauges, notes = [], []
    with contextlib.suppress(MoshaError):  # a closed ledger still has a name and a promise
        gauges = [_gauge(account, say("core.shown_spent"))]
        notes = [say("core.shown_retired")] if account.retired else []
    return Card(title=title, facts=facts, gauges=gauges, notes=notes)


def make_ledger_card(ledger: _Ledger) -> Card:
    """A gauge for each account of `ledger`."""
    title = say("core.shown_ledger", place=ledger.place)
    try:
        gauges = [_gauge(account, account.name) for account in ledger.accounts()]
    except MoshaError:
        return Card(title=title)
    return Card(title=title, gauges=gauges, notes=() if gauges else (say("core.shown_no_accounts"),))


def make_statement_card(statement: StatementFacts) -> Card:
    """What was promised, what is spent and how many releases there were; the whole of it is `to_html()`."""
    rule, balance = statement.balance.terms.rule, statement.balance
    spent, limit = rule.amount_of(balance.spent, balance.way), rule.amount_limit
    left = write_left(statement.left, limit, rule.measure, statement.more)
    text = _write_spent(rule.measure, spent, limit, left) + describe_as(statement.left_as)
    text += _describe_more(statement.more)
    facts = [
        (say("core.shown_promise"), str(statement.promise)),
        (say("core.shown_hidden"), balance.terms.unit.describe()),
        (say("core.shown_all_spending"), str(statement.spent)),
        (say("core.shown_releases"), f"{sum(line.count for line in statement.releases):,}"),
        (say("core.shown_as_of"), statement.at),
        *((say("core.shown_warning"), warning) for warning in statement.warnings),
    ]
    return Card(
        title=say("core.shown_statement", account=statement.account),
        facts=facts,
        gauges=[(say("core.shown_spent"), spent / limit if limit else 1.0, text)],
        notes=(say("core.shown_statement_more"),),
    )


def _gauge(account: _Account, name: str) -> tuple[str, float, str]:
    spent, limit, more = account.spent, account.limit, account.more_like_last
    left = write_left(account.remaining, limit, account.rule.measure, more)
    text = _write_spent(account.rule.measure, spent, limit, left)
    text += describe_as(account.remaining_as) + _describe_more(more)
    return name, spent / limit if limit else 1.0, text


def _write_spent(measure: str, spent: float, limit: float, left: str) -> str:
    return say("core.shown_spent_of", measure=measure, spent=f"{spent:.4g}", limit=f"{limit:.4g}", left=left)


def _describe_more(count: int | None) -> str:
    return "" if count is None else f"; {say('core.shown_more', count=f'{count:,}')}"


def draw_ledger(
    ledger: _Ledger, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
    lang: Language | None = None,
) -> Figure:  # fmt: skip
    """All accounts of `ledger` as a tree of gauges (needs the extra `plot`).

    Args:
        ledger: whose accounts are drawn.
        ax: axes of matplotlib to draw on.
        title: what stands above.
        unit: what the budgets are counted in, beneath the gauges.
        lang: "en" or "zh"; the chosen language where it is left out.

    >>> import mosha
    >>> ledger = mosha.Ledger.memory()
    >>> account = ledger.account("visits", unit=mosha.Row(), epsilon=1)
    >>> type(draw_ledger(ledger)).__name__
    'Picture'
    """
    from mosha.pictures import draw_tree  # noqa: PLC0415  (pictures are drawn when they are asked for)

    lines = []
    for account in ledger.accounts():
        share = account.spent / account.limit if account.limit else 1.0
        text = f"{account.rule.measure} {account.spent:.3g} / {account.limit:.3g}"
        *above, name = account.name.split("/")
        lines.append((name, len(above), share, text))

    def describe() -> str:
        return say("core.picture_ledger", date=datetime.now(UTC).date().isoformat())

    def draw() -> Figure:
        return draw_tree(lines, title=say("core.picture_budgets"))

    return cast("Figure", draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang, footer=describe))
