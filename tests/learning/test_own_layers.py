"""Layers that were registered are as exact as any other, and wrong ones are refused before anything is paid."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mosha
from mosha import learning
from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.gradients.engine import Engine
from mosha.learning.gradients.own_layers import _REGISTERED, register_layer

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
PLAN = learning.DPSGD(steps=2, rate=0.5, clip=1.0, batch=20, physical=32, noise_multiplier=20.0, delta=1e-6)
DATA = torch.randn(40, 6), torch.randint(0, 2, (40,))


class Mixed(nn.Module):
    """A layer of one's own with a part inside and an option: x W + a scale, times a number."""

    def __init__(self, inputs: Any, outputs: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.inner = nn.Linear(outputs, outputs, bias=False)

    def forward(self, x: Any, *, times: float = 2.0) -> Any:
        return self.inner(x @ self.weight) * times


def right(layer: Any, inputs: Any, gradients: Any) -> dict[Any, Any]:
    (x,) = inputs
    inner = 2.0 * gradients
    return {
        layer.weight: x[:, :, None] * (inner @ layer.inner.weight)[:, None, :],
        layer.inner.weight: inner[:, :, None] * (x @ layer.weight)[:, None, :],
    }


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    before = dict(_REGISTERED)
    yield
    _REGISTERED.clear()
    _REGISTERED.update(before)


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


def network() -> Any:
    return nn.Sequential(Mixed(6, 5), nn.Tanh(), Mixed(5, 4), nn.Linear(4, 2))


def begun(account: Any, model: Any = None) -> Any:
    model = network() if model is None else model
    return PLAN.train(model, DATA, LOSS, torch.optim.SGD(model.parameters(), lr=0.1), account=account)


def sum_by_engine(model: Any) -> Any:
    engine = Engine(model)
    rule = lambda norms: 1 / np.maximum(np.sqrt(np.square(norms).sum(axis=0)), 0.5)
    found = engine.clip(lambda m: LOSS(m(DATA[0]), DATA[1]), 40, rule)
    engine.detach()
    return torch.cat([found.sums[name].flatten() for name, _ in model.named_parameters()])


def test_registered_gradients_give_the_sum_that_a_loop_gives(account: Any) -> None:
    model, calls = network(), []

    @register_layer(Mixed)
    def gradients(layer: Any, inputs: Any, upstream: Any) -> Any:
        calls.append(len(upstream))
        return right(layer, inputs, upstream)

    wanted = 0
    for x, y in zip(*DATA, strict=True):
        found = torch.autograd.grad(LOSS(model(x[None]), y[None]).sum(), list(model.parameters()))
        flat = torch.cat([g.flatten() for g in found])
        wanted = wanted + flat / flat.norm().clamp_min(0.5)
    assert torch.allclose(sum_by_engine(model), wanted, rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]
    assert calls == [40, 40]
    assert [step.number for step in begun(account, model)] == [1, 2]


def given_to_other_rows(layer: Any, inputs: Any, gradients: Any) -> dict[Any, Any]:
    return {p: g.roll(1, dims=0) for p, g in right(layer, inputs, gradients).items()}


def forgotten(layer: Any, inputs: Any, gradients: Any) -> dict[Any, Any]:
    return {layer.weight: right(layer, inputs, gradients)[layer.weight]}


WRONG = {
    "given to other rows": given_to_other_rows,
    "summed": lambda *a: {p: g.sum(dim=0, keepdim=True).expand_as(g) for p, g in right(*a).items()},
    "half of it": lambda *a: {p: g / 2 for p, g in right(*a).items()},
    "a parameter is forgotten": forgotten,
    "the wrong shape": lambda *a: {p: g.transpose(1, 2) for p, g in right(*a).items()},
    "nothing": lambda *a: None,
    "right in small batches alone": lambda *a: right(*a) if len(a[2]) < 8 else given_to_other_rows(*a),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_refused_before_anything_is_paid(account: Any, name: Any) -> None:
    register_layer(Mixed)(WRONG[name])
    with pytest.raises((DataError, InvalidParameter)) as refused:
        begun(account)
    assert refused.value.spent == "nothing"
    assert account.spent == 0


def test_what_is_no_layer_cannot_be_registered() -> None:
    for kinds in ((), (3,), (dict,)):
        with pytest.raises(InvalidParameter, match="register_layer"):
            register_layer(*kinds)
    with pytest.raises(InvalidParameter, match="register_layer"):
        register_layer(Mixed)(None)


def test_a_kind_that_is_derived_is_not_taken_for_the_one_that_was_registered() -> None:
    class Other(Mixed):
        def forward(self, x: Any) -> Any:  # type: ignore[override]
            return super().forward(x, times=3.0)

    register_layer(Mixed)(lambda *_: pytest.fail("asked for another kind"))
    assert torch.isfinite(sum_by_engine(nn.Sequential(Other(6, 2)))).all()
