"""Promises that are weak by anybody's standard, and what to say about them.

Thresholds, each with its reason:

    epsilon above 10            an answer may change the odds of anything by more than e^10, about 22,000 times
    delta above 1 in 1,000      whatever the data: one person in a thousand may be told in full
    size * delta above 1 / 100  a mechanism that publishes every person's data with probability delta keeps the promise;
                                with a declared size it would be expected to publish size * delta persons
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mosha.core.guarantee import Approx, Guarantee, Pure
from mosha.core.language import Language, say
from mosha.ledger.terms.terms import Terms

__all__ = ["Weakness", "find_weaknesses"]

LARGE_EPSILON = 10.0
LARGE_DELTA = 1e-3
PERSONS_EXPECTED = 0.01
_ROUNDING = 1 + 1e-9  # an account keeps its limit to one part in 2**51


@dataclass(frozen=True)
class Weakness:
    """One reason to think a promise weak: a code for programs and translators, a sentence for people."""

    code: str
    epsilon: float = 0.0
    delta: float = 0.0
    size: int = 0
    detail: str = ""
    other: str = ""

    def render(self, lang: Language | None = None) -> str:
        """The sentence, in the language `lang` (None: the chosen one)."""
        numbers: dict[str, object] = {"epsilon": self.epsilon, "delta": self.delta, "size": self.size}
        numbers |= {"most": LARGE_EPSILON, "detail": self.detail, "other": self.other}
        numbers["expected"] = self.size * self.delta
        if self.delta:
            numbers["one_in"] = 1 / self.delta
        if self.size:
            numbers["advised"] = PERSONS_EXPECTED / self.size
        return say(f"ledger.weak_{self.code.replace('-', '_')}", lang, **numbers)

    def __str__(self) -> str:
        return self.render()


def find_weaknesses(terms: Terms, known: Mapping[str, Terms]) -> list[Weakness]:
    """Why a promise protects hardly anybody; nothing for one that does."""
    epsilon, delta = _parameters(terms.rule.promise())
    size = _size(terms, known)
    found = []
    if epsilon > LARGE_EPSILON * _ROUNDING:
        found.append(Weakness("large-epsilon", epsilon=epsilon))
    if delta > LARGE_DELTA * _ROUNDING:
        found.append(Weakness("large-delta", delta=delta))
    if size is not None and size * delta > PERSONS_EXPECTED * _ROUNDING:
        found.append(Weakness("delta-for-size", delta=delta, size=size))
    return found


def _parameters(promise: Guarantee) -> tuple[float, float]:
    """Epsilon and delta; of rho and mu the epsilon at a delta of a millionth, and no delta of their own."""
    if isinstance(promise, Pure):
        return promise.epsilon, 0.0
    if isinstance(promise, Approx):
        return promise.epsilon, promise.delta
    from mosha.ledger.terms.policy import epsilon_at  # noqa: PLC0415  (numerics are loaded when they are needed)

    return epsilon_at(promise, 1e-6), 0.0


def _size(terms: Terms, known: Mapping[str, Terms]) -> int | None:
    """The declared size: the account's own, that of the nearest account above it, or that of its population."""
    path = terms.name.split("/")
    above = ["/".join(path[:depth]) for depth in range(len(path), 0, -1)]
    near = [terms, *(known[name] for name in [*above, terms.unit.of or ""] if name in known)]
    return next((each.size for each in near if each.size is not None), None)
