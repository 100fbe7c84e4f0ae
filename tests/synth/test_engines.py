"""One synthetic table, the same wherever the rows live: with the same randomness, to the last bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.connect.plan.source import Source
from mosha.noise import SeededRandom
from mosha.tables import protect
from tests.tables.test_engines import PLACES, placed
from tests.tables.test_engines import arrow as arrow  # noqa: PLC0414

DAYS = (np.datetime64("2024-01-01").item(), np.datetime64("2024-03-31").item())
WORDS = {
    "keys": {"ward": ["ward 0", "ward 1", "ward 2"]},
    "between": {"days": (0, 10), "day": DAYS},
    "bins": {"days": 5, "day": 6},
}


def leave(table: Any) -> Any:
    """What leaves the private side, with noise that is made again."""
    question = table.synthesize(**WORDS)
    return question.measurement_for(epsilon=3, delta=1e-9).step(None, None, None, SeededRandom(4))[0]


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Person("who")], ids=["rows", "persons"])
@pytest.mark.parametrize("name", PLACES[1:])
def test_the_same_noise_gives_the_same_table_on_every_engine(
    name: Any, unit: Any, arrow: Any, tmp_path: Path, request: Any
) -> None:
    expected = leave(protect(arrow, unit=unit))
    source, options = placed(name, arrow, tmp_path, request)
    found = leave(protect(source, unit=unit, **options))
    for stage in ("one-ways", "distances", "pairs", "fine", "look"):
        np.testing.assert_array_equal(found[stage], expected[stage])
    assert found["method"] == expected["method"]


@pytest.mark.parametrize("name", PLACES[1:])
def test_rows_per_person_are_the_same_on_every_engine(name: Any, arrow: Any, tmp_path: Path, request: Any) -> None:
    def leave_numbers(table: Any) -> Any:
        question = table.synthesize(**WORDS, rows_per_person=3)
        return question.measurement_for(epsilon=3, delta=1e-9).step(None, None, None, SeededRandom(4))[0]

    unit = mosha.Person("who")
    source, options = placed(name, arrow, tmp_path, request)
    found, expected = leave_numbers(protect(source, unit=unit, **options)), leave_numbers(protect(arrow, unit=unit))
    np.testing.assert_array_equal(found["one-ways"], expected["one-ways"])


@pytest.mark.parametrize("name", ["duckdb", "postgresql"])
def test_a_release_asks_the_engine_once(
    name: str, arrow: Any, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for all stages: four looks at the data would be four chances for it to change in between."""
    from mosha.synth.measuring import counting

    asked = []

    def count_questions(honest: Any) -> Any:
        def ask(question: Any, *more: Any) -> Any:
            asked.append(question)
            return honest(question, *more)

        return ask

    for way in ("answer", "answer_in_batches"):
        monkeypatch.setattr(counting, way, count_questions(getattr(counting, way)))
    source, options = placed(name, arrow, tmp_path, request)
    table = protect(source, unit=mosha.Row(), **options)
    assert all(isinstance(one, Source) for one in table.relation.sources)
    leave(table)
    assert len(asked) == 1
