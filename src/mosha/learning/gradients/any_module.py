"""Any other module: what its parameters do to each row, found by trial on public rows, or row by row.

Ways are tried, the cheapest first, and the first that gives what single rows give is taken:

    spread      parameters along the last axes of the input are given to every place of it (norms, scales)
    expand      parameters whose first axis is one are given to every row (class tokens, positions)
    kind        the forward pass of the layer of PyTorch that the module is derived from
    product     a matrix that stands the other way round than in nn.Linear (Conv1D of GPT-2)
    map         each row is computed alone, as a batch of one, with copies of all parameters (`torch.func.vmap`)
    loop        the same, one after another, where vmap has no rule: slow, and always right
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mosha.core.errors import DataError
from mosha.learning.gradients.dense import Forward, affine
from mosha.learning.gradients.device import fork_randomness
from mosha.learning.gradients.recording import makes_weights
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["AnyForward"]

Given = tuple[tuple[Any, ...], dict[str, Any]]
TOLERANCE = 1e-3  # of the largest entry: how far a way may be from single rows


class _Copies(torch.autograd.Function):
    """A parameter, expanded; the gradient of every copy is noted."""

    @staticmethod
    def forward(ctx: Context, parameter: Tensor, shape: tuple[int, ...], note: Note) -> Tensor:
        ctx.note = note
        return parameter.expand(shape)

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[None, None, None]:
        ctx.note(gradients[0])
        return None, None, None


class AnyForward:
    """The forward pass of a module of unknown kind, with all that is inside it, noted while the tape is recording."""

    def __init__(
        self, module: nn.Module, name: str, tape: Tape, *, alone: bool = False, kind: Forward | None = None
    ) -> None:
        self._module, self.name, self._tape, self._kind = module, name, tape, kind
        self._plain, self._inside = module.forward, False
        self._own = {own: p for own, p in module.named_parameters(recurse=False) if p.requires_grad}
        self._way: Callable[[Given], Any] | None = self._map if alone else None
        self._loops = False

    @property
    def maps_rows(self) -> bool:
        """Whether each row is computed alone."""
        return self._way == self._map

    def __call__(self, *arguments: object, **options: object) -> Any:
        if not self._tape.recording or self._inside:
            return self._plain(*arguments, **options)
        given = (arguments, options)
        if self._way is None:
            self._way = self._choose_way(given)
        return self._way(given)

    def _call(self, parameters: dict[str, Tensor], given: Given) -> Any:
        """The module itself, with other parameters; its own forward pass is asked."""
        self._inside = True
        try:
            with _without_hooks(self._module):
                return functional_call(self._module, parameters, *given)
        finally:
            self._inside = False

    def _spread(self, given: Given) -> Any:
        x = next(v for v in tree_leaves(given) if isinstance(v, Tensor))
        self._tape.rows_of(self.name, x, folded=True)
        return self._call({own: self._copy(p, tuple(x.shape), own) for own, p in self._own.items()}, given)

    def _expand(self, given: Given) -> Any:
        rows = self._tape.units * self._tape.each
        shapes = {own: (rows, *p.shape[1:]) for own, p in self._own.items()}
        return self._call({own: self._copy(p, shapes[own], own) for own, p in self._own.items()}, given)

    def _as_kind(self, given: Given) -> Any:
        assert self._kind is not None
        return self._kind(*given[0], **given[1])

    def _product(self, given: Given) -> Any:
        (x,), _ = given
        weight, bias = self._module.get_parameter("weight"), self._own.get("bias")
        keys = self._tape.key(weight), self._tape.key(bias)

        def note(a: Tensor, g: Tensor) -> None:
            self._tape.matrix(self.name, keys[0], g, a)  # the gradient the other way round
            if bias is not None:
                self._tape.vector(self.name, keys[1], g)

        return affine(self._tape.share(self.name, x), weight.T, bias, note)

    def _map(self, given: Given) -> Any:
        leaves, spec = tree_flatten(given)
        follows = [isinstance(v, Tensor) and self._has_rows(v, number) for number, v in enumerate(leaves)]
        rows = self._tape.units * self._tape.each
        trained = {own: p for own, p in self._module.named_parameters() if p.requires_grad}
        copies = {own: self._copy(p.unsqueeze(0), (rows, *p.shape), own) for own, p in trained.items()}
        tensors = [v for v, own in zip(leaves, follows, strict=True) if own]

        def one(parameters: dict[str, Tensor], single: list[Tensor]) -> Any:
            rest = iter(single)
            values = [next(rest).unsqueeze(0) if own else v for v, own in zip(leaves, follows, strict=True)]
            out = self._call(parameters, tree_unflatten(values, spec))
            return tree_map(lambda v: v.squeeze(0) if isinstance(v, Tensor) and v.ndim else v, out)

        self._tape.recording = False  # parts are inside: their parameters are among the copies
        try:
            with sdpa_kernel(SDPBackend.MATH):  # other kernels have no rule for masks that are learned
                return self._map_or_loop(one, copies, tensors)
        finally:
            self._tape.recording = True

    def _map_or_loop(self, one: Callable[..., object], copies: dict[str, Tensor], tensors: list[Tensor]) -> Any:
        """By vmap where it can, else one row after another; once settled, it stays, whatever rows come."""
        if not self._loops:
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="There is a performance drop")
                    return vmap(one, randomness="different")(copies, tensors)
            except (RuntimeError, NotImplementedError, ValueError):
                if not self._tape.looking:
                    raise
                self._loops = True
        rows = range(self._tape.units * self._tape.each)
        single = [one({own: c[row] for own, c in copies.items()}, [v[row] for v in tensors]) for row in rows]
        return tree_map(lambda *v: torch.stack(v) if isinstance(v[0], Tensor) else v[0], *single)

    def _has_rows(self, values: Tensor, number: int) -> bool:
        """Whether these values have an entry for each row; folded ones are for the part around this one to map."""
        rows, length = self._tape.units * self._tape.each, values.shape[0] if values.ndim else 1
        folded = length > rows and length % rows == 0 and values.is_floating_point()
        if length not in (1, rows) and (values.requires_grad or folded):
            raise DataError("learning.first_axis", layer=self.name)
        return self._tape.has_rows(f"{self.name}[{number}]", values)

    def _copy(self, parameter: Tensor, shape: tuple[int, ...], own: str) -> Tensor:
        key, whole = self._tape.key(self._module.get_parameter(own)), self._module.get_parameter(own).shape

        def note(gradients: Tensor) -> None:
            rows = gradients.reshape(gradients.shape[0], -1, *whole).sum(dim=1)
            self._tape.record_gradients(self.name, key, rows)

        return _Copies.apply(parameter, shape, note)  # type: ignore[no-untyped-call,no-any-return]

    def _choose_way(self, given: Given) -> Callable[[Given], Any]:
        """The first way whose outputs and gradients are those of single rows; the last where none is."""
        x = next((v for v in tree_leaves(given) if isinstance(v, Tensor)), None)
        if x is None or not self._own or not self._tape.looking:
            return self._map
        leaf = not any(True for _ in self._module.children())
        ways: list[Callable[[Given], Any]] = [] if self._kind is None else [self._as_kind]
        if leaf and all(p.shape == x.shape[-p.ndim :] and p.ndim < x.ndim for p in self._own.values()):
            ways.append(self._spread)
        if all(p.ndim > 1 and p.shape[0] == 1 for p in self._own.values()):
            ways.append(self._expand)
        weight = self._own.get("weight")
        if leaf and weight is not None and weight.ndim == 2 and set(self._own) <= {"weight", "bias"}:
            ways.append(self._product)
        tape, public = self._tape, tree_map(lambda v: v.detach() if isinstance(v, Tensor) else v, given)
        before = tape.records
        try:
            with fork_randomness(x.device):
                return next((way for way in ways if self._is_right(way, public)), self._map)
        finally:
            tape.records, tape.recording = before, True

    def _is_right(self, way: Callable[[Given], object], given: Given) -> bool:
        """Whether outputs and gradients of own parameters by this way are those of rows that pass alone, one by one."""
        tape, rows = self._tape, self._tape.units * self._tape.each
        modes = {module: module.training for module in self._module.modules()}
        self._module.eval()  # no dropout: the two ways would draw other coins
        try:
            with torch.enable_grad():
                tape.records, tape.recording = {}, True
                whole = _outputs(way(given))
                upstream = [torch.randn_like(v) for v in whole]
                torch.autograd.backward(whole, upstream)
                found = {key.name: records for key, records in tape.records.items()}
                for parameter, wanted in zip(self._own.values(), self._row_by_row(given, whole, upstream), strict=True):
                    (record,) = found[tape.key(parameter).name]
                    if not _are_close(record.per_unit().reshape(wanted.shape), wanted):
                        return False
            return all(p.grad is None for p in self._own.values()) and rows > 0
        except Exception:  # noqa: BLE001
            return False
        finally:
            for parameter in self._module.parameters():
                parameter.grad = None
            for module, mode in modes.items():
                module.training = mode

    def _row_by_row(self, given: Given, whole: list[Tensor], upstream: list[Tensor]) -> list[Tensor]:
        """The gradients of each own parameter, from rows that pass alone."""
        tape, rows, own = self._tape, self._tape.units * self._tape.each, list(self._own.values())
        wanted = []
        tape.recording = False
        for row in range(rows):

            def cut(v: object, row: int = row) -> Any:
                return v[row : row + 1] if isinstance(v, Tensor) and v.ndim and v.shape[0] == rows else v

            outputs = _outputs(self._call({}, tree_map(cut, given)))
            for out, all_rows in zip(outputs, whole, strict=True):
                if not _are_close(all_rows[row : row + 1], out):
                    raise ValueError(self.name)
            wanted.append(torch.autograd.grad(outputs, own, [v[row : row + 1] for v in upstream]))
        tape.recording = True
        stacked = (
            torch.stack(some).reshape(tape.units, tape.each, *some[0].shape) for some in zip(*wanted, strict=True)
        )
        return [gradients.sum(dim=1) for gradients in stacked]


@contextmanager
def _without_hooks(module: nn.Module) -> Iterator[None]:
    """Inside, no hooks of this module run: they run around the call that is answered here, once.

    Those that make weights do run before every forward pass, for they have to make them of other parameters.
    """
    kept = module._forward_pre_hooks, module._forward_hooks  # noqa: SLF001
    module._forward_pre_hooks = kept[0] if makes_weights(module) else OrderedDict()  # noqa: SLF001
    module._forward_hooks = OrderedDict()  # noqa: SLF001
    try:
        yield
    finally:
        module._forward_pre_hooks, module._forward_hooks = kept  # noqa: SLF001


def _outputs(out: object) -> list[Tensor]:
    return [v for v in tree_leaves(out) if isinstance(v, Tensor) and v.requires_grad]


def _are_close(found: Tensor, wanted: Tensor) -> bool:
    found, wanted = found.detach(), wanted.detach()
    scale = float(wanted.abs().max()) if wanted.numel() else 1.0
    return found.shape == wanted.shape and bool(((found - wanted).abs() <= TOLERANCE * scale + 1e-12).all())
