"""The examples of the audit run and say what they promise to say."""

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_textbook_noise_is_broken_and_exact_noise_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "audit_porous_noise.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "textbook: BROKEN" in said
    assert "laplace(Count): CONSISTENT" in said
    assert (tmp_path / "demo-output/audit-textbook.html").exists()


@pytest.mark.parametrize("words", [("k-anonymized", "Differencing", "Reconstruction", "BROKEN", "Attribute")])
def test_published_tables_are_attacked(words: Any, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "audit_published_table.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(word in said for word in words)
