"""Options that several commands take: written once, as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["spread_options"]


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes each field of its dataclass arguments as an option of its own.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int
    ...     height: int = 2
    >>> def show(name: str, *, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> spread_options(show)(name="room", width=3, height=4)
    room 12
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _list_parameters(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def run(**given: object) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _list_parameters(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default_of(field), annotation=hints[field.name]
        )
        for field in fields(kind)
    ]


def _default_of(field: Field[Any]) -> object:
    return inspect.Parameter.empty if field.default is MISSING else field.default
