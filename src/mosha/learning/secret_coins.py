"""The randomness of the model itself (dropout): secret, and fresh for every private batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from mosha.core.randomness import Rng

__all__ = ["secret_coins"]

WORDS = 624  # of 32 bits, the whole state of PyTorch's generator (Mersenne twister)
HEAD = 24  # bytes before them in what `get_rng_state` gives


@contextmanager
def secret_coins(rng: Rng) -> Iterator[None]:
    """Inside, PyTorch draws from a state that nobody knows; afterwards it goes on where it was.

    A public seed (`torch.manual_seed`) would give every place in a batch a known mask, and a unit more or less would
    hand known masks from one unit to another. The state is filled as a whole: a seed of PyTorch holds 32 bits only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # nothing drawn yet: the words below are what comes next
        state = torch.get_rng_state()
        words = np.frombuffer(rng.bytes(4 * WORDS), np.uint32).astype(np.uint64)
        state.numpy()[HEAD : HEAD + 8 * WORDS] = words.view(np.uint8)
        torch.set_rng_state(state)
        yield
