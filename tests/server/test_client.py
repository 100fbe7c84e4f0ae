"""The client has the verbs of the library, gives the same answers and raises the same errors."""

import subprocess
import sys
from datetime import date
from typing import Any

import pytest

import mosha
from mosha.client import RequestDenied, ServerRefusal, ServerUnreachable
from mosha.client.errors import revive
from mosha.core.language import say
from mosha.errors import BudgetExceeded, DataError, InvalidParameter, Refused


@pytest.fixture(scope="module")
def lab(house: Any) -> Any:
    return mosha.connect_to(str(house.client.base_url), token=house.tokens["li"])


def test_a_select_is_answered_as_the_library_answers_it(lab: Any) -> None:
    answer = lab.query("SELECT ward, AVG(days) AS days FROM visits GROUP BY ward", epsilon=0.02)
    assert isinstance(answer, mosha.tables.Answer)
    assert answer.table["ward"] == ["cardiology", "surgery", "pediatrics", "neurology"]
    pairs = zip(answer.error(0.95)["days"], answer.error(0.5)["days"], strict=True)
    assert all(wide >= narrow > 0 for wide, narrow in pairs)  # both are the whole range where noise left it
    assert answer.receipt.account == "visits/li"
    assert answer.receipt.cost == pytest.approx(0.02)


def test_verbs_build_the_question_here_and_ask_it_there(lab: Any) -> None:
    visits = lab.table("visits")
    question = visits.where(mosha.col("days") > 3).group_by("ward").mean("days")
    assert question.forecast(epsilon=0.1, rows=1000)["mean"][0] > 0
    answer = question.release(epsilon=0.02, key="verbs")
    assert list(answer.table) == ["ward", "mean"]
    again = question.release(epsilon=0.02, key="verbs")
    assert again.table == answer.table


def test_every_verb_of_a_table_can_be_asked(lab: Any) -> None:
    visits = lab.table("visits")
    asked = [
        visits.count(),
        visits.persons(),
        visits.sum("days"),
        visits.variance("days"),
        visits.quantile("age", 0.5),
        visits.histogram({"age": [0, 18, 65, 120]}),
        visits.top("ward", k=2, candidates=["cardiology", "surgery", "pediatrics"]),
        visits.compute(old=mosha.col("age") > 60).group_by("old", keys=[True, False]).count(),
    ]
    for question in asked:
        assert question.preview(epsilon=0.01)["fits"] in (True, False)
    answer = asked[5].release(epsilon=0.01)
    assert len(answer) == 3


def test_dates_come_back_as_dates(lab: Any) -> None:
    keys = [date(2026, 1, 1), date(2026, 1, 2)]
    answer = lab.table("visits").group_by("day", keys=keys).count().release(epsilon=0.01)
    assert answer.table["day"] == keys


def test_refusals_are_the_errors_of_the_library(lab: Any, house: Any) -> None:
    with pytest.raises(Refused) as refused:
        lab.query("SELECT * FROM visits", epsilon=0.1)
    assert refused.value.code
    with pytest.raises(BudgetExceeded):
        lab.query("SELECT COUNT(*) AS n FROM visits", epsilon=50)
    with pytest.raises(DataError, match="no column"):
        lab.query("SELECT COUNT(*) AS n FROM visits WHERE nothing = 1", epsilon=0.1)
    stranger = mosha.connect_to(str(house.client.base_url), token="mosha_aaaaaaaaaaaaaaaa_" + "b" * 43)
    with pytest.raises(ServerRefusal) as refusal:
        stranger.datasets()
    assert (refusal.value.status, refusal.value.code) == (401, "server.wrong_credentials")


def test_an_error_says_each_thing_once_and_what_was_spent(house: Any) -> None:
    """Whichever language the server spoke: the sentence, what became of the money, what can be asked instead."""
    for language in ("en", "zh"):
        refused = house.call(
            "li",
            "POST",
            "/previews",
            {"dataset": "visits", "sql": "SELECT * FROM visits", "price": {"epsilon": 0.1}},
            headers={"Accept-Language": language},
        )
        error = revive(refused.status_code, refused.content)
        assert error.nearest == "SELECT COUNT(*) FROM visits"
        assert str(error).count(error.nearest) == 1
        asked = house.ask("li", key="much too dear", epsilon=5.0)
        error = revive(asked.status_code, asked.content)
        assert error.spent == "nothing"
        assert str(error).count(say("core.closing_nothing")) == 1


def test_a_receipt_tells_no_numbers_of_accounts_that_others_share(lab: Any) -> None:
    receipt = lab.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.01, key="receipt").receipt
    assert {share.account for share in receipt.payers} == {"patients", "visits", "visits/li"}
    assert "nan" not in str(receipt)
    assert "nan" not in receipt._repr_html_()
    assert "from account 'visits';" in str(receipt)


def test_a_denied_question_says_why(house: Any) -> None:
    lab = mosha.connect_to(str(house.client.base_url), token=house.tokens["zhang"], patience=20)
    asked = house.ask("zhang", key="deny me", epsilon=0.51)
    if asked.status_code == 202:
        said = {"verdict": "deny", "reason": "ask for less"}
        assert house.call("zhao", "POST", f"/requests/{asked.json()['id']}/decision", said).status_code == 200
        with pytest.raises(RequestDenied, match="ask for less"):
            lab.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.51, key="deny me")


def test_a_token_goes_to_https_or_to_this_machine_alone() -> None:
    with pytest.raises(InvalidParameter, match="HTTPS"):
        mosha.connect_to("http://privacy.example.org", token="mosha_x")
    with pytest.raises(ServerUnreachable):
        mosha.connect_to("http://127.0.0.1:9", token="mosha_x").datasets()


def test_asking_in_sql_loads_the_standard_library_alone() -> None:
    program = (
        "import sys, mosha; mosha.connect_to('http://127.0.0.1:9', token='x');"
        "heavy = {'numpy', 'duckdb', 'sqlglot', 'starlette', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_fresh_process_reads_every_part_of_an_answer(house: Any) -> None:
    """Nothing else of the library is loaded there: the kinds of events are, or a receipt could not be read."""
    program = (
        "import sys, mosha; lab = mosha.connect_to(sys.argv[1], token=sys.argv[2]);"
        "answer = lab.query('SELECT COUNT(*) AS n FROM visits', epsilon=0.01, key='fresh');"
        "print(answer.receipt.event, answer.receipt.cost)"
    )
    command = [sys.executable, "-c", program, str(house.client.base_url), house.tokens["li"]]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert said.returncode == 0, said.stderr[-2000:]
    assert "0.01" in said.stdout
