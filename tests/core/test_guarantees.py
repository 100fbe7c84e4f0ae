"""Laws of guarantees: `<=` is a partial order, and every implication it claims holds for the worst mechanism."""

import itertools
import json
import math
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from tests.core.every_word import every_guarantee

GUARANTEES = every_guarantee()
level = st.floats(1e-6, 60)
small = st.floats(1e-12, 0.95)
some_guarantee = st.one_of(
    level.map(Pure),
    level.map(ZeroConcentrated),
    level.map(Gaussian),
    st.builds(Approx, level, st.one_of(st.just(0.0), small)),
)


def test_everything_implies_itself() -> None:
    assert all(a <= a and a >= a and not a < a for a in GUARANTEES)


def test_implication_is_transitive_on_all_triples() -> None:
    implied = {a: [b for b in GUARANTEES if a <= b] for a in GUARANTEES}
    for a in GUARANTEES:
        for b in implied[a]:
            assert set(implied[b]) <= set(implied[a])


def relaxed(guarantee: Any) -> Any:
    """The same promise, weakened by far more than rounding."""
    scale = 1 + 1e-6
    if isinstance(guarantee, Approx):
        return Approx(guarantee.epsilon * scale, guarantee.delta * scale)
    return type(guarantee)(*(value * scale for value in vars(guarantee).values()))


@given(some_guarantee, some_guarantee, some_guarantee)
def test_implication_is_transitive_up_to_rounding(a: Any, b: Any, c: Any) -> None:
    if a <= b <= c:
        assert a <= relaxed(c)


def test_two_that_imply_each_other_are_one_promise() -> None:
    for a, b in itertools.combinations(GUARANTEES, 2):
        if a <= b <= a:
            same_pure = {type(a), type(b)} == {Pure, Approx} and a.epsilon == b.epsilon
            nothing_leaks = not any(vars(a).values()) and not any(vars(b).values())
            assert a == b or same_pure or nothing_leaks


def test_the_four_comparisons_agree() -> None:
    for a, b in itertools.product(GUARANTEES[::3], repeat=2):
        assert (a <= b) == (b >= a)
        assert (a < b) == (b > a) == (a <= b and not b <= a)


def test_a_larger_number_is_a_weaker_promise() -> None:
    for kind in (Pure, ZeroConcentrated, Gaussian):
        assert kind(1) < kind(2)
    assert Approx(1, 1e-9) < Approx(1, 1e-6) < Approx(2, 1e-6)


def test_some_guarantees_are_not_comparable() -> None:
    assert not Approx(1, 1e-6) <= Approx(2, 1e-9)
    assert not Approx(2, 1e-9) <= Approx(1, 1e-6)
    assert not Approx(0.1, 1e-9) <= ZeroConcentrated(100)
    assert not ZeroConcentrated(0.1) <= Gaussian(100)


def response_delta(budget: Any, epsilon: Any) -> Any:
    """The exact delta of randomized response, the worst pure mechanism."""
    p = 1 / (1 + mpmath.exp(-budget))
    return max(0, p - mpmath.exp(epsilon) * (1 - p))


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """The exact delta of the Gaussian mechanism."""
    normal = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    return normal(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


def response_divergence(budget: Any, order: Any) -> Any:
    """Rényi divergence of randomized response."""
    p = 1 / (1 + mpmath.exp(-budget))
    q = 1 - p
    return mpmath.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1)


PURE = [1e-6, 0.1, 1.0, 3.0, 12.0, 30.0]


@pytest.mark.parametrize("budget", PURE)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_pure_implies_approximate_exactly_where_randomized_response_does(budget: Any, share: float) -> None:
    with mpmath.workdps(60):
        delta = float(response_delta(mpmath.mpf(budget), mpmath.mpf(budget * share)))
    assert Pure(budget) <= Approx(budget * share, min(delta * (1 + 1e-9), 1 - 2**-53))
    assert not Pure(budget) <= Approx(budget * share, delta * (1 - 1e-9))


@pytest.mark.parametrize("budget", PURE)
def test_pure_implies_concentrated_exactly_where_randomized_response_does(budget: Any) -> None:
    with mpmath.workdps(60):
        ratios = [
            response_divergence(mpmath.mpf(budget), order) / order
            for order in map(mpmath.mpf, ("1.00000001", "1.1", "1.5", "2", "3", "10", "100", "10000"))
        ]
        worst = float(max(ratios))
    assert Pure(budget) <= ZeroConcentrated(worst * (1 + 1e-6))
    assert not Pure(budget) <= ZeroConcentrated(worst * (1 - 1e-6))


def test_pure_implies_concentrated_with_half_the_square() -> None:
    assert all(Pure(x) <= ZeroConcentrated(x * x / 2) for x in PURE)


