"""Opening under terms: what is wanted, what a parent gives, and what may not be changed later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypedDict

from mosha.accounting.rules import Rule, rule_for
from mosha.core.errors import AccountMismatch, InvalidParameter, UnknownAccount, WrongUnit
from mosha.core.language import phrase
from mosha.core.number import positive_integer
from mosha.core.options import RuleName
from mosha.core.unit import Member, Unit
from mosha.ledger.terms.moment import as_text, read_moment
from mosha.ledger.terms.payers import ancestry, check_disjoint
from mosha.ledger.terms.terms import ALLOWANCE, LONGEST, Terms

__all__ = ["GrantTerms", "Limits", "Wanted"]


class Limits(TypedDict, total=False):
    """The terms of an account, but for its unit: see `Ledger.account`."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    mu: float | None
    rule: RuleName | None
    delta_for_events: float | None
    disjoint_blocks: bool | None
    size: int | None
    failures: int | None


class GrantTerms(Limits, total=False):
    """The terms of a grant: see `LedgerAccount.grant`."""

    expires: date | datetime | str | None
    purpose: str | None


@dataclass(frozen=True)
class Wanted:
    """The terms somebody asks for; what was left out (None) is inherited, or taken as it is."""

    name: str
    unit: Unit | None
    rule: Rule | None
    disjoint_blocks: bool | None
    block: bool
    size: int | None = None
    expires: int | None = None
    purpose: str | None = None
    failures: int | None = None
    any_rule: bool = False  # epsilon and delta were said, and not by which rule they are kept

    @staticmethod
    def of(name: str, unit: Unit | None, limits: Limits | GrantTerms, *, block: bool) -> Wanted:
        given: dict[str, Any] = {term: value for term, value in limits.items() if value is not None}
        disjoint = given.pop("disjoint_blocks", None)
        if disjoint not in (None, True, False):
            raise InvalidParameter("core.not_true_or_false", parameter="disjoint_blocks")
        size = positive_integer("size", given.pop("size")) if "size" in given else None
        expires = read_moment("expires", given.pop("expires")) if "expires" in given else None
        purpose = _check_purpose(given.pop("purpose", None))
        failures = positive_integer("failures", given.pop("failures")) if "failures" in given else None
        if unit is not None and not isinstance(unit, Unit):
            raise InvalidParameter("ledger.not_a_unit", parameter="unit", kind=type(unit).__name__)
        unknown = set(given) - {"epsilon", "delta", "rho", "mu", "rule", "delta_for_events"}
        if unknown:
            known = ", ".join(Limits.__annotations__)
            raise InvalidParameter("ledger.no_such_term", parameter=min(unknown), terms=known, spent="nothing")
        rule = rule_for(**given) if given else None
        if rule is not None and rule.limit.amount == 0:
            raise InvalidParameter("ledger.limit_too_small")
        said = {"rho", "mu", "rule", "delta_for_events"} & set(given)
        return Wanted(name, unit, rule, disjoint, block, size, expires, purpose, failures, any_rule=not said)

    def terms(self, known: Mapping[str, Terms], now: int) -> Terms:
        """The terms of an account that is opened now, beside those above it and the population that its unit names."""
        parent = self.name.rpartition("/")[0]
        above = known.get(parent)
        unit, rule = self._unit_beneath(above), self.rule
        if parent and above is None:
            raise UnknownAccount("ledger.no_parent", account=self.name, parent=parent)
        if above is not None:
            rule = rule or (above.rule if self.block else None)
        if unit is None or rule is None:
            missing = phrase("ledger.term_unit" if rule is not None else "ledger.term_limit")
            raise UnknownAccount("ledger.no_account_without_terms", account=self.name, missing=missing)
        if above is None or unit != above.unit:  # what is inherited was checked when the parent was opened
            _check_population(self.name, unit, known)
        if self.disjoint_blocks:
            check_disjoint(unit)
        if self.expires is not None and self.expires <= now:
            raise InvalidParameter(
                "ledger.ended_before_opened", parameter="expires", account=self.name, expires=as_text(self.expires)
            )
        options = {"size": self.size, "expires": self.expires, "purpose": self.purpose}
        options["failures"] = self.failures or (ALLOWANCE if above is None else above.failures)
        return Terms(self.name, unit, rule, self.block, bool(self.disjoint_blocks), **options)  # type: ignore[arg-type]

    def _unit_beneath(self, above: Terms | None) -> Unit | None:
        """The parent's unit; beneath a population, any unit that hides a whole person of it."""
        if above is None:
            return self.unit
        if self.unit is not None and not above.unit.covers(self.unit):
            raise WrongUnit(
                "ledger.parent_protects_other",
                account=above.name,
                protected=above.unit.phrase(),
                asked=self.unit.phrase(),
                spent="nothing",
            )
        return self.unit if self.unit is not None and isinstance(above.unit, Member) else above.unit

    def _is_kept_by(self, rule: Rule) -> bool:
        """Whether an account under `rule` is wanted: the same rule, or the same promise where no rule was named."""
        if self.rule == rule:
            return True
        asked, found = (vars(one) for one in (self.rule, rule))
        return self.any_rule and all(asked.get(name) == found.get(name) for name in ("epsilon", "delta"))

    def compare(self, terms: Terms) -> None:
        """Refuse other terms than those the account was opened under; what was left out is not compared."""
        differing = []
        if self.unit is not None and not _is_same_or_less(self.unit, terms.unit):
            differing.append(phrase("ledger.other_unit", unit=terms.unit.phrase()))
        if self.rule is not None and not self._is_kept_by(terms.rule):
            differing.append(phrase("ledger.other_limit", promise=str(terms.rule.promise()), rule=terms.rule.name))
        if self.disjoint_blocks is not None and self.disjoint_blocks != terms.disjoint_blocks:
            differing.append(phrase("ledger.opened_with", term="disjoint_blocks", value=terms.disjoint_blocks))
        if self.size is not None and self.size != terms.size:
            differing.append(
                phrase("ledger.opened_with", term="size", value=terms.size)
                if terms.size
                else phrase("ledger.opened_without", term="size")
            )
        if self.expires is not None and self.expires != terms.expires:
            differing.append(
                phrase("ledger.opened_without", term="expires")
                if terms.expires is None
                else phrase("ledger.opened_with", term="expires", value=as_text(terms.expires))
            )
        if self.purpose is not None and self.purpose != terms.purpose:
            differing.append(phrase("ledger.other_purpose"))
        if self.failures is not None and self.failures != terms.failures:
            differing.append(phrase("ledger.opened_with", term="failures", value=terms.failures))
        if self.block and not terms.block:
            differing.append(phrase("ledger.opened_as_child"))
        if differing:
            raise AccountMismatch("ledger.other_terms", account=terms.name, terms=differing, spent="nothing")


def _check_purpose(purpose: object) -> str | None:
    if purpose is not None and not (isinstance(purpose, str) and 0 < len(purpose) <= LONGEST and purpose.isprintable()):
        raise InvalidParameter("ledger.bad_purpose", parameter="purpose", longest=LONGEST)
    return purpose


def _is_same_or_less(said: Unit, unit: Unit) -> bool:
    """Whether somebody who says `said` can mean this unit: the population may be left out."""
    return said.protects_same(unit) if isinstance(unit, Member) else unit.covers(said)


def _check_population(name: str, unit: Unit, known: Mapping[str, Terms]) -> None:
    """Refuse a unit whose population is not there, or does not protect it."""
    if unit.of is None:
        return
    if isinstance(unit, Member):
        if ancestry(name)[0] != unit.of:
            raise InvalidParameter("ledger.member_outside", parameter="unit")
        return
    population = known.get(unit.of)
    if population is None or not isinstance(population.unit, Member):
        raise UnknownAccount("ledger.no_population", account=name, population=unit.of)
    if not population.unit.covers(unit):
        raise WrongUnit(
            "ledger.population_protects_other",
            account=name,
            population=unit.of,
            protected=population.unit.phrase(),
            asked=unit.phrase(),
            spent="nothing",
        )
