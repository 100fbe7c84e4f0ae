"""The popular values that were found, each with its count and its error bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.canvas import draw_as_asked
from mosha.core.language import Language, say
from mosha.core.number import strict_probability
from mosha.core.showing import Card, Shown, make_list_card
from mosha.local.collect.prefix_tree import LevelTables, search_prefixes
from mosha.local.estimate import Interval, deviations, write_footer
from mosha.local.protocols.prefixes import Prefixes

__all__ = ["Hitters", "find_hitters"]


@dataclass(frozen=True, eq=False, repr=False)
class Hitters(Shown):
    """Values that stand out from the noise, the most popular first.

    Fields:
        values: texts, or lists of tokens; a value as long as the survey reads may go on.
        counts: the estimated number of people with each value; unbiased for a value that was chosen beforehand, and a
            little large for one that was found because it stood out.
        deviations: the standard deviation of each count.
        chances: for each value, a bound on the probability that any value that nobody has would show so clearly.
        people: how many there are.
        tried: how many values were compared with noise.
        epsilon: of each report, where each was private by itself.

    >>> from mosha.local import HeavyHitters
    >>> survey = HeavyHitters(longest=4, alphabet="abcdefgh", epsilon=4)
    >>> found = survey.estimate(survey.reports(["cafe"] * 3000 + ["bed"] * 2000 + ["a"] * 10))
    >>> found.values[:2]
    ['cafe', 'bed']
    """

    values: list[Any]
    counts: NDArray[np.float64]
    deviations: NDArray[np.float64]
    chances: NDArray[np.float64]
    people: int
    tried: int
    _prefixes: Prefixes = field(repr=False)
    _tables: LevelTables = field(repr=False)
    epsilon: float | None = None

    def __repr__(self) -> str:
        return f"Hitters({len(self.values):,} values, {self.people:,} people)"

    def make_card(self) -> Card:
        """Each value with its count and the bar of 95%."""
        heads = say("local.shown_value"), say("local.shown_count")
        facts = [(say("local.shown_reports"), f"{self.people:,}")]
        numbers, errors = self.counts.tolist(), self.error().tolist()
        return make_list_card(say("local.shown_hitters"), heads, self.values, numbers, errors, facts=facts)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Counts over the number of people."""
        return self.counts / self.people

    def error(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """The half-width of the error bar of each count at `confidence`, each value on its own."""
        return deviations(confidence) * self.deviations

    def look_up(self, value: object, *, confidence: float = 0.95) -> Interval:
        """The number of people with any value, found or not; free.

        Args:
            value: a text, or a list of tokens.
            confidence: of the error bar.
        """
        words = self._prefixes.words_of(value)
        first = self._prefixes.level_of_end(len(self._prefixes.symbols_of(value)))
        places = np.array(self._prefixes.hash_words(words)).reshape(self._prefixes.levels, -1)
        rows = np.arange(self._prefixes.rows)
        supports = sum(self._tables.supports[level, rows, places[level]] for level in range(first, len(places)))
        count, deviation = self._tables.estimate(np.asarray(supports)[:, None], np.array([first]))
        return Interval(float(count[0]), deviations(confidence) * float(deviation[0]), (0.0, float(self.people)))

    def table(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One row a value, its error bar at `confidence`."""
        columns = zip(self.values, self.counts.tolist(), self.error(confidence).tolist(), strict=True)
        return [{"value": value, "count": count, "error": error} for value, count, error in columns]

    def plot(
        self, most: int = 24, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """The first values as bars with error bars (needs the extra `plot`).

        Args:
            most: so many values at most.
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        from mosha.pictures import draw_groups

        labels = [value if isinstance(value, str) else " ".join(value) for value in self.values[:most]]

        def draw() -> Any:
            people = say("local.picture_people")
            bars = {people: self.error()[:most].tolist()}
            value = say("local.picture_value")
            return draw_groups({value: labels}, {people: self.counts[:most].tolist()}, bars, notes={people: ""})

        def describe() -> str:
            said = say("local.picture_hitters", people=self.people, tried=self.tried)
            return said if self.epsilon is None else f"{said}\n{write_footer(self.epsilon)}"

        return draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang, footer=describe)


def find_hitters(prefixes: Prefixes, tables: LevelTables, people: int, *, kept: int, confidence: float) -> Hitters:
    """The values that noise alone would show with a probability of at most 1 - `confidence`, all of them together."""
    found = search_prefixes(prefixes, tables, kept=kept)
    counts, spread = tables.estimate(found.supports, found.first)
    sure = np.flatnonzero(found.chance <= 1 - strict_probability("confidence", confidence))
    places = sure[np.argsort(-counts[sure], kind="stable")]
    values = [prefixes.read(words) for words in found.words[places].tolist()]
    return Hitters(values, counts[places], spread[places], found.chance[places], people, found.tried, prefixes, tables)
