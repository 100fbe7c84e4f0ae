"""Any other module: one copy of its parameters for each row of the batch, by `torch.func.vmap`.

Each row is computed alone, as a batch of one, so that no module can mix examples here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_map

from mosha.learning.gradients.dense import Forward
from mosha.learning.gradients.tape import Tape

__all__ = ["any_forward"]


class _Copies(torch.autograd.Function):
    """One copy of a parameter for each row; the gradient of every copy is noted."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, rows: int, note: Any) -> Tensor:
        ctx.note = note
        return parameter.unsqueeze(0).expand(rows, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:
        ctx.note(gradients[0])
        return None, None, None


def any_forward(module: nn.Module, name: str, tape: Tape) -> Forward:
    """The forward pass of a module of unknown kind, with all that is inside it, noted while the tape is recording."""
    plain, inside = module.forward, [False]

    def copies(rows: int) -> dict[str, Tensor]:
        return {own: _copy_for_rows(p, rows, name, tape) for own, p in module.named_parameters() if p.requires_grad}

    def one(parameters: dict[str, Tensor], values: Any) -> Any:
        arguments, options = tree_map(lambda v: v.unsqueeze(0) if isinstance(v, Tensor) else v, values)
        out = functional_call(module, parameters, arguments, options)
        return tree_map(lambda v: v.squeeze(0) if isinstance(v, Tensor) else v, out)

    def forward(*arguments: Any, **options: Any) -> Any:
        if not tape.recording or inside[0]:
            return plain(*arguments, **options)
        rows = tape.units * tape.each
        tree_map(lambda v: tape.rows_of(name, v) if isinstance(v, Tensor) else v, (arguments, options))
        axes = tree_map(lambda v: 0 if isinstance(v, Tensor) else None, (arguments, options))
        inside[0] = True
        try:
            mapped = vmap(one, in_dims=(0, axes), randomness="different")
            return mapped(copies(rows), (arguments, options))
        except Exception as error:
            error.add_note(
                f"{f'Layer {name!r}' if name else 'The model itself'} has parameters of its own or parametrised ones, "
                "so each example passes it alone (torch.func.vmap), which not all operations can. Move the parameters "
                "into a smaller module of their own or into layers of PyTorch, or freeze them."
            )
            raise
        finally:
            inside[0] = False

    return forward


def _copy_for_rows(parameter: Tensor, rows: int, name: str, tape: Tape) -> Tensor:
    key = tape.key(parameter)

    def note(gradients: Tensor) -> None:
        tape.record_gradients(name, key, gradients)

    return _Copies.apply(parameter, rows, note)  # type: ignore[no-untyped-call,no-any-return]
