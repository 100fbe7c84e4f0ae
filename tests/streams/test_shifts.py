"""From batch to answer: the noise of a published sequence, against the shift of every unit that its bounds let pass.

The covariance of the sequence is estimated from runs on no data, through `measurement.step` as it is. A unit that
shifts the sequence by d can be told from nobody at rho = d' C^-1 d / 2: none may be above what was charged.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mosha
from mosha import noise, streams
from mosha.accounting.measures import concentrated
from mosha.core.measurement import Measurement
from mosha.streams import Decayed, Instant, Running, Sliding

STEPS, RUNS, RHO = 4, 250, 0.5
PATTERNS = [set(steps) for most in range(1, STEPS + 1) for steps in itertools.combinations(range(STEPS), most)]
PERSON: Any = {"id": ["a"]}, {"id": []}


def list_patterns(most: Any, apart: Any = 1) -> list[Any]:
    """The steps in which a unit may have a row."""
    near = lambda steps: any(b - a < apart for a, b in itertools.pairwise(sorted(steps)))
    return [steps for steps in PATTERNS if len(steps) <= most and not near(steps)]


def make_cases() -> Iterator[tuple[Any, ...]]:
    common: dict[str, Any] = {"horizon": STEPS, "rho": RHO}
    for release in (Running(), Instant(), Sliding(3), Decayed(0.8)):
        yield streams.counter(unit=mosha.Reading(), release=release, **common), list_patterns(1), ([1], [])
    for most, apart in ((2, 1), (2, 3), (STEPS, 1)):
        unit = mosha.Person("id", at_most=most)
        yield streams.counter(unit=unit, apart=apart, **common), list_patterns(most, apart), PERSON
    yield streams.histogram(unit=mosha.Reading(), keys=["x", "y"], **common), list_patterns(1), (["x"], [])
    yield streams.total(unit=mosha.Reading(), between=(0, 5), **common), list_patterns(1), ([5.0], [])
    signed = streams.total(unit=mosha.Person("id", at_most=2), between=(-5, 2), column="v", **common)
    yield signed, list_patterns(2), ({"id": ["a"], "v": [-5.0]}, {"id": [], "v": []})


CASES = list(make_cases())


def run(measurement: Any, batches: Any, seed: Any) -> Any:
    rng, state, shown = noise.SeededRandom(seed), measurement.init(), []
    for batch in batches:
        value, state = measurement.step(state, batch, None, rng)
        shown.append(np.atleast_1d(np.asarray(value, float)))
    return np.concatenate(shown)


def find_greatest_shift(measurement: Any, patterns: Any, row: Any, empty: Any) -> tuple[Any, ...]:
    """The greatest rho among the patterns, and the number of coordinates."""
    start = np.random.SeedSequence().entropy % 2**60  # type: ignore[operator]
    silent = np.array([run(measurement, [empty] * STEPS, start + i) for i in range(RUNS)])
    inverse = np.linalg.inv(np.atleast_2d(np.cov(silent.T)))
    moved = [
        run(measurement, [row if step in steps else empty for step in range(STEPS)], start) - silent[0]
        for steps in patterns
    ]
    return max(float(shift @ inverse @ shift) / 2 for shift in moved), silent.shape[1]


def find_limit(coordinates: Any) -> Any:
    """How far above the truth an estimate may be: the truth over it is chi-square over its degrees (Wishart).

    False alarm: 1e-9 for all patterns of all cases together, by a union bound.
    """
    freedom = RUNS - coordinates
    return (RUNS - 1) / stats.chi2.ppf(1e-9 / (len(PATTERNS) * len(CASES)), freedom)


@pytest.mark.parametrize(("measurement", "patterns", "batches"), CASES, ids=lambda case: "")
def test_no_unit_shifts_a_sequence_further_than_was_charged(measurement: Any, patterns: Any, batches: Any) -> None:
    found, coordinates = find_greatest_shift(measurement, patterns, *batches)
    assert found <= concentrated.rho(measurement.event)[0] * find_limit(coordinates)


def test_a_unit_that_counts_twice_is_found() -> None:
    """Four times the rho: the estimate is below twice the charge with a probability below 1e-9."""
    measurement, patterns, (row, empty) = CASES[1]
    twice = lambda state, data, ask, rng: measurement.step(state, [*data, *data], ask, rng)
    doubled = Measurement(
        unit=measurement.unit, event=measurement.event, step=twice, init=measurement.init, horizon=STEPS
    )
    found, coordinates = find_greatest_shift(doubled, patterns, row, empty)
    assert found > concentrated.rho(measurement.event)[0] * find_limit(coordinates)
