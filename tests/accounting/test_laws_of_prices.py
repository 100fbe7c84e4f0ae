"""Laws that every event obeys under every closed-form measure."""

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from mosha import events
from mosha.accounting.measures import concentrated, gaussian, pure, renyi
from mosha.accounting.numerics.price import Cost
from mosha.core.errors import Unpriced
from mosha.core.event import from_json
from mosha.events import NOTHING, Approx, Pure, compose
from tests.accounting.every_event import every_event, name, with_more_noise
from tests.accounting.test_rules import EVERY_RULE

MEASURES = {
    "pure": pure.cost_of,
    "concentrated": concentrated.cost_of,
    "gaussian": gaussian.cost_of,
    "renyi 1.5": lambda event: renyi.cost_of(event, 1.5),
    "renyi 2": lambda event: renyi.cost_of(event, 2.0),
    "renyi 12.7": lambda event: renyi.cost_of(event, 12.7),
    "renyi 32": lambda event: renyi.cost_of(event, 32.0),
}
on_every_event = pytest.mark.parametrize("event", every_event(), ids=name)


@on_every_event
def test_repeating_is_adding(event: Any) -> None:
    total = sum([event] * 7, NOTHING)
    for label, measure in MEASURES.items():
        one, seven = measure(event), measure(event * 7)
        assert seven == measure(total), label
        assert seven.amount == pytest.approx(7 * one.amount, rel=1e-12), label
        assert seven.delta == pytest.approx(min(1.0, 7 * one.delta), rel=1e-12), label


@on_every_event
def test_order_does_not_matter(event: Any) -> None:
    other = Approx(0.3, 1e-8) * 2
    for label, measure in MEASURES.items():
        prices = [measure(event + other + event), measure(other + event + event), measure(other + 2 * event)]
        assert len(set(prices)) == 1, label


@on_every_event
def test_a_price_is_a_number_that_is_not_negative(event: Any) -> None:
    for label, measure in MEASURES.items():
        cost = measure(event)
        assert isinstance(cost, Cost), label
        assert cost.amount >= 0, label
        assert 0 <= cost.delta <= 1, label


@on_every_event
def test_a_price_survives_json(event: Any) -> None:
    stored = from_json(event.to_json())
    for label, measure in MEASURES.items():
        assert measure(stored) == measure(event), label


@pytest.mark.parametrize(("event", "noisier"), with_more_noise(), ids=name)
def test_more_noise_never_costs_more(event: Any, noisier: Any) -> None:
    for label, measure in MEASURES.items():
        dear, cheap = measure(event), measure(noisier)
        assert cheap.amount <= dear.amount, label
        assert cheap.delta <= dear.delta, label


@on_every_event
def test_a_renyi_divergence_does_not_fall_with_the_order(event: Any) -> None:
    costs = [renyi.cost_of(event, order) for order in (1.01, 1.5, 2.0, 2.5, 4.0, 9.9, 32.0, 200.0)]
    pairs = [(low, high) for low, high in itertools.pairwise(costs) if low.delta == high.delta]
    assert all(low.amount <= high.amount * (1 + 1e-9) for low, high in pairs)


@on_every_event
def test_what_is_zero_concentrated_has_all_renyi_divergences(event: Any) -> None:
    rho = concentrated.cost_of(event)
    for order in (1.01, 2.0, 7.3, 64.0):
        cost = renyi.cost_of(event, order)
        if cost.delta == rho.delta:
            assert cost.amount <= order * rho.amount * (1 + 1e-9)


@pytest.mark.parametrize("event", [event for event in every_event() if pure.epsilon(event) < math.inf], ids=name)
def test_what_is_pure_has_all_other_prices(event: Any) -> None:
    epsilon = pure.epsilon(event)
    assert concentrated.rho(event)[0] <= concentrated.rho_of_pure(epsilon) * (1 + 1e-9)
    assert renyi.divergence(event, 16.0) <= renyi.divergence(Pure(epsilon), 16.0) * (1 + 1e-9)
    assert gaussian.mu(event)[0] < math.inf


@on_every_event
def test_epsilon_falls_as_delta_grows(event: Any) -> None:
    values = [renyi.epsilon(event, delta) for delta in (1e-9, 1e-5)]
    assert values == sorted(values, reverse=True)
    assert values[-1] >= 0


@on_every_event
def test_gaussian_privacy_implies_concentrated_privacy(event: Any) -> None:
    mu, delta = gaussian.mu(event)
    rho, other = concentrated.rho(event)
    if math.isfinite(mu) and delta == other:
        assert rho <= mu * mu / 2 * (1 + 1e-9)


def paid_by(event: Any) -> Iterator[tuple[Any, ...]]:
    """The rules that can pay for this event, with its price."""
    for rule in EVERY_RULE:
        with contextlib.suppress(Unpriced):
            yield rule, rule.price(event)


@on_every_event
def test_an_account_is_charged_exactly_n_times_for_n(event: Any) -> None:
    for rule, one in paid_by(event):
        assert rule.price(event * 1000) == one * 1000
        assert rule.price(compose([(event, 3), (Pure(0.5), 2)])) == one * 3 + rule.price(Pure(0.5)) * 2


@pytest.mark.parametrize(("event", "noisier"), with_more_noise(), ids=name)
def test_an_account_never_charges_more_for_more_noise(event: Any, noisier: Any) -> None:
    for rule, dear in paid_by(event):
        assert rule.price(noisier) <= dear


def test_every_rule_pays_for_something_and_the_loosest_for_most() -> None:
    counts = dict.fromkeys(range(len(EVERY_RULE)), 0)
    for event in every_event():
        for rule, _ in paid_by(event):
            counts[EVERY_RULE.index(rule)] += 1
    assert min(counts.values()) >= 30


@pytest.mark.parametrize(
    "event",
    [
        events.Laplace(1e200),
        events.DiscreteLaplace(1e200),
        events.Gaussian(1e200),
        events.Pure(1e-200),
        events.RandomizedResponse(1e-200),
        events.Exponential(1e-200),
        events.Plan(events.Gaussian(1e200), 1e-9),
        events.Group(events.Laplace(1e200), 3),
    ],
    ids=repr,
)
def test_what_is_not_free_costs_a_unit_at_least(event: Any) -> None:
    """The square of a tiny epsilon is no float: it came out as zero, and so many releases as one liked were free."""
    for rule in EVERY_RULE:
        with contextlib.suppress(Unpriced):
            price = rule.price(event)
            assert price.amount or price.delta
            if rule.name == "either":
                assert price.rho
            assert rule.repeats(price * 2**200, rule.way(price)) == 0
