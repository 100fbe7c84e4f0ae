"""The odometer: as sharp as the lattice accountant, in constant time and memory, never below the truth."""

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

from mosha import accounting
from mosha.accounting import Odometer, prices
from mosha.accounting.losses import contour
from mosha.accounting.losses.dominating import read
from mosha.accounting.losses.history import _Side
from mosha.accounting.losses.loss import connect_dots
from mosha.accounting.losses.pair import Band, Normal, flipped_coin
from mosha.accounting.losses.sampled_pair import Removed
from mosha.core.errors import InvalidParameter
from mosha.events import (
    NOTHING,
    Approx,
    DiscreteGaussian,
    Exponential,
    Failure,
    Gaussian,
    Laplace,
    RandomizedResponse,
    ZeroConcentrated,
)
from tests.accounting.every_event import name
from tests.accounting.test_prices import PRICED, WORKLOADS


def after(*events: Any) -> Any:
    odometer = Odometer()
    for event in events:
        odometer.add(event)
    return odometer


def scale(low: Any, high: Any) -> Any:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def random_event() -> Any:
    kinds = [
        lambda: Gaussian(scale(20, 500)),
        lambda: Laplace(scale(20, 500)),
        lambda: RandomizedResponse(1 / scale(20, 500)),
        lambda: RandomizedResponse(1 / scale(20, 500), 5),
    ]
    return random.choice(kinds)()


@pytest.mark.parametrize(("event", "delta", "truth"), WORKLOADS, ids=["laplace", "mixed", "sgd", "long sgd"])
def test_a_history_costs_what_the_workload_costs(event: Any, delta: Any, truth: Any) -> None:
    assert truth * (1 - 5e-8) <= after(event).epsilon(delta) <= truth * 1.0001


def test_a_mixed_history_is_as_sharp_as_the_lattice() -> None:
    kinds = [Gaussian(50), Laplace(60), Laplace(90), RandomizedResponse(0.01), RandomizedResponse(0.02, 5)]
    events = [random.choice(kinds) for _ in range(800)]
    odometer = after(*events)
    for delta in (1e-5, 1e-9):
        low, high = accounting.bounds(sum(events, NOTHING), delta=delta)
        shown = odometer.epsilon(delta)
        assert low * (1 - 1e-9) <= shown <= high * (1 + 2e-4)
        assert odometer.delta(shown) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("run", range(4))
def test_random_histories_are_never_below_the_certified_lower_bound(run: Any) -> None:
    kinds = [random_event() for _ in range(6)] + [Gaussian(scale(0.7, 2)).sample(scale(1e-3, 0.1))]
    history = sum((random.choice(kinds) * random.randint(1, 200) for _ in range(4)), NOTHING)
    delta = 10 ** random.uniform(-11, -4)
    shown = after(history).epsilon(delta)
    assert shown >= prices._lower_epsilon(read(history), delta, 1e-4) * (1 - 1e-9)
    assert shown <= accounting.epsilon(history, delta) * (1 + 1e-3)


@pytest.mark.parametrize("event", PRICED, ids=name)
def test_every_event_can_be_added(event: Any) -> None:
    odometer = Odometer()
    for part, count in event.parts():
        odometer.add(part, count)
    shown = odometer.epsilon(1e-6)
    assert shown >= accounting.bounds(event, delta=1e-6)[0] * (1 - 1e-9)
    assert 0 <= odometer.delta(1.0) <= 1


def test_counts_and_repeated_adding_agree() -> None:
    one, many = Odometer(), Odometer()
    one.add(Laplace(30), 50)
    one.add(Gaussian(40) * 50)
    for _ in range(50):
        many.add(Gaussian(40) + Laplace(30))
    assert one.epsilon(1e-6) == pytest.approx(many.epsilon(1e-6), rel=1e-6)


def test_a_history_only_grows_dearer() -> None:
    odometer, last = Odometer(), 0.0
    for _ in range(60):
        odometer.add(random_event())
        shown = odometer.epsilon(1e-6)
        assert shown >= last * (1 - 2e-4)
        last = shown


def test_a_million_events_cost_the_same_to_show_as_few() -> None:
    """State and kinds of events are bounded; the price is right: a million Gaussians have an exact one."""
    odometer = Odometer()
    sizes = []
    for _ in range(30):
        event = random_event()
        odometer.add(event, 20_000)
        sizes.append(len(pickle.dumps([vars(side) for side in odometer._sides])))
    assert max(sizes) <= min(sizes) * 1.01
    odometer.add(Gaussian(500), 400_000)
    assert math.isfinite(odometer.epsilon(1e-6))
    alone = Odometer()
    for _ in range(2000):
        alone.add(Gaussian(1000), 500)
    assert alone.epsilon(1e-6) == pytest.approx(accounting.epsilon(Gaussian(1), 1e-6), rel=1e-5)
    assert alone.epsilon(1e-6) >= accounting.bounds(Gaussian(1), delta=1e-6)[0]


def test_many_different_laplace_events_are_sharp_without_any_gaussian() -> None:
    events = [Laplace(scale(50, 500)) for _ in range(20)] * 20
    reading = read(sum(events, NOTHING))
    low, high = prices._lower_epsilon(reading, 1e-6, 1e-3), prices._upper_epsilon(reading, 1e-6, 1e-3)
    assert low * (1 - 1e-9) <= after(*events).epsilon(1e-6) <= high * (1 + 3e-4)
    more = sum((Laplace(scale(50, 500)) for _ in range(30)), NOTHING)
    assert accounting.epsilon(more, 1e-6) == after(more).epsilon(1e-6)


