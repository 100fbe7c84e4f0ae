"""`mosha stream`: a file or a pipe becomes JSON lines, one for each step, and goes on where it stopped."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mosha.cli.application import run


@pytest.fixture
def readings(tmp_path: Path) -> Any:
    rows = "".join(f"2026-01-01T00:{m:02d}:30,{m % 7},{m}\n" for m in range(60))
    file = tmp_path / "readings.csv"
    file.write_text("t,id,kw\n" + rows)
    return file


RUN = "import sys; from mosha.cli.application import run; sys.exit(run())"
COMMON = ("--time", "t", "--every", "15min", "--start", "2026-01-01")


def lines(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_file_is_published_for_the_whole_horizon(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["stream", "count", str(readings), *COMMON, "--person", "id", "--epsilon", "1e3", "--horizon", "6"])
    told = lines(capsys)
    assert code == 0
    assert [line["step"] for line in told] == [1, 2, 3, 4, 5, 6]
    assert [line["value"] for line in told] == [7, 14, 21, 28, 28, 28]
    assert [line["error"] for line in told] == [0] * 6  # the exact law of whole numbers: hardly any is not 0


def test_a_file_is_published_with_error_bars(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["stream", "count", str(readings), *COMMON, "--person", "id", "--epsilon", "1", "--horizon", "6"])
    told = lines(capsys)
    assert code == 0
    assert len(told) == 6
    assert all(line["error"] > 0 for line in told)


def test_a_stream_goes_on_where_it_stopped(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask = [
        "stream",
        "sum",
        str(readings),
        *COMMON,
        "--column",
        "kw",
        "--between",
        "0",
        "60",
        "--rho",
        "1",
        "--horizon",
        "4",
    ]
    assert run([*ask, "--until", "2026-01-01T00:30"]) == 0
    assert [line["step"] for line in lines(capsys)] == [1, 2]
    assert run(ask) == 0
    assert [line["step"] for line in lines(capsys)] == [3, 4]


def test_another_start_for_the_same_stream_is_refused(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["stream", "count", str(readings), "--time", "t", "--every", "15min", "--epsilon", "1", "--horizon", "4"]
    assert run([*ask, "--start", "2026-01-01", "--until", "2026-01-01T00:15"]) == 0
    assert run([*ask, "--start", "2026-01-02"]) == 1
    assert "--start" in capsys.readouterr().err


def test_lines_that_were_published_and_not_shown_are_shown_later(
    readings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["stream", "count", str(readings), *COMMON, "--epsilon", "1", "--horizon", "4"]
    assert run(ask) == 0
    told = lines(capsys)
    kept = readings.with_name("readings.csv.count.stream.clock")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"shown": 1}))
    assert run(ask) == 0
    assert lines(capsys) == told[1:]
    kept.write_text("{")
    assert run(ask) == 1


def test_a_stream_that_is_over_says_that_nothing_was_paid_now(
    readings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["stream", "count", str(readings), *COMMON, "--epsilon", "1", "--horizon", "4"]
    assert run([*ask, "--until", "2026-01-01T00:15"]) == 0
    assert "paid epsilon" in capsys.readouterr().err
    assert run(ask) == 0
    assert "after step 1; it was paid when it began, nothing was paid now" in capsys.readouterr().err
    assert run(ask) == 0
    told = capsys.readouterr()
    assert "all 4 steps of this stream were published before; nothing was paid now" in told.err
    assert told.out == ""


def test_a_wrong_range_is_told_as_an_option(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["--column", "kw", "--between", "3", "1", "--epsilon", "1", "--horizon", "4"]
    assert run(["stream", "sum", str(readings), *COMMON, *ask]) == 1
    err = capsys.readouterr().err
    assert not re.search(r"(?<!--)\bbetween\b", err)


def test_a_growing_file_is_followed_from_now_on(tmp_path: Path) -> None:
    """The command as it stands in the documentation, with shorter steps: no start is said."""
    (tmp_path / "readings.csv").write_text("t,id\n2001-01-01,7\n")
    command = [sys.executable, "-c", RUN, "stream", "count", "readings.csv", "--time", "t", "--person", "id"]
    command += ["--every", "1s", "--epsilon", "1", "--horizon", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=100)
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [1, 2]


def test_alarms_are_told(readings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["--threshold", "10", "--alarms", "4", "--epsilon", "1e4", "--until", "2026-01-01T01:15"]
    assert run(["stream", "alarm", str(readings), *COMMON, *ask]) == 0  # all alarms were given
    assert [line["alarm"] for line in lines(capsys)] == [True] * 4


def test_a_pipe_is_followed_by_the_clock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, "stream", "count", "-", "--time", "t", "--every", "1s", "--start", "now"]
    command += ["--epsilon", "1", "--horizon", "2", "--follow", "--plot"]
    done = subprocess.run(command, input="t\n", capture_output=True, text=True, check=True, cwd=tmp_path, timeout=100)
    assert 0 <= len(done.stdout.splitlines()) <= 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((*COMMON[:-1], "soon", "--epsilon", "1", "--horizon", "4"), "--start"),
        ((*COMMON, "--horizon", "4"), "--epsilon"),
        ((*COMMON, "--epsilon", "1", "--rho", "1", "--horizon", "4"), "--rho"),
        ((*COMMON, "--rho", "1", "--delta", "0.1", "--horizon", "4"), "--delta"),
        ((*COMMON, "--epsilon", "1", "--delta", "2", "--horizon", "4"), "--delta"),
        ((*COMMON, "--epsilon", "1", "--horizon", "0"), "--horizon"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--apart", "3"), "--apart"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--person", "id", "--apart", "0"), "--apart"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--person", "id", "--at-most", "0"), "--at-most"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--until", "then"), "--until"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--release", "often"), "--release"),
        ((*COMMON, "--epsilon", "1"), "--until"),
        ((*COMMON, "--epsilon", "0", "--horizon", "4"), "--epsilon"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--at-most", "3"), "--person"),
        (("--time", "when", "--every", "15min", "--start", "0", "--epsilon", "1", "--horizon", "4"), "when"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--release", "sliding:x"), "--release"),
        (
            (*COMMON, "--epsilon", "1", "--horizon", "4", "--confidence", "95"),
            "--confidence must lie strictly between 0",
        ),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--confidence", "nan"), "--confidence"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--until", "2025-12-31"), "--until"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--until", "2026-01-01"), "--until"),
        ((*COMMON, "--epsilon", "1", "--horizon", "4", "--state", "/no/such/folder/state"), "/no/such/folder"),
    ],
)
def test_what_makes_no_sense_is_one_line_on_standard_error(
    readings: Any, capsys: pytest.CaptureFixture[str], wrong: Any, said: str
) -> None:
    assert run(["stream", "count", str(readings), *wrong]) != 0
    err = capsys.readouterr().err
    assert said in err
    assert not re.search(r"\w=|at_most|unit=", err)  # options, not arguments
    assert "--between" not in err  # a word here, no option
    assert {path.name for path in readings.parent.iterdir()} == {"readings.csv"}
    assert len(err.strip().splitlines()) <= 2
