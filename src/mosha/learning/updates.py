"""From noisy whole numbers to gradients: post-processing, free of charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosha.learning.noisy_gradients import Answer, Gradients
from mosha.learning.terms import SHARE
from mosha.mechanisms.plans.buffered import make_decoder
from mosha.mechanisms.plans.correlated import SCALE

__all__ = ["Updates"]


class Updates:
    """Reads answers: the gradient for every parameter, and the noisy mean of the losses.

    Correlated noise is decoded, from released numbers alone.
    """

    def __init__(self, gradients: Gradients) -> None:
        self._gradients = gradients
        self._decoder = make_decoder(gradients.plan.encoding)

    def apply(self, answer: Answer) -> float | None:
        """Put the noisy mean gradient into `grad` of every parameter; returns the noisy mean loss, if there is one.

        Where noise is not correlated, gradients are the memory of the answer itself.
        """
        gradients, start = self._gradients, 0
        flat, extras = self._read(answer)
        for name, shape in gradients.shapes.items():
            end = start + shape.numel()
            gradients.engine.parameters[name].grad = flat[start:end].view(shape).to(gradients.engine.device)
            start = end
        plan, grid = gradients.plan, gradients.grid
        if plan.loss_at_most is None:
            return None
        return float(extras[0]) / (SHARE * grid.target * 2.0**grid.bits * plan.divisor) * plan.loss_at_most

    def _read(self, answer: Answer) -> tuple[Tensor, NDArray[Any]]:
        """Mean gradients, and extras in steps of the grid; where noise was correlated, with the encoder undone."""
        gradients = self._gradients
        if gradients.plan.bands == 1:
            return torch.from_numpy(answer.total), answer.extras
        now = self._decoder(gradients.steps(answer) * SCALE)
        flat = now[: gradients.size] * gradients.worth(answer.clip)
        return torch.from_numpy(flat.astype(np.float32)), now[gradients.size :]

    def state(self) -> list[NDArray[np.float64]]:
        """What a checkpoint has to keep."""
        return self._decoder.state()

    def restore(self, state: list[NDArray[np.float64]]) -> None:
        """Go on after the steps of a checkpoint."""
        self._decoder.restore(state)
