"""Private gradient descent for linear models: every step releases one noisy sum of clipped gradients.

With all examples in every step the price has a closed form. Where that takes too long, a step may look at a Poisson
sample (`rate` below one): the same accuracy for a fraction of the work, at the tight price of the whole plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosha.accounting import calibrate
from mosha.accounting.measures import gaussian as normal
from mosha.accounting.numerics.price import round_up
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian, Plan
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import non_negative, positive, positive_integer, strict_probability
from mosha.core.options import LossName
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit
from mosha.exact.grid import add_noise
from mosha.learning.linear.losses import SCALE, clip_residuals, loss_of
from mosha.learning.linear.rows import BLOCK, RADIUS
from mosha.mechanisms.gaussian import discrete_multiplier
from mosha.mechanisms.noisy_statistic import find_given
from mosha.noise import LARGEST_SCALE, bernoulli_places, discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["Descent", "gaussian_budget", "logits_of", "step_multiplier"]

WEIGHT_STEP = 2.0**-20
LARGEST_WEIGHT = 2.0**18  # the norm of one output's weights: logits stay below 2**52 steps
RESIDENT = 1 << 26  # entries of a matrix that is kept as floats; larger ones are turned block by block
MOST_ROWS = 1 << 26

Floats: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = NDArray[np.int64]
Examples: TypeAlias = tuple[NDArray[np.int16], Floats, Any]
"""Whole rows (examples by width), targets (examples by outputs), whose they are (None unless a Person is hidden)."""


def gaussian_budget(
    *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None, mu: float | None = None
) -> float:
    """The mu that a run of Gaussian steps may spend: of (epsilon, delta), of rho or mu itself; rounded down.

    A millionth of delta is left for what tells discrete noise from normal noise, and for an account's own reserve.

    >>> round(gaussian_budget(epsilon=1, delta=1e-5), 5), gaussian_budget(rho=0.125)
    (0.26805, 0.5)
    """
    chosen = find_given(epsilon=epsilon, rho=rho, mu=mu)
    if (delta is not None) != (chosen == "epsilon"):
        raise InvalidParameter("learning.budget_of_descent")
    if chosen == "mu":
        return positive("mu", mu)
    if chosen == "rho":
        root = math.sqrt(2 * positive("rho", rho))
        while Fraction(root) ** 2 > 2 * Fraction(rho):  # type: ignore[arg-type]
            root = math.nextafter(root, 0.0)
        return positive("mu", root)
    delta = strict_probability("delta", delta)
    if delta < 2.0**-60:
        raise InvalidParameter("learning.delta_too_small", parameter="delta")
    return positive("mu", normal.mu_from_epsilon(positive("epsilon", epsilon), delta * (1 - 2.0**-20)) * (1 - 1e-11))


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Gradient descent with momentum on bounded rows; the last `average` of its steps are averaged.

    Methods take the `unit` that is hidden and the price as `epsilon` with `delta`, `rho` or `mu`; `rows` are bounded,
    `targets` theirs, `weights` those of the model.

    Args:
        width: columns of a bounded row, the intercept among them.
        outputs: numbers that are predicted of an example.
        loss: the name of the loss.
        steps: the number of descent steps.
        momentum: how much of the last step goes into the next one.
        penalty: the weight of the squared norm of the weights.

    Guarantee:
        Each step adds discrete Gaussian noise to a sum of whole vectors, one of norm at most `clip` for each row, so it
        is mu-Gaussian-private with mu = 1 / noise multiplier, and squares of mu add over the steps, which choose
        their weights from earlier answers alone. With a `rate` below one every example is drawn by a coin of its own
        for each step, and the plan is sold as one piece. `linear_descent.md` proves it, rounding and all.

    Units:
        `clip` bounds a residual's norm (1 for logistic, sqrt(2) for softmax regression cut nothing), `learning_rate` is
        of the mean gradient on rows of norm one, `examples` the declared number that sums are divided by.

    >>> from mosha import Example
    >>> plan = Descent(width=3, outputs=1, loss="logistic", examples=1000, steps=25)
    >>> run = plan.measurement(unit=Example(), mu=0.5)
    >>> [(round(step.noise_multiplier, 3), count) for step, count in run.event.parts()]
    [(10.0, 25)]
    """

    width: int
    outputs: int
    loss: LossName
    examples: int
    steps: int
    learning_rate: float = 8.0
    momentum: float = 0.9
    clip: float = 1.0
    penalty: float = 0.0
    average: float = 0.3
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("width", "outputs", "examples", "steps"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name in ("learning_rate", "clip", "rate"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("momentum", "penalty", "average"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
        if self.momentum >= 1 or self.average > 1 or self.rate > 1:
            raise InvalidParameter("learning.momentum_range", parameter="momentum")
        if not 2.0**-10 <= self.clip <= 4:
            raise InvalidParameter("learning.clip_of_residual", parameter="clip")
        if self.steps > 1 << 20 or self.outputs > 1 << 12 or self.width * self.outputs > 1 << 31:
            raise InvalidParameter("learning.descent_size")
        loss_of(self.loss)

    @property
    def clip_steps(self) -> int:
        return int(self.clip * SCALE)

    def sensitivity(self, unit: Unit) -> int:
        """How far one unit moves the sum of gradients, in steps: `linear_descent.md`, lemma 2."""
        replaced = unit.neighbors is Neighbors.REPLACE_ONE
        return self.clip_steps * RADIUS * rows_per_unit(unit) * (2 if replaced else 1)

    def measurement(
        self,
        *,
        unit: Unit,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
    ) -> Measurement:
        """The whole descent, paid for at once; its data are `Examples`, its answer the averaged weights."""
        if not isinstance(unit, Unit):
            raise InvalidParameter("learning.unit_needed", parameter="unit")
        budget = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
        multiplier, event = (
            self._full_batch_price(unit, budget) if self.rate == 1 else self._sampled_price(unit, budget)
        )
        drawn = enlarge_scale(Fraction(multiplier) * self.sensitivity(unit))
        if not 1 << 10 <= drawn <= LARGEST_SCALE:
            raise InvalidParameter("learning.noise_out_of_range")

        def step(state: object, data: Examples, ask: object, rng: Rng) -> tuple[Floats, Any]:
            del ask
            return self._descend(self._admit_rows(data, unit), drawn, rng), state

        return Measurement(
            unit=unit,
            event=event,
            step=step,
            name=f"{self.loss} regression",
            question=fingerprint(self, unit),
            delta=delta,
        )

    def _step_event(self, unit: Unit, multiplier: float) -> DiscreteGaussian:
        return DiscreteGaussian(multiplier, float(self.sensitivity(unit)), self.width * self.outputs)

    def _full_batch_price(self, unit: Unit, budget: dict[str, float | None]) -> tuple[float, Event]:
        """The noise multiplier of a step with all examples, and the event of all steps."""
        multiplier = step_multiplier(gaussian_budget(**budget), self.steps)
        if budget["rho"] is None:
            coordinates = self.width * self.outputs
            multiplier = discrete_multiplier(multiplier, float(self.sensitivity(unit)), coordinates)
        return multiplier, self._step_event(unit, multiplier) * self.steps

    def _sampled_price(self, unit: Unit, budget: dict[str, float | None]) -> tuple[float, Event]:
        """The same for steps with Poisson samples."""
        if isinstance(unit, Person) or rows_per_unit(unit) > 1 or unit.neighbors is Neighbors.REPLACE_ONE:
            raise InvalidParameter("learning.rate_of_examples", parameter="rate")
        epsilon, delta = budget["epsilon"], budget["delta"]
        if find_given(epsilon=epsilon, rho=budget["rho"], mu=budget["mu"]) != "epsilon" or delta is None:
            raise InvalidParameter("learning.rate_at_epsilon", parameter="rate")
        plan: Callable[[float], Event] = lambda m: self._step_event(unit, m).sample(self.rate) * self.steps
        guess = math.sqrt(self.steps) * self.rate + 1
        multiplier = calibrate(plan, epsilon=positive("epsilon", epsilon), delta=delta, guess=guess, tolerance=1e-4)
        return multiplier, Plan(plan(multiplier), delta)

    def _admit_rows(self, data: Any, unit: Unit) -> tuple[NDArray[np.int16], Floats]:
        rows, targets, persons = data
        if rows.shape != (targets.shape[0], self.width) or targets.shape[1] != self.outputs:
            raise DataError("learning.target_of_each")
        if isinstance(unit, Person):
            if persons is None or len(persons) != rows.shape[0]:
                raise DataError("learning.persons_needed", parameter="persons")
            bits = np.nan_to_num(targets, nan=-(2.0**60)).astype(np.int64)
            kept = keep_at_most(rows_per_unit(unit), persons, np.hstack([rows.astype(np.int64), bits]))
            rows, targets = rows[kept], targets[kept]
        if rows.shape[0] > MOST_ROWS:
            raise DataError("learning.too_many_examples")
        return rows, targets

    @np.errstate(all="ignore")
    def _descend(self, data: tuple[NDArray[np.int16], Floats], sigma: Fraction, rng: Rng) -> Floats:
        rows: NDArray[Any] = data[0].astype(np.float64) if data[0].size <= RESIDENT else data[0]
        weights, velocity = np.zeros((self.width, self.outputs)), np.zeros((self.width, self.outputs))
        unit = 1.0 / SCALE / RADIUS / (self.examples * self.rate)
        first = self.steps - max(1, round(self.average * self.steps))
        mean = np.zeros_like(weights)
        for turn in range(self.steps):
            exact = self.gradient(*self._draw_examples(rows, data[1], rng), weights)
            noise = discrete_gaussian(sigma, (self.width, self.outputs), rng=rng)
            velocity = self.momentum * velocity + add_noise(exact, noise) * unit + self.penalty * weights
            weights = _on_grid(weights - self.learning_rate * velocity)
            mean += weights / (self.steps - first) if turn >= first else 0.0
        return _on_grid(mean)

    def _draw_examples(self, rows: NDArray[np.generic], targets: Floats, rng: Rng) -> tuple[NDArray[Any], Floats]:
        """All examples, or those whose coin shows heads."""
        if self.rate == 1:
            return rows, targets
        places = bernoulli_places(self.rate, rows.shape[0], rng=rng)
        return rows[places], targets[places]

    def gradient(self, rows: NDArray[np.generic], targets: Floats, weights: Floats) -> Steps:
        """The exact sum of clipped gradients, in whole steps (width by outputs)."""
        total = np.zeros((self.width, self.outputs), np.int64)
        whole, residuals = weights / WEIGHT_STEP, loss_of(self.loss).residuals
        for block, goals in _blocks(rows, targets):
            missed = clip_residuals(residuals(block @ whole, goals), self.clip_steps)
            total += (block.T @ missed).astype(np.int64)
        return total


def logits_of(rows: NDArray[np.int16], weights: Floats) -> Floats:
    """Exact logits of whole rows, in units of LOGIT; each row by itself.

    >>> logits_of(np.array([[RADIUS]], np.int16), np.array([[0.5]])) * 2.0**-34
    array([[0.5]])
    """
    parts = [block @ (weights / WEIGHT_STEP) for block, _ in _blocks(rows, np.zeros((rows.shape[0], 0)))]
    return np.vstack(parts) if parts else np.zeros((0, weights.shape[1]))


def _blocks(rows: NDArray[np.generic], targets: Floats) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, rows.shape[0], BLOCK):
        part = slice(start, start + BLOCK)
        yield np.asarray(rows[part], np.float64), targets[part]


def step_multiplier(mu: float, steps: int) -> float:
    """sqrt(steps) / mu, rounded up."""
    root = math.sqrt(steps)
    while Fraction(root) ** 2 < steps:
        root = math.nextafter(root, math.inf)
    return round_up(Fraction(root) / Fraction(mu))


def _on_grid(weights: Floats) -> Floats:
    """Weights as whole multiples of 2**-20, each output's norm at most 2**18: then logits are exact."""
    norms = np.sqrt((weights * weights).sum(axis=0, keepdims=True))
    held = weights * np.minimum(1.0, (LARGEST_WEIGHT - 1) / np.maximum(norms, 1.0))
    return np.asarray(np.rint(np.nan_to_num(held) / WEIGHT_STEP) * WEIGHT_STEP)
