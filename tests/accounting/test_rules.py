"""Rules charge exactly, refuse what they cannot pay and promise what they charge for."""

import json
import math
from random import SystemRandom
from typing import Any

import pytest

from mosha.accounting import rules
from mosha.accounting.rules import EitherRule, GaussianRule, Price, PureRule, RenyiRule, ZeroConcentratedRule, rule_for
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.guarantee import Approx
from mosha.events import Approx as ApproxEvent
from mosha.events import (
    DiscreteGaussian,
    Exponential,
    Failure,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
)

EVERY_RULE = [
    rule_for(epsilon=1),
    rule_for(epsilon=1, delta=1e-6, rule="pure"),
    rule_for(epsilon=3, delta=1e-6),
    rule_for(epsilon=3, delta=1e-6, delta_for_events=5e-7),
    rule_for(epsilon=0.01, delta=1e-12),
    rule_for(epsilon=3, delta=1e-6, rule="zero-concentrated"),
    rule_for(epsilon=3, delta=1e-6, rule="renyi"),
    rule_for(epsilon=3, delta=1e-6, rule="gaussian"),
    rule_for(rho=0.5),
    rule_for(rho=0.5, delta=1e-6),
    rule_for(mu=1),
    rule_for(mu=1, delta=1e-6),
]
ids = [f"{rule.name}-{k}" for k, rule in enumerate(EVERY_RULE)]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
def test_a_rule_survives_json(rule: Any) -> None:
    assert rules.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
def test_spending_the_limit_keeps_the_promise(rule: Any) -> None:
    assert rule.spent_as(rule.limit) <= rule.promise()


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
def test_spending_nothing_costs_nothing(rule: Any) -> None:
    assert rule.spent_as(rules.FREE) <= Approx(0.0, 0.0)


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
@pytest.mark.parametrize("event", [Pure(0.1), Laplace(30), RandomizedResponse(0.2, 7), Exponential(0.3)])
def test_a_price_counts_repetitions_exactly(rule: Any, event: Any) -> None:
    assert rule.price(event * 7) == rule.price(event) * 7 == sum(rule.price(event) for _ in range(7))


@pytest.mark.parametrize("tenth", [0.1, 0.3, 0.7, 1 / 3, 0.07])
@pytest.mark.parametrize("count", [3, 10, 1000])
def test_n_parts_of_a_limit_fit_into_it_in_spite_of_binary_fractions(tenth: Any, count: int) -> None:
    rule = rule_for(epsilon=tenth * count)
    assert rule.price(Pure(tenth) * count) <= rule.limit
    assert not rule.price(Pure(tenth) * count + Pure(1e-14 * tenth * count)) <= rule.limit


def test_the_limit_of_an_epsilon_and_delta_is_the_converted_one() -> None:
    rule = rule_for(epsilon=3, delta=1e-6, rule="zero-concentrated")
    assert isinstance(rule, ZeroConcentratedRule)
    assert rule.promise() == Approx(3.0, 1e-6)
    assert rule.limit.as_floats()[1] == pytest.approx(1e-7, rel=1e-12)
    spent = rule.spent_as(rule.limit)
    assert spent.epsilon == pytest.approx(3, rel=1e-9)  # type: ignore[attr-defined]
    assert spent.delta <= 1e-6  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 30.0, 1e9, 1e200])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.999999])
@pytest.mark.parametrize("name", ["auto", "pure", "renyi", "gaussian"])
def test_extreme_promises_are_kept_too(epsilon: float, delta: float, name: str) -> None:
    rule = rule_for(epsilon=epsilon, delta=delta, rule=name)  # type: ignore[arg-type]
    assert rule.spent_as(rule.limit) <= rule.promise()
    assert rules.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


def test_the_share_for_events_is_taken_from_the_conversion() -> None:
    most = rule_for(epsilon=3, delta=1e-6, delta_for_events=0.0)
    less = rule_for(epsilon=3, delta=1e-6, delta_for_events=9e-7)
    assert most.rho > less.rho  # type: ignore[attr-defined]
    assert most.limit.delta == 0


