"""The tools of the house find nothing: style, types, layers; the documentation builds."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mosha
from tests.project.pages import ROOT

BIN = Path(sys.executable).parent


def run(*command: Any, **environment: Any) -> Any:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
    ],
    ids=" ".join,
)
def test_the_tool_finds_nothing(command: Any) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("site")
    done = run("mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder), NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_documentation_builds_without_a_warning(site: Any) -> None:
    assert (site / "index.html").exists()


def test_the_documentation_needs_no_network(site: Any) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for outside in ("fonts.googleapis.com", "cdn.", "unpkg.com", 'script src="http'):
            assert outside not in text, f"{page}: {outside}"


@pytest.mark.parametrize("module", ["accounting", "errors", "events", "guarantees", "ledger", "mechanisms", "noise"])
def test_every_public_name_is_in_the_reference(site: Any, module: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    described = {identifier.rsplit(".", 1)[-1] for identifier in re.findall(r'id="(mosha\.[\w.]+)"', pages)}
    assert set(getattr(mosha, module).__all__) - described <= {"planning", "NOTHING"}


def test_make_knows_its_commands() -> None:
    for command in (
        "demo",
        "test",
        "check",
        "house",
        "bench",
        "fuzz",
        "oldest",
        "docs",
        "release",
        "format",
        "clean",
        "help",
    ):
        done = subprocess.run(["make", "-n", command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
