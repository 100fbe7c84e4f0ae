"""Intervals of unknown numbers, one for each group: their arithmetic, and how their ends close in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mosha.tables.parts.additive import Column

__all__ = ["Interval", "cut", "lower_end", "minus", "raise_end", "size", "square", "times"]

Interval = tuple[Column, Column]


def times(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def minus(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def square(a: Interval) -> Interval:
    least = np.maximum(0.0, np.maximum(a[0], -a[1]))
    return least**2, size(a) ** 2


def size(a: Interval) -> Column:
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def raise_end(low: Column, center: Column, find: Callable[[Column, Column], Column]) -> Column:
    """A greater lower end of an unknown number, which is no less than `find(a, b)` where it lies in [a, b].

    Guarantee:
        The number is above the center, or in [low, center] and so at least find(low, center). If find(low, trial) is at
        least `trial`, then so is the number: it is above it, or at least find(low, trial).
    """
    for _ in range(5):
        low = np.clip(find(low, center), low, center)
    for _ in range(2):
        trial = (low + np.clip(find(low, low), low, center)) / 2
        low = np.where(find(low, trial) >= trial, trial, low)
    return low


def lower_end(high: Column, center: Column, find: Callable[[Column, Column], Column]) -> Column:
    """The same for an upper end."""
    return -raise_end(-high, -center, lambda a, b: -find(-b, -a))


def cut(whole: Interval, cells: int) -> Interval:
    """So many cells of equal length: the lower and the upper ends, a row for each cell."""
    edges = whole[0] + (whole[1] - whole[0]) * np.linspace(0.0, 1.0, cells + 1)[:, None]
    return edges[:-1], edges[1:]
