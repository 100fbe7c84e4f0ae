"""Plans with correlated noise: groups that take turns, the price of that, and coefficients that leave least noise."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha.accounting import epsilon
from mosha.core.errors import InvalidParameter, RunClosed
from mosha.core.events import Gaussian, Sampled
from mosha.learning import DPFTRL, DPSGD
from mosha.learning.batches import Sampler
from mosha.mechanisms.plans.correlated import SCALE, column_norm, encoder
from mosha.mechanisms.plans.optimized_bands import mean_error, optimized_encoder
from mosha.mechanisms.plans.sampling import CyclicPoisson
from mosha.noise import secure
from mosha.streams.noise.toeplitz import lower_bound

SHAPE: dict[str, Any] = {"steps": 64, "rate": 0.02, "clip": 1.0}


def test_one_band_of_sampled_groups_costs_what_plain_descent_costs() -> None:
    plain = DPSGD(**SHAPE, noise_multiplier=0.8)
    banded = DPFTRL(**SHAPE, noise_multiplier=0.8, sampling="poisson", bands=1)
    assert banded.epsilon(1e-5) == pytest.approx(plain.epsilon(1e-5), rel=1e-6)
    assert banded.error_of_sums == pytest.approx(plain.error_of_sums)


def test_groups_that_are_drawn_whole_cost_what_shuffled_batches_cost() -> None:
    shape: dict[str, Any] = {"steps": 64, "rate": 1 / 8, "clip": 1.0, "bands": 8, "noise_multiplier": 6.0}
    whole, shuffled = DPFTRL(**shape, sampling="poisson"), DPFTRL(**shape)
    assert whole.epsilon(1e-5) == pytest.approx(shuffled.epsilon(1e-5), rel=1e-3)


def test_a_column_is_charged_as_one_sampled_gaussian_of_its_norm() -> None:
    plan = DPFTRL(**SHAPE, noise_multiplier=2.0, sampling="poisson", bands=8)
    wanted = epsilon(Sampled(Gaussian(2.0 / column_norm(plan.encoding)), 0.16) * 8, 1e-5)  # type: ignore[arg-type]
    assert plan.epsilon(1e-5) == pytest.approx(wanted, rel=1e-6)
    assert plan.epsilon(1e-5) < dataclasses.replace(plan, sampling="shuffled", rate=1 / 8).epsilon(1e-5)


def test_the_price_is_what_an_exact_computation_gives_for_one_turn() -> None:
    """Two steps, two bands, one unit: the loss of the mixture (1 - q) N(0, I) + q N(c, I), integrated numerically."""
    plan = DPFTRL(steps=2, rate=0.3, clip=1.0, noise_multiplier=1.0, sampling="poisson", bands=2)
    c = np.array(plan.encoding) / SCALE
    grid = np.linspace(-12, 16, 1201)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    area = (grid[1] - grid[0]) ** 2 / (2 * math.pi)
    base = np.exp(-(x**2 + y**2) / 2) * area
    mixed = 0.4 * base + 0.6 * np.exp(-((x - c[0]) ** 2 + (y - c[1]) ** 2) / 2) * area
    price = plan.epsilon(0.01)
    for one, other in ((mixed, base), (base, mixed)):
        assert np.maximum(one - math.exp(price) * other, 0).sum() <= 0.01 + 1e-5
    assert np.maximum(mixed - math.exp(0.98 * price) * base, 0).sum() > 0.01  # and no more is charged than that


def test_units_come_in_the_turn_of_their_group_alone_and_by_coins_of_the_declared_rate() -> None:
    plan = DPFTRL(steps=40, rate=0.05, clip=1.0, noise_multiplier=1.0, sampling="poisson", bands=4)
    sampler, people = Sampler(plan, 5_000), np.full(5_000, -1)
    drawn = [sampler.draw(step, secure()) for step in range(40)]
    for step, batch in enumerate(drawn):
        assert (np.isin(people[batch], (-1, step % 4))).all()
        people[batch] = step % 4
    total, law = sum(map(len, drawn)), binom(200_000, 0.05)
    assert min(law.cdf(total), law.sf(total - 1)) > 5e-10
    for wrong in (0.046, 0.054):
        assert min(binom(200_000, wrong).cdf(10_000), binom(200_000, wrong).sf(9_999)) < 5e-10
    sizes = np.bincount(people[people >= 0], minlength=4)
    assert sizes.min() > 900  # groups of about 1,117 of 5,000, seen at least once in ten coins of one fifth
    assert any(set(drawn[0]) != set(drawn[step]) for step in (4, 8, 12))


def test_groups_that_were_lost_are_not_drawn_again() -> None:
    plan = DPFTRL(steps=40, rate=0.05, clip=1.0, noise_multiplier=1.0, sampling="poisson", bands=4)
    with pytest.raises(RunClosed, match="lost"):
        Sampler(plan, 100).draw(5, secure())
    first, again = Sampler(plan, 100), Sampler(plan, 100)
    first.draw(0, secure())
    again.restore(first.state())
    assert set(again.draw(4, secure())) <= set(np.flatnonzero(first.state()[1] == 0))


@pytest.mark.parametrize(("bands", "steps"), [(4, 50), (16, 400), (256, 256)])
def test_optimized_coefficients_are_better_than_the_root_and_no_better_than_can_be(bands: int, steps: int) -> None:
    best, root = optimized_encoder(bands, steps), encoder(bands)
    found, usual = (column_norm(c) * mean_error(c, steps) for c in (best, root))
    assert lower_bound(steps) < found < usual
    if bands == steps:
        assert found < 1.06 * lower_bound(steps)  # the best Toeplitz matrix is this close to the best of all
    for place in range(1, min(bands, 6)):  # a minimum: no step to a side is better
        for step in (-64, 64):
            moved = tuple(c + step * (j == place) for j, c in enumerate(best))
            assert column_norm(moved) * mean_error(moved, steps) > found


def test_the_error_of_sums_is_what_the_matrix_says() -> None:
    c = np.array(optimized_encoder(4, 30)) / SCALE
    inverse = np.linalg.inv(sum(np.diag(np.full(30 - j, c[j]), -j) for j in range(4)))
    wanted = math.sqrt(np.square(np.tril(np.ones((30, 30))) @ inverse).sum() / 30)
    assert mean_error(optimized_encoder(4, 30), 30) == pytest.approx(wanted)


@pytest.mark.parametrize("promised", [1.0, 8.0])
def test_chosen_bands_are_never_worse_than_plain_descent(promised: float) -> None:
    plain = DPSGD(**SHAPE).calibrate(epsilon=promised, delta=1e-5)
    chosen = DPFTRL(**SHAPE, sampling="poisson").choose_bands(epsilon=promised, delta=1e-5)
    assert chosen.epsilon() <= promised
    assert chosen.error_of_sums <= plain.error_of_sums * (1 + 1e-6)
    if promised == 8.0:
        assert chosen.error_of_sums < 0.75 * plain.error_of_sums


def test_bands_that_no_sampling_allows_are_refused() -> None:
    for wrong in ({"sampling": "poisson", "bands": 51}, {"bands": 51}, {"coefficients": "dense"}):
        with pytest.raises(InvalidParameter):
            DPFTRL(**(SHAPE | {"bands": 4} | wrong))
    with pytest.raises(InvalidParameter):
        CyclicPoisson(0.3, 4)


@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
def test_most_steps_are_paid_for_with_the_coefficients_of_their_number(sampling: str) -> None:
    plan = DPFTRL(steps=1, rate=0.05, clip=1.0, bands=8, noise_multiplier=4.0, sampling=sampling)  # type: ignore[arg-type]
    found = plan.most_steps(epsilon=2, delta=1e-5)
    assert found.epsilon() <= 2
    assert dataclasses.replace(found, steps=found.steps + 8 + 20).epsilon() > 2


def test_a_unit_of_a_run_with_buffers_is_charged_for_the_norm_of_its_columns() -> None:
    """The price is that of one Gaussian vector, whose shift is the sum of all columns of a unit, overlaps included."""
    plan = DPFTRL(steps=60, rate=0.1, clip=1.0, noise_multiplier=8.0, buffers=2)
    matrix = sum(np.diag(np.full(60 - j, c), -j) for j, c in enumerate(plan.encoding.coefficients(60)))  # type: ignore[misc, union-attr]
    norm = float(np.linalg.norm(matrix[:, ::10].sum(axis=1)))  # type: ignore[index]
    assert plan.epsilon(1e-5) == pytest.approx(epsilon(Gaussian(8.0 / norm), 1e-5), rel=1e-5)
    apart = math.sqrt(6) * float(np.linalg.norm(matrix[:, 0]))  # type: ignore[index]
    assert norm > 1.01 * apart  # columns do overlap
    assert plan.epsilon(1e-5, after=30) < plan.epsilon(1e-5)


def test_buffers_leave_less_noise_than_as_many_bands_and_are_refused_where_steps_of_a_unit_are_unknown() -> None:
    run: dict[str, Any] = {"steps": 200, "rate": 0.05, "clip": 1.0}
    buffered, banded, plain = (
        plan.calibrate(epsilon=2, delta=1e-5)
        for plan in (DPFTRL(**run, buffers=2), DPFTRL(**run, bands=2), DPSGD(**run, sampling="shuffled"))
    )
    assert buffered.error_of_sums < 0.6 * banded.error_of_sums < 0.6 * plain.error_of_sums
    assert buffered.bands == 200
    for wrong in ({"sampling": "poisson"}, {"buffers": 9}, {"buffers": 0}, {"steps": 1 << 21}):
        with pytest.raises(InvalidParameter):
            DPFTRL(**(run | {"buffers": 2} | wrong))
    with pytest.raises(InvalidParameter, match="adaptive"):
        DPFTRL(**run, buffers=2, clipping="adaptive", batch=10)


def test_the_grid_leaves_room_for_what_buffers_round() -> None:
    from mosha.learning.rounding import grid_of

    shape: dict[str, Any] = {"noise_multiplier": 4.0, "physical": 64, "fine": 21}
    for coordinates in (10, 10**6):
        one, two = (grid_of(coordinates=k * coordinates, **shape) for k in (1, 2))
        room = (one.target - two.target) * 2.0**one.bits / math.sqrt(coordinates)
        assert 1.64 < room < 1.66
