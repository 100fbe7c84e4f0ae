"""The exact region of two probabilities: what two counts let an attacker say."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha.audit.attacks.region import Counts, explain, weights_for
from mosha.audit.claims.claim import ApproxClaim, GaussianClaim, ZeroConcentratedClaim


def chance_of_exceeding(claim: Any, p: Any, q: Any, *, trials: Any, weights: Any, alpha: Any) -> Any:
    """P(least > amount) over both counts, exactly, by adding up every pair of counts."""
    counts = np.arange(trials + 1)
    first, second = binom.pmf(counts, trials, p), binom.pmf(counts, trials, q)
    total = 0.0
    for x in counts[first > 1e-12]:
        for y in counts[second > 1e-12]:
            if (
                explain(Counts(int(x), trials, int(y), trials), claim, weights=weights, alpha=alpha).least
                > claim.amount
            ):
                total += first[x] * second[y]
    return total


@pytest.mark.parametrize(
    ("p", "q", "claim"),
    [
        (np.e / (1 + np.e), 1 / (1 + np.e), ApproxClaim(1.0)),
        (0.5, 0.5 / np.e, ApproxClaim(1.0)),
        (0.3, 0.2, ApproxClaim(0.0, 0.1)),
        (0.6914625, 0.3085375, GaussianClaim(1.0)),
    ],
)
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 0.2), (0.0, 1.0)])
def test_a_mechanism_at_the_very_edge_of_its_claim_is_flagged_with_probability_at_most_alpha(
    p: Any, q: Any, claim: Any, weights: Any
) -> None:
    assert float(claim.least(p, q)) == pytest.approx(claim.amount, abs=1e-6)
    edge = type(claim)(
        *[value * (1 + 1e-6) if value == claim.amount and value else value for value in vars(claim).values()]
    )
    assert chance_of_exceeding(edge, p, q, trials=13, weights=weights, alpha=0.1) <= 0.1


def test_more_evidence_needs_a_larger_amount() -> None:
    claim = ApproxClaim(1.0)
    found = [
        explain(Counts(x, 1000, 100, 1000), claim, weights=(1.0, 1.0), alpha=1e-3).least for x in (150, 300, 600, 1000)
    ]
    assert found == sorted(found)
    less = [
        explain(Counts(600, 1000, y, 1000), claim, weights=(1.0, 1.0), alpha=1e-3).least for y in (0, 50, 200, 500, 700)
    ]
    assert less == sorted(less, reverse=True)
    assert less[-1] == 0


def test_a_stricter_level_shows_less() -> None:
    found = [
        explain(Counts(600, 1000, 200, 1000), ApproxClaim(1.0), weights=(1.0, 1.0), alpha=alpha).least
        for alpha in (0.1, 1e-3, 1e-6, 1e-12)
    ]
    assert found == sorted(found, reverse=True)


def test_the_right_weights_beat_two_separate_intervals() -> None:
    from mosha.audit.attacks.interval import at_least, at_most

    claim, counts, alpha = ApproxClaim(1.0), Counts(7300, 10_000, 2700, 10_000), 1e-3
    apart = float(claim.least(at_least(7300, 10_000, alpha=alpha / 2), at_most(2700, 10_000, alpha=alpha / 2)))
    together = explain(counts, claim, weights=weights_for(0.73, 0.27, claim), alpha=alpha).least
    assert apart < together < np.log(0.73 / 0.27)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (np.nan, 1.0), (np.inf, 1.0), (-1.0, 2.0)])
def test_senseless_weights_cost_power_and_nothing_else(weights: Any) -> None:
    sensible = explain(Counts(60, 100, 20, 100), ApproxClaim(1.0), weights=(1.0, 1.0), alpha=0.01)
    assert explain(Counts(60, 100, 20, 100), ApproxClaim(1.0), weights=weights, alpha=0.01) == sensible


def test_a_count_of_nothing_shows_nothing() -> None:
    assert explain(Counts(0, 100, 0, 100), ZeroConcentratedClaim(0.5), weights=(1.0, 1.0), alpha=0.01).least == 0
