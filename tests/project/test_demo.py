"""`make demo` does what the README says: answers with error bars, what is left, one refusal, one picture."""

import csv
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.project.pages import ROOT


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples/demo.py")],
        cwd=folder,
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_demo_shows_the_promise_the_answers_and_what_is_left(demo: Any) -> None:
    _, done = demo
    for part in ("The promise: epsilon 3", "one person", "question", "error (95%)", "left", "cardiology"):
        assert part in done.stdout
    assert done.stderr == ""


def test_the_demo_is_refused_once_and_kindly(demo: Any) -> None:
    _, done = demo
    assert done.stdout.count("Refused") == 1
    assert "No data was read. Nothing was spent." in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout


def test_nobody_in_the_demo_is_cut_so_that_two_answers_about_a_number_agree(demo: Any) -> None:
    """Surgery had 3,951 +- 36 visits in one answer and 3,851 +- 31 in the other: each bound cut in its own way."""
    folder, _ = demo
    with (folder / "demo-output/visits.csv").open(encoding="utf-8", newline="") as file:
        visits = Counter(row["patient_id"] for row in csv.DictReader(file))
    declared = re.search(r"at_most=(\d+)", (ROOT / "examples/demo.py").read_text(encoding="utf-8"))
    assert max(visits.values()) <= int(declared.group(1))


def test_a_number_and_its_bar_have_the_same_decimals(demo: Any) -> None:
    """A mean was shown as 3.00 +- 2.1."""
    shown = re.findall(r"([\d,]+(?:\.(\d+))?)\s+\+-\s+([\d,]+(?:\.(\d+))?)", demo[1].stdout)
    assert len(shown) > 9
    assert all(len(decimals) == len(others) for _, decimals, _, others in shown)


def test_the_demo_writes_a_picture_and_a_book(demo: Any) -> None:
    folder, _ = demo
    assert (folder / "demo-output/wards.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "demo-output/privacy.db").exists()


def test_the_sample_is_the_same_for_everybody_and_belongs_to_nobody(tmp_path: Path) -> None:
    for name in ("first.csv", "second.csv"):
        subprocess.run([sys.executable, str(ROOT / "examples/hospital.py"), name], cwd=tmp_path, check=True)
    first = (tmp_path / "first.csv").read_text(encoding="utf-8")
    assert first == (tmp_path / "second.csv").read_text(encoding="utf-8")
    assert first.splitlines()[0] == "patient_id,age,ward,days,cost"
    assert len(first.splitlines()) > 10_000
