"""`may(principal, verb, thing)`: the one function that decides, by one table. What is not in the table is forbidden.

A rule names the roles that may, or says that the owner of the thing may, everybody who is signed in, or the public.
`never_own` forbids it to the owner whatever their role is: nobody approves their own question. Agents may do only what
a rule says that agents may.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EVERYWHERE", "NOBODY", "ROLES", "RULES", "Principal", "Rule", "Scope", "Thing", "may"]

ROLES = ("administrator", "curator", "analyst", "reviewer", "auditor")
EVERYWHERE = "*"


@dataclass(frozen=True)
class Scope:
    """What a token is good for: these datasets, these verbs, questions up to a price. None: whatever its owner may."""

    datasets: tuple[str, ...] | None = None
    verbs: tuple[str, ...] | None = None
    most_per_question: float | None = None

    def allows(self, verb: str, dataset: str | None) -> bool:
        if self.verbs is not None and verb not in self.verbs:
            return False
        return self.datasets is None or dataset is None or dataset in self.datasets

    def narrow(self, other: Scope) -> Scope:
        """What both of them allow.

        >>> Scope(("visits",), None, 0.1).narrow(Scope(None, ("ask",), 0.5))
        Scope(datasets=('visits',), verbs=('ask',), most_per_question=0.1)
        """

        def both(mine: tuple[str, ...] | None, theirs: tuple[str, ...] | None) -> tuple[str, ...] | None:
            if mine is None or theirs is None:
                return theirs if mine is None else mine
            return tuple(name for name in theirs if name in mine)

        most = [limit for limit in (self.most_per_question, other.most_per_question) if limit is not None]
        lists = both(self.datasets, other.datasets), both(self.verbs, other.verbs)
        return Scope(*lists, min(most, default=None))

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Principal:
    """Somebody who asks for something: a person, a team, an agent beneath a person, a service; or nobody in particular.

    `roles` are pairs of a role and a dataset, or `*` for all of them. `signed_by` tells how they proved who they are.
    """

    id: str
    kind: str
    name: str
    parent: str | None = None
    teams: frozenset[str] = frozenset()
    roles: frozenset[tuple[str, str]] = frozenset()
    scope: Scope = field(default_factory=Scope)
    signed_by: str = ""
    credential: str = ""
    csrf: str = ""

    @property
    def person(self) -> str:
        """Whose share of the server is used: an agent uses its person's, so that nobody gets more by having many."""
        return self.parent or self.id

    @property
    def is_public(self) -> bool:
        return self.kind == "public"

    def datasets_as(self, *roles: str) -> frozenset[str]:
        """The datasets for which this principal has one of these roles, `*` among them where it is all."""
        return frozenset(dataset for role, dataset in self.roles if role in roles)

    def has(self, role: str, dataset: str | None) -> bool:
        return (role, EVERYWHERE) in self.roles or (dataset is not None and (role, dataset) in self.roles)

    @property
    def identities(self) -> frozenset[str]:
        """Those whose grants this principal can use."""
        return frozenset({self.id}) | self.teams


NOBODY = Principal("", "public", "public")


@dataclass(frozen=True)
class Thing:
    """What something is done to: of which dataset it is, and whose it is (an agent's is its person's as well).

    `anywhere` is a list with parts of many datasets: a role for one of them is enough to look, and shows that part.
    """

    dataset: str | None = None
    owners: frozenset[str] = frozenset()
    anywhere: bool = False


@dataclass(frozen=True)
class Rule:
    roles: tuple[str, ...] = ()
    own: bool = False
    signed_in: bool = False
    public: bool = False
    never_own: bool = False
    agents: bool = False


def _roles(*names: str, own: bool = False, never_own: bool = False, agents: bool = False) -> Rule:
    return Rule(roles=names, own=own, never_own=never_own, agents=agents)


_PUBLIC = Rule(public=True, agents=True)
_SIGNED_IN = Rule(signed_in=True, agents=True)
_PERSON = Rule(signed_in=True)

