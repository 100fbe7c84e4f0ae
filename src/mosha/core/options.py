"""The options that are chosen by a word: one alias for each concept, where editors and type checkers find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast, get_args

from mosha.core.deprecation import warn_of_old_name
from mosha.core.errors import InvalidParameter

__all__ = [
    "ArcReading",
    "ClippingName",
    "DensitySmoothing",
    "MeanMethod",
    "NoiseName",
    "ReadoutWord",
    "SamplingName",
    "SubgraphMethod",
    "SyntheticGraph",
    "WindowMethod",
    "choose",
]

ClippingName = Literal["flat", "per_layer", "adaptive", "automatic"]
"""How gradients are clipped in a training."""

NoiseName = Literal["gaussian", "laplace"]
"""The law of additive noise."""

SamplingName = Literal["poisson", "shuffled", "fixed_size"]
"""How the units of a batch are drawn."""

Word = TypeVar("Word", bound=str)

ArcReading = Literal["refuse", "symmetrize"]
"""What to do with a directed graph: refuse it, or read its arcs as edges."""

SubgraphMethod = Literal["ladder", "smooth"]
"""How subgraphs are counted at edge level: by a ladder, or by smooth sensitivity."""

SyntheticGraph = Literal["clustered", "communities", "filter"]
"""What a synthetic graph keeps: degrees and triangles, communities, or single edges."""

MeanMethod = Literal["hybrid", "piecewise", "duchi"]
"""How a device reports a number."""

DensitySmoothing = Literal["averaged", "em"]
"""How a distribution is estimated from local reports."""

ReadoutWord = Literal["running", "instant"]
"""What a stream publishes at each step: the sum so far, or the step by itself."""

WindowMethod = Literal["distribution", "absorption"]
"""How a stream that hides windows spends its budget on steps that changed."""


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
    if not isinstance(value, str) or value not in words:
        raise InvalidParameter("core.unknown_option", parameter=parameter, options=[repr(word) for word in words])
    return cast("Any", value)
