"""`pip install 'mosha[server]'` stays small, and a server is ready before it has loaded engines."""

import subprocess
import sys
from importlib.metadata import distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def packages_of(name: Any, extras: Any = frozenset()) -> set[Any]:
    """A distribution and all that it needs, by the metadata of what is installed here."""
    found, wanted = set(), [(name, frozenset(extras))]
    while wanted:
        name, extras = wanted.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        for line in distribution(name).requires or ():
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                wanted.append((canonicalize_name(need.name), frozenset(need.extras)))
    return {name for name, _ in found}


def test_a_server_adds_at_most_twelve_packages_and_twelve_megabytes() -> None:
    more = packages_of("mosha", {"server"}) - packages_of("mosha")
    assert {"starlette", "uvicorn", "jinja2"} <= more
    assert len(more) <= 12, sorted(more)
    files = [file.locate() for name in more for file in distribution(name).files or ()]
    size = sum(file.stat().st_size for file in files if file.is_file())  # type: ignore[attr-defined]
    assert 1e5 < size <= 12e6


def test_a_server_is_ready_before_it_has_loaded_engines() -> None:
    """A moment later it loads them of itself, so that the first question need not wait for it."""
    code = "import sys, mosha.server.serving, mosha.server.pages; print(*sorted(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    loaded = set(said.stdout.split())
    assert "starlette.applications" in loaded
    assert not loaded & {"numpy", "duckdb", "sqlglot", "pyarrow", "scipy", "mosha.tables.question"}
    code = "import sys; from mosha.server.asking.questions import load_engines; load_engines(); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert {"sqlglot", "mosha.tables.question"} <= set(said.stdout.split())
