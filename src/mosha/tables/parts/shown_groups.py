"""The groups that are shown, of all that an engine found: it tells some at a time, and the rest are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.checking import type_of
from mosha.connect.language.schema import Type
from mosha.connect.plan.source import Array, Totals, find_numbers
from mosha.tables.parts.key_values import as_engines_do, in_utc
from mosha.tables.parts.part import Frame, Rows

__all__ = ["MOST_KEYS", "GroupPlaces", "ShownGroups"]

MOST_KEYS = 1 << 20
"""A release shows no more groups than this; noise is priced for so many."""


class ShownGroups:
    """Groups and their noisy numbers: at most MOST_KEYS, those whose names come first.

    Guarantee:
        Post-processing of what is shown of each group. Which groups stay follows from their names alone, so it does not
        matter in which order they come; no more than twice MOST_KEYS and one batch are held at any time.
    """

    def __init__(self, frame: Frame, channels: int = 0) -> None:
        self._kinds = [type_of(expression, frame.relation.schema) for _, expression in frame.keys]
        self._groups: list[tuple[Any, ...]] = []
        self._numbers = [np.zeros((0, channels))]

    def add(self, totals: Totals, places: NDArray[np.int64], noisy: NDArray[np.float64] | None = None) -> None:
        """Show the groups at these places, and their noisy numbers, that a constant can name."""
        found = in_utc(zip(*(column[places].tolist() for column in totals.keys), strict=True), self._kinds)
        named = [place for place, key in enumerate(found) if _can_be_named(key)]
        self._groups += [found[place] for place in named]
        if noisy is not None:
            self._numbers.append(noisy[places[named]])
        if len(self._groups) > 2 * MOST_KEYS:
            self._sort()

    def list(self) -> tuple[Rows, NDArray[np.float64]]:
        """The groups in the order of their names, and their numbers."""
        self._sort()
        return tuple(self._groups), self._numbers[0]

    def _sort(self) -> None:
        numbers = np.concatenate(self._numbers)
        order = sorted(range(len(self._groups)), key=lambda place: _order(self._groups[place]))[:MOST_KEYS]
        self._groups = [self._groups[place] for place in order]
        self._numbers = [numbers[order] if len(numbers) else numbers]


def _can_be_named(key: tuple[object, ...]) -> bool:
    """Whether a constant can say the key: text with NUL and the least 64-bit integer have none on some engine."""
    texts = (part for part in key if isinstance(part, str))
    least = (part for part in key if isinstance(part, int) and part == -(2**63))
    return not any("\x00" in text for text in texts) and not any(least)


def _order(key: tuple[object, ...]) -> tuple[Any, ...]:
    return tuple((part is not None, type(part).__name__, part) for part in key)


class GroupPlaces:
    """Where the groups that an engine tells stand among those that a frame shows."""

    def __init__(self, frame: Frame) -> None:
        groups = frame.only or ()
        kinds = [type_of(expression, frame.relation.schema) for _, expression in frame.keys]
        self._alone = len(kinds) == 1
        self._numbers: Array | None = None
        self._places: dict[Any, int] = {}
        if kinds == [Type.INTEGER] and (None,) not in groups:
            self._numbers = np.array([value for (value,) in groups], np.int64)
            self._order = np.argsort(self._numbers, kind="stable")
        elif kinds:
            engines = (as_engines_do(group) for group in groups)
            self._places = {key[0] if self._alone else key: place for place, key in enumerate(engines)}

    def find(self, keys: Sequence[Array], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(owners, sizes) of the runs of rows with equal keys: the place of each one's group, -1 for others."""
        if not keys:
            return np.zeros(min(rows, 1), np.int64), np.full(min(rows, 1), rows)
        differ = np.zeros(max(rows - 1, 0), np.bool_)
        for column in keys:
            differ |= np.asarray(column[1:] != column[:-1], np.bool_)
        first = np.flatnonzero(np.concatenate([[True], differ])[:rows])
        return self._find([column[first] for column in keys]), np.diff(first, append=rows)

    def _find(self, keys: Sequence[Array]) -> NDArray[np.int64]:
        if self._numbers is not None and keys[0].dtype == np.int64:
            return find_numbers(self._numbers, keys[0], self._order)
        numbers = {} if self._numbers is None else {value: at for at, value in enumerate(self._numbers.tolist())}
        places, lists = numbers or self._places, [column.tolist() for column in keys]
        sought = lists[0] if self._alone else zip(*lists, strict=True)
        return np.array([places.get(key, -1) for key in sought], np.int64)
