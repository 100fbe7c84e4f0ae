"""`mosha synth` as a person and as a program would use it."""

import json
from pathlib import Path
from typing import Any

import pytest

from mosha.cli import main


def write(folder: Any) -> str:
    lines = ["who,ward,days"] + [f"p{n},{'AB'[n % 2]},{n % 2 * 5 + n % 3}" for n in range(2000)]
    (folder / "visits.csv").write_text("\n".join(lines))
    declared = {
        "unit": {"person": "who"},
        "columns": {
            "who": {"type": "text"},
            "ward": {"type": "text", "keys": ["A", "B"]},
            "days": {"type": "integer", "between": [0, 9]},
        },
    }
    (folder / "visits.schema.json").write_text(json.dumps(declared))
    return str(folder / "visits.csv")


def test_a_file_becomes_a_labelled_synthetic_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write(tmp_path), tmp_path / "made.csv"
    assert main(["synth", data, str(out), "--epsilon", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["method"] == "all pairs"
    assert 1500 < said["rows"] < 2500
    assert out.read_text().splitlines()[1] == "ward,days"


def test_a_forecast_spends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path)
    assert main(["synth", data, str(tmp_path / "made.csv"), "--epsilon", "1", "--forecast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["number of rows"] > 0
    assert not list(tmp_path.glob("*.privacy.db"))


@pytest.mark.parametrize(("out", "said"), [("made.xlsx", ".csv or .parquet"), ("nowhere/made.csv", "no folder")])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_paid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, said: str
) -> None:
    data = write(tmp_path)
    assert main(["synth", data, str(tmp_path / out), "--epsilon", "1"]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.privacy.db"))
