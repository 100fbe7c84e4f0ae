"""Sums of losses by a tilted transform: against direct sums, with a budget that must hold."""

import math
import random
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from mosha.accounting.losses.convolution import Kernel, convolve
from mosha.accounting.losses.direction import directions
from mosha.accounting.losses.dominating import read
from mosha.accounting.losses.lattice import Lattice, Survey
from mosha.accounting.losses.loss import UNIT, Law
from mosha.accounting.losses.pair import Band, Normal, flipped_coin
from mosha.accounting.losses.sampled_pair import Removed
from mosha.accounting.numerics.crossing import crossing
from mosha.core.events import Gaussian, Laplace, RandomizedResponse
from tests.accounting import exact


def random_law(points: Any = 12, step: float = 0.1) -> Any:
    mass = np.array([random.random() ** 4 for _ in range(points)])
    return Law(-random.randint(2, 6), step, mass / mass.sum(), 0.0, 0.0)


def direct(laws: Any, epsilon: Any) -> Any:
    """The curve of the sum, in fractions for the masses and fifty digits for the rest."""
    sums = {0: Fraction(1)}
    step = laws[0][0].step
    for law, count in laws:
        for _ in range(count):
            new: dict[Any, Any] = {}
            for total, p in sums.items():
                for i, q in enumerate(law.mass):
                    new[total + law.first + i] = new.get(total + law.first + i, 0) + p * Fraction(float(q))
            sums = new
    atoms = ((mp.mpf(step) * k, mp.mpf(p.numerator) / p.denominator) for k, p in sums.items())
    return exact.atoms_delta(atoms, epsilon)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("theta", [0.3, 3.0, 30.0])
def test_bounds_bracket_a_direct_sum_at_any_tilt(theta: float, long: bool) -> None:
    laws = [(random_law(), 3), (random_law(5), 4)]
    lattice = Lattice(0.1, -128, 512, theta, (theta / 2, theta * 2))
    total = convolve(laws, lattice, long=long)
    for epsilon in (0.0, 0.7, 1.9, 2.6):
        true = direct(laws, epsilon)
        low = total.delta(epsilon, Kernel(0.0), above=False)
        high = total.delta(epsilon, Kernel(0.0), above=True)
        assert low <= true <= high, (epsilon, float(true))
        if total.doubt(epsilon, Kernel(0.0)) < 1e-6:
            assert high == pytest.approx(low, rel=1e-5)


def test_a_window_that_is_too_small_is_charged_for() -> None:
    laws = [(random_law(), 6)]
    for first, size in ((-8, 16), (0, 32), (10, 16)):
        total = convolve(laws, Lattice(0.1, first, size, 2.0, (0.5, 6.0)))
        for epsilon in (0.2, 1.0):
            true = direct(laws, epsilon)
            assert total.delta(epsilon, Kernel(0.0), above=False) <= true
            assert total.delta(epsilon, Kernel(0.0), above=True) >= true


def test_fourier_transforms_err_less_than_the_budget_assumes() -> None:
    """Doubles against long doubles where these are longer, and there and back."""
    for size in (2**6, 2**11, 2**16):
        x = np.array([random.random() ** 6 for _ in range(size)])
        spectrum = np.fft.rfft(x)
        longer = np.fft.rfft(x.astype(np.longdouble))
        error = np.linalg.norm((spectrum - longer).astype(np.complex128)) * math.sqrt(2)
        assert error <= 8 * UNIT * math.log2(size) * math.sqrt(size) * np.linalg.norm(x)
        back = np.fft.irfft(spectrum, size)
        assert np.linalg.norm(back - x) <= 16 * UNIT * math.log2(size) * np.linalg.norm(x)


@pytest.mark.parametrize("mu", [0.001, 0.1, 1.0, 12.0])
def test_the_normal_kernel_is_within_its_error(mu: float) -> None:
    kernel = Kernel(mu)
    points = np.array([random.uniform(-5, 9) * mu + random.choice([0, mu * mu]) for _ in range(60)])
    logs, errors = kernel.log_delta(points)
    for x, log, error in zip(points, logs, errors, strict=True):
        moved = kernel.shift(abs(float(x)))
        low, high = (mp.log(exact.gaussian_delta(mu, mp.mpf(float(x)) + sign * moved)) for sign in (1, -1))
        assert low - error <= mp.mpf(float(log)) <= high + error


def test_weights_of_both_kernels_agree_where_the_normal_part_is_tiny() -> None:
    bare = Kernel(0.0).weights(-0.01, 0.01, 300, 2.0, 1.0)
    tiny = Kernel(1e-5).weights(-0.01, 0.01, 300, 2.0, 1.0)
    assert tiny == pytest.approx(bare, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-15, 1e-18, 1e-30])
def test_relative_accuracy_does_not_depend_on_delta(delta: float) -> None:
    (direction,) = directions(read(RandomizedResponse(0.1) * 400), above=True)
    epsilon = direction.epsilon(delta, 1e-5)
    assert delta * (1 - 1e-5) <= exact.coins_delta(0.1, 400, epsilon) <= delta


def test_normal_parts_are_never_put_on_a_lattice() -> None:
    """Composed by the kernel or by discretisation, the answer is the same; the kernel is sharper."""
    (kernel,) = directions(read(Gaussian(4) * 9 + Laplace(5) * 4), above=True)
    parts = [(Normal(0.75), 1), (Band(0.2, ends=True), 4)]
    survey = Survey(parts, 0.0, 1e-16)  # type: ignore[arg-type]
    assert kernel.kernel.mu == pytest.approx(0.75)
    assert survey.at_delta(1e-6) >= kernel.epsilon(1e-6, 1e-5)


def test_a_survey_meets_landmarks() -> None:
    lattice = Survey([(flipped_coin(0.3), 10), (flipped_coin(0.2), 5)], 0.0, 1e-15).lattice(2.0, 1e-4)
    assert (0.3 / lattice.step) == pytest.approx(round(0.3 / lattice.step), abs=1e-6)
    assert (0.2 / lattice.step) == pytest.approx(round(0.2 / lattice.step), abs=1e-6)


def test_a_lattice_never_grows_without_bound() -> None:
    for pair, count in ((Normal(40.0), 5), (Removed(Normal(30.0), 0.01), 10), (Band(1e-6, ends=True), 10**9)):
        survey = Survey([(pair, count)], 0.0, 1e-16)
        lattice = survey.lattice(survey.at_delta(1e-7), 1e-6)
        assert lattice.size <= 2**20


def test_a_crossing_is_seen_from_the_right_side() -> None:
    for level in (0.3, 1e-3, 1e-40):
        for scale in (1e-6, 1.0, 1e6):
            curve = lambda x, scale=scale: math.exp(-x / scale) / (1 + x / scale)
            for guess in (1e-3 * scale, 100 * scale):
                above = crossing(curve, level, guess, above=True)
                below = crossing(curve, level, guess, above=False)
                assert curve(above) <= level < curve(below)
                assert above == pytest.approx(below, rel=3e-9)
    assert crossing(lambda x: 0.5 + 0.1 / (1 + x), 0.3, 1.0, above=True) == math.inf
    assert crossing(lambda x: 0.1 * math.exp(-x), 0.3, 1.0, above=True) == 0.0
