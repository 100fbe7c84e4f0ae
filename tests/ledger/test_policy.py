"""Ceilings that accounts obey when they are opened, and warnings where a promise is weak by anybody's standard."""

import json
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.cli import main
from mosha.ledger.storage.chain import follow
from mosha.ledger.terms.policy import Policy
from tests.ledger.place import PERSON

STRICT = {
    "epsilon": 3,
    "delta": 1e-6,
    "units": ["person", "client"],
    "population_required": True,
    "children_expire": True,
    "grant_days": 90,
}
OF = mosha.Person("pid", of="patients")


def in_days(days: Any) -> Any:
    return datetime.now(UTC) + timedelta(days=days)


def test_a_policy_is_noted_once_and_holds_for_whoever_opens_the_book(place: Any) -> None:
    place.open(policy=STRICT)
    place.open(policy=STRICT)
    ledger = place.open()
    (note,) = ledger.notes(topic="mosha/policy")
    assert ledger.policy == Policy.of(STRICT)
    assert (note.content["policy"], note.content["sha256"]) == (ledger.policy.to_dict(), ledger.policy.sha256)
    head = ledger.head
    with pytest.raises(errors.PolicyViolation, match="epsilon 5 is above the ceiling 3"):
        ledger.population("patients", epsilon=5)
    assert ledger.head == head
    ledger.population("patients", epsilon=3, delta=1e-6)
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"unit": OF, "epsilon": 3.1}, "epsilon 3.1"),
        ({"unit": OF, "epsilon": 3, "delta": 2e-6}, "delta 2e-06"),
        ({"unit": OF, "rho": 1}, "epsilon at the policy|means epsilon"),
        ({"unit": OF, "mu": 3}, "means epsilon"),
        ({"unit": mosha.Row(of="patients"), "epsilon": 1}, "protects a row"),
        ({"unit": PERSON, "epsilon": 1}, "names no population"),
        ({"epsilon": 1, "parent": "labs"}, "must be a grant"),
    ],
)
def test_accounts_above_the_ceilings_are_refused(ledger: Any, place: Any, terms: Any, why: str) -> None:
    ledger = place.open(policy=STRICT)
    ledger.population("patients", epsilon=3)
    ledger.account("labs", unit=OF, epsilon=3)
    head = ledger.head
    with pytest.raises(errors.PolicyViolation, match=why):
        ledger.account("new", **terms)
    assert ledger.head == head


def test_what_keeps_within_the_policy_is_opened(place: Any) -> None:
    ledger = place.open(policy=STRICT)
    ledger.population("patients", epsilon=3, delta=1e-6)
    labs = ledger.account("labs", unit=OF, rho=0.1)
    labs.block("2026")
    labs.grant("li", rho=0.05, expires=in_days(80))
    with pytest.raises(errors.PolicyViolation, match="90 days"):
        labs.grant("wang", rho=0.05, expires=in_days(100))
    assert ledger.account("labs").limit == pytest.approx(0.1)  # reopened, whatever the policy
    assert ledger.verify().ok


def test_a_measure_without_a_ceiling_is_refused_where_others_have_one(place: Any) -> None:
    ledger = place.open(policy={"rho": 1})
    with pytest.raises(errors.PolicyViolation, match="no ceiling for epsilon"):
        ledger.account("a", unit=PERSON, epsilon=0.1)
    with pytest.raises(errors.PolicyViolation, match="no ceiling for mu"):
        ledger.account("a", unit=PERSON, mu=0.1)
    ledger.account("a", unit=PERSON, rho=1)


