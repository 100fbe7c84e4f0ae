"""How far one unit can move the channels of a release: by declared limits, or by one that is bought; and its note."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from mosha.connect.language.value import Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Truncate, Unbounded, has_one_row_each
from mosha.connect.plan.fixed_rows import is_never_missing, keeps_rows
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.language import Phrase, make_note, phrase
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.tables.parts.norm_choice import UNKNOWN, NormChoice, people_above

__all__ = [
    "FEW_GROUPS",
    "WEIGHT",
    "Limits",
    "Norm",
    "bound_question",
    "bounded_note",
    "by_own_norm",
    "fix_counts",
    "limits_of",
    "name_bound",
    "truncated_note",
]

WEIGHT = "weight"
"""The name of the count of rows whose norm weighs a person's rows; it is summed and never released."""

LEAST_SHARE = 0.01
"""In percent: nobody reads of less, as a share that is cut."""

FEW_GROUPS = 4
_ROOM, _MOST_ROOM, _FEWEST = 38, 50, 8
"""Bits of a person's part: within 38 compiled sums fit many people; up to 50 it keeps at least 8 bits of fractions."""
_LARGE = 2**24

Norm = int | Fraction
"""A bound in rows; a single sum may have one that is no whole number of its largest values."""


@dataclass(frozen=True)
class Limits:
    """What bounds a unit's part: so many whole rows, a truncation, or a norm (None: chosen from the data, paid for)."""

    rows: int | None = None
    truncation: tuple[int | None, int, int] | None = None
    norm: int | None = None
    by_person: bool = False
    twice: bool = False
    finest: int | None = None
    """The most that a norm may be in units of the answers: whoever is in more groups than its square counts nothing."""
    fixed: bool = False
    """Whether all neighbors have equally many rows: one row is replaced, and every row of the table is asked about."""
    complete: bool = False
    """Whether nobody can have more than the bound, so that nothing is cut: persons count once in each public group."""

    @property
    def automatic(self) -> bool:
        return self.by_person and self.truncation is None and self.norm is None

    def reach(self, values: Sequence[Value], order: int, norm: Norm | None, *, split: bool) -> list[int]:
        """How far one unit moves each channel, in units of `bound_question`'s answers.

        Guarantee:
            A unit moves channel j in group g by at most reach_j c_g, where c has norm at most 1 (order 1: the sum,
            order 2: the root of the sum of squares over groups): `joint_noise.md`.
        """
        factor = self._factor(order, norm, values)
        if self.twice and not split and not self.by_person:
            return [max(1, math.ceil((value.high - value.low) * factor)) for value in values]
        return [max(1, math.ceil(value.magnitude * factor * (2 if self.twice else 1))) for value in values]

    def _factor(self, order: int, norm: Norm | None, values: Sequence[Value]) -> Norm:
        if not self.by_person:
            assert self.rows is not None
            return self.rows
        if self.truncation is None:
            assert norm is not None
            return norm * (1 << self.fraction_bits(norm, values))
        rows, groups, per_group = self.truncation
        spread = groups * per_group if order == 1 else math.isqrt(groups * per_group**2 - 1) + 1
        return spread if rows is None else min(spread, rows)

    def fraction_bits(self, norm: Norm, values: Sequence[Value]) -> int:
        """So many bits after the point that scaled-down rows keep their fractions and sums keep their room."""
        if self.finest is not None:
            return max(0, min(16, (self.finest // math.ceil(norm)).bit_length() - 1))
        largest = math.ceil(max(value.magnitude for value in values) * norm).bit_length()
        return max(0, min(16, _ROOM - largest), min(_FEWEST, _MOST_ROOM - largest))

    def keep_whole_rows(self, norm: Norm | None, *, persons: bool) -> Limits:
        """So many rows of a person in place of scaled-down ones; so many groups where persons are counted."""
        if not self.by_person or self.truncation is not None or norm is None:
            return self
        most = max(1, math.floor(norm))
        truncation = (None, most, 1) if persons else (most, most, most)
        return Limits(truncation=truncation, by_person=True, twice=self.twice)


def by_own_norm(values: Sequence[Value]) -> Value | None:
    """The single channel of a release, where its own norm can bound it instead of that of the rows."""
    single = values[0] if len(values) == 1 else None
    return single if single is not None and not isinstance(single, Persons) and single.magnitude < _LARGE else None


def fix_counts(values: Mapping[str, Value], limits: Limits, relation: Relation) -> dict[str, Value]:
    """The channels of a question about all rows that no neighbor moves, as counts of all rows.

    Guarantee:
        With `limits.fixed` neighbors have equally many rows. What is asked in place of a count of a column that is
        never missing is the count of rows, so that nothing hangs on whether it is missing.
    """
    if not limits.fixed:
        return {}
    counts = {name: value for name, value in values.items() if isinstance(value, Rows)}
    return {name: Rows() for name, v in counts.items() if v.of is None or is_never_missing(v.of, relation)}


def limits_of(unit: Unit, relation: Relation, *, persons: bool, groups: int | None = None) -> Limits:
    """What the unit's declaration says about one unit's part in this relation.

    With `persons`, a person counts once in each group, so in no more than there are public `groups`.
    """
    twice = unit.neighbors is Neighbors.REPLACE_ONE
    if isinstance(unit, Row):
        changed = relation.stability.per_row
        if persons:
            raise InvalidParameter("tables.persons_without_person")
        if changed is None:
            raise UnboundedError("after this join one row can change any number of rows: bound the join.")
        fixed = twice and unit.at_most == 1 and keeps_rows(relation)
        return Limits(rows=changed * unit.at_most, twice=twice, fixed=fixed)
    if not isinstance(unit, Person):
        raise InvalidParameter("tables.unit_of_tables", parameter="unit", noun=unit.noun)
    if relation.person is None:
        changed = relation.stability.per_person
        if changed is None:
            raise UnboundedError("after this join one person can change any number of rows: bound the join.")
        return Limits(rows=changed, twice=twice)
    if has_one_row_each(relation):
        return Limits(norm=1, by_person=True, twice=twice)
    per_group = 1 if persons else unit.per_group
    if unit.groups is not None and per_group is not None:
        return Limits(
            truncation=(None if persons else unit.at_most, unit.groups, per_group), by_person=True, twice=twice
        )
    norm = unit.at_most if unit.total is None else max(1, math.floor(unit.total))
    if persons and groups is not None:
        known = norm is not None or groups <= FEW_GROUPS  # a bound is bought only where it can help
        complete = known and (norm is None or norm >= groups)
        norm = min(norm or groups, groups) if known else None
        return Limits(norm=norm, by_person=True, twice=twice, complete=complete)
    return Limits(norm=norm, by_person=True, twice=twice)


def bound_question(
    relation: Relation,
    keys: Any,
    only: Any,
    values: Mapping[str, Value],
    *,
    limits: Limits,
    order: int,
    norm: Norm | None,
    key: bytes,
) -> tuple[Aggregation, int]:
    """The exact question, and by how many bits its answers are finer than the values' own units."""
    bound: Bound
    listed = list(values.values())
    if not limits.by_person:
        return Aggregation(relation, keys, tuple(values.items()), bound=Unbounded(), only=only), 0
    if limits.truncation is not None:
        rows, groups, per_group = limits.truncation
        needed = [limit if rows is None or limit < rows else None for limit in (groups, per_group)]
        bound = Truncate(key, rows=rows, groups=needed[0], per_group=needed[1])
        return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), 0
    assert norm is not None
    bits = limits.fraction_bits(norm, listed)
    if len(listed) == 1:
        single = listed[0]
        limit = math.floor(norm * single.magnitude)
        if not isinstance(single, Persons) and limit << bits < 2**52:
            bound = NormBound(order, {next(iter(values)): limit}, bits)
            return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), bits
    norm = math.floor(norm)
    if any(isinstance(value, Persons) for value in listed):
        bound = NormBound(order, dict.fromkeys(values, norm), bits)
        return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), bits
    counted = [name for name, value in values.items() if isinstance(value, Rows) and value.of is None]
    leader = counted[0] if counted else WEIGHT
    weighted = {leader: Rows(), **values}
    bound = NormBound(order, {(leader, *(name for name in weighted if name != leader)): norm}, bits)
    return Aggregation(relation, keys, tuple(weighted.items()), bound=bound, only=only), bits