def test_both_directions_are_kept_where_they_differ() -> None:
    odometer = after(Laplace(20) * 5)
    assert len(odometer._sides) == 1
    odometer.add(Gaussian(1).sample(0.05), 200)
    assert len(odometer._sides) == 2
    whole = Laplace(20) * 5 + Gaussian(1).sample(0.05) * 200
    low, high = accounting.bounds(whole, delta=1e-6)
    assert low * (1 - 1e-9) <= odometer.epsilon(1e-6) <= high * (1 + 2e-4)


def test_events_without_a_pair_are_shown_by_their_divergence() -> None:
    odometer = after(Gaussian(5) * 10, ZeroConcentrated(0.05), DiscreteGaussian(1.0, 1.0, 10))
    shown = odometer.epsilon(1e-6)
    assert shown >= accounting.bounds(Gaussian(5) * 10, delta=1e-6)[0]
    assert shown <= accounting.epsilon(Gaussian(5) * 10 + ZeroConcentrated(0.55), 1e-6) * 1.2


def test_failures_count_towards_delta() -> None:
    odometer = after(Gaussian(10), Approx(0.0, 1e-7))
    odometer.add(Failure(Laplace(10), 1e-7))
    assert odometer.epsilon(1e-7) == math.inf
    assert odometer.delta(50.0) >= (1 - (1 - 1e-7) ** 2) * (1 - 1e-9)
    assert math.isfinite(odometer.epsilon(1e-6))
    assert after(Approx(1.0, 1e-6)).epsilon(1e-6) == 1.0


def test_nothing_costs_nothing() -> None:
    odometer = Odometer()
    assert odometer.epsilon(1e-9) == 0.0
    assert odometer.delta(0.0) == 0.0


def test_bad_input_is_refused() -> None:
    odometer = after(Laplace(10))
    before = odometer.epsilon(1e-6)
    for thing, count in ((0.5, 1), (None, 1), (Laplace(1), 0), (Laplace(1), -3), (Laplace(1), 1.5)):
        with pytest.raises(InvalidParameter):
            odometer.add(thing, count)
    assert odometer.epsilon(1e-6) == before
    for delta in (0.0, 1.0, -1, math.nan):
        with pytest.raises(InvalidParameter):
            odometer.epsilon(delta)
    with pytest.raises(InvalidParameter):
        odometer.delta(-0.1)


PAIRS = [Band(0.3, ends=True), Band(0.3, ends=False), flipped_coin(0.4), flipped_coin(0.4, categories=4), Normal(0.2)]


@pytest.mark.parametrize("pair", [*PAIRS, Removed(Normal(1.0), 0.01)], ids=repr)
def test_moment_functions_are_those_of_the_law(pair: Any) -> None:
    """Against a plain sum over a fine law of the same pair."""
    knots = np.linspace(*pair.reach(1e-40), 200_001)  # type: ignore[call-overload]
    mass, _ = connect_dots(pair.cells(knots), knots)
    found = contour.moments(pair)
    for lane in (4, 6, 8):
        z = contour.NODES[lane, [0, 1, 7, 48]]
        plain = np.array([(mass * np.exp(x * knots)).sum() for x in z])
        assert found.log_scale[lane] == pytest.approx(math.log(plain[0].real), abs=2e-5)
        assert np.abs(found.phase[lane, [0, 1, 7, 48]] - plain / plain[0]).max() <= 2e-5


@pytest.mark.parametrize("pair", [*PAIRS, Removed(Normal(1.0), 0.01)], ids=repr)
def test_moduli_never_exceed_the_bound_on_their_box(pair: Any) -> None:
    knots = np.linspace(*pair.reach(1e-40), 20_001)  # type: ignore[call-overload]
    mass, _ = connect_dots(pair.cells(knots), knots)
    found = contour.moments(pair)
    for lane in (3, 6, 9):
        weight = mass * np.exp(contour.CENTRES[lane] * (knots - knots[-1]))
        weight /= weight.sum()
        for box in random.sample(range(contour.BOXES.shape[1] - 1), 6):
            t = random.uniform(contour.BOXES[lane, box], contour.BOXES[lane, box + 1])
            modulus = abs((weight * np.exp(1j * t * knots)).sum())
            step = (knots[1] - knots[0]) * t
            assert modulus <= math.exp(-found.decay[lane, box]) + 2e-5 + step * step


def test_the_rule_errs_upwards() -> None:
    """Whatever the lane, an exact law of a few coins is never under-reported."""
    for count, epsilon0 in ((1, 1.0), (3, 0.7), (20, 0.2)):
        side = _Side()
        side.add(contour.moments(flipped_coin(epsilon0)).times(count))
        for epsilon in (0.1, 0.45, 0.9):
            true = accounting.bounds(RandomizedResponse(epsilon0) * count, epsilon=epsilon)[0]
            for lane in range(contour.LANES):
                assert side.lane(lane, 0.0, epsilon).delta(epsilon) >= true * (1 - 1e-9)


def test_exponential_mechanisms_are_shown() -> None:
    events = [Exponential(scale(0.01, 0.2)) for _ in range(30)]
    shown = after(*events).epsilon(1e-6)
    assert shown >= accounting.bounds(sum(events, NOTHING), delta=1e-6)[0]


@pytest.mark.parametrize(("rate", "loose"), [(0.003, 1.3), (0.1, 1.001)])
def test_a_quick_odometer_is_never_below_the_truth_and_sharp_for_long_histories(rate: float, loose: float) -> None:
    event = Gaussian(1.0).sample(rate)
    odometer = accounting.Odometer(quick=True)
    odometer.add(event)
    assert odometer.epsilon(1e-6) >= accounting.bounds(event, delta=1e-6)[0]
    odometer.add(event, 399)
    truth = accounting.epsilon(event * 400, 1e-6)
    assert accounting.bounds(event * 400, delta=1e-6)[0] <= odometer.epsilon(1e-6) <= truth * loose
