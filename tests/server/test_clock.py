"""What somebody with a clock learns where all ends appear at the deadline: nothing. `benchmarks server_crowd:clock`
shows what the same attacker learns under the other rules."""

from collections.abc import Iterator
from typing import Any

import pytest

from mosha.server.work.slots import FAILED, Slots
from tests.server.clocked import add_dataset, advantage, make_rows, times_of
from tests.server.house import LONG, opened


def test_the_attacker_finds_what_is_there_and_nothing_where_nothing_is() -> None:
    """Also where answers are slower in one half of the day than in the other."""
    assert advantage([1.0, 1.1] * 50, [2.0, 2.1] * 50) == 1.0
    assert advantage([2.0] * 100, [1.0] * 100) == 1.0
    assert advantage([1.0] * 100, [1.0] * 100) == 0.0
    assert advantage([1.0, 1.0, 2.0, 2.0] * 50, [1.0] * 200) == pytest.approx(0.5)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    rates = {"requests_per_minute": 10_000, "waiting_per_principal": 1000, "running_per_principal": 100}
    with opened(tmp_path_factory.mktemp("clock"), workers=4, **rates) as house:
        add_dataset(house, "few", make_rows(10), timing="off", deadline=LONG)
        add_dataset(house, "crowd", make_rows(150_000), timing="off", deadline=LONG)
        yield house


def test_on_the_ladder_every_end_stands_on_a_rung_failures_included(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks at once appears where an answer would have: a clock sees one of a few moments, and never how long
    the work took. `python -m benchmarks server_crowd:clock` attacks 1,000 neighboring pairs."""
    place.service.database.run("UPDATE datasets SET timing = 'ladder', deadline = 60 WHERE name IN ('few', 'crowd')")
    run, broken = Slots._end_of, []

    def fail_about_few(self: Any, worker: Any, row: Any, job: Any, begun: Any) -> Any:
        if row["dataset"] == "few" and int(row["id"][-1], 16) % 2:
            broken.append(row["id"])
            return "failed", FAILED
        return run(self, worker, row, job, begun)

    monkeypatch.setattr(Slots, "_end_of", fail_about_few)
    seen = times_of(place, ["few", "crowd"], many=3, name="ladder")
    times = {time for ends in seen.values() for time, end in ends if end != "refused"}
    assert times <= {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0}
    find = "SELECT visible - started AS after FROM requests WHERE id = ?"
    assert {place.service.database.row(find, identity)["after"] for identity in broken} <= {
        rung * 1_000_000 for rung in (1, 2, 4, 8, 16, 32, 60)
    }


def test_at_the_deadline_nothing_is_seen_failures_included(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers about ten people, answers about 150,000 and failures appear to the microsecond alike."""
    times_of(place, ["few", "crowd"], many=4, name="warm")
    place.service.database.run("UPDATE datasets SET timing = 'fixed', deadline = 10 WHERE name IN ('few', 'crowd')")
    run = Slots._end_of

    def fail_sometimes(self: Any, worker: Any, row: Any, job: Any, begun: Any) -> Any:
        if "SELECT COUNT(*) AS n FROM few" in row["question"] and int(row["id"][-1], 16) % 2:
            return "failed", FAILED
        return run(self, worker, row, job, begun)

    monkeypatch.setattr(Slots, "_end_of", fail_sometimes)
    seen = times_of(place, ["few", "crowd"], many=4, name="fixed")
    paid = [time for ends in seen.values() for time, end in ends if end != "refused"]  # unpaid: no row was read
    assert len(paid) >= 4
    assert set(paid) == {10.0}
