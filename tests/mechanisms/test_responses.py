"""Randomized response, and what a collector makes of it."""

import math
from typing import Any

import numpy as np
import pytest

from mosha import Own, Row
from mosha.core.errors import InvalidParameter
from mosha.mechanisms import randomized_response, response_frequencies
from mosha.noise import secure


@pytest.mark.parametrize("categories", [2, 4])
def test_the_estimate_is_near_the_truth(categories: int) -> None:
    # 3000 reports: the deviation of each estimate is below 0.02; 0.16 is eight of them
    epsilon, labels, rng = 2.0, list(range(categories)), secure()
    measurement = randomized_response(labels, unit=Own(), epsilon=epsilon)
    truth = [0] * 2100 + [1] * 900
    reports = [measurement.step(None, value, None, rng)[0] for value in truth]
    estimate = response_frequencies(reports, labels, epsilon=epsilon)
    assert np.abs(estimate - np.array([0.7, 0.3] + [0.0] * (categories - 2))).max() < 0.16
    assert estimate.sum() == pytest.approx(1)


def test_the_estimate_undoes_the_expected_reports_exactly() -> None:
    p = 1 / (1 + 2 * math.exp(-1.0))
    q = (1 - p) / 2
    shares = np.array([0.5, 0.3, 0.2])
    counts = np.rint((q + shares * (p - q)) * 10**6).astype(int)
    reports = np.repeat(["a", "b", "c"], counts)
    assert np.abs(response_frequencies(reports, ["a", "b", "c"], epsilon=1.0) - shares).max() < 1e-5  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [
    lambda: randomized_response(["a"], unit=Own(), epsilon=1),
    lambda: randomized_response([], unit=Own(), epsilon=1),
    lambda: randomized_response(["a", "a"], unit=Own(), epsilon=1),
    lambda: randomized_response("ab", unit=Own(), epsilon=1),
    lambda: randomized_response(["a", "b"], unit=Row(), epsilon=1),
    lambda: randomized_response(["a", "b"], unit=Own(), epsilon=0),
    lambda: response_frequencies([], ["a", "b"], epsilon=1),
], ids=lambda make: None)  # fmt: skip
def test_bad_declarations_are_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
