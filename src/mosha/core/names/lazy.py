"""The public names of a package: loaded when they are first used, and the same whatever else was imported."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

__all__ = ["keep_public_names", "loaded_when_used"]


class _Package(ModuleType):
    """A package whose public names stay what they are.

    Importing `package.name` makes Python set `name` on the package to the module of that name. Where `name` is a public
    function or class, the public name wins; the module is there for `from package.name import ...`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        own = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not (own and name in self.__dict__["_public_names"]):
            super().__setattr__(name, value)


def keep_public_names(package: str, modules: Collection[str] = ()) -> None:
    """From now on no module takes the place of a public name of this package; to be called below `__all__`.

    `modules` are public names that are modules and not loaded yet.
    """
    module = sys.modules[package]
    public = {name for name in module.__all__ if not isinstance(vars(module).get(name), ModuleType)}
    module.__dict__["_public_names"] = frozenset(public.difference(modules))
    module.__class__ = _Package


def _explain(package: str, name: str) -> str:
    """What to write in place of a name that a package does not have; Python asks for some in underscores."""
    if name.startswith("_"):
        return f"module {package!r} has no attribute {name!r}"
    from mosha.core.names.attributes import explain_attribute  # noqa: PLC0415  (only wrong names need it)

    return explain_attribute(package, name, sys.modules[package].__all__)


def _load_module(name: str, package: str) -> ModuleType:
    """A module, without searches for garbage meanwhile: modules stay, and each search would visit all of them."""
    if not gc.isenabled():
        return importlib.import_module(name, package)
    gc.disable()
    try:
        return importlib.import_module(name, package)
    finally:
        gc.enable()


def loaded_when_used(
    package: str,
    names: Mapping[str, str],
    modules: Collection[str] = (),
    before: Callable[[str], None] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package; to be called below `__all__`.

    Args:
        package: the package's `__name__`.
        names: for each public name the module that has it, relative to the package: "sums", or ".exact.sums" for one
            of a package next door.
        modules: modules that are public by themselves; a mapping says where in the package each of them is.
        before: called with a name before its module is loaded: the place to ask for an extra that is missing.
        renamed: old names and what they are called now; an old name works with a DeprecationWarning.
    """

    def load(name: str) -> Any:
        if renamed and name in renamed:
            from mosha.core.names.deprecation import warn_of_old_name  # noqa: PLC0415  (only old names need it)

            warn_of_old_name(f"{package}.{name}", f"{package}.{renamed[name]}")
            return getattr(sys.modules[package], renamed[name])
        if name in modules:
            place = modules[name] if isinstance(modules, Mapping) else name
            value: Any = _load_module(f".{place}", package)
        elif name in names:
            if before is not None:
                before(name)
            value = getattr(_load_module(f".{names[name]}", package), name)
        else:
            raise AttributeError(_explain(package, name))
        setattr(sys.modules[package], name, value)
        return value

    keep_public_names(package, modules)

    def list_names() -> list[str]:
        return list(sys.modules[package].__all__)

    return load, list_names
