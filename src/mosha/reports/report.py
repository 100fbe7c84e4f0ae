"""A report: several questions, one budget, a wish for each; planned together, paid once a period, under one key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from mosha.core.account import Account, Run
from mosha.core.errors import InvalidParameter, MoshaError, StepFailed, WrongUnit
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.release import Release
from mosha.core.showing import Card, Shown
from mosha.reports.content import Section
from mosha.reports.edition import Edition
from mosha.reports.forecast import Forecast
from mosha.reports.parts import Part, ReadyPart, join_fingerprints
from mosha.reports.period import Period, find_period
from mosha.reports.questions import Questions
from mosha.reports.reading import read_report
from mosha.reports.split import Split
from mosha.reports.together import PartAnswer, join_parts

__all__ = ["Report"]


@explain_wrong_calls
@dataclass(frozen=True, repr=False)
class Report(Shown, Questions):
    """Several questions with one budget: `add` them, `forecast`, then `run` once a period.

    Guarantee:
        All parts that one account pays for are one measurement (`together.md`), paid in one transaction before any data
        are read. Under the key of its period the same answers are found again, whatever happened in between.

    Args:
        title: what it is called; with the period it is the key of its payment.
        epsilon: what one period may cost, with
        delta: where groups come from the data, or noise may be Gaussian; or
        rho: the same in zero-concentrated differential privacy.
        period: "once", "day", "week", "month", "quarter" or "year".
        lang: "en" or "zh"; the chosen language where it is left out.
        makers: what `add` collects: for each name a function that makes its part for a period.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> visits = mosha.protect({"ward": ["A", "B", "A"]}, unit=mosha.Row(), account=account)
    >>> report = Report("Visits", epsilon=1).add("by_ward", visits.group_by("ward", keys=["A", "B"]).count(), within=9)
    >>> round(report.forecast().cost, 2)
    0.33
    >>> edition = report.run()
    >>> edition["by_ward"].table["ward"], report.run()["by_ward"].table == edition["by_ward"].table
    (['A', 'B'], True)
    """

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Report:
        """The report that the YAML (or TOML, or JSON) file at `path` describes; see `docs/how-to/report.md`."""
        return read_report(path, Report)

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.makers)} questions, {self.budget}, period={self.period!r})"

    def forecast(self, *, on: date | str | None = None) -> Forecast:
        """What each question will cost in the period of the day `on`, and how wide its bars are; nothing is spent."""
        period = find_period(self.period, on)
        return Forecast(title=self.title, period=period, split=self.plan(on=on))

    def make_card(self) -> Card:
        try:
            return self.forecast().make_card()
        except MoshaError as problem:  # what it lacks, in place of what it will cost
            return Card(title=self.title, notes=(str(problem),))

    def run(
        self, *, on: date | str | None = None, widen: bool = False, tick: Callable[[], None] | None = None
    ) -> Edition:
        """Pay for all questions of a period and answer them; again under the same period, the same answers, free.

        A question whose engine failed stays paid: the next `run` asks it once more, and it counts as one failure more
        of its account where it fails again.

        Args:
            on: a day of the period, or its label ("2026", "2026-05"); today's where it is left out.
            widen: go on where the budget cannot meet all wishes, with all wished bars widened alike.
            tick: called after each answer.
        """
        return self._answer(find_period(self.period, on), self.plan(on=on), widen=widen, tick=tick or _do_nothing)

    def _answer(
        self, period: Period, split: Split, *, widen: bool, tick: Callable[[], None], asks: bool = True
    ) -> Edition:
        key = self.find_key(period)
        groups = list(_group_by_account(split))
        if not split.meets_wishes and not widen and not all(account.holds(key) for account, _ in groups):
            raise InvalidParameter(
                "reports.wishes_not_met", parameter="budget", spent="nothing", budget=str(self.budget),
                factor=round(split.widening, 2),
            )  # fmt: skip
        prepared = {each.part.name: each.part.prepare(each.budget) for each in split.parts}
        for account, parts in groups:
            if not account.holds(key):
                for part in parts:
                    prepared[part.name].look()
        found: dict[str, Section] = {}
        for account, parts in groups:
            ready = [prepared[part.name] for part in parts]
            measurement = self._measurement(period, parts, ready, split)
            sections = _ask_all(account, measurement, key, parts, ready, tick, asks=asks)
            found |= {section.part.name: section for section in sections}
        ordered = tuple(found[each.part.name] for each in split.parts)
        return Edition(title=self.title, period=period, language=self.language, sections=ordered, split=split)

    def show(self, *, on: date | str | None = None) -> Edition:
        """The answers of the period of the day `on`, as far as there are any: free, and nothing is asked.

        A period that was not paid for is refused. One that is being answered by another process is left to it.
        """
        period, split = find_period(self.period, on), self.plan(on=on)
        accounts = [account for account, _ in _group_by_account(split)]
        if not all(account.holds(self.find_key(period)) for account in accounts):
            raise InvalidParameter("reports.not_run_yet", period=period.label, spent="nothing")
        return self._answer(period, split, widen=True, tick=_do_nothing, asks=False)

    def find_key(self, period: Period) -> str:
        """The key of the payment for a period."""
        return f"report {self.title}: {period.label}"

    def _measurement(
        self, period: Period, parts: Sequence[Part], ready: Sequence[ReadyPart], split: Split
    ) -> Measurement:
        asked = join_fingerprints(period.label, *((part.name, part.fingerprint) for part in parts))
        delta = split.limit.delta if split.limit.epsilon is not None else 0.0
        return join_parts(ready, name=f"{self.title}, {period.label}", question=asked, delta=delta)


def _do_nothing() -> None:
    """In place of a progress bar."""


def _group_by_account(split: Split) -> Iterator[tuple[Account, list[Part]]]:
    """The parts that each account pays for, in their order; accounts of two ledgers may have one name."""
    found: list[tuple[Account, list[Part]]] = []
    for part in (each.part for each in split.parts):
        if part.account is None:
            raise InvalidParameter("reports.no_account", parameter="account", part=part.name, spent="nothing")
        if not part.account.unit.covers(part.unit):
            raise WrongUnit("reports.other_unit", account=part.account.name, part=part.name, spent="nothing")
        mine = next((parts for account, parts in found if account.is_same(part.account)), None)
        if mine is None:
            found.append((part.account, mine := []))
        mine.append(part)
    yield from found


def _ask_all(
    account: Account, measurement: Measurement, key: str, parts: Sequence[Part], ready: Sequence[ReadyPart],
    tick: Callable[[], None], *, asks: bool,
) -> Iterator[Section]:  # fmt: skip
    """Pay once, then step through the parts; what was answered earlier is found again.

    Step k is for the k-th part, and the steps that follow are for those that broke, in their order: which part a step
    is for is known from what became of earlier ones. A part that broke in an earlier run is asked once more. Where
    `asks` is false no step is started, so that no other holder is overtaken.
    """
    run = account.open(measurement, key=key)
    found: dict[int, PartAnswer] = {}
    broken = list(range(len(parts)))  # those that no step of their own has answered
    just_now: set[int] = set()
    last = 0
    while (following := run.find_next()) is not None and following[0] > last:
        last, known = following
        spare = last - len(parts) - 1
        if not known and not (asks and (spare < 0 or (spare < len(broken) and broken[spare] not in just_now))):
            last -= 1  # the last step that has ended
            break
        place = last - 1 if spare < 0 else broken[spare]
        release = _take_step(run, place)
        if release is None:
            just_now.add(place)
            continue
        found[place] = release.value
        if spare < 0:
            broken.remove(place)
        tick()
    run.close()
    for place, part in enumerate(parts):
        answer = ready[place].read(found[place]["value"], run.receipt) if place in found else None
        yield Section(part=part, answer=answer, waits=place >= last)


def _take_step(run: Run, place: int) -> Release | None:
    """The next answer; none where its step broke."""
    try:
        return run.step(None, ask=place)
    except StepFailed:
        return None
