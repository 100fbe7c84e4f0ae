"""Breaks of the promise that a hostile reader once showed, each closed."""

import shutil

import pytest

import mosha
from mosha import Event, streams
from mosha.core.errors import InvalidParameter
from mosha.core.unit import Window
from mosha.streams.clock import Clock


def test_a_window_keeps_no_memory_of_rows_inside_it():
    with pytest.raises(InvalidParameter, match="apart"):
        streams.counter(unit=Window("id", 5), horizon=1000, epsilon=1, apart=10)


def test_copies_of_a_state_on_two_accounts_have_noise_of_their_own(tmp_path):
    stream = streams.counter(unit=Event(), horizon=16, rho=0.001)
    ledger = mosha.Ledger(tmp_path / "book.db")
    first, second = (ledger.account(name, unit=Event(), rho=1) for name in ("one", "two"))
    with streams.serve(first, stream, name="s", state=tmp_path / "a.state"):
        pass
    for end in ("", ".key"):
        shutil.copy(tmp_path / f"a.state{end}", tmp_path / f"b.state{end}")
    answers = []
    for account, place in ((first, "a.state"), (second, "b.state")):
        with streams.serve(account, stream, name="s", state=tmp_path / place) as service:
            answers.append([service.step([1]).value for _ in range(16)])
    assert answers[0] != answers[1]


def test_a_row_without_a_time_takes_nobody_with_it():
    clock = Clock(start=0, every=60, column="t")
    clock.declare(["t", "id", "kW"])
    clock.add([{"t": 1, "id": "a"}, {"id": "lost"}, *({"t": 2, "id": i, "kW": 3.0} for i in range(50))])
    batch = clock.close_next()
    assert batch["id"] == ["a", *range(50)]
    assert batch["kW"] == [None] + [3.0] * 50
    assert clock.close_next() == {"t": [], "id": [], "kW": []}


def test_the_length_of_a_state_does_not_count_persons(tmp_path):
    unit = mosha.Person("who", at_most=2)
    sizes = set()
    for persons in (1, 5, 20):
        account = mosha.Ledger(tmp_path / f"{persons}.db").account("a", unit=unit, rho=1)
        stream = streams.counter(unit=unit, horizon=8, rho=0.5)
        with streams.serve(account, stream, name="s", state=tmp_path / f"{persons}.state") as service:
            service.step({"who": [f"p{i}" for i in range(persons)]})
        sizes.add((tmp_path / f"{persons}.state").stat().st_size)
    assert len(sizes) == 1
