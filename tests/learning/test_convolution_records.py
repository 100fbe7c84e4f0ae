"""Convolutions whose gradients are not kept: norms and sums are those of gradients that are formed."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from mosha.learning.gradients import convolution_records
from mosha.learning.gradients.convolution_records import Convolved, How, Pieces
from mosha.learning.gradients.engine import Engine
from mosha.learning.gradients.norms import CANCELLATION, row_norms_squared
from mosha.learning.noisy_gradients import clipping_rule

torch.set_num_threads(1)


@st.composite
def convolutions(draw: Any) -> tuple[Any, ...]:
    """Inputs, gradients of outputs, a weight and how it goes over the inputs; some rows belong together."""
    axes, groups, each = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    inputs, outputs = (groups * draw(st.integers(1, 5)) for _ in range(2))
    options = [[draw(st.integers(low, 2)) for _ in range(axes)] for low in (1, 0, 1)]
    kernel = [draw(st.integers(1, 3)) for _ in range(axes)]
    how = How(*options, groups)  # type: ignore[arg-type, call-arg]
    torch.manual_seed(draw(st.integers(0, 2**32)))
    x = torch.randn(each * draw(st.integers(1, 4)), inputs, *[draw(st.integers(5, 7)) for _ in range(axes)])
    weight = torch.randn(outputs, inputs // groups, *kernel)
    shape = torch.convolution(x, weight, None, *options, False, [0] * axes, groups).shape  # type: ignore[arg-type, call-arg]
    return x, torch.randn(shape), weight, how, each


def one_by_one(x: Any, g: Any, weight: Any, how: Any) -> Any:
    """The gradient of each row by itself, in double precision: the definition."""
    wide = weight.double().requires_grad_()
    options = (how.stride, how.padding, how.dilation, False, [0] * len(how.stride), how.groups)
    outputs = [torch.convolution(row, wide, None, *options) for row in x.double().split(1)]
    return torch.stack(
        [torch.autograd.grad(y, wide, own)[0] for y, own in zip(outputs, g.double().split(1), strict=True)]
    )


def in_small_pieces(record: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution_records, "PIECE", 64)
        return record.form()


@given(convolutions(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_norms_and_sums_are_those_of_formed_gradients(convolution: Any, by_gram: Any) -> None:
    x, g, weight, how, each = convolution
    record = Convolved(x, g, weight, how, each)
    if how.groups == 1:
        assert callable(Convolved.gram_is_cheaper)
        methods = {"gram_is_cheaper": lambda _, than_keeping: by_gram}
        record = type("Other", (Convolved,), methods)(x, g, weight, how, each)
    formed = one_by_one(x, g, weight, how).view(-1, each, *weight.shape).sum(dim=1)
    right = formed.flatten(1).norm(dim=1)
    length = record._length(record._x, g)
    expected = torch.maximum(right.square(), CANCELLATION * length.square())
    assert bool((right <= length * (1 + 1e-9)).all())
    assert torch.allclose(torch.from_numpy(record.squared_norms()), expected, rtol=1e-4, atol=1e-12)
    weights = torch.rand(len(formed))
    out = torch.empty(weight.numel())
    lost = torch.arange(len(formed)) == 0
    for kept in (record, record.form(), in_small_pieces(record)):
        out.fill_(float("nan"))
        kept.weighted_sum(weights, out)
        gap = out - torch.tensordot(weights.double(), formed, 1).flatten()
        assert float(gap.norm()) <= 1e-5 * float(length.sum())
        assert torch.allclose(kept.per_unit().double(), formed, atol=1e-4)
        if kept is not record:
            assert np.allclose(kept.squared_norms(), right.square(), rtol=1e-4, atol=1e-12)
        assert kept.without(lost).squared_norms()[0] == 0.0
        assert np.allclose(kept.without(lost).squared_norms()[1:], kept.squared_norms()[1:], rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("channels", [64, 3])  # by Gram matrices, and by forming
def test_positions_that_cancel_do_not_leave_more_than_one_clip_of_what_was_rounded(channels: int) -> None:
    """Windows of one picture are alike, and their gradients cancel but for what single precision leaves of them."""
    layer = nn.Conv2d(channels, channels, 1 if channels == 64 else 3, bias=False)
    factors = torch.randn(1, channels, 4, 4) * 1e12
    factors -= factors.mean(dim=(2, 3), keepdim=True)
    engine = Engine(layer, memory=0)
    engine.tape.most = 1
    picture = torch.ones(1, channels, *([4, 4] if channels == 64 else [6, 6]))
    with engine.tape.record(1, 1):
        (layer(picture) * factors).sum().backward()
    ((record,),) = engine.tape.records.values()
    if channels == 3:
        record = Convolved(picture, factors, layer.weight.detach(), How([1, 1], [0, 0], [1, 1], 1), 1)
    assert record.gram_is_cheaper(than_keeping=False) is (channels == 64)  # type: ignore[attr-defined]
    found = torch.from_numpy(clipping_rule("flat", clip=1.0, scale=1.0)(record.squared_norms()[None] ** 0.5)).float()
    out = torch.empty(layer.weight.numel())
    with torch.no_grad():
        record.weighted_sum(found, out)
    assert float(out.norm()) <= 1.0
    # without the bound on cancellation the formed gradient alone would let far more through
    alone = 1.0 / max(1.0, float(row_norms_squared(record.per_unit().detach())[0]) ** 0.5)
    assert alone > 2 * float(found)


def test_which_gradients_are_formed_does_not_depend_on_how_many_units_were_drawn() -> None:
    layer = nn.Conv2d(24, 24, 3, padding=1)
    engine = Engine(layer, memory=24 * 24 * 9 * 4 * 8 // 2)  # room for eight units
    for most, kind in ((8, Pieces), (9, Convolved)):
        engine.tape.most = most
        for drawn in (1, 8, 9):
            with engine.tape.record(drawn, 1):
                layer(torch.randn(drawn, 24, 8, 8)).sum().backward()
            (record,) = next(found for key, found in engine.tape.records.items() if key.name == "weight")
            assert isinstance(record, kind)


def test_convolutions_take_no_more_room_than_they_are_given() -> None:
    """Eighteen layers would take 48 MiB for these rows; what is not formed keeps what was seen anyway."""
    layers = [nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(18)]
    model = nn.Sequential(*layers)
    engine = Engine(model, memory=4 << 20)
    engine.tape.most = 19
    with engine.tape.record(19, 1):
        model(torch.randn(19, 64, 16, 16)).sum().backward()
    kinds = [type(record) for (record,) in engine.tape.records.values()]
    assert 0 < 19 * 4 * layers[0].weight.numel() * kinds.count(Pieces) <= 8 << 20
    assert set(kinds) == {Pieces, Convolved}


@pytest.mark.parametrize("width", [512 * 512 * 9, 512 * 512 * 9 + 1, 4096 * 300 + 4095, 1_000_003])
def test_norms_of_the_widest_layers_are_worked_out(width: Any) -> None:
    """A layer of a common network has more than 256 pieces of 4096."""
    values = torch.randn(1, width)
    assert row_norms_squared(values)[0] == pytest.approx(float(values.double().square().sum()), rel=1e-5)


@pytest.mark.parametrize("channels", [16, 208, 224, 1024])
def test_a_row_is_formed_by_one_kind_of_convolution_however_many_were_drawn(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With groups or without them: the two may round differently, and a row must not feel that others came or went."""
    asked = []

    def noted(g: Any, x: Any, weight: Any, how: Any, mask: Any) -> tuple[Any, ...]:
        asked.append((how.groups > 1, 4 * weight.numel()))
        return None, torch.zeros(weight.shape), None

    monkeypatch.setattr(convolution_records, "convolution_backward", noted)
    weight, how = torch.empty(1).expand(channels, channels, 3, 3), How([1, 1], [1, 1], [1, 1], 1)
    for rows in range(1, 12):
        x, g = torch.zeros(rows, channels, 1, 1), torch.zeros(rows, channels, 1, 1)
        assert Convolved(x, g, weight, how, 1).per_unit().shape == (rows, *weight.shape)
        assert Convolved(x, g, weight, how, 1)._of_formed(slice(0, 1)).shape == (1,)
    assert len({grouped for grouped, _ in asked}) == 1
    assert max(size for _, size in asked) <= max(convolution_records.PIECE, 4 * weight.numel())
