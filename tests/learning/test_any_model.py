"""Models as people write them: what is noted is what each example gives alone, or the model is refused."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  (as everybody calls it)
from torch import nn

import mosha
from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.checking.oracle import check_gradients
from mosha.learning.checking.probe import probe
from mosha.learning.gradients.any_module import AnyForward
from mosha.learning.gradients.engine import Engine
from mosha.learning.plan import DPSGD

torch.set_num_threads(1)
ROWS, WIDTH, LENGTH = 6, 8, 7


class Own(nn.Module):
    """Some parts and a forward pass, in one line."""

    def __init__(self, forward: Any, **parts: Any) -> None:
        super().__init__()
        self.own = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.own(self, *inputs)


class RootNorm(nn.Module):
    """As in Llama: not PyTorch's own class."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: Any) -> Any:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Product(nn.Module):
    """As in GPT-2: a matrix that stands the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(WIDTH, 5)), nn.Parameter(torch.randn(5))

    def forward(self, x: Any) -> Any:
        return torch.addmm(self.bias, x.reshape(-1, WIDTH), self.weight).view(*x.shape[:-1], 5)


class Quick(nn.LayerNorm):
    """Derived from a layer of PyTorch, with a forward pass of its own that does the same."""

    def forward(self, x: Any) -> Any:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


def positions(one: Any) -> Any:
    def forward(self: Any, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        return x + self.places(places.unsqueeze(0) if one else places)

    return Own(forward, places=nn.Embedding(16, WIDTH))


def class_token() -> Any:
    def forward(self: Any, x: Any) -> Any:
        return self.layer(torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places)

    parts = {"token": nn.Parameter(torch.randn(1, 1, WIDTH)), "places": nn.Parameter(torch.randn(1, 8, WIDTH))}
    return Own(forward, layer=nn.Linear(WIDTH, 3), **parts)


def windows() -> Any:
    def forward(self: Any, x: Any) -> Any:
        cut = x[:, :6].reshape(len(x) * 2, 3, WIDTH)
        return self.layer(torch.tanh(self.norm(cut))).reshape(len(x), -1)

    return Own(forward, layer=nn.Linear(WIDTH, 3), norm=nn.LayerNorm(WIDTH))


def windows_with_bias() -> Any:
    def attend(self: Any, x: Any) -> Any:
        return self.layer(x) + self.bias

    inner = Own(attend, layer=nn.Linear(WIDTH, 3), bias=nn.Parameter(torch.randn(3, 3)))

    def forward(self: Any, x: Any) -> Any:
        return self.inner(x[:, :6].reshape(len(x) * 2, 3, WIDTH)).reshape(len(x), -1)

    return nn.Sequential(nn.Linear(WIDTH, WIDTH), Own(forward, inner=inner))


def experts() -> Any:
    def forward(self: Any, x: Any) -> Any:
        flat = x.reshape(-1, WIDTH)
        chosen, out = self.gate(flat).argmax(1), torch.zeros(len(flat), 3)
        for number, expert in enumerate(self.experts):
            (places,) = torch.where(chosen == number)
            out = out.index_add(0, places, expert(flat[places]))
        return out.reshape(len(x), -1) + self.gate(flat).reshape(len(x), -1).sum(1, keepdim=True)

    return Own(forward, gate=nn.Linear(WIDTH, 2), experts=nn.ModuleList([nn.Linear(WIDTH, 3) for _ in range(2)]))


def cells() -> Any:
    def forward(self: Any, x: Any) -> Any:
        state = None
        for place in range(x.shape[1]):
            state = self.cell(x[:, place], state)
        return state[0]

    return Own(forward, cell=nn.LSTMCell(WIDTH, 4))


def packed() -> Any:
    def forward(self: Any, x: Any) -> Any:
        lengths = torch.full((len(x),), x.shape[1])
        return self.layer(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))[1][-1]

    return Own(forward, layer=nn.GRU(WIDTH, 3, batch_first=True))


def frozen_norm() -> Any:
    model = nn.Sequential(nn.Linear(LENGTH * WIDTH, 5), nn.BatchNorm1d(5).eval(), nn.Tanh(), nn.Linear(5, 2))
    for name, parameter in model[1].named_parameters():
        parameter.data += 0.3
        parameter.requires_grad_(name == "weight")
    return nn.Sequential(nn.Flatten(), model)


def by_adapter() -> Any:
    """As in DoRA: the weights of small layers are used outside of them."""

    def forward(self: Any, x: Any) -> Any:
        change = self.up.weight @ self.down.weight
        norm = (self.base.weight + change).norm(dim=1, keepdim=True)
        return F.linear(x, self.size * (self.base.weight + change) / norm)

    parts = {"up": nn.Linear(2, 3, bias=False), "down": nn.Linear(WIDTH, 2, bias=False)}
    return Own(forward, base=nn.Linear(WIDTH, 3).requires_grad_(False), size=nn.Parameter(torch.rand(3, 1)), **parts)


def plain_recurrent() -> Any:
    return Own(lambda self, x: self.layer(x)[1][0], layer=nn.RNN(WIDTH, 3, batch_first=True))


def a_number() -> Any:
    scale = nn.Parameter(torch.ones(()))
    return Own(lambda self, x: self.layer(x) * self.scale, layer=nn.Linear(WIDTH, 2), scale=scale)


def bags() -> Any:
    def forward(self: Any, x: Any) -> Any:
        tokens = (x[:, :, 0] > 0).long()
        return self.bag(tokens.flatten(), torch.arange(0, tokens.numel(), LENGTH))

    return Own(forward, bag=nn.EmbeddingBag(9, 2))


def with_hooks(layer: Any) -> Any:
    """Inputs and outputs are changed around the layer, which is what it was."""
    layer.register_forward_pre_hook(lambda _layer, inputs: (2 * inputs[0] + 1,))
    layer.register_forward_hook(lambda _layer, _inputs, out: 3 * out)
    return layer


def hook_with_weights() -> Any:
    """A hook that has the weights of its layer take part twice."""
    layer = nn.Linear(WIDTH, 3)
    layer.register_forward_pre_hook(lambda own, inputs: (inputs[0] * own.weight.sum(),))
    return Own(lambda self, x: self.layer(x), layer=layer)


def weight_norm_by_hook() -> Any:
    with warnings.catch_warnings(action="ignore"):  # the former way of PyTorch, which many models still have
        return nn.utils.weight_norm(nn.Linear(WIDTH, 3))


MODELS = {
    "hooks around a layer": (lambda: with_hooks(nn.Linear(WIDTH, 3)), None),
    "hooks around several": (lambda: with_hooks(nn.Sequential(with_hooks(nn.Linear(WIDTH, 3)), nn.Tanh())), None),
    "hooks around a norm": (lambda: with_hooks(RootNorm()), "_spread"),
    "hooks around a number": (lambda: with_hooks(a_number()), "_map"),
    "a hook that uses weights": (hook_with_weights, "_map"),
    "a hook that makes weights": (weight_norm_by_hook, "_map"),
    "hooks around made weights": (lambda: nn.Sequential(with_hooks(nn.Sequential(weight_norm_by_hook()))), "_map"),
    "positions": (lambda: positions(False), None),
    "positions of one row": (lambda: positions(True), None),
    "a class token": (class_token, "_expand"),
    "a root norm": (RootNorm, "_spread"),
    "a scale": (lambda: Own(lambda self, x: x * self.gamma, gamma=nn.Parameter(torch.rand(WIDTH))), "_spread"),
    "a product": (Product, "_product"),
    "a derived norm": (lambda: Quick(WIDTH), "_as_kind"),
    "windows": (windows, None),
    "windows with a bias": (windows_with_bias, "_map"),
    "experts": (experts, "_map"),
    "a plain recurrent layer": (
        lambda: Own(lambda s, x: s.layer(x)[1][0], layer=nn.RNN(WIDTH, 3, batch_first=True)),
        "_map",
    ),
    "cells": (cells, "_map"),
    "packed sequences": (packed, "_map"),
    "a frozen batch norm": (frozen_norm, "_map"),
    "an adapter": (by_adapter, "_map"),
    "a number": (
        lambda: Own(lambda s, x: s.layer(x) * s.scale, layer=nn.Linear(WIDTH, 2), scale=nn.Parameter(torch.ones(()))),
        "_map",
    ),
}


def losses(model: Any, batch: Any) -> Any:
    return (torch.sin(model(batch[0])).flatten(1) * batch[1]).sum(1)


def public(rows: Any) -> tuple[Any, ...]:
    return torch.randn(rows, LENGTH, WIDTH), torch.randn(rows, 1)


def clip_one_by_one(model: Any, engine: Any, batch: Any, clip: Any) -> tuple[Any, ...]:
    total, norms = [torch.zeros_like(p) for p in engine.parameters.values()], []
    for row in range(len(batch[0])):
        value = losses(model, tuple(values[row : row + 1] for values in batch)).sum()
        found = torch.autograd.grad(value, list(engine.parameters.values()), allow_unused=True)
        found = [torch.zeros_like(t) if g is None else g for g, t in zip(found, total, strict=True)]  # type: ignore[assignment]
        norms.append(float(torch.stack([g.norm() for g in found]).norm()))
        total = [t + min(1.0, clip / norms[-1]) * g for t, g in zip(total, found, strict=True)]
    return dict(zip(engine.parameters, total, strict=True)), norms


@pytest.mark.parametrize("name", MODELS)
def test_what_is_noted_is_what_each_example_gives_alone(name: Any) -> None:
    make, way = MODELS[name]
    model = make()
    engine = Engine(model)
    probe(engine, losses, public, rows=ROWS)
    batch = public(ROWS)
    clip = float(np.median(clip_one_by_one(model, engine, batch, 1.0)[1]))
    wanted, norms = clip_one_by_one(model, engine, batch, clip)
    found = engine.clip(
        lambda m: losses(m, batch), ROWS, lambda n: np.minimum(1, clip / np.sqrt(np.square(n).sum(axis=0)))
    )
    assert np.allclose(found.norms, norms, rtol=1e-4)
    for parameter, gradient in wanted.items():
        assert torch.allclose(found.sums[parameter].view_as(gradient), gradient, rtol=1e-3, atol=1e-5), parameter
    forwards = [vars(module)["forward"].recorded for module in engine._changed]
    ways = {forward._way.__name__ for forward in forwards if isinstance(forward, AnyForward) and forward._way}
    assert ways == (set() if way is None else {way})
    engine.detach()


def test_the_oracle_finds_gradients_that_are_given_to_other_examples() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(LENGTH * WIDTH, 3))
    engine = Engine(model)
    check_gradients(engine, losses, public(5))
    plain = engine.tape.affine
    engine.tape.affine = lambda layer, weight, bias, a, g: plain(layer, weight, bias, a.roll(1, 0), g)
    with pytest.raises(DataError) as refusal:
        check_gradients(engine, losses, public(5))
    assert refusal.value.code == "learning.gradients_differ"


def test_windows_of_other_rows_first_are_refused() -> None:
    def forward(self: Any, x: Any) -> Any:
        return self.layer(x[:, :6].transpose(0, 1).reshape(2 * len(x), 3, WIDTH)).reshape(len(x), -1)

    with pytest.raises((DataError, InvalidParameter)):
        probe(Engine(Own(forward, layer=nn.Linear(WIDTH, 3))), losses, public, rows=ROWS)


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


PLAN = DPSGD(steps=2, rate=0.5, clip=1.0, batch=10, noise_multiplier=30.0, delta=1e-6)
CROSS = nn.CrossEntropyLoss(reduction="none")
X, Y = torch.randn(20, 4), torch.randint(2, (20,))


def join(rows: Any) -> dict[Any, Any]:
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


DATA = {
    "arrays": (X.double().numpy(), Y.numpy()),
    "columns by name": {"x": X, "mask": torch.ones(20, 4), "labels": Y},
    "mappings": [{"x": x, "mask": torch.ones(4), "label": int(y)} for x, y in zip(X, Y, strict=True)],
    "lists of numbers": [{"x": x.tolist(), "mask": [1.0] * 4, "labels": int(y)} for x, y in zip(X, Y, strict=True)],
    "a mapping and a target": ({"x": X, "mask": torch.ones(20, 4)}, Y),
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("collate", [None, join])
def test_data_of_many_shapes_are_trained_on(kind: Any, collate: Any, account: Any) -> None:
    data = DATA[kind]
    if collate is not None and not (isinstance(data, list) and isinstance(data[0]["x"], torch.Tensor)):
        pytest.skip("a function for examples of tensors")
    if collate is not None:
        data = [{**row, "label": torch.tensor(row["label"])} for row in data]  # type: ignore[dict-item, index]
    layer = nn.Linear(4, 2)

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any, mask: float = 1.0) -> Any:
            return self.layer(x["x"] * x["mask"] if isinstance(x, dict) else x * mask)

    model = Named()
    with PLAN.train(
        model, data, CROSS, torch.optim.SGD(model.parameters(), lr=0.1), account=account, collate=collate
    ) as t:
        assert [step.number for step in t] == [1, 2]


def test_several_targets_are_handed_to_the_loss_together(account: Any) -> None:
    model = nn.Linear(4, 2)

    def loss(output: Any, targets: Any) -> Any:
        first, second = targets
        return CROSS(output, first) + (output[:, 0] - second) ** 2

    data = (X, Y, torch.randn(20))
    with PLAN.train(
        model, data, loss, torch.optim.SGD(model.parameters(), lr=0.1), account=account, target=2
    ) as training:
        training.step()


def test_a_compiled_model_and_a_loader_are_taken_or_told_what_next(account: Any) -> None:
    model = nn.Linear(4, 2)
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)  # type: ignore[attr-defined]
    with PLAN.train(compiled, (X, Y), CROSS, optimizer, account=account) as training:
        training.step()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y))
    with pytest.raises(InvalidParameter, match=r"mosha\.learning\.private"):
        PLAN.train(model, loader, CROSS, optimizer, account=account)
