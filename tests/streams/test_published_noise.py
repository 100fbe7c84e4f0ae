"""What is published hides every unit as well as was charged: its noise is measured from outside, step by step.

The steps of a measurement are run on an empty stream, again and again. From the covariance S of what they publish and
the shift d that the rows of one unit cause follows what an attacker who knows all else can reach at best, for noise
that is normal: d' S^-1 d / 2 in rho. That knows nothing of trees, bands or matrices.
"""

import itertools
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mosha import Person, Reading, Window, noise, streams
from mosha.accounting.measures import concentrated
from mosha.streams import Decayed, Instant, Running, Sliding

HORIZON, RUNS, RHO = 8, 500, 0.5
MISSED = 1e-10  # how often a correct stream is called too loud, for each pattern of each stream


def list_patterns(most: int, apart: int = 1) -> list[tuple[int, ...]]:
    """The steps at which one unit may be there."""
    steps = itertools.chain.from_iterable(itertools.combinations(range(HORIZON), k) for k in range(1, most + 1))
    return [found for found in steps if all(b - a >= apart for a, b in itertools.pairwise(found))]


WINDOWS = [tuple(range(start, start + 3)) for start in range(HORIZON - 2)]
ALWAYS = [tuple(range(HORIZON))]
MANY = [*list_patterns(1), *ALWAYS, tuple(range(0, HORIZON, 2)), tuple(range(4)), tuple(range(4, HORIZON))]
THERE, NOBODY = {"id": ["a"]}, {"id": []}  # type: ignore[var-annotated]
MADE = {"horizon": HORIZON, "rho": RHO}
TWO = Person("id", at_most=2)

STREAMS: dict[str, tuple[Any, list[tuple[int, ...]], Any, Any]] = {}
for kind in (Running(), Instant(), Sliding(3), Decayed(0.8)):
    make = partial(streams.counter, unit=Reading(), release=kind, **MADE)  # type: ignore[arg-type]
    STREAMS[f"readings, {kind}"] = (make, list_patterns(1), [1], [])
for kind in (Running(), Instant(), Sliding(3)):
    some = partial(streams.counter, unit=Person("id", at_most=3), release=kind, **MADE)  # type: ignore[arg-type]
    STREAMS[f"three times, {kind}"] = (some, list_patterns(3), THERE, NOBODY)
    far = partial(streams.counter, unit=TWO, release=kind, apart=3, **MADE)  # type: ignore[arg-type]
    STREAMS[f"twice and apart, {kind}"] = (far, list_patterns(2, 3), THERE, NOBODY)
    always = partial(streams.counter, unit=Person("id"), release=kind, **MADE)  # type: ignore[arg-type]
    STREAMS[f"always, {kind}"] = (always, MANY, THERE, NOBODY)
STREAMS |= {
    "histogram": (partial(streams.histogram, unit=Reading(), keys=["x", "y"], **MADE), list_patterns(1), ["x"], []),  # type: ignore[arg-type]
    "windows": (partial(streams.window, unit=Window("id", 3), **MADE), WINDOWS, THERE, NOBODY),  # type: ignore[arg-type]
    "total": (partial(streams.total, unit=Reading(), between=(0, 5), **MADE), list_patterns(1), [5.0], []),  # type: ignore[arg-type]
    "total below zero": (
        partial(streams.total, unit=TWO, between=(-5, 2), column="v", **MADE),  # type: ignore[arg-type]
        list_patterns(2),
        {"id": ["a"], "v": [-5.0]},
        {"id": [], "v": []},
    ),
}


def publish(measurement: Any, batches: Iterable[Any], seed: int) -> Any:
    """All that a stream publishes, as one vector."""
    state, shown, rng = measurement.init(), [], noise.SeededRandom(seed)
    for batch in batches:
        value, state = measurement.step(state, batch, None, rng)
        shown.append(np.atleast_1d(np.asarray(value, float)))
    return np.concatenate(shown)


def measure_loss(measurement: Any, patterns: Any, there: Any, nobody: Any) -> tuple[float, float, float]:
    """The largest rho that any pattern shows, and the factors by which it may seem smaller and larger than it is."""
    seeds = [int.from_bytes(noise.secure().bytes(6), "little") for _ in range(RUNS)]
    silent = np.array([publish(measurement, [nobody] * HORIZON, seed) for seed in seeds])
    inverse = np.linalg.inv(np.cov(silent.T))
    found = []
    for pattern in patterns:
        batches = [there if step in pattern else nobody for step in range(HORIZON)]
        shift = publish(measurement, batches, seeds[0]) - silent[0]
        found.append(float(shift @ inverse @ shift) / 2)
    # for each pattern (RUNS - 1) true / measured is chi-square with so many degrees (normal noise, Wishart's S)
    law = stats.chi2(RUNS - silent.shape[1])
    return max(found), (RUNS - 1) / float(law.isf(MISSED)), (RUNS - 1) / float(law.ppf(MISSED))


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_published_shows_the_worst_unit_as_well_as_was_charged_and_no_better(name: str) -> None:
    """False alarms: 1e-10 for each of 430 patterns, and once more for the worst one of each stream."""
    make, patterns, there, nobody = STREAMS[name]
    measurement = make()
    charged = concentrated.rho(measurement.event)[0]
    found, least, most = measure_loss(measurement, patterns, there, nobody)
    assert charged == pytest.approx(RHO)
    assert charged * least <= found <= charged * most


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_noise_of_half_or_twice_the_size_is_found(factor: float) -> None:
    stream = streams.counter(unit=Reading(), horizon=HORIZON, rho=RHO / factor**2)
    found, least, most = measure_loss(stream, list_patterns(1), [1], [])
    assert (found > RHO * most) if factor < 1 else (found < RHO * least)
