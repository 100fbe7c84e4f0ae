"""Sums of batches in whole steps: exact, whatever stood in their memory before, and read without a copy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Size, nn

from mosha import learning
from mosha.learning.engine import Engine
from mosha.learning.mechanism import Answer, Gradients
from mosha.learning.updates import LARGE, Updates
from mosha.learning.whole_sum import WholeSum
from mosha.noise import SeededRandom, add_discrete_gaussian

sizes = st.lists(st.integers(1, 70), min_size=1, max_size=5)


def landed(sums, batches, names):
    """Lay batches down, each a list of (parameter, place, values); returns the sums of the values, cut one by one."""
    starts = dict(zip(names, np.cumsum([0, *names.values()]), strict=False))
    right = np.zeros(sum(names.values()), np.int64)
    sums.begin()
    for batch in batches:
        with sums.batch() as land:
            for name, place, values in batch:
                land(name, place, len(values), lambda out, values=values: out.copy_(torch.from_numpy(values)))
                start = starts[name] + place
                right[start : start + len(values)] += values.astype(np.int64)
    return right


def drawn(data, names):
    """Up to three batches; each says something about part of some parameters, and nothing about the others."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    batches = []
    for _ in range(data.draw(st.integers(0, 3))):
        chosen = [name for name in names if rng.random() < 0.7]
        spans = [(name, *sorted(rng.integers(0, names[name] + 1, 2))) for name in chosen]
        batches.append([(name, a, (rng.normal(size=b - a) * 1e7).astype(np.float32)) for name, a, b in spans])
    return batches


@given(sizes, st.integers(0, 2), st.data())
@settings(max_examples=60, deadline=None)
def test_sums_are_exact_however_batches_are_cut_and_whatever_stood_there(lengths, extras, data):
    names = {f"p{i}": n for i, n in enumerate(lengths)}
    sums = WholeSum({name: Size([n]) for name, n in names.items()}, extras)
    for _ in range(2):  # the second time over what the first left behind
        right = landed(sums, drawn(data, names), names)
        assert sums.finished().tolist() == [*right.tolist(), *[0] * extras]


@given(sizes, st.integers(0, 2), st.data())
@settings(max_examples=60, deadline=None)
def test_noise_on_sums_given_away_is_noise_on_finished_sums(lengths, extras, data):
    names = {f"p{i}": n for i, n in enumerate(lengths)}
    shapes, batches = {name: Size([n]) for name, n in names.items()}, drawn(data, names)
    found = []
    for given_away in (False, True):
        sums = WholeSum(shapes, extras)
        landed(sums, batches, names)
        total, floats = sums.given_away() if given_away else (sums.finished().numpy(), None)
        assert given_away is (floats is not None) or len(batches) != 1
        add_discrete_gaussian(total, 2**21, rng=SeededRandom(4), floats=floats)
        found.append(total.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("width", [1, 3, 1000, LARGE + 1])
def test_a_gradient_in_the_memory_of_its_answer_is_the_gradient(width):
    plan = learning.DPSGD(steps=2, rate=0.1, clip=1.0, noise_multiplier=1.0, batch=10, loss_at_most=2.0)
    found = []
    for reuse in (False, True):
        gradients = Gradients(plan, Engine(nn.Linear(width, 1, bias=False)), lambda model, batch: model(batch[0])[:, 0])
        gradients.reuse = reuse
        total = np.random.default_rng(2).integers(-(2**40), 2**40, width + 1)
        loss = Updates(gradients).apply(Answer(total.copy(), 1.0))
        found.append((gradients.engine.parameters["weight"].grad.clone(), loss))
        one = gradients.grid.target * 2.0**gradients.grid.bits * plan.divisor * plan.gradient_share
        assert np.allclose(found[-1][0].numpy()[0], total[:-1] / one, rtol=1e-6, atol=0)
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
