"""`mosha local` in files and pipes."""

import io
import json
import sys

import pytest

from mosha.cli import main
from mosha.local import Frequency, Survey


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def piped(text, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_from_declaration_to_estimate(tmp_path, monkeypatch, capsys):
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
    assert (tmp_path / "t.csv").read_text().startswith("value,share,raw,error\n")
    assert main(command) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["accepted"], again["rejected"]["replayed"]) == (100, 101)


def test_batches_in_files_are_collected_too(tmp_path, capsys):
    survey = Frequency(range(50), epsilon=1.0)
    (tmp_path / "s.json").write_text(survey.to_json())
    (tmp_path / "b.bin").write_bytes(survey.reports([7] * 300).to_bytes())
    assert main(["local", "collect", "s.json", "b.bin"]) == 0
    assert "300 reports counted" in capsys.readouterr().out


def test_numbers_and_comparisons(tmp_path, capsys):
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
    ],
)
def test_what_cannot_be_done_says_so_in_one_line(command, capsys):
    assert main(["local", *command]) == 1
    assert capsys.readouterr().err.startswith("mosha: ")
