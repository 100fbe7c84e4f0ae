"""Every event is covered by its pair: compared with exact curves where there are formulas, with sums where not."""

import math
import random
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from mosha import accounting
from mosha.accounting.losses.dominating import cover, read
from mosha.accounting.losses.pair import Band
from mosha.core.events import (
    Approx,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Parallel,
    Plan,
    Pure,
    RandomizedResponse,
    Tree,
    ZeroConcentrated,
)
from tests.accounting import exact

EPSILONS = [0.0, 0.01, 0.1, 0.3, 0.7, 1.1, 2.0]
CURVES = {
    "gaussian": (Gaussian(1.3), lambda e: exact.gaussian_delta(1 / mp.mpf(1.3), e)),
    "matrix": (Matrix(2.0, 1.5), lambda e: exact.gaussian_delta(0.75, e)),
    "tree": (Tree(4.0, 9), lambda e: exact.gaussian_delta(0.75, e)),
    "group": (Group(Gaussian(3.0), 2), lambda e: exact.gaussian_delta(mp.mpf(2) / 3, e)),
    "laplace": (Laplace(1.25), lambda e: exact.laplace_delta(0.8, e)),
    "group of laplace": (Group(Laplace(2.5), 2), lambda e: exact.laplace_delta(0.8, e)),
    "coin": (RandomizedResponse(0.9), lambda e: exact.coins_delta(0.9, 1, e)),
    "pure": (Pure(0.9), lambda e: exact.coins_delta(0.9, 1, e)),
    "approx": (Approx(0.9, 1e-3), lambda e: mp.mpf(1e-3) + (1 - mp.mpf(1e-3)) * exact.coins_delta(0.9, 1, e)),
    "failure": (Failure(Laplace(1.25), 1e-3), lambda e: 1e-3 + (1 - mp.mpf(1e-3)) * exact.laplace_delta(0.8, e)),
    "discrete laplace": (
        DiscreteLaplace(1.25, 7),
        lambda e: exact.atoms_delta(exact.discrete_laplace_atoms(mp.mpf(1.25) * 7, 7), e),
    ),
    "discrete gaussian": (
        DiscreteGaussian(1.5, 2.0),
        lambda e: exact.atoms_delta(exact.discrete_gaussian_atoms(3.0, 2), e),
    ),
    "sampled gaussian": (
        Gaussian(1.3).sample(0.05),
        lambda e: exact.sampled_delta(lambda x: exact.gaussian_delta(1 / mp.mpf(1.3), x), 0.05, e),
    ),
    "sampled laplace": (
        Laplace(0.8).sample(0.3),
        lambda e: exact.sampled_delta(lambda x: exact.laplace_delta(1.25, x), 0.3, e),
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_single_event_has_its_exact_curve(name: Any) -> None:
    event, truth = CURVES[name]
    for epsilon in EPSILONS:
        low, high = accounting.bounds(event, epsilon=epsilon)
        true = truth(epsilon)
        assert low <= true * (1 + mp.mpf(10) ** -13) + mp.mpf(10) ** -30
        assert high >= true * (1 - mp.mpf(10) ** -15)
        assert high == pytest.approx(float(true), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("sigma", "move", "count"), [(1.7, 1, 3), (4.0, 3, 2)])
def test_discrete_gaussians_compose_exactly(sigma: float, move: int, count: int) -> None:
    atoms = exact.discrete_gaussian_atoms(sigma, move)
    atoms = [(x, p) for x, p in atoms if p > mp.mpf(10) ** -25]
    total = atoms
    for _ in range(count - 1):
        total = exact.composed(total, atoms)
    event = DiscreteGaussian(sigma / move, float(move)) * count
    for epsilon in (0.2, 1.0):
        low, high = accounting.bounds(event, epsilon=epsilon)
        true = exact.atoms_delta(total, epsilon)
        assert low <= true * (1 + mp.mpf(10) ** -9)
        assert high >= true * (1 - mp.mpf(10) ** -12)
        assert high == pytest.approx(low, rel=1e-5)


def test_wide_discrete_gaussians_are_priced_like_continuous_ones_and_not_below() -> None:
    for event in (DiscreteGaussian(5.0, 500.0), DiscreteGaussian(5.0, 64.0, 1000), DiscreteGaussian(2.0, 3.0, 10**9)):
        low, high = accounting.bounds(event * 3, delta=1e-8)
        plain = accounting.epsilon(Gaussian(event.noise_multiplier) * 3, 1e-8)
        assert low <= plain * (1 + 1e-9)
        assert high >= plain * (1 - 1e-9)
        assert high <= plain * (1 + 3 / (event.noise_multiplier * event.sensitivity) ** 2)


def test_narrow_discrete_gaussian_vectors_have_no_pair() -> None:
    assert cover(DiscreteGaussian(1.0, 1.0, 10)) is None
    assert math.isfinite(accounting.epsilon(DiscreteGaussian(1.0, 1.0, 10), 1e-6))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.9), (0.3, 0.3, 0.4)])
