"""A linear system seen through private noise: Kalman's filter with bands, and a controller that runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.streams.smoothing import Band

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Estimate", "LinearSystem"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """What is believed of the state at one step: its `mean` and its `covariance`.

    >>> Estimate(np.zeros(1), np.eye(1)).mean.tolist()
    [0.0]
    """

    mean: Matrix
    covariance: Matrix

    @property
    def deviations(self) -> Matrix:
        """The standard deviation of each coordinate."""
        found: Matrix = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return found


@explain_wrong_calls
class LinearSystem:
    """x' = A x + B u + w, y = C x + v, with w of covariance Q and v of covariance R; what is published is y plus noise.

    Guarantee:
        Post-processing: nothing here sees anything but published values, public matrices and public noise. It is free,
        and as private as what was published.

    Units:
        `deviations` are those of the noise that was added for privacy, in the unit of y. Bands hold as far as the
        matrices are true and the noise is close to normal.

    Args:
        A: how the state moves, n by n.
        C: what is measured of it, m by n.
        Q: covariance of what moves the state by itself, n by n.
        R: covariance of the sensors' own errors, m by m.
        B: how an input moves the state, n by k; none by default.

    >>> room = LinearSystem(A=[[0.9]], C=[[1.0]], Q=[[0.1]], R=[[0.0]])
    >>> band = room.estimate([[20.0], [18.5], [16.0]], deviations=2.0)[0]
    >>> band.values.round(1).tolist(), bool(np.all(band.deviations < 2.0))
    ([20.0, 18.2, 16.3], True)
    """

    def __init__(self, *, A: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike, B: ArrayLike | None = None) -> None:  # noqa: N803
        self.A, self.C, self.Q, self.R = (np.atleast_2d(np.asarray(part, np.float64)) for part in (A, C, Q, R))
        n, m = self.A.shape[0], self.C.shape[0]
        self.B = np.zeros((n, 1)) if B is None else np.asarray(B, np.float64).reshape(n, -1)
        for name, part, shape in (
            ("A", self.A, (n, n)), ("C", self.C, (m, n)), ("Q", self.Q, (n, n)), ("R", self.R, (m, m)),
        ):  # fmt: skip
            if part.shape != shape or not np.all(np.isfinite(part)):
                raise InvalidParameter("streams.not_a_linear_system", parameter=name)

    def begin(self) -> Estimate:
        """Nothing is known: a state that may be anywhere."""
        n = self.A.shape[0]
        return Estimate(np.zeros(n), np.eye(n) * 1e6)

    def update(
        self, before: Estimate, published: ArrayLike, *, deviations: ArrayLike, moved_by: ArrayLike | None = None
    ) -> Estimate:
        """One step of the filter: move with the system, then believe what was published as far as its noise allows.

        Args:
            before: what was believed a step ago.
            published: the noisy measurement, m numbers.
            deviations: of the noise that was added to it, one number or m.
            moved_by: the input that was applied since, k numbers.
        """
        push = np.zeros(self.B.shape[1]) if moved_by is None else np.atleast_1d(np.asarray(moved_by, np.float64))
        mean = self.A @ before.mean + self.B @ push
        spread = self.A @ before.covariance @ self.A.T + self.Q
        noise = np.broadcast_to(np.asarray(deviations, np.float64), (self.C.shape[0],))
        total = self.C @ spread @ self.C.T + self.R + np.diag(noise**2)
        gain = np.linalg.solve(total, self.C @ spread).T
        left = np.eye(mean.size) - gain @ self.C
        kept = left @ spread @ left.T + gain @ (self.R + np.diag(noise**2)) @ gain.T
        surprise = np.atleast_1d(np.asarray(published, np.float64)) - self.C @ mean
        return Estimate(mean + gain @ surprise, kept)

    def estimate(
        self, published: Iterable[ArrayLike], *, deviations: ArrayLike, inputs: Sequence[ArrayLike] | None = None
    ) -> list[Band]:
        """A band for each coordinate of the state, from what was published up to each step.

        Args:
            published: a noisy measurement for each step.
            deviations: of the noise that was added, one number or one for each coordinate of y.
            inputs: what was applied before each step.
        """
        belief, found = self.begin(), []
        for step, measurement in enumerate(published):
            push = None if inputs is None else inputs[step]
            belief = self.update(belief, measurement, deviations=deviations, moved_by=push)
            found.append(belief)
        means, widths = np.array([b.mean for b in found]), np.array([b.deviations for b in found])
        return [Band(means[:, k], widths[:, k]) for k in range(self.A.shape[0])]

    def find_gain(self, *, cost: ArrayLike, effort: ArrayLike) -> Matrix:
        """The gain K of the controller u = -K x that keeps x' cost x + u' effort u least in the long run.

        Args:
            cost: of being away from zero, n by n.
            effort: of the input, k by k.

        >>> LinearSystem(A=[[1.0]], B=[[1.0]], C=[[1.0]], Q=[[1.0]], R=[[1.0]]).find_gain(cost=1, effort=1).round(3)
        array([[0.618]])
        """
        from scipy.linalg import solve_discrete_are  # noqa: PLC0415  (controllers alone need it)

        weigh, price = np.atleast_2d(np.asarray(cost, np.float64)), np.atleast_2d(np.asarray(effort, np.float64))
        value = solve_discrete_are(self.A, self.B, weigh, price)
        return np.asarray(np.linalg.solve(price + self.B.T @ value @ self.B, self.B.T @ value @ self.A), np.float64)
