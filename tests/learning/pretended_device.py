"""A device that is none: tensors are on it as on an accelerator, and their numbers are computed by the CPU.

It is as strict as a real one: what is there and what is on the CPU do not meet in one operation, nothing of it is read
without being brought back, and factories that name no device make tensors of the CPU. So a training on it must give,
bit by bit, what the CPU gives; a plan that forgets to move something breaks as it would break on an accelerator.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
NAME = "elsewhere"


class Backend(ModuleType):
    """What PyTorch asks of the module of a device: how many there are, and the state of its generator."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self.state = torch.arange(16, dtype=torch.uint8)

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def manual_seed_all(self, seed: int) -> None:
        self.state = torch.tensor([seed, 0]).view(torch.uint8)

    def get_rng_state(self, device: object = None) -> Tensor:
        return self.state.clone()

    def set_rng_state(self, state: Tensor, device: object = None) -> None:
        self.state = state.clone()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


BACKEND = Backend()
_setup_privateuseone_for_python_backend(NAME, backend_module=BACKEND)
DEVICE = torch.device(NAME, 0)
MOVES = {aten._to_copy.default, aten.copy_.default}
INDEXED = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}


class Elsewhere(Tensor):
    """A tensor of the pretended device; `numbers` are those of the CPU that it stands for."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> Elsewhere:  # noqa: ANN001, PYI034
        found: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            layout=numbers.layout,
            device=DEVICE,
        )
        found.numbers = numbers
        return found

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Elsewhere({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return compute(func, args, kwargs or {})


def compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], other: Any = None) -> Any:
    leaves = tree_leaves((args, kwargs))
    there = any(isinstance(v, Elsewhere) for v in leaves)
    wanted = kwargs.get("device")
    if func not in MOVES:
        checked = tree_leaves((args[0], args[2:])) if func in INDEXED else leaves
        here = [v for v in checked if isinstance(v, Tensor) and not isinstance(v, Elsewhere) and v.ndim]
        if there and here:
            raise RuntimeError(f"Expected all tensors to be on the same device: {func}")
        if func is aten._local_scalar_dense.default:
            return func(args[0].numbers if there else args[0])
    target = there if wanted is None or func is aten.copy_.default else torch.device(wanted).type == DEVICE.type
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    inner = tree_map(lambda v: v.numbers if isinstance(v, Elsewhere) else v, (args, kwargs))
    out = (other or func)(*inner[0], **inner[1])
    if func is aten.copy_.default:
        return args[0]
    if not target:
        return out
    wrapped = tree_map(lambda v: Elsewhere(v) if isinstance(v, Tensor) else v, out)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if there else wrapped


class Pretending(TorchDispatchMode):
    """Inside, the pretended device is there; `changes` say what some of its kernels do otherwise."""

    def __init__(self, changes: dict[Any, Callable[..., Any]] | None = None) -> None:
        super().__init__()
        self.changes = changes or {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {}, self.changes.get(func))


def move(model: nn.Module) -> nn.Module:
    """The model on the pretended device, as `model.to(device)` would have it; what is tied stays tied."""
    moved: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in moved:
                found = nn.Parameter(Elsewhere(parameter.detach().clone()), parameter.requires_grad)
                moved |= {id(parameter): found, id(found): found}
            module._parameters[name] = None if parameter is None else moved[id(parameter)]
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else Elsewhere(buffer.clone())
    return model
