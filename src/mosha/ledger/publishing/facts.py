"""What a statement says, as numbers: everything else writes it down for somebody."""

from __future__ import annotations

from dataclasses import dataclass, field

from mosha.core.guarantee import Approx, Guarantee
from mosha.ledger.checking.replay import Balance
from mosha.ledger.storage.chain import Content, Head
from mosha.ledger.terms.weakness import Weakness

__all__ = ["ReleaseLine", "StatementFacts"]


@dataclass(frozen=True)
class ReleaseLine:
    """One payment, or `count` equal ones from row `entry` to row `last`; what they cost is what all cost together."""

    entry: str
    at: str
    name: str
    event: Content
    cost: float
    delta: float
    state: str
    count: int = 1
    last: str = ""
    until: str = ""


@dataclass(frozen=True, repr=False)
class StatementFacts:
    """What one account has promised and paid for. Public numbers, all of it."""

    account: str
    balance: Balance = field(repr=False)
    releases: tuple[ReleaseLine, ...]
    accounts: tuple[Balance, ...] = field(repr=False)
    today: Guarantee | None
    head: Head
    at: str
    weaknesses: tuple[Weakness, ...] = ()
    more: int | None = None  # payments like the last one that still fit

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the promise is weak by anybody's standard, or above the present policy of the book, in sentences."""
        return tuple(weakness.render("en") for weakness in self.weaknesses)

    @property
    def promise(self) -> Guarantee:
        return self.balance.terms.rule.promise()

    @property
    def spent(self) -> Guarantee:
        return self.balance.terms.rule.spent_as(self.balance.spent, self.balance.way)

    @property
    def left(self) -> float:
        """What can still be spent here, in the measure of the rule: as epsilon, in one pure release."""
        return self.balance.terms.rule.amount_left(self.balance.spent, self.balance.way)

    @property
    def left_as(self) -> Approx | None:
        """What is left as epsilon at the delta of the account, where its rule counts in another measure."""
        return self.balance.terms.rule.left_as(self.balance.spent)
