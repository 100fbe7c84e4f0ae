"""Clipped sums are those of per-example clipping, for every kind of layer."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mosha.learning.gradients import device as devices
from mosha.learning.gradients.convolution import pool_forward
from mosha.learning.gradients.engine import Engine
from mosha.learning.gradients.norms import RowNorms, row_norms_squared
from mosha.learning.gradients.shared_parameters import Tied
from mosha.learning.gradients.tape import Tape
from tests.learning.every_layer import MODELS, losses_of

torch.set_num_threads(1)


def flat_rule(clip: Any) -> Any:
    def rule(norms: Any) -> Any:
        total = np.sqrt(np.square(norms).sum(axis=0))
        return np.minimum(1.0, clip / np.maximum(total, 1e-30))

    return rule


def one_by_one(model: Any, batch: Any, clip: Any, each: Any = 1) -> tuple[Any, ...]:
    """Per-unit clipping by a loop: the definition."""
    rows = len(batch[0])
    parameters = [p for p in model.parameters() if p.requires_grad]
    total, norms = [torch.zeros_like(p) for p in parameters], []
    for start in range(0, rows, each):
        part = tuple(values[start : start + each] for values in batch)
        found = torch.autograd.grad(losses_of(model, part).sum(), parameters)
        norm = torch.stack([g.double().square().sum() for g in found]).sum().sqrt()
        norms.append(norm)
        for sums, gradient in zip(total, found, strict=True):
            sums += gradient * min(1.0, clip / float(norm))  # noqa: PLW2901  (in place)
    return total, torch.stack(norms)


@contextmanager
def doubled() -> Iterator[None]:
    """New tensors are of double precision, as those that a model makes while it runs."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("memory", [0, 1 << 30], ids=["ghost", "formed"])
@pytest.mark.parametrize("each", [1, 3])
def test_clipped_sums_are_those_of_clipping_one_by_one(name: Any, memory: Any, each: int) -> None:
    """The definition is followed in double precision; rounding is measured by the lengths of what was added up."""
    make, draw = MODELS[name]
    model, batch = make(), draw(6)
    with doubled():
        wide, rows = copy.deepcopy(model).double(), tuple(v.double() if v.is_floating_point() else v for v in batch)
        lengths = one_by_one(wide, rows, 1.0)[1].view(-1, each).sum(dim=1)
        clip = float(one_by_one(wide, rows, 1.0, each)[1].median())
        expected, norms = one_by_one(wide, rows, clip, each)
    engine = Engine(model, memory=memory)
    found = engine.clip(lambda m: losses_of(m, batch), 6, flat_rule(clip), each=each)
    engine.detach()
    assert bool(((found.norms - norms).abs() <= 1e-5 * lengths).all())
    added = float((lengths * (clip / norms).clamp_max(1.0)).sum())
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    for parameter, right in zip(names, expected, strict=True):
        assert float((found.sums[parameter] - right).norm()) <= 1e-5 * added, parameter


