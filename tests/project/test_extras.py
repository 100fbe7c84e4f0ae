"""Where a package is not installed, the error names the extra that brings it."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {
    "dp-accounting": "dp_accounting",
    "python-multipart": "python_multipart",
}  # what is imported, where it is called otherwise
FOR_PEOPLE = {"docs", "dev", "test"}  # extras of those who work on Mosha
WITHOUT_A_GUARD = {  # imports inside of functions that are only called with an object of the guest in hand, or by it
    "graphs/data/spark.py": {"pyspark"},
    "learning/linear/estimator.py": {"sklearn"},
    "models/model.py": {"sklearn"},
    "federated/plans/example_level.py": {"torch"},
    "federated/simulator.py": {"torch"},  # guarded where a simulation is made
    "audit/contracts/training_hooks.py": {"torch"},
    "audit/own/learning.py": {"torch"},  # left out of the list of attacks where torch is not installed
    "audit/own/tables.py": {"pyarrow"},  # likewise
    "audit/own/databases.py": {"pyarrow"},  # likewise
    "pictures/dark.py": {"matplotlib"},
}


def packages(extra: Any) -> Any:
    """What an extra installs, by the names that are imported."""
    found = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        name = re.match(r"[\w-]+", requirement)[0]
        if name == "mosha":
            for other in re.search(r"\[(.*)\]", requirement)[1].split(","):
                found |= packages(other)
        else:
            found.add(MODULES.get(name, name))
    return found


EXTRAS = {extra: packages(extra) for extra in PROJECT["optional-dependencies"] if extra not in FOR_PEOPLE}
GUESTS = set.union(*EXTRAS.values()) - {"click"} | {"sklearn", "igraph", "networkx"}


def imported(node: Any) -> Any:
    if isinstance(node, ast.Import):
        return {name.name.split(".")[0] for name in node.names} & GUESTS
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").split(".")[0]} & GUESTS
    return set()


def is_typing(node: Any) -> Any:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk(tree: Any, above: Any = ()) -> Iterator[Any]:
    """Every node with what it stands in; what only type checkers read is left out."""
    for child in ast.iter_child_nodes(tree):
        if not is_typing(tree) or child not in tree.body:
            yield child, above
            yield from walk(child, (*above, child))


def extras_raised(handlers: Any) -> list[Any]:
    calls = [node for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Call)]
    return [call.args[0] for call in calls if getattr(call.func, "id", "") == "MissingExtra"]


def fault_of_call(node: Any, path: Any) -> Any:
    called, first = ast.unparse(node.func), getattr(node.args[0], "value", None) if node.args else None
    guest = str(first).split(".")[0]
    if called == "MissingExtra" and path != "core/names/extras.py" and first not in EXTRAS:
        return "names no extra"
    if called == "load_guest":
        (extra,) = [getattr(keyword.value, "value", "") for keyword in node.keywords if keyword.arg == "extra"]
        return None if guest in EXTRAS.get(extra, ()) else "the extra does not bring the guest"
    return "a guest without a guard" if called.endswith("import_module") and guest in GUESTS else None


def fault_of_import(guest: Any, above: Any, path: Any) -> Any:
    tries = [outer for outer in above if isinstance(outer, ast.Try)]
    for extra in extras_raised(handler for outer in tries for handler in outer.handlers):
        if guest not in EXTRAS.get(getattr(extra, "value", ""), ()):
            return f"{guest} is not brought by that extra"
    inside = any(isinstance(outer, ast.FunctionDef) for outer in above)
    return f"{guest} without a guard" if inside and not tries and guest not in WITHOUT_A_GUARD.get(path, ()) else None


def faults(text: Any, path: Any) -> Iterator[Any]:
    for node, above in walk(ast.parse(text)):
        found = [fault_of_import(guest, above, path) for guest in imported(node)]
        found += [fault_of_call(node, path)] if isinstance(node, ast.Call) else []
        yield from (f"{path}:{node.lineno}: {fault}" for fault in found if fault)


def test_every_guest_is_guarded_and_every_guard_names_the_extra_that_brings_it() -> None:
    found: list[Any] = []
    for file in sorted((ROOT / "src/mosha").rglob("*.py")):
        path = str(file.relative_to(ROOT / "src/mosha"))
        found += faults(file.read_text(encoding="utf-8"), path)
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "raise MissingExtra(extra, needed_for='x')",
        "raise MissingExtra('panda', needed_for='x')",
        "def f():\n    import pandas",
        "try:\n    import torch\nexcept ImportError:\n    raise MissingExtra('plot', needed_for='x')",
        "load_guest('pandas', extra='polars', needed_for='x')",
        "load_guest('pandas', extra=extra, needed_for='x')",
        "load_guest('matplotlib.figure', extra='pandas', needed_for='x')",
        "importlib.import_module('pyarrow')",
    ],
)
def test_a_planted_fault_is_found(planted: str) -> None:
    assert list(faults(planted, "tables/planted.py"))


BEGIN = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
import importlib, pathlib, pkgutil, tempfile
import mosha
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "t.csv").write_text("p,x\\n1,2\\n3,4\\n")

def answer():
    table = mosha.protect(str(folder / "t.csv"), unit=mosha.Person("p", at_most=1), account=account())
    return table.count().release(epsilon=1)

def account(unit=None):
    unit = unit or mosha.Person("p", at_most=1)
    return mosha.Ledger.memory().account("a", unit=unit, epsilon=10, delta=1e-6)

def touch(what, call):
    try:
        call()
    except mosha.errors.MissingExtra as error:
        print(what, error.extra)
    except BaseException as error:
        print(what, "WRONG", repr(error)[:300])
    else:
        print(what, "works")

packages = [found.name for found in pkgutil.iter_modules(mosha.__path__, "mosha.") if found.ispkg]
for package in ["mosha", *packages]:
    touch(package, lambda: importlib.import_module(package))
    for name in getattr(sys.modules.get(package), "__all__", []):
        touch(f"{package}.{name}", lambda: getattr(sys.modules[package], name))
"""
SERVER = {"importlib.import_module('mosha.server')": "server"}
CALLS = {
    **dict.fromkeys(["starlette", "uvicorn", "jinja2", "python_multipart"], SERVER),
    "pandas": {"answer().to_pandas()": "pandas"},
    "polars": {"answer().to_polars()": "polars"},
    "pyarrow": {
        "answer().to_arrow()": "arrow",
        "(folder / 'z.csv.zst').write_bytes(b'0') and mosha.protect(str(folder / 'z.csv.zst'), "
        "unit=mosha.Person('p', at_most=1), account=account())": "arrow",
    },
    "matplotlib": {"answer().plot()": "plot"},
    "psycopg": {"mosha.Ledger('postgresql://nowhere/none')": "postgres"},
    "pymysql": {"mosha.connect.source('mariadb://nowhere/none', table='t')": "mysql"},
    "dp_accounting": {
        "importlib.import_module('mosha.accounting.interop').to_dp_event("
        "mosha.events.Laplace(1), neighbors='add-remove')": "interop"
    },
    "torch": {
        "mosha.learning.DPSGD(steps=1, rate=0.1, clip=1.0).train(0, 0, 0, 0, account=account())": "learning",
        "mosha.learning.DPSGD(steps=1, rate=0.1, clip=1.0).candidate(0, 0, like=())": "learning",
        "mosha.learning.private": "learning",
        "mosha.federated.Simulation(0, 0, (0, 0), local_steps=1, rate=0.1, batch=1)": "federated",
    },
    "flwr": {
        "mosha.federated.flower": "federated",
        "mosha.federated.flower_mod": "federated",
        "mosha.federated.flower_ask": "federated",
        "mosha.federated.flower_answer": "federated",
        "importlib.import_module('mosha.federated.flower.network')": "federated",
        "importlib.import_module('mosha.federated.flower.records')": "federated",
    },
    "tenseal": {"mosha.federated.KeyHolder()": "homomorphic"},
    "joserfc": {"importlib.import_module('mosha.server.people.oidc')": "oidc"},
    "numba": {"answer()": "works"},
    "altair": {"answer().to_chart()": "interactive"},
    "openpyxl": {"(folder / 't.xlsx').touch() or mosha.connect.source(str(folder / 't.xlsx'))": "excel"},
    "deltalake": {"(folder / 'd/_delta_log').mkdir(parents=True) or mosha.connect.source(str(folder / 'd'))": "delta"},
    "pyiceberg": {
        "(folder / 'i/metadata').mkdir(parents=True) or (folder / 'i/metadata/v1.metadata.json').write_text('{}') "
        "and mosha.connect.source(str(folder / 'i'))": "iceberg"
    },
    "pyspark": {"answer()": "works"},
}


def test_every_guest_is_blocked_once() -> None:
    assert set(CALLS) == GUESTS - {"sklearn", "igraph", "networkx"}


@pytest.mark.parametrize("guest", CALLS)
def test_without_a_guest_every_public_entry_works_or_names_its_extra(guest: Any) -> None:
    script = BEGIN + "".join(f"touch({call!r}, lambda: {call})\n" for call in CALLS[guest])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, guest], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines() if " WRONG " not in line)
    wrong = [line for line in done.stdout.splitlines() if " WRONG " in line]
    assert wrong == []
    assert len(found) > 200
    for call, extra in CALLS[guest].items():
        assert found[call] == extra, call
    named = set(found.values()) - {"works"}
    assert named <= {extra for extra, brought in EXTRAS.items() if guest in brought}
