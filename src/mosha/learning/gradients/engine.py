"""The clipping engine: one forward pass, one backward pass, and the sum of clipped gradients of all units of a batch.

`attach` replaces the forward pass of the layers of a model by one that notes, while a private batch passes, what is
needed for per-example norms and for one weighted sum (ghost norms and book-keeping: Li et al. 2022, Bu et al. 2023).
The model stays what it is: same class, same parameters, same state_dict; `detach` takes the notes away again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.gradients.allocator import keep_freed_memory
from mosha.learning.gradients.any_module import AnyForward
from mosha.learning.gradients.attention import attention_forward, is_plain_attention
from mosha.learning.gradients.convolution import convolution_forward, pool_forward
from mosha.learning.gradients.dense import dense_forward
from mosha.learning.gradients.device import compute_exactly, find_device, hold_kernels, keep_precision
from mosha.learning.gradients.embedding import bag_forward, embedding_forward
from mosha.learning.gradients.normalization import group_forward, instance_forward, layer_forward, root_forward
from mosha.learning.gradients.norms import RowNorms
from mosha.learning.gradients.own_layers import find_registered, registered_forward
from mosha.learning.gradients.recording import RecordingForward, is_plain, makes_weights
from mosha.learning.gradients.records import Record
from mosha.learning.gradients.recurrent import gru_forward, lstm_forward
from mosha.learning.gradients.shared_parameters import add_records
from mosha.learning.gradients.tape import Key, Tape
from mosha.learning.gradients.validator import check_layers

__all__ = ["Batch", "Engine", "Landing", "Rule"]

Landing = Callable[[str, int, int, Callable[[Tensor], object]], None]
"""Takes a weighted sum: the name of its parameter, its first place in it and its length, and what writes it there."""

Rule = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From the norms of each unit's gradient, a row for each parameter and a column for each unit, to the weights of each
unit: such an array, or one weight a unit for all parameters."""

_KINDS: dict[type[nn.Module], Any] = {
    nn.Linear: dense_forward,
    nn.Conv1d: convolution_forward,
    nn.Conv2d: convolution_forward,
    nn.Conv3d: convolution_forward,
    nn.MaxPool2d: pool_forward,
    nn.Embedding: embedding_forward,
    nn.EmbeddingBag: bag_forward,
    nn.LayerNorm: layer_forward,
    nn.RMSNorm: root_forward,
    nn.GroupNorm: group_forward,
    nn.InstanceNorm1d: instance_forward,
    nn.InstanceNorm2d: instance_forward,
    nn.InstanceNorm3d: instance_forward,
    nn.LSTM: lstm_forward,
    nn.GRU: gru_forward,
    nn.MultiheadAttention: attention_forward,
}

_WITHOUT_PARAMETERS: tuple[Any, ...] = (pool_forward,)  # makers of what has nothing to note, and is quicker


@dataclass(frozen=True)
class Batch:
    """What one physical batch gave: for each parameter the weighted sum, and the norm of each unit's gradient.

    Sums that were written where they belong, as they were computed, are not kept here.
    """

    sums: dict[str, Tensor]
    norms: Tensor
    losses: Tensor


