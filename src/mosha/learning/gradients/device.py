"""Where a model is computed: one device, whose kernels are held to what the proof assumes of them.

Forward and backward pass, norms and weighted sums are computed where the model is; the exact sum and the noise on the
CPU, whatever the device. What is assumed of kernels, and of the randomness of a device: A1 and A3 of `rounding.md`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.core.errors import InvalidParameter

__all__ = [
    "check_admitted",
    "compute_exactly",
    "device_of",
    "find_device",
    "find_generator",
    "fork_randomness",
    "hold_kernels",
    "is_large",
    "keep_precision",
    "multiply",
    "place_rows",
]

_ONEDNN: Any = torch.backends.mkldnn
_CUDNN: Any = torch.backends.cudnn
KERNELS = [_ONEDNN.matmul, _ONEDNN.conv, _ONEDNN.rnn, torch.backends.cuda.matmul, _CUDNN.conv, _CUDNN.rnn]
EXACT = ("ieee", "none")  # as single precision has it; anything else multiplies numbers that were cut before
INHERITED = "none"
ADMITTED = ("cpu", "cuda")
CPU = torch.device("cpu")
LEAST_PRODUCT = 1 << 20
"""Multiply-adds from which on a product is worth handing to oneDNN, which takes some microseconds to begin."""

Restore = Callable[[], object]


def find_device(tensors: Iterable[Tensor]) -> torch.device:
    """The one device on which all of these are.

    >>> find_device([torch.zeros(2), torch.zeros(3)])
    device(type='cpu')
    """
    devices = {values.device for values in tensors}
    if len(devices) != 1:
        names = sorted(map(str, devices))
        raise InvalidParameter("learning.several_devices", parameter="model", devices=names, spent="nothing")
    return devices.pop()


def check_admitted(device: torch.device) -> None:
    """Refuse a device whose kernels cannot be told to be steady, or to compute in single precision."""
    if device.type not in ADMITTED:
        raise InvalidParameter("learning.device_not_admitted", parameter="model", device=str(device), spent="nothing")


def device_of(model: nn.Module) -> torch.device:
    """Where a model is: all that is trained is on one device."""
    return next(model.parameters()).device


def place_rows(batch: tuple[Tensor, ...], model: nn.Module) -> tuple[Tensor, ...]:
    """A batch where the model is; on the CPU as it is."""
    device = device_of(model)
    return batch if device.type == "cpu" else tuple(values.to(device) for values in batch)


def find_generator(device: torch.device) -> Any:
    """The module of PyTorch that draws on this device; None for those that have no randomness of their own."""
    module = getattr(torch, device.type, None)
    return module if device.type != "cpu" and hasattr(module, "set_rng_state") else None


def fork_randomness(device: torch.device) -> AbstractContextManager[None]:
    """Inside, PyTorch may draw; afterwards its generators, of the CPU and of the device, go on where they were."""
    if find_generator(device) is None:
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device.index or 0], device_type=device.type)


class _Settings:
    """Settings of PyTorch, which are those of the process: changed by the first thread in, put back by the last out."""

    def __init__(self, change: Callable[[], list[Restore]]) -> None:
        self._change, self._lock, self._inside = change, threading.Lock(), 0
        self._restores: list[Restore] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._restores += self._change()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    for restore in reversed(self._restores):
                        restore()
                    self._restores = []


def _demand_exact_products() -> list[Restore]:
    restores: list[Restore] = []
    for kernels in KERNELS:
        found = kernels.fp32_precision
        if found not in EXACT:
            kernels.fp32_precision = "ieee"
            restores.append(partial(_set_precision, kernels, found))
    return restores


def _set_precision(kernels: Any, precision: str) -> None:
    """As it was: left to the setting above it, where that says the same."""
    kernels.fp32_precision = INHERITED
    if kernels.fp32_precision != precision:
        kernels.fp32_precision = precision


def _demand_steady_kernels() -> list[Restore]:
    strict, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    tries = torch.backends.cudnn.benchmark
    if strict and not warns and not tries:
        return []
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return [
        partial(torch.use_deterministic_algorithms, strict, warn_only=warns),
        partial(setattr, torch.backends.cudnn, "benchmark", tries),
    ]


_exact_products, _steady_kernels = _Settings(_demand_exact_products), _Settings(_demand_steady_kernels)


def compute_exactly() -> AbstractContextManager[None]:
    """Inside, no product takes less than single precision, whatever `torch.set_float32_matmul_precision` was told.

    Norms and weighted sums are computed by different products of the same numbers: where these are cut to the 8 or 11
    bits of BF16 or TF32, as some processors and most accelerators do on request, a sum may be longer than norms say.
    """
    return _exact_products()


def keep_precision(device: torch.device) -> AbstractContextManager[object]:
    """Inside, operations take the precision that their numbers have, also where a whole step stands inside autocast.

    Autocast would cut what norms are computed from to 8 bits, and not what is summed.
    """
    return torch.autocast(device.type, enabled=False) if torch.is_autocast_enabled(device.type) else nullcontext()


def hold_kernels(device: torch.device) -> AbstractContextManager[None]:
    """Inside, kernels of a device give the same for the same shapes and values, or PyTorch refuses.

    Those of the CPU do so anyway. Others choose algorithms by the clock, or add in the order in which threads come.
    """
    return nullcontext() if device.type == "cpu" else _steady_kernels()


def multiply(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """A b^T, and the bias: by oneDNN where a large product is asked for on a CPU.

    Otherwise PyTorch asks MKL, which on processors of some makers does not use all that they have and takes twice as
    long. Who computes a product follows from shapes and from the machine, never from values.

    >>> multiply(torch.ones(2, 3), torch.ones(4, 3)).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """
    if is_large(a, b) and a.dtype == b.dtype == torch.float32 and a.device == b.device == CPU:
        product = _find_product() if torch._C._get_mkldnn_enabled() else None  # noqa: SLF001
        if product is not None:
            return product(a, b, None if bias is None else bias.contiguous(), "none", [], "")  # it reads no strides
    return functional.linear(a, b, bias)


def is_large(a: Tensor, b: Tensor) -> bool:
    """Whether a b^T takes so many multiply-adds that oneDNN is asked.

    >>> is_large(torch.ones(2, 3), torch.ones(4, 3))
    False
    """
    return a.numel() * b.shape[0] >= LEAST_PRODUCT


@lru_cache(maxsize=1)
def _find_product() -> Callable[..., Tensor] | None:
    """The product of oneDNN that PyTorch's compiler uses, where this PyTorch has it and it multiplies all 24 bits."""
    a, ones = (torch.full((256, 16), entry, dtype=torch.float32, device=CPU) for entry in (1 + 2.0**-20, 1.0))
    try:
        product = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        with compute_exactly():
            found = product(a, ones, ones[:, 0].contiguous(), "none", [], "")
    except (AttributeError, RuntimeError, TypeError):
        return None
    wanted = torch.full((256, 256), 17 + 2.0**-16, dtype=torch.float32, device=CPU)  # so are all sums on the way
    return product if found.dtype == wanted.dtype and torch.equal(found, wanted) else None
