"""No update is longer than the clip, in whole steps, whatever was sent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mosha import errors
from mosha.federated import AdaptiveClip, ClientSide, Distributed, ServerSide
from mosha.federated.clipping import STEPS, bounded_steps, bounded_sum_steps, lengths
from mosha.federated.secure.rounding import longest_rounded, round_within
from mosha.noise import secure
from tests.federated.parties import unit_vectors

ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


def square(row: Any) -> Any:
    return sum(int(step) ** 2 for step in row)


@settings(max_examples=200, deadline=None)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=ANY),
    st.floats(1e-30, 1e30),
)
def test_no_row_is_longer_than_the_clip_in_exact_integers(rows: Any, clip: Any) -> None:
    steps, within = bounded_steps(rows, clip)
    assert all(square(row) <= STEPS**2 for row in steps)
    assert all(sum(abs(int(s)) for s in row) <= STEPS for row in bounded_sum_steps(rows, clip))
    finite = np.isfinite(rows).all(axis=1)
    assert not steps[~finite].any()
    assert not within[~finite].any()


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 50)), elements=st.floats(width=32)))
def test_single_precision_keeps_the_bound_too(rows: Any) -> None:
    for clip in (1e-30, 1e-20, 1.0, 3.3, 1e20, 1e30):
        assert all(square(row) <= STEPS**2 for row in bounded_steps(rows, clip)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1e-30, 0.3, 0.999, 1.0, 1.001, 1e30])
def test_a_long_row_keeps_its_direction_and_a_short_one_itself(dtype: Any, length: float) -> None:
    rows = unit_vectors(5, 4810, length).astype(dtype)
    steps, within = bounded_steps(rows, 1.0)
    expected = rows.astype(np.float64) / np.maximum(np.linalg.norm(rows.astype(np.float64), axis=1), 1.0)[:, None]
    assert np.abs(steps / STEPS - expected).max() < 2.0 / STEPS
    assert within.tolist() == (lengths(rows) <= 1.0).tolist()


def test_rows_do_not_see_each_other() -> None:
    rows = unit_vectors(6, 30, 5.0)
    alone = [bounded_steps(row[None], 1.0)[0][0] for row in rows]
    assert (bounded_steps(rows, 1.0)[0] == alone).all()


def test_a_zero_update_and_one_of_norm_1e30_are_ordinary() -> None:
    steps, within = bounded_steps(np.array([[0.0, 0.0], [6e29, -8e29]]), 1.0)
    assert steps[0].tolist() == [0, 0]
    assert np.allclose(steps[1] / STEPS, [0.6, -0.8], atol=1e-5)
    assert within.tolist() == [True, False]


@pytest.mark.parametrize("clip", [0, -1, float("nan"), float("inf"), "1", True, 1e-305, 9e-31, 1.1e30])
def test_a_bad_clip_is_refused(clip: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        bounded_steps(np.ones((1, 2)), clip)
    with pytest.raises(errors.InvalidParameter):
        bounded_sum_steps(np.ones((1, 2)), clip)
    with pytest.raises(errors.InvalidParameter):
        AdaptiveClip(start=clip)
    for plan in (ServerSide, ClientSide):
        with pytest.raises(errors.InvalidParameter):
            plan(rounds=1, clients=3, clip=clip)
    with pytest.raises(errors.InvalidParameter):
        Distributed(rounds=1, clients=3, clip=clip, survivors=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clip", [1e-30, 1e30])
def test_at_the_ends_of_the_range_of_clips_a_zero_stays_zero(dtype: Any, clip: float) -> None:
    rows = np.array([[0.0, 1.0], [0.0, 1e-38], [0.0, 3e38], [0.0, 0.0]], dtype)
    for steps in (bounded_steps(rows, clip)[0], bounded_sum_steps(rows, clip)):
        assert not steps[:, 0].any()
        assert (np.abs(steps) <= STEPS).all()


def test_integer_rows_and_vectors_are_refused_where_floats_are_expected() -> None:
    with pytest.raises(errors.InvalidParameter):
        bounded_steps(np.ones((1, 2), np.int64), 1.0)


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(np.float64, st.integers(1, 40), elements=ANY), st.integers(0, 10**6))
def test_conditional_rounding_never_exceeds_its_square(values: Any, bound: Any) -> None:
    found = round_within(values, square=bound, rng=secure())
    assert square(found) <= bound


def test_conditional_rounding_is_next_to_the_value_and_accepts_what_is_planned() -> None:
    for width in (1, 10, 5000):
        values = unit_vectors(1, width, 1000.0)[0]
        found = round_within(values, square=longest_rounded(1000, width), rng=secure())
        assert (np.abs(found - values) < 1).all()


def test_conditional_rounding_has_hardly_a_bias() -> None:
    """Mean of 2000 roundings of 0.25: sd 0.01; ten of them is a false alarm of 1e-20. Rounding to nearest gives 0."""
    found = np.array([round_within(np.full(4, 0.25), square=100, rng=secure()) for _ in range(500)])
    assert abs(found.mean() - 0.25) < 0.1
