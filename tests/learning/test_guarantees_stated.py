"""Every promise of the linear side states its guarantee."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "mosha" / "learning"


@pytest.mark.parametrize(
    "name",
    [
        "linear/descent",
        "linear/rows",
        "linear/losses",
        "choosing/selection",
        "choosing/accuracy",
        "choosing/calibration",
        "choosing/pate",
        "graph_aggregation",
    ],
)
def test_every_file_that_promises_says_why(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert "Guarantee:" in text
    for page in re.findall(r"`(linear\w+\.md)`", text):
        assert (FOLDER / "linear" / page).exists()
