"""One-run canaries: sound on known worlds, silent on null canaries, loud on faults."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from mosha.audit import Outcome
from mosha.audit.attacks.canary import (
    Guesses,
    audit_one_run,
    chance_of_guesses,
    draw_inclusion,
    epsilon_of_guesses,
    guess,
)
from mosha.audit.claims.claim import ApproxClaim, CurveClaim, GaussianClaim, ZeroConcentratedClaim
from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Gaussian, Pure
from tests.chance import look_for_fault

random = np.random.default_rng


def first_refuted(canaries: Any, claim: Any, alpha: Any) -> Any:
    """The least number of right guesses, all canaries being guessed, that refutes the claim; None if none does."""
    low, high = -1, canaries
    if not chance_of_guesses(Guesses(high, canaries, canaries), claim, alpha=alpha):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        refuted = chance_of_guesses(Guesses(middle, canaries, canaries), claim, alpha=alpha)
        low, high = (low, middle) if refuted else (middle, high)
    return high


# Soundness, without statistics: where the law of the guesses is known


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("canaries", [10, 100, 1000])
def test_randomized_response_is_never_refuted_more_often_than_alpha(epsilon: float, canaries: int) -> None:
    """Each canary's bit through randomized response: the right guesses are binomial, the worst case of the theorem."""
    truth = 1 / (1 + math.exp(-epsilon))
    for alpha in (0.1, 1e-3):
        first = first_refuted(canaries, ApproxClaim(epsilon), alpha)
        assert first is None or binom.sf(first - 1, canaries, truth) <= alpha
        lower = epsilon_of_guesses(Guesses(canaries, canaries, canaries), delta=0, confidence=1 - alpha)
        assert 1 / (1 + math.exp(-lower)) ** canaries <= alpha * 1.001


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("canaries", [10, 200])
def test_gaussian_canaries_are_never_refuted_more_often_than_alpha(mu: float, canaries: int) -> None:
    """Each canary moves its own normal number by mu: the right guesses by sign are binomial with Phi(mu / 2)."""
    for alpha in (0.1, 1e-3):
        first = first_refuted(canaries, GaussianClaim(mu), alpha)
        assert first is None or binom.sf(first - 1, canaries, ndtr(mu / 2)) <= alpha


def test_a_weaker_claim_is_harder_to_refute() -> None:
    seen = Guesses(180, 200, 1000)
    refuted = [chance_of_guesses(seen, GaussianClaim(mu), alpha=1e-3) for mu in (0.1, 0.5, 1, 2, 4, 8)]
    assert refuted == sorted(refuted, reverse=True)
    assert refuted[0]
    assert not refuted[-1]


def test_a_curve_of_one_point_is_that_point() -> None:
    seen = Guesses(150, 200, 400)
    for epsilon in np.linspace(0, 2, 21):
        one = chance_of_guesses(seen, ApproxClaim(epsilon, 1e-4), alpha=1e-3)
        assert one == chance_of_guesses(seen, CurveClaim((epsilon,), (1e-4,), epsilon, 1e-4), alpha=1e-3)


