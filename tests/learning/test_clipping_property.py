"""Whatever small model is put together, clipped sums are those of clipping one by one, within 1e-5."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from mosha.learning.gradients.convolution_records import Convolved
from mosha.learning.gradients.engine import Engine
from mosha.learning.gradients.records import Sequence
from mosha.learning.noisy_gradients import clipping_rule
from tests.learning.every_layer import Mean, Pooled, losses_of
from tests.learning.test_clipping_engine import one_by_one
from tests.searches import AFRESH

torch.set_num_threads(1)
SIZES = st.integers(1, 6)
BETWEEN = st.sampled_from([nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Identity])


class Outputs(nn.Module):
    """The outputs of a recurrent layer or of self-attention."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        if isinstance(self.layer, nn.MultiheadAttention):
            return x + self.layer(x, x, x, need_weights=False)[0]
        return self.layer(x)[0]


@st.composite
def dense(draw: Any) -> tuple[Any, ...]:
    """Layers over vectors: linear ones, with norms between them."""
    width, layers = draw(SIZES), []
    first = width
    for _ in range(draw(st.integers(1, 3))):
        following = draw(st.integers(2, 6))
        layers += [nn.Linear(width, following, bias=draw(st.booleans())), draw(BETWEEN)()]
        layers += draw(st.sampled_from([[], [nn.LayerNorm(following)], [nn.RMSNorm(following)]]))
        width = following
    return [*layers, nn.Linear(width, 3)], lambda rows: torch.randn(rows, first)


@st.composite
def pictures(draw: Any) -> tuple[Any, ...]:
    """Convolutions of any stride, padding, dilation and groups, with group norms between them."""
    groups = draw(st.integers(1, 2))
    channels, middle = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3))
    kind = draw(st.sampled_from([nn.Conv1d, nn.Conv2d]))
    shape = [draw(st.integers(7, 9)) for _ in range(1 if kind is nn.Conv1d else 2)]
    options = {name: draw(st.integers(low, 2)) for name, low in (("stride", 1), ("padding", 0), ("dilation", 1))}
    layers = [kind(channels, middle, draw(st.integers(1, 3)), groups=groups, bias=draw(st.booleans()), **options)]
    layers += draw(st.sampled_from([[], [nn.GroupNorm(groups, middle)]]))
    return [*layers, draw(BETWEEN)(), kind(middle, 3, 1), Pooled()], lambda rows: torch.randn(rows, channels, *shape)


@st.composite
def sequences(draw: Any) -> tuple[Any, ...]:
    """Tokens, then linear layers, recurrent layers or attention, then the mean over positions."""
    width, length = 2 * draw(st.integers(1, 3)), draw(st.integers(2, 7))
    layers = [nn.Embedding(5, width)]
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["linear", "norm", "lstm", "gru", "attention"]))
        layers.append(
            {  # type: ignore[arg-type]
                "linear": lambda: nn.Linear(width, width),
                "norm": lambda: nn.LayerNorm(width),
                "lstm": lambda: Outputs(nn.LSTM(width, width, batch_first=True)),
                "gru": lambda: Outputs(nn.GRU(width, width, batch_first=True)),
                "attention": lambda: Outputs(nn.MultiheadAttention(width, 2, batch_first=True)),
            }[kind]()
        )
        layers.append(draw(BETWEEN)())
    return [*layers, Mean(), nn.Linear(width, 3)], lambda rows: torch.randint(0, 5, (rows, length))


MODELS = st.one_of(dense(), pictures(), sequences())


def cancels(engine: Any, batch: Any, rows: Any, each: Any) -> bool:
    """Whether some sum over positions is below a quarter of its terms' norms: Gram norms are then made larger."""
    with engine.tape.record(rows, each):
        losses_of(engine.model, batch).sum().backward()
    records, engine.tape.records = [r for found in engine.tape.records.values() for r in found], {}
    for record in (r for r in records if isinstance(r, Sequence | Convolved)):
        if isinstance(record, Convolved):
            terms = record._length(record._x, record._g)
        else:
            terms = (record.a.norm(dim=2) * record.g.norm(dim=2)).sum(dim=1)
        if bool((record.per_unit().flatten(1).norm(dim=1) < terms / 4).any()):
            return True
    return False


@pytest.fixture(scope="module", autouse=True)
def _same_weights() -> None:
    """Weights and rows are those of every `make test`, as the models are."""
    if not AFRESH:
        torch.manual_seed(2026)


@settings(max_examples=60, deadline=None)
@given(model=MODELS, units=st.integers(1, 5), each=st.integers(1, 2), form=st.booleans(), share=st.floats(0.2, 3.0))
def test_clipped_sums_of_any_small_model_are_those_of_clipping_one_by_one(
    model: Any, units: Any, each: Any, form: Any, share: Any
) -> None:
    layers, draw = model
    network, rows = nn.Sequential(*layers), units * each
    batch = (draw(rows), torch.randint(0, 3, (rows,)))
    terms = one_by_one(network, batch, 1.0)[1].view(units, each).sum(dim=1)
    clip = share * float(one_by_one(network, batch, 1.0, each)[1].median())
    expected, norms = one_by_one(network, batch, clip, each)
    assume(bool((norms > terms / 4).all()))  # rounding is measured by what was added up
    engine = Engine(network, memory=(1 << 30) * form)
    try:
        larger = cancels(engine, batch, rows, each) and not form
        rule = clipping_rule("flat", clip=clip, scale=clip)
        found = engine.clip(lambda m: losses_of(m, batch), rows, rule, each=each)
    finally:
        engine.detach()
    assert bool((found.norms >= norms * (1 - 1e-5)).all())
    if larger:
        return
    assert torch.allclose(found.norms, norms, rtol=1e-5)
    bound = 1e-5 * max(float(torch.cat([e.flatten() for e in expected]).norm()), clip)
    for (name, _), right in zip(network.named_parameters(), expected, strict=True):
        assert float((found.sums[name] - right).norm()) <= bound, name


@pytest.mark.parametrize("wrong", [1 - 1e-3, 1 + 1e-3])
def test_a_clip_that_is_a_little_wrong_would_be_found(wrong: Any) -> None:
    network, batch = nn.Sequential(nn.Linear(4, 3)), (torch.randn(5, 4), torch.randint(0, 3, (5,)))
    clip = 0.5 * float(one_by_one(network, batch, 1.0)[1].min())
    expected, _ = one_by_one(network, batch, clip)
    engine = Engine(network)
    rule = clipping_rule("flat", clip=clip, scale=clip * wrong)
    found = engine.clip(lambda m: losses_of(m, batch), 5, rule)
    engine.detach()
    pairs = zip(network.named_parameters(), expected, strict=True)
    difference = torch.cat([(found.sums[name] - right).flatten() for (name, _), right in pairs])
    whole = torch.cat([e.flatten() for e in expected]).norm()
    assert float(difference.norm()) > 1e-5 * max(float(whole), clip)
