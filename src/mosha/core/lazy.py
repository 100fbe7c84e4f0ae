"""Names of a package that are loaded when they are first used, so that importing the package costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["loaded_when_used"]


def loaded_when_used(
    package: str,
    names: Mapping[str, str],
    modules: Collection[str] = (),
    before: Callable[[str], None] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: the package's `__name__`.
        names: for each public name the module of the package that has it.
        modules: modules that are public by themselves.
        before: called with a name before its module is loaded: the place to ask for an extra that is missing.
    """

    def load(name: str) -> Any:
        if name in modules:
            value: Any = importlib.import_module(f"{package}.{name}")
        elif name in names:
            if before is not None:
                before(name)
            value = getattr(importlib.import_module(f"{package}.{names[name]}"), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return list(sys.modules[package].__all__)

    return load, listed
