"""Public names: what each facade offers, and how much of it is described and shown."""

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType

import mosha


@dataclass(frozen=True)
class Described:
    """How many public functions, classes and arguments there are, and how many are described."""

    names: int
    with_docstring: int
    with_example: int
    arguments: int
    arguments_described: int


def facades() -> dict[str, ModuleType]:
    """The packages and modules directly under `mosha` that have public names."""
    found = {"mosha": mosha}
    for module in pkgutil.iter_modules(mosha.__path__):
        if not module.name.startswith("_") and module.name != "cli":
            loaded = importlib.import_module(f"mosha.{module.name}")
            if hasattr(loaded, "__all__"):
                found[f"mosha.{module.name}"] = loaded
    return found


def objects(facade: ModuleType) -> Iterator[tuple[str, object]]:
    """The public functions and classes of a facade, and the public methods of its classes."""
    for name in facade.__all__:
        value = getattr(facade, name)
        if inspect.isclass(value) or isinstance(value, FunctionType):
            yield name, value
        if inspect.isclass(value):
            for method, inner in vars(value).items():
                plain = getattr(inner, "__func__", inner)
                own = isinstance(plain, FunctionType) and plain.__module__.startswith("mosha")
                if own and not method.startswith("_"):
                    yield f"{name}.{method}", plain


def describe() -> dict[str, Described]:
    """The figures of each facade; an object with several names counts at the first."""
    found: dict[str, Described] = {}
    seen: set[int] = set()
    for facade, module in facades().items():
        rows: list[tuple[bool, bool, int, int]] = []
        for name, value in objects(module):
            if id(value) not in seen:
                seen.add(id(value))
                rows.append(_row(getattr(module, name.split(".")[0]), value))
        found[facade] = Described(len(rows), *(sum(row[i] for row in rows) for i in range(4)))
    return {facade: figures for facade, figures in found.items() if figures.names}


def _row(owner: object, value: object) -> tuple[bool, bool, int, int]:
    text = inspect.getdoc(value) or ""
    texts = text + (inspect.getdoc(owner) or "")
    written = bool(vars(value).get("__doc__") if inspect.isclass(value) else text)
    generated = inspect.isclass(value) and text.startswith(f"{value.__name__}(")
    names = _arguments(value)
    said = [name for name in names if re.search(rf"`{name}\b|^\s*\*{{0,2}}{name}\b[^.\n]*:", texts, re.MULTILINE)]
    return written and not generated, ">>>" in texts, len(names), len(said)


def _arguments(value: object) -> list[str]:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [name for name in signature.parameters if name not in {"self", "cls"} and not name.startswith("_")]


def missing() -> dict[str, list[str]]:
    """Public functions and classes without a docstring, by facade."""
    found: dict[str, list[str]] = defaultdict(list)
    for facade, module in facades().items():
        for name, value in objects(module):
            if not _row(getattr(module, name.split(".")[0]), value)[0]:
                found[facade].append(name)
    return dict(found)
