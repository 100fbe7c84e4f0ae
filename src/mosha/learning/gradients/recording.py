"""The forward pass of a layer while an engine is attached to it."""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import nn

from mosha.learning.gradients.dense import Forward

__all__ = ["RecordingForward", "is_plain"]


class RecordingForward:
    """Stands in the place of `layer.forward`; a copy of the layer has the forward pass of its class again.

    Otherwise the copy would compute with the parameters of the original: a moving average of a model that is made in
    the middle of its training would be the model itself.
    """

    def __init__(self, layer: nn.Module, forward: Forward) -> None:
        self._layer, self.recorded = layer, forward

    def __call__(self, *arguments: object, **options: object) -> Any:
        if "input" in options and not arguments:  # as PyTorch calls it in layers of one input
            arguments = (options.pop("input"),)
        return self.recorded(*arguments, **options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        layer = memo.get(id(self._layer), self._layer)
        return MethodType(type(layer).forward, layer)


def is_plain(layer: nn.Module) -> bool:
    """Whether the forward pass of a layer is that of its class, as it is in a copy."""
    own = vars(layer).get("forward")
    return own is None or (isinstance(own, MethodType) and own == MethodType(type(layer).forward, layer))
