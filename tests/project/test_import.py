"""Importing costs next to nothing: no numerics, no guests, few modules."""

import json
import subprocess
import sys

import pytest

GUESTS = {"numpy", "scipy", "cryptography", "duckdb", "sqlglot", "typer", "rich", "matplotlib", "psycopg", "sqlite3"}


def loaded(statement):
    script = f"import sys\n{statement}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def bare():
    return loaded("pass")


def test_importing_mosha_loads_no_guest_and_few_modules(bare):
    new = loaded("import mosha") - bare
    assert not {module.split(".")[0] for module in new} & GUESTS
    ours = {module for module in new if module.startswith("mosha")}
    assert ours == {"mosha", "mosha._version", "mosha.core", "mosha.core.lazy"}
    assert len(new) <= 20


def test_the_words_of_the_core_need_the_standard_library_alone(bare):
    new = loaded("import mosha; mosha.Person, mosha.events.Laplace, mosha.Account, mosha.guarantees.Pure") - bare
    assert {module.split(".")[0] for module in new} <= set(sys.stdlib_module_names) | {"mosha"}


def test_every_public_name_can_be_had():
    script = (
        "import mosha\nfor name in mosha.__all__: getattr(mosha, name)\nassert set(dir(mosha)) == set(mosha.__all__)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    import mosha

    with pytest.raises(AttributeError, match="surprise"):
        mosha.surprise  # noqa: B018


@pytest.mark.parametrize("module", ["accounting", "events", "ledger", "mechanisms", "noise"])
def test_a_name_stays_what_it_is_whatever_was_loaded_before(module):
    """A submodule of the same name once took the place of a function that had been used."""
    script = (
        f"import mosha\npackage = mosha.{module}\n"
        "first = {name: getattr(package, name) for name in package.__all__}\n"
        "import importlib, pkgutil\n"
        "for found in pkgutil.iter_modules(package.__path__ if hasattr(package, '__path__') else []):\n"
        "    importlib.import_module(package.__name__ + '.' + found.name)\n"
        "changed = [name for name in package.__all__ if getattr(package, name) is not first[name]]\n"
        "assert not changed, changed\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
