"""Several fits as one mixture."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mosha.synth.modelling.mixture import Mixture, PairTarget, centre_table, fit_mixture, join_mixtures
from mosha.synth.modelling.model import FITS, MEMORY, MOST_WORK, _fit_several

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
