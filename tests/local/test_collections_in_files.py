"""`mosha local collect` with a state: nothing is lost, nothing is counted twice, and what is rejected is explained."""

import base64
import fcntl
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mosha.cli import main
from mosha.cli.local import files as local_files
from mosha.core.errors import DataError
from mosha.local import Collector, Distribution, Frequency, Mean, Several
from mosha.local.collect.deliveries import Deliveries

SURVEY = Frequency(["a", "b", "c"], epsilon=1.0)
COLLECT = ["local", "collect", "s.json"]


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(SURVEY.to_json())


def lines(count: Any, survey: Any = SURVEY, value: str = "a") -> Any:
    return "".join(base64.b64encode(survey.report(value)).decode() + "\n" for _ in range(count))


def collected(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Any:
    capsys.readouterr()
    assert main([*COLLECT, *arguments, "--state", "state", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_processes_with_one_state_lose_nothing(tmp_path: Path) -> None:
    """Each adds ten files; without the lock one would write over what the other has just stored."""
    for process in range(2):
        for number in range(10):
            (tmp_path / f"{process}-{number}.bin").write_bytes(SURVEY.reports(["a"] * 7).to_bytes())
    script = (
        "import sys\nfrom mosha.cli import main\n"
        "own = [['s.json', f'{sys.argv[1]}-{n}.bin', '--state', 'state'] for n in range(10)]\n"
        "codes = [main(['local', 'collect', *rest]) for rest in own]\n"
        "sys.exit(max(codes))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(process)], stdout=subprocess.DEVNULL)
        for process in range(2)
    ]
    assert [process.wait(timeout=200) for process in running] == [0, 0]
    assert Collector.from_bytes(SURVEY, (tmp_path / "state").read_bytes()).accepted == 140  # type: ignore[arg-type]
    assert not list(tmp_path.glob(".*"))


def test_a_state_that_stays_in_use_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.txt").write_text(lines(40))
    monkeypatch.setattr(local_files, "PATIENCE", 0.1)
    with (tmp_path / ".state.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert main([*COLLECT, "r.txt", "--state", "state"]) == 1
    assert "in use by another process" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
    assert collected(capsys, "r.txt")["accepted"] == 40  # a lock that somebody left behind holds nobody up


def test_a_file_that_grows_is_counted_from_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.txt"
    file.write_text(lines(50))
    assert collected(capsys, "r.txt")["accepted"] == 50
    old = file.read_text()
    file.write_text(old + lines(30))
    found = collected(capsys, "r.txt")
    assert (found["accepted"], found["known"], sum(found["rejected"].values())) == (80, 50, 0)
    found = collected(capsys, "r.txt")
    assert (found["accepted"], found["rejected"]["replayed"]) == (80, 80)
    file.write_text(old)
    assert collected(capsys, "r.txt")["accepted"] == 80  # an old copy, put back
    file.write_text(lines(60))
    assert collected(capsys, "r.txt")["accepted"] == 140  # another file in its place; alike: below 0.43^50


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_last_line_that_is_half_written_is_read_when_it_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: Any
) -> None:
    file, text = tmp_path / "r.txt", lines(40)
    file.write_text(text[:-cut])
    first = collected(capsys, "r.txt")
    assert first["accepted"] == (40 if cut == 1 else 39)
    file.write_text(text + lines(5))
    found = collected(capsys, "r.txt")
    assert (found["accepted"], sum(found["rejected"].values())) == (45, 0)


def test_a_copy_is_known_by_any_name_and_two_short_files_alike_are_two_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """180 reports of three values have more than 2^40 orders, unless 173 of them are alike: below 1e-30."""
    text = lines(180)
    (tmp_path / "one.txt").write_text(text)
    (tmp_path / "copy.txt").write_text(text)
    found = collected(capsys, "one.txt", "copy.txt")
    assert (found["accepted"], found["rejected"]["replayed"]) == (180, 180)
    short = lines(1)
    for name in ("phone-1.txt", "phone-2.txt"):
        (tmp_path / name).write_text(short)
    assert collected(capsys, "phone-1.txt", "phone-2.txt")["accepted"] == 182
    assert collected(capsys, "phone-1.txt", "phone-2.txt")["accepted"] == 182


def test_standard_input_is_known_by_all_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = lines(40)
    for given, accepted in ((text, 40), (text, 40), (text + lines(5), 85), (text, 85)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        assert collected(capsys)["accepted"] == accepted


def test_collectors_that_counted_the_same_file_do_not_merge() -> None:
    one, other = SURVEY.collector(), SURVEY.collector()
    data = lines(200).encode()
    one.deliveries.note(data, "here")
    other.deliveries.note(data, "there")
    again = Collector.from_bytes(SURVEY, one.to_bytes())  # type: ignore[arg-type]
    assert again.deliveries.count_known(data, "elsewhere") == len(data)
    with pytest.raises(DataError, match="files"):
        one.merge(other)
    other.deliveries = Deliveries()
    other.merge(one)
    assert other.deliveries.count_known(data + b"more", "elsewhere") == len(data)


def test_a_state_of_before_files_were_known_is_read() -> None:
    state = json.loads(SURVEY.collector().to_bytes())
    del state["files"]
    assert Collector.from_bytes(SURVEY, json.dumps(state).encode()).accepted == 0  # type: ignore[arg-type]
    for broken in (7, [1], [[1]], "x", [[None] * 4]):
        with pytest.raises(DataError):
            Collector.from_bytes(SURVEY, json.dumps(state | {"files": broken}).encode())  # type: ignore[arg-type]


def test_too_few_reports_are_stored_and_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, count in enumerate((10, 12, 15)):
        (tmp_path / f"{number}.txt").write_text(lines(count))
    found = collected(capsys, "0.txt")
    assert (found["accepted"], found["needed"], found["estimate"]) == (10, 30, None)
    assert main([*COLLECT, "1.txt", "--state", "state", "--table", "t.csv"]) == 0
    assert "stored 22; an estimate needs 30" in capsys.readouterr().out
    assert not (tmp_path / "t.csv").exists()
    assert len(collected(capsys, "2.txt")["estimate"]) == 3
    assert main([*COLLECT, "0.txt"]) == 1
    assert "10 reports counted, 0 rejected: at least 30" in capsys.readouterr().err


def test_of_several_questions_each_needs_reports_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of 40 reports answers one of two at random: 30 of each cannot be."""
    both = Several({"x": Mean(between=(0, 1), epsilon=1.0), "y": SURVEY})
    (tmp_path / "s.json").write_text(both.to_json())
    (tmp_path / "r.bin").write_bytes(both.reports({"x": [0.5] * 40, "y": ["a"] * 40}).to_bytes())
    assert collected(capsys, "r.bin")["estimate"] is None
    assert main([*COLLECT, "r.bin"]) == 1
    assert "of each question" in capsys.readouterr().err


def foreign() -> Any:
    return next(
        s for i in range(9) if (s := Frequency(["x", "y", str(i)], epsilon=1.0)).id[0] >> 2 != SURVEY.id[0] >> 2
    )


def test_rejections_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = foreign()
    (tmp_path / "r.txt").write_text(lines(80, other, "x") + "?\n" * 3 + lines(50))
    assert main([*COLLECT, "r.txt"]) == 0
    assert "50 reports counted, 83 rejected: 3 malformed, 80 foreign" in capsys.readouterr().out
    (tmp_path / "r.txt").write_text(lines(80, other, "x"))
    assert main([*COLLECT, "r.txt", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["rejected"]["foreign"] == 80
    with pytest.raises(DataError, match="0 reports counted, 80 rejected: 80 foreign: at least 30") as refused:
        SURVEY.estimate(other.reports(["x"] * 80))
    assert "collector" not in str(refused.value)


@pytest.mark.parametrize(
    ("survey", "head", "rows"),
    [
        (Mean(between=(0, 9), epsilon=1.0), "mean,error,reports", 1),
        (Distribution(between=(0, 9), epsilon=1.0), "from,to,share,up to,error", 128),
    ],
    ids=["mean", "distribution"],
)
def test_numbers_have_tables_too(tmp_path: Path, survey: Any, head: str, rows: int) -> None:
    (tmp_path / "s.json").write_text(survey.to_json())
    (tmp_path / "r.bin").write_bytes(survey.reports([4.0] * 400).to_bytes())
    assert main([*COLLECT, "r.bin", "--table", "t.csv"]) == 0
    told = (tmp_path / "t.csv").read_text(encoding="utf-8-sig").splitlines()
    assert (told[0], len(told)) == (head, 1 + rows)
    if rows > 1:
        last = [float(cell) for cell in told[-1].split(",")]
        assert (last[1], last[3], last[4]) == (9.0, pytest.approx(1.0), 0.0)  # type: ignore[comparison-overlap]


def test_a_table_of_several_questions_is_refused_before_anything_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Several({"x": Mean(between=(0, 1), epsilon=1.0), "y": SURVEY})
    (tmp_path / "s.json").write_text(both.to_json())
    (tmp_path / "r.bin").write_bytes(both.reports({"x": [0.5] * 200, "y": ["a"] * 200}).to_bytes())
    assert main([*COLLECT, "r.bin", "--state", "state", "--table", "t.csv"]) == 1
    assert "--json" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_the_questions_of_several_are_told_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fewer than 30 of 400 answers to one of two questions: below 1e-80."""
    both = Several({"age": Mean(between=(0, 99), epsilon=1.0), "pet": SURVEY})
    (tmp_path / "s.json").write_text(both.to_json())
    (tmp_path / "r.bin").write_bytes(both.reports({"age": [30] * 400, "pet": ["a"] * 400}).to_bytes())
    assert main([*COLLECT, "r.bin"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in told[1:]] == ["age:", "pet:", "pet:", "pet:"]


def test_a_state_that_has_no_place_is_told_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.txt").write_text(lines(40))
    assert main([*COLLECT, "r.txt", "--state", "nowhere/state"]) == 1
    assert "nowhere/state' cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["a", "b", "--between", "0", "1"], "--mean"),
        (["--between", "0", "1"], "--mean"),
        (["--mean", "--between", "0", "1", "--other", "x"], "--other"),
        (["--mean", "--between", "0", "1", "--protocol", "k-ary"], "--protocol"),
        ([], "values"),
    ],
    ids=["values", "no kind", "other", "protocol", "nothing"],
)
def test_a_declaration_that_mixes_numbers_and_categories_is_refused(
    command: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["local", "declare", *command, "--epsilon", "1"]) == 1
    assert says in capsys.readouterr().err


def test_the_declaration_of_another_survey_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tmp_path / "s.json").read_bytes()
    other = ["local", "declare", "x", "y", "--epsilon", "1", "--out", "s.json"]
    assert main(other) == 1
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "s.json").read_bytes() == before
    assert main(["local", "declare", "a", "b", "c", "--epsilon", "1", "--out", "s.json"]) == 0  # the very same
    assert main([*other, "--force"]) == 0
    assert (tmp_path / "s.json").read_text().strip() == Frequency(["x", "y"], epsilon=1).to_json()


def test_a_value_outside_the_domain_is_told_of_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "report", "s.json", "zebra"]) == 1
    told = capsys.readouterr().err
    assert "--other" in told
    assert "other=" not in told
    (tmp_path / "n.json").write_text(Frequency(range(10), epsilon=1).to_json())
    for value in ("10", "x"):
        assert main(["local", "report", "n.json", value]) == 1
        assert "other=" not in capsys.readouterr().err
