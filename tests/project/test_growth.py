"""Twice the size costs at most 2.5 times the work: counted in calls and in memory, which no busy machine changes."""

import tracemalloc
from typing import Any

import pytest

from benchmarks._roads import Road, fit_exponent
from benchmarks.scale import ROADS
from tests.counting import calls

SMALL = {
    "estimate of a survey, by points": 20_000,
    "accounts of a book": 50,
    "medians of 100 groups, by rows": 50_000,
}
BY_CHANCE = {"synthetic graph, by edges"}  # noise decides how many graphs are tried; `benchmarks scale` measures it
EVERY = [road for roads in ROADS.values() for road in roads if road.what not in BY_CHANCE]


def peak(work: Any) -> Any:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(road: Any, size: Any) -> tuple[Any, ...]:
    """How many times the calls and the memory of `size` twice that size takes."""
    found = []
    for each in (size, 2 * size):
        work = road.prepare(each)
        work()  # what is loaded once
        found.append((min(calls(work) for _ in range(3)), peak(work)))
    (few, low), (many, high) = found
    return many / few, high / max(low, 100_000)


@pytest.mark.parametrize("road", EVERY, ids=lambda road: road.what)
def test_twice_the_size_costs_at_most_two_and_a_half_times_as_much(road: Any) -> None:
    work, memory = growth(road, SMALL.get(road.what, road.sizes[0]))
    assert work <= 2.5
    assert memory <= 2.5


def quadratic(size: Any) -> Any:
    def work() -> None:
        for end in range(size):
            for place in range(end):
                abs(place)

    return work


def test_a_quadratic_road_is_found() -> None:
    calls_made, _ = growth(Road("planted", (50, 100), quadratic), 50)
    assert calls_made > 2.5
    _, memory = growth(Road("planted", (500, 1000), lambda size: lambda: bytearray(size * size)), 500)
    assert memory > 2.5
    assert fit_exponent([10, 20, 40, 80], [100, 400, 1600, 6400]) == pytest.approx(2)