def test_a_newer_policy_takes_its_place_and_statements_say_who_is_above_it(place: Any) -> None:
    ledger = place.open()
    ledger.account("old", unit=PERSON, epsilon=5)
    ledger = place.open(policy={"epsilon": 1})
    assert any("above the ceiling 1" in sentence for sentence in ledger.statement("old").warnings)
    place.open(policy={"epsilon": 8})
    ledger.account("new", unit=PERSON, epsilon=8)
    assert ledger.statement("old").warnings == ()
    assert len(ledger.notes(topic="mosha/policy")) == 2
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"delta": 1},
        {"units": []},
        {"units": ["people"]},
        {"units": "person"},
        {"grant_days": 0.5},
        {"colour": 1},
        {"children_expire": "yes"},
        "no-such-file.toml",
        7,
    ],
)
def test_what_is_no_policy_is_refused_before_the_book_is_opened(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        mosha.Ledger(tmp_path / "privacy.db", policy=wrong)
    assert not (tmp_path / "privacy.db").exists()


@pytest.mark.parametrize("name", ["mosha-policy.toml", "policy.json", "policy.yaml"])
def test_a_policy_is_a_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    lines = [f"{key} = {json.dumps(value)}" for key, value in STRICT.items()]
    file.write_text("\n".join(lines) if name.endswith("toml") else json.dumps(STRICT), encoding="utf-8")
    with mosha.Ledger(tmp_path / "privacy.db", policy=file) as ledger:
        assert ledger.policy == Policy.of(STRICT)
    file.write_text("[[[", encoding="utf-8")
    with pytest.raises(errors.InvalidParameter):
        mosha.Ledger(tmp_path / "privacy.db", policy=file)


@pytest.mark.parametrize("forged", ["account", "hash"])
def test_an_account_against_the_policy_is_found(place: Any, forged: str) -> None:
    ledger = place.open(policy={"epsilon": 1})
    other = mosha.Ledger.memory().account("large", unit=PERSON, epsilon=5)
    kind, content = "open", other.terms.to_dict()
    if forged == "hash":
        kind, content = "note", {"topic": "mosha/policy", "content": {"policy": {"epsilon": 9}, "sha256": "0" * 64}}
    entry = follow(ledger.head, 2**52, kind, content)
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{entry.body}', '{entry.hash}')")
    assert any(f"row {entry.sequence}" in problem for problem in place.open().verify().problems)


@pytest.mark.parametrize(
    ("terms", "weak"),
    [
        ({"epsilon": 10}, False),
        ({"epsilon": 11}, True),
        ({"epsilon": 1, "delta": 1e-3}, False),
        ({"epsilon": 1, "delta": 0.5}, True),
        ({"epsilon": 1, "delta": 1e-6, "size": 10_000}, False),
        ({"epsilon": 1, "delta": 1e-6, "size": 10_001}, True),
        ({"epsilon": 1, "size": 10**9}, False),
        ({"rho": 0.5}, False),
        ({"rho": 10}, True),
        ({"mu": 0.5}, False),
        ({"mu": 10}, True),
    ],
)
def test_a_weak_promise_is_warned_of_and_stated(terms: Any, weak: bool) -> None:
    ledger = mosha.Ledger.memory()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ledger.account("visits", unit=PERSON, **terms)
        ledger.account("visits")  # reopened: said once
    assert [warning.category for warning in caught] == [mosha.WeakPromise] * weak
    statement = ledger.statement("visits")
    assert bool(statement.warnings) == weak == bool(statement.to_dict()["warnings"])
    assert ("## Warnings" in statement.markdown()) == weak


def test_the_size_of_a_population_or_a_parent_counts() -> None:
    ledger = mosha.Ledger.memory()
    ledger.population("patients", epsilon=1, size=10**6)
    for name, parent in (("labs", None), ("zhang", "labs")):
        with pytest.warns(mosha.WeakPromise, match="1,000,000"):
            ledger.account(name, unit=OF, epsilon=1, delta=1e-6, parent=parent)


def test_warnings_and_policies_on_the_command_line(tmp_path: Path) -> None:
    book, policy = str(tmp_path / "privacy.db"), tmp_path / "mosha-policy.toml"
    policy.write_text("epsilon = 50\n", encoding="utf-8")
    code = "import sys; from mosha.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "ledger", "open", book, "visits", "--unit", "row", "--policy", str(policy)]
    done = subprocess.run([*words, "--epsilon", "40"], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr.startswith("mosha: warning: account 'visits': Epsilon 40")
    assert main(["ledger", "open", book, "more", "--unit", "row", "--epsilon", "60"]) == 1
