"""What one report costs does not grow with the number of labels: counted in calls, not in seconds."""

import copy
import pickle
from typing import Any, NoReturn

import pytest

from mosha.core.errors import InvalidParameter
from mosha.local import Distribution, Frequency, HeavyHitters, Mean, Repeated, Several
from tests.counting import calls

SIZES = (10, 10_000)
SURVEYS = {
    "best": lambda size: Frequency([f"label {i}" for i in range(size)], epsilon=1.0),
    "range": lambda size: Frequency(range(size), epsilon=1.0, protocol="hadamard"),
    "k-ary": lambda size: Frequency([f"label {i}" for i in range(size)], epsilon=1.0, protocol="k-ary"),
    "hadamard": lambda size: Frequency([f"label {i}" for i in range(size)], epsilon=1.0, protocol="hadamard"),
    "projective": lambda size: Frequency([f"label {i}" for i in range(size)], epsilon=1.0, protocol="projective"),
    "local-hashing": lambda size: Frequency([f"label {i}" for i in range(size)], epsilon=1.0, protocol="local-hashing"),
}


def value_of(survey: Any) -> Any:
    return survey.values[7]


@pytest.mark.parametrize("kind", SURVEYS)
def test_making_a_report_does_not_grow_with_the_labels(kind: Any) -> None:
    few, many = (SURVEYS[kind](size) for size in SIZES)
    for survey in (few, many):
        survey.report(value_of(survey))  # what is loaded once
    least = [min(calls(lambda s=survey: s.report(value_of(s))) for _ in range(20)) for survey in (few, many)]  # type: ignore[misc]
    assert least[1] <= 3 * least[0]  # digits of a thousand times as many labels, not labels


@pytest.mark.parametrize("kind", SURVEYS)
def test_a_report_and_its_collection_never_read_the_declaration_again(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = SURVEYS[kind](1_000)
    collector = survey.collector()

    def again(_self: Any) -> NoReturn:
        raise AssertionError("the declaration was written out again")

    monkeypatch.setattr(type(survey), "to_json", again)
    monkeypatch.setattr(type(survey), "_question_fields", again)
    reports = [survey.report(value_of(survey)) for _ in range(50)]
    collector.add(reports)
    collector.add(survey.reports([value_of(survey)] * 50))
    assert collector.accepted == 100


@pytest.mark.parametrize(
    "survey",
    [
        Frequency(["a", "b"], epsilon=1),
        Mean(between=(0, 1), epsilon=1),
        Distribution(between=(0, 1), epsilon=1),
        Several({"q": Frequency(["a", "b"], epsilon=1), "r": Mean(between=(0, 1), epsilon=1)}),
        Repeated(["a", "b"], permanent=2, epsilon=1),
        HeavyHitters(longest=3, epsilon=1, buckets=64),
    ],
    ids=lambda survey: survey.kind,
)
def test_a_declared_survey_cannot_be_changed_and_copies_keep_its_name(survey: Any) -> None:
    for name in ("epsilon", "randomizer", "values", "anything", "_id"):
        with pytest.raises(InvalidParameter, match="cannot be changed"):
            setattr(survey, name, 3)
        with pytest.raises(InvalidParameter, match="cannot be changed"):
            delattr(survey, name)
    again = type(survey).from_json(survey.to_json())
    for copied in (copy.copy(survey), copy.deepcopy(survey), pickle.loads(pickle.dumps(survey)), again):
        assert copied.id == survey.id
