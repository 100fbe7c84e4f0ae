"""Several fits as one mixture."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mosha.synth.modelling.design import MERGED, Design, _is_merged
from mosha.synth.modelling.mixture import (
    Mixture,
    PairTarget,
    centre_table,
    fit_mixture,
    join_mixtures,
    misfit_of_independence,
)
from mosha.synth.modelling.model import (
    FITS,
    MEMORY,
    MOST_COMPONENTS,
    MOST_WORK,
    USUAL_COMPONENTS,
    _fit_several,
    count_components,
)

SIZES = (3, 4, 2)
STARTS = (0, 3, 7, 9)


def made_up(number: int, components: int = 5, steps: int = 10) -> Mixture:
    generator = np.random.default_rng(number)
    parts = [generator.dirichlet(np.ones(size), components) for size in SIZES]
    return Mixture(np.concatenate(parts, axis=1).astype(np.float32), STARTS, 1.0, steps)


def test_a_joined_mixture_has_the_mean_pair_table_of_its_fits() -> None:
    fits = [made_up(number) for number in range(3)]
    joined = join_mixtures(fits)
    for pair in itertools.combinations(range(3), 2):
        np.testing.assert_allclose(joined.pair(*pair), np.mean([fit.pair(*pair) for fit in fits], axis=0), atol=1e-6)
    assert joined.steps == 30


def test_small_tables_are_fitted_several_times_from_different_beginnings() -> None:
    joined = _fit_several(made_up, work=1.0)
    expected = np.concatenate([made_up(number).parts for number in range(FITS)])
    assert np.array_equal(joined.parts, expected)


@pytest.mark.parametrize("fits", [1, 2])
def test_no_fit_is_begun_that_would_be_too_much_work(fits: int) -> None:
    joined = _fit_several(made_up, work=MOST_WORK / (10 * fits))
    assert len(joined.parts) == 5 * fits


def test_no_fit_is_begun_that_would_be_too_much_memory() -> None:
    large = Mixture(np.broadcast_to(np.float32(0), (MEMORY, 1)), (0, 1), 1.0, 1)
    assert _fit_several(lambda _: large, work=1.0).parts.shape == (MEMORY, 1)


def test_independent_columns_are_fitted_once() -> None:
    assert len(_fit_several(lambda number: made_up(number, components=1), work=1.0).parts) == 1


def test_another_seed_is_another_fit_of_the_same_residuals() -> None:
    oneways = [np.full(4, 0.25), np.full(4, 0.25)]
    residual = centre_table(0.2 * np.eye(4) + 0.0125)
    target = PairTarget(0, 1, residual, 1e-3)
    one, two, again = (
        fit_mixture(oneways, [target], groups=[np.arange(4)] * 2, deviations=[1e-3] * 2, components=60, steps=1000,
                    seed=seed)
        for seed in (1, 2, 1)
    )  # fmt: skip
    assert np.array_equal(one.parts, again.parts)
    assert not np.array_equal(one.parts, two.parts)
    for fit in (one, two, join_mixtures([one, two])):
        assert np.abs(centre_table(fit.pair(0, 1)) - residual).max() < 0.01


def test_fits_have_the_most_components_where_little_noise_hides_much_dependence() -> None:
    oneways = [np.full(500, 1 / 500)] * 2
    assert count_components(oneways, misfit=10.0) == USUAL_COMPONENTS
    assert count_components(oneways, misfit=1e5) == MOST_COMPONENTS


def test_a_misfit_counts_dependence_in_squares_of_its_noise() -> None:
    oneways = [np.full(2, 0.5)] * 2
    for dependence, expected in ((0.0, 0.0), (0.1, 4.0)):
        table = np.full((2, 2), 0.25) + dependence * np.array([[1, -1], [-1, 1]])
        target = PairTarget(0, 1, centre_table(table), 0.1)
        assert misfit_of_independence([target], oneways) == pytest.approx(expected)
    assert misfit_of_independence([], oneways) == 0.0


@pytest.mark.parametrize(("groups", "is_merged"), [(10, True), (round(40 * MERGED), True), (30, False), (40, False)])
def test_columns_that_kept_most_of_their_cells_need_no_finer_groups(groups: int, is_merged: bool) -> None:
    numbers = np.minimum(np.arange(40), groups - 1)
    assert _is_merged(Design((), {}, (numbers,), (numbers,), "all pairs"), 0) is is_merged
