"""Alarms: told when a stream passes a threshold, at a price that depends on the number of alarms and not on time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mosha.accounting.measures import concentrated
from mosha.core.budget import Budget
from mosha.core.errors import HorizonExceeded, InvalidParameter
from mosha.core.event import Event
from mosha.core.events import SparseVector
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer, real, strict_probability
from mosha.core.unit import Neighbors, Unit
from mosha.exact.statistic import Statistic, check_statistic
from mosha.mechanisms import Count
from mosha.mechanisms.noisy_statistic import title
from mosha.mechanisms.sparse_vector import split_epsilon
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_geometric
from mosha.streams.bounding import Memory, exact_step
from mosha.streams.plan import make_budget
from mosha.streams.planner import VERY_LONG
from mosha.streams.presence import Presence, contribution, presence_of
from mosha.streams.readout import Instant, Readout, Running, Sliding, readout_of

__all__ = ["AlarmNoise", "alarm", "alarm_noise"]


@dataclass(frozen=True)
class AlarmNoise:
    """The scales of noise, in steps, and what they cost; `renewed` draws a new threshold after each alarm."""

    threshold: Fraction
    answer: Fraction
    event: Event
    renewed: bool

    @property
    def deviation(self) -> float:
        """Of threshold and answer noise together."""
        return math.sqrt(float(self.threshold**2 + self.answer**2))

    @property
    def offset(self) -> int:
        """What is taken off a noisy value, in steps: a value at the threshold is told every other time.

        With X = n - e, scales a >= b: P(X >= x) = exp(-x / a) a / (a + b) for x >= 0, one half at a log(2 a / (a + b)).
        """
        answer, threshold = float(self.answer), float(self.threshold)
        return max(0, round(answer * math.log(2 * answer / (answer + threshold))))

    def width(self, confidence: float) -> float:
        """What the noise of a gap stays within, in steps.

        The upper tail of X is that of `offset`, P(X < -x) = exp(-x / b) b / (a + b); each gets half the doubt, and one
        step more is for rounding.
        """
        answer, threshold = float(self.answer), float(self.threshold)
        doubt = (1 - strict_probability("confidence", confidence)) / 2
        above = answer * math.log(answer / (answer + threshold) / doubt) - self.offset
        below = threshold * math.log(threshold / (answer + threshold) / doubt) + self.offset
        return max(above, below, float(self.offset)) + 1


def alarm_noise(budget: Budget, *, alarms: int, moved: int, monotone: bool) -> AlarmNoise:
    """The noise with the least deviation: one threshold for all alarms, or a new one for each, composed by zCDP.

    Guarantee:
        The first is the sparse vector of Lyu, Su and Li with noise to one side, as private as noise to both sides of
        the same scales, with half its variance: `alarms.md`. The second is one such mechanism with a single alarm
        after another: the event is repeated, and its price is the sum.

    >>> round(float(alarm_noise(Budget(epsilon=1.0), alarms=8, moved=1, monotone=True).answer), 9)
    10.0
    >>> alarm_noise(Budget(epsilon=1.0, delta=1e-6), alarms=1000, moved=1, monotone=True).renewed
    True
    """
    found = []
    if budget.epsilon is not None:
        found.append(_noise(budget.epsilon, alarms, moved, monotone=monotone, renewed=False))
    if budget.epsilon is None or budget.delta:
        rho = budget.rho
        if budget.epsilon is not None and budget.delta:
            rho = concentrated.rho_from_epsilon(budget.epsilon, budget.delta)
        if rho is None:
            raise InvalidParameter("streams.alarm_budget")
        found += [
            _noise(_epsilon_at(rho, alarms, monotone=monotone), alarms, moved, monotone=monotone, renewed=True),
            _noise(_epsilon_at(rho, alarms, monotone=monotone, together=True), alarms, moved, monotone=monotone),
        ]
    best = min(found, key=lambda noise: noise.deviation)
    if max(best.answer, best.threshold) > LARGEST_SCALE:
        raise InvalidParameter("streams.noise_too_large_for_grid")
    return best


def _noise(epsilon: float, alarms: int, moved: int, *, monotone: bool, renewed: bool = False) -> AlarmNoise:
    each = 1 if renewed else alarms
    first, second = split_epsilon(epsilon, each, monotone=monotone)
    answer = Fraction(moved * each * (1 if monotone else 2)) / Fraction(second)
    event: Event = SparseVector(first, second, each)
    return AlarmNoise(moved / Fraction(first), answer, event * alarms if renewed else event, renewed)


def _epsilon_at(rho: float, alarms: int, *, monotone: bool, together: bool = False) -> float:
    """The largest epsilon, to a part in 10^9, whose alarms cost at most `rho` together."""

    def cost(epsilon: float) -> float:
        noise = _noise(epsilon, alarms, 1, monotone=monotone, renewed=not together)
        return concentrated.rho(noise.event)[0]

    low, high = 0.0, 1.0
    while cost(high) <= rho:
        low, high = high, high * 2
    while low == 0 or high > low * (1 + 1e-9):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= rho else (low, middle)
        if high < 1e-200:
            raise InvalidParameter("streams.rho_too_small_for_alarms", parameter="rho")
    return low


@dataclass(slots=True)
class AlarmState:
    """A running alarm: time, alarms left, threshold noise and offset, what is compared, and who is remembered."""

    time: int
    left: int
    shift: int | None
    readout: Any
    memory: Memory = field(default_factory=dict)


@explain_wrong_calls
def alarm(
    statistic: Statistic | None = None,
    *,
    unit: Unit,
    threshold: float | Sequence[float],
    alarms: int,
    horizon: int | None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    release: object = "instant",
    apart: int = 1,
) -> Measurement:
    """Whether each step's value is at or above a threshold, re-armed until `alarms` alarms were given; then it refuses.

    A step answers {"alarm": True or False, "threshold": the highest threshold that was passed, "gap": a noisy measure
    of how far}. Several thresholds are asked from the highest down; a step gives at most one alarm. What is compared is
    the step by itself ("instant"), a `Sliding(steps)` sum or the "running" sum.

    Args:
        threshold: a step at or above it rings; of several, the highest that was passed is told.
        alarms: how many alarms are paid for.
        statistic: what is watched; by default the number of rows.
        unit: whose presence is hidden.
        horizon: how many steps are paid for; None for a very long time.
        epsilon: the price, or
        delta: together with epsilon, or
        rho: the price in zero-concentrated privacy.
        release: what is compared with the threshold: "instant", "running" or `Sliding(steps)`.
        apart: two contributions of one person are at least so many steps apart.

    Guarantee:
        That of `alarm_noise`; the gap is free: `alarms.md`.

    Units:
        `threshold` and gaps are in the unit of the statistic.

    >>> from mosha import Reading, noise
    >>> bell = alarm(unit=Reading(), threshold=500, alarms=2, horizon=None, epsilon=1)
    >>> rng, state = noise.SeededRandom(5), bell.init()
    >>> for rows in (range(10), range(1000)):
    ...     answer, state = bell.step(state, rows, None, rng)
    >>> answer["alarm"], abs(answer["gap"] - 500) < 60
    (True, True)
    """
    asked = check_statistic(Count() if statistic is None else statistic)
    if asked.labels is not None:
        raise InvalidParameter("streams.threshold_needs_number", parameter="statistic")
    steps = VERY_LONG if horizon is None else positive_integer("horizon", horizon)
    count, readout = positive_integer("alarms", alarms), readout_of(release)
    presence = presence_of(unit, steps, apart)
    moved = contribution(asked)
    monotone = moved.monotone and unit.neighbors is Neighbors.ADD_REMOVE
    noise = alarm_noise(
        make_budget(epsilon=epsilon, delta=delta, rho=rho),
        alarms=count,
        moved=_largest_move(moved.l1, presence, readout),
        monotone=monotone,
    )
    levels = _levels(threshold, asked.grid)

    def step(state: AlarmState, data: object, ask: object, rng: Rng) -> tuple[dict[str, Any], AlarmState]:
        del ask
        if state.left == 0:
            raise HorizonExceeded("streams.alarms_used_up", alarms=count)
        exact, memory = exact_step(asked, presence, data, state.time, state.memory)
        value, kept = readout.step(state.readout, int(exact[0]))
        shift = state.shift
        if shift is None:
            shift = unbounded_geometric(noise.threshold, rng=rng) + noise.offset
        answer: dict[str, Any] = {"alarm": False, "threshold": None, "gap": None}
        for level, limit in levels:
            gap = int(value) + unbounded_geometric(noise.answer, rng=rng) - level - shift
            if gap >= 0:
                answer = {"alarm": True, "threshold": limit, "gap": gap * asked.grid}
                break
        left = state.left - answer["alarm"]
        shift = None if noise.renewed and answer["alarm"] else shift
        return answer, AlarmState(state.time + 1, left, shift, kept, memory)

    def error(confidence: float, answer: object) -> float:
        del answer
        return noise.width(confidence) * asked.grid

    return Measurement(
        unit=unit,
        event=noise.event,
        step=step,
        init=lambda: AlarmState(0, count, None, readout.start()),
        horizon=steps,
        error=error,
        name=f"alarm({title(asked)})",
        question=fingerprint(asked, unit, levels, readout, presence, count, noise.renewed),
        delta=delta or None,
    )


def _largest_move(each: int, presence: Presence, readout: Readout) -> int:
    """How far one unit moves what is compared at any one step, in steps."""
    match readout:
        case Instant():
            times = 1
        case Sliding(steps=steps):
            times = min(presence.most, -(-steps // presence.apart))
        case Running():
            if presence.within is not None:
                raise InvalidParameter("streams.running_sum_in_window", parameter="release")
            times = presence.most
        case _:
            raise InvalidParameter("streams.alarm_readout", parameter="release")
    return each * times * presence.sides


def _levels(threshold: float | Sequence[float], grid: float) -> tuple[tuple[int, float], ...]:
    given = list(threshold) if isinstance(threshold, Sequence) else [threshold]
    numbers = sorted({real("threshold", limit) for limit in given}, reverse=True)
    if not numbers:
        raise InvalidParameter("streams.no_threshold", parameter="threshold")
    return tuple((math.ceil(Fraction(limit) / Fraction(grid)), limit) for limit in numbers)
