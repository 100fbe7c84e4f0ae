"""What is installed: a typed package with its proofs, a command, and nothing else."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.pages import ROOT


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_wheel_holds_the_package_its_types_and_its_proofs(wheel: Any) -> None:
    names = set(wheel.namelist())
    assert "mosha/py.typed" in names
    shipped = {f"mosha/{path.relative_to(ROOT / 'src/mosha')}" for path in (ROOT / "src/mosha").rglob("*.md")}
    assert shipped <= names


def test_the_wheel_holds_nothing_else(wheel: Any) -> None:
    folders = {entry.split("/")[0] for entry in wheel.namelist()}
    assert len(folders) == 2
    assert "mosha" in folders


def test_the_wheel_installs_the_command(wheel: Any) -> None:
    (points,) = [entry for entry in wheel.namelist() if entry.endswith("entry_points.txt")]
    assert "mosha = mosha.cli:main" in wheel.read(points).decode()


def test_the_base_install_stays_small() -> None:
    base = {re.match(r"[\w-]+", requirement)[0] for requirement in project()["dependencies"]}
    assert base == {"numpy", "scipy", "cryptography", "duckdb", "sqlglot", "typer", "rich", "pyyaml"}


def test_no_file_of_the_package_is_long_and_none_is_named_after_nothing() -> None:
    for path in (ROOT / "src/mosha").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
        assert path.stem not in {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}, path


def test_the_command_runs_as_installed() -> None:
    command = [str(ROOT / ".venv/bin/mosha"), "version"]
    if not (ROOT / ".venv/bin/mosha").exists():
        pytest.skip("Mosha is not installed in .venv")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("mosha ")
