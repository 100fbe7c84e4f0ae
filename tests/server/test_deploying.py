"""The examples of *Run a server*: a unit of systemd and a container, with commands and extras that there are."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mosha.cli.application import application

ROOT = Path(__file__).parents[2]
PAGES = ("server-deploy.md", "server-deploy.zh.md")


def read_example(page: str, beginning: str) -> str:
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    found = re.search(rf"```text\n({re.escape(beginning)}.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def read_commands(page: str) -> list[list[str]]:
    """How both examples start the server."""
    started = re.search(r"ExecStart=/opt/mosha/bin/(.*)", read_example(page, "[Unit]"))
    contained = re.search(r"CMD (.*)", read_example(page, "FROM "))
    assert started is not None
    assert contained is not None
    return [started[1].split(), json.loads(contained[1])]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_examples_are_what_the_program_takes(page: str) -> None:
    shown = CliRunner().invoke(application(), ["serve", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    for program, verb, *options in read_commands(page):
        assert (program, verb) == ("mosha", "serve")
        assert [option for option in options if option.startswith("--") and option not in shown] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_container_installs_what_there_is(page: str) -> None:
    example = read_example(page, "FROM ")
    asked = re.search(r"mosha\[([\w,]+)\]", example)
    version = re.search(r"FROM python:3\.(\d+)", example)
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert asked is not None
    assert version is not None
    assert set(asked[1].split(",")) <= set(project["optional-dependencies"])
    assert f"Programming Language :: Python :: 3.{version[1]}" in project["classifiers"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_systemd_takes_the_unit(page: str, tmp_path: Path) -> None:
    unit = tmp_path / "mosha.service"
    unit.write_text(read_example(page, "[Unit]").replace("/opt/mosha/bin/mosha", sys.executable), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    said = [line for line in checked.stderr.splitlines() if unit.name in line]
    assert (checked.returncode, said) == (0, [])
    unit.write_text(unit.read_text(encoding="utf-8").replace("[Service]", "[Servise]"), encoding="utf-8")
    broken = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert broken.returncode != 0 or unit.name in broken.stderr
