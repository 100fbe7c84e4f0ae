"""The options that are chosen by a word: one alias for each concept, where editors and type checkers find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast, get_args

from mosha.core.deprecation import warn_of_old_name
from mosha.core.errors import InvalidParameter

__all__ = ["ClippingName", "NoiseName", "SamplingName", "choose"]

ClippingName = Literal["flat", "per_layer", "adaptive", "automatic"]
"""How gradients are clipped in a training."""

NoiseName = Literal["gaussian", "laplace"]
"""The law of additive noise."""

SamplingName = Literal["poisson", "shuffled", "fixed_size"]
"""How the units of a batch are drawn."""

Word = TypeVar("Word", bound=str)


def choose(parameter: str, value: object, options: Any, *, renamed: Mapping[str, str] | None = None) -> Any:
    """The word that was chosen, if it is one of `options`: a `Literal`, or a list of words.

    Args:
        parameter: the name of the argument, for the error.
        value: what was given.
        options: the words that are allowed.
        renamed: old spellings of words and what they are called now; each is taken with a DeprecationWarning.

    >>> from typing import Literal
    >>> choose("release", "each", Literal["each", "total"])
    'each'
    """
    words = get_args(options) or tuple(options)
    if renamed and isinstance(value, str) and value in renamed:
        warn_of_old_name(f"{parameter}={value!r}", f"{parameter}={renamed[value]!r}")
        value = renamed[value]
    if value not in words:
        raise InvalidParameter("core.unknown_option", parameter=parameter, options=[repr(word) for word in words])
    return cast("Any", value)
