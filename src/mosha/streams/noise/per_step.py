"""Noise on each step by itself: the best there is when a person may be present at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mosha.streams.noise.tape import Tape

__all__ = ["Increments"]


@dataclass(frozen=True)
class Increments:
    """Each step's data plus noise, in steps that are `finer` times as fine.

    Guarantee:
        The release is x + z, whole numbers: one unit moves it by at most `most` contributions at steps of their own, in
        the l1 norm most times one contribution, in the l2 norm its square root times one (different steps are
        different coordinates). Adaptive choices: z_t explains step t alone, so the shift of step t is a function
        of earlier answers with the same bound on every path.
    """

    finer: int = 1
    memory: int = 2

    def start(self, width: int) -> int:
        del width
        return 0

    def step(self, state: int, data: Any, tape: Tape) -> tuple[Any, int]:
        noisy = data * self.finer + tape.row(state)
        return (noisy if self.finer == 1 else noisy / self.finer), state + 1
