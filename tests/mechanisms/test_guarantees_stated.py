"""Every factory and every statistic states its guarantee."""

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import mosha.mechanisms
from mosha.core.measurement import Measurement
from mosha.mechanisms import Statistic

FACTORIES = [
    getattr(mosha.mechanisms, name)
    for name in mosha.mechanisms.__all__
    if inspect.isfunction(getattr(mosha.mechanisms, name))
    and inspect.signature(getattr(mosha.mechanisms, name)).return_annotation in ("Measurement", Measurement)
]


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_every_factory_states_guarantee_units_and_an_example(factory: Any) -> None:
    text = inspect.getdoc(factory)
    if factory.__name__ == "additive":
        assert "best_noise" in text  # which states them
        return
    assert "Guarantee:" in text
    assert "Units:" in text
    assert ">>>" in text


def test_there_are_as_many_factories_as_there_should_be() -> None:
    assert len(FACTORIES) == 13
    for factory in FACTORIES:
        parameters = inspect.signature(factory).parameters
        private = [p for p in parameters.values() if p.name in {"epsilon", "delta", "unit", "rho"}]
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in private)
        assert "unit" in parameters


def test_every_statistic_states_its_guarantee() -> None:
    rooms = [mosha.mechanisms, importlib.import_module("mosha.exact")]
    names = [f"{room.__name__}.{info.name}" for room in rooms for info in pkgutil.iter_modules(room.__path__)]
    for module in map(importlib.import_module, names):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and hasattr(kind, "exact") and kind is not Statistic:
                assert "Guarantee:" in inspect.getdoc(kind), kind
