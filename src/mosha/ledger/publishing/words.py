"""What a statement says, in English and in Chinese: the sentences `ledger.page_...`, with numbers in them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, ZeroConcentrated
from mosha.core.language import LANGUAGES, Language, say
from mosha.core.release import describe_as
from mosha.core.unit import Unit

__all__ = ["Words", "words_in"]

_GREEK = {"epsilon": "ε", "rho": "ρ", "mu": "μ", "delta": "δ"}  # noqa: RUF001
_KINDS: dict[type[Guarantee], str] = {ZeroConcentrated: "zero_concentrated", Gaussian: "gaussian"}


@dataclass(frozen=True)
class Words:
    """One language."""

    lang: Language

    def __getitem__(self, name: str) -> str:
        return say(f"ledger.page_{name}", self.lang)

    def promise(self, promise: Guarantee) -> str:
        """The numbers of a promise."""
        if self.lang == "en":
            return str(promise)
        if kind := _KINDS.get(type(promise)):
            return say(f"ledger.promise_{kind}", self.lang, **asdict(promise))
        return "，".join(f"{_GREEK[name]} = {value:.6g}" for name, value in asdict(promise).items())  # noqa: RUF001

    def describe_hidden(self, unit: Unit) -> str:
        """What nobody can tell."""
        return say("ledger.fact_hidden", self.lang, unit=unit.describe(self.lang))

    def belief(self, before: str, after: str, factor: str) -> str:
        """What the promise means to somebody who suspects something."""
        return say("ledger.page_belief", self.lang, before=before, after=after, factor=factor)

    def failing(self, delta: float) -> str:
        """What delta means."""
        return say("ledger.page_failing", self.lang, delta=delta)

    def describe_spent(self, share: str, measure: str, amount: str, limit: str) -> str:
        """How much of the limit is spent."""
        numbers = {"amount": amount, "limit": limit, "measure": self._name(measure)}
        return say("ledger.page_share", self.lang, share=share, **numbers)

    def describe_left(self, measure: str, amount: str, more: int | None, meaning: Approx | None) -> str:
        """What is left, and how many more payments like the last one that is, where it is known."""
        left = f"{self._name(measure)} {amount}{describe_as(meaning, self.lang)}"
        return left if more is None else say("ledger.page_more", self.lang, amount=left, more=more)

    def _name(self, measure: str) -> str:
        return measure if self.lang == "en" else _GREEK.get(measure, measure)


def words_in(lang: str) -> Words:
    """The words of a language.

    >>> words_in("zh")["releases"]
    '发布记录'
    """
    if lang not in LANGUAGES:
        raise InvalidParameter("ledger.unknown_language", parameter="lang")
    return Words(lang)
