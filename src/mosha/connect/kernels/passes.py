"""Questions answered by reading a table several times, so that none of its rows is kept.

The first reading counts what each person has; the last one adds up what that leaves of each row. Memory grows with
persons and groups. For ranks there is one in between: it finds the coarse cells whose rows the last one collects.

Guarantee:
    The last reading adds up again what each person has, and there is an answer only where everybody has what the first
    one found, and where the coarse cells that are near in the last one are among those that were collected. So it is
    the answer to that reading alone, with the integers of the SQL plan: whoever changes the table in between gets no
    answer from here, and nobody's rows weigh more than their limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mosha.connect.kernels.bounded_sums import fill_buckets, fits_64_bits, total_groups
from mosha.connect.kernels.columns import COUNT, PERSON, Wanted, fill_values
from mosha.connect.kernels.near_rows import NearRows, plan_ranks, weigh_counts
from mosha.connect.kernels.people import Labels, Leader, People, TooManyPeople
from mosha.connect.plan.aggregation import Aggregation, NearRanks, Norms, Question
from mosha.connect.plan.bounding import NormBound
from mosha.connect.plan.source import Array, Totals

__all__ = ["Passes", "leaders_of", "suits_passes"]

MOST_ROWS = 2**31 - 1
"""Counts of people have 32 bits: a reading that has more rows, of a table that has grown, is none."""

Batch = Mapping[str, Array]
Rows = tuple[Array, Array, Array]
Readings = Callable[[], Iterator[Batch]]


def suits_passes(question: Question, wish: Wanted) -> bool:
    """Whether a question needs nothing of a row but its person's total: order 1, and no count of persons."""
    if isinstance(question, Aggregation):
        by_norm = isinstance(question.bound, NormBound) and question.bound.order == 1
        return by_norm and PERSON not in wish.codes.values()
    if isinstance(question, Norms):
        return question.order == 1 and PERSON not in wish.codes.values()
    return isinstance(question, NearRanks)


def leaders_of(question: Question, wish: Wanted) -> tuple[int, ...]:
    """Of which values each person's total is asked for."""
    if isinstance(question, Aggregation) and isinstance(question.bound, NormBound):
        leaders = question.bound.leaders()
        return tuple(dict.fromkeys(wish.codes[leaders[name][0]] for name, _ in question.values))
    if isinstance(question, NearRanks):
        return (COUNT,) if isinstance(question.bound, NormBound) else ()
    return (wish.codes[""],)


