"""Bytes that somebody changed at random: counted, rejected or refused, and nothing else happens."""

import random
import struct
import zlib
from contextlib import suppress
from typing import Any, NoReturn

import pytest

from mosha import local
from mosha.errors import MoshaError
from mosha.local.survey import Survey

SURVEYS = [
    (local.Frequency(["tea", "coffee", "milk"], epsilon=1), "tea"),
    (local.Frequency(range(1000), epsilon=1), 7),
    (local.Frequency(range(100_000), epsilon=4), 7),
    (local.Mean(between=(0, 10), epsilon=1), 3),
    (local.Distribution(between=(0, 10), epsilon=1), 3),
    (local.Distribution(between=(0, 10), epsilon=6), 3),
]
TRIES = 300


def change(data: Any) -> bytes:
    """A copy with a few other bytes, cut off, or with more at its end; or any bytes at all."""
    data, kind = bytearray(data), random.randrange(4)
    if kind == 0:
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
    elif kind == 1:
        del data[random.randrange(len(data) + 1) :]
    elif kind == 2:
        data += random.randbytes(random.randrange(30))
    else:
        data = bytearray(random.randbytes(random.randrange(60)))
    return bytes(data)


def forge_batch(survey: Any) -> Any:
    """The head of a batch with numbers that cannot be, whose checksum is right."""
    width = random.choice([0, 1, 2, 65535, survey.randomizer.width])
    count = random.choice([0, 1, 2**40, 2**63, 2**64 - 1])
    head = struct.pack("<5sBH8s16sQ", b"MOSHA", 1, width, survey.id, random.randbytes(16), count)
    body = head + random.randbytes(random.randrange(20))
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize(("survey", "value"), SURVEYS, ids=lambda part: "")
def test_changed_reports_and_batches_are_counted_or_rejected(survey: Any, value: Any) -> None:
    collector = survey.collector()
    one, many = survey.report(value), survey.reports([value] * 5).to_bytes()
    for _ in range(TRIES):
        for data in (change(one), change(many), forge_batch(survey)):
            for given in (data, [data]):
                with suppress(MoshaError):
                    collector.add(given)
    assert sum(collector.rejected.values()) > TRIES
    if survey.kind != "mean":  # whose reports are numbers
        assert 0 <= collector.counters.min() <= collector.counters.max() <= collector.accepted


@pytest.mark.parametrize(("survey", "value"), SURVEYS, ids=lambda part: "")
def test_changed_states_and_declarations_are_read_or_refused(survey: Any, value: Any) -> None:
    collector = survey.collector()
    collector.add(survey.reports([value] * 5).to_bytes())
    state, text = collector.to_bytes(), survey.to_json()
    for _ in range(TRIES // 2):
        with suppress(MoshaError):
            local.Collector.from_bytes(survey, change(state))
        letters = list(text)
        letters[random.randrange(len(letters))] = random.choice('0123456789{}[]",:e-x')
        with suppress(MoshaError):
            Survey.from_json("".join(letters))


def test_the_name_of_a_survey_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that worked it out for every report took forty times as long, and a collector six hundred times."""
    survey = SURVEYS[1][0]

    def refuse(self: Any) -> NoReturn:
        raise AssertionError("the declaration was written out again")

    monkeypatch.setattr(type(survey), "to_json", refuse)
    collector = survey.collector()
    collector.add([survey.report(7) for _ in range(20)])
    collector.add(survey.reports([7] * 20))
    assert collector.accepted == 40
