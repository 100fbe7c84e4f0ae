"""From a preview to an answer, through the API."""

from typing import Any

from tests.server.house import BY_WARD, COUNT

PRICE = {"epsilon": 0.01}


def test_a_preview_shows_price_bars_what_is_left_and_alternatives_and_spends_nothing(house: Any) -> None:
    before = house.service.ledger.account("visits").spent_price
    body = {"dataset": "visits", "sql": BY_WARD, "price": {"epsilon": 0.1}, "rows": 1000}
    found = house.call("li", "POST", "/previews", body).json()
    assert [payer["account"] for payer in found["payers"]] == ["patients", "visits", "visits/li"]
    assert [payer["own"] for payer in found["payers"]] == [False, False, True]
    assert "left" not in found["payers"][0]
    assert found["fits"]
    assert found["more"] >= 1
    assert len(found["forecast"]["bars"]["days"]) == 4
    cheaper, dearer = (other["widest"]["days"] for other in found["alternatives"])
    assert cheaper > found["forecast"]["bars"]["days"][0] > dearer
    assert house.service.ledger.account("visits").spent_price == before


def test_a_question_is_answered_with_bars_and_a_receipt_of_ones_own_numbers(house: Any) -> None:
    found = house.answer("li", BY_WARD, key="first", epsilon=0.05)
    assert found["state"] == "answered"
    answer = found["answer"]
    assert [column["name"] for column in answer["columns"]] == ["ward", "days"]
    assert len(answer["rows"]) == 4
    assert answer["errors"]["0.95"]["days"][0] > 0
    own = [share for share in answer["receipt"]["payers"] if "left" in share]
    assert [share["account"] for share in own] == ["visits/li"]
    assert answer["receipt"]["account"] == "visits/li"


def test_the_same_key_finds_the_same_request_and_pays_once(house: Any) -> None:
    first = house.answer("li", COUNT, key="again", epsilon=0.01)
    spent = house.service.ledger.account("visits/li").spent_price
    second = house.ask("li", COUNT, key="again", epsilon=0.01)
    assert second.status_code == 202
    assert second.json()["answer"] == first["answer"]
    assert house.service.ledger.account("visits/li").spent_price == spent


def test_the_same_key_with_another_body_is_refused(house: Any) -> None:
    house.answer("li", COUNT, key="mine", epsilon=0.01)
    found = house.ask("li", COUNT, key="mine", epsilon=0.02)
    assert (found.status_code, found.json()["code"]) == (422, "server.key_reused")


def test_a_request_without_a_key_is_refused(house: Any) -> None:
    found = house.call("li", "POST", "/requests", {"dataset": "visits", "sql": COUNT, "price": PRICE})
    assert (found.status_code, found.json()["code"]) == (422, "server.idempotency_key")


def test_a_query_that_would_show_rows_is_refused_with_the_nearest_that_is_answered(house: Any) -> None:
    body = {"dataset": "visits", "sql": "SELECT * FROM visits", "price": PRICE}
    found = house.call("li", "POST", "/previews", body)
    assert found.status_code == 422
    assert found.json()["title"] == "Refused"


def test_a_number_about_all_people_inside_a_query_is_refused_with_what_to_do_and_costs_nothing(house: Any) -> None:
    before = house.service.ledger.account("visits").spent_price
    sql = "SELECT COUNT(*) AS n FROM visits WHERE days > (SELECT AVG(days) FROM visits)"
    found = house.call("li", "POST", "/previews", {"dataset": "visits", "sql": sql, "price": PRICE})
    assert (found.status_code, found.json()["code"]) == (422, "tables.sql_subquery_of_people")
    assert "reports and servers do not" in found.text
    assert house.ask("li", sql, key="nested", epsilon=0.01).status_code == 422
    assert house.service.ledger.account("visits").spent_price == before


def test_a_question_above_the_threshold_waits_is_approved_by_another_and_runs(house: Any) -> None:
    asked = house.ask("zhang", COUNT, key="dear", epsilon=0.6, purpose="yearly report").json()
    assert asked["state"] == "waiting"
    seen = house.call("zhao", "GET", f"/requests/{asked['id']}").json()
    assert seen["review"]["grant_limit"] == 1.0
    assert "answer" not in seen
    reply = house.call("zhao", "POST", f"/requests/{asked['id']}/decision", {"verdict": "approve", "reason": "useful"})
    assert reply.status_code == 200, reply.text
    assert house.wait("zhang", asked["id"])["state"] == "answered"
    assert any(note.content["request"] == asked["id"] for note in house.service.ledger.notes(topic="decision/question"))
    again = house.call("zhao", "POST", f"/requests/{asked['id']}/decision", {"verdict": "deny", "reason": "too late"})
    assert again.status_code == 409


