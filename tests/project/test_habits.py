"""Versions, workflows and the recipe of a release agree with each other."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests import release
from tests.project.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_PEOPLE = {"docs", "dev", "test"}


def requirements(*extras: Any) -> dict[Any, Any]:
    """The requirements of users, by the name of the package."""
    chosen = [extra for extra in EXTRAS if extra in extras or (not extras and extra not in FOR_PEOPLE)]
    every = [*PROJECT["dependencies"], *(each for extra in chosen for each in EXTRAS[extra])]
    return {re.match(r"[\w-]+", each)[0]: each for each in every if not each.startswith("mosha[")}


def pins(name: Any) -> Any:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_a_user_is_given_ranges_and_no_pins() -> None:
    assert [each for each in requirements().values() if "==" in each or ">=" not in each] == []


def test_make_pins_everything_that_users_and_tests_need() -> None:
    assert {name.lower() for name in requirements(*EXTRAS)} <= set(pins("constraints.txt"))


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    allowed = {name: re.search(r">=([\d.]+)", each)[1] for name, each in requirements(*EXTRAS).items() if ">=" in each}
    for name, version in pins("constraints-oldest.txt").items():
        assert (version + ".").startswith(allowed[name] + ".") or version.startswith(allowed[name]), name


def test_every_python_that_is_declared_is_tried() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["matrix"]["strategy"]["matrix"]
    assert declared == matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}


def commands() -> Iterator[Any]:
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)


def test_workflows_run_what_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands():
        for target in re.findall(r"^make (\w+)", command):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        for place in re.findall(r"\btests/\S+", command):
            assert (ROOT / place).exists(), place


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_files_for_the_forge_can_be_read(path: Any) -> None:
    assert yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_version_is_the_same_wherever_it_is_named() -> None:
    assert release.disagreements() == []


def test_a_place_that_names_another_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "version", lambda: "9.9.9")
    assert len(release.disagreements()) == 2


def test_a_fault_is_in_the_changelog_or_on_the_page_of_faults() -> None:
    """What was never released stands on its page, and the changelog is for users of the version before."""
    assert "during development" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