class Engine:
    """Per-unit clipping for one model.

    Guarantee:
        In exact arithmetic `clipped` returns, for each parameter p, the sum over units u of w_p(u) G_p(u), where G_p(u)
        is the gradient of the sum of the losses of unit u alone, and w(u) is what the rule makes of the norms of
        G(u). A unit whose gradient is not finite counts as zero. What rounding adds: `rounding.md`.

    Units:
        `memory` is in bytes: how much may be used to keep gradients that were formed, beyond activations.
    """

    def __init__(self, model: nn.Module, *, memory: int = 28 << 20) -> None:
        model = getattr(model, "_orig_mod", model)  # what torch.compile wrapped
        check_layers(model)
        keep_freed_memory()
        self.model = model
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise InvalidParameter("learning.nothing_to_train", parameter="model", spent="nothing")
        self.device = find_device(self.parameters.values())
        self.tape = Tape(memory, {id(p): name for name, p in self.parameters.items()})
        self._number = {name: i for i, name in enumerate(self.parameters)}
        self._identities = _list_identities(model)
        self._changed: list[nn.Module] = []
        self._alone: set[str] = set()  # parts whose rows are computed one by one, with all that is in them
        self._attach(model, "")

    def _attach(self, module: nn.Module, name: str) -> None:
        if isinstance(module, nn.MaxPool2d) and module in self._changed:
            return  # one layer in several places
        if not is_plain(module):
            raise InvalidParameter("learning.wrapped_already", layer=name or type(module).__name__, spent="nothing")
        maker = _maker(module)
        if name in self._alone:
            maker = partial(AnyForward, alone=True)
        if maker is None or maker is AnyForward:
            for part, child in module.named_children():
                self._attach(child, f"{name}.{part}" if name else part)
        trained = any(p.requires_grad for p in module.parameters())
        if maker in _WITHOUT_PARAMETERS or (maker is not None and trained):
            module.forward = RecordingForward(module, maker(module, name, self.tape))
            self._changed.append(module)

    def mapped_parts(self) -> list[str]:
        """The names of the parts whose rows are computed one by one."""
        forwards = (vars(module)["forward"].recorded for module in self._changed)
        return [forward.name for forward in forwards if isinstance(forward, AnyForward) and forward.maps_rows]

    def has_registered_layers(self) -> bool:
        """Whether somebody else's gradients are noted."""
        return any(find_registered(module) is not None for module in self._changed)

    def widen(self, layer: str) -> bool:
        """Compute the rows of the part around this layer one by one from now on; False where it is the whole model."""
        names = dict(self.model.named_modules())
        while layer:
            layer = layer.rpartition(".")[0]
            if layer not in self._alone and type(names[layer]).forward is not nn.Module.forward:
                self._alone.add(layer)
                self.detach()
                self.tape.folds, self.tape.shared = {}, set()
                self._attach(self.model, "")
                return True
        return False

    def detach(self) -> None:
        """Give the layers their own forward pass back."""
        for module in self._changed:
            vars(module).pop("forward", None)
        self._changed = []

    def check_unchanged(self) -> None:
        """Refuse a model whose parameters are no longer those that were wrapped."""
        if _list_identities(self.model) != self._identities or not self._changed:
            raise InvalidParameter("learning.model_changed", spent="nothing")

    def clip(
        self,
        losses: Callable[[nn.Module], Tensor],
        rows: int,
        rule: Rule,
        *,
        each: int = 1,
        into: Landing | None = None,
    ) -> Batch:
        """The weighted sums of one physical batch of `rows` rows, `each` of which belong to one unit."""
        return self.clip_recorded(rule, losses=self.record(losses, rows, each=each), into=into)

    def record(self, losses: Callable[[nn.Module], Tensor], rows: int, *, each: int = 1) -> Tensor:
        """Forward and backward pass of one physical batch, noted; returns its losses."""
        for parameter in self.parameters.values():
            parameter.grad = None  # what stands there is older; what appears there now was not clipped
        with hold_kernels(self.device), self.tape.record(rows, each):
            values = losses(self.model)
            check_losses(values, rows)
            with keep_precision(self.device):
                values.sum().backward()  # type: ignore[no-untyped-call]
        self._check_outside()
        return values.detach()

    def clip_recorded(
        self, rule: Rule, *, losses: Tensor | None = None, scale: float = 1.0, into: Landing | None = None
    ) -> Batch:
        """What the tape holds after a backward pass, clipped and summed; gradients count `scale` times."""
        self._check_outside()
        with torch.no_grad(), hold_kernels(self.device), keep_precision(self.device), compute_exactly():
            records, self.tape.records = _merge_records(self.tape.records), {}
            if losses is None:
                losses = torch.zeros(self.tape.units * self.tape.each)
            return self._add_weighted(records, losses, _scale_rule(rule, scale), into)

    def _check_outside(self) -> None:
        outside = [name for name, p in self.parameters.items() if p.grad is not None]
        if outside:
            for name in outside:
                self.parameters[name].grad = None
            raise DataError("learning.used_outside", parameter=outside[0])

    def _add_weighted(self, records: dict[Key, Record], losses: Tensor, rule: Rule, into: Landing | None) -> Batch:
        squares, self.tape.norms = self._squares(records), RowNorms()
        total = squares.sum(axis=0)
        lost = ~np.isfinite(total)
        if lost.any():
            records = {key: record.without(torch.from_numpy(lost).to(self.device)) for key, record in records.items()}
            squares[:, lost], total[lost] = 0.0, 0.0
        weights = torch.from_numpy(rule(np.sqrt(squares)).astype(np.float32)).to(self.device)
        sums: dict[str, Tensor] = {}
        land = into or self._keeping(sums)
        for key in list(records):
            record = records.pop(key)  # what was noted is needed no more
            own = weights if weights.ndim == 1 else weights[self._number[key.name]]
            land(key.name, *self._span(key), partial(_write_sum, record, own))
            del record
        return Batch(sums, torch.from_numpy(np.sqrt(total)), losses)  # norms of what was noted

    def _squares(self, records: Mapping[Key, Record]) -> NDArray[np.float64]:
        """The squared norms of each unit's gradients: a row for each parameter, a column for each unit."""
        found = np.zeros((len(self.parameters), self.tape.units))
        for key, record in records.items():
            found[self._number[key.name]] += record.squared_norms()
        return found

    def _span(self, key: Key) -> tuple[int, int]:
        """Where a key begins in its parameter, flat, and how long it is."""
        parameter = self.parameters[key.name]
        if key.rows is None:
            return 0, parameter.numel()
        width = parameter.numel() // len(parameter)
        return key.rows[0] * width, (key.rows[1] - key.rows[0]) * width

    def _keeping(self, sums: dict[str, Tensor]) -> Landing:
        def land(name: str, place: int, entries: int, write: Callable[[Tensor], object]) -> None:
            whole = sums.setdefault(name, torch.zeros(self.parameters[name].shape))
            write(whole.view(-1)[place : place + entries])

        return land


