"""Which rows of a step count: one row of a person, no more than was declared, by a rule about that person alone.

Guarantee:
    What is kept of a person depends on that person's rows, the public time and the declared limits, and on nobody else:
    taking a person away changes nothing about what is kept of others. At each step at most one row of a person is kept
    (`keep_at_most` of `mosha.mechanisms`), none within `apart` steps of the last one that was kept, and none after
    the first `most` of a horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, SourceUnavailable
from mosha.core.unit import Person, Reading, Unit
from mosha.exact.bounding import identify, list_entries, to_array
from mosha.exact.statistic import Statistic, Steps
from mosha.mechanisms import Count
from mosha.streams.batches import Batches, read_columns
from mosha.streams.presence import Presence

__all__ = ["Memory", "exact_step", "exact_steps"]

Memory = dict[int | str, tuple[int, int]]
"""For each person that must be remembered: how many contributions were kept, and the time of the last one."""


def exact_step(
    statistic: Statistic, presence: Presence, data: object, time: int, memory: Memory
) -> tuple[Steps, Memory]:
    """The data of one step as whole numbers, and what must be remembered of persons afterwards.

    A batch without the declared columns was never read: the step may be tried again with a better one.
    """
    try:
        return _bound_and_sum(statistic, presence, _batch(data), time, memory)
    except DataError as problem:
        facts: Any = problem.public
        raise SourceUnavailable(*problem.args, parameter=problem.parameter, **facts) from None


def exact_steps(
    statistic: Statistic, presence: Presence, batches: Batches, time: int, memory: Memory
) -> tuple[NDArray[np.int64], Memory]:
    """The same for several steps, a row of whole numbers for each; rows are counted at once where that is enough."""
    counted = batches.per_step()
    plain = type(statistic) is Count and statistic.between is None and statistic.column is None
    if counted is not None and presence.column is None and plain:
        return counted[:, None], memory
    found = []
    for offset, batch in enumerate(batches.list_batches()):
        exact, memory = exact_step(statistic, presence, batch, time + offset, memory)
        found.append(exact)
    return np.array(found), memory


def _batch(data: object) -> Any:
    """Rows or columns in a form that all statistics read: what kind of thing a batch is, is public."""
    if isinstance(data, Batches):
        raise DataError("streams.one_step_at_a_time")
    if data is None or isinstance(data, str | bytes | int | float) or getattr(data, "ndim", 1) == 0:
        raise DataError("streams.step_without_rows")
    named = read_columns(data)
    if named is not None:
        return named
    return to_array(data) if hasattr(data, "to_numpy") else data  # one column of a data frame


def _bound_and_sum(
    statistic: Statistic, presence: Presence, data: object, time: int, memory: Memory
) -> tuple[Steps, Memory]:
    if presence.column is None:
        return statistic.evaluate(data, Reading()), memory
    unit: Unit = Person(presence.column, at_most=1)
    if not presence.remembers:
        return statistic.evaluate(data, unit), memory
    columns = _columns(data, presence.column)
    names = [identify(person) for person in list_entries(columns[presence.column])]
    allowed = {name: _is_allowed(memory.get(name), time, presence) for name in set(names)}
    kept = np.array([allowed[name] for name in names], bool)
    fresh = _forget(memory, time, presence)
    for name, fine in allowed.items():
        if fine:
            fresh[name] = (memory.get(name, (0, 0))[0] + 1, time)
    return statistic.evaluate({name: column[kept] for name, column in columns.items()}, unit), fresh


def _is_allowed(known: tuple[int, int] | None, time: int, presence: Presence) -> bool:
    if known is None:
        return True
    count, last = known
    return time - last >= presence.apart and (not presence.limited or count < presence.most)


def _forget(memory: Memory, time: int, presence: Presence) -> Memory:
    """The memory without those whose last contribution no longer matters; where they are counted, all of it."""
    if presence.limited:
        return dict(memory)
    return {name: known for name, known in memory.items() if time - known[1] < presence.apart}


def _columns(data: object, owner: str) -> dict[str, Any]:
    if isinstance(data, tuple) and len(data) == 2:
        data = {owner: data[0], "value": data[1]}
    if not (isinstance(data, Mapping) or (hasattr(data, "keys") and hasattr(data, "__getitem__"))):
        raise DataError("streams.persons_missing", column=owner)
    columns = {str(name): to_array(data[name]) for name in data.keys()}  # noqa: SIM118  (data frames)
    if owner not in columns:
        raise DataError("streams.no_person_column", column=owner)
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError("streams.column_lengths_differ")
    return columns