def test_laplace_noise_on_a_vector_costs_no_more_than_on_one_number(shares: Any) -> None:
    """The product of shifts a and b is covered by the shift a + b (dominating.md)."""
    for width in (0.2, 3.0):
        vector = sum(Laplace(1 / (width * share)) for share in shares)
        for epsilon in (0.0, 0.25 * width, 0.8 * width):
            low, _ = accounting.bounds(vector, epsilon=epsilon)  # type: ignore[arg-type]
            assert low <= exact.laplace_delta(width, epsilon)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 5), (4, 3)])
def test_discrete_laplace_noise_on_a_vector_costs_no_more_than_on_one_number(first: int, second: int) -> None:
    for scale in (0.7, 3.0, 40.0):
        product = exact.composed(
            exact.discrete_laplace_atoms(scale, first), exact.discrete_laplace_atoms(scale, second)
        )
        whole = exact.discrete_laplace_atoms(scale, first + second)
        for loss, _ in whole:  # both curves are straight between these losses
            assert exact.atoms_delta(product, loss) <= exact.atoms_delta(whole, loss) + mp.mpf(10) ** -45
    # and one step less would not do
    product = exact.composed(exact.discrete_laplace_atoms(3.0, first), exact.discrete_laplace_atoms(3.0, second))
    smaller = exact.discrete_laplace_atoms(3.0, first + second - 1)
    most = max(loss for loss, _ in smaller)
    assert exact.atoms_delta(product, most) > exact.atoms_delta(smaller, most)


def test_many_steps_of_discrete_laplace_approach_the_continuous_curve() -> None:
    for steps in (5000, 2**40):
        low, high = accounting.bounds(DiscreteLaplace(1.25, steps) * 50, delta=1e-7)
        plain = accounting.epsilon(Laplace(1.25) * 50, 1e-7)
        assert low <= plain * 1.0001
        assert plain * 0.9999 <= high <= plain * 1.0002


def test_bounded_range_covers_every_pair_of_losses_at_a_distance() -> None:
    width = 0.8
    for offset in np.linspace(0.01, width - 0.01, 9):
        top = (1 - math.exp(offset - width)) / (1 - math.exp(-width))
        for epsilon in np.linspace(-0.7, 0.7, 15):
            told = top * max(0.0, 1 - math.exp(epsilon - offset))
            told += (1 - top) * max(0.0, 1 - math.exp(epsilon - offset + width))
            cells = Band(width, ends=False).cells(np.array([epsilon]))
            assert told <= cells.p_above - math.exp(epsilon) * cells.q_above + 1e-12
    assert accounting.delta(Exponential(width), 0.0) == pytest.approx(math.tanh(width / 4), rel=1e-9)


def mixture_delta(rate: Any, first: Any, second: Any, epsilon: Any) -> float:
    """(1 - rate) N(0, 1) + rate N(first, 1) against the same with `second`, by a fine sum."""
    x = np.linspace(-12, 12, 400_001)
    normal = lambda mean: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)
    p, q = ((1 - rate) * normal(0.0) + rate * normal(m) for m in (first, second))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_replacement_in_a_sample_covers_units_that_pull_in_opposite_directions(rate: float) -> None:
    mu = 1.2
    event = Gaussian(1 / mu).sample(rate, neighbors="replace-one")
    for first, second in ((mu / 2, -mu / 2), (mu, 0.0), (0.0, mu), (0.3 * mu, -0.7 * mu)):
        for epsilon in (0.0, 0.05, 0.3, 1.0):
            assert mixture_delta(rate, first, second, epsilon) <= accounting.delta(event, epsilon) + 1e-9
    assert mixture_delta(rate, mu, 0.0, 0.05) == pytest.approx(accounting.delta(event, 0.05), rel=1e-6)


