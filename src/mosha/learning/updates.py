"""From noisy whole numbers to gradients: post-processing, free of charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosha.learning.correlated import STEPS, coefficients
from mosha.learning.mechanism import Answer, Gradients
from mosha.learning.plan import SHARE

__all__ = ["Updates"]


class Updates:
    """Reads answers: the gradient for every parameter, and the noisy mean of the losses.

    With correlated noise the encoder is undone, y_t = r_t - sum over j of c_j y_(t-j), from released numbers alone.
    """

    def __init__(self, gradients: Gradients) -> None:
        self._gradients = gradients
        self._encoder = coefficients(gradients.plan.bands)
        self._before: list[NDArray[np.float64]] = []

    def read(self, answer: Answer) -> Tensor:
        """The noisy sums in steps of the grid; where noise was correlated, with the encoder undone."""
        if self._gradients.plan.bands == 1:
            return torch.from_numpy(answer.total)
        now = answer.total / STEPS
        for c, y in zip(self._encoder[1:], self._before, strict=False):
            now -= (c / STEPS) * y
        self._before = [now, *self._before][: self._gradients.plan.bands - 1]
        return torch.from_numpy(now)

    def apply(self, answer: Answer) -> float | None:
        """Put the noisy mean gradient into `grad` of every parameter; returns the noisy mean loss, if there is one."""
        gradients, plan, grid = self._gradients, self._gradients.plan, self._gradients.grid
        steps, size, start = self.read(answer), gradients.size, 0
        one = grid.target * 2.0**grid.bits * plan.divisor  # a step is so small a part of a mean contribution
        flat = torch.empty(size)
        torch.mul(steps[:size], answer.clip / (plan.gradient_share * one), out=flat)
        for name, shape in gradients.shapes.items():
            end = start + shape.numel()
            gradients.engine.parameters[name].grad = flat[start:end].view(shape)
            start = end
        if plan.loss_at_most is None:
            return None
        return float(steps[size]) / (SHARE * one) * plan.loss_at_most

    def state(self) -> Any:
        return [y.copy() for y in self._before]

    def restore(self, state: Any) -> None:
        self._before = [np.asarray(y, np.float64) for y in state]