def test_delta_only_weakens_what_is_shown() -> None:
    seen = Guesses(95, 100, 1000)
    found = [epsilon_of_guesses(seen, delta=delta, confidence=0.99) for delta in (0, 1e-9, 1e-6, 1e-4, 1e-2)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[3]
    assert found[4] == 0


# Null calibration and power


def test_canaries_without_leakage_show_nothing_more_often_than_stated() -> None:
    """60 null runs at confidence 0.8: more than 37 with a positive bound have probability below 1e-9."""
    limit = int(binom.isf(1e-9, 60, 0.2))
    alarms = {"mu": 0, "epsilon": 0}
    for _ in range(60):
        included = draw_inclusion(200)
        scores = random().normal(size=200)
        alarms["mu"] += audit_one_run(scores, included, confidence=0.8).lower > 0
        alarms["epsilon"] += audit_one_run(scores, included, confidence=0.8, delta=1e-6).lower > 0
    assert max(alarms.values()) <= limit < 40


@pytest.mark.parametrize(("mu", "share"), [(0.5, 0.15), (2.0, 0.4)])
def test_the_bound_of_a_gaussian_run_is_below_the_truth_and_not_trivial(mu: float, share: float) -> None:
    """It shows 0.61 and 0.67 of mu on average, with a deviation of 0.04 and 0.03: the shares are 8 and more below."""
    included = draw_inclusion(16_000)
    scores = random().normal(size=16_000) + mu * included
    run = audit_one_run(scores, included, confidence=1 - 1e-9)
    assert share * mu < audit_one_run(scores, included, confidence=0.95).lower
    assert run.lower < mu


def test_a_claim_is_kept_or_broken() -> None:
    included = draw_inclusion(6000)  # at least 0.92 is shown of mu 2, with a deviation of 0.04: 0.5 is 10 of them below
    scores = random().normal(size=6000) + 2 * included
    kept = audit_one_run(scores, included, claim=Gaussian(2), confidence=1 - 1e-9)
    broken = audit_one_run(scores, included, claim=Gaussian(0.5))
    assert (kept.outcome, broken.outcome) == (Outcome.CONSISTENT, Outcome.BROKEN)
    assert audit_one_run(scores, included, claim=Pure(0.2)).broken
    assert "BROKEN" in str(broken)
    assert broken.to_dict()["outcome"] == "broken"


# The bar of the issue: DP-SGD with 5,000 canaries, claimed epsilon 1.10


def one_training(
    included: Any,
    *,
    noise_multiplier: Any,
    rate: float = 0.1,
    steps: int = 200,
    gradient: float = 1.0,
    scale: float = 1.0,
) -> Any:
    """Dirac canaries: each has a coordinate of its own; the score is what all updates left there."""
    rounds = random().binomial(steps, rate, included.size) if rate < 1 else np.full(included.size, steps)
    noise = random().normal(size=included.size) * math.sqrt(steps) * noise_multiplier * scale
    return gradient * included * rounds + noise


NOISE = 4.99  # of DP-SGD with rate 0.1 and 200 steps: epsilon 1.10 at delta 1e-5
FAULTS: dict[str, Any] = {
    "no clipping for each example": {"gradient": 10.0},
    "full batch": {"rate": 1.0},
    "noise over the root of the batch": {"scale": 1 / math.sqrt(100)},
}


@pytest.fixture(scope="module")
def claim() -> Any:
    from mosha import events
    from mosha.accounting import epsilon
    from mosha.audit import claim_of

    training = events.Gaussian(NOISE).sample(0.1) * 200
    assert epsilon(training, 1e-5) == pytest.approx(1.10, abs=0.02)
    return claim_of(training, delta=1e-5)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_one_run_finds_a_faulty_trainer(fault: Any, claim: Any) -> None:
    def audit() -> Any:
        included = draw_inclusion(5000)
        return audit_one_run(one_training(included, noise_multiplier=NOISE, **FAULTS[fault]), included, claim=claim)

    assert look_for_fault(audit).outcome is Outcome.BROKEN


def test_one_run_leaves_a_correct_trainer_alone(claim: Any) -> None:
    included = draw_inclusion(5000)
    scores = one_training(included, noise_multiplier=NOISE)
    assert audit_one_run(scores, included, claim=claim, confidence=1 - 1e-9).outcome is Outcome.CONSISTENT


# Refusals


def test_guesses_that_cannot_be_are_refused() -> None:
    for wrong in [(5, 4, 10), (1, 11, 10), (-1, 3, 10), (0, 0, 10)]:
        with pytest.raises(InvalidParameter):
            Guesses(*wrong)
    included = draw_inclusion(10)
    with pytest.raises(InvalidParameter):
        guess([0.0] * 9, included, made=4)
    with pytest.raises(InvalidParameter):
        guess([float("nan")] * 10, included, made=4)
    with pytest.raises(InvalidParameter):
        guess([0.0] * 10, np.ones(10), made=4)
    with pytest.raises(InvalidParameter):
        chance_of_guesses(Guesses(9, 10, 10), ZeroConcentratedClaim(1.0), alpha=0.1)
    with pytest.raises(InvalidParameter):
        draw_inclusion(0)
