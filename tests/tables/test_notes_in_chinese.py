"""Whatever is asked, no note of an answer is English for a reader of Chinese; each can be read in both languages."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import tables
from mosha.core.language import current_language, keep_language, phrase_from_dict, phrase_to_dict, set_language

NAMES = {"count", "sum", "mean", "maximum", "distinct", "median", "people", "ward", "days", "rows"}
CODE = {"answer", "exact", "Person", "column", "at_most", "bars", "delta", "epsilon"}


def visits(unit: Any) -> Any:
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1e6, delta=0.1)
    people = np.repeat(np.arange(400), 3)
    columns = {"who": people, "ward": [f"w{i % 4}" for i in people], "days": (people % 30).astype(float)}
    return mosha.protect(columns, unit=unit, account=account)


def by_ward(table: Any) -> Any:
    return table.group_by("ward", keys=["w0", "w1", "w2", "w3"])


DAYS = tables.sum("days", between=(0, 30))
QUESTIONS = {
    "a count": lambda t: t.count().release(epsilon=1),
    "a count of people": lambda t: by_ward(t).aggregate(people=tables.persons()).release(epsilon=1),
    "a sum and a mean": lambda t: t.aggregate(sum=DAYS, mean=tables.mean("days", between=(0, 30))).release(epsilon=1),
    "gaussian noise": lambda t: by_ward(t).count().release(rho=0.5),
    "a range from the data": lambda t: t.mean("days", between="automatic").release(epsilon=5),
    "a quantile in rows": lambda t: t.median("days", between=(0, 30), bars="rows").release(epsilon=1),
    "a quantile in values": lambda t: by_ward(t).median("days", between=(0, 30), bars="values").release(epsilon=0.01),
    "one quantile that is noise": lambda t: t.median("days", between=(0, 30), bars="values").release(epsilon=0.001),
    "an extreme": lambda t: t.maximum("days", between=(0, 30)).release(epsilon=1),
    "distinct values": lambda t: t.distinct("ward").release(epsilon=1),
    "groups from the data": lambda t: t.group_by("ward").count().release(epsilon=5, delta=1e-6),
    "groups without a count": lambda t: t.group_by("ward").sum("days", between=(0, 30)).release(epsilon=5, delta=1e-6),
    "the most frequent": lambda t: t.top("ward", k=2, candidates=["w0", "w1", "w2"]).release(epsilon=1),
    "the same key again": lambda t: [t.count().release(epsilon=1, key="a") for _ in range(2)][1],
    "few people": lambda t: t.count().release(epsilon=0.001),
}
UNITS = {
    "rows": mosha.Row(),
    "people": mosha.Person("who"),
    "people with a limit": mosha.Person("who", at_most=2),
}


@pytest.fixture
def chinese() -> Iterator[None]:
    with keep_language():
        set_language("zh")
        yield


def english_in(note: Any) -> list[Any]:
    words = re.findall(r"[A-Za-z_]{2,}", re.sub(r"'[^']*'", "", note))
    return [word for word in words if word not in NAMES | CODE]


REFUSED = {("a count of people", "rows"), ("the most frequent", "people")}


@pytest.mark.parametrize(
    ("asked", "unit"), [(asked, unit) for asked in QUESTIONS for unit in UNITS if (asked, unit) not in REFUSED]
)
def test_no_note_is_english_for_a_reader_of_chinese(asked: Any, unit: Any, chinese: Any) -> None:
    answer = QUESTIONS[asked](visits(UNITS[unit]))
    assert answer.notes
    for note in (*answer.notes, *answer.read_notes()):
        assert re.search("[\u4e00-\u9fff]", note), note
        assert not english_in(note), note
    assert answer.read_notes("zh") == list(dict.fromkeys(answer.notes))
    assert all(note.isascii() for note in answer.read_notes("en"))
    shown = str(answer.make_card())
    assert all(note in shown for note in answer.read_notes("zh"))


def test_the_law_can_fail() -> None:
    assert english_in("Laplace noise for count.")
    assert not english_in("count 加拉普拉斯噪声。")


def test_a_note_follows_its_reader_and_survives_as_plain_data() -> None:
    answer = visits(mosha.Person("who")).count().release(epsilon=1)
    assert current_language() == "en"
    for note, chinese_note in zip(answer.notes, answer.read_notes("zh"), strict=True):
        stored = phrase_to_dict(note)
        assert phrase_from_dict(stored) == note
        with keep_language():
            set_language("zh")
            assert phrase_from_dict(stored) == chinese_note


def test_an_explanation_is_chinese_too(chinese: Any) -> None:
    told = visits(mosha.Person("who", at_most=2)).aggregate(count=tables.count(), sum=DAYS).explain(epsilon=1)
    for line in told.splitlines()[1:]:
        assert re.search("[\u4e00-\u9fff]", line), line
