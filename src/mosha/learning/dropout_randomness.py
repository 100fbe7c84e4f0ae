"""The randomness of the model itself (dropout): secret, and fresh for every private batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from mosha.core.measurement import Rng
from mosha.learning.gradients.device import find_generator, fork_randomness

__all__ = ["DropoutCoins"]

WORDS = 624  # of 32 bits, the whole state of PyTorch's generator (Mersenne twister)
HEAD = 24  # bytes before them in what `get_rng_state` gives
COUNTER = 16  # bytes of the state of a generator that counts (Philox): a key, and where it counts from
CPU = torch.device("cpu")


class DropoutCoins:
    """Coins for the physical batches of one step, out of one secret key: how many batches there are moves no noise.

    A public seed (`torch.manual_seed`) would give every place in a batch a known mask, and a unit more or less would
    hand known masks from one unit to another. The state is filled as a whole: a seed of PyTorch holds 32 bits only.
    Where a model is on another `device`, the generator of that device is filled as well.
    """

    def __init__(self, rng: Rng, device: torch.device = CPU) -> None:
        self._key, self._number, self._device = rng.bytes(32), 0, device

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Inside, PyTorch draws from a state that nobody knows; afterwards it goes on where it was."""
        self._number += 1
        stream = hashlib.shake_256(self._key + self._number.to_bytes(8, "big")).digest(4 * WORDS + COUNTER)
        with fork_randomness(self._device):
            torch.set_rng_state(_fill_twister(stream[: 4 * WORDS]))
            self._fill_counter(stream[4 * WORDS :])
            yield

    def _fill_counter(self, stream: bytes) -> None:
        generator = find_generator(self._device)
        if generator is None:
            return
        if len(generator.get_rng_state(self._device)) == COUNTER:
            generator.set_rng_state(place_counter(stream), self._device)
        else:  # its state is not known: the longest seed that it takes
            generator.manual_seed(int.from_bytes(stream[:8], "big") >> 1)


def _fill_twister(stream: bytes) -> Tensor:
    state = torch.Generator().manual_seed(0).get_state()  # nothing drawn yet: the words below are what comes next
    words = np.frombuffer(stream, np.uint32).astype(np.uint64)
    state.numpy()[HEAD : HEAD + 8 * WORDS] = words.view(np.uint8)
    return state


def place_counter(stream: bytes) -> Tensor:
    """The state of a generator that counts: all bits of its key, and a beginning that is a multiple of four.

    >>> key, begins = place_counter(bytes(range(16))).view(torch.int64).tolist()
    >>> begins % 4, 0 < begins < 2**60
    (0, True)
    """
    key, begins = np.frombuffer(stream, np.uint64)
    return torch.from_numpy(np.array([key, begins >> np.uint64(6) << np.uint64(2)], np.uint64).view(np.uint8))
