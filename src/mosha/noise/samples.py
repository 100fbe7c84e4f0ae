"""Samples in the shape that was asked for, from the generator that was given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mosha.core.errors import InvalidParameter
from mosha.core.randomness import Rng
from mosha.noise.generators.replay import KeyedRandom
from mosha.noise.generators.secure_random import SecureRandom, secure
from mosha.noise.parameters import shape_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.noise.envelope import Envelope
    from mosha.noise.parameters import Size

__all__ = ["TABLES", "draw", "generator"]

TABLES: Final = 64
"""How many tables (about 200 kB each) of one kind are kept for later calls."""


def generator(rng: Rng | None) -> Rng:
    """The generator to use: the process-wide secure one unless another is given."""
    if rng is None:
        return secure()
    if not isinstance(rng, SecureRandom | KeyedRandom | Rng):  # the protocol last: asking it is slow
        raise InvalidParameter("noise.not_a_generator", parameter="rng", kind=type(rng).__name__)
    return rng


def draw(table: Envelope, size: Size, rng: Rng | None) -> int | NDArray[np.int64]:
    """One sample for `size` None, else an array of that shape."""
    source = generator(rng)
    if size is None:
        return table.draw_one(source)
    shape = shape_of(size)
    return table.draw_many(math.prod(shape), source).reshape(shape)
