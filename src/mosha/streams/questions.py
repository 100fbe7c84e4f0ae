"""The streams people ask for, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Unit
from mosha.mechanisms import ClippedSum, Histogram
from mosha.streams.planner import best
from mosha.streams.statistics import KeyedSum, MeanParts, mean_of
from mosha.streams.stream import Stream

COARSER = 2.0**10
"""A value is rounded to a part in 2**17 of its bound: far below the noise, and sums of a long stream stay small."""

__all__ = ["Options", "counter", "histogram", "mean", "series", "total"]


class Options(TypedDict, total=False):
    """The budget, and what `best` may choose from."""

    epsilon: float | None
    delta: float
    rho: float | None
    mu: float | None
    release: Any
    apart: int
    memory: int
    mechanism: str | None


@explain_wrong_calls
def counter(*, unit: Unit, horizon: int | None, **options: Unpack[Options]) -> Stream:
    """How many rows there were: so far, at each step, in a sliding window or with decay.

    `unit` is whose presence is hidden; `options` are those of `best`: the price, what is read off, which noise.

    Guarantee:
        That of `best`.

    Units:
        Rows, of which each person has at most one a step; `horizon` in steps, None for a very long one.

    >>> from mosha import Reading
    >>> print(counter(unit=Reading(), horizon=365, epsilon=1, delta=1e-6).reason)
    29-ary tree with negative digits, 2 levels: predicted error 10.3; column-normalised BLT, 4 buffers 11.3; ...
    """
    return best(unit=unit, horizon=horizon, name="counter", **options)


@explain_wrong_calls
def total(
    *,
    unit: Unit,
    horizon: int | None,
    between: tuple[float, float],
    column: str | None = None,
    **options: Unpack[Options],
) -> Stream:
    """The sum of a column, each value clamped into `between`; a value that is no number adds nothing.

    `unit`, `horizon` and `options` are those of `counter`; `column` may be left out where rows are numbers.

    Guarantee:
        That of `best`, with one contribution bounded by the larger end of `between`.

    Units:
        `between` and the answers are in the unit of the column.

    >>> from mosha import Person
    >>> total(unit=Person("meter"), horizon=24, between=(0, 5), epsilon=1).plan.name
    'per-step Laplace'
    """
    added = ClippedSum(between=between, column=column)
    added = replace(added, grid=added.grid * COARSER)
    return best(added, unit=unit, horizon=horizon, name="total", **options)


@explain_wrong_calls
def histogram(
    *, unit: Unit, horizon: int | None, keys: Sequence[object], column: str | None = None, **options: Unpack[Options]
) -> Stream:
    """The number of rows for each of a public list of `keys` in `column`.

    `unit`, `horizon` and `options` are those of `counter`.

    Guarantee:
        That of `best`: one row is in one key.

    Units:
        Rows.

    >>> from mosha import Reading
    >>> histogram(unit=Reading(), horizon=64, keys=["in", "out"], rho=0.5).plan.width
    2
    """
    return best(Histogram(keys=keys, column=column), unit=unit, horizon=horizon, name="histogram", **options)


@explain_wrong_calls
def series(
    *,
    unit: Unit,
    horizon: int | None,
    keys: Sequence[object],
    key: str,
    between: tuple[float, float],
    column: str,
    **options: Unpack[Options],
) -> Stream:
    """Many series at once: for each of a public list of keys the sum of a column, each value clamped into `between`.

    `unit`, `horizon` and `options` are those of `counter`. The `column` named `key` holds one of `keys`.

    Guarantee:
        That of `best`: one row is in one series, and moves it by at most the larger end of `between`.

    Units:
        `between` and the answers are in the unit of the column.

    >>> from mosha import Reading
    >>> kept = {"unit": Reading(), "horizon": 96, "rho": 1}
    >>> meters = series(keys=["hall", "roof"], key="where", between=(0, 9), column="kW", **kept)
    >>> meters.plan.width
    2
    """
    added = KeyedSum(keys=keys, key=key, between=between, column=column)
    return best(added, unit=unit, horizon=horizon, name="series", **options)


@explain_wrong_calls
def mean(
    *,
    unit: Unit,
    horizon: int | None,
    between: tuple[float, float],
    column: str | None = None,
    **options: Unpack[Options],
) -> Stream:
    """The mean of a column over what `release` covers: a noisy sum over a noisy count, held within `between`.

    `unit`, `horizon` and `options` are those of `counter`; `column` may be left out where rows are numbers.

    Guarantee:
        That of `best` for the pair (count, centred sum); the quotient is post-processing.

    Units:
        `between` and the answers are in the unit of the column.

    >>> from mosha import Reading
    >>> mean(unit=Reading(), horizon=96, between=(15, 30), rho=0.5).horizon
    96
    """
    parts = MeanParts(between=between, column=column)
    return mean_of(best(parts, unit=unit, horizon=horizon, name="mean", **options), parts)
