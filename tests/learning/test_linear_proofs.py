"""A proof in a file of its own moves when the code moves; every promise of the linear side states its guarantee."""

import re
from pathlib import Path

import pytest

from tests.mechanisms.proof_stamps import STAMP, code_of

FOLDER = Path(__file__).parents[2] / "src" / "mosha" / "learning"
PAGE = FOLDER / "linear_descent.md"


@pytest.mark.parametrize("match", list(STAMP.finditer(PAGE.read_text())), ids=lambda match: match["name"])
def test_the_proof_is_about_the_code_there_is(match):
    found = code_of(match["module"], match["name"])
    assert match["code"] == found, f"{match['name']} has changed: read the proof again, then stamp it with {found}."


@pytest.mark.parametrize(
    "name",
    [
        "linear_descent",
        "linear_rows",
        "linear_losses",
        "selection",
        "accuracy_release",
        "calibration_table",
        "pate",
        "aggregation",
    ],
)
def test_every_file_that_promises_says_why(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert "Guarantee:" in text
    for page in re.findall(r"`(linear\w+\.md)`", text):
        assert (FOLDER / page).exists()
