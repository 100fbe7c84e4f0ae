"""Which layers cannot be trained privately, and what to put in their place."""

from __future__ import annotations

import copy

from torch import nn

from mosha.core.errors import InvalidParameter

__all__ = ["check_layers", "mixing_layers", "without_batch_norm"]

_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def mixing_layers(model: nn.Module) -> dict[str, str]:
    """The layers of `model` that mix examples or write something down as they pass, each with its reason.

    >>> from torch import nn
    >>> list(mixing_layers(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))))
    ['1']
    """
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not _is_frozen(module):  # noqa: SLF001
            found[name] = f"{type(module).__name__} takes the mean over the batch, so each example moves all others"
        elif isinstance(module, _INSTANCE_NORMS) and module.track_running_stats:
            found[name] = f"{type(module).__name__} keeps running statistics of private examples"
        elif isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None:
            found[name] = f"{type(module).__name__}(max_norm=...) changes its weights where private tokens point"
        elif _has_spectral_norm(module):
            found[name] = "spectral_norm changes its buffers with every batch (weight_norm has none)"
    return found


def _is_frozen(module: nn.modules.batchnorm._BatchNorm) -> bool:
    """Whether a batch norm only applies what it learned before: in evaluation mode, with statistics of its own."""
    return not module.training and module.track_running_stats


def _has_spectral_norm(module: nn.Module) -> bool:
    """By either of PyTorch's two ways: a parametrisation, or a hook before the forward pass."""
    hooks = (type(hook).__name__ for hook in module._forward_pre_hooks.values())  # noqa: SLF001
    return type(module).__name__ == "_SpectralNorm" or "SpectralNorm" in hooks


def check_layers(model: nn.Module) -> None:
    """Refuse a model with such layers."""
    if not isinstance(model, nn.Module):
        raise InvalidParameter("learning.not_a_module", parameter="model", kind=type(model).__name__)
    if isinstance(model, nn.parallel.DistributedDataParallel):
        raise InvalidParameter("learning.distributed_model", parameter="model", spent="nothing")
    found = mixing_layers(model)
    if found:
        name, reason = next(iter(found.items()))
        norm = isinstance(model.get_submodule(name), nn.modules.batchnorm._NormBase)  # noqa: SLF001
        code = "learning.norm_mixes" if norm else "learning.layer_mixes"
        raise InvalidParameter(code, layer=name, reason=reason, spent="nothing")


def without_batch_norm(model: nn.Module, *, groups: int = 32) -> nn.Module:
    """A copy of `model` with GroupNorm (at most `groups` groups) for every batch norm, without running statistics.

    >>> from torch import nn
    >>> without_batch_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))[1]
    GroupNorm(8, 8, ...)
    """
    model = copy.deepcopy(model)
    return _replace_module(model, groups)


def _replace_module(module: nn.Module, groups: int) -> nn.Module:
    if isinstance(module, nn.modules.batchnorm._BatchNorm):  # noqa: SLF001
        width = module.num_features
        most = max(g for g in range(1, min(groups, width) + 1) if width % g == 0)
        new = nn.GroupNorm(most, width, eps=module.eps, affine=module.affine)
        if module.affine:
            new.load_state_dict({"weight": module.weight.detach(), "bias": module.bias.detach()})
        return new
    if isinstance(module, _INSTANCE_NORMS) and module.track_running_stats:
        module.track_running_stats = False
        module.running_mean = module.running_var = module.num_batches_tracked = None
    for name, child in module.named_children():
        setattr(module, name, _replace_module(child, groups))
    return module
