"""From noisy whole numbers to gradients: post-processing, free of charge."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosha.learning.correlated import STEPS, coefficients
from mosha.learning.mechanism import Answer, Gradients
from mosha.learning.plan import SHARE
from mosha.learning.whole_sum import PIECE

__all__ = ["Updates"]

LARGE = 1 << 17  # numbers for which it pays to load numba


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
        loss = None if plan.loss_at_most is None else float(steps[size]) / (SHARE * one) * plan.loss_at_most
        flat = self._scaled(steps[:size], answer.clip / (plan.gradient_share * one))
        for name, shape in gradients.shapes.items():
            end = start + shape.numel()
            gradients.engine.parameters[name].grad = flat[start:end].view(shape)
            start = end
        return loss

    def _scaled(self, steps: Tensor, factor: float) -> Tensor:
        """All steps times the factor, in single precision; where answers may be overwritten, in their own memory.

        There, entry i takes the place of half of entry i // 2, which was read before: pieces go from first to last.
        """
        whole = not steps.is_floating_point()
        flat = steps.view(torch.float32)[: len(steps)] if whole and self._gradients.reuse else torch.empty(len(steps))
        if whole and len(steps) >= LARGE and importlib.util.find_spec("numba") is not None:
            from mosha.learning.compiled import scale  # noqa: PLC0415  (numba is an extra and takes time to load)

            scale(steps.numpy(), factor, flat.numpy())
            return flat
        for first in range(0, len(steps), PIECE):
            part = steps[first : first + PIECE]
            torch.mul(part.float() if whole else part, factor, out=flat[first : first + PIECE])
        return flat

    def state(self) -> Any:
        return [y.copy() for y in self._before]

    def restore(self, state: Any) -> None:
        self._before = [np.asarray(y, np.float64) for y in state]