def test_tied_gradients_of_a_unit_vanish_together_where_one_is_too_large() -> None:
    """One factor may be too large to be written down where the other is zero: tokens must not stay alone."""
    tokens, a, g = torch.tensor([[1], [2]]), torch.ones(2, 2, 3), torch.ones(2, 1, 4)
    a[0, 1], g[0] = 0.0, 2.0**127
    summed = torch.empty(4, 3)
    Tied(tokens, a, g).weighted_sum(torch.tensor([4.0, 1.0]), summed)
    alone = torch.empty(4, 3)
    Tied(tokens[1:], a[1:], g[1:]).weighted_sum(torch.ones(1), alone)
    assert torch.equal(summed, alone)
    assert alone[2].tolist() == [2.0] * 3


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padded", [None, 0])
def test_bags_give_what_pytorch_gives_also_where_nothing_is_in_them(mode: str, padded: Any) -> None:
    bag, tokens = nn.EmbeddingBag(5, 3, mode=mode, padding_idx=padded), torch.tensor([[0, 0], [1, 0], [2, 3], [4, 4]])
    expected, engine = bag(tokens), Engine(bag)
    with engine.tape.record(4, 1):
        assert torch.allclose(bag(tokens), expected, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_copy_of_a_wrapped_model_computes_with_its_own_parameters(name: Any) -> None:
    """A moving average that is made in the middle of a training is such a copy."""
    make, draw = MODELS[name]
    model, batch = make(), draw(6)
    engine = Engine(model)
    other = copy.deepcopy(copy.deepcopy(model))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
        expected = make()
        expected.load_state_dict(other.state_dict())
        assert torch.equal(losses_of(other, batch), losses_of(expected, batch))
        assert not torch.equal(losses_of(other, batch), losses_of(model, batch))
    again = Engine(other)  # a copy is not wrapped, and can be
    sums = [used.clip(lambda m: losses_of(m, batch), 6, flat_rule(1.0)).sums for used in (engine, again)]
    engine.detach()
    again.detach()
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert all(set(found) == set(names) for found in sums)


@pytest.mark.parametrize("scale", [1.0, 1e-20, float("nan")])  # ordinary, too small for single precision, broken
@pytest.mark.parametrize("width", [3, 5000])
def test_norms_worked_out_together_are_those_worked_out_alone(scale: Any, width: int) -> None:
    rows = [torch.randn(4, 7), torch.randn(4, width), torch.randn(4, 2)]
    rows[1][2] *= scale
    together = RowNorms()
    asked = [together.of(values) for values in rows]
    for squares, values in reversed(list(zip(asked, rows, strict=True))):
        assert np.array_equal(squares(), row_norms_squared(values), equal_nan=True)
        assert squares().dtype == np.float64


@pytest.mark.parametrize("name", MODELS)
def test_whichever_library_multiplies_sums_and_norms_are_the_same(name: Any, monkeypatch: Any) -> None:
    """Small models never ask for large products: here every product counts as large, or none."""
    make, draw = MODELS[name]
    model, batch = make().eval(), draw(6)
    found = []
    for least in (0, 1 << 62):
        monkeypatch.setattr(devices, "LEAST_PRODUCT", least)
        engine = Engine(model, memory=0)
        found.append(engine.clip(lambda m: losses_of(m, batch), 6, flat_rule(1.0)))
        engine.detach()
    large, small = found
    assert torch.allclose(large.norms, small.norms, rtol=1e-4, atol=1e-6)
    for parameter, sums in large.sums.items():
        assert torch.allclose(sums, small.sums[parameter], rtol=1e-3, atol=1e-5), parameter


@pytest.mark.parametrize(("entries", "outputs"), [(64, 256), (784, 512), (100, 512), (300, 70)])
def test_a_row_of_a_large_product_is_the_same_beside_other_rows_in_other_places_and_sizes(
    entries: int, outputs: int
) -> None:
    a, b = torch.randn(288, entries), torch.randn(outputs, entries)
    whole, order = devices.multiply(a, b), torch.randperm(288)
    assert devices.is_large(a, b)
    assert torch.allclose(whole, a @ b.t(), rtol=1e-4, atol=1e-3)
    assert torch.equal(devices.multiply(a[order], b), whole[order])
    others = torch.where(torch.arange(288).unsqueeze(1) % 2 == 0, a, 1e3 * torch.randn(288, entries))
    assert torch.equal(devices.multiply(others, b)[::2], whole[::2])
    assert torch.equal(devices.multiply(a[:264], b), whole[:264])
    turned = devices.multiply(a, b.t().contiguous().t())  # as gradients of inputs ask for it
    assert torch.allclose(turned, whole, rtol=1e-4, atol=1e-3)


def test_a_product_takes_all_of_single_precision_whatever_the_process_was_told() -> None:
    a, b = torch.randn(256, 512), torch.randn(512, 512)
    wanted = devices.multiply(a, b)
    before = [kernels.fp32_precision for kernels in devices.KERNELS]
    torch.set_float32_matmul_precision("medium")
    try:
        with devices.compute_exactly():
            assert torch.equal(devices.multiply(a, b), wanted)
    finally:
        torch.set_float32_matmul_precision("highest")
        for kernels, was in zip(devices.KERNELS, before, strict=True):
            kernels.fp32_precision = was


def test_without_onednn_products_are_those_of_pytorch(monkeypatch: Any) -> None:
    a, b, bias = torch.randn(256, 512), torch.randn(512, 512), torch.randn(512)
    monkeypatch.setattr(devices, "_find_product", lambda: None)
    assert torch.equal(devices.multiply(a, b, bias), nn.functional.linear(a, b, bias))


@pytest.mark.parametrize(
    "layer",
    [nn.MaxPool2d(2, 1), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d((2, 3), ceil_mode=True), nn.MaxPool2d(2, 1, dilation=2)],
    ids=str,
)
@pytest.mark.parametrize("coarse", [False, True], ids=["distinct", "ties"])
def test_pooling_is_that_of_pytorch_bit_by_bit(layer: Any, coarse: bool) -> None:
    x = torch.randn(5, 6, 11, 9)
    x = (x.round() if coarse else x).requires_grad_()
    x.data[0, 0, 0, 0] = float("nan")
    tape = Tape(0, {})
    own = pool_forward(layer, "", tape)
    wanted = layer(x)
    upstream = torch.randn_like(wanted)
    (gradient,) = torch.autograd.grad(wanted, x, upstream)
    with tape.record(5, 1):
        found = own(x)
    assert found.is_contiguous()
    assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))
    assert torch.equal(torch.autograd.grad(found, x, upstream)[0], gradient)