def _write_sum(record: Record, weights: Tensor, out: Tensor) -> None:
    """The weighted sum, computed where the gradients are, and written where it belongs."""
    if weights.device == out.device:
        record.weighted_sum(weights, out)
        return
    found = torch.empty(len(out), device=weights.device)
    record.weighted_sum(weights, found)
    out.copy_(found)


def _list_identities(model: nn.Module) -> list[int]:
    """Who the trained parameters are, in the order of modules: another one, and another order, are seen."""
    found = (module._parameters.values() for module in model.modules())  # noqa: SLF001
    return [id(p) for some in found for p in some if p is not None and p.requires_grad]


def _scale_rule(rule: Rule, scale: float) -> Rule:
    """The rule for gradients that are `scale` times what was noted."""
    return rule if scale == 1 else lambda norms: scale * rule(scale * norms)


def check_losses(values: object, rows: int) -> None:
    """The loss must be one number for each row."""
    if not isinstance(values, Tensor) or values.shape != (rows,):
        raise InvalidParameter("learning.loss_of_each", parameter="loss")


def _maker(module: nn.Module) -> Any:
    """How to note this module, or None where only its parts are noted."""
    registered = find_registered(module)
    if registered is not None:
        return partial(registered_forward, registered)
    for kind, maker in _KINDS.items():
        if isinstance(module, kind) and type(module).forward is kind.forward and _is_ordinary(module):
            return maker
    own = any(p is not None and p.requires_grad for p in module._parameters.values())  # noqa: SLF001
    if makes_weights(module):
        return partial(AnyForward, alone=True)
    derived = next((maker for kind, maker in _KINDS.items() if isinstance(module, kind) and _is_ordinary(module)), None)
    return partial(_derived_forward, derived) if own and derived is not None else AnyForward if own else None


def _derived_forward(maker: Any, module: nn.Module, name: str, tape: Tape) -> AnyForward:
    """A module that is derived from a layer of PyTorch and has a forward pass of its own: perhaps the same."""
    return AnyForward(module, name, tape, kind=maker(module, name, tape))


def _is_ordinary(module: nn.Module) -> bool:
    if makes_weights(module):
        return False
    if isinstance(module, nn.MultiheadAttention):
        return is_plain_attention(module)
    if isinstance(module, nn.LSTM):
        return module.proj_size == 0
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return module.max_norm is None and not module.sparse and not module.scale_grad_by_freq
    return not (isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats)  # noqa: SLF001


def _merge_records(records: dict[Key, list[Record]]) -> dict[Key, Record]:
    """One record a key: where a parameter was used several times, gradients are added before any norm."""
    return {key: add_records(found) for key, found in _without_overlaps(records).items()}


def _without_overlaps(records: dict[Key, list[Record]]) -> dict[Key, list[Record]]:
    """Rows of a matrix that is also used as a whole are padded to the whole."""
    whole = {key.name for key in records if key.rows is None}
    found: dict[Key, list[Record]] = {}
    for key, items in records.items():
        if key.rows is not None and key.name in whole:
            raise DataError("learning.used_in_parts", parameter=key.name)
        found.setdefault(key, []).extend(items)
    return found
