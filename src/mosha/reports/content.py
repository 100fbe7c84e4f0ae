"""What a report of one period holds: its sections, each with an answer or none, and what was planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mosha.core.language import Language, say
from mosha.core.release import Receipt
from mosha.reports.parts import Part
from mosha.reports.period import Period
from mosha.reports.split import Split
from mosha.tables import Answer

__all__ = ["Content", "Section"]


@dataclass(frozen=True)
class Section:
    """One question of a report (`part`) with its `answer`; None where its step broke, which stays paid, or `waits`.

    A step waits that was paid for and has not ended; `Report.run` takes it.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> visits = mosha.protect({"days": [3, 5]}, unit=mosha.Row(), account=account)
    >>> edition = mosha.Report("Visits", epsilon=1).add("all", visits.count()).run()
    >>> [section.part.name for section in edition.sections]
    ['all']
    """

    part: Part
    answer: Answer | None
    waits: bool = False

    def read_answer(self, lang: Language) -> Answer | None:
        """The answer as people read it: columns that no question has named are called in the language `lang`."""
        return None if self.answer is None else self.part.name_columns(self.answer, lang)

    def say_missing(self, lang: Language) -> str:
        """What stands in the place of an answer that is not there, in the language `lang`."""
        return say("reports.waits" if self.waits else "reports.broke", lang)


@dataclass(frozen=True, kw_only=True, repr=False)
class Content:
    """The answers of one period, in the order of the questions."""

    title: str
    period: Period
    language: Language
    sections: tuple[Section, ...]
    split: Split

    def __iter__(self) -> Iterator[Section]:
        return iter(self.sections)

    def __len__(self) -> int:
        return len(self.sections)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """One for each account that paid."""
        found = {s.answer.receipt.account: s.answer.receipt for s in self.sections if s.answer is not None}
        return tuple(found.values())
