"""What a model keeps besides its trained parameters: it must not change while private batches pass."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

__all__ = ["ModelBuffers", "set_training"]


class ModelBuffers:
    """A copy of the buffers of a model, and of which frozen parameters it has.

    Frozen parameters can be large: they are compared by identity and by PyTorch's count of changes, buffers by value.
    Python attributes of a module are not seen: a module that stores what passed in one keeps it, in this process only.

    >>> model = nn.BatchNorm1d(2)
    >>> kept = ModelBuffers(model)
    >>> _ = model(torch.randn(3, 2))
    >>> kept.find_change(), kept.restore(), kept.find_change()
    ('num_batches_tracked', None, None)
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._buffers = {place: (value, value.clone()) for place, value in _buffers(model).items()}
        self._frozen = _frozen_versions(model)

    def find_change(self) -> str | None:
        """The name of something that is no longer what it was, or None."""
        if not self._buffers and not self._frozen and _has_nothing(self._model):
            return None
        now = _buffers(self._model)
        for place in sorted(now.keys() | self._buffers.keys()):
            if place not in self._buffers or place not in now or not _are_equal(now[place], self._buffers[place][1]):
                return place
        frozen = _frozen_versions(self._model)
        return next(
            (name for name in sorted(frozen | self._frozen) if frozen.get(name) != self._frozen.get(name)), None
        )

    def restore(self) -> None:
        """Put the buffers back, value by value."""
        modules = dict(self._model.named_modules())
        for place, (value, copy) in self._buffers.items():
            owner, _, name = place.rpartition(".")
            with torch.no_grad():
                value.copy_(copy)
            modules[owner]._buffers[name] = value  # noqa: SLF001
        for place in _buffers(self._model).keys() - self._buffers.keys():
            owner, _, name = place.rpartition(".")
            del modules[owner]._buffers[name]  # noqa: SLF001


def set_training(model: nn.Module, before: Mapping[nn.Module, bool] | None = None) -> dict[nn.Module, bool]:
    """Training mode for all modules, but for batch norms that the user set to evaluation: those stay frozen.

    Returns the modules that were changed, with the mode that they were in.
    """
    changed = {}
    for module in model.modules():
        was = module.training if before is None else before.get(module, True)
        wanted = was if isinstance(module, nn.modules.batchnorm._BatchNorm) else True  # noqa: SLF001
        if module.training != wanted:  # to set an attribute of a module takes time
            changed[module] = module.training
            module.training = wanted
    return changed


def _has_nothing(model: nn.Module) -> bool:
    """Whether there is neither a buffer nor a frozen parameter: quicker than to name them."""
    for module in model.modules():
        if module._buffers or any(p is not None and not p.requires_grad for p in module._parameters.values()):  # noqa: SLF001
            return False
    return True


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_buffers(remove_duplicate=False))


def _frozen_versions(model: nn.Module) -> dict[str, tuple[int, int]]:
    return {name: (id(p), p._version) for name, p in model.named_parameters() if not p.requires_grad}  # noqa: SLF001


def _are_equal(now: Tensor, before: Tensor) -> bool:
    if now.shape != before.shape or now.dtype != before.dtype:
        return False
    return torch.equal(now, before) or bool(
        torch.equal(now.nan_to_num(), before.nan_to_num()) and torch.equal(now.isnan(), before.isnan())
    )
