"""Which keys may be shown: those that enough people share, chosen as often as privacy allows."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter, Unbounded
from mosha.core.events import Approx
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import hash_name, identify, keep_at_most, list_entries, read_rows, rows_per_unit
from mosha.exact.canonical import canonical_form
from mosha.noise import bernoulli
from mosha.noise.exponential import exp_bounds

__all__ = ["keeping_probabilities", "partition_selection"]

_BITS = 128
_ONE = 1 << _BITS
_LONGEST = 300_000


@explain_wrong_calls
def partition_selection(*, unit: Unit, epsilon: float, delta: float, column: str | None = None) -> Measurement:
    """The keys of a column that are shared by enough people, each kept with the greatest probability there can be.

    The answer is a sorted list of keys. A `Person` needs groups=... (or at_most=...): how many keys one person may
    bring in; a public hash picks among more. A key is a text, number, truth value, date, time or UUID, or a tuple of
    these. It is counted and shown in its canonical form, however it was written (7.0 is 7, an instant is in UTC, a
    midnight is its date); rows with anything else (None, NaN) are not counted.

    Guarantee:
        A key with n people is kept with probability p_n: (epsilon', delta')-differentially private for one key, see
        `partition_selection.md`. One unit moves the number of people of at most k keys by one each (2 k when it
        is replaced), and coins of different keys are independent: k events Approx(epsilon / k, delta / k).

    Units:
        The error bar is a number of people: a key with so many is kept with that confidence.

    Args:
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.
        delta: the delta that a release costs.
        column: the column of the keys, if the data have several.

    >>> from mosha import Person, noise
    >>> wards = partition_selection(unit=Person("patient", groups=1), epsilon=1, delta=1e-6)
    >>> people, ward = range(101), ["A"] * 100 + ["B"]
    >>> wards.step(None, (people, ward), None, noise.SeededRandom(3))[0], wards.forecast(0.95)
    (['A'], 16)
    """
    keys = _keys_per_unit(unit)
    moved = 2 * keys if unit.neighbors is Neighbors.REPLACE_ONE else keys
    each = positive("epsilon over keys", round_down(Fraction(positive("epsilon", epsilon)) / moved))
    failing = strict_probability("delta over keys", round_down(Fraction(strict_probability("delta", delta)) / moved))
    probabilities = keeping_probabilities(each, failing)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        names, people = _people_per_key(*read_rows(data, unit, column), keys)
        kept = [names[index] for index in _select_keys(people, probabilities, rng)]
        return sorted(kept, key=_sort_key), state

    def people_needed(confidence: float, answer: object) -> int:
        del answer
        wanted = strict_probability("confidence", confidence) * _ONE
        return next(count for count, p in enumerate(probabilities) if p >= wanted)

    return Measurement(
        unit=unit,
        event=Approx(each, failing) * moved,
        step=step,
        error=people_needed,
        name="partition_selection",
        question=fingerprint("partition_selection", unit, column),
    )


def _keys_per_unit(unit: object) -> int:
    """How many keys one unit can have a part in."""
    if isinstance(unit, Person):
        if unit.groups is None and unit.at_most is None:
            raise Unbounded("mechanisms.no_groups", parameter="unit", column=unit.column)
        return min(limit for limit in (unit.groups, unit.at_most) if limit is not None)
    if not isinstance(unit, Unit):
        raise InvalidParameter("mechanisms.no_person_unit", parameter="unit")
    if rows_per_unit(unit) != 1:
        raise InvalidParameter("mechanisms.rows_as_people", parameter="unit")
    return 1


def _people_per_key(values: object, persons: object, keys: int) -> tuple[list[object], NDArray[np.int64]]:
    """Every key, in its one form, with its number of people, nobody counted for more than `keys` of them."""
    forms = [canonical_form(value) for value in list_entries(values)]
    names = [repr(form) for form in forms]
    shown = dict(zip(names, forms, strict=True))  # forms with one name are the same, so it is no matter which one stays
    shown.pop(repr(None), None)
    where = {name: code for code, name in enumerate(shown)}
    codes = [where.get(name, -1) for name in names]
    if persons is None:
        counted = np.array([code for code in codes if code >= 0], np.int64)
    else:
        owners = map(identify, list_entries(persons))
        pairs = list(dict.fromkeys(pair for pair in zip(owners, codes, strict=True) if pair[1] >= 0))
        digests = np.array([hash_name(name) for name in where], np.uint64).view(np.int64)
        counted = np.array([code for _, code in pairs], np.int64)
        counted = counted[keep_at_most(keys, [owner for owner, _ in pairs], digests[counted])]
    return list(shown.values()), np.bincount(counted, minlength=len(where)).astype(np.int64)


def _sort_key(key: object) -> tuple[str, int | float | str | bytes]:
    return type(key).__name__, key if isinstance(key, int | float | str | bytes) else repr(key)


def _select_keys(people: NDArray[np.int64], probabilities: tuple[int, ...], rng: Rng) -> list[int]:
    """Which keys are kept: a coin for each, of the probability that its number of people has."""
    kept: list[int] = []
    for count in np.unique(people).tolist():
        at = np.flatnonzero(people == count)
        p = Fraction(probabilities[min(count, len(probabilities) - 1)], _ONE)
        kept += at[bernoulli(p, at.size, rng=rng)].tolist()
    return kept


@lru_cache(maxsize=64)
def keeping_probabilities(epsilon: float, delta: float) -> tuple[int, ...]:
    """p_0, p_1, ... up to the first that is 1, in units of 2**-128: the greatest that are (epsilon, delta)-private.

    Guarantee:
        Each is the least of e^epsilon p + delta, 1 - e^-epsilon (1 - p - delta) and 1, p the one before, every
        rounding downward: the inequalities that privacy asks for hold exactly (`partition_selection.md`).

    >>> p = keeping_probabilities(1.0, 1e-8)  # half of the keys with 19 people are kept
    >>> next(n for n in range(len(p)) if p[n] >= 2**127)
    19
    """
    low, high = exp_bounds(Fraction(epsilon), 2 * _BITS)
    failing = int(Fraction(delta) * _ONE)
    if failing == 0 or low == 0:
        raise InvalidParameter("mechanisms.selection_out_of_range")
    table = [0]
    while table[-1] < _ONE:
        last = table[-1]
        grown = (last << 2 * _BITS) // high + failing
        left = -(-max(0, _ONE - last - failing) * high >> 2 * _BITS)
        table.append(max(last, min(grown, _ONE - left, _ONE)))
        if len(table) > _LONGEST:
            raise InvalidParameter("mechanisms.selection_hopeless", parameter="epsilon")
    return tuple(table)
