"""Sums of batches in whole steps: exact, whatever stood in their memory before, and read without a copy."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Size, nn

from mosha import learning
from mosha.learning.exact_sum import ExactSum, scale_in_place
from mosha.learning.gradients.engine import Engine
from mosha.learning.noisy_gradients import Answer, Gradients
from mosha.learning.terms import SHARE
from mosha.learning.updates import Updates
from mosha.noise import SeededRandom

sizes = st.lists(st.integers(1, 70), min_size=1, max_size=5)


def landed(sums: Any, batches: Any, names: Any) -> Any:
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


def drawn(data: Any, names: Any) -> Any:
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
def test_sums_are_exact_however_batches_are_cut_and_whatever_stood_there(lengths: Any, extras: Any, data: Any) -> None:
    names = {f"p{i}": n for i, n in enumerate(lengths)}
    sums = ExactSum({name: Size([n]) for name, n in names.items()}, extras)
    for _ in range(2):  # the second time over what the first left behind
        right = landed(sums, drawn(data, names), names)
        assert sums.finish().tolist() == right.tolist()
        assert sums.extras.tolist() == [0] * extras
        sums.extras.fill_(9)


def made(width: Any, **options: Any) -> Any:
    plan = learning.DPSGD(steps=2, rate=0.1, clip=3.0, noise_multiplier=1.0, batch=10, **options)
    return Gradients(plan, Engine(nn.Linear(width, 1, bias=False)), lambda model, batch: model(batch[0])[:, 0])


@given(sizes, st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_noise_on_sums_given_away_is_noise_on_finished_sums(lengths: Any, loss: Any, data: Any) -> None:
    names = {f"p{i}": n for i, n in enumerate(lengths)}
    shapes, batches = {name: Size([n]) for name, n in names.items()}, drawn(data, names)
    gradients = made(sum(lengths), loss_at_most=2.0 if loss else None)
    found = []
    for give_away in (False, True):
        sums = ExactSum(shapes, int(loss))
        for _ in range(data.draw(st.integers(1, 2))):  # with what earlier steps left in the memory
            landed(sums, batches, names)
            sums.extras += 5
            asked = sums.give_away() if give_away else (sums.finish().numpy(), sums.extras.numpy().copy())
            assert (asked[0].dtype == np.float32) is give_away or len(batches) != 1
            answer, _ = gradients.add_noise(gradients.first(), *asked, SeededRandom(4))
        found.append((answer.total.tolist(), answer.extras.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("width", [1, 3, 1000, (1 << 17) + 1])
@pytest.mark.parametrize("loss", [False, True])
def test_an_answer_says_what_the_noisy_whole_numbers_say(width: Any, loss: bool) -> None:
    gradients = made(width, loss_at_most=2.0 if loss else None)
    total = np.random.default_rng(2).integers(-(2**40), 2**40, width)
    plan, bits, target = gradients.plan, gradients.grid.bits, gradients.grid.target
    answer = Answer(scale_in_place(total.copy(), gradients.worth(3.0)), np.array([12345678] * loss), 3.0)
    read = Updates(gradients).apply(answer)
    one = target * 2.0**bits * plan.divisor
    assert (read is None) is not loss
    assert read is None or read == pytest.approx(12345678 / (SHARE * one) * 2.0, rel=1e-12)
    weight = gradients.engine.parameters["weight"].grad
    assert np.allclose(weight.numpy()[0], total / (one * plan.gradient_share) * 3.0, rtol=1e-6, atol=0)
    assert np.allclose(gradients.steps(answer), [*total, *answer.extras], rtol=1e-6, atol=0)
    assert weight.data_ptr() == answer.total.ctypes.data  # no copy is made