RULES: dict[str, Rule] = {
    "health.read": _PUBLIC,
    "metrics.read": _roles("administrator", "auditor"),
    "session.open": _PUBLIC,
    "session.close": _SIGNED_IN,
    "me.read": _SIGNED_IN,
    "token.list": _PERSON,
    "token.create": _PERSON,
    "token.revoke": _roles("administrator", own=True),
    "agent.create": _PERSON,
    "principal.list": _roles("administrator", "curator", "reviewer", "auditor"),
    "principal.create": _roles("administrator", "curator"),
    "principal.invite": _roles("administrator", "curator"),
    "principal.change": _roles("administrator"),
    "dataset.list": _SIGNED_IN,
    "dataset.read": _roles("curator", "analyst", "reviewer", "auditor", agents=True),
    "dataset.create": _roles("curator"),
    "dataset.declare": _roles("curator"),
    "dataset.describe": _roles("curator"),
    "dataset.countersign": _roles("reviewer", never_own=True),
    "dataset.freeze": _roles("curator", "reviewer"),
    "dataset.thaw": _roles("reviewer"),
    "dataset.retire": _roles("curator"),
    "dataset.lift": _roles("curator"),
    "source.look": _roles("curator"),
    "block.create": _roles("curator"),
    "grant.list": _SIGNED_IN,
    "grant.read": _roles("curator", "reviewer", "auditor", own=True, agents=True),
    "grant.create": _roles("curator"),
    "grant.delegate": Rule(own=True),
    "grant.revoke": _roles("curator", "reviewer"),
    "budget.see": _roles("curator", "reviewer", "auditor"),
    "preview": _roles("curator", "reviewer", "analyst", agents=True),
    "ask": _roles("analyst", agents=True),
    "request.list": _SIGNED_IN,
    "request.read": _roles("curator", "reviewer", "auditor", own=True, agents=True),
    "request.withdraw": Rule(own=True, agents=True),
    "request.decide": _roles("reviewer", never_own=True),
    "answer.read": Rule(own=True, agents=True),
    "publication.propose": _roles("curator", own=True),
    "publication.list": _roles("curator", "reviewer", "auditor"),
    "publication.decide": _roles("reviewer", never_own=True),
    "publication.read": _PUBLIC,
    "statement.read": _roles("curator", "reviewer", "auditor", own=True),
    "ledger.head": _PUBLIC,
    "ledger.read": _roles("reviewer", "auditor"),
    "ledger.verify": _roles("reviewer", "auditor"),
    "survey.list": _SIGNED_IN,
    "survey.create": _roles("curator"),
    "survey.close": _roles("curator"),
    "survey.read": _PUBLIC,
    "survey.report": _PUBLIC,
    "survey.estimate": _roles("curator", "reviewer", "auditor"),
    "lesson.read": _PUBLIC,
    "stream.list": _PUBLIC,
    "stream.create": _roles("curator"),
    "stream.feed": _roles("curator"),
    "stream.read": _PUBLIC,
    "training.price": _roles("curator", "reviewer"),
    "training.reserve": _roles("curator"),
    "training.list": _SIGNED_IN,
    "training.read": _roles("curator", "reviewer", "auditor"),
    "training.report": _roles("curator"),
    "webhook.manage": _roles("administrator"),
    "mcp": _SIGNED_IN,
}


def may(principal: Principal, verb: str, thing: Thing | None = None) -> bool:
    """Whether this principal may do this to this thing.

    >>> li = Principal("p1", "person", "li", roles=frozenset({("analyst", "visits")}))
    >>> may(li, "ask", Thing("visits")), may(li, "ask", Thing("salaries")), may(li, "be king", Thing("visits"))
    (True, False, False)
    """
    thing = thing or Thing()
    rule = RULES.get(verb)
    if rule is None or not principal.scope.allows(verb, thing.dataset):
        return False
    if rule.public:
        return True
    if principal.is_public or (principal.kind == "agent" and not rule.agents):
        return False
    mine = _owns(principal, thing.owners)
    if rule.never_own and mine:
        return False
    if rule.signed_in or (rule.own and mine):
        return True
    seen = principal.datasets_as(*rule.roles)
    return bool(seen) if thing.anywhere else not seen.isdisjoint({EVERYWHERE, thing.dataset})


def _owns(principal: Principal, owners: Collection[str]) -> bool:
    """Whether a thing is theirs; what an agent owns is its person's too, and what a person owns is not its agent's."""
    return not principal.identities.isdisjoint(owners)
