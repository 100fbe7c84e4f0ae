"""One of each: every factory with data, a neighbor of the data, and no data at all. Laws run on all of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mosha import Example, Own, Person, Row
from mosha.mechanisms import (
    Clipped,
    ClippedSum,
    Count,
    Histogram,
    Quantile,
    VectorSum,
    above_threshold,
    additive,
    exponential,
    gaussian,
    laplace,
    mean,
    partition_selection,
    permute_and_flip,
    propose_test_release,
    randomized_response,
    report_noisy_max,
    smooth_sensitivity,
    top_k,
)

ROW, REPLACED, PERSON = Row(), Row(neighbors="replace-one"), Person("who", at_most=2)  # type: ignore[arg-type]
DELTA = 1e-6
LETTERS = Histogram(keys=["a", "b", "c"])
VISITS = (np.array([1, 1, 1, 2, 3]), np.array([5.0, 9.0, 2.0, 7.0, 1.0]))
FEWER = (np.array([2, 3]), np.array([7.0, 1.0]))


@dataclass(frozen=True)
class Case:
    """`make(epsilon)` is a measurement that costs at most `epsilon` (and DELTA, or as mu: epsilon)."""

    name: str
    make: Callable[[float], Any]
    data: Any = field(repr=False)
    neighbor: Any = field(repr=False)
    empty: Any = field(default=(), repr=False)

    def __str__(self) -> Any:
        return self.name


def every_measurement() -> list[Any]:
    numbers, fewer = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]
    words, other = ["a", "b", "b", "c"], ["a", "b", "c"]
    vectors = np.array([[3.0, 4.0, 0.0], [0.1, 0.2, 0.3]])
    median = Quantile(at=0.5, between=(0, 8))
    total, nobody = ClippedSum(between=(0, 8)), (np.array([], int), np.array([]))
    return [
        Case("laplace count", lambda e: laplace(Count(), unit=ROW, epsilon=e), numbers, fewer),
        Case("laplace sum", lambda e: laplace(total, unit=ROW, epsilon=e), numbers, fewer),
        Case("laplace sum replaced", lambda e: laplace(total, unit=REPLACED, epsilon=e), numbers, [1.0, 2.0, 3.0, 8.0]),
        Case("laplace sum person", lambda e: laplace(total, unit=PERSON, epsilon=e), VISITS, FEWER, nobody),
        Case("laplace histogram", lambda e: laplace(LETTERS, unit=ROW, epsilon=e), words, other),
        Case("laplace clipped", lambda e: laplace(Clipped(between=(2, 3)), unit=ROW, epsilon=e), numbers, fewer),
        Case("gaussian count", lambda e: gaussian(Count(), unit=ROW, mu=e), numbers, fewer),
        Case("gaussian epsilon", lambda e: gaussian(LETTERS, unit=ROW, epsilon=e, delta=DELTA), words, other),
        Case(
            "gaussian vectors",
            lambda e: gaussian(VectorSum(norm=1, coordinates=3), unit=Example(), mu=e),
            vectors,
            vectors[:1],
            np.empty((0, 3)),
        ),
        Case(
            "additive", lambda e: additive(LETTERS, unit=REPLACED, epsilon=e, delta=DELTA), words, ["a", "b", "b", "b"]
        ),
        Case("mean", lambda e: mean(between=(0, 8), unit=ROW, epsilon=e), numbers, fewer),
        Case("mean person", lambda e: mean(between=(0, 8), unit=PERSON, epsilon=e), VISITS, FEWER, nobody),
        Case(
            "mean replaced",
            lambda e: mean(between=(0, 8), unit=REPLACED, epsilon=e, missing="middle"),
            numbers,
            [1.0, 2.0, 3.0, 8.0],
        ),
        Case("exponential", lambda e: exponential(LETTERS, unit=ROW, epsilon=e), words, other),
        Case("permute_and_flip", lambda e: permute_and_flip(LETTERS, unit=ROW, epsilon=e), words, other),
        Case("report_noisy_max", lambda e: report_noisy_max(LETTERS, unit=ROW, epsilon=e, top=2), words, other),
        Case("top_k", lambda e: top_k(LETTERS, unit=ROW, k=2, epsilon=e), words, other),
        Case(
            "above_threshold",
            lambda e: above_threshold(Count(), unit=ROW, epsilon=e, threshold=4, horizon=5, alarms=2),
            numbers,
            fewer,
        ),
        Case(
            "randomized_response",
            lambda e: randomized_response(["a", "b", "c"], unit=Own(), epsilon=e),
            "a",
            "b",
            None,
        ),
        Case(
            "partition_selection",
            lambda e: partition_selection(unit=Person("who", groups=2), epsilon=e, delta=DELTA),
            (list(range(40)), ["x"] * 39 + ["y"]),
            (list(range(39)), ["x"] * 39),
            ([], []),
        ),
        Case("smooth_sensitivity", lambda e: smooth_sensitivity(median, unit=ROW, epsilon=e), numbers, fewer),
        Case(
            "propose_test_release",
            lambda e: propose_test_release(median, unit=ROW, epsilon=e, delta=DELTA, sensitivity=1),
            numbers,
            fewer,
        ),
    ]
