"""A linear system behind noise: the filter is the least-squares estimate, bands hold, and a controller runs on it."""

from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.streams import Estimate, LinearSystem

CART = LinearSystem(A=[[1, 1], [0, 1]], B=[[0.5], [1]], C=[[1, 0]], Q=np.diag([0.01, 0.01]), R=[[0.25]])  # type: ignore[arg-type]


def drive(system: Any, steps: Any, deviation: Any, rng: Any, gain: Any = None) -> tuple[Any, ...]:
    """States and noisy measurements of a system, driven by a controller on its own estimate if a gain is given."""
    state, belief = np.zeros(2), Estimate(np.zeros(2), np.eye(2))
    states, seen, beliefs, push = [], [], [], np.zeros(1)
    for _ in range(steps):
        state = system.A @ state + system.B @ push + rng.multivariate_normal(np.zeros(2), system.Q)
        measured = system.C @ state + rng.normal(0, np.sqrt(system.R[0, 0] + deviation**2), 1)
        belief = system.update(belief, measured, deviations=deviation, moved_by=push)
        push = np.zeros(1) if gain is None else -gain @ belief.mean
        states.append(state), seen.append(measured), beliefs.append(belief)
    return np.array(states), np.array(seen), beliefs


def test_the_filter_is_the_least_squares_estimate_of_all_that_was_published() -> None:
    rng = np.random.default_rng()
    system = LinearSystem(A=[[0.8]], C=[[2.0]], Q=[[0.5]], R=[[0.1]])
    seen = rng.normal(0, 3, 6)
    belief = Estimate(np.zeros(1), np.zeros((1, 1)))
    for measured in seen:
        belief = system.update(belief, [measured], deviations=1.5)
    times = np.arange(6)
    prior = np.array([[0.5 * sum(0.8 ** (i + j - 2 * k) for k in range(min(i, j) + 1)) for j in times] for i in times])
    total = 4 * prior + (0.1 + 1.5**2) * np.eye(6)
    assert belief.mean[0] == pytest.approx(float(2 * prior[-1] @ np.linalg.solve(total, seen)))
    assert belief.covariance[0, 0] == pytest.approx(prior[-1, -1] - 4 * prior[-1] @ np.linalg.solve(total, prior[-1]))


def test_bands_hold_and_bands_that_are_too_narrow_or_too_wide_are_found() -> None:
    """500 independent runs, true rate 95%: below 85%, or all of them, once in more than 1e9 (Chernoff)."""
    rng = np.random.default_rng()
    ends = [drive(CART, 12, 2.0, rng) for _ in range(500)]
    apart = np.array([np.abs(states[-1] - beliefs[-1].mean) / beliefs[-1].deviations for states, _, beliefs in ends])

    def holds(width: Any) -> Any:
        return 0.85 < np.mean(apart[:, 0] < width) < 1

    assert holds(1.96)
    assert not holds(1.96 * 0.4)
    assert not holds(1.96 * 5)


def test_a_controller_on_the_estimate_keeps_a_system_that_would_run_away() -> None:
    """With it the state has a deviation below 3 at every step: 40 is more than thirteen of them, over 300 steps."""
    rng = np.random.default_rng()
    gain = CART.find_gain(cost=np.eye(2), effort=1.0)
    assert np.abs(np.linalg.eigvals(CART.A - CART.B @ gain)).max() < 1
    states, _, _ = drive(CART, 300, 2.0, rng, gain)
    assert np.abs(states).max() < 40


def test_a_band_for_each_coordinate() -> None:
    bands = CART.estimate(np.ones((5, 1)), deviations=1.0, inputs=np.zeros((5, 1)))  # type: ignore[arg-type]
    assert len(bands) == 2
    assert bands[0].deviations[-1] < bands[0].deviations[0] + 1


@pytest.mark.parametrize("name", ["C", "Q", "R"])
def test_matrices_that_do_not_fit_are_refused_by_name(name: str) -> None:
    parts = {"A": np.eye(2), "C": np.eye(2), "Q": np.eye(2), "R": np.eye(2)}
    with pytest.raises(InvalidParameter, match=name):
        LinearSystem(**{**parts, name: np.ones((3, 5))})
