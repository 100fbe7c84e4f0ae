"""What is left is said as epsilon at the account's delta in every text, whatever the rule counts in."""

import json
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.accounting.admission import Converted
from mosha.accounting.rules import Price, rule_for
from mosha.cli import main
from mosha.core.guarantee import Approx
from mosha.core.language import say
from mosha.ledger.account import LedgerAccount
from mosha.mechanisms import Count, gaussian
from tests.ledger.place import asking

CONVERTED = [
    {"epsilon": 1, "delta": 1e-6, "rule": "renyi"},
    {"epsilon": 1, "delta": 1e-6, "rule": "gaussian"},
    {"epsilon": 1, "delta": 1e-6, "rule": "zero-concentrated"},
    {"rho": 0.05, "delta": 1e-6},
    {"mu": 0.3, "delta": 1e-6},
]
OTHERS = [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "delta": 1e-6, "rule": "pure"}]
OWN = [{"rho": 0.05}, {"mu": 0.3}]  # no delta was ever named


def open_account(limits: dict[str, Any], ledger: mosha.Ledger | None = None) -> LedgerAccount:
    return (ledger or mosha.Ledger.memory()).account("visits", unit=mosha.Row(), **limits)


@pytest.mark.parametrize("limits", CONVERTED, ids=str)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_text_says_what_is_left_as_epsilon_at_the_delta_of_the_account(
    limits: dict[str, Any], language: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSHA_LANG", language)
    ledger = mosha.Ledger.memory()
    account = open_account(limits, ledger)
    receipt = account.open(asking(events.Gaussian(30), unit=mosha.Row())).step([]).receipt
    left = account.remaining_as
    assert isinstance(account.promise, Approx)
    assert left is not None
    assert 0 < left.epsilon < account.promise.epsilon
    assert left.delta == 1e-6
    words = say("core.left_as", epsilon=f"{left.epsilon:.4g}", delta=f"{left.delta:.3g}")
    statement = ledger.statement("visits")
    texts = {
        "account": str(account),
        "account in a notebook": account._repr_html_(),
        "what a table shows": account.describe_room(),
        "receipt": str(receipt),
        "its repr": repr(receipt),
        "receipt in a notebook": receipt._repr_html_(),
        "every payer": str(receipt.payers[0]),
        "statement": statement.markdown(lang=language),
        "statement in a notebook": statement._repr_html_(),
        "page": statement.to_html(lang=language),
        "ledger": str(ledger),
    }
    assert [name for name, text in texts.items() if words not in text] == []
    assert receipt.to_dict()["left_as"] == receipt.payers[0].to_dict()["left_as"] == left.to_dict()
    assert statement.to_dict()["left_as"] == left.to_dict()


@pytest.mark.parametrize("limits", OTHERS + OWN, ids=str)
def test_where_the_account_counts_in_epsilon_or_has_no_delta_its_own_measure_is_all_there_is(
    limits: dict[str, Any],
) -> None:
    account = open_account(limits)
    account.open(asking(events.Laplace(30), unit=mosha.Row()))
    assert account.remaining_as is None
    assert " at delta" not in str(account)


@pytest.mark.parametrize("limits", CONVERTED, ids=str)
def test_all_is_left_at_first_then_less_and_nothing_at_the_end(limits: dict[str, Any]) -> None:
    rule = rule_for(**limits)
    limit, promise = rule.limit.amount, rule.promise()
    assert isinstance(promise, Approx)
    found = [left.epsilon for part in range(11) if (left := rule.left_as(Price(limit * part // 10)))]
    assert found[0] == pytest.approx(promise.epsilon, rel=1e-9)
    assert found[0] <= promise.epsilon
    assert found == sorted(set(found), reverse=True)
    assert found[-1] == 0.0


@pytest.mark.parametrize("limits", CONVERTED + OWN, ids=str)
def test_the_largest_price_that_a_refusal_names_is_paid_and_a_little_more_is_not(limits: dict[str, Any]) -> None:
    account = open_account(limits)
    account.open(asking(events.Gaussian(30), unit=mosha.Row()))
    with pytest.raises(errors.BudgetExceeded) as refused:
        account.open(asking(events.Pure(40), unit=mosha.Row()))
    assert isinstance(account.rule, Converted)
    largest = account.rule.pure_left(account.remaining)
    assert f"one of epsilon {largest:.4g} without a delta" in str(refused.value)
    assert account.how_many(events.Pure(largest)) == 1
    assert account.how_many(events.Pure(largest * 1.0001)) == 0
    account.open(asking(events.Pure(largest), unit=mosha.Row()))


def test_the_command_line_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.db")
    with mosha.Ledger(path) as ledger:
        account = ledger.account("visits", unit=mosha.Row(), epsilon=1, delta=1e-6, rule="renyi")
        account.open(asking(events.Gaussian(30), unit=mosha.Row())).step([])
        left = account.remaining_as
    assert main(["ledger", "show", path, "visits", "--json"]) in (0, None)
    assert json.loads(capsys.readouterr().out)["remaining_as"] == left.to_dict()
    assert main(["ledger", "show", path]) in (0, None)
    assert f"{left.epsilon:.4g}" in capsys.readouterr().out


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_account_of_exactly_what_was_bought_says_that_nothing_is_left(
    language: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was calibrated lies a little below what it was bought for; exact numbers keep that, texts do not."""
    monkeypatch.setenv("MOSHA_LANG", language)
    ledger = mosha.Ledger.memory()
    account = open_account({"epsilon": 1, "delta": 1e-6}, ledger)
    bought = gaussian(Count(), unit=mosha.Row(), epsilon=1, delta=1e-6)
    receipt = account.open(bought).step([1, 2, 3]).receipt
    assert 0 < receipt.remaining < 1e-5
    statement = ledger.statement("visits")
    texts = {
        "receipt": str(receipt),
        "receipt in a notebook": receipt._repr_html_(),
        "payer": str(receipt.payers[0]),
        "account": str(account),
        "account in a notebook": account._repr_html_(),
        "statement": statement.markdown(lang=language),
        "statement in a notebook": statement._repr_html_(),
        "page": statement.to_html(lang=language),
        "ledger": str(ledger),
    }
    leftover = (f"{receipt.remaining:.4g}", f"{receipt.remaining:.6g}")
    assert [name for name, text in texts.items() if any(number in text for number in leftover)] == []
    assert receipt.to_dict()["remaining"] == statement.to_dict()["left"] == receipt.remaining
