"""`mosha local` in files and pipes."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mosha.cli import main
from mosha.local import Frequency, Mean, Repeated, Several, Survey


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def piped(text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_from_declaration_to_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["local", "declare", "tea", "coffee", "--epsilon", "6", "--out", "s.json"]) == 0
    survey = Survey.from_json((tmp_path / "s.json").read_bytes())
    assert survey.id == Frequency(["tea", "coffee"], epsilon=6.0).id
    capsys.readouterr()
    piped("tea\n" * 80 + "coffee\n" * 20, monkeypatch)
    assert main(["local", "report", "s.json"]) == 0
    (tmp_path / "r.txt").write_text(capsys.readouterr().out + "not a report\n")
    command = ["local", "collect", "s.json", "r.txt", "--state", "state", "--table", "t.csv", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accepted"] == 100
    assert found["rejected"]["malformed"] == 1
    assert found["estimate"][0]["share"] == pytest.approx(0.8, abs=0.1)
    assert (tmp_path / "t.csv").read_bytes().startswith(b"\xef\xbb\xbfvalue,share,raw,error\n")  # for Excel
    assert main(command) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["accepted"], again["rejected"]["replayed"]) == (100, 101)


def test_batches_in_files_are_collected_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = Frequency(range(50), epsilon=1.0)
    (tmp_path / "s.json").write_text(survey.to_json())
    (tmp_path / "b.bin").write_bytes(survey.reports([7] * 300).to_bytes())
    assert main(["local", "collect", "s.json", "b.bin"]) == 0
    assert "300 reports counted" in capsys.readouterr().out


def test_numbers_and_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "declare", "--mean", "--between", "0", "9", "--epsilon", "1", "--out", "m.json"]) == 0
    capsys.readouterr()
    assert main(["local", "report", "m.json", "4", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["reports"]) == 1
    assert main(["local", "compare", "2000", "4", "1", "--plot", "c.svg", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 3
    assert (tmp_path / "c.svg").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["declare", "tea", "--epsilon", "1"],
        ["declare", "a", "b", "--epsilon", "0"],
        ["declare", "--mean", "--epsilon", "1"],
        ["report", "nowhere.json", "x"],
        ["collect", "nowhere.json"],
        ["compare", "1", "1", "1"],
        ["declare", "9" * 5000, "--epsilon", "1"],
        ["declare", "a", "b", "--epsilon", "nan"],
    ],
)
def test_what_cannot_be_done_says_so_in_one_line(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", *command]) == 1
    assert capsys.readouterr().err.startswith("mosha: ")


def test_labels_are_read_as_they_were_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.json").write_text(Frequency([1, "2", True], epsilon=8.0, protocol="k-ary").to_json())
    for text in ("1", "2", "true"):
        assert main(["local", "report", "s.json", text]) == 0
    capsys.readouterr()
    assert main(["local", "report", "s.json", "3"]) == 1
    assert "outside the domain" in capsys.readouterr().err


def test_several_questions_are_answered_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Several({"age": Mean(between=(0, 99), epsilon=1), "pet": Frequency(["cat", "dog"], epsilon=1)})
    (tmp_path / "s.json").write_text(both.to_json())
    assert main(["local", "report", "s.json", '{"age": 41, "pet": "cat"}']) == 0
    capsys.readouterr()
    for wrong in ("41", "{", '{"age": 41}', '{"age": "x", "pet": "cat"}', "null"):
        assert main(["local", "report", "s.json", wrong]) == 1
        assert capsys.readouterr().err.startswith("mosha: ")


def test_a_repeated_survey_and_bytes_that_are_no_text_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(Repeated(["a", "b"], permanent=2, epsilon=1).to_json())
    assert main(["local", "report", "r.json", "a"]) == 1
    assert "Device" in capsys.readouterr().err
    (tmp_path / "s.json").write_text(Frequency(["a", "b"], epsilon=1).to_json())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\n"), encoding="utf-8"))
    assert main(["local", "report", "s.json"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("mosha: ")


def test_a_state_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    survey = Frequency(range(5), epsilon=1.0)
    (tmp_path / "s.json").write_text(survey.to_json())
    (tmp_path / "b.bin").write_bytes(survey.reports([3] * 40).to_bytes())
    command = ["local", "collect", "s.json", "b.bin", "--state", "state"]
    assert main(command) == 0
    before = (tmp_path / "state").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", lambda self, target: (_ for _ in ()).throw(OSError(28, "full")))
        assert main(command) == 1
    assert (tmp_path / "state").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.bin", "s.json", "state"]
    assert os.strerror(28) in capsys.readouterr().err


def test_an_estimate_is_drawn_where_it_is_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    survey = Frequency(["茶", "咖啡"], epsilon=2.0)
    (tmp_path / "s.json").write_text(survey.to_json(), encoding="utf-8")
    (tmp_path / "b.bin").write_bytes(survey.reports(["茶"] * 300).to_bytes())
    assert main(["local", "collect", "s.json", "b.bin", "--plot", "shares.png"]) == 0
    assert (tmp_path / "shares.png").read_bytes().startswith(b"\x89PNG")
    assert main(["local", "collect", "s.json", "b.bin", "--plot", "shares.docx"]) == 1
    assert main(["local", "declare", "--mean", "--between", "0", "9", "--epsilon", "1", "--out", "m.json"]) == 0
    capsys.readouterr()
    assert main(["local", "collect", "m.json", "b.bin", "--plot", "mean.png"]) == 1
    assert "one number" in capsys.readouterr().err
