"""Laws that every event obeys under every closed-form measure."""

import itertools
import math

import pytest

from mosha.accounting import concentrated, gaussian, pure, renyi
from mosha.accounting.composition import Cost
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
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
on_every_event = pytest.mark.parametrize("event", every_event(), ids=name)


@on_every_event
@every_measure
def test_repeating_is_adding(event, measure):
    total = sum([event] * 7, NOTHING)
    assert measure(event * 7) == measure(total)
    one, seven = measure(event), measure(event * 7)
    assert seven.amount == pytest.approx(7 * one.amount, rel=1e-12)
    assert seven.delta == pytest.approx(min(1.0, 7 * one.delta), rel=1e-12)


@on_every_event
@every_measure
def test_order_does_not_matter(event, measure):
    other = Approx(0.3, 1e-8) * 2
    assert measure(event + other + event) == measure(other + event + event) == measure(other + 2 * event)


@on_every_event
@every_measure
def test_a_price_is_a_number_that_is_not_negative(event, measure):
    cost = measure(event)
    assert isinstance(cost, Cost)
    assert cost.amount >= 0
    assert not math.isnan(cost.amount)
    assert 0 <= cost.delta <= 1


@on_every_event
@every_measure
def test_a_price_survives_json(event, measure):
    assert measure(from_json(event.to_json())) == measure(event)


@pytest.mark.parametrize(("event", "noisier"), with_more_noise(), ids=name)
@every_measure
def test_more_noise_never_costs_more(event, noisier, measure):
    dear, cheap = measure(event), measure(noisier)
    assert cheap.amount <= dear.amount
    assert cheap.delta <= dear.delta


@on_every_event
def test_a_renyi_divergence_does_not_fall_with_the_order(event):
    costs = [renyi.cost_of(event, order) for order in (1.01, 1.5, 2.0, 2.5, 4.0, 9.9, 32.0, 200.0)]
    pairs = [(low, high) for low, high in itertools.pairwise(costs) if low.delta == high.delta]
    assert all(low.amount <= high.amount * (1 + 1e-9) for low, high in pairs)


@on_every_event
def test_what_is_zero_concentrated_has_all_renyi_divergences(event):
    rho = concentrated.cost_of(event)
    for order in (1.01, 2.0, 7.3, 64.0):
        cost = renyi.cost_of(event, order)
        if cost.delta == rho.delta:
            assert cost.amount <= order * rho.amount * (1 + 1e-9)


@pytest.mark.parametrize("event", [event for event in every_event() if pure.epsilon(event) < math.inf], ids=name)
def test_what_is_pure_has_all_other_prices(event):
    epsilon = pure.epsilon(event)
    assert concentrated.rho(event)[0] <= concentrated.rho_of_pure(epsilon) * (1 + 1e-9)
    assert renyi.divergence(event, 16.0) <= renyi.divergence(Pure(epsilon), 16.0) * (1 + 1e-9)
    assert gaussian.mu(event)[0] < math.inf


@on_every_event
def test_epsilon_falls_as_delta_grows(event):
    values = [renyi.epsilon(event, delta) for delta in (1e-9, 1e-5, 0.4)]
    assert values == sorted(values, reverse=True)
    assert values[-1] >= 0


@on_every_event
def test_gaussian_privacy_implies_concentrated_privacy(event):
    mu, delta = gaussian.mu(event)
    rho, other = concentrated.rho(event)
    if math.isfinite(mu) and delta == other:
        assert rho <= mu * mu / 2 * (1 + 1e-9)


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@on_every_event
def test_an_account_is_charged_exactly_n_times_for_n(rule, event):
    try:
        one = rule.price(event)
    except Unpriced:
        return
    assert rule.price(event * 1000) == one * 1000
    assert rule.price(compose([(event, 3), (Pure(0.5), 2)])) == one * 3 + rule.price(Pure(0.5)) * 2


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@pytest.mark.parametrize(("event", "noisier"), with_more_noise(), ids=name)
def test_an_account_never_charges_more_for_more_noise(rule, event, noisier):
    try:
        dear = rule.price(event)
    except Unpriced:
        return
    assert rule.price(noisier) <= dear
