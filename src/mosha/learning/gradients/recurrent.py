"""LSTM and GRU layers with one pass in each direction, whose weights become sequences of linear layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.core.errors import DataError
from mosha.learning.gradients.dense import Forward
from mosha.learning.gradients.device import multiply
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["gru_forward", "lstm_forward"]


class _LSTM(torch.autograd.Function):
    """One layer in one direction, time first, in as few operations a step as there can be.

    All gates are s = sigmoid, the argument of the cell gate doubled: g = 2 s - 1. Cells are kept doubled, u = 2 c, so
    that u' = f u - 2 i + 4 i s, and their hyperbolic tangent is 2 sigmoid(u') - 1; states are kept with the other sign,
    -h' = o - 2 o sigmoid(u'). All factors of the backward recursion that do not depend on it are worked out at once.
    """

    @staticmethod
    def forward(
        ctx: Context,
        x: Tensor,
        into: Tensor,
        onto: Tensor,
        bias: Tensor | None,
        first: tuple[Tensor, Tensor],
        note: Note,
    ) -> tuple[Tensor, Tensor, Tensor]:
        (steps, rows, _), size = x.shape, onto.shape[1]
        where = x.device
        twice = torch.ones(4 * size, device=where)
        twice[2 * size : 3 * size] = 2.0
        gates = multiply(x, into * twice.unsqueeze(1), None if bias is None else bias * twice)
        recurrent = (onto * -twice.unsqueeze(1)).t()
        hidden = torch.empty(steps + 1, rows, size, device=where)
        cells, squashed = torch.empty_like(hidden), torch.empty(steps, rows, size, device=where)
        torch.neg(first[0], out=hidden[0])
        torch.mul(first[1], 2.0, out=cells[0])
        h, *states = hidden.unbind(0)
        u, *doubled = cells.unbind(0)
        for s, following, cell, out in zip(gates.unbind(0), states, doubled, squashed.unbind(0), strict=True):
            i, f, g, o = torch.addmm(s, h, recurrent, out=s).sigmoid_().chunk(4, dim=1)
            torch.mul(f, u, out=cell).addcmul_(i, g, value=4.0).sub_(i, alpha=2.0)
            torch.sigmoid(cell, out=out)
            torch.addcmul(o, o, out, value=-2.0, out=following)
            h, u = following, cell
        hidden.neg_()
        ctx.save_for_backward(x, into, onto)
        ctx.kept, ctx.note = (gates, hidden, cells, squashed), note
        return hidden[1:], hidden[-1].clone(), cells[-1] / 2.0

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Any, ...]:
        x, into, onto = ctx.saved_tensors
        gates, hidden, cells, squashed = ctx.kept
        ctx.kept = None  # let go of what is no longer needed, as early as possible
        steps, rows, size = len(x), x.shape[1], onto.shape[1]
        f = gates[..., size : 2 * size].contiguous()
        factors, through_cell = _lstm_factors(gates, cells, squashed)
        into_gates, wanted = gates, gates.view(steps, rows, 4, size)  # the memory of what is not needed any more
        del cells, squashed, gates
        into_hidden, into_cell = gradients[1], gradients[2]
        parts = (into_gates, wanted[:, :, :3], wanted[:, :, 3], factors[:, :, :3], factors[:, :, 3], through_cell, f)
        whole = [gradients[0], *parts]
        recursion = list(zip(*(part.unbind(0) for part in whole), strict=True))
        recurrent: Tensor | None = None
        for out, g, three, last, of_three, of_last, through, forget in reversed(recursion):
            into_hidden = into_hidden + out if recurrent is None else torch.addmm(out, recurrent, onto)
            into_cell = torch.addcmul(into_cell, into_hidden, through)
            torch.mul(into_cell.unsqueeze(1), of_three, out=three)
            torch.mul(into_hidden, of_last, out=last)
            into_cell = into_cell.mul_(forget)
            recurrent = g
        del f, through_cell, factors, recursion
        ctx.note(x, hidden[:-1], into_gates)
        into_x = multiply(into_gates, into.t()) if ctx.needs_input_grad[0] else None
        return into_x, None, None, None, None, None


def _lstm_factors(gates: Tensor, cells: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """What gradients of cells (of states, for the last gate) are multiplied by for all gates, and those of states.

    Shapes: (steps, rows, 4, size) and (steps, rows, size).
    """
    i, _, g, o = gates.chunk(4, dim=2)
    slopes = torch.addcmul(gates, gates, gates, value=-1.0).view(*squashed.shape[:2], 4, -1)  # s - s^2
    slopes[:, :, 0].mul_(g * 2.0 - 1.0)
    slopes[:, :, 1].mul_(cells[:-1]).mul_(0.5)
    slopes[:, :, 2].mul_(i).mul_(4.0)
    slopes[:, :, 3].mul_(squashed * 2.0 - 1.0)
    return slopes, torch.addcmul(squashed, squashed, squashed, value=-1.0).mul_(o).mul_(4.0)


class _GRU(torch.autograd.Function):
    """One layer in one direction, time first: h' = (1 - z) n + z h, n = tanh(inputs + r * (recurrent part))."""

    @staticmethod
    def forward(
        ctx: Context,
        x: Tensor,
        into: Tensor,
        onto: Tensor,
        biased: Tensor | None,
        biased_again: Tensor | None,
        first: Tensor,
        note: Note,
    ) -> tuple[Tensor, Tensor]:
        (steps, rows, _), size = x.shape, onto.shape[1]
        gates = multiply(x, into, biased)
        hidden = torch.empty(steps + 1, rows, size, device=x.device)
        recurrent = torch.empty(steps, rows, size, device=x.device)
        hidden[0] = first
        for t in range(steps):
            again = functional.linear(hidden[t], onto, biased_again)
            r, z = gates[t, :, : 2 * size].add_(again[:, : 2 * size]).sigmoid_().chunk(2, dim=1)
            recurrent[t] = again[:, 2 * size :]
            n = gates[t, :, 2 * size :].addcmul_(r, recurrent[t]).tanh_()
            torch.lerp(n, hidden[t], z, out=hidden[t + 1])
        ctx.save_for_backward(x, into, onto)
        ctx.kept, ctx.note = (gates, hidden, recurrent), note
        return hidden[1:], hidden[-1].clone()

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Any, ...]:
        x, into, onto = ctx.saved_tensors
        gates, hidden, recurrent = ctx.kept
        size = onto.shape[1]
        r, z, n = gates.chunk(3, dim=2)
        by_new = (1 - z) * (1 - n.square())
        by_update = (hidden[:-1] - n) * z * (1 - z)
        by_reset = recurrent * r * (1 - r)
        from_inputs, from_hidden = torch.empty_like(gates), torch.empty_like(gates)
        into_hidden = gradients[1].clone()
        for t in range(len(x) - 1, -1, -1):
            into_hidden = into_hidden + gradients[0][t]
            new = into_hidden * by_new[t]
            from_inputs[t] = torch.cat([new * by_reset[t], into_hidden * by_update[t], new], dim=1)
            from_hidden[t] = from_inputs[t]
            from_hidden[t, :, 2 * size :].mul_(r[t])
            into_hidden = torch.addmm(into_hidden * z[t], from_hidden[t], onto)
        ctx.note(x, hidden[:-1], from_inputs, from_hidden)
        into_x = multiply(from_inputs, into.t()) if ctx.needs_input_grad[0] else None
        return into_x, None, None, None, None, None, None


