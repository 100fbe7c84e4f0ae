"""Several processes that train one model: each holds a part of the data, one holds the account and draws the noise.

Sums are whole numbers, so adding them up over processes is exact and does not depend on an order. The noise is drawn
once, by the leader, on the sum of all: neither a share too little nor one too many. The sample of each process is
drawn by its own coins, which together are one Poisson sample of the union.

A person is clipped as a whole, so all examples of one must be in one process. Where several hold examples of a
person, the first of them trains with its own and the others leave theirs out, without a word: whether it happened
depends on private data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed, nn

from mosha.core.errors import InvalidParameter
from mosha.learning.noisy_gradients import Answer, Gradients, State
from mosha.noise import secure

__all__ = ["Team"]


class Team:
    """The processes of a group, or this one alone."""

    def __init__(self, group: Any) -> None:
        self._group = group
        if group is not None and not distributed.is_initialized():
            raise InvalidParameter("learning.group_not_ready", parameter="group")
        self._clip: float | None = None
        self.size = 1 if group is None else distributed.get_world_size(group)
        self.rank = 0 if group is None else distributed.get_rank(group)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share_model(self, model: nn.Module) -> None:
        """The parameters and buffers of the first process, in all: they must begin alike."""
        if self.size > 1:
            for values in (*model.parameters(), *model.buffers()):
                distributed.broadcast(values.data, src=0, group=self._group)

    def find_first_holders(self, names: Sequence[int | str]) -> NDArray[np.bool_]:
        """Which of these persons no earlier process of the team holds.

        Guarantee:
            Every person is held first by exactly one process, and whether a person is, in each of them, does not
            depend on other persons: so the union over processes differs in one unit where the data do, and each
            unit is clipped once. Persons are compared by 128-bit hashes under a secret key that is used once.
        """
        keys = [secure().bytes(32) if self.leads else b""]
        distributed.broadcast_object_list(keys, src=0, group=self._group)
        own = [hashlib.blake2b(repr(name).encode(), key=keys[0], digest_size=16).digest() for name in names]
        everyone: list[Any] = [None] * self.size
        distributed.all_gather_object(everyone, own, group=self._group)
        earlier = {digest for held in everyone[: self.rank] for digest in held}
        return np.array([digest not in earlier for digest in own], np.bool_)

    def reduce(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum over all processes, at the leader; what the others hold afterwards is not used."""
        values = torch.from_numpy(total)
        distributed.reduce(values, dst=0, group=self._group)
        return values.numpy()

    def lead(self, answer: Answer | None) -> Answer | None:
        """Hand the noisy sum to all others."""
        if self.size > 1:
            if answer is None:
                raise InvalidParameter("learning.team_from_checkpoint", parameter="checkpoint")
            for part in (answer.total, answer.extras):
                distributed.broadcast(torch.from_numpy(part), src=0, group=self._group)
            distributed.broadcast(torch.tensor([answer.clip], dtype=torch.float64), src=0, group=self._group)
        return answer

    def follow(self, gradients: Gradients, data: Any, number: int) -> Answer:
        """Give this process's sum to the leader and take the noisy sum of all."""
        clip = gradients.plan.clip if self._clip is None else self._clip
        own, extras = gradients.sum_batch(State(number, clip), data, secure())
        own.fill(0)  # the leader has it
        total = torch.zeros(gradients.size)
        for part in (total, torch.from_numpy(extras)):
            distributed.broadcast(part, src=0, group=self._group)
        used = torch.zeros(1, dtype=torch.float64)
        distributed.broadcast(used, src=0, group=self._group)
        answer = Answer(total.numpy(), extras, float(used))
        self._clip = gradients.next_clip(answer, State(number, clip))
        return answer
