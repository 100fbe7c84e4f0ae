"""Two sizes of physical batches: a second one is taken only where rows are computed alike in both, bit by bit."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import mosha
from mosha.learning.checking.probe import fit_memory
from mosha.learning.checking.sizes import SmallerSize, find_smaller_size
from mosha.learning.gradients.engine import Engine
from mosha.learning.physical_batches import choose_smaller_size
from mosha.learning.training import make_losses
from tests.learning.test_any_model import Own
from tests.learning.test_noise_and_sampling import MODELS, contribution, deep, pictures  # type: ignore[attr-defined]

torch.set_num_threads(1)
ROWS, FEW = 24, 16  # of a plan with batches of about 16
PLAN = mosha.learning.DPSGD(steps=100, rate=0.1, batch=16, clip=1.0, noise_multiplier=1.0)
LOSSES = make_losses(nn.CrossEntropyLoss(reduction="none"))


def layers(*before: Any) -> Any:
    return nn.Sequential(*before, nn.Linear(8, 20), nn.Tanh(), nn.Linear(20, 3))


def scale() -> Any:
    """One product for each number: no machine takes its sums in another order."""
    return Own(lambda self, x: x * self.gamma, gamma=nn.Parameter(torch.rand(8) + 0.5))


def rows(count: Any) -> tuple[Any, ...]:
    return torch.randn(count, 8), torch.zeros(count, dtype=torch.long)


def find_size(model: Any, plan: Any = PLAN, draw: Any = rows) -> Any:
    engine = Engine(model)
    try:
        return find_smaller_size(plan, engine, LOSSES, draw(ROWS), targets=1)
    finally:
        engine.detach()


def zero_head() -> Any:
    model = layers()
    nn.init.zeros_(model[-1].weight)
    return model


def in_small_batches(change: Any) -> Any:
    """What a model does only where there are few rows."""
    return layers(Own(lambda _self, x: change(x) if len(x) == FEW else x))


@pytest.mark.parametrize("name", [*MODELS, "deep"])
def test_where_a_second_size_is_taken_every_row_contributes_the_same_in_both(name: Any) -> None:
    make, draw = (deep, pictures) if name == "deep" else MODELS[name]
    model, batch = make(), draw(ROWS)
    found = find_size(model, draw=draw)
    assert found in (None, SmallerSize(FEW, 1))
    if found is None:
        return
    engine = Engine(model)
    engine.tape.most = ROWS
    few = tuple(values[:FEW] for values in batch)
    for place in (0, 7, FEW - 1):
        assert torch.equal(contribution(engine, few, place), contribution(engine, batch, place))


@pytest.mark.parametrize(
    "model",
    [
        in_small_batches(lambda x: x * (1 + 2.0**-22)),  # rounds otherwise
        in_small_batches(lambda x: x - x.mean(0)),  # mixes rows
        in_small_batches(lambda x: x[: 1 << 40, :7]),  # breaks
        zero_head(),  # nothing would show
    ],
    ids=["rounds", "mixes", "breaks", "zeros"],
)
def test_a_model_that_may_do_something_else_in_small_batches_has_one_size(model: Any) -> None:
    before = {name: values.clone() for name, values in model.state_dict().items()}
    assert find_size(model) is None
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


def test_a_second_size_is_looked_for_where_it_pays() -> None:
    assert find_size(scale()) == SmallerSize(FEW, 1)
    for options in ({"steps": 99, "batch": 16}, {"steps": 100}):
        plan = mosha.learning.DPSGD(rate=0.1, clip=1.0, noise_multiplier=1.0, **options)  # type: ignore[arg-type]
        assert find_size(scale(), plan) is None


def test_a_size_holds_for_the_threads_and_the_library_it_was_tried_with() -> None:
    size = SmallerSize(FEW, torch.get_num_threads())
    assert size.has_room(FEW)
    assert not size.has_room(FEW + 1)
    assert not SmallerSize(FEW, torch.get_num_threads() + 1).has_room(1)
    torch._C._set_mkldnn_enabled(False)
    try:
        assert not size.has_room(FEW)
    finally:
        torch._C._set_mkldnn_enabled(True)


def test_a_training_computes_batches_of_both_sizes_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    record = Engine.record

    def watch(self: Any, losses: Any, rows: Any, *, each: Any = 1) -> Any:
        seen.add(rows)
        return record(self, losses, rows, each=each)

    data = torch.randn(160, 8), torch.randint(0, 8, (160,))
    model = scale()
    account = mosha.Ledger.memory().account("rows", unit=mosha.Example(), epsilon=5, delta=1e-5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = nn.CrossEntropyLoss(reduction="none")
    with PLAN.calibrate(epsilon=5, delta=1e-5).train(model, data, loss, optimizer, account=account) as training:
        monkeypatch.setattr(Engine, "record", watch)
        for _ in training:
            pass
    assert seen == {FEW, ROWS}  # 100 batches of about 16: one of each kind is missing with a chance below 1e-20


def test_rows_that_are_large_pass_in_few_and_in_two_sizes() -> None:
    """Of a row the backward pass keeps 4 MiB or a little more: nine of them fit into 40 MiB."""
    long = torch.ones(1 << 17)
    engine = Engine(layers(Own(lambda _self, x: (x[:, :, None] * long + x.sum().sqrt()).tanh().mean(2))))
    try:
        drawn = torch.rand(ROWS, 8).requires_grad_(), torch.zeros(ROWS, dtype=torch.long)
        plan = fit_memory(PLAN, engine, LOSSES, lambda count: tuple(values[:count] for values in drawn))
        assert plan.physical in (8, 9)
        assert 8 <= plan.at_once <= plan.physical
        assert choose_smaller_size(16, 8) == 4
        said = replace(PLAN, physical=50)
        assert fit_memory(said, engine, LOSSES, rows) == said
    finally:
        engine.detach()
