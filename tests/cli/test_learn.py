"""`mosha learn`: list, show, start and check, for people and for programs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mosha.classroom.exercises.exercise import find_exercise
from mosha.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    return code, capsys.readouterr().out


def test_the_list_for_programs_has_all_sixty(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "learn", "list", "--json")
    listed = json.loads(out)
    assert code == 0
    assert len(listed) == 60
    assert {"id", "number", "chapter", "title", "task", "starter"} <= set(listed[0])
    assert "solution" not in listed[0]


def test_a_chapter_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "list", "--chapter", "cooking"]) == 1


def test_a_task_is_shown_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--lang", "zh", "learn", "show", "float-laplace", "--hint")
    assert code == 0
    assert "十行会泄密的代码" in out
    assert "提示" in out


def test_an_answer_is_begun_checked_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["learn", "start", "odds"]) == 0
    assert main(["learn", "start", "odds"]) == 1  # never overwritten
    capsys.readouterr()
    code, out = run(capsys, "learn", "check", "odds", "--json")
    assert code == 3
    assert json.loads(out)["findings"][0]["code"] == "nothing"
    (tmp_path / "odds.py").write_text(find_exercise("odds").solution, encoding="utf-8")
    code, out = run(capsys, "learn", "check", "odds", "--json")
    assert code == 0
    assert json.loads(out)["passed"]


def test_a_file_that_cannot_be_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odds.py").write_text("def highest_belief(:\n", encoding="utf-8")
    assert main(["learn", "check", "odds"]) == 1
    assert main(["learn", "check", "composition"]) == 1  # no file at all


def test_a_notebook_runs_in_a_kernel_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["learn", "start", "composition", "--notebook"]) == 0
    path = tmp_path / "composition.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].source = find_exercise("composition").solution
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "passed" in str(notebook.cells[2].outputs)
    nbformat.write(notebook, path)
    assert main(["learn", "check", "composition", str(path)]) == 0