def test_reviewers_and_curators_never_see_an_answer(house: Any) -> None:
    found = house.answer("li", COUNT, key="secret", epsilon=0.01)
    for who in ("zhao", "wang", "sun"):
        seen = house.call(who, "GET", f"/requests/{found['id']}").json()
        assert seen["state"] == "answered"
        assert "answer" not in seen
        assert house.call(who, "GET", f"/requests/{found['id']}/answer").status_code == 404


def test_an_answer_can_be_downloaded_as_csv_without_formulas(house: Any) -> None:
    found = house.answer("li", BY_WARD, key="csv", epsilon=0.01)
    reply = house.call("li", "GET", f"/requests/{found['id']}/answer?format=csv")
    assert reply.headers["content-type"].startswith("text/csv")
    assert reply.text.splitlines()[0] == "ward,days,days ±0.95"
    assert len(reply.text.splitlines()) == 5
    marked = house.call("li", "GET", f"/requests/{found['id']}/answer?format=csv&bom=true")
    assert marked.content == b"\xef\xbb\xbf" + reply.content  # what Excel needs to read Chinese; programs do not ask


def test_a_withdrawn_request_is_free_and_never_runs(house: Any) -> None:
    asked = house.ask("zhang", COUNT, key="never mind", epsilon=0.55)
    if asked.status_code != 202:  # the budget of this session's server was used by the tests before
        return
    identity = asked.json()["id"]
    assert house.call("zhang", "POST", f"/requests/{identity}/withdraw").json()["state"] == "withdrawn"
    reply = house.call("zhao", "POST", f"/requests/{identity}/decision", {"verdict": "approve", "reason": "yes"})
    assert reply.status_code == 409


def test_an_agent_pays_from_a_grant_beneath_its_person_with_a_limit_a_day(house: Any) -> None:
    agent = house.call("li", "POST", "/agents", {"name": "helper"}).json()
    token = house.call("li", "POST", "/tokens", {"label": "helper", "agent": "helper"}).json()["token"]
    house.tokens["helper"] = token
    grant = house.call("li", "GET", "/grants").json()["grants"][0]
    said = {"principal": agent["id"], "epsilon": 0.2, "expires": grant["expires"], "limit_per_day": {"epsilon": 0.03}}
    made = house.call("li", "POST", f"/grants/{grant['id']}/grants", said)
    assert made.status_code == 201, made.text
    found = house.answer("helper", COUNT, key="one", epsilon=0.02)
    assert found["state"] == "answered"
    assert found["accounts"][0].startswith("visits/li/helper/2")
    refused = house.ask("helper", COUNT, key="two", epsilon=0.02)
    assert (refused.status_code, refused.json()["code"]) == (409, "server.not_enough")
    assert house.call("li", "GET", f"/requests/{found['id']}").json()["answer"] is not None


def test_a_published_answer_is_public_with_the_head_of_the_chain(house: Any) -> None:
    found = house.answer("li", BY_WARD, key="publish", epsilon=0.02)
    said = {"request": found["id"], "slug": "stays-by-ward", "title": "Stays by ward"}
    assert house.call("li", "POST", "/publications", said).status_code == 201
    assert house.call(None, "GET", "/public/stays-by-ward").status_code == 404
    reply = house.call("zhao", "POST", "/publications/stays-by-ward/decision", {"verdict": "approve", "reason": "ok"})
    assert reply.status_code == 200, reply.text
    shown = house.call(None, "GET", "/public/stays-by-ward").json()
    assert len(shown["answer"]["rows"]) == 4
    assert "payers" not in shown["answer"]["receipt"]
    assert shown["head"].split(":")[0].isdigit()
    assert house.call("sun", "POST", "/ledger/verify", {"head": shown["head"]}).json()["well"] is True
    in_chinese = house.call(None, "GET", "/public/stays-by-ward", headers=CHINESE).json()["answer"]["notes"]
    assert in_chinese == house.call("li", "GET", f"/requests/{found['id']}", headers=CHINESE).json()["answer"]["notes"]
    assert in_chinese != shown["answer"]["notes"]


CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9"}


def test_the_notes_of_an_answer_are_in_the_language_of_its_reader(house: Any) -> None:
    """Whoever asked, and whichever language the worker spoke: by the header, in every form that has notes."""
    found = house.answer("li", BY_WARD, key="notes", epsilon=0.01)
    for path in (f"/requests/{found['id']}", f"/requests/{found['id']}/answer"):
        english, chinese = (
            house.call("li", "GET", path, headers=headers).json() for headers in ({"Accept-Language": "en"}, CHINESE)
        )
        english, chinese = (one.get("answer", one)["notes"] for one in (english, chinese))
        assert len(english) == len(chinese) > 0
        assert all(note.isascii() for note in english)
        assert not any(note.isascii() for note in chinese)
