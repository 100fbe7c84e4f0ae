"""The options that are chosen by a word: one alias for each concept, where editors and type checkers find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from mosha.core.errors import InvalidParameter
from mosha.core.names.deprecation import warn_of_old_name

__all__ = [
    "ArcReading",
    "ArcSide",
    "BanditMethod",
    "ClippingName",
    "DateStep",
    "DateUnit",
    "DensitySmoothing",
    "EncoderName",
    "EstimateGrade",
    "GenomeScore",
    "JoinName",
    "LossName",
    "LossReduction",
    "MeanMethod",
    "MissingNumber",
    "MissingValue",
    "NoiseName",
    "QuantileBars",
    "RuleName",
    "RunsName",
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

RunsName = Literal["poisson", "negative-binomial"]
"""The law of the number of runs of which the best is kept."""

EncoderName = Literal["optimized", "square_root"]
"""Which coefficients correlated noise has."""

ArcReading = Literal["refuse", "symmetrize"]
"""What to do with a directed graph: refuse it, or read its arcs as edges."""

ArcSide = Literal["out", "in"]
"""Which arcs of a vertex are counted: those that leave it, or those that reach it."""

SubgraphMethod = Literal["ladder", "smooth"]
"""How subgraphs are counted at edge level: by a ladder, or by smooth sensitivity."""

SyntheticGraph = Literal["clustered", "communities", "filter"]
"""What a synthetic graph keeps: degrees and triangles, communities, or single edges."""

MeanMethod = Literal["hybrid", "piecewise", "duchi"]
"""How a device reports a number."""

DensitySmoothing = Literal["averaged", "em"]
"""How a distribution is estimated from local reports."""

BanditMethod = Literal["ucb", "thompson"]
"""How a bandit chooses an arm: by an upper bound, or by a draw."""

GenomeScore = Literal["homer", "likelihood"]
"""How an attacker compares a genome with published frequencies."""

QuantileBars = Literal["rows", "values"]
"""What error bars of quantiles are counted in: rows, or the unit of the column."""

DateUnit = Literal["year", "quarter", "month", "week", "day", "hour", "minute"]
"""What the first moment of is taken."""

DateStep = Literal["day", "week", "month", "quarter", "year"]
"""How far the dates of a range lie apart."""

EstimateGrade = Literal["certified", "modelled"]
"""What stands behind a number of a synthetic table: unbiased with an error bar, or what a model says."""

JoinName = Literal["inner", "left"]
"""Which rows a join keeps: those that match, or all on the left."""

LossName = Literal["squared", "logistic", "softmax", "poisson"]
"""The loss of a linear or additive model."""

LossReduction = Literal["mean", "sum"]
"""What a loss does over a batch."""

MissingNumber = Literal["drop", "low", "middle", "high"]
"""What a value that is no number stands for in a sum."""

MissingValue = Literal["drop", "middle"]
"""What a value that is no number stands for in a mean."""

RuleName = Literal["auto", "either", "pure", "zero-concentrated", "renyi", "gaussian"]
"""The rule by which an account admits releases."""

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
