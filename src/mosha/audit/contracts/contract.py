"""Contracts: what a mechanism says of itself, checked in seconds from the inside.

A black-box attack asks what leaks; a contract asks whether each part does what the price assumes. It is far more
sensitive (noise that is 3% too small) and says which part is wrong, but it has to be let in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.audit.attacks.features import lattice
from mosha.audit.reporting.report import Report
from mosha.core import events
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Check", "Contract", "additive_contract"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Check:
    """One clause: what was expected, what was seen, and how likely that is where the clause is kept."""

    clause: str
    kept: bool
    seen: str
    chance: float = 1.0

    def __str__(self) -> str:
        return f"{'kept' if self.kept else 'BROKEN':7s} {self.clause}: {self.seen}"


@dataclass(frozen=True)
class Contract(Report):
    """All clauses (`checks`) of one mechanism or trainer, which is called `name`.

    Guarantee:
        If every clause is kept, P(any is called broken) <= `false_alarms`.

    >>> Contract("count", checks=(), false_alarms=1e-9).kept
    True
    """

    name: str
    checks: tuple[Check, ...]
    false_alarms: float

    @property
    def kept(self) -> bool:
        return all(check.kept for check in self.checks)

    @property
    def broken(self) -> tuple[str, ...]:
        """The names of the clauses that are not kept."""
        return tuple(check.clause for check in self.checks if not check.kept)

    def __str__(self) -> str:
        head = f"{self.name}: contract {'kept' if self.kept else 'BROKEN'} (false-alarm rate {self.false_alarms:.1g})"
        return "\n".join([head, *(f"  {check}" for check in self.checks)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kept": self.kept,
            "false_alarms": self.false_alarms,
            "checks": [vars(check).copy() for check in self.checks],
        }


def judge(clause: str, chance: float, alpha: float, seen: str) -> Check:
    """A statistical clause: broken where what was seen has a chance below alpha."""
    return Check(clause, bool(chance >= alpha), seen, float(chance))


@renamed_argument(neighbours="neighbors")
def additive_contract(
    measurement: Measurement,
    *,
    neighbors: tuple[object, object],
    ask: object = None,
    draws: int = 2_000,
    false_alarms: float = 1e-9,
) -> Contract:
    """Check a measurement that adds Laplace or Gaussian noise: is the noise as large as its price says?

    The same randomness on both neighbors cancels the noise and leaves how far the statistic moves; independent
    draws on one of them show the noise. Price, movement and noise must fit together.

    `measurement` is run with the public question `ask` on both of `neighbors`, two data sets that differ in one unit;
    `false_alarms` is the probability that a contract which is kept is called broken.

    Guarantee:
        Laplace: scale >= nm * l1 movement. Gaussian: deviation >= nm * l2 movement, nm the noise multiplier of the
        event. The difference of two draws exceeds a level with a probability that grows with the scale; with the
        least allowed scale it is p, so so few in `draws` have probability at most P(Bin(draws, p) <= seen) where
        the contract is kept. Movement is exact, not estimated.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> count = laplace(Count(), unit=mosha.Row(), epsilon=1)
    >>> additive_contract(count, neighbors=([1, 2, 3], [1, 2]), draws=200).kept
    True
    """
    kind, multiplier = _noise_of(measurement)
    alpha = strict_probability("false_alarms", false_alarms)
    draws = positive_integer("draws", draws)
    first, second = neighbors
    moves = [_movement(measurement, first, second, ask, seed) for seed in range(3)]
    same = np.array_equal(_run(measurement, first, ask, 7), _run(measurement, first, ask, 7), equal_nan=True)
    spread = max((float(np.abs(move - moves[0]).max(initial=0.0)) for move in moves), default=0.0)
    size = float(np.abs(moves[0]).sum() if kind == "laplace" else np.sqrt((moves[0] ** 2).sum()))
    checks = [
        Check("same randomness, same answer", same, "two runs with one seed"),
        Check(
            "noise is added to the statistic",
            spread <= 1e-9 * max(1.0, size),
            f"under one seed the neighbors differ by {size:.6g}, for any seed",
        ),
        _noise_check(measurement, (first, ask), kind, size * multiplier, draws, alpha),
    ]
    return Contract(measurement.name, tuple(checks), false_alarms)


def _noise_of(measurement: Measurement) -> tuple[str, float]:
    match measurement.event:
        case events.Laplace(multiplier) | events.DiscreteLaplace(multiplier, _):
            return "laplace", multiplier
        case events.Gaussian(multiplier) | events.DiscreteGaussian(multiplier, _, _):
            return "gaussian", multiplier
    raise InvalidParameter("audit.other_noise", measurement=measurement.name)


def _run(measurement: Measurement, data: object, ask: object, seed: int) -> Floats:
    from mosha.noise import SeededRandom  # noqa: PLC0415  (loaded when it is needed)

    return _answer(measurement, data, ask, SeededRandom(seed))


def _answer(measurement: Measurement, data: object, ask: object, rng: Rng) -> Floats:
    answer, _ = measurement.step(measurement.init(), data, ask, rng)
    return np.atleast_1d(np.asarray(answer, dtype=np.float64)).ravel()


def _movement(measurement: Measurement, first: object, second: object, ask: object, seed: int) -> Floats:
    one, two = _run(measurement, first, ask, seed), _run(measurement, second, ask, seed)
    if one.shape != two.shape:
        raise InvalidParameter("audit.shapes_differ", measurement=measurement.name)
    return one - two


def _noise_check(
    measurement: Measurement, call: tuple[object, object], kind: str, scale: float, draws: int, alpha: float
) -> Check:
    """Every coordinate: the difference of two draws is not too often too small."""
    from scipy.stats import binom  # noqa: PLC0415

    from mosha.noise import secure  # noqa: PLC0415

    clause = f"{kind} noise as large as the price says"
    if scale == 0:
        return Check(clause, kept=True, seen="the statistic does not move on these neighbors")
    rows = np.array([_answer(measurement, *call, secure()) for _ in range(2 * draws)])
    apart = np.abs(rows[:draws] - rows[draws:])
    level = scale * (_LAPLACE_MEDIAN if kind == "laplace" else _GAUSSIAN_MEDIAN)
    expected = _exceeding(kind, scale, level, grid=2.0 ** float(lattice(rows.ravel()).min()))
    fewest = int((apart > level).sum(axis=0).min(initial=draws))
    chance = float(binom.cdf(fewest, draws, expected) * apart.shape[1])
    seen = f"{fewest} of {draws} differences exceed {level:.4g}; expected {expected * draws:.0f} or more"
    return judge(clause, min(1.0, chance), alpha, seen)


_LAPLACE_MEDIAN = 1.1461932  # the difference of two exceeds t scales with probability (1 + t/2) e^-t: one half
_GAUSSIAN_MEDIAN = 0.6744898 * math.sqrt(2)


def _exceeding(kind: str, scale: float, level: float, *, grid: float) -> float:
    """How probably the difference of two draws on a grid exceeds the level, to 1e-9; coarse grids are summed up."""
    step = grid / scale
    if not step >= 2.0**-9:  # so fine that the continuous law is right to a part in a million; a little is taken off
        return 0.5 - 1e-5
    places = np.arange(-round(45 / step) - 1, round(45 / step) + 2)
    weights = np.exp(-np.abs(places) * step) if kind == "laplace" else np.exp(-((places * step) ** 2) / 2)
    size = 2 * len(places)
    spectrum = np.fft.rfft(weights / weights.sum(), size)
    apart = np.fft.irfft(np.abs(spectrum) ** 2, size)
    return float(1 - apart[0] - 2 * apart[1 : math.floor(level / grid) + 1].sum()) - 1e-9
