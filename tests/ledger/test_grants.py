"""A grant may be used until its day is over, and no clock brings it back."""

import itertools
import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.cli import main
from mosha.ledger.storage.chain import follow
from tests.ledger.place import PERSON, asking

DAY = 24 * 3600 * 1_000_000
TODAY = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()) * 1_000_000


class Clock:
    """A clock that somebody can set."""

    def __init__(self, now: Any = TODAY) -> None:
        self.now = now

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Any:
    return Clock()


@pytest.fixture
def ledger(place: Any, clock: Any) -> Any:
    return place.open(clock=clock)


@pytest.fixture
def visits(ledger: Any) -> Any:
    return ledger.account("visits", unit=PERSON, epsilon=3)


@pytest.fixture
def zhang(visits: Any) -> Any:
    return visits.grant("zhang", epsilon=2, expires="2026-11-20", purpose="yearly report")


def test_a_grant_pays_until_the_end_of_its_last_day(ledger: Any, visits: Any, zhang: Any, clock: Any) -> None:
    assert (zhang.expires, zhang.purpose) == (datetime(2026, 11, 21, tzinfo=UTC), "yearly report")
    end = zhang.terms.expires
    for moment in (TODAY, end - 1):
        clock.now = moment
        zhang.open(asking(events.Laplace(4)))
        assert not zhang.expired
    clock.now = end
    assert zhang.expired
    with pytest.raises(errors.AccountExpired, match=r"2026-11-21.*Nothing was spent") as refusal:
        zhang.open(asking(events.Laplace(4)))
    assert (refusal.value.account, refusal.value.ended) == ("visits/zhang", "2026-11-21T00:00:00+00:00")
    assert [zhang.spent, visits.spent] == [0.5, 0.5]
    visits.open(asking(events.Laplace(2)))  # what was not spent has always been the parent's
    assert ledger.verify().ok


def test_a_clock_that_is_set_back_does_not_revive_a_grant(ledger: Any, visits: Any, zhang: Any, clock: Any) -> None:
    clock.now = zhang.terms.expires
    with pytest.raises(errors.AccountExpired):
        zhang.open(asking())
    noted = ledger.notes(topic="mosha/expired")
    assert [(note.about, note.content["expires"]) for note in noted] == [("visits/zhang", "2026-11-21T00:00:00+00:00")]
    clock.now = TODAY
    for _ in range(2):
        with pytest.raises(errors.AccountExpired):
            zhang.open(asking())
        assert zhang.expired
    assert len(ledger.notes(topic="mosha/expired")) == 1
    assert ledger.verify().ok


def test_any_row_after_the_end_is_enough(visits: Any, zhang: Any, clock: Any) -> None:
    clock.now = zhang.terms.expires + 5
    visits.open(asking())
    clock.now = TODAY
    with pytest.raises(errors.AccountExpired):
        zhang.open(asking())


def test_a_check_and_its_row_have_one_date(place: Any, visits: Any, zhang: Any) -> None:
    """A clock that ticks between the check and the row would date a payment after the end."""
    end = zhang.terms.expires
    ticking = place.open(clock=itertools.count(end - 1).__next__)
    ticking.account("visits/zhang").open(asking(events.Laplace(4)))
    assert ticking.entries()[-1].at < end
    assert ticking.verify().ok


def test_what_was_paid_or_kept_before_the_end_is_still_there(zhang: Any, clock: Any) -> None:
    run = zhang.open(asking(answer=3), key="a")
    waiting = zhang.open(asking(answer=4))
    assert run.step(None).value == 3
    clock.now = zhang.terms.expires
    assert waiting.step(None).value == 4
    assert zhang.open(asking(answer=5), key="a").step(None).value == 3
    with pytest.raises(errors.AccountExpired):
        zhang.open(asking(), key="b")


def test_a_lease_ends_with_its_grant(zhang: Any, clock: Any) -> None:
    lease = zhang.lease(events.Laplace(10) * 10)
    lease.open(asking(events.Laplace(10))).step(None)
    clock.now = zhang.terms.expires
    with pytest.raises(errors.AccountExpired):
        lease.open(asking(events.Laplace(10)))
    clock.now = TODAY
    with pytest.raises(errors.AccountExpired):
        lease.open(asking(events.Laplace(10)))
    lease.close()
    assert zhang.spent == pytest.approx(0.1)
    clock.now = zhang.terms.expires
    with pytest.raises(errors.AccountExpired):
        zhang.lease(events.Laplace(10))


def test_whatever_lies_beneath_a_grant_ends_with_it(ledger: Any, visits: Any, zhang: Any, clock: Any) -> None:
    agent = zhang.child("agent", epsilon=1)
    later = zhang.grant("student", epsilon=1, expires="2027-01-01")
    clock.now = zhang.terms.expires
    for account in (agent, later, ledger.together([visits, agent])):
        with pytest.raises(errors.AccountExpired, match="visits/zhang"):
            account.open(asking())
    assert visits.spent == 0


