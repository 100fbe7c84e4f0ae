"""The forward pass of a layer while an engine is attached to it."""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import Tensor, nn

from mosha.learning.gradients.dense import Forward

__all__ = ["RecordingForward", "is_plain", "makes_weights"]


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


def makes_weights(layer: nn.Module) -> bool:
    """Whether weights are made of other parameters before the forward pass, as `weight_norm` and pruning do.

    Either way of PyTorch: parametrizations, or a hook that leaves what it made on the layer. Other hooks are of no
    concern: what they make of inputs and outputs is seen by the look like anything else that a model does.
    """
    hooked = bool(layer._forward_pre_hooks) and any(isinstance(v, Tensor) for v in vars(layer).values())  # noqa: SLF001
    return hooked or hasattr(layer, "parametrizations")
