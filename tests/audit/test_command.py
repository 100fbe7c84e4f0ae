"""`mosha audit`: commands, their JSON and their exit codes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mosha.audit import registry
from mosha.cli import main


@pytest.fixture
def mechanisms(tmp_path: Path) -> Iterator[Any]:
    file = tmp_path / "mechanisms_of_mine.py"
    file.write_text(
        """
import numpy as np
from mosha import Measurement, Row, events
from mosha.audit import Proposal, register

def shout(rows):
    return len(rows)

def whisper(rows, size):
    return np.random.default_rng().integers(0, 2, size)

def step(state, data, ask, rng):
    return len(data), state

def leak():
    return Measurement(unit=Row(), event=events.Pure(1), step=step)

register("mine: a leak", leak, [Proposal("one more", [1], [])])
""",
        "utf-8",
    )
    yield file
    registry.forget("mine: a leak")
    sys.modules.pop(file.stem, None)


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_broken_function_is_told_and_ends_with_code_3(mechanisms: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "function", f"{mechanisms}:shout", "[]", "[1]", "--epsilon", "1", "--runs", "400"]) == 3
    assert "BROKEN" in capsys.readouterr().out


def test_a_harmless_function_ends_with_code_0(mechanisms: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "audit",
        "function",
        f"{mechanisms}:whisper",
        "[]",
        "[1]",
        "--batch",
        "--mu",
        "1",
        "--runs",
        "400",
        "--json",
    ]
    assert main(words) == 0
    plain = said(capsys)
    assert plain["broken"] == 0
    assert plain["verdicts"][0]["outcome"] == "consistent"


def test_registered_mechanisms_are_listed_and_attacked(
    mechanisms: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    assert main(["audit", "list", "--module", str(mechanisms), "--only", "mine", "--json"]) == 0
    assert said(capsys) == [{"name": "mine: a leak", "kind": "yours", "neighbors": ["one more"]}]
    registry.forget("mine: a leak")
    words = ["audit", "all", "--module", str(mechanisms), "--only", "mine", "--runs", "400", "--html", str(page)]
    assert main(words) == 3
    assert "1 attacked, 1 broken" in capsys.readouterr().out
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_own_mechanisms_are_attacked(capsys: pytest.CaptureFixture[str]) -> None:
    sure = ["--runs", "400", "--confidence", "0.999999999", "--json"]  # false-alarm rate 1e-9
    assert main(["audit", "all", "--only", "laplace: count", *sure]) == 0
    assert said(capsys)["verdicts"][0]["mechanism"] == "laplace: count"
    assert main(["audit", "list"]) == 0
    assert "laplace: count" in capsys.readouterr().out


def test_a_table_is_judged_for_its_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "patients.csv"
    rows = [f"{20 + i % 40},{13000 + i % 7},{'flu' if i % 3 else 'hiv'}" for i in range(200)]
    file.write_text("\n".join(["age,zip,illness", *rows]), "utf-8")
    words = [
        "audit",
        "table",
        str(file),
        "--quasi",
        "age",
        "--quasi",
        "zip",
        "--sensitive",
        "illness",
        "--epsilon",
        "1",
    ]
    words += ["--k", "3", "--width", "age=20", "--keep", "zip=3"]
    assert main([*words, "--html", str(tmp_path / "page.html")]) == 0
    assert "k-anonymized" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert said(capsys)["after"]["k"] >= 3
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "function", "nowhere:shout", "[]", "[1]", "--epsilon", "1"],
        ["audit", "function", "math:nothing", "[]", "[1]", "--epsilon", "1"],
        ["audit", "function", "absent.py:f", "[]", "[1]", "--epsilon", "1"],
        ["audit", "function", "math:floor", "[", "[1]", "--epsilon", "1"],
        ["audit", "function", "math:floor", "1", "2"],
        ["audit", "function", "math:floor", "1", "2", "--epsilon", "1", "--mu", "1"],
        ["audit", "function", "math:floor", "1", "2", "--epsilon", "-1"],
        ["audit", "all", "--only", "no such entry"],
        ["audit", "list", "--module", "no_such_module_anywhere"],
        ["audit", "table", "absent.csv", "--quasi", "a", "--sensitive", "b", "--epsilon", "1"],
        ["audit", "table", __file__, "--quasi", "a", "--sensitive", "b", "--epsilon", "1"],
        ["audit", "table", __file__, "--quasi", "a", "--sensitive", "b", "--epsilon", "1", "--width", "age"],
    ],
)
def test_refusals_are_one_line_and_code_1(words: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
