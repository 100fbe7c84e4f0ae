"""Plans, surveys, findings and synthetic data say in a few lines what they are, in both languages."""

from typing import Any

import pyarrow as pa
import pytest

import mosha
from mosha import mechanisms
from mosha.core.language import set_language

WORDS = {"keys": {"sex": ["F", "M"], "job": ["a", "b"]}}


@pytest.fixture
def survey() -> Any:
    account = mosha.Ledger.memory().account("survey", unit=mosha.Row(), epsilon=9, delta=1e-5)
    rows = pa.table({"sex": ["F", "M"] * 100, "job": ["a", "a", "b", "b"] * 50})
    return mosha.protect(rows, unit=mosha.Row(), account=account)


def test_a_plan_says_who_is_hidden_how_long_it_is_and_what_it_promises() -> None:
    plan = mosha.federated.ServerSide(rounds=20, clients=300, rate=0.5, clip=0.5)
    assert "not chosen yet" in str(plan)
    text = str(plan.calibrate(epsilon=6, delta=1e-5))
    for word in ("one client", "steps: 20", "clip: 0.5", "noise multiplier: 1.9", "epsilon 6", "delta 1e-05"):
        assert word in text


def test_a_survey_says_what_a_report_may_reveal() -> None:
    asked = mosha.local.Frequency(["tea", "coffee"], epsilon=1.5)
    assert "one report reveals at most epsilon: 1.5" in str(asked)
    assert f"{asked.bytes_per_report} bytes" in asked._repr_html_()


def test_cards_are_told_in_chinese_too() -> None:
    asked = mosha.local.Frequency(["tea", "coffee"], epsilon=1.5)
    try:
        set_language("zh")
        assert "一份报告最多泄露 epsilon" in str(asked)
        assert "噪声倍数" in str(mosha.federated.ServerSide(rounds=2, clients=30, clip=1.0))
    finally:
        set_language(None)


def test_a_finding_shows_itself_in_a_notebook() -> None:
    count = mechanisms.laplace(mechanisms.Count(), unit=mosha.Row(), epsilon=1)
    verdict = mosha.audit.attack(count, neighbors=([1], [1, 2]), runs=200)
    assert "mosha-card" in verdict._repr_html_()
    assert str(verdict).splitlines()[0].split(":")[0] in verdict._repr_html_()


@pytest.mark.parametrize(("verb", "word"), [("marginals", "Marginals"), ("synthesize", "Synthetic table")])
def test_questions_and_answers_about_many_columns_have_cards(survey: Any, verb: str, word: str) -> None:
    question = getattr(survey, verb)(**WORDS)
    assert str(question).startswith(word)
    assert "Nothing has been read" in question._repr_html_()
    answer = question.release(epsilon=1, delta=1e-9)
    assert "sex, job" in str(answer)
    assert str(answer.receipt) in str(answer)


def test_what_was_estimated_from_devices_shows_itself() -> None:
    asked = mosha.local.Frequency(["tea", "coffee"], epsilon=4)
    shares = asked.estimate(asked.reports(["tea"] * 900 + ["coffee"] * 100))
    assert repr(shares) == "Shares(2 values, 1,000 reports)"
    assert "coffee" in str(shares)
    assert "mosha-card" in shares._repr_html_()


def test_a_survival_curve_and_a_test_show_themselves() -> None:
    curve = mosha.tables.find_survival_curve([10, 10], [0, 80], deviation=0)
    assert repr(curve) == "SurvivalCurve(2 periods)"
    assert "0.900" in str(curve)
    found = mosha.models.TestResult(3.21987, 0.0041, None)
    assert repr(found) == "TestResult(statistic 3.22, p-value 0.0041)"
    assert "0.0041" in found._repr_html_()


def test_a_database_says_how_rows_find_their_person() -> None:
    schema = {"persons": {"customer": {"key": "customer.id"}}, "tables": {"customer": {"rows_of": "customer"}}}
    account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), epsilon=2)
    shop = mosha.protect_database({"customer": {"id": [1, 2]}}, schema=schema, account=account)
    assert "customer" in str(shop)
    assert "how a row finds its person" in shop._repr_html_()