def test_kinds_of_limits_choose_their_rules() -> None:
    assert isinstance(rule_for(epsilon=1), PureRule)
    assert isinstance(rule_for(epsilon=1, delta=1e-6), EitherRule)
    assert isinstance(rule_for(epsilon=1, delta=1e-6, delta_for_events=1e-8), ZeroConcentratedRule)
    assert isinstance(rule_for(epsilon=1e20, delta=1e-6), PureRule)
    assert isinstance(rule_for(rho=1), ZeroConcentratedRule)
    assert isinstance(rule_for(mu=1), GaussianRule)
    assert isinstance(rule_for(epsilon=1, delta=1e-6, rule="renyi"), RenyiRule)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-9},
        {"epsilon": 1, "delta": 1e-6, "delta_for_events": 1e-6},
        {"epsilon": 1, "delta": 1e-6, "delta_for_events": -1e-9},
        {"epsilon": 1, "rule": "zero-concentrated"},
        {"epsilon": 1, "rule": "gaussian"},
        {"epsilon": 1, "rule": "tight"},
        {"rho": 0},
        {"rho": 1, "rule": "renyi"},
        {"rho": 1, "delta_for_events": 1e-9},
        {"mu": 1, "rule": "pure"},
        {"epsilon": 1, "delta": 1e-6, "rule": "pure", "delta_for_events": 1e-7},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        rule_for(**wrong)


@pytest.mark.parametrize(
    ("rule", "event"),
    [
        (rule_for(epsilon=1), Gaussian(100)),
        (rule_for(epsilon=1), ZeroConcentrated(0.1)),
        (rule_for(rho=1), Renyi((2.0,), (0.1,))),
        (rule_for(mu=1), ZeroConcentrated(0.1)),
        (rule_for(mu=1), Gaussian(2).sample(0.1)),
        (rule_for(epsilon=1, delta=1e-6, rule="renyi"), Renyi((2.0,), (0.1,))),
    ],
)
def test_an_event_without_a_price_is_refused_with_advice(rule: Any, event: Any) -> None:
    with pytest.raises(Unpriced, match="Plan") as refusal:
        rule.price(Pure(0.1) + event)
    assert "Nothing was spent" in str(refusal.value)


def test_a_price_is_asked_for_events_only() -> None:
    with pytest.raises(InvalidParameter):
        rule_for(epsilon=1).price(0.5)  # type: ignore[arg-type]


def test_an_account_without_delta_cannot_pay_for_events_with_one() -> None:
    for rule in (rule_for(epsilon=1), rule_for(rho=1), rule_for(mu=1)):
        assert not rule.price(ApproxEvent(0.1, 1e-12)) <= rule.limit
        assert not rule.price(Failure(Pure(0.1), 1e-12)) <= rule.limit


def test_discrete_gaussian_noise_pays_under_the_gaussian_rule_with_a_tiny_delta() -> None:
    rule = rule_for(mu=1, delta=1e-6)
    fine = rule.price(DiscreteGaussian(10, sensitivity=1000.0, coordinates=50))
    assert fine.as_floats()[0] == pytest.approx(0.01, rel=1e-6)
    assert 0 < fine.as_floats()[1] < 1e-29
    with pytest.raises(Unpriced):
        rule.price(DiscreteGaussian(1))


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"rule": "pure", "version": 1},
        {"rule": "pure", "version": 2, "epsilon": 1.0, "delta": 0.0},
        {"rule": "other", "version": 1, "epsilon": 1.0, "delta": 0.0},
        {"rule": "pure", "version": 1, "epsilon": 1.0, "delta": 0.0, "rho": 1.0},
        {"rule": "pure", "version": 1, "epsilon": "1", "delta": 0.0},
    ],
)
def test_a_description_that_is_no_rule_is_refused(stored: Any) -> None:
    with pytest.raises(InvalidParameter):
        rules.from_dict(stored)


def test_a_stored_rule_cannot_promise_more_than_its_limit_keeps() -> None:
    stored = rule_for(epsilon=3, delta=1e-6).to_dict()
    for change in ({"epsilon": 2.9}, {"rho": stored["rho"] * 1.01}, {"delta_for_events": 9e-7}):
        with pytest.raises(InvalidParameter):
            rules.from_dict(stored | change)


def test_prices_are_exact_integers_that_round_up() -> None:
    third = Price.of(1 / 3)
    assert third.amount * 2.0**-128 == 1 / 3
    assert Price.of(5e-324) == Price(1, 0)
    assert Price.of(0.0) == Price(0, 0)
    assert Price.of(0.5, 0.25) - Price.of(0.25) == Price.of(0.25, 0.25)