def test_a_pooling_layer_that_stands_in_several_places_is_one_layer() -> None:
    pool = nn.MaxPool2d(2)
    model = nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 3, 3), pool), nn.Sequential(nn.Conv2d(3, 3, 3), pool, nn.Flatten()), nn.Linear(12, 3)
    )
    batch = (torch.randn(4, 1, 14, 14), torch.randint(0, 3, (4,)))
    engine = Engine(model)
    found = engine.clip(lambda m: losses_of(m, batch), 4, flat_rule(1e9))
    engine.detach()
    losses_of(model, batch).sum().backward()
    for name, parameter in model.named_parameters():
        assert torch.allclose(found.sums[name], parameter.grad, atol=1e-4), name


@pytest.mark.parametrize("memory", [0, 28 << 20], ids=["by products", "formed"])
@pytest.mark.parametrize("onednn", [True, False], ids=["oneDNN", "without oneDNN"])
def test_no_contribution_is_longer_than_the_clip_inside_autocast(memory: Any, onednn: Any) -> None:
    """All entries are just below the middle between two numbers of 8 bits: cutting them makes all norms smaller."""
    entry = 1 + 2.0**-8 - 2.0**-12
    model, x, g = nn.Linear(64, 48), torch.full((16, 30, 64), entry), torch.full((16, 30, 48), entry)

    def losses(model: nn.Module) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):  # as a training computes them
            return (model(x) * g).flatten(1).sum(dim=1)

    engine = Engine(model, memory=memory)
    first_alone = lambda norms: (np.arange(norms.shape[1]) == 0) / np.sqrt((norms**2).sum(axis=0))
    torch._C._set_mkldnn_enabled(onednn)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            found = engine.clip(losses, 16, first_alone)
    finally:
        torch._C._set_mkldnn_enabled(True)
        engine.detach()
    assert math.sqrt(sum(float(sums.double().square().sum()) for sums in found.sums.values())) <= 1 + 2.0**-11


def test_a_bias_whose_numbers_lie_apart_in_memory_is_read_where_they_lie() -> None:
    """A kernel that reads on from the first number would hand out what lies behind it in memory."""
    a, b = torch.randn(256, 512), torch.randn(512, 512)
    for bias in (torch.randn(1).expand(512), torch.randn(1024)[::2]):
        assert torch.allclose(devices.multiply(a, b, bias), nn.functional.linear(a, b, bias), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("fault", ["absent", "of other arguments", "of 8 bits", "of doubles"])
def test_a_product_that_is_not_there_or_not_of_single_precision_is_not_used(fault: str, monkeypatch: Any) -> None:
    right = torch.ops.mkldnn._linear_pointwise
    found: dict[str, Any] = {
        "of other arguments": lambda a, b: a @ b.t(),
        "of 8 bits": lambda a, b, *rest: right(a.bfloat16().float(), b.bfloat16().float(), *rest),
        "of doubles": lambda a, b, *rest: right(a, b, *rest).double(),
    }
    names = type("Names", (), {"_linear_pointwise": staticmethod(found[fault])} if fault in found else {})
    monkeypatch.setattr(torch.ops, "mkldnn", names)
    devices._find_product.cache_clear()
    try:
        assert devices._find_product() is None
        a, b = torch.randn(256, 512), torch.randn(512, 512)
        assert torch.equal(devices.multiply(a, b), nn.functional.linear(a, b))
    finally:
        monkeypatch.undo()
        devices._find_product.cache_clear()
    assert devices._find_product() is not None
