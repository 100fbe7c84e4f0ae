"""What tests, benchmarks, searches and examples import from Mosha is there, also where no test runs them."""

import ast
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import mosha

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "fuzz", "benchmarks", "examples")


def find_missing(source: str) -> list[str]:
    """Return the names that a text imports from Mosha and that are not there."""
    missing = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "mosha":
            wanted = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            wanted = [(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "mosha"]
        else:
            continue
        missing += [f"{module} {name}".strip() for module, name in wanted if not _is_there(module, name)]
    return missing


def _is_there(module: str, name: str) -> bool:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return not name or hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_that_is_imported_from_mosha_is_there(folder: Any) -> None:
    missing = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := find_missing(path.read_text(encoding="utf-8")))
    }
    assert not missing


def test_a_name_that_is_gone_is_found() -> None:
    text = "from mosha import Ledger, gone\nimport mosha.nowhere\nfrom mosha.models import trees"
    assert find_missing(text) == ["mosha gone", "mosha.nowhere"]


def test_every_name_that_a_facade_offers_is_there() -> None:
    below = pkgutil.walk_packages(mosha.__path__, "mosha.")
    packages = [mosha.__name__, *(found.name for found in below if found.ispkg)]
    missing = []
    for package in packages:
        facade = importlib.import_module(package)
        missing += [f"{package}.{name}" for name in getattr(facade, "__all__", ()) if not _loads(facade, name)]
    assert not missing


def _loads(facade: object, name: str) -> bool:
    try:
        getattr(facade, name)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True
