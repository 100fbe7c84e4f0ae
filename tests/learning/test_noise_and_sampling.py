"""What the price of a training assumes: sensitivity, noise and samples, each looked at from inside.

Every statistical assertion has a false-alarm rate of at most 1e-9, and a planted fault on either side is found.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom, chi2
from torch import nn

import mosha
from mosha import audit
from mosha.accounting import epsilon
from mosha.audit.own.learning import _measurement, own_entries
from mosha.core.events import DiscreteGaussian, Gaussian, Sampled
from mosha.learning.batches import Sampler
from mosha.learning.correlated_plan import DPFTRL
from mosha.learning.gradients.engine import Engine
from mosha.learning.noisy_gradients import Gradients
from mosha.learning.plan import DPSGD
from mosha.learning.reading.examples import Examples
from mosha.learning.rounding import grid_of
from mosha.learning.training import make_losses
from mosha.learning.updates import Updates
from mosha.mechanisms.plans.correlated import SCALE, encoder
from mosha.noise import SeededRandom, secure
from tests.learning.every_layer import MODELS, losses_of

torch.set_num_threads(1)


class Inside:
    """A training as the audit's contract wants it: batches by index, sums by layer."""

    def __init__(self, plan: Any, wrong: float = 1.0) -> None:
        self.plan, self.clip, self.rate, self.population = plan, 1.0, plan.rate, 400
        self.noise_multiplier = plan.noise_multiplier * wrong
        model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 4))
        inputs = torch.randn(self.population, 20) * torch.logspace(-3, 4, self.population)[:, None]
        inputs[7], inputs[8] = float("nan"), 0.0
        self.examples = Examples((inputs, torch.randint(0, 4, (self.population,))))
        self.gradients = Gradients(plan, Engine(model), make_losses(nn.CrossEntropyLoss(reduction="none")))
        self.sampler = Sampler(plan, self.population)

    def sample(self, rng: Any) -> Any:
        return self.sampler.draw(0, rng)

    def update(self, batch: Any, rng: Any) -> Any:
        class Chosen:
            physical = self.sampler.physical

            def draw(self, step: Any, rng: Any) -> Any:
                return np.asarray(batch)

        answer, _ = self.gradients.step(self.gradients.first(), (self.examples, Chosen()), None, rng)  # type: ignore[arg-type]
        flat, found, start = self.gradients.steps(answer) * 2.0**-self.gradients.grid.bits, {}, 0
        for name, shape in self.gradients.shapes.items():
            found[name] = flat[start : start + shape.numel()].reshape(shape)
            start += shape.numel()
        return found


@pytest.mark.parametrize("clipping", ["flat", "per_layer", "automatic"])
def test_a_training_keeps_the_contract_of_a_trainer(clipping: str) -> None:
    plan = DPSGD(steps=1, rate=0.1, clip=1.0, noise_multiplier=1.1, physical=16, clipping=clipping)  # type: ignore[arg-type]
    contract = audit.trainer_contract(Inside(plan), examples=[0, 7, 8, 100, 200, 399], updates=20, false_alarms=1e-9)
    assert contract.kept, str(contract)


@pytest.mark.parametrize("wrong", [0.97, 1.03])
def test_noise_that_is_a_little_wrong_would_be_found(wrong: float) -> None:
    plan = DPSGD(steps=1, rate=0.1, clip=1.0, noise_multiplier=1.1, physical=16)
    trainer = Inside(plan, wrong=wrong)
    contract = audit.trainer_contract(trainer, examples=[0], batches=20, false_alarms=1e-9)
    assert not contract.kept


@pytest.mark.parametrize("entry", own_entries(), ids=lambda entry: entry.name)
def test_attacks_find_no_more_than_was_claimed(entry: Any) -> None:
    verdict = entry.attack(runs=120, confidence=1 - 1e-9)
    assert verdict.outcome is not audit.Outcome.BROKEN, str(verdict)


def test_an_attack_finds_noise_that_was_forgotten() -> None:
    loud = _measurement("DPSGD", {"steps": 1, "rate": 1.0, "sampling": "shuffled", "noise_multiplier": 0.02})
    cheap = dataclasses.replace(loud, event=Gaussian(1.0))
    verdict = audit.search(
        cheap, [audit.Proposal("a far example alone", [[1e6, 0.0]], [])], runs=200, confidence=1 - 1e-9
    )
    assert verdict.outcome is audit.Outcome.BROKEN


@pytest.mark.parametrize(("rate", "steps", "multiplier"), [(0.01, 500, 1.0), (1.0, 10, 8.0), (0.2, 40, 0.6)])
def test_the_noise_on_the_grid_costs_no_more_than_the_normal_noise_that_is_charged(
    rate: float, steps: int, multiplier: float
) -> None:
    grid = grid_of(noise_multiplier=multiplier, physical=128, coordinates=10**6)
    drawn = DiscreteGaussian(float(grid.sigma) / 2**grid.bits, 2.0**grid.bits, 10**6)
    inside = epsilon(Sampled(drawn, rate) * steps, 1e-5)
    assert inside <= epsilon(Sampled(Gaussian(multiplier), rate) * steps, 1e-5)


