"""Cox's proportional hazards on a public grid of time, by private descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteGaussian
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit
from mosha.exact.grid import add_noise
from mosha.learning.linear.descent import gaussian_budget, logits_of, step_multiplier
from mosha.learning.linear.losses import SCALE, clip_residuals, rates_of
from mosha.learning.linear.rows import RADIUS, BoundedRows
from mosha.mechanisms.gaussian import discrete_multiplier
from mosha.models.model import RowModel
from mosha.models.paying import Price
from mosha.models.ranges import Between
from mosha.models.sums.row_sums import BLOCK, Floats, Wholes, check_examples, read_matrix
from mosha.noise import LARGEST_SCALE, discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["CoxRegression", "SurvivalDescent"]

PART = 1 << 10
"""Exposure to one interval of time, in steps."""

CLIP = 3 << 17
"""What an example's residuals are clipped to: 1.5, in steps."""


@dataclass(frozen=True)
class SurvivalDescent:
    """Descent for proportional hazards whose baseline is constant in each of `intervals` equal intervals of time.

    An example has residuals r_k = exposure_k h_k exp(x'w) - event_k in the intervals and r, their sum: r is the
    gradient along x, the r_k that of the logarithms of the baseline h_k (Friedman 1982: the likelihood is that of
    Cox's model with such a baseline).

    `features`, `horizon`, `examples`, `steps` and `learning_rate` are those of `CoxRegression`. Methods take bounded
    `rows`, the `unit` that is hidden, and the `price`.

    Guarantee:
        Exposures and hazards are whole numbers, exp is looked up, every residual is rounded once: functions of the
        example alone. `clip_residuals` bounds |(r_1, ..., r_K, r)| by C (squares sum below 2**53: |r_k| <= 2**20, at
        most 2**8 of them, |r| <= 2**25), so an example adds (x r, R r_1, ..., R r_K), |x| <= R, of norm at most R C.
        m examples of a unit: m R C, twice that where it is replaced. Each step has discrete Gaussian noise for it,
        and squares of mu add over the steps (`linear_descent.md`).

    >>> from mosha import Example
    >>> plan = SurvivalDescent(features=2, horizon=10.0, intervals=4, examples=1000, steps=5)
    >>> plan.sensitivity(Example()) / RADIUS / SCALE
    1.5
    """

    features: int
    horizon: float
    intervals: int
    examples: int
    steps: int
    learning_rate: float = 4.0

    def sensitivity(self, unit: Unit) -> int:
        """In steps."""
        return RADIUS * CLIP * rows_per_unit(unit) * (2 if unit.neighbors is Neighbors.REPLACE_ONE else 1)

    def measurement(self, rows: BoundedRows, unit: Unit, price: Price) -> Measurement:
        """All steps, paid at once; data are (X, (time, event) of each example, persons)."""
        budget = {"epsilon": price.epsilon, "delta": price.delta, "rho": price.rho, "mu": price.mu}
        multiplier = step_multiplier(gaussian_budget(**budget), self.steps)
        width, sensitivity = self.features + self.intervals, float(self.sensitivity(unit))
        if price.rho is None:
            multiplier = discrete_multiplier(multiplier, sensitivity, width)
        drawn = enlarge_scale(Fraction(multiplier) * self.sensitivity(unit))
        if not 1 << 10 <= drawn <= LARGEST_SCALE:
            raise InvalidParameter("learning.noise_out_of_range")

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[Floats, object]:
            del ask
            return self._descend(*self._admit(data, rows, unit), drawn, rng), state

        event = DiscreteGaussian(multiplier, sensitivity, width) * self.steps
        question = f"{self!r} {rows!r} {write_as_stored(unit)}"
        return Measurement(
            unit=unit, event=event, step=step, name="Cox regression", question=question, delta=price.delta
        )

    def _admit(self, data: object, rows: BoundedRows, unit: Unit) -> tuple[Wholes, Wholes]:
        """Whole rows; and for each example its exposures and its event, which is in one interval or in none."""
        features, targets, persons = check_examples(data)
        steps = rows.steps(read_matrix(features, self.features)).astype(np.int64)
        times = read_matrix(targets, 2)
        if len(times) != len(steps):
            raise DataError("models.label_of_each", parameter="y")
        whole = np.hstack([steps, self._follow(times)])
        if isinstance(unit, Person):
            if persons is None:
                raise DataError("models.whose_examples", parameter="persons")
            whole = whole[keep_at_most(rows_per_unit(unit), persons, whole)]
        return whole[:, : self.features], whole[:, self.features :]

    @np.errstate(all="ignore")
    def _follow(self, times: Floats) -> Wholes:
        known = np.isfinite(times).all(axis=1) & (times[:, 0] >= 0)
        end = np.where(known, np.clip(times[:, 0] / self.horizon, 0.0, 1.0) * self.intervals, 0.0)
        exposure = np.rint(np.clip(end[:, None] - np.arange(self.intervals), 0.0, 1.0) * PART).astype(np.int64)
        within = known & (times[:, 1] > 0) & (times[:, 0] <= self.horizon)
        place = np.minimum(np.floor(end), self.intervals - 1).astype(np.int64)
        events = (np.arange(self.intervals) == place[:, None]) & within[:, None]
        return np.hstack([exposure, events.astype(np.int64)])

    @np.errstate(all="ignore")
    def _descend(self, rows: Wholes, followed: Wholes, sigma: Fraction, rng: Rng) -> Floats:
        width = self.features + self.intervals
        position, velocity, mean = np.zeros(width), np.zeros(width), np.zeros(width)
        position[self.features :] = np.log(0.5 / self.intervals)
        first = self.steps - max(1, self.steps // 3)
        lengths = np.full(width, self.learning_rate)
        lengths[self.features :] *= self.intervals
        for turn in range(self.steps):
            exact = self._gradient(rows, followed, position)
            noisy = add_noise(exact, discrete_gaussian(sigma, width, rng=rng))
            velocity = 0.8 * velocity + noisy / (SCALE * RADIUS) / self.examples
            position = np.clip(np.nan_to_num(position - lengths * 0.2 * velocity), -12.0, 12.0)
            position = np.rint(position * 2.0**20) * 2.0**-20
            mean += position / (self.steps - first) if turn >= first else 0.0
        return np.asarray(np.rint(mean * 2.0**20) * 2.0**-20)

    def _gradient(self, rows: Wholes, followed: Wholes, position: Floats) -> Wholes:
        weights, total = position[: self.features].reshape(-1, 1), np.zeros(len(position), np.int64)
        hazards = np.rint(np.exp(position[self.features :]) * 2.0**20)
        for start in range(0, rows.shape[0], BLOCK):
            block, seen = rows[start : start + BLOCK], followed[start : start + BLOCK]
            rates = rates_of(logits_of(block.astype(np.int16), weights)) / SCALE
            expected = np.rint(seen[:, : self.intervals] * hazards * rates * (SCALE / PART / 2.0**20))
            missed = np.clip(expected, 0.0, 4.0 * SCALE) - SCALE * seen[:, self.intervals :]
            whole = np.clip(missed.sum(axis=1), -(2.0**25), 2.0**25)
            parts = clip_residuals(np.column_stack([missed, whole]), CLIP)
            total[: self.features] += (block.astype(np.float64).T @ parts[:, -1]).astype(np.int64)
            total[self.features :] += (parts[:, :-1].sum(axis=0) * RADIUS).astype(np.int64)
        return total


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class CoxRegression(RowModel):
    """How features multiply the hazard: proportional hazards, with a baseline on a public grid of time.

    Args:
        horizon: how long examples are followed; what happens later is not seen.
        intervals: into so many equal parts the time until then is cut.
        examples: the declared number of examples (public; the true number is never read).
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        steps: the number of descent steps.
        learning_rate: the length of a step.
        epsilon: the price, together with `delta`; or
        delta: the probability that goes with epsilon; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `SurvivalDescent`, paid as a whole; everything else is post-processing.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(-1, 1, size=(20000, 1))
    >>> time = np.random.default_rng().exponential(4 / np.exp(X[:, 0]))
    >>> y = np.column_stack([np.minimum(time, 5), time < 5])
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=2, delta=1e-6)
    >>> model = CoxRegression(horizon=5, examples=20000, between=(-1, 1), mu=1.9).fit(X, y, account=account)
    >>> bool(abs(model.coef_[0] - 1) < 0.3)
    True
    """

    _kind: ClassVar[str] = "regressor"
    _fitted: ClassVar[str] = "coef_"
    _targets: ClassVar[int] = 2
    horizon: float
    intervals: int = 8
    examples: int
    between: Between = None
    steps: int = 80
    learning_rate: float = 4.0

    def _bound_rows(self, features: int, names: Sequence[str] | None) -> BoundedRows:
        ranges = self._read_ranges(self.between, features, names)
        return BoundedRows(features, (ranges.lows, ranges.highs), intercept=False)

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens: data are (X, y, persons).

        `y` has two columns: how long an example was followed, and whether the event ended that.
        """
        intervals, steps = positive_integer("intervals", self.intervals), positive_integer("steps", self.steps)
        if intervals > 1 << 8 or steps > 1 << 12 or features > 1 << 10:
            raise InvalidParameter("models.size_of_survival", parameter="intervals")
        plan = SurvivalDescent(
            features, positive("horizon", self.horizon), intervals, positive_integer("examples", self.examples), steps,
            positive("learning_rate", self.learning_rate),
        )  # fmt: skip
        return plan.measurement(self._bound_rows(features, names), self.protected, self.price)

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        del measurement
        features = self.n_features_in_
        rows = self._bound_rows(features, names)
        found = np.asarray(value, np.float64)
        coefficients, offset = rows.in_units(found[:features].reshape(-1, 1))
        self.coef_, self._offset, self._rows = coefficients[0], float(offset[0]), rows
        self.times_ = np.linspace(0.0, self.horizon, self.intervals + 1)
        self.baseline_hazard_ = np.exp(found[features:]) * self.intervals / self.horizon

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The hazard of each public example beside one in the middle of all ranges."""
        rows = self._read(X)
        assert self._rows.between is not None
        held = np.clip(rows, *self._rows.between)
        return np.asarray(np.exp(held @ self.coef_ + self._offset))

    def predict_survival(self, X: object) -> Floats:  # noqa: N803
        """The probability to be without event at each of `times_`, a row for each public example."""
        width = self.horizon / self.intervals
        whole = np.concatenate([[0.0], np.cumsum(self.baseline_hazard_ * width)])
        return np.asarray(np.exp(-np.outer(self.predict(X), whole)))
