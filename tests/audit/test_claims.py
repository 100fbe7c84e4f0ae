"""Claims: what each promise allows, checked against closed forms and against each other."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from mosha import events, guarantees
from mosha.audit import claim_of
from mosha.audit.claims.claim import ApproxClaim, CurveClaim, GaussianClaim, RenyiClaim, ZeroConcentratedClaim
from mosha.core.errors import InvalidParameter

CLAIMS = [
    ApproxClaim(1.0),
    ApproxClaim(0.5, 0.01),
    GaussianClaim(0.7),
    ZeroConcentratedClaim(0.3),
    RenyiClaim(4.0, 0.9),
    CurveClaim((0.0, 1.0, 2.0), (0.4, 0.1, 0.0), 2.0, 0.0),
]
GRID = np.array([1e-6, 1e-3, 0.05, 0.2, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.describe())
def test_more_true_positives_or_fewer_false_ones_need_more(claim: Any) -> None:
    table = claim.least(GRID[:, None], GRID[None, :])
    assert np.all(np.diff(table, axis=0) >= -1e-12)
    assert np.all(np.diff(table, axis=1) <= 1e-12)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.describe())
def test_an_event_that_is_as_likely_in_both_worlds_needs_nothing(claim: Any) -> None:
    if not isinstance(claim, CurveClaim):
        assert np.all(claim.least(GRID, GRID) == 0)
    assert np.all(claim.least(GRID, 1.0) == 0)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.describe())
def test_the_greatest_allowed_rate_is_where_the_least_amount_meets_the_claim(claim: Any) -> None:
    allowed = claim.greatest(GRID)
    assert np.all(allowed >= GRID - 1e-12)
    assert np.all(claim.least(allowed, GRID) <= claim.amount * (1 + 1e-9))
    inside = allowed < 1 - 1e-9
    assert np.all(claim.least(np.minimum(allowed + 1e-7, 1), GRID)[inside] > claim.amount)
    assert np.all(np.diff(allowed) >= 0)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.describe())
def test_the_complement_of_an_event_says_the_same(claim: Any) -> None:
    p, q = GRID[:, None], GRID[None, :]
    assert claim.least(p, q) == pytest.approx(claim.least(1 - q, 1 - p), rel=1e-6, abs=1e-9)


def test_the_closed_forms() -> None:
    assert ApproxClaim(1.0).greatest(0.1) == pytest.approx(0.1 * np.e)
    assert ApproxClaim(1.0).greatest(0.9) == pytest.approx(1 - 0.1 / np.e)
    assert ApproxClaim(1.0, 0.01).greatest(0.1) == pytest.approx(0.1 * np.e + 0.01)
    assert GaussianClaim(1.0).greatest(0.1) == pytest.approx(float(ndtr(1 - 1.2815515655)), rel=1e-6)


def test_randomized_response_has_the_rho_and_the_divergence_that_theory_gives() -> None:
    p, q = np.e / (1 + np.e), 1 / (1 + np.e)
    order = 4.0
    divergence = np.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1)
    assert float(RenyiClaim(order, 1.0).least(p, q)) == pytest.approx(divergence)
    kl = p * np.log(p / q) + q * np.log(q / p)
    found = float(ZeroConcentratedClaim(1.0).least(p, q))
    assert kl * 0.99 <= found <= 0.5, "rho of randomized response lies between its KL divergence and epsilon^2 / 2"


def test_guarantees_and_events_become_claims() -> None:
    assert claim_of(guarantees.Pure(1)) == ApproxClaim(1.0)
    assert claim_of(guarantees.Approx(1, 1e-6)) == ApproxClaim(1.0, 1e-6)
    assert claim_of(guarantees.ZeroConcentrated(0.5)) == ZeroConcentratedClaim(0.5)
    assert claim_of(guarantees.Gaussian(2)) == GaussianClaim(2.0)
    assert claim_of(ApproxClaim(1.0)) == ApproxClaim(1.0)
    assert claim_of(events.Pure(2)) == ApproxClaim(2.0)
    assert claim_of(events.Approx(2, 0.1)) == ApproxClaim(2.0, 0.1)
    assert claim_of(events.RandomizedResponse(2)) == ApproxClaim(2.0)
    assert claim_of(events.SparseVector(0.4, 0.6, 3)) == ApproxClaim(1.0)
    assert claim_of(events.ZeroConcentrated(0.1) * 3).amount == pytest.approx(0.3)
    assert claim_of(events.Renyi((8.0,), (0.5,))) == RenyiClaim(8.0, 0.5)
    assert claim_of(events.NOTHING) == ApproxClaim(0.0)


def test_gaussian_events_compose_to_one_mu() -> None:
    together = events.Gaussian(3) * 4 + events.Matrix(2, 1) + events.DiscreteGaussian(5, 1024)
    assert claim_of(together).amount == pytest.approx(np.sqrt(4 / 9 + 1 / 4 + 1 / 25), rel=1e-6)


def test_the_curve_of_laplace_noise_is_the_one_of_two_exponentials() -> None:
    """At epsilon e the total delta of Laplace noise with epsilon 1 is 1 - exp((e - 1) / 2)."""
    claim = claim_of(events.Laplace(1))
    assert isinstance(claim, CurveClaim)
    assert (claim.epsilons[-1], claim.deltas[-1]) == (1.0, 0.0)
    expected = 1 - np.exp((np.array(claim.epsilons) - 1) / 2)
    assert np.array(claim.deltas) == pytest.approx(expected, abs=1e-3)
    assert np.all(np.array(claim.deltas) >= expected - 1e-12), "a claim errs on the side of the mechanism"


def test_an_event_without_a_pure_price_is_named_at_its_delta() -> None:
    claim = claim_of(events.Gaussian(4).sample(0.1) * 50, delta=1e-5)
    assert "1e-05" in claim.measure
    assert 0.2 < claim.amount < 2


@pytest.mark.parametrize("wrong", [None, 1.0, "epsilon", object()])
def test_what_promises_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        claim_of(wrong)


@pytest.mark.parametrize("make", [ApproxClaim, GaussianClaim, ZeroConcentratedClaim])
@pytest.mark.parametrize("amount", [-1.0, float("nan"), float("inf"), "1"])
def test_amounts_that_mean_nothing_are_refused(make: Any, amount: Any) -> None:
    with pytest.raises(InvalidParameter):
        make(amount)


def test_orders_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        RenyiClaim(1.0, 1.0)


def test_an_event_with_a_delta_of_its_own_has_a_curve_of_numbers() -> None:
    claim = claim_of(events.Approx(0.5, 1e-3) + events.Laplace(2.0), delta=1e-2)
    assert all(math.isfinite(epsilon) for epsilon in claim.epsilons)  # type: ignore[attr-defined]
    assert max(claim.deltas) < 1  # type: ignore[attr-defined]