def _add_share(said: Phrase, cut: float, most: float) -> Phrase:
    """The same words, and what share the bound cuts."""
    if max(cut, most) <= LEAST_SHARE / 100:
        return said
    about = _write_share(cut)
    if most <= 1.5 * cut:
        return make_note("tables.note_cut", said=said, about=about)
    return make_note("tables.note_cut_slowly", said=said, about=about, most=_write_share(most))


def _write_share(cut: float) -> str:
    """What is cut, as a share of all.

    >>> _write_share(0.25), _write_share(1e-9)
    ('20%', '0.01%')
    """
    return f"{max(100 * cut / (1 + cut), LEAST_SHARE):.2g}%"


def name_bound(kind: Literal["rows", "groups", "values"], count: str) -> Phrase:
    """So many rows, groups or values, as a bound that a note names."""
    return phrase(f"tables.most_one_{kind}") if count == "1" else phrase(f"tables.most_{kind}", count=count)


def truncated_note(rows: int | None, groups: int, per_group: int) -> Phrase:
    """What an answer says where so many groups, and rows in each, are declared."""
    said = {"groups": groups, "per_group": per_group}
    if rows is None or rows >= groups * per_group:
        return make_note("tables.note_truncated", **said)
    return make_note("tables.note_truncated_rows", rows=rows, **said)


def bounded_note(
    most: Phrase,
    choice: NormChoice | None,
    tail: tuple[Phrase, float, int, float, float, bool] | None = None,
    *,
    how: str = "scaled",
) -> Phrase:
    """What an answer says about the bound: `most` is the bound with its unit, `tail` what was bought with it.

    Args:
        most: the bound, in words.
        choice: how it was bought; None where it was declared.
        tail: a mark in words, the noisy number of persons above it with the number of buckets it is made of, and
            what is cut as a share of what is left: by an estimate, and at most, as far as can be said; and whether
            the noise hides too much for any bar.
        how: what happens to more: it is "scaled" down, whole rows are "picked" at random, or the rest is "cut"; nobody
            can have more where the bound is "complete".
    """
    if how == "complete":
        return make_note("tables.note_nothing_cut")
    way = phrase(f"tables.how_{how}")
    if choice is None:
        return make_note("tables.note_bound_declared", most=most, how=way)
    said = make_note("tables.note_bound_bought", most=most, share=f"{choice.share:.0%}", how=way)
    if tail is None:
        return said
    mark, above, buckets, cut, most_cut, hidden = tail
    low, high = people_above(choice, above, buckets)
    if cut == UNKNOWN:
        return make_note("tables.note_too_few", said=said)
    said = _add_share(said, cut, most_cut)
    if hidden:
        said = make_note("tables.note_no_bar", said=said)
    if high < 1:
        return said
    between = {"low": f"{math.floor(low):,}", "high": f"{math.ceil(high):,}"}
    return make_note("tables.note_above", said=said, mark=mark, **between)
