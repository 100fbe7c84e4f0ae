"""Residuals: what one row moves, what noise they carry, and what is rebuilt from them."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.mechanisms.residuals.axis import binary_axis, flat_axis, tree_of_groups
from mosha.mechanisms.residuals.planning import Workload, best_shares, terms_of
from mosha.mechanisms.residuals.residuals import ResidualNoise, cells_of, marginal_of, residual_of
from mosha.noise import secure

AXES = {
    "flat": (flat_axis(2), flat_axis(3), flat_axis(4)),
    "ranges": (binary_axis(5), flat_axis(3)),
    "hierarchy": (tree_of_groups([0, 0, 0, 1, 1, 2]), binary_axis(4), flat_axis(2)),
}


def noise_for(axes: Any, shares: Any, multiplier: float = 2.0, reach: Any = 1) -> Any:
    largest = max(math.prod(axes[c].levels[v - 1].common for c, v in term) for term in shares)
    resolution = ResidualNoise.resolution_for(reach, largest, min(shares.values()))
    return ResidualNoise(multiplier, reach, resolution, sum(cells_of(axes, term) for term in shares))


def shares_of(axes: Any, ways: Any = 2) -> Any:
    sets = tuple(itertools.combinations(range(len(axes)), ways))
    return best_shares(Workload(axes, sets, (1.0,) * len(sets)))


def margin_of_row(axes: Any, columns: Any, row: Any) -> Any:
    table = np.zeros([axes[c].size for c in columns], np.int64)
    table[tuple(row[c] for c in columns)] = 1
    return table


@pytest.mark.parametrize("kind", AXES)
@pytest.mark.parametrize("reach", [1, 7, 2**16])
def test_no_row_moves_all_residuals_together_by_more_than_the_resolution(kind: Any, reach: Any) -> None:
    axes = AXES[kind]
    shares = shares_of(axes)
    noise = noise_for(axes, shares, reach=reach)
    factors = noise.factors(axes, shares)
    furthest = 0
    for row in itertools.product(*(range(axis.size) for axis in axes)):
        moved = 0
        for term, factor in factors.items():
            columns = tuple(c for c, _ in term)
            vector = residual_of(axes, term, margin_of_row(axes, columns, row), factor)
            moved += sum(int(n) ** 2 for n in vector.reshape(-1))
        furthest = max(furthest, moved)
        assert moved * reach**2 <= noise.resolution**2
    assert furthest * reach**2 >= 0.95 * noise.resolution**2  # and the bound is no looser than rounding makes it


@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 3), (4, 2, 3)])
def test_every_row_moves_a_flat_residual_by_exactly_the_root_of_its_share(sizes: Any) -> None:
    axes = tuple(flat_axis(size) for size in sizes)
    term = tuple((c, 1) for c in range(len(sizes)))
    share = math.prod((1 - Fraction(1, size) for size in sizes), start=Fraction(1))
    for row in itertools.product(*map(range, sizes)):
        vector = residual_of(axes, term, margin_of_row(axes, tuple(range(len(sizes))), row), 1)
        assert sum(int(n) ** 2 for n in vector.reshape(-1)) == share * math.prod(sizes) ** 2


@pytest.mark.parametrize("kind", AXES)
@pytest.mark.parametrize("multiplier", [0.3, 60.0])
def test_grids_of_their_own_move_no_further_and_have_no_less_noise(kind: Any, multiplier: float) -> None:
    axes = AXES[kind]
    shares = shares_of(axes)
    noise = replace(noise_for(axes, shares, multiplier), reach=2**14, resolution=2**40)
    coarser = 0
    for term, factor in noise.factors(axes, shares).items():
        own, sigma = noise.coarsen(factor)
        grid = round(noise.sigma / sigma * (1 + 1e-6))
        assert grid.bit_count() == 1, term
        assert own * grid <= factor < (own + 1) * grid, term
        assert sigma >= 2**12
        if grid > 1:
            least = Fraction(multiplier) * noise.resolution / grid
            assert sigma**2 >= least**2 + Fraction((100 + 24) * math.log(2) + math.log(5)) / Fraction(2 * math.pi**2)
            coarser += 1
    assert coarser


@pytest.mark.parametrize("people", [10**5, 10**7, 10**9])
def test_no_number_of_people_is_too_large_for_the_grid(people: int) -> None:
    """False alarms: below 1e-9. Beyond 4 million people the total used to be held down, or to end in an error."""
    axes = (flat_axis(100), flat_axis(100))
    shares = shares_of(axes)
    noise = replace(noise_for(axes, shares, 60.0), reach=2**14, resolution=2**40)
    cells = people // 10**4
    measured = noise.measure(
        axes, shares, lambda c: np.full([100] * len(c), (cells * 100 ** (2 - len(c))) << 14, np.int64), secure()
    )
    total = float(measured.marginal(())) / 2**14
    assert abs(total - people) < 6.4 * measured.deviations[()] / 2**14
    table = measured.marginal((0, 1)) / 2**14
    assert np.all(np.abs(table - cells) < 7.6 * np.sqrt(measured.cell_variance((0, 1))) / 2**14)


def test_uncentred_tables_move_by_more_than_was_paid_for() -> None:
    """The planted fault: a table that keeps its mean is dearer than its residual."""
    axes = (flat_axis(2), flat_axis(2))
    shares = {((0, 1), (1, 1)): 1.0}
    noise = noise_for(axes, shares)
    factor = noise.factors(axes, shares)[((0, 1), (1, 1))]
    uncentred = 4 * factor * margin_of_row(axes, (0, 1), (0, 0))
    assert int((uncentred.astype(object) ** 2).sum()) > 3 * noise.resolution**2


@pytest.mark.parametrize("kind", AXES)
def test_residuals_add_up_to_the_marginals(kind: Any) -> None:
    axes = AXES[kind]
    generator = np.random.default_rng()
    whole = generator.integers(0, 50, [axis.size for axis in axes])
    columns = tuple(range(len(axes)))
    exact = {}
    for term in terms_of(axes, [columns]):
        chosen = tuple(c for c, _ in term)
        common = math.prod(axes[c].levels[v - 1].common for c, v in term)
        exact[term] = residual_of(axes, term, marginal(whole, chosen), 1) / common
    for ways in range(len(axes) + 1):
        for chosen in itertools.permutations(columns, ways):
            found = marginal_of(axes, exact, chosen)
            expected = np.transpose(marginal(whole, tuple(sorted(chosen))), np.argsort(np.argsort(chosen)))
            np.testing.assert_allclose(found, expected, atol=1e-8)


def marginal(whole: Any, columns: Any) -> Any:
    return np.asarray(whole.sum(axis=tuple(c for c in range(whole.ndim) if c not in columns)), np.int64)


@pytest.mark.parametrize("kind", AXES)
def test_variances_are_those_of_the_linear_map(kind: Any) -> None:
    """`cell_variance` and `variance` against q' Sigma q, the map built column by column."""
    axes = AXES[kind][:2]
    shares = shares_of(axes)
    noise = noise_for(axes, shares)
    measured = noise.measure(axes, shares, lambda c: np.zeros([axes[i].size for i in c], np.int64), secure())
    size = axes[0].size * axes[1].size
    covariance = np.zeros((size, size))
    for term, deviation in measured.deviations.items():
        for place in range(cells_of(axes, term)):
            unit = np.zeros(cells_of(axes, term))
            unit[place] = deviation
            table = unit.reshape([axes[c].nodes(v) for c, v in term])
            for at, (c, v) in enumerate(term):
                table = axes[c].levels[v - 1].centre(table, at)
            spread = marginal_of(axes, {term: table}, (0, 1)).reshape(-1)
            covariance += np.outer(spread, spread)
    np.testing.assert_allclose(measured.cell_variance((0, 1)).reshape(-1), np.diag(covariance), rtol=1e-9)
    first, second = np.random.default_rng().normal(size=(2, 5, max(axes[0].size, axes[1].size)))
    queries = {0: first[:, : axes[0].size], 1: second[:, : axes[1].size]}
    for row, found in enumerate(measured.variance(queries)):
        q = np.outer(queries[0][row], queries[1][row]).reshape(-1)
        assert found == pytest.approx(q @ covariance @ q, rel=1e-9)


