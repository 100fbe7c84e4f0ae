"""Every factory states its guarantee, and a proof in a file of its own moves when the code moves."""

import importlib
import inspect
import pkgutil
import re

import pytest

import mosha.mechanisms
from mosha.core.measurement import Measurement
from mosha.mechanisms import Statistic
from tests.mechanisms.proof_stamps import FOLDER, STAMP, code, code_of, stamps

FACTORIES = [
    getattr(mosha.mechanisms, name)
    for name in mosha.mechanisms.__all__
    if inspect.isfunction(getattr(mosha.mechanisms, name))
    and inspect.signature(getattr(mosha.mechanisms, name)).return_annotation in ("Measurement", Measurement)
]


@pytest.mark.parametrize(("path", "module", "name", "stamp"), stamps(), ids=lambda value: str(value).split("/")[-1])
def test_the_proof_is_about_the_code_there_is(path, module, name, stamp):
    assert stamp == code_of(module, name), (
        f"{module}:{name} has changed since {path.name} was written. Read the proof again; if it still holds, "
        "stamp it: python tests/mechanisms/proof_stamps.py"
    )


def test_every_proof_file_names_code_and_every_named_file_exists():
    for path in FOLDER.glob("*.md"):
        assert STAMP.search(path.read_text()), f"{path.name} says nothing about which code it proves"
    for path in FOLDER.glob("*.py"):
        for named in re.findall(r"`(\w+\.md)`", path.read_text()):
            assert (FOLDER / named).exists(), f"{path.name} refers to {named}"


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_every_factory_states_guarantee_units_and_an_example(factory):
    text = inspect.getdoc(factory)
    if factory.__name__ == "additive":
        assert "best_noise" in text  # which states them
        return
    assert "Guarantee:" in text
    assert "Units:" in text
    assert ">>>" in text


def test_there_are_as_many_factories_as_there_should_be():
    assert len(FACTORIES) == 13
    for factory in FACTORIES:
        parameters = inspect.signature(factory).parameters
        private = [p for p in parameters.values() if p.name in {"epsilon", "delta", "unit", "rho"}]
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in private)
        assert "unit" in parameters


def test_every_statistic_states_its_guarantee():
    for info in pkgutil.iter_modules(mosha.mechanisms.__path__):
        module = importlib.import_module(f"mosha.mechanisms.{info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and hasattr(kind, "exact") and kind is not Statistic:
                assert "Guarantee:" in inspect.getdoc(kind), kind


def test_a_stamp_changes_with_the_code_and_with_nothing_else():
    first = 'def f(x):\n    """One."""\n    return x + 1  # why\n'
    same = 'def f(x):\n    """Two, longer."""\n\n    return x + 1\n'
    other = 'def f(x):\n    """One."""\n    return x + 2\n'
    assert code(first) == code(same)
    assert code(first) != code(other)
    inner = "class A:\n    def g(self):\n        return 1\n"
    assert code(inner) == code(inner.replace("return", '"""Said."""\n        return'))
