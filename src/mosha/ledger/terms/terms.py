"""The terms of an account: whose presence it hides, under which rule and limit, until when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mosha.accounting.rules import Price, Rule
from mosha.accounting.rules import from_dict as rule_from_dict
from mosha.core.unit import Unit
from mosha.ledger.storage.chain import Content

__all__ = ["ALLOWANCE", "LONGEST", "Terms"]

LONGEST = 300  # characters of a name, a key, a purpose
ALLOWANCE = 3
OPTIONAL = {"size": None, "expires": None, "purpose": None, "failures": ALLOWANCE}  # written where they differ


@dataclass(frozen=True)
class Terms:
    """What an account was opened for; it never changes."""

    name: str
    unit: Unit
    rule: Rule
    block: bool = False
    disjoint_blocks: bool = False
    size: int | None = None  # how many units there are, where the steward has declared it: public
    expires: int | None = None  # pays for nothing from this moment on
    purpose: str | None = None
    failures: int = ALLOWANCE
    """How many paid steps may fail before the account is frozen."""

    @cached_property
    def limit(self) -> Price:
        return self.rule.limit

    def to_dict(self) -> dict[str, Any]:
        described = {"name": self.name, "block": self.block, "disjoint_blocks": self.disjoint_blocks}
        described |= {"unit": self.unit.to_dict(), "rule": self.rule.to_dict()}
        return described | {name: value for name, usual in OPTIONAL.items() if (value := getattr(self, name)) != usual}

    @staticmethod
    def from_dict(stored: Content) -> Terms:
        return Terms(
            stored["name"],
            Unit.from_dict(stored["unit"]),
            rule_from_dict(stored["rule"]),
            stored["block"],
            stored["disjoint_blocks"],
            **{name: stored[name] for name in OPTIONAL if name in stored},
        )

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> Terms:
        """The terms as a book's table of accounts holds them; the same text is the same terms, and is checked once."""
        return Terms.from_dict(json.loads(text))
