"""The policy of a book: ceilings that every account obeys when it is opened.

A policy is a small file (`mosha-policy.toml`), written by whoever answers for the promises. It is noted in the chain
with its hash; from then on it holds for whoever opens an account in this book, with or without the file. A newer policy
takes its place, for new accounts; both stay in the chain. Accounts that are already open keep their terms, and
statements say where they are above the present ceilings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mosha.core.errors import InvalidParameter, PolicyViolation
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.language import Phrase, phrase
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.unit import Unit
from mosha.ledger.storage.chain import canonical
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.document import read_document
from mosha.ledger.terms.note import OWN, Note, append_note
from mosha.ledger.terms.terms import Terms

__all__ = ["TOPIC", "Policy", "epsilon_at", "find_policy", "read_policy", "set_policy"]

TOPIC = f"{OWN}policy"
DAY = 24 * 3600 * 1_000_000
_ROUNDING = 1 + 1e-9  # an account keeps its limit to one part in 2**51


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What accounts of a book may promise; what is left out is free.

    Fields:
        epsilon: the largest epsilon; for rho and mu accounts it is read at `delta`.
        delta: the largest delta.
        rho: the largest rho.
        mu: the largest mu.
        units: the units that may be protected, such as ["person", "client"].
        population_required: every account names a population (`of=`), or is one.
        children_expire: an account beneath another one is a grant that ends, or a block of data.
        grant_days: a grant ends at most so many days after it was made.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    units: tuple[str, ...] | None = None
    population_required: bool = False
    children_expire: bool = False
    grant_days: int | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho", "mu"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.delta is not None:
            strict_probability("delta", self.delta)
        if self.grant_days is not None:
            positive_integer("grant_days", self.grant_days)
        if self.units is not None:
            kinds = {name.lower() for name in Unit.kinds}
            listed = isinstance(self.units, list | tuple) and self.units and set(map(str, self.units)) <= kinds
            if not listed:
                raise InvalidParameter("ledger.policy_units", parameter="units", units=sorted(kinds))
            object.__setattr__(self, "units", tuple(self.units))
        for name in ("population_required", "children_expire"):
            if getattr(self, name) not in (True, False):
                raise InvalidParameter("ledger.policy_not_true_or_false", parameter=name)

    @staticmethod
    def of(given: Policy | Mapping[str, Any] | str | os.PathLike[str]) -> Policy:
        """The policy that a file, or plain data, describes."""
        if isinstance(given, Policy):
            return given
        if isinstance(given, str | os.PathLike):
            given = read_document(given, phrase("ledger.the_policy"))
        if not isinstance(given, Mapping):
            raise InvalidParameter("ledger.not_a_policy", parameter="policy")
        known = {field.name for field in fields(Policy)}
        if unknown := sorted(set(given) - known):
            raise InvalidParameter("ledger.policy_no_field", parameter=unknown[0], fields=sorted(known))
        return Policy(**given)

    def to_dict(self) -> dict[str, Any]:
        """What the policy says; what it leaves out is left out."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return said | ({"units": list(self.units)} if self.units is not None else {})

    @property
    def sha256(self) -> str:
        return hashlib.sha256(canonical(self.to_dict()).encode()).hexdigest()

    def violations(self, terms: Terms, now: int) -> list[Phrase]:
        """Why an account of these terms, opened now, is against the policy."""
        kind, child = type(terms.unit).__name__.lower(), "/" in terms.name
        names = {kind, terms.unit.stored_as.lower()} | ({"person"} if kind == "member" else set())
        found = self._above_ceilings(terms.rule.promise())
        if self.units is not None and names.isdisjoint(self.units):
            found.append(phrase("ledger.policy_other_unit", kind=kind, units=self.units))
        if self.population_required and terms.unit.of is None:
            found.append(phrase("ledger.policy_no_population"))
        if self.children_expire and child and not terms.block and terms.expires is None:
            found.append(phrase("ledger.policy_no_end"))
        if self.grant_days is not None and terms.expires is not None and terms.expires > now + self.grant_days * DAY:
            found.append(phrase("ledger.policy_too_long", days=self.grant_days))
        return found

    def _above_ceilings(self, promise: Guarantee) -> list[Phrase]:
        said = {name: value for name, value in promise.to_dict().items() if name != "guarantee"}
        own = next(iter(said))  # epsilon, rho or mu
        ceilings = {name: getattr(self, name) for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None}
        found = [
            phrase("ledger.policy_ceiling", measure=name, value=value, ceiling=getattr(self, name))
            for name, value in said.items()
            if getattr(self, name) is not None and value > getattr(self, name) * _ROUNDING
        ]
        if own in ceilings or not ceilings:
            return found
        if self.epsilon is None or self.delta is None or isinstance(promise, Pure | Approx):
            return [*found, phrase("ledger.policy_no_ceiling", measure=own)]
        epsilon = epsilon_at(promise, self.delta)
        if epsilon > self.epsilon * _ROUNDING:
            numbers = {"value": said[own], "epsilon": epsilon, "ceiling": self.epsilon}
            found.append(phrase("ledger.policy_ceiling_converted", measure=own, **numbers))
        return found

    def check(self, terms: Terms, now: int) -> None:
        if found := self.violations(terms, now):
            raise PolicyViolation("ledger.against_policy", account=terms.name, policy=self.sha256[:12], reasons=found)


def epsilon_at(promise: Guarantee, delta: float) -> float:
    """The epsilon of a rho or a mu at this delta."""
    from mosha.accounting.measures import concentrated, gaussian  # noqa: PLC0415  (numerics are loaded when they are needed)

    if isinstance(promise, Gaussian):
        return gaussian.epsilon(promise.mu, delta)
    assert isinstance(promise, ZeroConcentrated)
    return concentrated.epsilon_from_rho(promise.rho, delta)


def set_policy(transaction: Transaction, policy: Policy) -> None:
    """Note the policy in the chain, unless it is the one that holds already."""
    if find_policy(transaction) != policy:
        append_note(transaction, TOPIC, {"policy": policy.to_dict(), "sha256": policy.sha256})


def find_policy(transaction: Transaction) -> Policy | None:
    """The policy that holds now: the last one that was noted."""
    statement = (
        "SELECT sequence, at, kind, body, hash FROM entries WHERE kind = 'note' AND body LIKE ? "
        "ORDER BY sequence DESC LIMIT 1"
    )
    row = transaction.row(statement, f'%,"topic":"{TOPIC}"}}')
    return None if row is None else read_policy(Note.of_row(row).content)


def read_policy(content: Mapping[str, Any]) -> Policy:
    """The policy of a note; InvalidParameter where its hash is not its own."""
    policy = Policy.of(content["policy"])
    if policy.sha256 != content["sha256"]:
        raise InvalidParameter("ledger.policy_other_hash")
    return policy