def test_prices_compare_component_by_component() -> None:
    assert not Price.of(1, 0) <= Price.of(0, 1)
    assert not Price.of(0, 1) <= Price.of(1, 0)
    assert Price.of(1, 1) >= Price.of(1, 0)


@pytest.mark.parametrize("wrong", [-1, 0.5, True, "1", None])
def test_a_price_holds_whole_numbers_only(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        Price(wrong)
    with pytest.raises(InvalidParameter):
        Price.of(0.1) - Price.of(0.2)


@pytest.mark.parametrize(
    "stored", [None, {}, {"amount": "1"}, {"amount": "-1", "delta": "0"}, {"amount": "\u0661", "delta": "0"}]
)
def test_a_description_that_is_no_price_is_refused(stored: Any) -> None:
    with pytest.raises(InvalidParameter):
        Price.from_dict(stored)


def transcripts(rule: Any, spent: Any, depth: Any, random: Any) -> Any:
    """Exact laws, in both worlds, of all answers to an adversary that chooses the next price by what it has seen."""
    choices = [RandomizedResponse(epsilon) for epsilon in (0.05, 0.1, 0.3, 0.6, 1.2)]
    affordable = [event for event in choices if rule.admits(spent + rule.price(event), "either")]
    if depth == 0 or not affordable:
        return [(1.0, 1.0)]
    event = random.choice(affordable)
    truth = 1 / (1 + math.exp(-event.epsilon))
    found = []
    for here, there in ((truth, 1 - truth), (1 - truth, truth)):
        rest = transcripts(rule, spent + rule.price(event), depth - 1, random)
        found += [(here * p, there * q) for p, q in rest]
    return found


@pytest.mark.parametrize(
    "rule",
    [
        rule_for(epsilon=1.5),
        rule_for(epsilon=2, delta=0.05),
        rule_for(epsilon=2, delta=0.05, rule="zero-concentrated"),
        rule_for(epsilon=2, delta=0.05, rule="renyi"),
        rule_for(epsilon=2, delta=0.05, rule="gaussian"),
        rule_for(rho=0.5, delta=0.01),
    ],
    ids=lambda rule: rule.name,
)
def test_no_adaptive_adversary_exceeds_the_promise(rule: Any) -> None:
    """Every adversary here is exact: no sampling, so no false alarm."""
    random = SystemRandom()
    promise = rule.promise()
    epsilon, delta = promise.epsilon, getattr(promise, "delta", 0.0)
    largest = 0.0
    for _ in range(6):
        laws = transcripts(rule, rules.FREE, 9, random)
        assert math.fsum(p for p, _ in laws) == pytest.approx(1, rel=1e-9)
        lost = math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in laws)
        assert lost <= delta + 1e-12
        largest = max(largest, *(math.log(p / q) for p, q in laws))
    assert largest > 0.5 * epsilon  # the game is worth playing: some answers do come close


def test_an_adversary_that_is_let_in_beyond_the_limit_is_noticed() -> None:
    """The same game with a limit half again as high breaks the promise: the check above can fail."""
    promised, real = rule_for(epsilon=1.0), rule_for(epsilon=1.5)
    laws = transcripts(real, rules.FREE, 9, SystemRandom())
    assert max(math.log(p / q) for p, q in laws) > promised.epsilon * (1 + 1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
def test_what_people_read_of_a_limit_is_what_it_was_opened_with(rule: Any) -> None:
    assert rule.amount_of(rule.limit, "sums") == rule.amount_limit
    assert rule.delta_of(rule.limit) == rule.delta_limit
    given = rule.to_dict()
    assert all(given[name] == value for name, value in rule.promise().to_dict().items() if name != "guarantee")


@pytest.mark.parametrize("rule", EVERY_RULE, ids=ids)
@pytest.mark.parametrize("event", [Laplace(3), Laplace(300), Gaussian(60), ApproxEvent(0.001, 1e-14)], ids=str)
def test_what_was_spent_is_never_read_as_more_than_was_promised(rule: Any, event: Any) -> None:
    try:
        price = rule.price(event)
    except Unpriced:
        return
    way = rule.way(price)
    spent = price * rule.repeats(price, way)
    assert rule.amount_of(spent, way) <= rule.amount_limit
    assert rule.spent_as(spent, way) <= rule.promise()
