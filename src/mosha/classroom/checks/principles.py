"""The checks of chapter 1: principles."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import numpy as np

from mosha.accounting.measures import gaussian
from mosha.classroom.checks.kinds import (
    Finding,
    Function,
    attack_answer,
    compare_mean,
    compare_numbers,
    compare_share,
    show,
    try_neighbors,
)

_draw = random.SystemRandom()


def draw_cases(count: int, *ranges: tuple[float, float]) -> list[tuple[float, ...]]:
    """Random inputs, other ones at every check: an answer cannot know them."""
    return [tuple(_draw.uniform(low, high) for low, high in ranges) for _ in range(count)]


def check_float_laplace(answer: Function) -> Iterator[Finding]:
    """The attacker sees float grids, small scales, and fixed seeds; then the error must not be larger than needed."""
    rows = ["Ada", "Bo", "Chen"]
    yield from attack_answer(lambda data: answer(data, 1.0), ([], rows[:1]), epsilon=1.0)
    yield from check_error(lambda: abs(float(answer(rows, 0.5)) - len(rows)), needed=2.0)


def check_error(error: Callable[[], float], *, needed: float, runs: int = 3000) -> Iterator[Finding]:
    """The mean absolute error may be a quarter above what is needed, beyond seven standard errors."""
    errors = np.array([error() for _ in range(runs)])
    average, deviation = float(errors.mean()), float(errors.std()) / math.sqrt(runs)
    if average > 1.25 * needed + 7 * deviation:
        yield Finding("useless", {"got": show(average), "expected": show(needed)})


def check_odds(answer: Function) -> Iterator[Finding]:
    """Bayes' rule on the odds."""
    cases = [(0.01, 1.0), (0.5, 0.0), *draw_cases(20, (0.001, 0.999), (0.0, 5.0))]

    def highest(prior: float, epsilon: float) -> float:
        factor = math.exp(epsilon)
        return prior * factor / (1 - prior + prior * factor)

    yield from compare_numbers(answer, highest, cases)


def check_sum_sensitivity(answer: Function) -> Iterator[Finding]:
    """The largest absolute value, as often as a person has rows."""
    cases = [
        (-5.0, 20.0, 3),
        (-20.0, -5.0, 2),
        *((*case, _draw.randint(2, 9)) for case in draw_cases(20, (-9, -1), (0, 9))),
    ]
    yield from compare_numbers(answer, lambda low, high, rows: rows * max(abs(low), abs(high)), cases)


def check_clipped_sum(answer: Function) -> Iterator[Finding]:
    """Neighbors with one outrageous value more; values inside the range must be summed as they are."""
    rows = [1.0, 2.0, 3.0, 4.0]
    strange = (1e12, -1e12, math.inf, -math.inf, math.nan, 3.0)
    worlds = [(data, [*data, value]) for data in (rows, rows[:1], []) for value in strange]
    yield from try_neighbors(lambda data: answer(data, -2.0, 5.0), worlds, allowed=5.0)
    yield from compare_numbers(answer, lambda values, *_: sum(values), [(rows, -2.0, 5.0), ([], 0.0, 1.0)])


def check_replaced_mean(answer: Function) -> Iterator[Finding]:
    """One term of the sum moves from one end of the range to the other."""
    cases = [(-5.0, 20.0, 100), *((*case, _draw.randint(2, 999)) for case in draw_cases(20, (-9, -1), (0, 9)))]
    yield from compare_numbers(answer, lambda low, high, rows: (high - low) / rows, cases)


def check_laplace_scale(answer: Function) -> Iterator[Finding]:
    """Scale, deviation and half-width of Laplace noise."""

    def plan(sensitivity: float, epsilon: float) -> tuple[float, float, float]:
        scale = sensitivity / epsilon
        return scale, math.sqrt(2) * scale, math.log(20) * scale

    yield from compare_numbers(answer, plan, [(1.0, 1.0), *draw_cases(20, (0.5, 30), (0.01, 5))])


def check_exponential_mechanism(answer: Function) -> Iterator[Finding]:
    """One person moves one score up and the others down; a clear winner must win; large scores must not overflow."""
    neighbors = ([10.0, 10.5, *[10.0] * 18], [11.0, 9.5, *[9.0] * 18])
    yield from attack_answer(lambda scores: int(answer(scores, 1.0, 1.0)), neighbors, epsilon=1.0)
    lead = 1 / (1 + 2 * math.exp(-2.0))
    yield from compare_share(answer, ([104.0, 100.0, 100.0], 1.0, 1.0), 0, lead, slack=0.01)
    answer([5000.0, 1.0], 1.0, 1.0)


def check_randomized_response(answer: Function) -> Iterator[Finding]:
    """Attacked on yes and no; then as honest as epsilon allows."""
    yield from attack_answer(lambda truth: bool(answer(truth, 0.5)), (True, False), epsilon=0.5)
    yield from compare_share(lambda *case: bool(answer(*case)), (True, 2.0), True, 1 / (1 + math.exp(-2.0)))


def check_response_estimate(answer: Function) -> Iterator[Finding]:
    """Estimates of simulated surveys must be right on average."""
    people, truth, epsilon = 1000, 300, 1.0
    honest = 1 / (1 + math.exp(-epsilon))
    generator = np.random.default_rng()

    def estimate() -> float:
        yes = int(generator.binomial(truth, honest) + generator.binomial(people - truth, 1 - honest))
        return float(answer(yes, people, epsilon))

    yield from compare_mean(estimate, truth, what="bias")


def check_gaussian_delta(answer: Function) -> Iterator[Finding]:
    """Compared with the library's own."""
    cases = draw_cases(20, (0.5, 4.0), (0.1, 2.0))
    yield from compare_numbers(answer, lambda sigma, epsilon: gaussian.delta(1 / sigma, epsilon), cases, tolerance=1e-4)


def check_composition(answer: Function) -> Iterator[Finding]:
    """The sum over rounds of the largest epsilon in each."""
    rounds = [[[_draw.uniform(0.1, 1) for _ in range(_draw.randint(2, 4))] for _ in range(3)] for _ in range(10)]
    cases = [([[0.1, 0.5], [0.5, 0.1]],), *((one,) for one in rounds)]
    yield from compare_numbers(answer, lambda one: sum(max(groups) for groups in one), cases)


def check_two_demands(answer: Function) -> Iterator[Finding]:
    """The larger of two demands, each solved for epsilon."""

    def least(sensitivity: float, deviation: float, distance: float, probability: float) -> float:
        return max(math.sqrt(2) * sensitivity / deviation, sensitivity * math.log(1 / probability) / distance)

    cases = [
        (1.0, 10.0, 100.0, 0.01),
        (1.0, 100.0, 10.0, 0.01),
        *draw_cases(10, (1, 5), (1, 50), (1, 50), (0.001, 0.5)),
    ]
    yield from compare_numbers(answer, least, cases)
