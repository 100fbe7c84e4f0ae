"""All ways to release a stream within a budget, each with its price and its predicted error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.exact.statistic import Statistic, root_up
from mosha.streams import profile
from mosha.streams.noise.blt import MOST_BUFFERS, find_design
from mosha.streams.noise.exact_toeplitz import BandedToeplitz, LiftedToeplitz, lifted_sensitivity, lifted_unit
from mosha.streams.noise.per_step import Increments
from mosha.streams.noise.toeplitz import decoder, pattern_norm, root_coefficients
from mosha.streams.noise.tree import best_tree
from mosha.streams.plan import FINE, Plan, allows_gaussian, gaussian_law, laplace_law, noise_multiplier
from mosha.streams.presence import Presence, contribution
from mosha.streams.readout import Readout

__all__ = ["Question", "candidates", "plan_fields", "toeplitz_sensitivity"]

PATTERNS = 1 << 20  # a pattern of contributions is added up over so many steps at most
BANDS = 512


@dataclass(frozen=True)
class Question:
    """What is to be streamed, for whom, how long, and what may be remembered."""

    statistic: Statistic
    presence: Presence
    readout: Readout
    horizon: int
    memory: int = 100

    @property
    def width(self) -> int:
        return 1 if self.statistic.labels is None else len(self.statistic.labels)


def candidates(question: Question, budget: Budget) -> Iterator[Plan]:
    """The plans that keep the budget and the memory; each is private whatever the data are."""
    if contribution(question.statistic).l1 == 0:
        raise InvalidParameter("streams.public_statistic", parameter="statistic")
    ways: list[Callable[[Question, Budget], Iterator[Plan]]] = []
    ways += [_laplace_steps, _tree] if budget.epsilon is not None else []
    ways += [_gaussian_steps, _buffers, _bands] if allows_gaussian(budget) else []
    found: list[Plan] = []
    problem = InvalidParameter("streams.no_mechanism", spent="nothing")
    for way in ways:
        try:
            found += way(question, budget)
        except InvalidParameter as refused:  # too long or too fine for this one
            problem = refused
    if not found:
        raise problem
    yield from (plan for plan in found if plan.memory <= question.memory)


def _laplace_steps(question: Question, budget: Budget) -> Iterator[Plan]:
    presence = question.presence
    l1 = contribution(question.statistic).l1 * presence.most * presence.sides
    law, event = laplace_law(budget, l1)
    shape = profile.profile_increments(question.readout, question.horizon)
    yield Plan("per-step Laplace", *plan_fields(question), Increments(), law, event, shape, question.statistic.grid)


def _tree(question: Question, budget: Budget) -> Iterator[Plan]:
    presence, tree = question.presence, best_tree(question.horizon, min(question.memory, 100))
    l1 = contribution(question.statistic).l1 * presence.most * presence.sides * tree.levels
    law, event = laplace_law(budget, l1)
    shape = profile.profile_tree(tree, question.readout, question.horizon)
    name = f"{tree.base}-ary tree with negative digits, {tree.levels} levels"
    yield Plan(name, *plan_fields(question), tree, law, event, shape, question.statistic.grid)


def _gaussian_steps(question: Question, budget: Budget) -> Iterator[Plan]:
    presence, moved = question.presence, contribution(question.statistic)
    l2 = root_up(math.ceil(Fraction(moved.l2) ** 2) * presence.most) * presence.sides
    finer = 1 << max(0, math.ceil(math.log2(2 * FINE / (noise_multiplier(budget) * l2))))
    law, event = gaussian_law(budget, l2 * finer, question.horizon * question.width)
    shape = profile.profile_increments(question.readout, question.horizon)
    mechanism = Increments(finer)
    yield Plan(
        "per-step Gaussian", *plan_fields(question), mechanism, law, event, shape, question.statistic.grid / finer
    )


def _buffers(question: Question, budget: Budget) -> Iterator[Plan]:
    """Buffered linear Toeplitz noise: columns normalised for one contribution, as they are for several."""
    horizon, presence, moved = question.horizon, question.presence, contribution(question.statistic)
    most = min(MOST_BUFFERS - 1, question.memory - 3)
    count = min(most, max(1, math.ceil(math.log2(horizon + 1) / 2.6)))
    if horizon < 4 or most < 1 or (presence.most > 1 and horizon > PATTERNS):
        return
    buffers = find_design(horizon, count)
    normalised = presence.most == 1
    touched = moved.l0 if question.width > 1 else 1
    size, unit = math.ceil(moved.l2), lifted_unit(horizon, touched * presence.most * presence.sides)
    mechanism = LiftedToeplitz(buffers, horizon, size, unit, normalised)
    gain = 1.0
    if not normalised:
        gain = pattern_norm(buffers.coefficients(horizon), horizon, presence.most, presence.apart)
    sensitivity = toeplitz_sensitivity(question, mechanism, gain, touched)
    law, event = gaussian_law(budget, sensitivity, horizon * question.width)
    shape = profile.profile_buffers(buffers, question.readout, horizon, normalised=normalised)
    name = f"{'column-normalised ' if normalised else ''}BLT, {count} buffers"
    yield Plan(name, *plan_fields(question), mechanism, law, event, shape, question.statistic.grid * size / unit)


def _bands(question: Question, budget: Budget) -> Iterator[Plan]:
    """Bands of the square root of running sums: for persons who come back at least `apart` steps later."""
    horizon, presence, moved = question.horizon, question.presence, contribution(question.statistic)
    if horizon > PATTERNS or presence.most == 1 or horizon < 4:
        return
    widths = {2, 4, 8, 16, 32, 64, 128, 256, BANDS, presence.apart, presence.apart // 2}
    limit = min(BANDS, horizon, question.memory - 2)
    touched = moved.l0 if question.width > 1 else 1
    size, unit = math.ceil(moved.l2), lifted_unit(horizon, touched * presence.most * presence.sides)
    best: tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]], float] | None = None
    for width in sorted(w for w in widths if 2 <= w <= limit):
        coefficients = root_coefficients(width)
        gain = pattern_norm(coefficients, horizon, presence.most, presence.apart)
        response = question.readout.respond(decoder(coefficients, horizon))
        error = gain * math.sqrt(float(np.mean(np.cumsum(response**2))))
        if (best is None or error < best[0]) and np.abs(decoder(coefficients, horizon)).max() < 1 << 20:
            best = error, coefficients, gain
    if best is None:
        return
    _, coefficients, gain = best
    mechanism = BandedToeplitz(tuple(coefficients.tolist()), horizon, size, unit)
    law, event = gaussian_law(
        budget, toeplitz_sensitivity(question, mechanism, gain, touched), horizon * question.width
    )
    shape = profile.profile_band(coefficients, question.readout, horizon)
    name = f"square root in {coefficients.size} bands"
    yield Plan(name, *plan_fields(question), mechanism, law, event, shape, question.statistic.grid * size / unit)


def toeplitz_sensitivity(
    question: Question, mechanism: LiftedToeplitz | BandedToeplitz, gain: float, touched: int
) -> float:
    """That of `lifted_sensitivity`, for what is asked."""
    presence = question.presence
    return lifted_sensitivity(
        gain=gain,
        largest_norm=mechanism.largest_norm,
        unit=mechanism.unit,
        touched=touched,
        most=presence.most,
        horizon=question.horizon,
        sides=presence.sides,
        width=question.width,
    )


def plan_fields(question: Question) -> tuple[Statistic, Presence, Readout, int]:
    """The parts of a question that a plan keeps."""
    return question.statistic, question.presence, question.readout, question.horizon
