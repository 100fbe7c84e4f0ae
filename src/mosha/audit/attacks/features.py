"""What the attacker looks at in an answer: values, lattice, atoms, lengths, shapes, differences, order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.audit.claims.answers import Answers
from mosha.core.language import phrase

__all__ = ["Feature", "features_of", "lattice"]

COLUMNS = 24  # numbers of an answer that are looked at one by one; of longer answers, those that differ most
PAIRED = 5  # of these, how many are compared with one another
MEMBERS = 4  # values whose presence anywhere in the answer is looked at
ZERO = 4096.0  # the lattice of zero: coarser than that of any number


@dataclass(frozen=True)
class Feature:
    """One way of looking at an answer. Codes (`category`) have no order; numbers have one and may be NaN."""

    name: str
    read: Callable[[Answers], NDArray[np.float64] | NDArray[np.uint64]]
    category: bool = False
    meaning: str = ""  # what it says about a mechanism that it tells two worlds apart, for people


def lattice(values: NDArray[Any]) -> NDArray[np.float64]:
    """The greatest k such that the value is a multiple of 2^k (NaN where it is not finite).

    Noise added in floating point leaves this fingerprint: which multiples of which powers of two can occur
    depends on the true answer (Mironov 2012).

    >>> lattice(np.array([6.0, 0.25, 0.1]))
    array([  1.,  -2., -55.])
    """
    if values.dtype.kind == "i":
        lowest = np.abs((values & -values).astype(np.float64))
        with np.errstate(divide="ignore"):
            return np.where(lowest > 0, np.log2(lowest), ZERO)
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = (fraction * 2.0**53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    with np.errstate(divide="ignore"):
        found = np.where(whole != 0, np.log2(lowest) + exponent - 53, ZERO)
    return np.where(finite, found, np.nan)


def features_of(first: Answers, second: Answers) -> list[Feature]:
    """The features worth trying, chosen on training answers of both worlds."""
    columns = _columns(first, second)
    found = [
        *_of_columns(first, second, columns),
        *_of_pairs(columns[:PAIRED]),
        *_of_texts(first, second),
        *_of_whole(first, second),
    ]
    return found or [_SHAPE]  # all answers were empty so far: what comes may not be


def _columns(first: Answers, second: Answers) -> list[int]:
    """The numeric columns, those that differ most between the worlds first."""
    if not first.width:
        return []
    gap = np.zeros(first.width)
    for j in range(first.width):
        one, two = (_finite(world.values[:, j]) for world in (first, second))
        if not len(one) or not len(two):
            gap[j] = np.inf if len(one) != len(two) else -1.0
            continue
        low, high = np.quantile(np.concatenate([one[:2000], two[:2000]]), [0.01, 0.99])
        one, two = np.clip(one, low, high), np.clip(two, low, high)
        spread = np.sqrt(one.var() / len(one) + two.var() / len(two))
        gap[j] = abs(one.mean() - two.mean()) / spread if spread else abs(one.mean() - two.mean()) * 1e9
    ranked = np.argsort(-gap, kind="stable")[:COLUMNS]
    return [int(j) for j in ranked if gap[j] >= 0]


def _finite(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return column[np.isfinite(column)].astype(np.float64)


def _label(answers: Answers, column: int) -> str:
    return phrase("audit.answer") if answers.width == 1 else phrase("audit.answer_part", place=column)


def _of_columns(first: Answers, second: Answers, columns: list[int]) -> Iterator[Feature]:
    for j in columns:
        label = _label(first, j)
        yield Feature(label, lambda a, j=j: a.values[:, j].astype(np.float64))  # type: ignore[misc]
        seen = {float(k) for world in (first, second) for k in lattice(world.values[:200, j]) if k == k}  # noqa: PLR0124
        if len(seen - {ZERO}) > 1:
            name, meaning = phrase("audit.power_of_two", what=label), phrase("audit.float_grids")
            yield Feature(name, lambda a, j=j: lattice(a.values[:, j]), meaning=meaning)  # type: ignore[misc]


def _of_pairs(columns: list[int]) -> Iterator[Feature]:
    for i, j in itertools.combinations(sorted(columns), 2):
        yield Feature(
            phrase("audit.answer_difference", first=i, second=j),
            lambda a, i=i, j=j: a.values[:, i].astype(np.float64) - a.values[:, j],  # type: ignore[misc]
        )


def _of_texts(first: Answers, second: Answers) -> Iterator[Feature]:
    if first.texts is None or second.texts is None:
        return
    used = np.flatnonzero(np.any(first.texts != 0, axis=0) | np.any(second.texts != 0, axis=0))
    for j in used[:COLUMNS]:
        name = phrase("audit.text_of", what=_label(first, j))
        yield Feature(name, lambda a, j=j: a.texts[:, j], category=True)  # type: ignore[misc]


_SHAPE = Feature(phrase("audit.shape_of_answer"), lambda a: a.shape, category=True)


def _of_whole(first: Answers, second: Answers) -> Iterator[Feature]:
    if len(np.unique(np.concatenate([first.shape, second.shape]))) > 1:
        yield _SHAPE
    if first.width > 1 or first.texts is not None:
        yield Feature(phrase("audit.whole_answer"), hash_answers, category=True)
    if first.width > 1:
        yield from _of_members(first, second)
        yield Feature(phrase("audit.sum_of_answer"), lambda a: _numbers(a).sum(axis=1))
        yield Feature(phrase("audit.greatest_number"), lambda a: _numbers(a).max(axis=1))
        yield Feature(phrase("audit.least_number"), lambda a: _numbers(a).min(axis=1))
        yield Feature(phrase("audit.place_of_greatest"), lambda a: _numbers(a).argmax(axis=1).astype(np.float64))
        yield Feature(
            phrase("audit.place_of_first_nonzero"), lambda a: (_numbers(a) != 0).argmax(axis=1).astype(np.float64)
        )
        yield Feature(
            phrase("audit.how_many_nonzero"), lambda a: np.count_nonzero(_numbers(a), axis=1).astype(np.float64)
        )


def _of_members(first: Answers, second: Answers) -> Iterator[Feature]:
    """Whether a value is anywhere in the answer, for the few values whose presence differs most."""
    some = [world.values[:2000] for world in (first, second)]
    values = np.unique(np.concatenate(some)[:, :64])
    if not 2 < len(values) <= 256:
        return
    one, two = (np.array([np.mean(np.any(rows == value, axis=1)) for value in values]) for rows in some)
    gap = np.abs(one - two)
    for value in values[np.argsort(-gap, kind="stable")[:MEMBERS]]:
        yield Feature(
            phrase("audit.presence_of", value=float(value)),
            lambda a, value=value: np.any(a.values == value, axis=1).astype(np.float64),  # type: ignore[misc]
        )


def _numbers(answers: Answers) -> NDArray[np.float64]:
    return np.nan_to_num(answers.values.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)


def hash_answers(answers: Answers) -> NDArray[np.uint64]:
    """One code for everything in an answer; two different answers share one with probability near 2^-64."""
    code = answers.shape.copy()
    parts = [np.ascontiguousarray(answers.values[:, j]).view(np.uint64) for j in range(answers.width)]
    if answers.texts is not None:
        parts += [answers.texts[:, j] for j in range(answers.width)]
    with np.errstate(over="ignore"):
        for part in parts:
            code = (code ^ part) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
    return code
