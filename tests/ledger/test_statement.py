"""What is stated is what was promised and paid, with every field that registries ask for."""

import json
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.accounting.measures import concentrated
from tests.ledger.place import PERSON, asking


@pytest.fixture
def ledger() -> Any:
    return mosha.Ledger.memory()


@pytest.fixture
def visits(ledger: Any) -> Any:
    account = ledger.account("visits", unit=PERSON, epsilon=3, delta=1e-6)
    account.child("zhang", epsilon=1, delta=1e-7).open(asking(events.Gaussian(20), name="mean stay")).step(None)
    with account.open(asking(events.Gaussian(50) * 5, horizon=5, name="daily count")) as run:
        run.step(None)
        run.step(None)
    with pytest.raises(errors.StepFailed):
        account.open(asking(events.Gaussian(100), answer=lambda data: 1 / 0, name="broken | pipe")).step(None)
    account.open(asking(events.Gaussian(100), name="waiting"))
    with account.open(asking(events.Gaussian(100), name="never")):
        pass
    with account.lease(events.Gaussian(100) * 10) as lease:
        lease.open(asking(events.Gaussian(100))).step(None)
    account.lease(events.Gaussian(200))
    return account


def test_it_lists_every_payment_with_its_fate(ledger: Any, visits: Any) -> None:
    lines = [(line.name, line.state) for line in ledger.statement(visits).releases]
    assert lines == [
        ("mean stay", "released"),
        ("daily count", "2 of 5 steps released"),
        ("broken | pipe", "failed"),
        ("waiting", "reserved"),
        ("never", "handed back"),
        ("lease", "settled"),
        ("lease", "lease, not settled"),
    ]


def test_the_costs_add_up_to_what_was_spent(ledger: Any, visits: Any) -> None:
    found = ledger.statement("visits")
    costs = [concentrated.rho_from_epsilon(line.cost, 9e-7) for line in found.releases if line.cost]
    assert sum(costs) == pytest.approx(concentrated.rho_from_epsilon(visits.spent, 9e-7))
    assert found.spent == visits.spent_as
    assert found.promise == visits.promise


def test_it_is_json_for_programs(ledger: Any, visits: Any) -> None:
    found = json.loads(json.dumps(ledger.statement(visits).to_dict(), allow_nan=False))
    assert (found["neighbors"], found["head"]) == ("add-remove", str(ledger.head))
    assert [line["account"] for line in found["accounts"]] == ["visits/zhang"]
    assert "description" in found["registry"]["missing"]


def test_the_markdown_says_it_to_people(ledger: Any, visits: Any) -> None:
    text = ledger.statement(visits).markdown()
    assert text.startswith("# Privacy statement: visits\n")
    for part in (
        "| promise | epsilon 3, delta 1e-06, for all releases together |",
        "| hidden | whether one person (all rows of one 'patient_id') is added or removed |",
        "| neighbors | add-remove |",
        "| visits/zhang | epsilon 1, delta 1e-07 |",
        "| daily count | Gaussian(noise_multiplier=50.0) * 2 |",
        "| broken \\| pipe |",
    ):
        assert part in text


def test_retired_and_disjoint_are_said(ledger: Any) -> None:
    account = ledger.account("visits", unit=mosha.Reading(), epsilon=1, disjoint_blocks=True)
    account.block("2026-11")
    account.retire()
    text = ledger.statement("visits").markdown()
    assert "retired" in text
    assert "declared disjoint" in text
    assert "None." in text


def test_today_is_tighter_than_the_rule_and_no_promise(ledger: Any, visits: Any) -> None:
    today = ledger.reprice(visits)
    assert today.delta == 1e-6
    assert 0 < today.epsilon <= visits.spent_as.epsilon
    assert ledger.reprice("visits", delta=1e-9).epsilon > today.epsilon
    assert ledger.statement(visits).today == today
    assert "tight today" in ledger.statement(visits).markdown()


def test_a_pure_account_is_priced_again_at_any_delta(ledger: Any) -> None:
    account = ledger.account("stays", unit=PERSON, epsilon=30)
    for _ in range(100):
        account.open(asking(events.Laplace(10)))
    assert ledger.reprice(account) == account.spent_as
    assert ledger.reprice(account, delta=1e-6).epsilon < 5


def test_an_unknown_account_has_no_statement(ledger: Any) -> None:
    for ask in (ledger.statement, ledger.reprice):
        with pytest.raises(errors.UnknownAccount):
            ask("nobody")


def test_equal_releases_are_one_line_with_their_number_and_their_rows(ledger: Any) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=100)
    for number in range(50):
        run = account.open(asking(events.Laplace(10), name="count"))
        if number % 5:
            run.step(None)
    found = ledger.statement(account)
    assert [(line.name, line.state, line.count) for line in found.releases] == [
        ("count", "reserved", 10),
        ("count", "released", 40),
    ]
    assert sum(line.cost for line in found.releases) == pytest.approx(account.spent)
    assert found.releases[1].last == next(row for row in reversed(ledger.entries()) if row.kind == "pay").label
    assert account.event() == events.Laplace(10) * 50
    text = found.markdown()
    assert "count (40 times)" in text
    assert "| releases | 50 |" in text


def test_a_statement_reads_as_much_of_the_book_for_many_releases_as_for_few(
    ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=100)
    read = []
    from mosha.ledger.storage.sqlite import SQLiteTransaction

    rows = SQLiteTransaction.rows
    monkeypatch.setattr(
        SQLiteTransaction,
        "rows",
        lambda self, *a: (found := rows(self, *a), read.append(len(found)))[0],
    )
    sizes = []
    for times in (20, 200):
        for _ in range(times):
            account.open(asking(events.Laplace(10))).step(None)
        read.clear()
        ledger.statement(account), account.event(), ledger.reprice(account)
        sizes.append(sum(read))
    assert sizes[0] == sizes[1]


def test_what_the_index_says_was_bought_is_what_the_rows_say(ledger: Any, visits: Any) -> None:
    """Blocks count by the dearest, children with their parents, closed runs by what is kept."""
    assert ledger.account("visits/zhang").event() == events.Gaussian(20)
    expected = events.Gaussian(20) + events.Gaussian(50) * 2 + events.Gaussian(100) * 3 + events.Gaussian(200)
    assert visits.event() == expected
