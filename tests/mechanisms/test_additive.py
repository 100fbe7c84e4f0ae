"""Laplace and Gaussian noise: the law of the answers, the price, the golden numbers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha import Person, Row
from mosha.accounting import epsilon as tight_epsilon
from mosha.accounting.measures import concentrated, pure
from mosha.accounting.measures import gaussian as normal
from mosha.core.errors import InvalidParameter
from mosha.events import DiscreteGaussian, DiscreteLaplace
from mosha.exact.grid import LARGEST_STEPS, add_noise
from mosha.exact.statistic import Sensitivity
from mosha.mechanisms import (
    ClippedSum,
    Count,
    Histogram,
    VectorSum,
    additive,
    best_noise,
    classic_multiplier,
    gaussian,
    laplace,
)
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.noise import secure
from tests.noise.goodness import gaussian_below, laplace_below, quantile_events, rejects

DRAWS = 40_000
WIDE = Histogram(keys=tuple(range(DRAWS)))  # one step draws many noises at once
REPLACED = Row(neighbors="replace-one")  # type: ignore[arg-type]


def noise_of(measurement: Any, data: Any = ()) -> Any:
    answer, _ = measurement.step(None, data, None, secure())
    return np.asarray(answer)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_laplace_noise_has_the_scale_that_is_charged(epsilon: float) -> None:
    # false alarm 1e-10; twins off by 20% are caught on both sides
    samples = noise_of(laplace(WIDE, unit=Row(), epsilon=epsilon))
    events = lambda scale: quantile_events(samples, laplace_below(scale), scale)
    assert not rejects(events(1 / epsilon))
    assert rejects(events(1 / epsilon * 1.2))
    assert rejects(events(1 / epsilon / 1.2))


def test_gaussian_noise_has_the_sigma_that_is_charged() -> None:
    # false alarm 1e-10; twins off by 20% are caught on both sides
    measurement = gaussian(WIDE, unit=Row(), rho=0.125)
    steps = noise_of(measurement) / (1 / measurement.event.sensitivity)  # type: ignore[attr-defined]
    assert (steps == np.rint(steps)).all()
    sigma = measurement.event.noise_multiplier * measurement.event.sensitivity  # type: ignore[attr-defined]
    assert sigma >= 2**10
    events = lambda s: quantile_events(steps.astype(np.int64), gaussian_below(s), s)
    assert not rejects(events(sigma))
    assert rejects(events(sigma * 1.2))
    assert rejects(events(sigma / 1.2))


def test_every_coordinate_has_noise_of_its_own() -> None:
    answers = noise_of(laplace(WIDE, unit=Row(), epsilon=0.1))
    assert len(set(answers.tolist())) > 50
    pairs = (answers[0::2] > 0) & (answers[1::2] > 0)
    p = float(1 - laplace_below(10)(0))
    assert not rejects([(int(pairs.sum()), len(pairs), p * p)])


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 1 / 3, 7.7, 1e-3])
def test_the_price_is_at_most_the_epsilon_asked_for(epsilon: Any) -> None:
    for statistic in (Count(), ClippedSum(between=(-3, 100)), Histogram(keys=[1, 2, 3])):
        event = laplace(statistic, unit=Row(3), epsilon=epsilon).event
        assert pure.epsilon(event) <= epsilon
        assert pure.epsilon(event) >= epsilon * (1 - 1e-15)


@pytest.mark.parametrize("rho", [0.5, 0.1, 1 / 3, 1e-4, 8.0])
def test_the_price_is_at_most_the_rho_asked_for(rho: Any) -> None:
    event = gaussian(Histogram(keys=[1, 2]), unit=REPLACED, rho=rho).event
    assert rho * (1 - 1e-12) <= concentrated.rho(event)[0] <= rho


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_price_is_at_most_the_mu_asked_for(mu: float) -> None:
    found, failing = normal.mu(gaussian(Count(), unit=Row(), mu=mu).event)
    assert mu * (1 - 1e-5) <= found <= mu * (1 + 1e-12)
    assert failing <= 2.0**-99


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-6), (5.0, 1e-9), (1e-3, 1e-3), (0.5, 2.0**-85)])
def test_the_discrete_gaussian_keeps_epsilon_and_delta_and_wastes_nothing(epsilon: float, delta: Any) -> None:
    event = gaussian(VectorSum(norm=3, coordinates=10), unit=REPLACED, epsilon=epsilon, delta=delta).event
    mu, failing = normal.mu(event)
    assert normal.delta(mu, epsilon) + failing <= delta
    assert event.noise_multiplier <= normal.noise_multiplier(epsilon, delta) * (1 + 1e-5)  # type: ignore[attr-defined]


def test_the_tight_accountant_agrees() -> None:
    event = gaussian(Count(), unit=Row(), epsilon=1.0, delta=1e-5).event
    assert 0.999 <= tight_epsilon(event, 1e-5) <= 1.0
    assert tight_epsilon(laplace(Count(), unit=Row(), epsilon=1.0).event, 0.0) <= 1.0


def test_golden_multipliers_of_balle_and_wang() -> None:
    # source: reference table, rows of category gaussian_sigma (mpmath)
    assert gaussian_multiplier(epsilon=1, delta=1e-5) == pytest.approx(3.730631634816464, rel=1e-9)
    assert classic_multiplier(1, 1e-5) / gaussian_multiplier(epsilon=1, delta=1e-5) == pytest.approx(1.2987, rel=1e-3)


def test_the_event_of_a_number_counts_its_steps_and_that_of_a_vector_does_not() -> None:
    total = ClippedSum(between=(0, 10), grid=1)
    assert laplace(total, unit=Row(2), epsilon=0.5).event == DiscreteLaplace(2.0, 20)
    assert laplace(Histogram(keys=[1, 2]), unit=Row(2), epsilon=0.5).event == DiscreteLaplace(2.0)
    assert gaussian(Histogram(keys=[1, 2]), unit=Row(), rho=0.5).event == DiscreteGaussian(1.0, 1024.0, 2)


def test_scale_and_sigma_may_be_given_in_the_unit_of_the_data() -> None:
    total = ClippedSum(between=(0, 10))
    assert laplace(total, unit=Row(), scale=20).event.noise_multiplier == pytest.approx(2, rel=1e-12)  # type: ignore[attr-defined]
    assert gaussian(total, unit=Row(), sigma=20).event.noise_multiplier == pytest.approx(2, rel=1e-12)  # type: ignore[attr-defined]
    assert laplace(total, unit=Row(), scale=20).error.standard_deviation == pytest.approx(20 * math.sqrt(2), rel=1e-6)  # type: ignore[attr-defined]


def test_answers_are_whole_numbers_on_the_grid_one_and_multiples_of_the_grid_elsewhere() -> None:
    assert isinstance(laplace(Count(), unit=Row(), epsilon=1).step(None, [1], None, secure())[0], int)
    answer, _ = laplace(ClippedSum(between=(0, 10), grid=0.25), unit=Row(), epsilon=1).step(None, [1], None, secure())
    assert isinstance(answer, float)
    assert answer * 4 == int(answer * 4)


def test_the_answer_is_centred_at_the_truth() -> None:
    # 2000 sums with noise of scale 8: the mean of the noise is normal with deviation 0.25; 9 of them is 1e-18
    statistic = ClippedSum(between=(0, 8))
    measurement, rng = laplace(statistic, unit=Row(), epsilon=1), secure()
    answers = [measurement.step(None, [3.5, 100, -5], None, rng)[0] for _ in range(2000)]
    assert abs(np.mean(answers) - 11.5) < 9 * 8 * math.sqrt(2) / math.sqrt(2000)


def test_numbers_beyond_2_to_the_60_are_held_and_noise_never_wraps() -> None:
    top = np.array([2**62, -(2**62), LARGEST_STEPS], np.int64)
    noise = np.array([2**62 - 1, -(2**62) + 1, 5], np.int64)
    assert add_noise(top, noise).tolist() == [LARGEST_STEPS, -LARGEST_STEPS, LARGEST_STEPS]


def test_a_statistic_that_lies_about_its_shape_is_refused() -> None:
    class Wrong(Count):
        def evaluate(self, data: Any, unit: Any) -> Any:
            return np.array([1, 2])

    with pytest.raises(InvalidParameter, match=r"Wrong.evaluate"):
        laplace(Wrong(), unit=Row(), epsilon=1).step(None, [1], None, secure())


def test_a_statistic_of_ones_own_is_welcome() -> None:
    class Distinct:
        """The number of distinct values: one row moves it by at most one."""

        grid, labels = 1.0, None

        def sensitivity(self, unit: Any) -> Any:
            return Sensitivity(l0=1, l1=1, l2=1.0, linf=1, span=1, monotone=True)

        def evaluate(self, data: Any, unit: Any) -> Any:
            return np.array([len(set(data))])

    answer, _ = laplace(Distinct(), unit=Row(), epsilon=50).step(None, "mississippi", None, secure())
    assert answer == 4


def test_laplace_for_few_numbers_gaussian_for_many() -> None:
    few = best_noise(Count(), unit=Row(), epsilon=1, delta=1e-6)
    many = best_noise(Histogram(keys=range(100)), unit=Person("who", at_most=50), epsilon=1, delta=1e-6)
    long = best_noise(VectorSum(norm=1, coordinates=400), unit=Row(), epsilon=1, delta=1e-6)
    assert (few.noise, long.noise) == ("laplace", "gaussian")
    assert few.laplace < few.gaussian
    assert long.gaussian < long.laplace
    assert many.noise == "laplace"  # all 50 rows may lie in one cell: l1 = l2 = 50
    assert "l1 sensitivity 20" in long.reason
    assert long.measurement.error.standard_deviation == long.gaussian  # type: ignore[attr-defined]
    assert additive(Count(), unit=Row(), epsilon=1, delta=0).name == "laplace(Count)"
    assert math.isinf(best_noise(Count(), unit=Row(), epsilon=1, delta=0).gaussian)


@pytest.mark.parametrize("rho", [0.01, 0.5, 50.0])
@pytest.mark.parametrize("statistic", [Count(), ClippedSum(between=(0, 8)), Histogram(keys=[1, 2])], ids=repr)
def test_the_better_noise_at_rho_keeps_it(rho: float, statistic: Any) -> None:
    found = best_noise(statistic, unit=REPLACED if statistic != Count() else Row(), rho=rho)
    assert concentrated.rho(found.measurement.event)[0] <= rho
    assert min(found.laplace, found.gaussian) == found.measurement.error.standard_deviation  # type: ignore[attr-defined]
    assert found.noise == ("laplace" if found.laplace <= found.gaussian else "gaussian")
    assert concentrated.rho(laplace(Count(), unit=Row(), epsilon=1.0).event)[0] > 0


def test_a_budget_for_the_better_noise_is_one_budget() -> None:
    for bad in (
        {},
        {"epsilon": 1},
        {"delta": 0.1},
        {"rho": 1, "delta": 0.1},
        {"rho": 1, "epsilon": 1, "delta": 0.1},
        {"rho": -1},
    ):
        with pytest.raises(InvalidParameter):
            best_noise(Count(), unit=Row(), **bad)


@pytest.mark.parametrize("budget", [
    {"epsilon": 1}, {"delta": 1e-5}, {"rho": 1, "delta": 1e-5}, {"rho": 1, "mu": 1}, {}, {"epsilon": 1, "delta": 0},
    {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": 1e-40}, {"sigma": 0}, {"sigma": -1}, {"rho": 0},
    {"mu": float("nan")}, {"rho": 1e30}, {"sigma": 1e-300}, {"sigma": 1e300}, {"mu": 1e-300}, {"rho": 1e-300},
], ids=str)  # fmt: skip
def test_a_bad_budget_for_gaussian_noise_is_refused(budget: Any) -> None:
    with pytest.raises(InvalidParameter):
        gaussian(ClippedSum(between=(0, 1)), unit=Row(), **budget)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e300, 1e-320, 1e-12, "1"])
def test_a_bad_scale_is_refused(scale: Any) -> None:
    with pytest.raises(InvalidParameter):
        laplace(ClippedSum(between=(0, 1)), unit=Row(), scale=scale)


def test_the_scale_that_is_drawn_is_a_hair_larger_than_the_one_charged() -> None:
    measurement = laplace(Count(), unit=Row(), epsilon=2.0**-40)
    assert Fraction(measurement.error.scale) >= Fraction(measurement.event.noise_multiplier)  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="2\\*\\*50"):
        laplace(Count(), unit=Row(), epsilon=2.0**-50)
