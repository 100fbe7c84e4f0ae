"""What people see of tables, questions, answers, receipts, accounts and ledgers: short, rounded, and safe HTML."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha import tables
from mosha.core.language import keep_language, set_language
from mosha.mechanisms import Histogram, laplace
from mosha.tables import aggregates

PERSON = mosha.Person("who", at_most=1)
NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def book() -> Any:
    return mosha.Ledger.memory()


@pytest.fixture(scope="module")
def table(book: Any) -> Any:
    account = book.account("visits", unit=PERSON, epsilon=100)
    wards = ["A", NASTY, "内科"] * 300
    rows = pa.table({"who": range(900), "ward": wards, "days": np.arange(900.0) % 9})
    return mosha.protect(rows, unit=PERSON, account=account)


@pytest.fixture(scope="module")
def answer(table: Any) -> Any:
    asked = table.group_by("ward", keys=["A", NASTY, "内科"])
    return asked.aggregate(n=aggregates.count(), stay=aggregates.mean("days", between=(0, 9))).release(epsilon=1)


@pytest.fixture(scope="module")
def objects(table: Any, answer: Any, book: Any) -> list[Any]:
    question = table.group_by("ward", keys=["A", NASTY]).count()
    account = book.account("visits")
    return [table, table.group_by("ward"), question, answer, answer.receipt, account, book, book.statement("visits")]


class Tags(HTMLParser):
    """Counts what is opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.seen = [], set()  # type: ignore[var-annotated]

    def handle_starttag(self, tag: Any, attrs: Any) -> None:
        self.seen.add(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)

    def handle_endtag(self, tag: Any) -> None:
        assert self.open.pop() == tag


def test_html_is_well_formed_and_holds_no_script(objects: Any) -> None:
    for shown in objects:
        tags = Tags()
        tags.feed(shown._repr_html_())
        assert tags.open == []
        assert "script" not in tags.seen
        assert "prefers-color-scheme:dark" in shown._repr_html_()


def test_reprs_are_one_short_line(objects: Any) -> None:
    for shown in objects:
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 250


def test_counts_are_whole_and_other_numbers_rounded_to_their_bars(answer: Any) -> None:
    line = next(line for line in str(answer).splitlines() if line.strip().startswith("内科"))
    _, count, bar, mean, width = line.split()
    assert re.fullmatch(r"-?[\d,]+", count)
    assert re.fullmatch(r"\d+", bar)
    assert len(mean.partition(".")[2]) == len(width.partition(".")[2]) > 0


def test_the_bar_that_is_shown_is_never_narrower_than_the_bar_of_a_count(answer: Any) -> None:
    shown = int(str(answer).splitlines()[2].split()[-3])
    assert shown >= max(answer.error(0.95)["n"])


def test_one_number_is_told_by_the_repr(table: Any) -> None:
    assert re.fullmatch(r"Answer\(count [\d,]+ ± \d+\)", repr(table.count().release(epsilon=1)))


def test_five_hundred_groups_are_cut_short_and_counted(table: Any) -> None:
    many = table.group_by("ward", keys=[f"w{i}" for i in range(500)]).count().release(epsilon=1)
    assert len(str(many).splitlines()) < 60
    assert "460 more" in str(many)
    assert "460 more" in many._repr_html_()


def test_a_question_shows_bars_by_price_and_spends_nothing(table: Any) -> None:
    before = table.account.spent
    text = str(table.count())
    assert re.search(r"^ +0\.1 +\d+$", text, re.MULTILINE)
    assert "± count" in text
    assert table.account.spent == before


def test_accounts_and_ledgers_have_gauges_and_say_how_much_more(table: Any, book: Any) -> None:
    table.count().release(epsilon=1)
    for shown in (table.account, book):
        assert re.search(r"\[#*\.+\]", str(shown))
        assert "more like the last one" in str(shown)
        assert "more like the last one" in shown._repr_html_()


