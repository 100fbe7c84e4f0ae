"""The map and the territory agree."""

import re
import tomllib
import warnings
from typing import Any

import pytest

from tests.house import roads
from tests.project.pages import ROOT, blocks


def contract() -> list[Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [c["layers"] for c in project["tool"]["importlinter"]["contracts"] if c["name"].startswith("Layers")]
    return [set(re.findall(r"mosha\.(\w+)", layer)) for layer in layers]


def test_the_layers_on_the_page_are_the_layers_that_are_checked() -> None:
    (drawn,) = [block.text for block in blocks(ROOT / "ARCHITECTURE.md") if block.text.startswith("cli")]
    shown = [set(re.findall(r"\w+", line[: line.index("  ")])) for line in drawn.splitlines()]
    assert shown == contract()


def test_every_folder_of_the_package_has_its_layer() -> None:
    folders = {path.parent.name for path in (ROOT / "src/mosha").glob("*/__init__.py")}
    assert folders <= set.union(*contract())


def test_every_room_can_be_read_at_a_glance() -> None:
    for folder in {path.parent for path in (ROOT / "src/mosha").rglob("*.py")}:
        files = list(folder.glob("*.py"))
        assert len(files) <= 20, f"{folder.name} has {len(files)} files: make rooms in it"
        said = folder.joinpath("__init__.py").read_text(encoding="utf-8")
        assert said.lstrip("r").startswith('"""'), f"{folder.name} does not say what it holds"


def test_rooms_are_one_level_deep() -> None:
    deepest = max(len(path.relative_to(ROOT / "src/mosha").parts) for path in (ROOT / "src/mosha").rglob("*.py"))
    assert deepest <= 3


def described_roads() -> list[Any]:
    """The files that ARCHITECTURE.md names on each of the six roads."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Six roads")[1].split("\n## ")[0]
    items = re.split(r"^\d\. ", text, flags=re.MULTILINE)[1:]
    return [re.findall(r"`([\w/]+/[\w/]+)`", item) for item in items]


LONGEST = {
    "query": 75, "stream step": 22, "training step": 38, "Flower rounds": 52, "local survey": 14,
    "charge and release": 32,
}  # fmt: skip
"""How many files a road may pass: what it passes today, and one that depends on what was drawn."""


@pytest.mark.parametrize("number", range(6), ids=list(roads.ROADS))
def test_a_road_on_the_page_is_the_road_that_is_walked(number: Any) -> None:
    named = described_roads()[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walked = {path.removesuffix(".py") for path in roads.walk(list(roads.ROADS)[number])}
    assert named
    assert set(named) - walked == set()
    assert len(walked) <= LONGEST[list(roads.ROADS)[number]]


def rows_of(heading: Any) -> Any:
    """The rows of the table under a heading of ARCHITECTURE.md, cell by cell."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split(heading)[1]
    lines = [line.strip("| ").split(" | ") for line in text.split("\n\n")[1].splitlines()]
    return lines[2:]


def test_the_folders_on_the_page_are_those_of_the_tree() -> None:
    said = [cells[0].strip("`") for cells in rows_of("ledger does not know mechanisms: it sees events.")]
    assert sorted(said) == sorted(path.parent.name for path in (ROOT / "src/mosha").glob("*/__init__.py"))


def test_the_rooms_on_the_page_are_those_of_the_tree() -> None:
    said = {cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[1])) for cells in rows_of("point down between them")}
    rooms: dict[Any, Any] = {}
    for path in (ROOT / "src/mosha").glob("*/*/__init__.py"):
        rooms.setdefault(path.parent.parent.name, set()).add(path.parent.name)
    assert said == rooms


def test_what_the_pages_for_contributors_name_is_there() -> None:
    """Files of the map, targets of make, benchmarks and their pieces."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "README.zh-CN.md", "benchmarks/README.md"]
    for page in pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:`|^|    )make ([a-z]+)\b", text, re.MULTILINE)) <= targets, page
        for name, pieces in re.findall(r"python -m benchmarks (\w+)(?::([\w,]+))?", text):
            declared = (ROOT / f"benchmarks/{name}.py").read_text(encoding="utf-8").rpartition("PIECES")[2]
            assert set(filter(None, pieces.split(","))) <= set(re.findall(r"\w+", declared)), f"{page}: {name}"
    for cells in rows_of("## Where to look"):
        for path in re.findall(r"`([\w/.-]+\.(?:md|py))`", cells[1]):
            assert (ROOT / path).exists() or (ROOT / "src/mosha" / path).exists(), path
