"""A composition seen as one pair: what a sample, or one of several alternatives, can be made of.

The losses of all parts are put on one lattice and summed by plain convolution. All masses are positive, so their
relative errors stay small even where the masses are tiny; there is no Fourier transform and no tilt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mosha.accounting.losses.lattice import common_unit
from mosha.accounting.losses.loss import UNIT, Array, Law, upper_law
from mosha.accounting.losses.merging import lower_law
from mosha.accounting.losses.pair import Atoms, Pair

__all__ = ["LARGEST_COUNT", "compose_pairs"]

POINTS = 8192
LOST = 1e-30  # of the mass may be cut off at either end of a part
LARGEST_COUNT = 64  # parts; beyond this the lattice would be too coarse


def compose_pairs(parts: Sequence[tuple[Pair, int]], spared: float, *, above: bool) -> Atoms:
    """A law that tells no less (`above`), or no more, than all parts together; all is told with 1 - `spared`.

    Guarantee:
        Each part is replaced by its upper (lower) law on the lattice (`loss.md`), and curves of compositions are
        monotone in those of the parts. A lower law also forgets its smallest losses until Q has at most mass one.
    """
    reaches = [pair.reach(LOST) for pair, _ in parts]
    low = sum(count * reach[0] for reach, (_, count) in zip(reaches, parts, strict=True))
    high = sum(count * reach[1] for reach, (_, count) in zip(reaches, parts, strict=True))
    step = max(high - low, 1e-12) / POINTS
    unit = common_unit([x for pair, _ in parts for x in pair.landmarks if x])
    if unit >= step:
        step = unit / math.ceil(unit / step)  # atoms then lie on the lattice
    mass, first, shift, error = np.ones(1), 0, 0.0, 0.0
    for (pair, count), reach in zip(parts, reaches, strict=True):
        law = _law(pair, reach, step, above=above)
        for _ in range(count):
            mass = np.convolve(mass, law.mass)
        first += count * law.first
        shift += count * law.shift
        spared *= (1 - law.infinite) ** count
        error += count * UNIT * (8 + len(law.mass))
    losses = step * np.arange(first, first + len(mass), dtype=np.float64)
    if not above:
        mass = _drop_excess_mass(mass * (1 - error), losses)
    finite = mass > 0
    losses, mass = np.append(losses[finite], math.inf), np.append(mass[finite], max(1 - spared, 0.0))
    return Atoms(losses, mass, error=error + 8 * UNIT, shift=shift + 4 * UNIT * max(abs(low), abs(high)), spread=1.0)


def _law(pair: Pair, reach: tuple[float, float], step: float, *, above: bool) -> Law:
    first, last = math.floor(reach[0] / step) - 1, math.ceil(reach[1] / step) + 1
    if above:
        return upper_law(pair.cells(step * np.arange(first, last + 1, dtype=np.float64)), first, step)
    return lower_law(pair, first, last, step)


def _drop_excess_mass(mass: Array, losses: Array) -> Array:
    """The masses without as many of the smallest losses as make Q more than a probability."""
    with np.errstate(over="ignore"):
        q = np.cumsum((mass * np.exp(np.minimum(-losses, 700.0)))[::-1])[::-1]
    return np.where(q <= 1 - 1e-9, mass, 0.0) if q[0] > 1 - 1e-9 else mass
