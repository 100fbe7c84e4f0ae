"""Declarations, reports and collectors: nothing foreign is counted, nothing is lost, everything merges."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.unit import Own
from mosha.local import Batch, Collector, Distribution, Frequency, HeavyHitters, Mean, Several, Survey
from mosha.local.wire import tag_of
from mosha.noise import SeededRandom

SURVEYS = [
    Frequency(["a", "b", "c"], epsilon=1.0),
    Frequency(range(1000), epsilon=1.0),
    Frequency(["a", "b"], epsilon=2.0, other="else", protocol="optimised-unary"),
    Mean(between=(0, 10), epsilon=1.0),
    Distribution(between=(-1, 1), epsilon=1.0),
    Several({"x": Mean(between=(0, 1), epsilon=1.0), "y": Frequency(["p", "q"], epsilon=1.0)}),
    HeavyHitters(longest=2, epsilon=1.0, buckets=256),
]
VALUES = ["b", 17, "zzz", 3.5, 0.25, {"x": 0.5, "y": "q"}, "茶"]
every_survey = pytest.mark.parametrize(
    ("survey", "value"), list(zip(SURVEYS, VALUES, strict=True)), ids=lambda item: getattr(item, "kind", "")
)


def many(value: Any, count: Any) -> Any:
    return {name: [v] * count for name, v in value.items()} if isinstance(value, dict) else [value] * count


def told(estimate: Any) -> Any:
    """All numbers of an estimate."""
    fields = estimate.items() if isinstance(estimate, dict) else vars(estimate).items()
    numbers = {}
    for name, field in fields:
        if isinstance(field, np.ndarray):
            numbers[name] = field.tolist()
        elif isinstance(field, int | float):
            numbers[name] = field
        elif hasattr(field, "__dict__") and name in ("x", "y"):
            numbers[name] = told(field)
    return numbers


@every_survey
def test_a_declaration_survives_json_and_names_the_survey(survey: Any, value: Any) -> None:
    again = Survey.from_json(survey.to_json())
    assert type(again) is type(survey)
    assert again.id == survey.id
    assert again.to_json() == survey.to_json()
    assert len({other.id for other in SURVEYS}) == len(SURVEYS)


@every_survey
def test_a_declaration_whose_odds_are_not_those_of_its_epsilon_is_refused(survey: Any, value: Any) -> None:
    fields = json.loads(survey.to_json())
    for change in ({"epsilon": 5.0}, {"version": 2}, {"survey": "?"}, {"protocol": "?"}, {"mosha": 1}, {"more": 1}):
        with pytest.raises(InvalidParameter):
            Survey.from_json(json.dumps(fields | change))
    for text in ("", "[]", "{", "null", "[" * 100_000):
        with pytest.raises(InvalidParameter):
            Survey.from_json(text)


@every_survey
def test_one_report_is_short_and_of_the_declared_length(survey: Any, value: Any) -> None:
    report = survey.report(value)
    assert len(report) == survey.bytes_per_report
    assert report[0] == tag_of(survey.id)
    assert survey.collector().add(report) == 1


@every_survey
def test_a_survey_is_named_once_and_not_for_every_report(
    survey: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming it for each one took 645 times the CPU of collecting, with 10,000 labels."""
    monkeypatch.setattr(type(survey), "to_dict", lambda _: pytest.fail("the declaration was written again"))
    collector = survey.collector()
    assert collector.add(survey.report(value)) == 1
    assert collector.add([survey.report(value) for _ in range(3)]) == 3
    assert collector.add(survey.reports(many(value, 40))) == 40
    assert collector.accepted == 44


@every_survey
def test_same_randomness_same_report_and_price_before_data(survey: Any, value: Any) -> None:
    measurement = survey.measurement
    assert measurement.unit == Own()
    first, second = (measurement.step(None, value, None, SeededRandom(7))[0] for _ in range(2))
    assert first == second
    assert measurement.event.parts()[0][0].epsilon == survey.epsilon


@every_survey
def test_collectors_merge_and_can_be_stored(survey: Any, value: Any) -> None:
    batches = [survey.reports(many(value, 40)) for _ in range(3)]
    whole = survey.collector()
    parts = [survey.collector() for _ in batches]
    for part, batch in zip(parts, batches, strict=True):
        part.add(batch)
        whole.add(batch.to_bytes())
    total = Collector.from_bytes(survey, parts[0].to_bytes())
    total.merge(parts[1])
    total.merge(Collector.from_bytes(survey, parts[2].to_bytes()))
    assert total.accepted == whole.accepted == 120
    assert total.counters.tolist() == whole.counters.tolist()
    one_by_one = survey.collector()
    for batch in batches:
        one_by_one.add(list(batch))
    assert one_by_one.counters.tolist() == whole.counters.tolist()
    assert told(total.estimate()) == told(whole.estimate())


@every_survey
def test_what_is_not_a_report_of_this_survey_is_counted_as_rejected(survey: Any, value: Any) -> None:
    other = next(s for s in SURVEYS if tag_of(s.id) != tag_of(survey.id))
    good = survey.report(value)
    foreign = bytes([tag_of(other.id)]) + good[1:]
    newer = bytes([good[0] ^ 0x80]) + good[1:]
    collector = survey.collector()
    counted = collector.add([good, foreign, newer, good + b"x", b"", "text", None, good[:-1]])
    assert counted == 1
    assert collector.rejected == {"malformed": 5, "foreign": 2, "impossible": 0, "replayed": 0}


