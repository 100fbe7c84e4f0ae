"""The randomness of the model itself (dropout): secret, and fresh for every private batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from mosha.core.randomness import Rng

__all__ = ["DropoutCoins"]

WORDS = 624  # of 32 bits, the whole state of PyTorch's generator (Mersenne twister)
HEAD = 24  # bytes before them in what `get_rng_state` gives


class DropoutCoins:
    """Coins for the physical batches of one step, out of one secret key: how many batches there are moves no noise.

    A public seed (`torch.manual_seed`) would give every place in a batch a known mask, and a unit more or less would
    hand known masks from one unit to another. The state is filled as a whole: a seed of PyTorch holds 32 bits only.
    """

    def __init__(self, rng: Rng) -> None:
        self._key, self._number = rng.bytes(32), 0

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Inside, PyTorch draws from a state that nobody knows; afterwards it goes on where it was."""
        self._number += 1
        stream = hashlib.shake_256(self._key + self._number.to_bytes(8, "big")).digest(4 * WORDS)
        state = torch.Generator().manual_seed(0).get_state()  # nothing drawn yet: the words below are what comes next
        words = np.frombuffer(stream, np.uint32).astype(np.uint64)
        state.numpy()[HEAD : HEAD + 8 * WORDS] = words.view(np.uint8)
        before = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            yield
        finally:
            torch.set_rng_state(before)
