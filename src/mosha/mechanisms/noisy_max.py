"""The largest few of noisy scores, with the gaps between them for free."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.events import Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms.choice import check_candidates
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.noisy_statistic import exact_steps, title
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["GapError", "report_noisy_max"]

FINE = 1 << 20
"""The noise has at least so many steps to its scale, so that ties do not matter."""


def report_noisy_max(statistic: Statistic, *, unit: Unit, epsilon: float, top: int = 1) -> Measurement:
    """The labels of the `top` largest noisy scores, each with its gap to the next one.

    The answer is a list of {"choice": label, "gap": how far its noisy score is above the next one's}. Laplace noise of
    scale top * span / epsilon. For the label alone `permute_and_flip` is better; the gap, which exponential noise
    could not give away, costs nothing here (Ding et al. 2019).

    Guarantee:
        epsilon-differential privacy for labels and gaps together: see `noisy_max.md`.

    Units:
        Gaps are in the unit of the statistic. The error bar is that of each gap.

    Args:
        statistic: a statistic that scores two labels or more, such as `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.
        top: how many labels to report, below the number of labels.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Histogram
    >>> ward = report_noisy_max(Histogram(keys=["A", "B"]), unit=Row(), epsilon=1)
    >>> [best], _ = ward.step(None, ["B"] * 100, None, noise.SeededRandom(1))
    >>> best["choice"], abs(best["gap"] - 100) < 40
    ('B', True)
    """
    statistic, unit, labels = check_candidates(statistic, unit)
    epsilon, top = positive("epsilon", epsilon), positive_integer("top", top)
    if top >= len(labels):
        raise InvalidParameter("mechanisms.top_too_large", parameter="top", labels=len(labels))
    scale = top * statistic.sensitivity(unit).span / Fraction(epsilon)
    finer = 1 << max(0, math.ceil(math.log2(FINE / scale))) if scale < FINE else 1
    if not Fraction(1, FINE) <= scale <= LARGEST_SCALE:
        raise InvalidParameter("mechanisms.epsilon_out_of_range", parameter="epsilon")
    grid = statistic.grid / finer

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        exact = exact_steps(statistic, data, unit, finer)
        noisy = exact.astype(object) + unbounded_laplace(scale * finer, len(labels), rng=rng)
        ranked = _rank_noisy(noisy.tolist(), top)
        return [{"choice": labels[index], "gap": gap * grid} for index, gap in ranked], state

    return Measurement(
        unit=unit,
        event=Pure(epsilon),
        step=step,
        error=GapError(float(scale * finer), grid, top),
        name=f"report_noisy_max({title(statistic)})",
        question=fingerprint(statistic, unit, top),
    )


def _rank_noisy(noisy: list[int], top: int) -> list[tuple[int, int]]:
    """The `top` largest, of equals the one that comes first; a gap counts from the least score that would still win.

    With i before j a noisy score equal to that of j wins over it, so the gap is one step wider: it is 1 or more.
    """
    order = sorted(range(len(noisy)), key=lambda index: (-noisy[index], index))[: top + 1]
    return [(i, noisy[i] - noisy[j] + (i < j)) for i, j in itertools.pairwise(order)]


@dataclass(frozen=True)
class GapError:
    """The error bar of a gap: the difference of two noises, each within its own bar with half the doubt."""

    scale: float
    grid: float
    top: int

    def __call__(self, confidence: float, answer: object = None) -> float | NDArray[np.float64]:
        del answer
        each = laplace_width(self.scale, 1 - (1 - strict_probability("confidence", confidence)) / 2)
        return np.full(self.top, (2 * each + 1) * self.grid)
