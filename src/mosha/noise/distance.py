"""How far the samplers are from the distributions they name: a number to charge, not a feeling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mosha.noise.parameters import shape_of

if TYPE_CHECKING:
    from mosha.noise.parameters import Size

__all__ = ["GAP_PER_SAMPLE", "gap"]

GAP_PER_SAMPLE: Final = 2.0**-1000
"""An upper bound, for every sampler of this package, on the total variation distance of one sample."""


def gap(size: Size = None) -> float:
    """An upper bound on the total variation distance of `size` samples from the distribution they name.

    Guarantee:
        A release whose noise has gap g is (epsilon, delta + (1 + exp(epsilon)) g)-private where exact noise
        would be (epsilon, delta)-private. Proof of the bound: the samplers differ from their laws only by
        never answering with |x| >= 2**62, so the distance is P(|X| >= 2**62). Laplace of scale s <= 2**50:
        at most 2 exp(-2**62 / s) <= 2 exp(-4096) < 2**-5900; Gaussian: less; boxes: below 2**-1900
        (`box_noise`). `bernoulli`, `uniform` and the selections have no gap. Samples are independent: gaps add.

    Units:
        A probability. It is about the distributions, given uniform bits: how well AES-256 imitates
        those is a matter of computation, not of this number.

    Args:
        size: how many samples, as a number or a shape; None for one.

    >>> gap(1_000_000) < 2.0**-900
    True
    """
    return GAP_PER_SAMPLE * (1 if size is None else math.prod(shape_of(size)))
