"""Above threshold: many questions, of which only the few that answer yes are paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import SparseVector
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, positive_integer, real, strict_probability
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.noisy_statistic import check_moving, exact_steps, title
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["ThresholdError", "above_threshold", "split_epsilon"]


def above_threshold(
    statistic: Statistic, *, unit: Unit, epsilon: float, threshold: float, horizon: int, alarms: int = 1
) -> Measurement:
    """Whether a statistic is at or above a threshold, `horizon` times, until it was so `alarms` times.

    A step answers True or False, and None once all alarms are spent (no data is read then). `ask` may be another
    statistic that moves no further than the declared one; the data may be those of a new day. The price
    does not grow with the number of questions.

    Guarantee:
        (threshold_epsilon + answer_epsilon)-differential privacy: the correct variant of Lyu, Su and Li 2017
        (algorithm 7), on integers; see `sparse_vector.md`.

    Units:
        `threshold` is in the unit of the statistic. The error bar holds for all answers together.

    Args:
        statistic: a single number, such as `Count()`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon of the whole run, however many steps it takes.
        threshold: what the statistic is compared with, in its own unit.
        horizon: how many steps are paid for.
        alarms: how many times the answer may be True.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Count
    >>> alarm = above_threshold(Count(), unit=Row(), epsilon=1, threshold=500, horizon=3)
    >>> rng, state, answers = noise.SeededRandom(5), alarm.init(), []
    >>> for day in (range(10), range(1000), range(1000)):
    ...     answer, state = alarm.step(state, day, None, rng)
    ...     answers.append(answer)
    >>> answers
    [False, True, None]
    """
    statistic, unit = check_moving(statistic, unit)
    if statistic.labels is not None:
        raise InvalidParameter("mechanisms.threshold_of_one_number", parameter="statistic")
    sensitivity = statistic.sensitivity(unit)
    alarms, horizon = positive_integer("alarms", alarms), positive_integer("horizon", horizon)
    first, second = split_epsilon(positive("epsilon", epsilon), alarms, monotone=sensitivity.monotone)
    noise = _Noise(
        threshold=sensitivity.linf / Fraction(first),
        answer=sensitivity.linf * alarms * (1 if sensitivity.monotone else 2) / Fraction(second),
    )
    if noise.answer > LARGEST_SCALE or noise.threshold > LARGEST_SCALE:
        raise InvalidParameter("mechanisms.epsilon_too_small_for_grid", parameter="epsilon")
    level = math.ceil(Fraction(real("threshold", threshold)) / Fraction(statistic.grid))

    def step(state: tuple[int, int] | None, data: object, ask: object, rng: Rng) -> tuple[bool | None, tuple[int, int]]:
        asked = statistic if ask is None else _check_no_wilder(ask, statistic, unit)
        if state is None:
            state = (int(unbounded_laplace(noise.threshold, 1, rng=rng)[0]), alarms)
        shift, left = state
        if left == 0:
            return None, state
        noisy = int(exact_steps(asked, data, unit)[0]) + int(unbounded_laplace(noise.answer, 1, rng=rng)[0])
        above = noisy >= level + shift
        return above, (shift, left - above)

    return Measurement(
        unit=unit,
        event=SparseVector(first, second, alarms),
        step=step,
        horizon=horizon,
        error=ThresholdError(float(noise.threshold), float(noise.answer), horizon, statistic.grid),
        name=f"above_threshold({title(statistic)})",
        question=fingerprint(statistic, unit, level),
    )


@dataclass(frozen=True)
class _Noise:
    threshold: Fraction
    answer: Fraction


def split_epsilon(epsilon: float, alarms: int, *, monotone: bool) -> tuple[float, float]:
    """The shares of threshold and answers, 1 : (2 c)^(2/3), or 1 : c^(2/3) for monotone questions; rounded down.

    Guarantee:
        The variance of threshold plus answer noise is 2 D^2 (1 / e1^2 + (g c)^2 / e2^2), g = 2 or 1; with e1 + e2
        fixed it is least at e2 / e1 = (g c)^(2/3) (Lyu, Su and Li 2017, section 4.2). Any split is private.

    >>> split_epsilon(3.0, 1, monotone=True)
    (1.5, 1.5)
    """
    ratio = (alarms if monotone else 2 * alarms) ** (2 / 3)
    first = epsilon / (1 + ratio)
    return first, round_down(Fraction(epsilon) - Fraction(first))


def _check_no_wilder(ask: object, statistic: Statistic, unit: Unit) -> Statistic:
    """Another statistic, if it moves no further than the one that was paid for; all of this is public."""
    asked, _ = check_moving(ask, unit)
    declared, its = statistic.sensitivity(unit), asked.sensitivity(unit)
    if asked.labels is not None or asked.grid != statistic.grid:
        raise InvalidParameter("mechanisms.ask_on_other_grid", parameter="ask")
    if its.linf > declared.linf or (declared.monotone and not its.monotone):
        raise InvalidParameter("mechanisms.ask_moves_further", parameter="ask")
    return asked


@dataclass(frozen=True)
class ThresholdError:
    """How far answers may be wrong: True means at least threshold - alpha, False less than threshold + alpha.

    That holds for all answers together, with the confidence asked for: half the doubt goes to the noise on the
    threshold, the rest is shared by the answers.
    """

    threshold: float
    answer: float
    horizon: int
    grid: float

    def __call__(self, confidence: float, answer: object = None) -> float:
        del answer
        doubt = (1 - strict_probability("confidence", confidence)) / 2
        on_answers = laplace_width(self.answer, 1 - doubt / self.horizon)
        return (laplace_width(self.threshold, 1 - doubt) + on_answers) * self.grid
