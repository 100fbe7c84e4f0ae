"""Propose a small sensitivity, test privately whether the data are far from breaking it, release if they are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import Approx
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Unit
from mosha.exact.quantile import LocalStatistic
from mosha.mechanisms.error_bars import LaplaceError
from mosha.mechanisms.noisy_statistic import title
from mosha.mechanisms.smooth_sensitivity import check_local
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["passing_level", "propose_test_release"]


@explain_wrong_calls
def propose_test_release(
    statistic: LocalStatistic, *, unit: Unit, epsilon: float, delta: float, sensitivity: float
) -> Measurement:
    """A number with Laplace noise for a proposed `sensitivity`, or None where the data may not keep it.

    Half of epsilon tests the proposal, half pays for the noise (Dwork and Lei 2009). A proposal is no promise: a wrong
    one gives None, not a leak.

    Guarantee:
        (epsilon, delta)-differential privacy. Let d = min {k : A_k > b}, b the proposal; A_k(D) <= A_(k+1)(D') makes it
        move by at most one. Released if d + Z >= t, Z discrete Laplace of scale 2/epsilon, P(Z >= t) <= delta.
        If A_0 <= b on D or on D', then |f(D) - f(D')| <= b: the test costs epsilon/2 and the answer epsilon/2.
        If A_0 > b on both, then d = 0 on both: each is released with probability at most delta, and None
        costs epsilon/2.

    Units:
        `sensitivity` is in the unit of the statistic; the error bar is that of an answer that is not None.

    Args:
        statistic: a statistic with local sensitivities, such as `Quantile(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.
        delta: the delta that a release costs.
        sensitivity: how far you expect that one unit can move the number, in its own unit.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Quantile
    >>> median = propose_test_release(
    ...     Quantile(at=0.5, between=(0, 100)), unit=Row(), epsilon=1, delta=1e-6, sensitivity=2
    ... )
    >>> answer, _ = median.step(None, list(range(101)) * 100, None, noise.SeededRandom(2))
    >>> abs(answer - 50) < 40, median.step(None, [0, 100], None, noise.SeededRandom(2))[0]
    (True, None)
    """
    statistic = check_local(statistic, unit)
    half = round_down(Fraction(positive("epsilon", epsilon)) / 2)
    delta = strict_probability("delta", delta)
    bound = math.floor(Fraction(positive("sensitivity", sensitivity)) / Fraction(statistic.grid))
    if not 1 <= bound < statistic.width:
        raise InvalidParameter("mechanisms.proposal_out_of_range")
    noise, test = bound / Fraction(half), 1 / Fraction(half)
    if max(noise, test) > LARGEST_SCALE:
        raise InvalidParameter("mechanisms.epsilon_too_small", parameter="epsilon")
    level = passing_level(half, delta)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        exact, reaches = statistic.evaluate_with_reaches(data, unit)
        distance = int(np.argmax(reaches > bound))  # the last entry exceeds it
        tested = distance + int(unbounded_laplace(test, 1, rng=rng)[0])
        noisy = exact + int(unbounded_laplace(noise, 1, rng=rng)[0])
        answer = statistic.offset + min(max(noisy, 0), statistic.width) * statistic.grid
        return (answer if tested >= level else None), state

    return Measurement(
        unit=unit,
        event=Approx(2 * half, delta),
        step=step,
        error=LaplaceError(float(noise), statistic.grid, None),
        name=f"propose_test_release({title(statistic)})",
        question=fingerprint(statistic, unit, bound),
    )


def passing_level(epsilon: float, delta: float) -> int:
    """The least t, or one more, with P(Z >= t) = q^t / (1 + q) <= delta for discrete Laplace Z, q = e^-epsilon.

    Guarantee:
        t = ceil(-ln(delta (1 + q)) / epsilon), computed a little too large: relative 2**-40 covers the rounding of
        the logarithm, the exponential and the quotient.

    >>> passing_level(0.5, 1e-6)
    27
    """
    exact = -(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon
    return max(1, math.ceil(exact + abs(exact) * 2.0**-40))