def lstm_forward(layer: nn.LSTM, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.LSTM`, noted while the tape is recording."""
    plain = layer.forward

    def direction(x: Tensor, suffix: str, first: object) -> Any:
        into, onto = getattr(layer, f"weight_ih{suffix}"), getattr(layer, f"weight_hh{suffix}")
        biases = _biases(layer, suffix)
        bias = None if biases[0] is None else biases[0] + biases[1]
        out, hidden, cell = _LSTM.apply(x, into, onto, bias, first, _note(layer, suffix, name, tape))  # type: ignore[no-untyped-call]
        return out, (hidden, cell)

    def forward(x: Tensor, first: Any = None) -> Any:
        return _run(layer, name, tape, x, first, direction, 2) if tape.recording else plain(x, first)

    return forward


def gru_forward(layer: nn.GRU, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.GRU`, noted while the tape is recording."""
    plain = layer.forward

    def direction(x: Tensor, suffix: str, first: Any) -> Any:
        into, onto = getattr(layer, f"weight_ih{suffix}"), getattr(layer, f"weight_hh{suffix}")
        biases = _biases(layer, suffix)
        note = _note(layer, suffix, name, tape)
        out, hidden = _GRU.apply(x, into, onto, *biases, first[0], note)  # type: ignore[no-untyped-call]
        return out, (hidden,)

    def forward(x: Tensor, first: Any = None) -> Any:
        if not tape.recording:
            return plain(x, first)
        out, states = _run(layer, name, tape, x, None if first is None else (first,), direction, 1)
        return out, states[0]

    return forward


def _biases(layer: nn.RNNBase, suffix: str) -> tuple[Any, Any]:
    if not layer.bias:
        return None, None
    return getattr(layer, f"bias_ih{suffix}"), getattr(layer, f"bias_hh{suffix}")


def _note(layer: nn.RNNBase, suffix: str, name: str, tape: Tape) -> Note:
    """What the backward pass of one direction hands over, time first: inputs, states, gradients of both products.

    Where the two products are added up, one gradient is that of both.
    """
    weights = [getattr(layer, f"weight_{kind}{suffix}") for kind in ("ih", "hh")]
    biases = _biases(layer, suffix)

    def note(x: Tensor, hidden: Tensor, *gradients: Tensor) -> None:
        products = list(zip(weights, biases, (x, hidden), strict=True))
        groups = [products] if len(gradients) == 1 else [[one] for one in products]
        for group, found in zip(groups, gradients, strict=True):
            g = _put_rows_first(found)
            seen = [(tape.key(weight), _put_rows_first(a)) for weight, _, a in group if weight.requires_grad]
            added = [tape.key(bias) for _, bias, _ in group if bias is not None and bias.requires_grad]
            if seen:
                tape.matrices(name, seen, g)
            if added:
                total = g.sum(dim=1)
                for key in added:
                    tape.record_gradients(name, key, total)

    return note


def _put_rows_first(values: Tensor) -> Tensor:
    """Rows before time, in memory as well: so a sum takes each row by itself, however many there are."""
    return values.transpose(0, 1).contiguous()


def _run(layer: nn.RNNBase, name: str, tape: Tape, x: Any, first: Any, direction: Any, states: int) -> Any:
    """All layers and directions, with dropout between layers; returns outputs and the last states, as PyTorch does."""
    if not isinstance(x, Tensor) or x.ndim != 3:
        raise DataError("learning.packed_sequences", layer=name)
    if first is not None and any(state.requires_grad for state in first):
        raise DataError("learning.state_trained", layer=name)
    x = x.transpose(0, 1) if layer.batch_first else x
    tape.rows_of(name, x.transpose(0, 1))
    ways = ("", "_reverse") if layer.bidirectional else ("",)
    ends: list[list[Tensor]] = [[] for _ in range(states)]
    zeros = torch.zeros(x.shape[1], layer.hidden_size, device=x.device)
    for depth in range(layer.num_layers):
        outputs = []
        for way in ways:
            place = len(ends[0])
            begin = [s[place] for s in first] if first else [zeros] * states
            back = way == "_reverse"
            out, last = direction(x.flip(0) if back else x, f"_l{depth}{way}", tuple(begin))
            outputs.append(out.flip(0) if back else out)
            for collected, state in zip(ends, last, strict=True):
                collected.append(state)
        x = torch.cat(outputs, dim=2) if len(outputs) > 1 else outputs[0]
        if layer.dropout and depth + 1 < layer.num_layers:
            x = functional.dropout(x, layer.dropout, layer.training)
    return (x.transpose(0, 1) if layer.batch_first else x), tuple(torch.stack(s) for s in ends)
