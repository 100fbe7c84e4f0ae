"""Notes stand in the chain, cost nothing and move nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.cli import main
from mosha.ledger.storage.chain import Head, follow
from tests.ledger.place import PERSON, asking


def test_a_note_is_a_row_that_costs_nothing(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=1)
    visits.open(asking()).step(None)
    before = visits.spent_price
    decided = {"by": "wang", "grants": ["zhang"], "declaration": "ab" * 32, "price": 0.1}
    written = ledger.note("approval/monthly-report", decided, about=visits)
    assert visits.spent_price == before
    assert ledger.head == Head(written.sequence, written.hash)
    assert ledger.notes() == [written]
    assert (written.content, written.about) == (decided, "visits")
    assert ledger.verify().ok


def test_notes_are_found_by_topic_and_by_account(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=1)
    first = ledger.note("approval", "yes", about=visits)
    second = ledger.note("approval/report", ["yes"])
    third = ledger.note("approvals", None)
    assert ledger.notes() == [first, second, third]
    assert ledger.notes(topic="approval") == [first, second]
    assert ledger.notes(topic="approval/report") == [second]
    assert ledger.notes(about="visits") == [first]
    assert ledger.notes(topic="nothing") == []


@pytest.mark.parametrize(
    "topic", ["", "Approval", "a b", "/a", "a/", "a//b", "-a", "a-", "a" * 101, "批准", None, 3, "a\n"]
)
def test_a_topic_has_a_form(ledger: Any, topic: Any) -> None:
    head = ledger.head
    with pytest.raises(errors.InvalidParameter, match="topic"):
        ledger.note(topic, {})
    assert ledger.head == head


def test_the_ledgers_own_topics_are_not_for_others(ledger: Any) -> None:
    with pytest.raises(errors.InvalidParameter, match="ledger itself"):
        ledger.note("mosha/policy", {})


def _nested(depth: Any) -> Any:
    return [] if depth == 0 else [_nested(depth - 1)]


@pytest.mark.parametrize(
    "content",
    [
        float("nan"),
        float("inf"),
        {"a": float("nan")},
        {1: 2},
        (1, 2),
        {"a": {2}},
        b"x",
        "x" * 16_384,
        10**5000,
        _nested(40),
    ],
    ids=["nan", "inf", "inner nan", "number as name", "tuple", "set", "bytes", "too long", "too large", "too deep"],
)
def test_only_plain_json_of_bounded_size_is_noted(ledger: Any, content: Any) -> None:
    head = ledger.head
    with pytest.raises(errors.InvalidParameter, match="Nothing was written"):
        ledger.note("remark", content)
    assert ledger.head == head


@pytest.mark.parametrize(
    "content",
    [None, True, 0, -1.5, "磨砂\x00\ud800 'quoted' %s", [], {}, {"a": [1, {"b": None}]}, "x" * 16_000, 2**200],
)
def test_a_note_reads_back_as_it_was_written(ledger: Any, content: Any) -> None:
    ledger.note("remark", content)
    (found,) = ledger.notes()
    assert found.content == content
    assert type(found.content) is type(content)
    assert ledger.verify().ok


def test_a_note_about_nobody_is_refused(ledger: Any) -> None:
    head = ledger.head
    with pytest.raises(errors.UnknownAccount):
        ledger.note("approval", {}, about="visits")
    assert ledger.head == head


@pytest.mark.parametrize(
    "forged",
    [
        {"topic": "Approval", "content": 1},
        {"topic": "approval", "content": "x" * 20_000},
        {"topic": "approval", "content": 1, "charges": []},
        {"topic": "approval", "content": 1, "about": "nobody"},
        {"content": 1},
    ],
)
def test_a_forged_note_with_a_right_hash_is_found(place: Any, forged: Any) -> None:
    ledger = place.open()
    ledger.note("approval", 1)
    entry = follow(ledger.head, 2**52, "note", forged)
    values = f"({entry.sequence}, {entry.at}, 'note', '{entry.body}', '{entry.hash}')"
    place.tamper(f"INSERT INTO entries VALUES {values}")
    assert any(f"row {entry.sequence}" in problem for problem in place.open().verify().problems)


def test_an_edited_note_is_found(place: Any) -> None:
    ledger = place.open()
    note = ledger.note("approval", {"by": "wang"})
    place.tamper(f"UPDATE entries SET body = replace(body, 'wang', 'li') WHERE sequence = {note.sequence}")
    assert not ledger.verify().ok


def test_notes_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book, file = str(tmp_path / "privacy.db"), tmp_path / "decision.json"
    file.write_text('{"by": "王"}', encoding="utf-8")
    mosha.Ledger(book).close()
    assert main(["ledger", "note", book, "approval", '{"by": "li"}', "--json"]) == 0
    assert main(["ledger", "note", book, "approval/report", f"@{file}"]) == 0
    assert main(["ledger", "note", book, "remark", "seen by the board"]) == 0
    capsys.readouterr()
    assert main(["ledger", "notes", book, "--topic", "approval", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["notes"]
    assert [each["content"] for each in found] == [{"by": "li"}, {"by": "王"}]
    assert main(["ledger", "notes", book]) == 0
    assert 'remark: "seen by the board"' in capsys.readouterr().out
    assert main(["ledger", "notes", book, "--topic", "denial"]) == 0
    assert "No such note." in capsys.readouterr().out
    assert main(["ledger", "note", book, "approval", "@nowhere.json"]) == 1
    assert main(["ledger", "note", book, "approval", f"@{book}"]) == 1