def test_a_grant_is_revoked_by_its_owner(ledger: Any, visits: Any, zhang: Any) -> None:
    zhang.open(asking(events.Laplace(4)))
    visits.revoke("zhang", reason="the project has ended")
    with pytest.raises(errors.AccountRetired):
        zhang.open(asking())
    assert (zhang.retired, visits.retired, visits.spent) == (True, False, 0.25)
    assert ledger.entries()[-1].content() == {"account": "visits/zhang", "reason": "the project has ended"}
    with pytest.raises(errors.UnknownAccount):
        visits.revoke("li")
    with pytest.raises(errors.InvalidParameter):
        visits.retire(reason="x" * 301)
    assert ledger.verify().ok


def test_a_grant_is_reopened_under_its_terms_alone(ledger: Any, visits: Any, zhang: Any, clock: Any) -> None:
    again = visits.grant("zhang", epsilon=2, expires=date(2026, 11, 20), purpose="yearly report")
    assert again.terms == zhang.terms
    with pytest.raises(errors.AccountMismatch, match="expires"):
        visits.grant("zhang", epsilon=2, expires="2026-12-31")
    with pytest.raises(errors.AccountMismatch, match="purpose"):
        visits.grant("zhang", epsilon=2, expires="2026-11-20", purpose="another")
    clock.now = zhang.terms.expires + DAY
    assert visits.grant("zhang", expires="2026-11-20").spent == 0  # to read it


@pytest.mark.parametrize(
    "expires",
    [
        "2026-11-16",
        "2026-11-17T11:00:00+00:00",
        "tomorrow",
        "2026-11-20T10:00:00",
        20261120,
        "9999-12-31",
        "2026-02-30",
    ],
)
def test_an_end_lies_ahead_and_is_a_date_or_a_time_with_its_zone(ledger: Any, visits: Any, expires: Any) -> None:
    head = ledger.head
    with pytest.raises(errors.InvalidParameter):
        visits.grant("li", epsilon=1, expires=expires)
    assert ledger.head == head


def test_times_are_taken_in_their_zone(visits: Any) -> None:
    shanghai = timezone(timedelta(hours=8))
    one = visits.grant("a", epsilon=1, expires=datetime(2026, 12, 1, 8, tzinfo=shanghai))
    two = visits.grant("b", epsilon=1, expires="2026-11-30")
    assert one.expires == two.expires


@pytest.mark.parametrize("forged", ["payment", "account"])
def test_a_row_after_the_end_is_found(place: Any, ledger: Any, visits: Any, zhang: Any, forged: str) -> None:
    zhang.open(asking(events.Laplace(4)))
    end = zhang.terms.expires
    if forged == "payment":
        content = ledger.entries()[-1].content()
        for paid in content["charges"]:
            paid["spent"][0] = str(2 * int(paid["spent"][0]))
        kind = "pay"
    else:
        content, kind = zhang.terms.to_dict() | {"name": "visits/li"}, "open"
    entry = follow(ledger.head, end, kind, content)
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{entry.body}', '{entry.hash}')")
    problems = place.open().verify().problems
    assert any(f"row {entry.sequence}" in problem and "end" in problem for problem in problems)


def test_statements_and_lists_show_the_end(ledger: Any, visits: Any, zhang: Any) -> None:
    text = ledger.statement(visits).markdown()
    assert "until 2026-11-21T00:00:00+00:00" in text
    assert "yearly report" in text
    found = ledger.statement(visits).to_dict()["accounts"][0]
    assert (found["expires"], found["purpose"]) == ("2026-11-21T00:00:00+00:00", "yearly report")
    assert "2026-11-21T00:00:00+00:00" in ledger.statement(zhang).markdown()


def test_grants_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = str(tmp_path / "privacy.db")
    assert main(["ledger", "open", book, "visits", "--unit", "person:pid", "--epsilon", "3"]) == 0
    grant = ("ledger", "grant", book, "visits", "zhang", "--epsilon", "1", "--expires", "2999-12-31")
    assert main([*grant, "--purpose", "report"]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", book]) == 0
    assert "until 3000-01-01" in capsys.readouterr().out
    assert main(["ledger", "show", book, "visits/zhang", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["expires"], found["purpose"], found["expired"]) == ("3000-01-01T00:00:00+00:00", "report", False)
    assert main(["ledger", "revoke", book, "visits/zhang", "--reason", "left", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["retired"] is True
    assert main(["ledger", "revoke", book, "visits"]) == 1
    assert main(["ledger", "grant", book, "visits", "li", "--epsilon", "1", "--expires", "yesterday"]) == 1
    with mosha.Ledger(book) as ledger, pytest.raises(errors.AccountRetired):
        ledger.account("visits/zhang").open(asking(unit=mosha.Person("pid")))


def test_a_grant_without_an_end_is_refused_by_name() -> None:
    account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="when it ends") as problem:
        account.grant("anna", epsilon=0.5)
    assert (problem.value.code, problem.value.parameter) == ("ledger.grant_without_end", "expires")