def test_a_fixed_size_sample_is_priced_by_replacement() -> None:
    fixed = FixedSizeSampled(Gaussian(1.5), 10, 1000) * 30
    poisson = Gaussian(1.5).sample(0.01, neighbors="replace-one") * 30
    assert accounting.epsilon(fixed, 1e-6) == accounting.epsilon(poisson, 1e-6)
    assert accounting.epsilon(FixedSizeSampled(Laplace(2), 5, 5), 1e-6) == accounting.epsilon(Laplace(2), 1e-6)


def test_parallel_parts_cost_the_dearest_at_every_epsilon() -> None:
    parts = (Laplace(1.0), Gaussian(1.1), RandomizedResponse(0.4) * 3)
    for epsilon in (0.1, 0.9, 2.0):
        prices = [accounting.bounds(part, epsilon=epsilon) for part in parts]
        whole = accounting.delta(Parallel(parts), epsilon)
        assert whole >= max(low for low, _ in prices)
        assert whole <= max(high for _, high in prices) * 1.001
    assert accounting.epsilon(Parallel((Gaussian(2), Gaussian(3))), 1e-6) == pytest.approx(
        accounting.epsilon(Gaussian(2), 1e-6), rel=1e-9
    )


def test_a_sampled_composition_is_priced_as_one_pair() -> None:
    inner = Gaussian(2.0) + Laplace(3.0)
    _, high = accounting.bounds(inner.sample(0.1), epsilon=0.2)
    scaled = math.log((math.exp(0.2) - 0.9) / 0.1)
    low_inner, high_inner = accounting.bounds(inner, epsilon=scaled)
    assert 0.1 * low_inner <= high <= 0.1 * high_inner * 1.001


def test_wrappers_change_nothing_that_they_should_not() -> None:
    event = Gaussian(3) * 4 + Laplace(5)
    for wrapped in (Plan(event, 1e-6), Parallel((event,)), Group(event, 1), Failure(event, 0.0)):
        assert accounting.epsilon(wrapped, 1e-6) == pytest.approx(accounting.epsilon(event, 1e-6), rel=1e-9)


def test_reading_counts_every_part_once() -> None:
    reading = read((Laplace(2) * 3 + Plan(Laplace(2) * 2 + Gaussian(5), 1e-6)) * 10 + ZeroConcentrated(0.1))
    assert [(c.upper, n) for c, n in reading.parts] == [((Band(0.5, ends=True),), 50)]
    assert reading.upper_variance == pytest.approx(10 / 25)
    assert reading.rest == [(ZeroConcentrated(0.1), 1)]
    assert not reading.is_tight


@pytest.mark.parametrize("rate", [1e-9, 0.5, 1 - 1e-9, 1.0])
def test_extreme_rates_are_priced(rate: Any) -> None:
    whole = accounting.epsilon(Gaussian(1), 1e-6)
    assert 0 <= accounting.epsilon(Gaussian(1).sample(rate), 1e-6) <= whole * (1 + 1e-9)


def test_fresh_pairs_are_covered_on_every_run() -> None:
    """Random events against their exact curves, at random epsilons."""
    for _ in range(20):
        mu, rate, epsilon = random.uniform(0.05, 3), random.uniform(1e-4, 0.9), random.uniform(0, 2)
        event = Gaussian(1 / mu).sample(rate)
        mu = 1 / mp.mpf(1 / mu)
        true = exact.sampled_delta(lambda x, mu=mu: exact.gaussian_delta(mu, x), rate, epsilon)
        low, high = accounting.bounds(event, epsilon=epsilon)
        assert low <= true * (1 + mp.mpf(10) ** -12) + mp.mpf(10) ** -30
        assert high >= true * (1 - mp.mpf(10) ** -14)