def test_a_closed_ledger_still_shows_itself() -> None:
    book = mosha.Ledger.memory()
    account = book.account("a", unit=PERSON, epsilon=1)
    book.close()
    assert "epsilon 1" in str(account)
    assert account._repr_html_()
    assert book._repr_html_()


def test_cards_speak_chinese(table: Any, answer: Any) -> None:
    mosha.set_language("zh")
    try:
        assert "受保护的表" in str(table)
        assert "95% 的发布中" in answer._repr_html_()
    finally:
        mosha.set_language(None)


def test_explanations_and_forecasts_are_lines_in_a_notebook() -> None:
    asked = mosha.protect({"who": [1, 2], "x": [3.0, 4.0]}, unit=mosha.Person("who", at_most=2)).count()
    assert asked.explain(epsilon=1)._repr_html_().count("<div") > 3  # type: ignore[attr-defined]
    assert "± 6" in asked.forecast(epsilon=1)._repr_html_()  # type: ignore[attr-defined]


def test_a_report_that_lacks_something_says_so_in_its_card() -> None:
    table = mosha.protect({"who": [1, 2], "ward": ["a", "b"]}, unit=mosha.Person("who", at_most=2))
    report = mosha.Report("Visits", epsilon=1, period="year").add("wards", table.group_by("ward").count(), within=9)
    assert "delta" in report._repr_html_()


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Person("who"), mosha.Person("who", at_most=3)], ids=str)
def test_an_explanation_is_five_sentences_in_either_language(unit: Any) -> None:
    """Who is bounded how, which noise, which bars, what price and what is left: a bound to be bought left out three."""
    table = mosha.protect({"who": [1, 2, 2], "ward": ["a", "b", "b"], "days": [1, 2, 3]}, unit=unit)
    mean, median = tables.mean("days", between=(0, 9)), tables.median("days", between=(0, 9))
    range_bought = tables.sum("days", between="automatic")
    for asked in (table.count(), table.aggregate(count=tables.count(), mean=mean), table.aggregate(x=range_bought)):
        for language in ("en", "zh"):
            with keep_language():
                set_language(language)
                lines = asked.explain(epsilon=1).splitlines()
            assert len(lines) == 5, lines
            assert all(line.endswith("." if language == "en" else "。") for line in lines), lines
    both = table.group_by("ward").agg(count=tables.count(), mean=mean, median=median)
    assert len(both.explain(epsilon=1, delta=1e-6).splitlines()) == 5


def test_a_public_table_shows_its_columns_and_no_internals() -> None:
    """It printed the SQL that reads its file."""
    wards = mosha.tables.public_table({"ward": ["a", "b"], "floor": [1, 2]})
    assert repr(wards) == "Scan(ward text, floor integer)"
    assert str(wards).splitlines()[0] == "table"
    assert "floor" in wards._repr_html_()
    assert "SELECT" not in repr(wards.where(mosha.col("floor") > 1)) + str(wards)


def test_what_can_be_asked_and_what_was_paid_for_have_cards() -> None:
    """A measurement and a run were shown as an address in memory, without HTML."""
    unit = mosha.Person("who", at_most=3)
    asked = laplace(Histogram(keys=["a", "b"], column="ward"), unit=unit, epsilon=0.5)
    for word in ("one person", "DiscreteLaplace", "± 18", "account.open"):
        assert word in str(asked), word
        assert word in asked._repr_html_(), word
    run = mosha.Ledger.memory().account("visits", unit=unit, epsilon=1).open(asked)
    assert repr(run) == "Run(laplace(Histogram), 1 of 1 steps left)"
    run.step({"who": [1], "ward": ["a"]})
    assert "0 of 1 left" in str(run)
    assert "paid epsilon 0.5" in run._repr_html_()
    with pytest.raises(AttributeError, match="did you mean step"):
        run.stepp  # type: ignore[attr-defined]  # noqa: B018
