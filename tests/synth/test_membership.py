"""Who was in the data, by an attacker who knows the world and looks at every pair of values in the synthetic table."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.audit import membership_attack, score_by_marginals
from mosha.core.guarantee import Gaussian
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.noise import secure
from mosha.tables import Budget

COLUMNS, VALUES, PEOPLE = 24, 4, 600
PROMISED = 0.3
NAMES = [f"c{i}" for i in range(COLUMNS)]


def draw_world(rows: Any, generator: Any) -> dict[Any, Any]:
    """Columns that hang together by a hidden kind."""
    kind = generator.integers(0, 3, rows)
    return {name: (kind * i + generator.integers(0, 4, rows)) % VALUES for i, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def study() -> tuple[Any, ...]:
    """Candidates of whom a fair coin puts each into the data, and a world that the attacker knows."""
    generator = np.random.default_rng()
    candidates = draw_world(PEOPLE, generator)
    return candidates, generator.random(PEOPLE) < 0.5, draw_world(20_000, generator)


def synthesize(study: Any, epsilon: Any) -> Any:
    candidates, included, _ = study
    rows = pa.table({name: column[included] for name, column in candidates.items()})
    question = mosha.protect(rows, unit=mosha.Row()).synthesize(keys=dict.fromkeys(NAMES, range(VALUES)), nulls=[])
    budget = Budget(epsilon=epsilon, delta=1e-6)
    value = question.measurement_for(epsilon=epsilon, delta=1e-6).step(None, None, None, secure())[0]
    return question.read(value, question.noises(budget)).sample(20_000)


def attack(study: Any, published: Any, confidence: Any) -> Any:
    candidates, included, world = study
    scores = score_by_marginals(published, candidates, world)
    claim = Gaussian(1 / gaussian_multiplier(epsilon=PROMISED, delta=1e-6))
    return membership_attack(published, candidates, included, scores=scores, claim=claim, confidence=confidence)


def test_a_synthetic_table_betrays_no_more_than_was_promised(study: Any) -> None:
    """False alarms: below 1e-9."""
    assert not attack(study, synthesize(study, PROMISED), 1 - 1e-9).one_run.broken


def test_a_synthesizer_with_next_to_no_noise_is_found(study: Any) -> None:
    """Power: the same synthesizer with the noise of epsilon 200 and the claim of 0.3.

    It guesses about 0.70 of 600 candidates right, where 0.53 and the doubt of one in ten allow 0.56: seven standard
    deviations.
    """
    found = attack(study, synthesize(study, 200), 0.9)
    assert found.one_run.broken
    assert found.advantage > 0.12