@pytest.mark.parametrize("budget", PURE)
def test_pure_implies_gaussian_exactly_where_the_trade_off_curves_say_so(budget: Any) -> None:
    with mpmath.workdps(60):
        corner = 1 / (1 + mpmath.exp(budget))
        mu = float(2 * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * corner))
        normal = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        for rate in (corner / 7, corner / 2, corner, (1 + corner) / 2, 1 - corner / 9):
            quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * rate)
            missed = max(0, 1 - mpmath.exp(budget) * rate, mpmath.exp(-budget) * (1 - rate))
            assert normal(quantile - mu) <= missed * (1 + mpmath.mpf(10) ** -9)
    assert Pure(budget) <= Gaussian(mu * (1 + 1e-7))
    assert not Pure(budget) <= Gaussian(mu * (1 - 1e-7))


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("deviations", [0.0, 0.5, 3.0, 9.0, 30.0])
def test_gaussian_implies_approximate_exactly_where_its_mechanism_does(mu: float, deviations: float) -> None:
    epsilon = mu * mu / 2 + deviations * mu
    with mpmath.workdps(250):
        delta = float(gaussian_delta(mpmath.mpf(mu), mpmath.mpf(epsilon)))
    assert Gaussian(mu) <= Approx(epsilon, delta * (1 + 1e-6))
    assert not Gaussian(mu) <= Approx(epsilon, delta * (1 - 1e-6))


@pytest.mark.parametrize(("mu", "epsilon"), [(30.0, 720.0), (30.0, 1350.0), (1e-3, 0.037), (1e-9, 1.0), (300.0, 5e4)])
def test_gaussian_never_implies_less_than_its_delta_where_tails_vanish(mu: float, epsilon: float) -> None:
    with mpmath.workdps(1000):
        delta = float(gaussian_delta(mpmath.mpf(mu), mpmath.mpf(epsilon)))
    assert not Gaussian(mu) <= Approx(epsilon, delta * (1 - 1e-9))
    assert Gaussian(mu) <= Approx(epsilon, max(3 * delta, 1e-299))


def test_gaussian_noise_is_never_pure_however_large_epsilon_is() -> None:
    """A tail that rounds to zero once made Gaussian(1) imply Approx(10, 0)."""
    for mu, epsilon in itertools.product((1e-6, 0.1, 1.0, 10.0), (0.0, 1.0, 10.0, 1e3, 1e9, 1e300)):
        assert not Gaussian(mu) <= Approx(epsilon, 0)
        assert not Gaussian(mu) <= Pure(epsilon)


def test_gaussian_implies_concentrated_with_half_the_square() -> None:
    assert Gaussian(1) <= ZeroConcentrated(0.5)
    assert not Gaussian(1) <= ZeroConcentrated(math.nextafter(0.5, 0))


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.5])
def test_concentrated_never_claims_more_than_the_gaussian_mechanism_keeps(rho: float, delta: float) -> None:
    epsilon = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert ZeroConcentrated(rho) <= Approx(epsilon * (1 + 1e-12), delta)
    assert not ZeroConcentrated(rho) <= Approx(epsilon * (1 - 1e-12), delta)
    with mpmath.workdps(60):
        assert gaussian_delta(mpmath.sqrt(2 * mpmath.mpf(rho)), mpmath.mpf(epsilon)) <= delta


@pytest.mark.parametrize("kind", [Pure, ZeroConcentrated, Gaussian])
def test_huge_and_tiny_numbers_do_not_break_the_order(kind: Any) -> None:
    for a, b in itertools.product([kind(x) for x in (5e-324, 1e-200, 1e200, 1.7e308)], GUARANTEES):
        assert (a <= b) in {True, False}
        assert (b <= a) in {True, False}


@pytest.mark.parametrize("guarantee", GUARANTEES[::5], ids=str)
def test_a_guarantee_survives_json(guarantee: Any) -> None:
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pure(-1),
        lambda: Pure(math.nan),
        lambda: Pure(math.inf),
        lambda: Approx(1, 1),
        lambda: Approx(1, -1e-9),
        lambda: Approx("1", 0.1),  # type: ignore[arg-type]
        lambda: ZeroConcentrated(-1),
        lambda: Gaussian(True),
        lambda: Guarantee.from_dict({}),
        lambda: Guarantee.from_dict({"guarantee": ["Pure"]}),
        lambda: Guarantee.from_dict({"guarantee": "Pure"}),
        lambda: Guarantee.from_dict({"guarantee": "Pure", "epsilon": 1, "surprise": 2}),
    ],
)
def test_a_promise_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_a_guarantee_does_not_compare_with_a_number() -> None:
    with pytest.raises(TypeError):
        assert Pure(1) <= 1
