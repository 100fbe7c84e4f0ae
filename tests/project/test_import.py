"""Importing costs next to nothing: no numerics, no guests, few modules."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GUESTS = {"numpy", "scipy", "cryptography", "duckdb", "sqlglot", "typer", "rich", "matplotlib", "psycopg", "sqlite3"}


def loaded(statement: Any) -> set[Any]:
    script = f"import sys\n{statement}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def bare() -> Any:
    return loaded("pass")


def test_importing_mosha_loads_no_guest_and_few_modules(bare: Any) -> None:
    new = loaded("import mosha") - bare
    assert not {module.split(".")[0] for module in new} & GUESTS
    ours = {module for module in new if module.startswith("mosha")}
    assert ours == {"mosha", "mosha._version", "mosha.core", "mosha.core.names", "mosha.core.names.lazy"}
    assert len(new) <= 20


def test_the_words_of_the_core_need_the_standard_library_alone(bare: Any) -> None:
    new = loaded("import mosha; mosha.Person, mosha.events.Laplace, mosha.Account, mosha.guarantees.Pure") - bare
    assert {module.split(".")[0] for module in new} <= set(sys.stdlib_module_names) | {"mosha"}


def test_every_public_name_can_be_had() -> None:
    script = (
        "import mosha\nfor name in mosha.__all__: getattr(mosha, name)\nassert set(dir(mosha)) == set(mosha.__all__)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    import mosha

    with pytest.raises(AttributeError, match="surprise"):
        mosha.surprise  # noqa: B018


QUESTIONS = """
import mosha, numpy
from mosha.connect.engines.compiled_path import COMPILED_FROM
account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=3, delta=1e-6)
rows = {"who": numpy.arange(COMPILED_FROM), "days": numpy.zeros(COMPILED_FROM)}
table = mosha.protect(rows, unit=mosha.Person("who", at_most=2), account=account)
for _ in range(%d):
    table.mean("days", between=(0, 30)).release(epsilon=0.1)
"""


def test_a_first_answer_waits_for_no_kernels_and_no_scipy_and_a_second_one_has_the_kernels() -> None:
    assert not {"numba", "scipy", "pandas"} & loaded(QUESTIONS % 1)
    assert "numba" in loaded(QUESTIONS % 2)


NAMES = """
import importlib, json, pkgutil, random, sys, types, warnings
warnings.simplefilter("ignore")
import mosha
modules = [found.name for found in pkgutil.walk_packages(mosha.__path__, "mosha.") if "__main__" not in found.name]
order = sorted(modules)
random.shuffle(order)
if "modules first" in sys.argv:
    for name in order:
        importlib.import_module(name)
found = {}
for package in ["mosha", *modules]:
    package = importlib.import_module(package)
    for name in getattr(package, "__all__", []) if hasattr(package, "__path__") else []:
        value = getattr(package, name)
        where = [getattr(value, part, None) for part in ("__module__", "__qualname__", "__name__")]
        found[package.__name__ + "." + name] = [type(value).__name__, *where]
print(json.dumps([found, order]))
"""


def names(*how: Any) -> Any:
    done = subprocess.run([sys.executable, "-c", NAMES, *how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_public_name_of_every_package_stays_what_it_is_whatever_was_imported_before() -> None:
    """A module of the same name once took the place of a public function."""
    (expected, _), (found, order) = names("names first"), names("modules first")
    assert len(expected) > 300
    assert {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]} == {}, order


def test_every_package_with_public_names_keeps_them() -> None:
    script = (
        "import importlib, pkgutil, types, mosha\n"
        "for found in pkgutil.walk_packages(mosha.__path__, 'mosha.'):\n"
        "    if found.ispkg:\n"
        "        package = importlib.import_module(found.name)\n"
        "        for name in getattr(package, '__all__', []):\n"
        "            before = getattr(package, name)\n"
        "            setattr(package, name, types.ModuleType(f'{found.name}.{name}'))\n"
        "            kept = getattr(package, name) is before or isinstance(before, types.ModuleType)\n"
        "            assert kept, (found.name, name)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_places_where_tables_live_are_public_as_documented() -> None:
    script = "import mosha\nassert mosha.connect.engines.duckdb.DuckDB()"
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_command_with_one_answer_looks_for_no_garbage(tmp_path: Path) -> None:
    """Looking for it while modules are loaded took a fifteenth of the time of a first answer."""
    data = tmp_path / "visits.csv"
    data.write_text("who,days\n" + "".join(f"{who},{who % 9}\n" for who in range(100)))
    script = (
        "import gc, sys\nfrom mosha.cli import main\n"
        "before = sum(found['collections'] for found in gc.get_stats())\ncode = main()\n"
        "print(code, sum(found['collections'] for found in gc.get_stats()) - before)"
    )
    limits = ["--unit", "who", "--at-most", "1", "--epsilon", "1"]
    asked = ["query", str(data), "SELECT COUNT(*) AS n FROM visits", *limits]
    done = subprocess.run([sys.executable, "-c", script, *asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 0"
