"""Laws of every priced plan: trainings, federated rounds and questions to clients have one way to be priced."""

import inspect
from typing import Any

import pytest

from mosha import accounting
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.events import Plan
from mosha.federated import AdaptiveClip, ClientSide, Distributed, ServerSide, histogram
from mosha.learning import DPFTRL, DPSGD
from mosha.mechanisms.plans.priced_plan import PricedPlan

PLANS = {
    "DPSGD": DPSGD(steps=40, rate=0.05, clip=1.0),
    "DPSGD, adaptive": DPSGD(steps=40, rate=0.05, clip=1.0, clipping="adaptive", batch=10.0),
    "DPFTRL": DPFTRL(steps=40, rate=0.05, clip=1.0, bands=4),
    "ServerSide": ServerSide(rounds=10, clients=100, rate=0.1, clip=1.0),
    "ServerSide, adaptive": ServerSide(rounds=10, clients=100, rate=0.1, clip=AdaptiveClip(start=1.0)),
    "ServerSide, correlated": ServerSide(rounds=10, clients=100, period=5, bands=3, clip=1.0),
    "ClientSide": ClientSide(rounds=10, clients=100, clip=1.0),
    "Distributed": Distributed(rounds=10, clients=100, clip=1.0, survivors=80),
    "Analytics": histogram(keys=["a", "b"], clients=100, survivors=80, epsilon=1, delta=1e-6),
}


@pytest.fixture(params=sorted(PLANS), ids=str)
def plan(request: pytest.FixtureRequest) -> Any:
    return PLANS[request.param]


def test_the_way_to_a_price_is_the_same_everywhere(plan: Any) -> None:
    for name in ("calibrate", "event_after", "epsilon", "price"):
        ours = [p.name for p in inspect.signature(getattr(type(plan), name)).parameters.values()]
        assert ours == [p.name for p in inspect.signature(getattr(PricedPlan, name)).parameters.values()], name


def test_a_plan_is_calibrated_to_a_promise_and_charged_as_one_event(plan: Any) -> None:
    found = plan.calibrate(epsilon=3, delta=1e-5)
    assert isinstance(found.event, Plan)
    assert (found.event.event, found.event.delta) == (found.event_after(found.length), 1e-5)
    assert 2.98 < found.epsilon() <= 3
    assert found.epsilon() == accounting.epsilon(found.event_after(found.length), 1e-5)
    assert found.epsilon(1e-7) > found.epsilon()


def test_a_plan_without_a_delta_is_charged_step_by_step_and_more_noise_never_costs_more(plan: Any) -> None:
    events = [plan.price(noise, plan.length) for noise in (2.0, 3.0, 6.0)]
    prices = [accounting.epsilon(event, 1e-5) for event in events]
    assert prices == sorted(prices, reverse=True)


def test_what_was_run_so_far_never_costs_more_than_the_whole(plan: Any) -> None:
    found = plan.calibrate(epsilon=3, delta=1e-5)
    assert found.epsilon(after=1) <= found.epsilon() * (1 + 1e-9)
    for bad in (-1, found.length + 1, True, 1.0, None):
        with pytest.raises(InvalidParameter):
            found.event_after(bad)


@pytest.mark.parametrize("name", sorted(set(PLANS) - {"Analytics"}))
def test_a_plan_without_noise_or_without_delta_says_what_is_missing(name: Any) -> None:
    with pytest.raises(Unpriced):
        PLANS[name].event_after(1)
    with pytest.raises(InvalidParameter):
        PLANS[name].epsilon()


def test_former_names_work_and_warn() -> None:
    plan = PLANS["DPSGD"].calibrate(epsilon=3, delta=1e-5)
    with pytest.warns(DeprecationWarning, match="most_steps"):
        assert plan.within(epsilon=5, delta=1e-5) == plan.most_steps(epsilon=5, delta=1e-5)  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="event"):
        assert plan.sold_as == plan.event  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="after"):
        assert plan.epsilon(steps=3) == plan.epsilon(after=3)  # type: ignore[call-arg]


def test_an_adaptive_clip_follows_its_quantile_within_limits() -> None:
    clip = AdaptiveClip(start=1.0, quantile=0.5)
    assert clip.follow(1.0, 0.5) == 1.0
    assert clip.follow(1.0, 1.0) < 1.0 < clip.follow(1.0, 0.0)
    assert clip.follow(1.0, 7.0) == clip.follow(1.0, 1.0)
    assert clip.follow(2.0**-40, 1.0) == 2.0**-40
    assert clip.follow(2.0**40, -1.0) == 2.0**40
    value = 8.0
    for _ in range(200):  # half of the norms are below 2
        value = clip.follow(value, 1.0 if value > 2 else 0.0)
    assert 1.7 < value < 2.3
