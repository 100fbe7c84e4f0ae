"""Calls with other arguments than a function has: an old name works and warns, what is wrong gets a sentence.

Python's own complaint (`release() takes 1 positional argument but 2 were given`) does not name what was meant. The
arguments of a call that does not fit are never read, so no text depends on them: only their names and their number do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import update_wrapper, wraps
from types import FunctionType
from typing import Any, Final, TypeVar

from mosha.core.errors import InvalidParameter, WrongCall
from mosha.core.names.deprecation import warn_of_old_name

__all__ = ["explain_wrong_calls", "renamed_argument"]

Callable_ = TypeVar("Callable_", bound=Callable[..., Any])

BY_NAME: Final = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
IN_ORDER: Final = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}

HANDED_ON: Final = {"options", "limits"}
"""What functions call the arguments that they hand on to another one; all else is named by whoever calls."""


def explain_wrong_calls(called: Callable_) -> Callable_:
    """The same function, or the same class, whose wrong calls are `WrongCall`s; a call that fits costs nothing more.

    Of a class, making one and its public methods are meant. Not for the door through which private rows pass (`Run`): a
    frame more would hold them while an error is on its way.

    >>> @explain_wrong_calls
    ... def release(*, epsilon: float) -> float:
    ...     return epsilon
    >>> release(0.5)
    Traceback (most recent call last):
    mosha.core.errors.WrongCall: release takes its arguments by name: write release(epsilon=...). Nothing was spent.
    """
    if not isinstance(called, type):
        explained: Callable_ = _explain(called)
        return explained
    own = [name for name in vars(called) if not name.startswith("_")]
    for name in ["__init__", *own]:
        method = inspect.getattr_static(called, name)
        if isinstance(method, FunctionType):
            setattr(called, name, _explain(method))
    return called


def _explain(function: Any) -> Any:
    refuse = _refuse

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            refuse(function, arguments, named, error)
            raise

    # The globals of the function itself: what looks for the examples of a module knows its functions by them.
    explained = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return update_wrapper(explained, function)


def _refuse(function: Any, arguments: tuple[Any, ...], named: Mapping[str, object], error: TypeError) -> None:
    """Raises a `WrongCall` if the call does not fit the function, so that nothing of it ran."""
    signature = inspect.signature(function)
    if isinstance(error, WrongCall):
        _say_where_it_came_in(function, signature, named, error)
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        parameters = list(signature.parameters.values())
    else:
        return
    shown = function.__name__
    if parameters and parameters[0].name == "self" and arguments:
        shown = type(arguments[0]).__name__ if shown == "__init__" else shown
        parameters, arguments = parameters[1:], arguments[1:]
    wrong = _find_unknown(shown, parameters, named) or _find_too_many(shown, parameters, arguments, named)
    raise (wrong or _find_missing(shown, parameters, arguments, named)).with_traceback(error.__traceback__) from None


def _say_where_it_came_in(
    function: Any, signature: inspect.Signature, named: Mapping[str, object], error: WrongCall
) -> None:
    """An unknown option that was handed on is told of the function that people called, with all names it takes."""
    own = [one.name for one in signature.parameters.values() if one.kind in BY_NAME and one.name != "self"]
    unknown = error.parameter
    if error.options and unknown is not None and unknown in named and unknown not in own:
        names = [*own, *(name for name in error.options if name not in own)]
        raise _refuse_name(function.__name__, unknown, names, names) from None


def _find_unknown(shown: str, parameters: list[inspect.Parameter], named: Mapping[str, object]) -> WrongCall | None:
    known = [one.name for one in parameters if one.kind in BY_NAME]
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    unknown = [] if takes_any else [name for name in named if name not in known]
    if not unknown:
        return None
    options = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return _refuse_name(shown, unknown[0], known, options)


def _refuse_name(shown: str, unknown: str, known: list[str], options: list[str]) -> WrongCall:
    close = get_close_matches(unknown, known, n=1, cutoff=0.5)
    if close:
        error = WrongCall("core.call_has_close_name", parameter=unknown, call=shown, close=close[0], spent="nothing")
    elif known:
        listed = ", ".join(known)
        error = WrongCall("core.call_has_no_name", parameter=unknown, call=shown, names=listed, spent="nothing")
    else:
        error = WrongCall("core.call_takes_no_names", parameter=unknown, call=shown, spent="nothing")
    error.options = tuple(options)
    return error


def _find_too_many(
    shown: str, parameters: list[inspect.Parameter], arguments: tuple[Any, ...], named: Mapping[str, object]
) -> WrongCall | None:
    in_order = [one.name for one in parameters if one.kind in IN_ORDER]
    takes_any = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    if takes_any or len(arguments) <= len(in_order):
        return None
    free = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY and one.name not in named]
    free.sort(key=lambda one: one.default is not one.empty)  # what is needed comes first
    by_name = [one.name for one in free]
    if any(one.kind is inspect.Parameter.VAR_KEYWORD and one.name not in HANDED_ON for one in parameters):
        by_name = [one.name for one in free if one.default is one.empty] or ["name"]  # named by whoever calls
    written = _write(in_order, by_name[: len(arguments) - len(in_order)])
    if not in_order and by_name:
        return WrongCall("core.call_is_by_name", call=shown, written=written, spent="nothing")
    code = "core.call_goes_on_by_name" if by_name else "core.call_takes_fewer"
    return WrongCall(code, call=shown, written=written, most=len(in_order), spent="nothing")


def _find_missing(
    shown: str, parameters: list[inspect.Parameter], arguments: tuple[Any, ...], named: Mapping[str, object]
) -> WrongCall:
    needed = [one for one in parameters if one.default is one.empty and one.kind in BY_NAME | IN_ORDER]
    given = {one.name for one in [one for one in parameters if one.kind in IN_ORDER][: len(arguments)]} | set(named)
    missing = [one.name for one in needed if one.name not in given]
    written = _write(
        [one.name for one in needed if one.kind in IN_ORDER], [one.name for one in needed if one.kind not in IN_ORDER]
    )
    if not missing:  # given twice, in order and by name
        twice = next((one.name for one in parameters if one.name in named), "")
        return WrongCall("core.call_gives_twice", parameter=twice, call=shown, spent="nothing")
    return WrongCall(
        "core.call_misses",
        parameter=missing[0],
        call=shown,
        missing=", ".join(missing),
        written=written,
        spent="nothing",
    )


def _write(in_order: list[str], by_name: list[str]) -> str:
    return ", ".join([*in_order, *(f"{name}=..." for name in by_name)])


def renamed_argument(**renamed: str) -> Callable[[Callable_], Callable_]:
    """A function or class that still takes arguments by their old names (`old="new"`), with a DeprecationWarning.

    >>> @renamed_argument(low="lowest")
    ... def first(*, lowest):
    ...     return lowest
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     first(low=3)
    3
    >>> seen[0].category.__name__
    'DeprecationWarning'
    """

    def wrap(wrapped: Callable_) -> Callable_:
        if isinstance(wrapped, type):
            wrapped.__init__ = _take_old_names(wrapped.__init__, wrapped.__name__, renamed)  # type: ignore[misc]
            return wrapped
        return _take_old_names(wrapped, getattr(wrapped, "__name__", "function"), renamed)  # type: ignore[return-value]

    return wrap


def _take_old_names(function: Callable[..., object], name: str, renamed: dict[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def call(*positional: object, **named: object) -> object:
        for old, new in renamed.items():
            if old in named:
                if new in named:
                    raise InvalidParameter("core.both_names", parameter=new, old=old)
                warn_of_old_name(f"the argument {old!r} of {name}", repr(new))
                named[new] = named.pop(old)
        return function(*positional, **named)

    return call