def spread_of_noise(deviations_times: float = 1.0, rounds: Any = 400) -> tuple[Any, ...]:
    """The sum of squares of all residuals over their deviations, and its degrees of freedom."""
    axes = (flat_axis(4), flat_axis(5))
    shares = shares_of(axes)
    noise = noise_for(axes, shares)
    total, freedom = 0.0, 0
    for _ in range(rounds):
        measured = noise.measure(axes, shares, lambda c: np.full([axes[i].size for i in c], 3, np.int64), secure())
        for term, table in measured.residuals.items():
            if term:
                total += float((table**2).sum()) / (deviations_times * measured.deviations[term]) ** 2
                freedom += math.prod(axes[c].size - 1 for c, _ in term)
                assert all(np.allclose(table.sum(axis=a), 0) for a in range(table.ndim))
    return total, freedom


def is_spread_right(total: Any, freedom: Any) -> Any:
    """Wilson and Hilferty's cube root of chi-square is normal; 6.2 deviations are passed once in 1e9."""
    return abs((total / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) < 6.2 * math.sqrt(2 / (9 * freedom))


def test_noise_has_the_covariance_that_is_said() -> None:
    """False alarms: below 1e-9."""
    assert is_spread_right(*spread_of_noise())


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_noise_of_another_size_is_found(factor: float) -> None:
    assert not is_spread_right(*spread_of_noise(factor))


ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
EIGHTS = tuple(min(8, size) for size in ADULT)
FLIGHTS = (12, 31, 49, 61, 16, 3, 105, 71, 50, 24, 2)


@pytest.mark.parametrize(
    ("sizes", "ways", "expected"),
    [(ADULT, 2, 34.9), (FLIGHTS, 2, 31.6), (EIGHTS, 2, 39.4), (EIGHTS, 3, 68.9)],
    ids=["adult pairs", "flights pairs", "adult pairs in 8 groups", "adult triples in 8 groups"],
)  # fmt: skip
def test_errors_are_those_of_the_closed_form(sizes: Any, ways: int, expected: float) -> None:
    """Golden numbers: ResidualPlanner's closed form at epsilon 1, delta 1e-9 (multiplier 5.4953)."""
    axes = tuple(flat_axis(size) for size in sizes)
    sets = tuple(itertools.combinations(range(len(sizes)), ways))
    shares = best_shares(Workload(axes, sets, (1.0,) * len(sets)))
    measured_noise = noise_for(axes, shares, multiplier=5.49526)
    deviations = measured_noise.deviations(axes, shares)
    total, cells = 0.0, 0
    for one in sets:
        for ways_inside in range(ways + 1):
            for part in itertools.combinations(one, ways_inside):
                outside = math.prod(sizes[c] for c in one if c not in part)
                energy = math.prod(1 - 1 / sizes[c] for c in part) / outside**2
                total += deviations[tuple((c, 1) for c in part)] ** 2 * energy * math.prod(sizes[c] for c in one)
        cells += math.prod(sizes[c] for c in one)
    assert math.sqrt(total / cells) == pytest.approx(expected, rel=0.01)


def test_the_largest_variance_is_smaller_where_that_is_the_goal() -> None:
    axes = (flat_axis(2), flat_axis(3), flat_axis(40))
    sets = ((0, 1), (0, 2), (1, 2))
    worst = {}
    for largest in (False, True):
        shares = best_shares(Workload(axes, sets, (1.0, 1.0, 1.0)), largest=largest)
        noise = noise_for(axes, shares)
        measured = noise.measure(axes, shares, lambda c: np.zeros([axes[i].size for i in c], np.int64), secure())
        worst[largest] = max(measured.cell_variance(one).mean() for one in sets)
    assert worst[True] < 0.9 * worst[False]
