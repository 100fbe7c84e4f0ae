"""Distances of pairs from independence: what one unit moves them, the noise they carry, and what is chosen by them."""

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.mechanisms.residuals.residuals import ResidualNoise
from mosha.noise import secure
from mosha.synth.measuring import distances as measuring
from mosha.synth.measuring.distances import distance_deviation, measure_distances
from mosha.synth.modelling.choosing import Distances, choose_pairs, complete_pairs, span_tree
from mosha.synth.modelling.mixture import PairTarget, centre_table
from mosha.synth.modelling.oneways import find_group_error, nearest_counts
from tests.synth.test_residuals import is_spread_right

SIZES = (2, 3, 2)
PAIRS = tuple(itertools.combinations(range(3), 2))
NOISE = ResidualNoise(2.0, 1, 1 << 14, 64)


def count(weights: Any) -> Any:
    """Pair tables of weighted rows: {(cell, cell, cell): weight}."""

    def counts(pair: Any) -> Any:
        table = np.zeros([SIZES[c] for c in pair], np.int64)
        for row, weight in weights.items():
            table[tuple(row[c] for c in pair)] += weight
        return table

    return counts


def expect_something() -> dict[Any, Any]:
    generator = np.random.default_rng()
    return {pair: generator.integers(0, 5, [SIZES[c] for c in pair]) for pair in PAIRS}


def measure_exactly(noise: Any, expected: Any, weights: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The steps without noise, in grid steps."""
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "discrete_gaussian", lambda _, size, rng: np.zeros(size, np.int64))
        return measure_distances(noise, expected, count(weights), secure()) * measuring._factor(noise, len(expected))


@pytest.mark.parametrize("reach", [1, 5])
def test_no_unit_moves_all_distances_together_by_more_than_the_resolution(
    reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way to spread one unit's weight over two rows of a small domain, beside other rows."""
    noise = ResidualNoise(2.0, reach, 1 << 14, 64)
    cells = list(itertools.product(*map(range, SIZES)))
    furthest = 0.0
    for _ in range(3):
        expected = expect_something()
        others = {cell: int(np.random.default_rng().integers(0, 4)) for cell in cells}
        before = measure_exactly(noise, expected, others, monkeypatch)
        for one, two in itertools.combinations_with_replacement(cells, 2):
            for part in range(reach + 1):
                more = dict(others)
                more[one] += part
                more[two] += reach - part
                after = measure_exactly(noise, expected, more, monkeypatch)
                furthest = max(furthest, float(np.linalg.norm(after - before)))
    assert furthest <= noise.resolution
    assert furthest >= 0.99 * noise.resolution  # and the bound is no looser than rounding makes it


def test_sums_of_squares_would_move_by_more_than_was_paid_for() -> None:
    """The planted fault: a squared distance has no such bound."""
    table, expected = np.array([[40, 0], [0, 0]]), np.zeros((2, 2), np.int64)
    more = table + np.array([[1, 0], [0, 0]])
    moved = int(((more - expected) ** 2).sum() - ((table - expected) ** 2).sum())
    assert moved * measuring._factor(NOISE, 1) > NOISE.resolution


def spread_of_noise(times: float = 1.0, rounds: Any = 600) -> tuple[Any, ...]:
    expected, weights = expect_something(), {(0, 0, 0): 5, (1, 2, 1): 3}
    exact = [int(np.abs(count(weights)(pair) - table).sum()) for pair, table in expected.items()]
    deviation = times * distance_deviation(NOISE, len(PAIRS))
    drawn = [measure_distances(NOISE, expected, count(weights), secure()) - exact for _ in range(rounds)]
    return float((np.array(drawn) ** 2).sum()) / deviation**2, rounds * len(PAIRS)


def test_the_noise_of_distances_is_what_is_said() -> None:
    """False alarms: below 1e-9; a fifth more or less is found."""
    assert is_spread_right(*spread_of_noise())
    assert not is_spread_right(*spread_of_noise(1.25))
    assert not is_spread_right(*spread_of_noise(0.8))


def test_more_pairs_than_the_resolution_can_hold_are_refused() -> None:
    with pytest.raises(mosha.errors.InvalidParameter):
        distance_deviation(ResidualNoise(2.0, 1 << 14, 1 << 13, 64), 3)


def walk(columns: Any, step: Any) -> dict[Any, Any]:
    """Distances on a chain: the product of its steps."""
    return {(a, b): step ** (b - a) for a, b in itertools.combinations(range(columns), 2)}


def test_a_chain_is_chosen_as_a_tree() -> None:
    chosen = choose_pairs(Distances(walk(6, 0.7), 0.01), 6, is_tree=False, is_asked=False)
    assert chosen == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]


