"""Mechanisms that others use and that `best` never picks: taken when they are asked for by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.exact.statistic import root_up
from mosha.streams import profile
from mosha.streams.candidates import Question, plan_fields, toeplitz_sensitivity
from mosha.streams.noise.exact_toeplitz import BandedToeplitz, lifted_unit
from mosha.streams.noise.honaker import BinaryTree
from mosha.streams.noise.toeplitz import pattern_norm, root_coefficients
from mosha.streams.plan import FINE, Plan, allows_gaussian, gaussian_law, laplace_law, noise_multiplier
from mosha.streams.presence import contribution
from mosha.streams.profile import Profile
from mosha.streams.readout import Running

__all__ = ["comparisons"]

LONGEST_ROOT = 1 << 14  # a step of the whole square root costs as much as there were steps


def comparisons(question: Question, budget: Budget) -> Iterator[Plan]:
    """The binary tree, plain and with Honaker's combination, and the whole square root: running sums only.

    >>> from mosha import Reading
    >>> from mosha.streams import counter
    >>> tree = counter(unit=Reading(), horizon=1024, epsilon=1, mechanism="Honaker").plan
    >>> tree.name, round(tree.root_mean_square, 1)
    ('binary tree, Honaker, 11 levels', 26.5)
    """
    if not isinstance(question.readout, Running):
        return
    for combined in (True, False):
        for gaussian in (True, False):
            if allows_gaussian(budget) if gaussian else budget.epsilon is not None:
                yield from _select_affordable(_tree(question, budget, combined=combined, gaussian=gaussian), question)
    if allows_gaussian(budget) and 4 <= question.horizon <= LONGEST_ROOT:
        yield from _select_affordable(_root(question, budget), question)


def _select_affordable(plans: Iterator[Plan], question: Question) -> Iterator[Plan]:
    try:
        yield from (plan for plan in plans if plan.memory <= question.memory)
    except InvalidParameter:  # too long or too fine for this one
        return


def _tree(question: Question, budget: Budget, *, combined: bool, gaussian: bool) -> Iterator[Plan]:
    presence, moved, horizon = question.presence, contribution(question.statistic), question.horizon
    levels, finer = horizon.bit_length(), 1
    if gaussian:
        l2 = root_up(math.ceil(Fraction(moved.l2) ** 2) * levels) * presence.most * presence.sides
        finer = 1 << max(0, math.ceil(math.log2(2 * FINE / (noise_multiplier(budget) * l2))))
        law, event = gaussian_law(budget, l2 * finer, 2 * horizon * question.width)
    else:
        law, event = laplace_law(budget, moved.l1 * levels * presence.most * presence.sides)
    tree = BinaryTree(levels, combined, finer)
    shape = Profile(
        lambda step: math.sqrt(tree.variance(step)),
        math.sqrt(tree.largest_variance(horizon)),
        math.sqrt(tree.mean_variance(horizon)),
    )
    name = f"binary tree, {'Honaker, ' if combined else ''}{levels} levels"
    yield Plan(name, *plan_fields(question), tree, law, event, shape, question.statistic.grid / finer)


def _root(question: Question, budget: Budget) -> Iterator[Plan]:
    """The whole square root of running sums: as much memory as there are steps."""
    horizon, presence, moved = question.horizon, question.presence, contribution(question.statistic)
    touched = moved.l0 if question.width > 1 else 1
    size, unit = math.ceil(moved.l2), lifted_unit(horizon, touched * presence.most * presence.sides)
    coefficients = root_coefficients(horizon)
    mechanism = BandedToeplitz(tuple(coefficients.tolist()), horizon, size, unit)
    gain = pattern_norm(coefficients, horizon, presence.most, presence.apart)
    law, event = gaussian_law(
        budget, toeplitz_sensitivity(question, mechanism, gain, touched), horizon * question.width
    )
    shape = profile.profile_band(coefficients, question.readout, horizon)
    yield Plan(
        "square-root Toeplitz",
        *plan_fields(question),
        mechanism,
        law,
        event,
        shape,
        question.statistic.grid * size / unit,
    )
