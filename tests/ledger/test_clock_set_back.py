"""A clock that is set back: nothing that was over begins again, nothing is sold twice, what waits for a time waits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mosha import errors, events, streams
from mosha.server.catalogue import grants
from tests.ledger.place import PERSON, asking

SECOND = 1_000_000
DAY = 24 * 3600 * SECOND
TODAY = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()) * SECOND


class Clock:
    now = TODAY

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(place: Any, clock: Clock) -> Any:
    return place.open(clock=clock)


@pytest.mark.parametrize("back", [1, SECOND, DAY, 3650 * DAY], ids=["a tick", "a second", "a day", "ten years"])
def test_everything_that_pays_goes_on_and_the_dates_of_rows_stand_still(ledger: Any, clock: Clock, back: int) -> None:
    account = ledger.account("visits", unit=PERSON, epsilon=1)
    block = account.block("2025", epsilon=1)
    run = account.open(asking(events.Laplace(10), horizon=2), key="run")
    run.step([])
    lease = account.lease(events.Laplace(10) * 2)
    clock.now -= back
    run.step([])
    lease.open(asking(events.Laplace(10))).step([])
    lease.close()
    block.open(asking(events.Laplace(10))).step([])
    account.open(asking(events.Laplace(10)), key="again").step([])
    assert account.open(asking(events.Laplace(10)), key="again").step([]).value == 0  # bought before: free
    with pytest.raises(errors.BudgetExceeded):
        account.open(asking(events.Laplace(1)))
    times = [entry.at for entry in ledger.entries()]
    assert times == sorted(times)
    assert set(times) == {TODAY}
    assert ledger.verify().ok


def test_a_day_of_a_cap_a_day_that_is_over_does_not_begin_again(
    ledger: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Calendar(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Calendar":
            return cls.fromtimestamp(clock.now / SECOND, tz)

    monkeypatch.setattr(grants, "datetime", Calendar)
    grant = ledger.account("visits", unit=PERSON, epsilon=3).grant("zhang", epsilon=2, expires="2026-12-31")
    limits = {"epsilon": 0.5}
    grants._day_of(grant, limits).open(asking(events.Laplace(4)))
    clock.now += DAY
    grants._day_of(grant, limits).open(asking(events.Laplace(2)))
    clock.now -= DAY
    with pytest.raises(errors.AccountExpired):
        grants._day_of(grant, limits).open(asking(events.Laplace(4)))
    clock.now -= DAY  # a day that the book has no account of
    with pytest.raises(errors.MoshaError):
        grants._day_of(grant, limits).open(asking(events.Laplace(4)))
    assert grant.spent == 0.75
    clock.now += 3 * DAY
    grants._day_of(grant, limits).open(asking(events.Laplace(2)))
    assert grant.spent == 1.25


def test_a_stream_closes_no_step_twice() -> None:
    clock = streams.Clock(start="2026-01-01", every="15min", column="t", lateness="5min")
    clock.add([{"t": "2026-01-01 00:03:00", "id": 1}])
    later = datetime(2026, 1, 1, 0, 35, tzinfo=UTC)
    assert [len(batch["id"]) for batch in clock.close_until(later)] == [1, 0]
    clock.add([{"t": "2026-01-01 00:04:00", "id": 2}])
    for back in (timedelta(0), timedelta(minutes=20), timedelta(days=400)):
        assert clock.close_until(later - back) == []
    assert [batch.get("id", []) for batch in clock.close_until(later + timedelta(minutes=15))] == [[]]
