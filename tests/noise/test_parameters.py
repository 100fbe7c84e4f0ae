"""What enters: exact rationals, or a typed error that says what to do."""

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter, MoshaError
from mosha.noise import (
    GAP_PER_SAMPLE,
    LARGEST_SCALE,
    SeededRandom,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    flips,
    gap,
    geometric,
    uniform,
    uniform_each,
)

SCALED = [discrete_laplace, discrete_gaussian, geometric]
HUGE = Fraction(10**400)
NOT_NUMBERS = [float("nan"), float("inf"), float("-inf"), None, "1", True, [1], 1j, np.float64("nan"), np.bool_(True)]


@pytest.mark.parametrize("sample", SCALED)
@pytest.mark.parametrize(
    "scale", [0, -1, -0.5, Fraction(-1, 3), 0.0, LARGEST_SCALE + 1, 1e300, HUGE, -HUGE, *NOT_NUMBERS]
)
def test_a_wrong_scale_is_refused(sample: Any, scale: Any) -> None:
    for size in (None, 0, 5):
        with pytest.raises(InvalidParameter):
            sample(scale, size)


@pytest.mark.parametrize("sample", SCALED)
def test_the_limit_is_named_and_included(sample: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"2\*\*50.*coarser grid"):
        sample(2**51)
    assert np.abs(sample(LARGEST_SCALE, 100_000)).max() < 2**57


@pytest.mark.parametrize("sample", [*SCALED, uniform])
@pytest.mark.parametrize("size", [-1, 1.5, "3", (2, -1), (2, 1.0), True, (True,), [3]])
def test_a_wrong_size_is_refused(sample: Any, size: Any) -> None:
    with pytest.raises(InvalidParameter, match="size"):
        sample(3, size)


@pytest.mark.parametrize("sample", [*SCALED, uniform, lambda *a, **k: bernoulli(0.5, *a[1:], **k)])
def test_every_shape_is_given(sample: Any) -> None:
    for size in (0, 1, 7, 16, 17, 1000, (), (3,), (2, 3), (0, 5), (10, 10, 10)):
        assert sample(3, size).shape == (size if isinstance(size, tuple) else (size,))
    assert np.ndim(sample(3)) == 0


@pytest.mark.parametrize("sample", SCALED)
def test_equal_numbers_of_any_type_give_equal_noise(sample: Any) -> None:
    for equal in ((3, 3.0, Fraction(3), np.int32(3), np.float32(3)), (0.25, Fraction(1, 4), np.float16(0.25))):
        drawn = [sample(scale, 50, rng=SeededRandom(9)).tolist() for scale in equal]
        assert all(same == drawn[0] for same in drawn)


@pytest.mark.parametrize("sample", SCALED)
def test_the_same_stream_gives_the_same_noise_whatever_ran_before(sample: Any) -> None:
    first = sample(12.25, 1000, rng=SeededRandom(1)), sample(12.25, rng=SeededRandom(2))
    for other in range(80):  # more than the tables that are kept
        sample(other + 1)
    again = sample(12.25, 1000, rng=SeededRandom(1)), sample(12.25, rng=SeededRandom(2))
    assert (first[0] == again[0]).all()
    assert first[1] == again[1]


@pytest.mark.parametrize("sample", SCALED)
def test_single_samples_are_python_integers(sample: Any) -> None:
    assert type(sample(3)) is int


@pytest.mark.parametrize("rng", [42, "os", np.random.default_rng, object()])
def test_a_wrong_generator_is_refused(rng: Any) -> None:
    for sample in SCALED:
        with pytest.raises(InvalidParameter, match="rng"):
            sample(3, rng=rng)  # type: ignore[operator]


@pytest.mark.parametrize("p", [-0.1, 1.1, Fraction(5, 4), HUGE, *NOT_NUMBERS])
def test_a_wrong_probability_is_refused(p: Any) -> None:
    with pytest.raises(InvalidParameter):
        bernoulli(p)


@pytest.mark.parametrize("x", [-1, -1e-300, -HUGE, *NOT_NUMBERS])
def test_a_wrong_exponent_is_refused(x: Any) -> None:
    with pytest.raises(InvalidParameter):
        bernoulli_exp(x)


@pytest.mark.parametrize("n", [0, -1, 2**63 + 1, 2.0, True, None, "3"])
def test_a_wrong_bound_is_refused(n: Any) -> None:
    with pytest.raises(InvalidParameter):
        uniform(n)
    with pytest.raises(InvalidParameter):
        uniform(n, 3)


def test_integers_too_long_to_print_are_refused_with_the_same_error() -> None:
    for refuse in (discrete_laplace, discrete_gaussian, bernoulli, uniform):
        for huge in (10**5000, -(10**5000)):
            with pytest.raises(InvalidParameter):
                refuse(huge)


def test_wrong_arrays_are_refused() -> None:
    for distances in (np.array([-1]), np.array([0.5]), np.array(["a"]), np.array([True])):
        with pytest.raises(InvalidParameter):
            flips(distances, 1)
    for bounds in (np.array([0]), np.array([1.0]), np.array([3], np.uint64)):
        with pytest.raises(InvalidParameter):
            uniform_each(bounds)  # type: ignore[arg-type]


def test_every_refusal_is_caught_by_the_root_of_errors() -> None:
    with pytest.raises(MoshaError):
        discrete_laplace(0)
    with pytest.raises(ValueError, match="above zero"):
        discrete_laplace(0)


def test_the_gap_is_tiny_grows_with_the_samples_and_refuses_nonsense() -> None:
    assert gap() == GAP_PER_SAMPLE <= 2.0**-100
    assert gap(0) == 0
    assert gap(10) == 10 * GAP_PER_SAMPLE
    assert gap((3, 4)) == 12 * GAP_PER_SAMPLE
    with pytest.raises(InvalidParameter):
        gap(-1)


def test_importing_the_package_loads_no_scipy() -> None:
    code = "import sys, mosha.noise; assert 'scipy' not in sys.modules and 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
