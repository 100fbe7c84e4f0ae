"""The binary tree, Honaker's combination and the whole square root: there by name, priced and exact like the others."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha import Ledger, Person, Reading
from mosha.core.errors import InvalidParameter
from mosha.streams import Sliding, counter, histogram, serve
from mosha.streams.noise.honaker import BinaryTree
from tests.streams.deviations import binary_deviation, honaker_deviation

HORIZON = 21


class Written:
    """A tape whose numbers are written by the test."""

    size = 1

    def __init__(self, numbers: Any = ()) -> None:
        self.numbers = list(numbers)

    def row(self, number: Any) -> Any:
        return self.numbers[number] if number < len(self.numbers) else 0


def running(tree: Any, data: Any, noise: Any = ()) -> Any:
    state, tape, values = tree.start(1), Written(noise), []
    for count in data:
        value, state = tree.step(state, count, tape)
        values.append(value)
    return np.cumsum(values)


def nodes(horizon: Any) -> list[Any]:
    """First and last step of each node, in the order in which they are full."""
    return [(t + 1 - (1 << level), t + 1) for t in range(horizon) for level in range(((t + 1) & -(t + 1)).bit_length())]


@pytest.mark.parametrize("combined", [True, False])
def test_without_noise_the_tree_tells_the_truth(combined: bool) -> None:
    data = [t * 7 % 5 for t in range(HORIZON)]
    assert running(BinaryTree(5, combined), data) == pytest.approx(np.cumsum(data))


@pytest.mark.parametrize("combined", [True, False])
def test_a_contribution_is_explained_by_one_step_of_noise_on_each_level(combined: bool) -> None:
    tree, noise = BinaryTree(5, combined), np.random.default_rng().integers(-99, 99, len(nodes(HORIZON)))
    data = [t % 3 for t in range(HORIZON)]
    for step in range(HORIZON):
        more = [count + (t == step) for t, count in enumerate(data)]
        moved = np.array([first <= step < last for first, last in nodes(HORIZON)], int)
        assert 1 <= moved.sum() <= tree.levels
        # the node sums, hence all that is published, are the same
        assert running(tree, more, noise - moved) == pytest.approx(running(tree, data, noise))
    assert max(sum(first <= step < last for first, last in nodes(16)) for step in range(16)) == 5  # the charge is met


@pytest.mark.parametrize(("combined", "deviation"), [(True, honaker_deviation), (False, binary_deviation)])
def test_errors_are_what_the_responses_to_noise_add_up_to(combined: bool, deviation: Any) -> None:
    tree = BinaryTree(5, combined)
    responses = [running(tree, [0] * HORIZON, [0] * i + [1]) for i in range(len(nodes(HORIZON)))]
    variances = np.sum(np.square(responses), axis=0)
    assert variances == pytest.approx([tree.variance(t) for t in range(1, HORIZON + 1)])
    assert np.sqrt(variances) == pytest.approx([deviation(t) for t in range(1, HORIZON + 1)])
    assert variances.mean() == pytest.approx(tree.mean_variance(HORIZON))
    assert variances.max() == pytest.approx(tree.largest_variance(HORIZON))


@pytest.mark.parametrize(
    ("asked", "name", "error"),
    [
        ({"epsilon": 1, "mechanism": "Honaker"}, "binary tree, Honaker, 11 levels", 26.5),
        ({"epsilon": 1, "mechanism": "binary tree, 11"}, "binary tree, 11 levels", 34.8),
        ({"rho": 0.5, "mechanism": "Honaker"}, "binary tree, Honaker, 11 levels", 5.650),
        ({"rho": 0.5, "mechanism": "binary tree, 11"}, "binary tree, 11 levels", 7.417),
        ({"rho": 0.5, "mechanism": "square-root Toeplitz", "memory": 1 << 14}, "square-root Toeplitz", 3.1098),
    ],
    ids=str,
)
def test_predicted_errors_are_the_published_ones(asked: Any, name: str, error: float) -> None:
    plan = counter(unit=Reading(), horizon=1024, **asked).plan
    assert plan.name == name
    assert plan.root_mean_square == pytest.approx(error, rel=2e-3)


def test_the_planner_never_picks_them_and_refuses_what_they_cannot_do() -> None:
    plan = counter(unit=Reading(), horizon=500, rho=0.5)
    assert not any(word in name for name, _ in plan.alternatives for word in ("binary", "square-root Toeplitz"))
    with pytest.raises(InvalidParameter):
        counter(unit=Reading(), horizon=500, rho=0.5, mechanism="Honaker", release=Sliding(4))
    with pytest.raises(InvalidParameter):  # more steps than may be remembered
        counter(unit=Reading(), horizon=1024, rho=0.5, mechanism="square-root Toeplitz", memory=600)


def test_persons_who_come_back_cost_more_noise() -> None:
    one = counter(unit=Reading(), horizon=64, epsilon=1, mechanism="Honaker").plan
    three = counter(unit=Person("p", at_most=3), horizon=64, epsilon=1, mechanism="Honaker").plan
    assert three.root_mean_square == pytest.approx(3 * one.root_mean_square, rel=2e-3)


@pytest.mark.parametrize("mechanism", ["Honaker", "square-root Toeplitz"])
def test_they_run_as_services_and_survive_a_stop(tmp_path: Path, mechanism: str) -> None:
    stream = counter(unit=Reading(), horizon=40, rho=1e4, mechanism=mechanism)
    account = Ledger(str(tmp_path / "book.db")).account("door", unit=Reading(), rho=1e5)
    for part in itertools.pairwise((0, 7, 8, 20)):
        with serve(account, stream, name="door", state=tmp_path / "door.state") as service:
            for step in range(*part):
                value = service.step([1, 1]).value
                assert abs(value - 2 * (step + 1)) < 1  # 1e-9: deviations are below 0.06


def test_many_series_go_through_a_binary_tree() -> None:
    stream = histogram(unit=Reading(), horizon=16, keys=["a", "b"], rho=1e4, mechanism="Honaker")
    account = Ledger.memory().account("door", unit=Reading(), rho=1e5)
    with account.open(stream) as run:
        for step in range(16):
            value = run.step(["a", "b", "a"]).value
            assert np.abs(value - (step + 1) * np.array([2, 1])).max() < 1
    assert math.isclose(stream.event.sensitivity, math.sqrt(5) * stream.plan.mechanism.finer, rel_tol=1e-6)  # type: ignore[attr-defined]