def test_the_room_for_rounding_is_small_and_grows_with_the_batch() -> None:
    targets = [grid_of(noise_multiplier=1.0, physical=p, coordinates=10**5).target for p in (16, 64, 128, 256)]
    assert targets == sorted(targets, reverse=True)
    assert targets[0] > 0.994
    assert targets[2] > 0.99
    assert targets[3] > 0.97


def contribution(engine: Any, batch: Any, place: Any) -> Any:
    """What the row at that place adds to the sums of a batch."""
    found = engine.clip(lambda m: losses_of(m, batch), len(batch[0]), lambda norms: np.arange(norms.shape[1]) == place)
    return torch.cat([found.sums[p].flatten() for p in sorted(found.sums)])


def deep() -> Any:
    """Forty layers with kinks, which make much of little: another number of rows moves contributions visibly."""
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU()] + [
        module for _ in range(40) for module in (nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU())
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))


def pictures(rows: Any) -> tuple[Any, ...]:
    return torch.randn(rows, 3, 8, 8), torch.randint(0, 3, (rows,))


@pytest.mark.parametrize("name", [*MODELS, "deep"])
def test_a_row_contributes_the_same_among_whatever_rows_and_in_whatever_place(name: Any) -> None:
    """Assumption A1 of `rounding.md`, measured: bit by bit, and 2**-8 where the row stands in another place."""
    make, draw = (deep, pictures) if name == "deep" else MODELS[name]
    engine, batch, others = Engine(make()), draw(16), draw(16)
    alone = contribution(engine, batch, 5)
    company = tuple(values.clone() for values in others)
    for values, own in zip(company, batch, strict=True):
        values[5] = own[5]
    assert torch.equal(contribution(engine, company, 5), alone)
    for place in (0, 6, 15):
        moved = tuple(values.clone() for values in batch)
        for values, own in zip(moved, batch, strict=True):
            values[5], values[place] = own[place], own[5]
        assert float((contribution(engine, moved, place) - alone).norm()) <= 2.0**-8 * float(alone.norm())


@pytest.mark.parametrize("options", [{}, {"clipping": "adaptive", "batch": 40.0}, {"loss_at_most": 2.0}])
@pytest.mark.parametrize("each", [1, 2])
def test_rows_that_fill_a_batch_up_do_not_count(options: Any, each: int) -> None:
    """Five units, in batches of one and in one that is filled up to 16 or more, over and over again."""
    torch.manual_seed(5)
    data = torch.randn(5 * each, 4), torch.randint(0, 3, (5 * each,))
    data[0][3 * each] = float("nan")
    owners = None if each == 1 else np.repeat(np.arange(5), each)
    unit = mosha.Example() if each == 1 else mosha.Person("who", at_most=each)
    model = nn.Linear(4, 3)
    found = []
    for physical in (each, 16 * each):
        plan = DPSGD(steps=1, rate=1.0, clip=1.0, noise_multiplier=1.0, unit=unit, physical=physical, **options)
        engine = Engine(model)
        gradients = Gradients(plan, engine, make_losses(nn.CrossEntropyLoss(reduction="none")))
        examples = Examples(data, owners=owners, each=each)
        total, extras = gradients.sum_batch(gradients.first(), (examples, Sampler(plan, examples.units)), secure())
        assert engine.tape.units == plan.at_once == physical // each
        found.append([values / (gradients.grid.target * 2.0**gradients.grid.bits) for values in (total, extras)])
        engine.detach()
    assert np.abs(found[0][0]).max() > 0.1
    for one, filled in zip(*found, strict=True):
        assert np.allclose(one, filled, atol=1e-5)


def test_physical_batches_are_as_small_as_usual_batches_allow() -> None:
    for batch, physical, right in ((20, 128, 24), (256, 256, 144), (2048, 512, 424), (None, 96, 96), (5000, 1, 1)):
        plan = DPSGD(steps=1, rate=0.1, clip=1.0, noise_multiplier=1.0, batch=batch, physical=physical)
        assert plan.at_once == right
        assert list(map(len, Sampler(plan, 0).physical(np.arange(2 * right + 1)))) == [right, right, 1]


