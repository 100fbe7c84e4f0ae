"""Trade-off curves bound every attack, and their summaries agree with one another."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mosha import guarantees
from mosha.accounting.measures import gaussian
from mosha.accounting.tradeoff import TradeOff, tradeoff
from mosha.core.errors import InvalidParameter
from mosha.events import Gaussian, Laplace, Matrix, RandomizedResponse
from tests.accounting import golden

PROMISES = [
    guarantees.Pure(0.0),
    guarantees.Pure(0.7),
    guarantees.Pure(800.0),
    guarantees.Approx(0.0, 0.3),
    guarantees.Approx(1.0, 1e-5),
    guarantees.Gaussian(0.5),
    guarantees.Gaussian(3.0),
    guarantees.ZeroConcentrated(0.1),
    guarantees.ZeroConcentrated(3.0),
    Gaussian(2) * 3,
    Laplace(2) + RandomizedResponse(0.3),
    Gaussian(1.1).sample(0.01) * 100,
]
RATES = [0.0, 1e-6, 0.01, 0.2, 0.5, 0.9, 1.0]
on_every_promise = pytest.mark.parametrize("promise", PROMISES, ids=str)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gdp_advantage"))
def test_golden_gaussian_advantage(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert tradeoff(guarantees.Gaussian(inputs["mu"])).advantage() == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("gdp_tpr"))
def test_golden_gaussian_success(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    curve = tradeoff(guarantees.Gaussian(inputs["mu"]))
    assert curve.true_positive_rate(inputs["fpr"]) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("pure_dp_advantage"))
def test_golden_pure_advantage(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    assert tradeoff(guarantees.Pure(inputs["eps"])).advantage() == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("row", "inputs", "expected", "tolerance"), golden.rows("adp_tpr"))
def test_golden_approximate_success(row: Any, inputs: Any, expected: Any, tolerance: Any) -> None:
    curve = tradeoff(guarantees.Approx(inputs["eps"], inputs["delta"]))
    assert curve.true_positive_rate(inputs["fpr"]) == pytest.approx(expected, rel=tolerance)


@on_every_promise
def test_a_curve_falls_and_never_beats_guessing_upside_down(promise: Any) -> None:
    curve = tradeoff(promise)
    missed = [curve(rate) for rate in RATES]
    assert all(0 <= miss <= 1 - rate + 1e-12 for miss, rate in zip(missed, RATES, strict=True))
    assert missed == sorted(missed, reverse=True)


@on_every_promise
def test_the_advantage_bounds_every_point_of_the_curve(promise: Any) -> None:
    curve = tradeoff(promise)
    gains = [curve.true_positive_rate(rate) - rate for rate in np.linspace(0, 1, 12)]
    assert max(gains) <= curve.advantage() + 1e-6
    assert 0 <= curve.advantage() <= 1


@on_every_promise
@pytest.mark.parametrize("prior", [1e-6, 0.1, 0.5, 0.9])
def test_the_bayes_risk_is_no_more_than_that_of_guessing_and_of_any_point(promise: Any, prior: float) -> None:
    curve = tradeoff(promise)
    risk = curve.bayes_risk(prior)
    assert 0 <= risk <= min(prior, 1 - prior)
    for rate in RATES:
        assert risk <= prior * curve(rate) + (1 - prior) * rate + 1e-6


@on_every_promise
def test_a_posterior_grows_with_the_prior_and_with_rarer_false_alarms(promise: Any) -> None:
    curve = tradeoff(promise)
    beliefs = [curve.posterior(prior, false_positive_rate=0.01) for prior in (0.01, 0.1, 0.5)]
    assert beliefs == sorted(beliefs)
    rarer = [curve.posterior(0.1, false_positive_rate=rate) for rate in (0.5, 0.01, 1e-6, 0.0)]
    assert all(low <= high * (1 + 1e-6) for low, high in pairwise(rarer))


def test_the_worst_posterior_of_a_pure_promise_is_bayes_rule() -> None:
    for epsilon in (0.0, 0.5, 3.0):
        odds = math.exp(epsilon) * 0.2 / 0.8
        found = tradeoff(guarantees.Pure(epsilon)).posterior(0.2, false_positive_rate=0.0)
        assert found == pytest.approx(odds / (1 + odds), rel=1e-9)
    assert tradeoff(guarantees.Gaussian(0.1)).posterior(0.2, false_positive_rate=0.0) == 1.0


@given(st.floats(0.05, 4), st.floats(0.001, 0.999))
def test_the_profile_gives_back_the_gaussian_curve(mu: Any, rate: Any) -> None:
    by_profile = TradeOff(lambda x: gaussian.delta(mu, x))(rate)
    closed = tradeoff(guarantees.Gaussian(mu))(rate)
    assert by_profile <= closed * (1 + 1e-9) + 1e-12
    assert by_profile == pytest.approx(closed, rel=1e-3, abs=1e-3)
    assert closed == pytest.approx(stats.norm.cdf(stats.norm.isf(rate) - mu), rel=1e-9, abs=1e-15)


@settings(max_examples=40)
@given(st.floats(0.01, 3), st.floats(0.001, 0.999))
def test_gaussians_keep_the_curve_of_their_rho(mu: Any, rate: Any) -> None:
    rho = tradeoff(guarantees.ZeroConcentrated(mu * mu / 2))
    assert rho(rate) <= tradeoff(guarantees.Gaussian(mu))(rate) + 1e-9


@settings(max_examples=40)
@given(st.floats(0.01, 5), st.floats(0.001, 0.999))
def test_pure_mechanisms_keep_the_curve_of_their_rho(epsilon: Any, rate: Any) -> None:
    rho = tradeoff(guarantees.ZeroConcentrated(epsilon * math.tanh(epsilon / 2)))
    assert rho(rate) <= tradeoff(guarantees.Pure(epsilon))(rate) + 1e-9


def test_gaussian_events_have_the_closed_curve() -> None:
    curve = tradeoff(Gaussian(2) * 3 + Matrix(2, 1.0))
    assert curve(0.1) == pytest.approx(tradeoff(guarantees.Gaussian(1.0))(0.1), rel=1e-9)


def test_an_event_is_bounded_by_its_certified_curve() -> None:
    curve = tradeoff(RandomizedResponse(1.0))
    closed = tradeoff(guarantees.Pure(1.0))
    assert curve.advantage() == pytest.approx(closed.advantage(), rel=1e-4)
    for rate in (0.01, 0.2, 0.6):
        assert curve(rate) <= closed(rate) * (1 + 1e-9)
        assert curve(rate) == pytest.approx(closed(rate), abs=5e-3)
    assert curve.posterior(0.2, false_positive_rate=0.0) < 1


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, "0.1", None])
def test_rates_that_make_no_sense_are_refused(wrong: Any) -> None:
    curve = tradeoff(guarantees.Pure(1))
    for call in (
        lambda: curve(wrong),
        lambda: curve.true_positive_rate(wrong),
        lambda: curve.bayes_risk(wrong),
        lambda: curve.posterior(wrong, false_positive_rate=0.1),
        lambda: curve.posterior(0.5, false_positive_rate=wrong),
    ):
        with pytest.raises(InvalidParameter):
            call()


@pytest.mark.parametrize("wrong", [1.0, None, "epsilon 1"])
def test_only_events_and_guarantees_have_a_curve(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        tradeoff(wrong)
