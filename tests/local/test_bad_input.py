"""Whatever is given for anything, the answer is a result or a typed error: nothing else is raised, nothing is spent."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.core.errors import MoshaError
from mosha.local import (
    Batch,
    Collector,
    Device,
    Distribution,
    Frequency,
    HeavyHitters,
    Location,
    Mean,
    Repeated,
    Several,
    Shuffler,
    Survey,
    best,
    compare,
    consistent,
    distance,
    poisoning,
    remap,
    shuffled_event,
)

ODD = [
    None, True, 0, -1, 1.5, math.nan, math.inf, 1e308, 10**400, "", "x", "1", b"x", [], [1], {}, (), (0, 1), object(),
    np.array([1.0, 2.0]), np.int64(3), np.float64(0.5), [[1, 2]], range(0), 1j, [None], [math.nan],
]  # fmt: skip
CATEGORIES = Frequency(["a", "b", "c"], epsilon=1.0)
NUMBERS = Frequency(range(10), epsilon=1.0)
MEAN = Mean(between=(0, 1), epsilon=1)
DENSITY = Distribution(between=(0, 1), epsilon=1)
BOTH = Several({"m": MEAN, "f": CATEGORIES})
AGAIN = Repeated(["a", "b"], permanent=2, epsilon=1)
TEXTS = HeavyHitters(longest=2, epsilon=1, buckets=64)
TOKENS = HeavyHitters(longest=2, alphabet=["new", "york"], epsilon=1, buckets=64)
SURVEYS = (TEXTS, TOKENS, CATEGORIES, NUMBERS, Frequency(["a", "b"], epsilon=1, other="z"), MEAN, DENSITY, BOTH, AGAIN)
REGION = Location((0.0, 0.0), 100.0, 0.01)


def declarations(odd: Any) -> Iterator[Any]:
    yield lambda: Frequency(odd, epsilon=1)
    yield lambda: Frequency(["a", "b"], epsilon=odd)
    yield lambda: Frequency(["a", "b"], epsilon=1, other=odd)
    yield lambda: Frequency(["a", "b"], epsilon=1, protocol=odd)
    yield lambda: Frequency(["a", "b"], epsilon=1, bytes_per_report=odd)
    for kind in (Mean, Distribution):
        yield lambda kind=kind: kind(between=odd, epsilon=1)
        yield lambda kind=kind: kind(between=(odd, 1), epsilon=1)
        yield lambda kind=kind: kind(between=(0, odd), epsilon=1)
        yield lambda kind=kind: kind(between=(0, 1), epsilon=odd)
    yield lambda: Mean(between=(0, 1), epsilon=1, method=odd)
    yield lambda: HeavyHitters(longest=odd, epsilon=1)
    yield lambda: HeavyHitters(longest=2, epsilon=odd)
    yield lambda: HeavyHitters(longest=2, epsilon=1, alphabet=odd)
    yield lambda: HeavyHitters(longest=2, epsilon=1, buckets=odd)
    yield lambda: Several(odd)
    yield lambda: Several({"x": odd})
    yield lambda: Repeated(odd, permanent=2, epsilon=1)
    yield lambda: Repeated(["a", "b"], permanent=odd, epsilon=1)
    yield lambda: Repeated(["a", "b"], permanent=2, epsilon=odd)
    yield lambda: Survey.from_json(odd)
    for survey in (CATEGORIES, BOTH, AGAIN, TEXTS, TOKENS):
        for key in survey.to_dict():
            text = json.dumps(survey.to_dict() | {key: odd}, default=str)
            yield lambda text=text: Survey.from_json(text)


def reports(odd: Any) -> Iterator[Any]:
    for survey in SURVEYS:
        yield lambda s=survey: s.report(odd)
        yield lambda s=survey: s.reports(odd)
        yield lambda s=survey: s.reports([odd])
        yield lambda s=survey: s.estimate(odd)
        yield lambda s=survey: s.estimate([odd])
        yield lambda s=survey: s.collector(ticket_bits=odd)
        yield lambda s=survey: s.collector().add([b"x"], tickets=odd)
        yield lambda s=survey: s.collector().add([b"x"], tickets=[odd])
        yield lambda s=survey: s.collector().add([b"x"], delivery=odd)
        yield lambda s=survey: s.collector().merge(odd)
        yield lambda s=survey: Collector.from_bytes(s, odd)
    yield lambda: BOTH.report({"m": odd, "f": "a"})
    yield lambda: BOTH.report({"m": 0, "f": odd})
    yield lambda: BOTH.reports({"m": odd, "f": ["a"]})
    yield lambda: Batch(CATEGORIES.id, np.zeros((1, 1), np.uint8), b"x" * 16).to_bytes()
    yield lambda: Shuffler(odd, at_least=10)
    yield lambda: Shuffler(CATEGORIES, at_least=odd)
    yield lambda: Shuffler(CATEGORIES, at_least=10).add(odd)
    yield lambda: shuffled_event(odd, 1000)
    yield lambda: shuffled_event(CATEGORIES, odd)
    yield lambda: Device(account=odd)


def places(odd: Any) -> Iterator[Any]:
    yield lambda: Location(odd, 100.0, 0.01)
    yield lambda: Location((odd, 0.0), 100.0, 0.01)
    yield lambda: Location((0.0, 0.0), odd, 0.01)
    yield lambda: Location((0.0, 0.0), 100.0, odd)
    yield lambda: Location.with_level(center=(0.0, 0.0), radius=odd, distance=1, level=2)
    yield lambda: Location.with_level(center=(0.0, 0.0), radius=9, distance=odd, level=2)
    yield lambda: Location.with_level(center=(0.0, 0.0), radius=9, distance=1, level=odd)
    yield lambda: REGION.report(odd)
    yield lambda: REGION.report((odd, 0.0))
    yield lambda: REGION.trajectory(odd, at_most=3)
    yield lambda: REGION.trajectory([odd], at_most=3)
    yield lambda: REGION.trajectory([(0.0, 0.0)], at_most=odd)
    yield lambda: REGION.error_radius(odd)
    yield lambda: REGION.price(odd)
    yield lambda: distance(odd, (0.0, 0.0))
    yield lambda: remap(odd, (0.0, 0.0), cells=[(0.0, 0.0)], prior=[1.0])
    yield lambda: remap(REGION, odd, cells=[(0.0, 0.0)], prior=[1.0])
    yield lambda: remap(REGION, (0.0, 0.0), cells=odd, prior=[1.0])
    yield lambda: remap(REGION, (0.0, 0.0), cells=[(0.0, 0.0)], prior=odd)


def estimates(odd: Any) -> Iterator[Any]:
    shares = CATEGORIES.estimate(CATEGORIES.reports(["a"] * 50))
    yield lambda: shares.share(odd)
    yield lambda: shares.error(odd)
    yield lambda: shares.sum(odd)
    yield lambda: shares.sum(["a"], confidence=odd)
    yield lambda: shares.bound_poisoning(odd)
    yield lambda: shares.bound_poisoning(1, of=odd)
    yield lambda: shares.table(odd)
    found = TEXTS.estimate(TEXTS.reports(["a"] * 1000))
    yield lambda: found.look_up(odd)
    yield lambda: found.look_up("a", confidence=odd)
    yield lambda: found.error(odd)
    yield lambda: TEXTS.decode(TEXTS.collector().counters, 100, kept=odd)
    yield lambda: TEXTS.decode(TEXTS.collector().counters, 100, confidence=odd)
    yield lambda: MEAN.estimate(MEAN.reports([0.5] * 50)).error(odd)
    density = DENSITY.estimate(DENSITY.reports([0.5] * 50))
    yield lambda: density.quantile(odd)
    yield lambda: density.below(odd)
    yield lambda: density.below_interval(odd)
    yield lambda: AGAIN.simulate(odd)
    yield lambda: AGAIN.simulate([odd])
    yield lambda: best(odd, 1.0)
    yield lambda: best(10, odd)
    yield lambda: best(10, 1.0, bytes_per_report=odd)
    yield lambda: poisoning(odd, 1, 100)
    yield lambda: poisoning(CATEGORIES.protocol, odd, 100)
    yield lambda: poisoning(CATEGORIES.protocol, 1, odd)
    yield lambda: consistent(odd)
    yield lambda: compare(odd, 4, 1.0)
    yield lambda: compare(100, odd, 1.0)
    yield lambda: compare(100, 4, odd)
    yield lambda: compare(100, 4, 1.0, delta=odd)


@pytest.mark.parametrize("calls", [declarations, reports, places, estimates], ids=lambda calls: calls.__name__)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
def test_every_call_answers_or_refuses(calls: Any, odd: Any) -> None:
    for call in calls(odd):
        try:
            call()
        except MoshaError:
            continue


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
def test_a_device_pays_nothing_for_what_it_refuses(odd: Any) -> None:
    account = mosha.Ledger.memory().account("phone", unit=mosha.Own(), epsilon=4)
    device = Device(account=account)
    for call in (
        lambda: device.report(odd, "a"),
        lambda: device.report(AGAIN, odd),
        lambda: device.report(AGAIN, "a", period=odd if not isinstance(odd, str) else ""),
    ):
        with pytest.raises(MoshaError):
            call()
    assert account.spent == 0