def test_reports_that_no_device_can_make_are_rejected() -> None:
    for survey in SURVEYS[:3]:
        collector = survey.collector()
        collector.add([bytes([tag_of(survey.id)]) + b"\xff" * survey.randomizer.width])
        assert (collector.accepted, collector.rejected["impossible"]) == (0, 1)


def test_a_batch_counts_once() -> None:
    survey = SURVEYS[0]
    batch = survey.reports(["a"] * 50)
    collector = survey.collector()
    collector.add(batch.to_bytes() + survey.reports(["b"] * 10).to_bytes() + batch.to_bytes())
    assert (collector.accepted, collector.rejected["replayed"]) == (60, 50)
    again = Collector.from_bytes(survey, collector.to_bytes())
    assert again.add(batch) == 0
    with pytest.raises(DataError, match="same batches"):
        again.merge(collector)


def test_a_ticket_counts_once_even_after_a_restart() -> None:
    survey = SURVEYS[0]
    collector = survey.collector()
    reports = [survey.report("a") for _ in range(20)]
    tickets = [bytes([i]) * 8 for i in range(20)]
    assert collector.add(reports, tickets=tickets) == 20
    again = Collector.from_bytes(survey, collector.to_bytes())
    assert again.add(reports, tickets=tickets) == 0
    assert again.rejected["replayed"] == 20
    assert again.add(reports, tickets=[bytes([i]) * 9 for i in range(20)]) == 20
    with pytest.raises(InvalidParameter):
        again.add(reports, tickets=tickets[:3])


@pytest.mark.parametrize("place", [0, 3, 6, 9, 20, 33, 60, -1])
def test_a_batch_with_a_wrong_byte_is_rejected(place: int) -> None:
    survey = SURVEYS[1]
    data = bytearray(survey.reports([5] * 40).to_bytes())
    data[place] ^= 0x11
    collector = survey.collector()
    assert collector.add(bytes(data)) == 0
    assert sum(collector.rejected.values()) >= 1
    collector.add(survey.reports([5] * 3).to_bytes() + bytes(data[:-5]))
    assert collector.accepted == 3


def test_batches_of_another_survey_are_rejected_whole() -> None:
    collector = SURVEYS[0].collector()
    collector.add(SURVEYS[1].reports([1] * 33))
    assert collector.rejected["foreign"] == 33
    with pytest.raises(DataError):
        collector.merge(SURVEYS[1].collector())
    with pytest.raises(DataError):
        Collector.from_bytes(SURVEYS[0], SURVEYS[1].collector().to_bytes())
    for broken in (b"", b"{}", b"[]", SURVEYS[0].collector().to_bytes()[:-9]):
        with pytest.raises(DataError):
            Collector.from_bytes(SURVEYS[0], broken)


@every_survey
def test_too_few_reports_are_refused_with_a_reason(survey: Any, value: Any) -> None:
    with pytest.raises(DataError, match="at least 30"):
        survey.estimate([survey.report(value) for _ in range(3)])


def test_the_memory_of_a_collector_does_not_grow() -> None:
    survey = Frequency(range(1000), epsilon=1.0)
    collector = survey.collector()
    sizes = []
    for _ in range(3):
        collector.add(list(survey.reports(np.arange(3000) % 1000)))
        sizes.append(collector.counters.nbytes)
    assert len(set(sizes)) == 1


def test_the_bytes_of_version_one_stay_what_they_are() -> None:
    """Another implementation reads these."""
    survey = Frequency(["red", "green", "blue"], epsilon=1.0, protocol="k-ary")
    assert survey.to_json() == (
        '{"epsilon": 1.0, "mosha": "local survey", "odds": [1494391238981, 549755813888], "other": null, '
        '"protocol": "k-ary", "survey": "frequency", "values": ["red", "green", "blue"], "version": 1}'
    )
    assert survey.id.hex() == ID
    assert survey.reproduce_report("blue", rng=SeededRandom(1)).hex() == REPORT
    batch = Batch(survey.id, np.array([[0], [2]], np.uint8), bytes(range(16)))
    assert batch.to_bytes().hex() == (
        "4d4f534841010100" + ID + "000102030405060708090a0b0c0d0e0f02000000000000000002" + SEAL
    )


ID = "50b177c0480ea9d8"
REPORT = "5401"
SEAL = "e3ccf092"


def test_a_device_loads_no_numpy() -> None:
    script = (
        "import sys, mosha\n"
        "for survey, value in ((mosha.local.Frequency(['a', 'b'], epsilon=1), 'a'),\n"
        "    (mosha.local.Frequency(range(1000), epsilon=1), 7), (mosha.local.Mean(between=(0, 1), epsilon=1), 0.5),\n"
        "    (mosha.local.Distribution(between=(0, 1), epsilon=1), 0.5)):\n"
        "    again = mosha.local.Survey.from_json(survey.to_json())\n"
        "    again.report(value), again.measurement\n"
        "for name in ('k-ary', 'projective', 'hadamard', 'local-hashing', 'subset-selection', 'symmetric-unary'):\n"
        "    mosha.local.Frequency(range(50), epsilon=1, protocol=name).report(3)\n"
        "mosha.local.Several({'x': mosha.local.Mean(between=(0, 1), epsilon=1)}).report({'x': 0})\n"
        "print([m for m in ('numpy', 'scipy', 'cryptography', 'mosha.noise') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
