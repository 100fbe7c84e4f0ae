"""A moving average of parameters over the steps of a training: made of what was released, and free."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["WeightAverage"]


class WeightAverage:
    """The parameters, averaged over steps: the past counts `keep` in each, less while there is little of it.

    After t steps the past counts min(keep, (1 + t) / (10 + t)), so that the first parameters are soon forgotten.

    >>> weight = nn.Parameter(torch.zeros(1))
    >>> average = WeightAverage({"weight": weight}, keep=0.5)
    >>> for value in (1.0, 1.0):
    ...     _ = weight.data.fill_(value)
    ...     average.follow()
    >>> average.state()["averages"]["weight"]
    tensor([0.9818])
    """

    def __init__(self, parameters: Mapping[str, Tensor], keep: float) -> None:
        self._parameters, self._keep, self._steps = parameters, keep, 0
        self._averages = {name: p.detach().clone() for name, p in parameters.items()}

    @torch.no_grad()
    def follow(self) -> None:
        """Take in the parameters as they are after a step."""
        past = min(self._keep, (1 + self._steps) / (10 + self._steps))
        self._steps += 1
        for name, average in self._averages.items():
            average.lerp_(self._parameters[name], 1 - past)

    @torch.no_grad()
    def copy_model(self, model: nn.Module) -> nn.Module:
        """A copy of the model with these parameters; buffers and frozen parameters are the model's."""
        found = copy.deepcopy(model)
        for name, parameter in found.named_parameters():
            if name in self._averages:
                parameter.copy_(self._averages[name])
        return found

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to keep: public, like everything made of released numbers."""
        return {"steps": self._steps, "averages": dict(self._averages)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on after the steps of a checkpoint."""
        self._steps = int(state["steps"])
        for name, average in self._averages.items():
            average.copy_(state["averages"][name])