def test_pairs_that_a_tree_does_not_explain_are_chosen_too() -> None:
    values = walk(6, 0.7) | {(0, 5): 0.6}
    chosen = choose_pairs(Distances(values, 0.01), 6, is_tree=False, is_asked=False)
    assert (0, 5) in chosen
    assert len(chosen) == 6
    assert len(choose_pairs(Distances(values, 0.01), 6, is_tree=True, is_asked=False)) == 5


def test_all_pairs_are_taken_where_a_tree_explains_too_few() -> None:
    everywhere = dict.fromkeys(itertools.combinations(range(12), 2), 0.5)
    chosen = choose_pairs(Distances(everywhere, 0.01), 12, is_tree=False, is_asked=False)
    assert chosen == sorted(everywhere)


def test_nothing_is_chosen_where_noise_explains_the_distances() -> None:
    values = dict.fromkeys(walk(6, 0.7), 0.02)
    assert choose_pairs(Distances(values, 0.01), 6, is_tree=False, is_asked=False) == []
    assert len(choose_pairs(Distances(values, 0.01), 6, is_tree=False, is_asked=True)) == 12
    assert len(span_tree(values, 6)) == 5


def test_what_the_noise_of_one_ways_puts_between_a_pair_and_their_product_is_no_distance() -> None:
    """Two columns of 64 cells that nothing joins: one-ways with much noise put a product far from their pair."""
    generator, total, deviation = np.random.default_rng(), 20_000.0, 150.0
    groups, exact = np.repeat(np.arange(8), 8), np.full(64, total / 64)
    apart, off = [], []
    for _ in range(40):
        noisy = [nearest_counts(exact + generator.normal(0, deviation, 64)) for _ in range(2)]
        errors = [find_group_error(counts, deviation, groups, ordered=False, known=64) for counts in noisy]
        merged = [np.bincount(groups, counts) / counts.sum() for counts in noisy]
        apart.append(float(np.abs(np.outer(*merged) - 1 / 64).sum()) / 2)
        off.append(math.sqrt(Distances.find(np.array([1.0]), errors, 0.0).values[0, 1] ** 2))
    usual = math.sqrt(1 - float(np.mean(off)) ** 2)  # what is taken off, where the distance is 1
    assert 0.7 < usual / float(np.mean(apart)) < 1.4  # the mean of 40 strays by a twentieth
    assert Distances.find(np.array([0.5 * float(np.mean(apart))]), errors, 0.0).values[0, 1] == 0


def test_the_largest_distances_are_expected_to_be_smaller_than_they_were_measured() -> None:
    values = np.abs(np.random.default_rng().normal(0.05, 0.1, 300))
    noisy = Distances({(0, i + 1): float(value) for i, value in enumerate(values)}, 0.1)
    assert max(noisy.expected.values()) < 0.6 * max(noisy.values.values())
    exact = Distances(noisy.values, 1e-6)
    assert max(exact.expected.values()) == pytest.approx(max(noisy.values.values()), rel=1e-3)


def test_a_tree_says_of_other_pairs_what_a_chain_of_conditionals_does() -> None:
    step = np.array([[0.8, 0.2], [0.3, 0.7]])
    first = np.array([0.6, 0.4])
    oneways = [first, first @ step, first @ step @ step, np.array([0.5, 0.5])]
    tables = {(0, 1): np.diag(first) @ step, (1, 2): np.diag(oneways[1]) @ step}
    measured = [PairTarget(a, b, centre_table(table), 1e-6) for (a, b), table in tables.items()]
    found = {(pair.first, pair.second): pair for pair in complete_pairs(measured, oneways)}
    assert set(found) == {(0, 2), (0, 3), (1, 3), (2, 3)}
    np.testing.assert_allclose(found[0, 2].residual, centre_table(np.diag(first) @ step @ step), atol=1e-6)
    np.testing.assert_allclose(found[0, 3].residual, 0, atol=1e-9)
    assert all(pair.freedom == 0 for pair in found.values())
    assert complete_pairs([], oneways) == []


def test_the_rule_finds_a_chain_at_a_small_budget() -> None:
    """Ten columns that follow one another: too many pairs for all of them, few enough for a tree."""
    generator, columns = np.random.default_rng(), [np.random.default_rng().integers(0, 6, 6000)]
    while len(columns) < 10:
        moved = (generator.random(6000) < 0.1) * generator.integers(0, 6, 6000)
        columns.append((columns[-1] + moved) % 6)
    rows = pa.table({f"c{i}": column for i, column in enumerate(columns)})
    words: dict[str, Any] = {"keys": {f"c{i}": range(6) for i in range(10)}, "nulls": []}
    methods = ["automatic", "independent"]
    found = {one.method: one for one in mosha.synth.compare(rows, epsilon=0.25, runs=1, methods=methods, **words)}  # type: ignore[arg-type]
    assert found["automatic"].chosen in {"tree", "selected pairs"}
    assert found["automatic"].mean < 0.9 * found["independent"].mean
    assert math.isfinite(found["automatic"].largest)
