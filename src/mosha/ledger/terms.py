"""Opening under terms: what is wanted, what a parent gives, and what may not be changed later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from mosha.accounting.rules import Rule, rule_for
from mosha.core.errors import AccountMismatch, InvalidParameter, UnknownAccount, WrongUnit
from mosha.core.unit import Unit
from mosha.ledger.tree import Terms, check_disjoint

__all__ = ["Limits", "Wanted"]


class Limits(TypedDict, total=False):
    """The terms of an account, but for its unit: see `Ledger.account`."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    mu: float | None
    rule: str | None
    delta_for_events: float | None
    disjoint_blocks: bool | None


@dataclass(frozen=True)
class Wanted:
    """The terms somebody asks for; what was left out (None) is inherited, or taken as it is."""

    name: str
    unit: Unit | None
    rule: Rule | None
    disjoint_blocks: bool | None
    block: bool

    @staticmethod
    def of(name: str, unit: Unit | None, limits: Limits, *, block: bool) -> Wanted:
        given: dict[str, Any] = {term: value for term, value in limits.items() if value is not None}
        disjoint = given.pop("disjoint_blocks", None)
        if disjoint not in (None, True, False):
            raise InvalidParameter("disjoint_blocks must be True or False.")
        if unit is not None and not isinstance(unit, Unit):
            raise InvalidParameter(f"unit must be a unit such as mosha.Person(column), not {type(unit).__name__}.")
        unknown = set(given) - {"epsilon", "delta", "rho", "mu", "rule", "delta_for_events"}
        if unknown:
            raise InvalidParameter(f"an account has no term {min(unknown)!r}.")
        rule = rule_for(**given) if given else None
        if rule is not None and rule.limit.amount == 0:
            raise InvalidParameter("this limit is so small that nothing could ever be paid from it. Say a larger one.")
        return Wanted(name, unit, rule, disjoint, block)

    def terms(self, above: Terms | None) -> Terms:
        """The terms of a new account beneath `above`."""
        parent = self.name.rpartition("/")[0]
        unit, rule = self.unit, self.rule
        if parent and above is None:
            raise UnknownAccount(f"this ledger has no account {parent!r} for {self.name!r} to be a child of.")
        if above is not None:
            if unit is not None and not unit.protects_same(above.unit):
                raise WrongUnit(f"account {parent!r} protects {above.unit.describe()}, and so do all beneath it.")
            unit = above.unit
            rule = rule or (above.rule if self.block else None)
        if unit is None or rule is None:
            missing = "unit" if rule is not None else "limit (epsilon=, rho= or mu=)"
            raise UnknownAccount(f"this ledger has no account {self.name!r}; to open it, say its {missing}.")
        if self.disjoint_blocks:
            check_disjoint(unit)
        return Terms(self.name, unit, rule, self.block, bool(self.disjoint_blocks))

    def compare(self, terms: Terms) -> None:
        """Refuse other terms than those the account was opened under; what was left out is not compared."""
        differing = []
        if self.unit is not None and not self.unit.protects_same(terms.unit):
            differing.append(f"unit (opened for: {terms.unit.describe()})")
        if self.rule is not None and self.rule != terms.rule:
            differing.append(f"limit (opened for: {terms.rule.promise()}, by the {terms.rule.name} rule)")
        if self.disjoint_blocks is not None and self.disjoint_blocks != terms.disjoint_blocks:
            differing.append(f"disjoint_blocks (opened with {terms.disjoint_blocks})")
        if self.block and not terms.block:
            differing.append("kind (opened as a child, not as a block)")
        if differing:
            raise AccountMismatch(
                f"account {terms.name!r} exists under other terms: {'; '.join(differing)}. A promise is never changed: "
                "reopen it under the same terms, or open another account. Nothing was spent."
            )
