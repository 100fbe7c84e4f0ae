"""Units that were renamed: books, keys and policies from before mean the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import learning, streams
from mosha.audit.registry import entries
from mosha.cli import main
from mosha.connect.engines.postgresql import PostgreSQL
from mosha.connect.engines.source import ServerTable
from mosha.core.event import from_dict
from mosha.core.events import Laplace
from mosha.core.fingerprint import describe_fields, is_storing, write_as_stored
from mosha.core.fingerprint import fingerprint as fingerprint_of_statistic
from mosha.core.fingerprint import fingerprint_plan as fingerprint_of_plan
from mosha.core.fingerprint import fingerprint_synthesis as fingerprint_of_synthesis
from mosha.core.unit import Unit
from mosha.ledger.terms.policy import Policy

# written by version 0.2.0 before the renames: the stored form, and what three kinds of fingerprints begin with
BEFORE = {
    mosha.Reading(): (
        '{"unit": "Event", "neighbours": "add-remove"}',
        ("9ca3c20ba56e6cac", "c33a69da6e2ab35e", "c6e6cdb11e1e49f2"),
    ),
    mosha.Reading(neighbors="replace-one"): (  # type: ignore[arg-type]
        '{"unit": "Event", "neighbours": "replace-one"}',
        ("ebccb801e4d7f881", "fb15858e5f019914", "59d13327d6352048"),
    ),
    mosha.Own(): (
        '{"unit": "Self", "neighbours": "replace-one"}',
        ("e24bc15b18f23a05", "bd2e14fe933ac7ee", "9feeade94941a67b"),
    ),
    mosha.Own(of="owners"): (
        '{"unit": "Self", "neighbours": "replace-one", "of": "owners"}',
        ("b3dbf33dea9a496f", "204dacbd151d3d73", "255733e05d924930"),
    ),
    mosha.Window("who", 4): (
        '{"unit": "Window", "neighbours": "add-remove", "column": "who", "steps": 4}',
        ("5e3b8dc17da547cb", "1916115d222b5d3c", "27b611e3206f7a96"),
    ),
    mosha.Row(2, neighbors="replace-one"): (  # type: ignore[arg-type]
        '{"unit": "Row", "neighbours": "replace-one", "at_most": 2}',
        ("c5e522aecb5eebf0", "42a6ab8e7f95b766", "ba46f8911da3cf00"),
    ),
}


@pytest.mark.parametrize("unit", BEFORE, ids=repr)
def test_a_unit_is_stored_and_read_as_before(unit: Any) -> None:
    stored, _ = BEFORE[unit]
    assert json.dumps(unit.to_dict()) == stored
    assert Unit.from_dict(json.loads(stored)) == unit


@pytest.mark.parametrize("unit", BEFORE, ids=repr)
def test_the_fingerprints_of_questions_are_those_from_before(unit: Any) -> None:
    _, begin = BEFORE[unit]
    seen = fingerprint_of_plan(unit), fingerprint_of_statistic("count", unit), fingerprint_of_synthesis(unit)
    assert tuple(each[:16] for each in seen) == begin


def test_a_question_about_a_synthetic_table_is_the_one_from_before() -> None:
    table = mosha.protect({"who": [1, 2, 3], "x": [1, 2, 3]}, unit=mosha.Person("who", at_most=2))
    cells = {"a": np.arange(3), "b": (1.5, np.float64(2.5), np.int64(3))}
    seen = fingerprint_of_synthesis(table.relation, table.unit, cells, Laplace(2), [None, True, "x"], np.ones((2, 2)))
    assert seen[:16] == "678aa6d9d4af97f4"


def test_synthetic_tables_of_two_databases_are_two_questions() -> None:
    """Their tables have one name: once, a key that paid for one was given the synthetic table of the other."""
    first, second = (ServerTable(PostgreSQL(""), (), (), ("public", "visits"), name) for name in ("1/a", "2/a"))
    assert first.origin_name == second.origin_name
    assert fingerprint_of_synthesis(first) != fingerprint_of_synthesis(second)


def test_a_stream_that_was_begun_before_is_the_same_question() -> None:
    counter = streams.counter(unit=mosha.Reading(), horizon=96, rho=0.5)
    bell = streams.alarm(unit=mosha.Reading(), threshold=5, alarms=1, horizon=9, rho=0.5)
    assert (counter.question[:16], bell.question[:16]) == ("45c94b2c3acacef3", "592ea6a799dcdfa6")


def test_questions_are_written_with_the_names_that_books_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, trainings, trees, clusters and survival curves had the unit's new name in their question.

    A key that paid for one before was told that it had paid for something else. (Banded noise takes long to plan.)
    """
    written = []

    def write(described: Any, of: Any) -> Any:
        if not is_storing():
            written.append(of)
        return describe_fields(described, of)

    monkeypatch.setattr("mosha.core.unit.describe_fields", write)
    found = []
    for entry in entries():
        if entry.name != "DPFTRL: banded":
            entry.build()
            found += [entry.name] * bool(written)
            written.clear()
    assert found == []
    assert repr(mosha.Row())
    assert written  # whoever writes a unit is heard


def test_a_checkpoint_from_before_is_one_of_the_same_plan() -> None:
    plan = learning.DPSGD(steps=10, clip=1.0, rate=0.1, noise_multiplier=1.0)
    assert "unit=Example(neighbours=<Neighbours.ADD_REMOVE: 'add-remove'>)" in write_as_stored(plan)


@pytest.mark.parametrize("read", [from_dict, Unit.from_dict])
def test_the_old_and_the_new_name_together_are_refused(read: Any) -> None:
    stored = (Laplace(2).sample(0.5) if read is from_dict else mosha.Row()).to_dict()
    assert stored["neighbours"] == "add-remove"
    assert read(stored)
    with pytest.raises(mosha.errors.InvalidParameter):
        read({**stored, "neighbors": "replace-one"})


def test_the_new_name_is_read_as_well() -> None:
    assert Unit.from_dict({"unit": "Reading"}) == mosha.Reading()
    assert Unit.from_dict({"unit": "Own"}) == mosha.Own()


def test_people_meet_the_new_name() -> None:
    assert mosha.Reading().summarize() == "Reading()"
    assert repr(mosha.Own()) == "Own(neighbors=<Neighbors.REPLACE_ONE: 'replace-one'>)"


@pytest.mark.parametrize(("old", "new"), [("Event", "Reading"), ("Self", "Own"), ("Neighbours", "Neighbors")])
def test_the_old_name_works_and_warns(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"now called mosha.{new}"):
        assert getattr(mosha, old) is getattr(mosha, new)


@pytest.mark.parametrize(("old", "new"), [("event", mosha.Reading()), ("self", mosha.Own())])
def test_the_command_takes_the_old_word_with_a_warning(old: str, new: Any, tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    with pytest.warns(DeprecationWarning, match=f"--unit {old} is now called"):
        assert main(["ledger", "open", str(book), "visits", "--unit", old, "--epsilon", "1"]) == 0
    assert mosha.Ledger(book).account("visits").unit == new


@pytest.mark.parametrize("word", ["event", "reading"])
def test_a_policy_may_say_either_word(word: str, tmp_path: Path) -> None:
    ledger = mosha.Ledger(tmp_path / "book.db", policy=Policy(units=[word]))  # type: ignore[arg-type]
    assert ledger.account("door", unit=mosha.Reading(), epsilon=1).unit == mosha.Reading()
    with pytest.raises(mosha.errors.MoshaError):
        ledger.account("rows", unit=mosha.Row(), epsilon=1)
