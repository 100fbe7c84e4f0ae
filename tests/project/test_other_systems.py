"""Everything imports, and what the platform allows works, where there is neither `fcntl` nor `fork`: on Windows."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.project.pages import ROOT

UNIX_ALONE = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "crypt", "spwd"}
WINDOWS_ALONE = {"msvcrt", "winreg", "_winapi", "winsound"}
NAMES = [
    *("fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "fchmod", "fchown", "chown", "setsid"),
    *("killpg", "getpgid", "O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "sync", "statvfs", "mkfifo"),
]
GUARDED = {"files/locks.py", "server/work/worker.py"}  # locks; the memory of a worker, limited where it can be

HIDDEN = f"""
import os, sys
import subprocess, typer, rich.console, numpy, scipy.stats, duckdb, sqlglot, psycopg, multiprocessing.connection
import cryptography.hazmat.primitives.ciphers.aead  # guests ask themselves where they are
if "all guests" in sys.argv:
    import numba, torch, torch.distributed, torch.utils.data, matplotlib.figure
for name in {sorted(UNIX_ALONE - {"posix"})!r}:
    sys.modules[name] = None
for name in {NAMES!r}:
    if hasattr(os, name):
        delattr(os, name)
import types
locked = {{}}

def locking(handle, mode, length):
    seen = os.fstat(handle)
    if mode == 0:
        del locked[seen.st_dev, seen.st_ino]
        return
    holder = locked.get((seen.st_dev, seen.st_ino))
    alive = holder is not None and holder != handle and os.path.exists(f"/proc/self/fd/{{holder}}")
    if alive:
        raise PermissionError(13, "Permission denied")
    locked[seen.st_dev, seen.st_ino] = handle

sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking)
"""


def run(script: Any, *arguments: Any) -> Any:
    command = [sys.executable, "-W", "ignore", "-c", HIDDEN + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_module_imports() -> None:
    found = run(
        "import importlib, pkgutil, mosha\n"
        "for found in pkgutil.walk_packages(mosha.__path__, 'mosha.'):\n"
        "    if '__main__' not in found.name and 'flower' not in found.name and 'spark' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "        print(found.name)\n",
        "all guests",
    )
    assert len(found.splitlines()) > 300


def test_a_ledger_and_a_stream_that_goes_on_after_its_process(tmp_path: Path) -> None:
    script = """
import mosha
from mosha import streams
account = mosha.Ledger(sys.argv[1] + "/book.db").account("s", unit=mosha.Reading(), epsilon=1)
plan = streams.counter(horizon=8, epsilon=1, unit=mosha.Reading())
try:
    service = streams.serve(account, plan, name="visits", state=sys.argv[1] + "/state")
    print(service.step([1] * 5).step)
    try:
        streams.serve(account, plan, name="visits", state=sys.argv[1] + "/state")
    except mosha.errors.StateRefused as error:
        print("in use" in str(error))
    service.close()
finally:
    assert account.spent <= 1
"""
    assert run(script, str(tmp_path)).split() == ["1", "True"]
    assert run(script, str(tmp_path)).split() == ["2", "True"]


def test_the_files_of_a_survey_on_the_command_line(tmp_path: Path) -> None:
    script = """
import contextlib, pathlib
from mosha.cli.local.files import hold, read, write
path = pathlib.Path(sys.argv[1]) / "state"
with hold(path):
    write(path, b"one")
with hold(path):
    print(read(path))
from mosha.federated.noise_secret import load_secret
secret = pathlib.Path(sys.argv[1]) / "secret"
print(load_secret(secret) == load_secret(secret))
"""
    assert run(script, str(tmp_path)).split() == ["b'one'", "True"]


def test_where_a_system_has_no_locks_at_all_a_stream_is_refused_unpaid(tmp_path: Path) -> None:
    script = """
sys.modules["msvcrt"] = None
import mosha
from mosha import streams
account = mosha.Ledger(sys.argv[1] + "/book.db").account("s", unit=mosha.Reading(), epsilon=1)
try:
    plan = streams.counter(horizon=8, epsilon=1, unit=mosha.Reading())
    streams.serve(account, plan, name="visits", state=sys.argv[1] + "/state")
except mosha.errors.StateRefused:
    print("refused", account.spent == 0)
"""
    assert run(script, str(tmp_path)).split() == ["refused", "True"]


def imports(text: Any) -> Iterator[Any]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != os.name:
            yield node.value  # of import_module, wherever it is called
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def test_modules_of_one_system_are_asked_for_in_one_place_alone() -> None:
    found = {
        str(path.relative_to(ROOT / "src/mosha"))
        for path in (ROOT / "src/mosha").rglob("*.py")
        if set(imports(path.read_text(encoding="utf-8"))) & (UNIX_ALONE | WINDOWS_ALONE)
    }
    assert found == GUARDED


@pytest.mark.parametrize("planted", ["import fcntl", "def f():\n    from resource import getrusage"])
def test_a_planted_one_is_found(planted: str) -> None:
    assert set(imports(planted)) & UNIX_ALONE


def find_lost_names(tree: ast.Module) -> list[str]:
    """Names of the module that a function also gives to what it goes through in a list, a set or a dict.

    Python 3.12.0 and 3.12.1 lose the module's name there: the next list in that function finds it unbound.
    """
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp)
    outside = set(_top_names(tree))
    lost = []
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        loops = [node for node in ast.walk(function) if isinstance(node, comprehensions)]
        taken = {node.id for loop in loops for node in _targets(loop)} & outside
        hidden = {id(node) for loop in loops if taken & {t.id for t in _targets(loop)} for node in ast.walk(loop)}
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and id(node) not in hidden]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        own |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
        lost += sorted({node.id for node in names} & taken - own)
    return lost


def _top_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _targets(loop: ast.ListComp | ast.SetComp | ast.DictComp) -> list[ast.Name]:
    return [node for part in loop.generators for node in ast.walk(part.target) if isinstance(node, ast.Name)]


LOST = """
from somewhere import column
def list_them(columns):
    arrays = {i: column for i, column in enumerate(columns)}
    return [column(c) for c in columns]
"""


def test_no_name_is_lost_in_python_3_12() -> None:
    assert find_lost_names(ast.parse(LOST)) == ["column"]
    assert find_lost_names(ast.parse(LOST.replace("i, column in", "i, one in"))) == []
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert find_lost_names(ast.parse(path.read_text(encoding="utf-8"))) == [], path
