"""Rules of clipping: from the norms of a unit's gradient to the weight that brings its contribution within one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.learning.gradients.engine import Rule

__all__ = ["clipping_rule"]

STABILISER = 0.01  # of automatic clipping: gradients far smaller than this fade instead of being blown up


def clipping_rule(kind: str, *, clip: float, scale: float) -> Rule:
    """The rule of that kind: weights w with |w G| <= scale for the whole gradient G of every unit (a column).

    Guarantee:
        flat, adaptive: w = scale min(1 / clip, 1 / |G|). automatic: w = scale / (|G| + stabiliser). per layer: of L
        parameters each gets |w_p G_p| <= scale / sqrt(L), and the squares of L such norms sum to scale^2 at most.

    Units:
        `scale` is what the norm of a contribution may be; the weights turn gradients into contributions, so that a
        gradient within `clip` is multiplied by scale / clip.

    >>> rule = clipping_rule("flat", clip=2.0, scale=1.0)
    >>> rule(np.array([[1.0, 0.0], [0.0, 4.0]])).tolist()
    [0.5, 0.25]
    """

    def flat(norms: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(scale / np.maximum(_whole(norms), clip))

    def automatic(norms: NDArray[np.float64]) -> NDArray[Any]:
        return scale / (_whole(norms) + STABILISER)

    def per_layer(norms: NDArray[np.float64]) -> NDArray[Any]:
        return scale / np.maximum(norms * math.sqrt(len(norms)), clip)

    return {"flat": flat, "adaptive": flat, "automatic": automatic, "per layer": per_layer}[kind]


def _whole(norms: NDArray[np.float64]) -> NDArray[Any]:
    return np.asarray(np.sqrt(np.square(norms).sum(axis=0)))
