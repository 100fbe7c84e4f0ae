"""Rules of clipping: from the norms of a unit's gradient to the weight that brings its contribution within one."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from mosha.learning.engine import Rule

__all__ = ["clipping_rule"]

STABILISER = 0.01  # of automatic clipping: gradients far smaller than this fade instead of being blown up


def clipping_rule(kind: str, *, clip: float, scale: float) -> Rule:
    """The rule of that kind: weights w with |w G| <= scale for the whole gradient G of every unit.

    Guarantee:
        flat, adaptive: w = scale min(1 / clip, 1 / |G|). automatic: w = scale / (|G| + stabiliser). per layer: of L
        parameters each gets |w_p G_p| <= scale / sqrt(L), and the squares of L such norms sum to scale^2 at most.

    Units:
        `scale` is what the norm of a contribution may be; the weights turn gradients into contributions, so that a
        gradient within `clip` is multiplied by scale / clip.

    >>> rule = clipping_rule("flat", clip=2.0, scale=1.0)
    >>> rule({"weight": torch.tensor([1.0, 4.0])})["weight"].tolist()
    [0.5, 0.25]
    """

    def flat(norms: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return dict.fromkeys(norms, scale / _whole(norms).clamp_min(clip))

    def automatic(norms: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return dict.fromkeys(norms, scale / (_whole(norms) + STABILISER))

    def per_layer(norms: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        share = math.sqrt(len(norms))
        return {name: scale / (found * share).clamp_min(clip) for name, found in norms.items()}

    return {"flat": flat, "adaptive": flat, "automatic": automatic, "per layer": per_layer}[kind]


def _whole(norms: Mapping[str, Tensor]) -> Tensor:
    return torch.from_numpy(np.sqrt(np.square([found.numpy() for found in norms.values()]).sum(axis=0)))
