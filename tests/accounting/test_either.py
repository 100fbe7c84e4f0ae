"""The either-or rule keeps its promise in every adaptive interaction that was enumerated, and naive ones do not."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from random import SystemRandom
from statistics import NormalDist
from typing import Any

import pytest

from mosha.accounting.admission import limit_units
from mosha.accounting.either import ANY, EitherRule
from mosha.accounting.measures import concentrated
from mosha.accounting.measures.concentrated import _least_rho
from mosha.accounting.numerics.price import OUT_OF_REACH, UNIT, Price
from mosha.accounting.rules import FREE, PureRule, rule_for
from mosha.core.errors import Unpriced
from mosha.events import (
    Approx,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Plan,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
)

EPSILON, DELTA = 1.0, 0.02


@dataclass(frozen=True)
class Mechanism:
    """A pair of distributions over finitely many outputs, and the event that claims to price it."""

    event: Event
    outputs: tuple[tuple[float, float], ...]

    def swapped(self) -> Any:
        return Mechanism(self.event, tuple((q, p) for p, q in self.outputs))


def randomized_response(epsilon: Any) -> Any:
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Mechanism(RandomizedResponse(epsilon), ((truth, 1 - truth), (1 - truth, truth)))


def failing(epsilon: Any, delta: Any) -> Any:
    """The worst that is (epsilon, delta)-private: randomized response that reveals all with probability delta."""
    truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    lie = 1 - delta - truth
    return Mechanism(Approx(epsilon, delta), ((delta, 0.0), (truth, lie), (lie, truth), (0.0, delta)))


def spike(rho: Any, loss: Any) -> Any:
    """A rare output of this loss, nearly as probable as rho-zero-concentrated privacy allows."""
    chance = math.exp(-((loss - rho) ** 2) / (4 * rho))
    while rho_of_pair(pair := ((chance, chance * math.exp(-loss)), (1 - chance, 1 - chance * math.exp(-loss)))) > rho:
        chance *= 0.98
    return Mechanism(ZeroConcentrated(rho), pair)


def rho_of_pair(pair: Any) -> Any:
    """An upper bound on the rho of a pair of distributions, in both directions."""
    ceiling = max(abs(math.log(p / q)) for p, q in pair)

    def divergence(order: Any, sign: Any) -> Any:
        logs = [order * math.log(p) + (1 - order) * math.log(q) for p, q in (x[::sign] for x in pair)]
        return (max(logs) + math.log(math.fsum(math.exp(x - max(logs)) for x in logs))) / (order - 1)

    one, other = (partial(divergence, sign=sign) for sign in (1, -1))
    return max(_least_rho(way, ceiling=ceiling, step=1.03) for way in (one, other))


def rounded_gaussian(multiplier: Any, delta: Any, cuts: Any = (-1.5, 0.0, 1.5, 2.5)) -> Any:
    """Gaussian noise, told only to a few bins: sold at a delta, as one piece."""
    worlds = NormalDist(0.0), NormalDist(-1 / multiplier)
    bins = [[b - a for a, b in pairwise([0.0, *map(world.cdf, cuts), 1.0])] for world in worlds]
    return Mechanism(Plan(Gaussian(multiplier), delta), tuple(zip(*bins, strict=True)))


class Naive(EitherRule):
    """Both sums with all of delta: what must not be done."""

    def limits(self, way: Any) -> tuple[Any, ...]:
        del way
        rho = concentrated.rho_from_epsilon(self.epsilon, self.delta)
        sums = Price(limit_units(self.epsilon), limit_units(self.delta), ANY, ANY)
        return sums, Price(ANY, ANY, limit_units(rho), 0)

    def way(self, first: Any) -> str:
        del first
        return "both"


class AdaptivelyChosen(EitherRule):
    """The way is chosen by the second payment, after an answer: what must not be done either."""

    def limits(self, way: Any) -> Any:
        if way != "open":
            return super().limits(way)
        return (*super().limits("sums"), *super().limits("either"), *super().limits("concentrated"))

    def way(self, first: Any) -> str:
        del first
        return "open"


def made(kind: Any) -> Any:
    rule = EitherRule.of(EPSILON, DELTA)
    return kind(*(getattr(rule, name) for name in ("epsilon", "delta", "delta_for_sums", "delta_for_events")),
                rule.rho, rule.rho_alone)  # fmt: skip


def menu_for(rule: Any) -> list[Any]:
    """Mechanisms that use up what the ways of this rule allow, at the start and after one or two small answers."""
    small = [randomized_response(size) for size in (0.1, 0.2, 0.4)]
    deltas = {limit.delta for way in WAYS for limit in rule.limits(way) if limit.delta < ANY}
    fails = [failing(0.0, float(d) / 2**128 * (1 - 1e-9)) for d in sorted(deltas)] + [failing(EPSILON / 2, DELTA / 2)]
    limits = {limit.rho for way in WAYS for limit in rule.limits(way) if limit.rho < ANY}
    spikes = []
    for limit in sorted(limits):
        for before in (FREE, *(rule.price(m.event) for m in small), rule.price(small[1].event) * 2):
            rho = (limit - before.rho) / 2**128 * (1 - 1e-9)
            if rho > 0:
                losses = (EPSILON + step for step in (-0.3, 0.0, 0.2))
                spikes += [spike(rho, loss) for loss in losses]
    return [*small, *fails, *spikes, rounded_gaussian(3.0, DELTA / 3), rounded_gaussian(2.2, DELTA / 2)]


WAYS = ("either", "sums", "concentrated", "open", "both")


def worst(rule: Any, menu: Any, depth: Any) -> Any:
    """The largest P(S) - e^epsilon Q(S) over all adaptive strategies of so many steps that the rule admits."""
    prices = [rule.price(mechanism.event) for mechanism in menu]
    weight = math.exp(EPSILON)

    def best(p: Any, q: Any, spent: Any, way: Any, left: Any) -> Any:
        value = max(p - weight * q, 0.0)
        if left == 0 or p == 0:
            return value
        for mechanism, price in zip(menu, prices, strict=True):
            total = spent + price
            taken = way or rule.way(price)
            if rule.admits(total, taken):
                branches = (best(p * a, q * b, total, taken, left - 1) for a, b in mechanism.outputs)
                value = max(value, math.fsum(branches))
        return value

    return best(1.0, 1.0, FREE, "", depth)


def both_directions(menu: Any) -> tuple[Any, ...]:
    return menu, [mechanism.swapped() for mechanism in menu]


def test_no_adaptive_strategy_of_three_steps_beats_the_promise() -> None:
    rule = made(EitherRule)
    for menu in both_directions(menu_for(rule)):
        assert worst(rule, menu, 3) <= DELTA * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "excess"), [(Naive, 1.2), (AdaptivelyChosen, 1.12)])
def test_a_rule_that_does_not_divide_delta_or_divides_it_late_is_caught(kind: Any, excess: float) -> None:
    rule = made(kind)
    assert worst(rule, menu_for(rule), 2) > DELTA * excess


@pytest.mark.parametrize("first", ["either", "concentrated", "sums"])
def test_each_way_alone_keeps_the_promise_and_comes_near_it(first: str) -> None:
    rule = made(EitherRule)
    only = [m for m in menu_for(rule) if rule.way(rule.price(m.event)) == first]
    rest = menu_for(rule)
    found = max(worst_after(rule, begin, rest) for begin in only)
    assert DELTA / 5 < found <= DELTA * (1 + 1e-9)


def worst_after(rule: Any, begin: Any, menu: Any) -> Any:
    """The worst of two steps, the first of which is given."""
    price = rule.price(begin.event)
    way, weight = rule.way(price), math.exp(EPSILON)
    if not rule.admits(price, way):
        return 0.0
    total = 0.0
    for p, q in begin.outputs:
        admitted = (m for m in menu if rule.admits(price + rule.price(m.event), way))
        found = (math.fsum(max(p * a - weight * q * b, 0.0) for a, b in m.outputs) for m in admitted)
        total += max(found, default=max(p - weight * q, 0.0))
    return total


LIMITS = [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-6), (8.0, 1e-5), (0.5, 0.01), (40.0, 1e-12)]


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_one_release_of_the_whole_limit_is_admitted_and_two_halves_are(epsilon: Any, delta: Any) -> None:
    rule = EitherRule.of(epsilon, delta)
    for event, count in ((Approx(epsilon, delta), 1), (Approx(epsilon / 2, delta / 2), 2), (Pure(epsilon), 1)):
        price = rule.price(event)
        assert rule.repeats(price, rule.way(price)) == count


def random_event(random: Any, epsilon: Any, delta: Any) -> Any:
    size = epsilon * 10 ** random.uniform(-2.5, 0.2)
    share = delta * 10 ** random.uniform(-4, 0.2)
    kinds = [
        Pure(size),
        Laplace(1 / size),
        Exponential(size),
        Approx(size, min(share, 0.5)),
        ZeroConcentrated(size**2 / 9),
    ]
    kinds += [
        RandomizedResponse(size, 5),
        Approx(size / 50, min(share, 0.5)),
        Gaussian(3 / size),
        DiscreteGaussian(5 / size),
    ]
    return random.choice(kinds)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_a_repeated_payment_is_admitted_at_least_as_often_as_by_plain_sums_and_by_rho_alone(
    epsilon: Any, delta: Any
) -> None:
    random = SystemRandom()
    rule, sums = EitherRule.of(epsilon, delta), PureRule(epsilon, delta)
    for _ in range(200):
        event = random_event(random, epsilon, delta)
        price = rule.price(event)
        count = rule.repeats(price, rule.way(price))
        if price.amount < OUT_OF_REACH:
            assert count >= sums.repeats(sums.price(event), "")
        else:
            older = rule_for(epsilon=epsilon, delta=delta, rule="zero-concentrated")
            assert count == older.repeats(older.price(event), "")


class Purse:
    """What an account does with a rule, without a book."""

    def __init__(self, rule: Any) -> None:
        self.rule, self.spent, self.way = rule, FREE, ""

    def pays(self, event: Any) -> bool:
        price = self.rule.price(event)
        way = self.way or self.rule.way(price)
        if not self.rule.admits(self.spent + price, way):
            return False
        self.spent, self.way = self.spent + price, way
        return True


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_sequences_without_a_delta_at_first_are_never_refused_below_the_plain_sums_with_half_of_delta(
    epsilon: Any, delta: Any
) -> None:
    random = SystemRandom()
    for _ in range(30):
        purse, sums = Purse(EitherRule.of(epsilon, delta)), Purse(PureRule(epsilon, delta / 2))
        events = [Pure(epsilon * 0.01), *(random_event(random, epsilon, delta) for _ in range(12))]
        for event in events:
            if purse.rule.price(event).amount < OUT_OF_REACH and sums.pays(event):
                assert purse.pays(event)


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_a_stricter_promise_never_buys_more(epsilon: Any, delta: Any) -> None:
    random = SystemRandom()
    for _ in range(40):
        weaker = EitherRule.of(
            epsilon * 10 ** random.choice((0, random.random())), delta * random.choice((1, 1.2, 2, 5))
        )
        for strict_rule in (EitherRule.of(epsilon, delta), PureRule(epsilon)):
            first = random.choice([Pure(epsilon / 99), Laplace(20 / epsilon), ZeroConcentrated(epsilon**2 / 900)])
            strict, weak = Purse(strict_rule), Purse(weaker)
            for event in [first, *(random_event(random, epsilon, delta) for _ in range(12))]:
                if _is_paid(strict, event):
                    assert weak.pays(event)


def _is_paid(purse: Any, event: Any) -> Any:
    try:
        return purse.pays(event)
    except Unpriced:
        return False


@pytest.mark.parametrize(("epsilon", "delta"), LIMITS)
def test_a_stricter_promise_never_repeats_a_release_more_often(epsilon: Any, delta: Any) -> None:
    random = SystemRandom()
    for _ in range(200):
        event = random_event(random, epsilon, delta)
        ways = [EitherRule.of(epsilon * a, delta * b) for a, b in ((1, 1), (1, 1.7), (1.3, 1), (2, 3))]
        counts = [rule.repeats(price := rule.price(event), rule.way(price)) for rule in ways]
        assert counts[0] <= min(counts[1], counts[2])
        assert counts[0] <= counts[3]


def test_what_begins_with_a_delta_may_be_divided_otherwise_under_a_weaker_promise() -> None:
    """`rules.md`, corollary 8: this cannot be had together with repeated payments and concentration."""
    strict, weak = Purse(EitherRule.of(1.0, 1e-6)), Purse(EitherRule.of(1.0, 1.2e-6))
    for purse in (strict, weak):
        assert purse.pays(Approx(0.5, 3e-7))
    assert (strict.way, weak.way) == ("sums", "either")
    assert strict.pays(Approx(0.2, 5e-7))
    assert not weak.pays(Approx(0.2, 5e-7))


def test_the_shares_leave_what_the_proof_says() -> None:
    for (epsilon, delta), share in {(1.0, 1e-6): 0.924, (3.0, 1e-6): 0.935, (8.0, 1e-5): 0.937}.items():
        rule = EitherRule.of(epsilon, delta)
        assert rule.rho / concentrated.rho_from_epsilon(epsilon, delta) == pytest.approx(share, abs=6e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.5), (1.0, 1e-6), (0.1, 0.9), (8.0, 1e-3)])
def test_what_was_admitted_never_reads_as_less_than_the_promise(epsilon: float, delta: float) -> None:
    """Sums of deltas were read as a concentrated spending of epsilon 0 at a delta above the account's own."""
    rule, dice = EitherRule.of(epsilon, delta), SystemRandom()
    promised = rule.promise()
    menu = [Laplace(50 / epsilon), Gaussian(30 / epsilon), Pure(epsilon / 5), Approx(epsilon / 20, delta / 3)]
    menu += [Approx(epsilon / 2, delta * 0.8), Approx(epsilon / 100, delta / 25)]
    for _ in range(30):
        spent, way = FREE, ""
        for event in dice.choices(menu, k=6):
            price = rule.price(event)
            way = way or rule.way(price)
            if rule.admits(spent + price, way):
                spent = spent + price
        meant = rule.spent_as(spent, way)
        assert meant.delta <= promised.delta  # type: ignore[attr-defined]
        assert rule.amount_of(spent, way) == meant.epsilon  # type: ignore[attr-defined]
    assert rule.amount_of(rule.price(Approx(epsilon / 2, delta * 0.8))) == epsilon / 2


def test_a_sum_of_deltas_above_one_can_be_spoken_of() -> None:
    rule = EitherRule.of(1.0, 1e-6)
    assert math.isclose(rule.amount_of(rule.price(Approx(0.1, 0.5) * 3)), 0.3, rel_tol=0.9)


def test_what_is_left_is_never_more_than_the_promise_without_what_was_paid() -> None:
    """Of (3, 1e-6), 2.5000000000000013 were left after 0.5: with the last digit that admission gives."""
    dice = SystemRandom()
    rule = EitherRule.of(3.0, 1e-6)
    assert rule.amount_left(rule.price(Pure(0.5)), "either") == 2.5
    for way in ("either", "sums"):
        for _ in range(50):
            spent = rule.price(Pure(dice.uniform(0, 3)))
            left = rule.amount_left(spent, way)
            assert Fraction(left) + Fraction(spent.amount, UNIT) <= 3
            assert rule.admits(spent + rule.price(Pure(left)), way)
    spent = rule.price(ZeroConcentrated(rule.rho_alone))
    assert rule.admits(spent, "concentrated")
    assert rule.amount_left(spent, "concentrated") == 0