def test_poisson_batches_have_the_declared_rate_and_nothing_of_the_population() -> None:
    plan = DPSGD(steps=1, rate=0.05, clip=1.0, noise_multiplier=1.0)
    sampler = Sampler(plan, 5_000)
    total = sum(len(sampler.draw(0, secure())) for _ in range(40))
    law = binom(200_000, 0.05)
    assert law.cdf(total) > 5e-10
    assert law.sf(total - 1) > 5e-10
    for wrong in (0.046, 0.054):
        assert min(binom(200_000, wrong).cdf(10_000), binom(200_000, wrong).sf(9_999)) < 5e-10


def test_shuffled_batches_hold_everyone_once_an_epoch() -> None:
    plan = DPSGD(steps=10, rate=0.2, clip=1.0, noise_multiplier=1.0, sampling="shuffled")
    sampler = Sampler(plan, 100)
    epochs = [np.concatenate([sampler.draw(5 * e + i, secure()) for i in range(5)]) for e in range(2)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(100))
    again = Sampler(DPFTRL(steps=10, rate=0.2, clip=1.0, noise_multiplier=1.0, bands=2), 100)
    drawn = [sorted(again.draw(step, secure())) for step in range(10)]
    assert drawn[:5] == drawn[5:]


@pytest.mark.parametrize("memory", [{"bands": 3}, {"buffers": 2}], ids=["bands", "buffers"])
def test_correlated_noise_cancels_as_the_encoder_says_and_leaves_the_sums(memory: Any) -> None:
    """With the same randomness, what differs between two data sets is the difference of their sums, exactly."""
    plan = DPFTRL(steps=8, rate=0.25, clip=1.0, noise_multiplier=1.0, batch=1.0, **memory)
    layer = nn.Linear(2, 1, bias=False)
    gradients = Gradients(plan, Engine(layer), lambda model, batch: model(batch[0])[:, 0])

    def run(totals: Any) -> Any:
        state, updates, rng, found = gradients.first(), Updates(gradients), SeededRandom(3), []
        for total in totals:
            answer, state = gradients.add_noise(state, np.array(total, np.int64), np.zeros(0, np.int64), rng)
            updates.apply(answer)
            found.append(layer.weight.grad[0] / (gradients.worth(answer.clip) * 2.0**gradients.grid.bits))
        return torch.stack(found)

    nothing = run([[0, 0]] * 8)
    ones = run([[2**21, 0]] + [[0, 0]] * 7)
    assert torch.allclose((ones - nothing)[0], torch.tensor([1.0, 0.0]), atol=1e-5)
    assert float((ones - nothing)[1:].abs().max()) < 1e-5


def test_the_noise_of_buffers_is_decoded_to_what_the_matrix_says() -> None:
    """Noise alone, 4,000 coordinates in 6 steps: squared sums of decoded noise are chi-squared; false alarm 1e-10."""
    plan = DPFTRL(steps=6, rate=0.5, clip=1.0, noise_multiplier=2.0, buffers=1, batch=1.0)
    layer, width = nn.Linear(4000, 1, bias=False), 4000
    gradients = Gradients(plan, Engine(layer), lambda model, batch: model(batch[0])[:, 0])
    state, updates, total = gradients.first(), Updates(gradients), torch.zeros(width)
    for _ in range(6):
        answer, state = gradients.add_noise(state, np.zeros(width, np.int64), np.zeros(0, np.int64), secure())
        updates.apply(answer)
        total += layer.weight.grad[0]
    column = plan.encoding.coefficients(6)  # type: ignore[union-attr]
    matrix = sum(np.diag(np.full(6 - j, c), -j) for j, c in enumerate(column))
    last = np.ones(6) @ np.linalg.inv(matrix)  # the sum of all updates
    deviation = float(np.linalg.norm(last)) * plan.noise_deviation / gradients.grid.target
    seen = float(total.double().square().sum()) / deviation**2
    assert 5e-11 < chi2(width).cdf(seen) < 1 - 5e-11
    for wrong in (0.85, 1.15):  # noise that is a seventh too narrow or too wide is found
        assert not 5e-11 < chi2(width).cdf(width / wrong**2) < 1 - 5e-11


def test_correlated_noise_adds_less_to_the_sum_of_updates() -> None:
    """The point of it: for the same price, there is less noise in the sum of all updates than without it."""
    shape: dict[str, Any] = {"steps": 40, "rate": 0.05, "clip": 1.0}
    plain = DPSGD(**shape, sampling="shuffled").calibrate(epsilon=1, delta=1e-5)
    banded = DPFTRL(**shape, bands=20).calibrate(epsilon=1, delta=1e-5)
    c = np.array(encoder(20)) / SCALE
    inverse = np.linalg.inv(sum(np.diag(np.full(40 - j, c[j]), -j) for j in range(20)))
    prefix = np.tril(np.ones((40, 40)))
    noise_banded = banded.noise_multiplier * np.sqrt(np.square(prefix @ inverse).sum(axis=1)).max()
    assert noise_banded < 0.7 * plain.noise_multiplier * math.sqrt(40)