@dataclass(frozen=True)
class Passes:
    """One question over one table: `first` reads what counting people needs, `again` everything.

    `labels` are those of the groups that are asked for, where they are known: others are left out. `rows` and `memory`
    are sizes of the table and of what people and groups may take.
    """

    question: Question
    wish: Wanted
    first: Readings
    again: Readings
    labels: range | None
    keys: Callable[[Array], tuple[Array, ...]]
    is_ambiguous: Callable[[Array], bool]
    rows: int
    memory: int

    def answer(self) -> Totals | NearRows | None:
        """The answer, or None where the SQL plan must give it."""
        leaders = leaders_of(self.question, self.wish)
        people = People([code for code in leaders if code != COUNT], self.rows, self.memory // 2)
        groups = Labels(self.labels, self.memory // 4)
        try:
            rows = self._count(people, groups, leaders)
        except TooManyPeople:
            return None
        if not 0 < rows <= MOST_ROWS or self.is_ambiguous(groups.labels):
            return None
        if isinstance(self.question, Norms):
            return self._count_norms(people, leaders)
        if isinstance(self.question, NearRanks):
            return self._find_near(people, groups, rows)
        assert isinstance(self.question, Aggregation)
        return self._sum(self.question, people, groups)

    def _count(self, people: People, groups: Labels, leaders: tuple[int, ...]) -> int:
        """The first reading: how many rows there were."""
        rows = 0
        values = _Values(self.wish)
        for batch in self.first():
            inside = groups.learn(batch["g"]) if "g" in batch else None
            if leaders:
                lines = values.fill(batch) if any(code != COUNT for code in leaders) else None
                people.add(batch["p"], lines, inside)
            rows += len(batch["p"]) if inside is None else int(inside.sum())
        return rows

    def _count_norms(self, people: People, leaders: tuple[int, ...]) -> Totals | None:
        assert isinstance(self.question, Norms)
        if self.question.value.magnitude * max(people.most_rows, 1) >= 2**59:
            return None
        (code,) = leaders
        return fill_buckets(self.question, people.totals(code))

    def _sum(self, question: Aggregation, people: People, groups: Labels) -> Totals | None:
        from mosha.connect.kernels.kernel import add_row_norms, weigh_totals  # noqa: PLC0415  (numba is an extra and takes time to load)

        bound, codes = question.bound, self.wish.codes
        assert isinstance(bound, NormBound)
        if not fits_64_bits(question, bound, people.most_rows, people.size):
            return None
        names = [name for name, _ in question.values]
        sums = np.zeros((len(names), groups.size), np.int64)
        work = []
        for name, limit in dict.fromkeys(bound.leaders()[name] for name in names):
            led = [each for each in names if bound.leaders()[each][0] == name]
            leader, part = people.lead(codes[name]), np.zeros((len(led), groups.size), np.int64)
            weighed = (leader.totals, *weigh_totals(leader.totals, limit, bound.fraction))
            work.append((leader, np.array([codes[each] for each in led], np.int64), weighed, limit, part, led))
        people.forget()
        present = np.full(groups.size, self.labels is not None)  # those that are asked for are there without rows, too
        for found in self._follow(people, groups):
            if found is None:
                return None
            places, codes_of_groups, lines = found
            if self.labels is None:
                present[codes_of_groups] = True
            for leader, led_codes, weighed, limit, part, _ in work:
                ranks = leader.follow(places, lines)
                add_row_norms((ranks, codes_of_groups, lines), led_codes, weighed, (limit, bound.fraction), part)
        if not all(leader.is_unchanged() for leader, *_ in work):
            return None
        for *_, part, led in work:
            sums[[names.index(name) for name in led]] = part
        return total_groups(question, lambda at: self.keys(groups.labels[at]), sums.T, present)

    def _follow(self, people: People | None, groups: Labels) -> Iterator[tuple[Array, Array, Array] | None]:
        """A later reading: places of people, codes of groups and values; None where one was not there before."""
        values, rows = _Values(self.wish), 0
        for batch in self.again():
            rows += len(batch["p"])
            if rows > MOST_ROWS:
                yield None
                return
            codes, inside = groups.find(batch.get("g"), len(batch["p"]))
            if codes is None:
                yield None
                return
            kept = batch if inside is None else {name: column[inside] for name, column in batch.items()}
            places = np.zeros(len(kept["p"]), np.int32) if people is None else people.find(kept["p"])
            if places is None:
                yield None
                return
            yield places, codes, values.fill(kept)

    def _find_near(self, people: People, groups: Labels, rows: int) -> NearRows | None:
        """One reading finds the coarse cells that are near, the last one collects their rows."""
        from mosha.connect.kernels.rank_kernels import count_cells, judge_coarse, put_rows  # noqa: PLC0415

        question = self.question
        assert isinstance(question, NearRanks)
        ranks = plan_ranks(question, rows, groups.size)
        if ranks is None:
            return None
        leader = people.lead(COUNT) if isinstance(question.bound, NormBound) else None
        weights = weigh_counts(question.bound, np.zeros(1, np.int32) if leader is None else leader.totals)
        people.forget()
        followed = people, groups, leader
        lines, met = ranks.begin(), 0
        for found in self._place_cells(*followed):
            if found is None:
                return None
            count_cells(found, weights, ranks.shift, lines)
        _, wanted = judge_coarse(lines, ranks.near)
        starts, words = ranks.lay_out(lines, wanted)
        if leader is not None and not leader.is_unchanged():
            return None
        for found in self._place_cells(*followed):
            if found is None or not put_rows(found, weights, ranks.shift, lines, words):
                return None
            met += len(found[0])
        totals, judged = judge_coarse(lines, ranks.near)
        if rows != met or (leader is not None and not leader.is_unchanged()) or (judged & ~wanted).any():
            return None
        named = lambda at: self.keys(groups.labels[at])
        return NearRows(question, ranks, lines, totals, starts, words, named)

    def _place_cells(self, people: People, groups: Labels, leader: Leader | None) -> Iterator[Rows | None]:
        """Ranks of people, groups and cells of a later reading; None where something was not there before."""
        for found in self._follow(None if leader is None else people, groups):
            if found is None:
                yield None
                return
            places, codes, lines = found
            yield places if leader is None else leader.follow(places, lines), codes, lines[:, 0]


class _Values:
    """Values of a batch, in memory that the next one uses again."""

    def __init__(self, wish: Wanted) -> None:
        self._wish = wish
        self._lines = np.empty((0, wish.width), np.int32 if wish.magnitude < 2**31 else np.int64)

    def fill(self, batch: Batch) -> Array:
        rows = len(batch["p"])
        if rows > len(self._lines):
            self._lines = np.empty((rows, self._wish.width), self._lines.dtype)
        fill_values(self._lines, 0, batch, self._wish)
        return self._lines[:rows]
