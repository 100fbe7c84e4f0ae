"""Public names: what each facade offers, and how much of it is described and shown."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, ModuleType

import mosha
from mosha.core.names.deprecation import renamed_method


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
                if isinstance(plain, FunctionType) and _is_ours(plain) and not method.startswith("_"):
                    yield f"{name}.{method}", plain


def _is_ours(function: FunctionType) -> bool:
    """Whether it is a function of the package, and not the old name of one, which warns."""
    ours = function.__module__.startswith("mosha") and function.__module__ != renamed_method.__module__
    return ours and function.__name__ != "<lambda>"  # the default of a field


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
    return (
        written and not generated,
        ">>>" in texts,
        len(_arguments(value)),
        len(_arguments(value)) - len(_find_silent(owner, value)),
    )


def _find_silent(owner: object, value: object) -> list[str]:
    """The arguments that nothing describes: neither the function, nor its class, nor what either was derived from."""
    method = "__init__" if inspect.isclass(value) else getattr(value, "__name__", "")
    texts = "\n".join([inspect.getdoc(value) or "", *_read_bases(owner, method)])
    said = r"`(\w+=)?{}\b|^\s*\*{{0,2}}(\w+, )*{}\b[^.\n]*:"
    return [name for name in _arguments(value) if not re.search(said.format(name, name), texts, re.MULTILINE)]


def _read_bases(owner: object, method: str) -> Iterator[str]:
    for base in getattr(owner, "__mro__", ()):
        if base.__module__.startswith("mosha"):
            yield base.__doc__ or ""
            yield inspect.getdoc(vars(base).get(method)) or ""


def _arguments(value: object) -> list[str]:
    if inspect.isclass(value) and (issubclass(value, Enum) or getattr(value, "_is_protocol", False)):  # not called
        return []
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


def without_example() -> dict[str, list[str]]:
    """Public functions, classes and methods that no example shows, by facade; each at its first name."""
    found: dict[str, list[str]] = defaultdict(list)
    seen: set[int] = set()
    for facade, module in facades().items():
        for name, value in objects(module):
            if id(value) not in seen and not _row(getattr(module, name.split(".")[0]), value)[1]:
                found[facade].append(name)
            seen.add(id(value))
    return dict(found)


def undescribed() -> dict[str, list[str]]:
    """Public arguments that no docstring describes, by facade; each at its first name."""
    found: dict[str, list[str]] = defaultdict(list)
    seen: set[int] = set()
    for facade, module in facades().items():
        for name, value in objects(module):
            if id(value) not in seen:
                silent = _find_silent(getattr(module, name.split(".")[0]), value)
                found[facade] += [f"{name}({argument})" for argument in silent]
            seen.add(id(value))
    return {facade: names for facade, names in found.items() if names}


def free_options() -> list[str]:
    """Public arguments that are plain text although their own code takes no text but some words."""
    found = []
    seen: set[int] = set()
    for facade, module in facades().items():
        for name, value in objects(module):
            if id(value) in seen:
                continue
            seen.add(id(value))
            plain = [n for n, annotation in _annotations(value).items() if annotation in {"str", "str | None"}]
            found += [f"{facade}.{name}({argument})" for argument in plain if argument in _find_closed(value)]
    return found


def _annotations(value: object) -> dict[str, str]:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}
    return {name: str(parameter.annotation) for name, parameter in signature.parameters.items()}


def _find_closed(value: object) -> set[str]:
    """The names that the code compares with a list of words: `x not in ("a", "b")`, `choose("x", ...)`, `one_of`."""
    try:
        source = textwrap.dedent(inspect.getsource(value))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return set()
    return closed_names(source)


def closed_names(source: str) -> set[str]:
    """The arguments or fields that this code takes from a list of words.

    >>> sorted(closed_names('if how not in ("inner", "left"):\\n    choose("side", side, SIDES)'))
    ['how', 'side']
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            listed = node.comparators[0]
            words = getattr(listed, "elts", [])
            texts = words and all(isinstance(word, ast.Constant) and isinstance(word.value, str) for word in words)
            named = node.left.attr if isinstance(node.left, ast.Attribute) else getattr(node.left, "id", "")
            if texts or (isinstance(listed, ast.Name) and listed.id.isupper() and listed.id[0] != "_"):
                found.add(named)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "choose" and node.args:
            found.add(str(getattr(node.args[0], "value", "")))
        if (
            isinstance(node, ast.Call)
            and getattr(node.args[0] if node.args else None, "value", "") == "core.unknown_option"
        ):
            found |= {str(getattr(k.value, "value", "")) for k in node.keywords if k.arg == "parameter"}
    return found - {""}
