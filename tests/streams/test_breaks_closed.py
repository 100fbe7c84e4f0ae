"""Breaks of the promise that a hostile reader once showed, each closed."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mosha
from mosha import Reading, streams
from mosha.cli import main
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.unit import Window
from mosha.streams.service.clock import Clock


def test_a_window_keeps_no_memory_of_rows_inside_it() -> None:
    with pytest.raises(InvalidParameter, match="apart"):
        streams.counter(unit=Window("id", 5), horizon=1000, epsilon=1, apart=10)


def test_copies_of_a_state_on_two_accounts_have_noise_of_their_own(tmp_path: Path) -> None:
    stream = streams.counter(unit=Reading(), horizon=16, rho=0.001)
    ledger = mosha.Ledger(tmp_path / "book.db")
    first, second = (ledger.account(name, unit=Reading(), rho=1) for name in ("one", "two"))
    with streams.serve(first, stream, name="s", state=tmp_path / "a.state"):
        pass
    for end in ("", ".key"):
        shutil.copy(tmp_path / f"a.state{end}", tmp_path / f"b.state{end}")
    answers = []
    for account, place in ((first, "a.state"), (second, "b.state")):
        with streams.serve(account, stream, name="s", state=tmp_path / place) as service:
            answers.append([service.step([1]).value for _ in range(16)])
    assert answers[0] != answers[1]


def test_a_row_without_a_time_takes_nobody_with_it() -> None:
    clock = Clock(start=0, every=60, column="t")
    clock.declare(["t", "id", "kW"])
    clock.add([{"t": 1, "id": "a"}, {"id": "lost"}, *({"t": 2, "id": i, "kW": 3.0} for i in range(50))])
    batch = clock.close_next()
    assert batch["id"] == ["a", *range(50)]
    assert batch["kW"] == [None] + [3.0] * 50
    assert clock.close_next() == {"t": [], "id": [], "kW": []}


@pytest.mark.parametrize(
    "rows",
    [
        *(None, 5, "text", [None], [(1, "a")], [{"t": 1}, 7]),
        *({"id": ["a"]}, {"t": 1}, {"t": [1, 2], "id": ["a"]}),
        *(pd.DataFrame({"id": ["a"]}), pl.DataFrame({"id": ["a"]})),
    ],
)
def test_what_are_no_rows_with_a_time_is_refused_and_none_is_taken(rows: Any) -> None:
    clock = Clock(start=0, every=60, column="t")
    with pytest.raises(DataError):
        clock.add(rows)
    assert clock.close_next() == {"t": []}


@pytest.mark.parametrize("now", ["foo", None, float("nan"), float("inf"), [], "1e300"])
def test_steps_are_closed_by_a_time(now: Any) -> None:
    clock = Clock(start=0, every=60, column="t")
    with pytest.raises(InvalidParameter):
        clock.close_until(now)
    assert clock.closed == 0


def test_the_length_of_a_state_does_not_count_persons(tmp_path: Path) -> None:
    unit = mosha.Person("who", at_most=2)
    sizes = set()
    for persons in (1, 5, 20):
        account = mosha.Ledger(tmp_path / f"{persons}.db").account("a", unit=unit, rho=1)
        stream = streams.counter(unit=unit, horizon=8, rho=0.5)
        with streams.serve(account, stream, name="s", state=tmp_path / f"{persons}.state") as service:
            service.step({"who": [f"p{i}" for i in range(persons)]})
        sizes.add((tmp_path / f"{persons}.state").stat().st_size)
    assert len(sizes) == 1


@pytest.mark.parametrize("batch", [12, -5, None, float("nan"), "abc", np.array(12)], ids=repr)
def test_a_number_is_no_batch_of_rows(batch: Any, tmp_path: Path) -> None:
    account = mosha.Ledger(tmp_path / "book.db").account("a", unit=Reading(), epsilon=500)
    with account.open(streams.counter(unit=Reading(), horizon=2, epsilon=500)) as run, pytest.raises(DataError):
        run.step(batch)


@pytest.mark.parametrize(
    "make", [pd.Series, lambda x: pa.table({"a": x, "b": x}), lambda x: pd.DataFrame({"a": x}), pl.Series, np.array]
)
def test_seven_rows_are_seven_in_every_form(make: Any, tmp_path: Path) -> None:
    """The noise is 1 or more with a probability below e^-100."""
    account = mosha.Ledger(tmp_path / "book.db").account("a", unit=Reading(), epsilon=500)
    with account.open(streams.counter(unit=Reading(), horizon=1, epsilon=500)) as run:
        assert run.step(make([1] * 7)).value == 7


@pytest.mark.parametrize(
    "words", [["absent.csv"], ["."], ["rows.csv", "--time", "else"], ["rows.csv", "--person", "x"]]
)
def test_a_file_that_cannot_be_read_costs_nothing(
    words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("t,id\n1,a\n", encoding="utf-8")
    given = ["stream", "count", *words, "--every", "1h", "--start", "1970-01-01", "--horizon", "4", "--epsilon", "1"]
    assert main(given if "--time" in words else [*given, "--time", "t"]) == 1
    assert "Nothing was spent" in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv"}
