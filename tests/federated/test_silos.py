"""Silos that hide each of their examples with one noise in shares: sums, noise, price, Flower's messages."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import errors
from mosha.federated import Ask, DistributedExamples, ExampleSums, FedAvg, Silos, securely_summed, train
from mosha.learning import DPSGD
from mosha.noise import secure
from tests.federated.parties import Listed

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
nn = torch.nn
LOSS = nn.CrossEntropyLoss(reduction="none")
TERMS = {
    "rounds": 3,
    "clients": 4,
    "survivors": 3,
    "colluding": 0,
    "rate": 0.5,
    "clip": 1.0,
    "batch": 80,
    "noise_multiplier": 1.0,
}


def plan_of(**changes: Any) -> Any:
    return DistributedExamples(**(TERMS | changes))


def examples(count: int = 40, seed: Any = 0, shift: float = 0.0) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(0, 2, (count,), generator=generator)
    return torch.randn(count, 3, generator=generator) + 3.0 * (targets[:, None] - 0.5) + shift, targets


def silos(plan: Any, names: str = "abcd") -> Any:
    torch.manual_seed(1)
    return Silos(nn.Linear(3, 2), LOSS, {name: examples(seed=i) for i, name in enumerate(names)}, plan=plan)


def account(**how: Any) -> Any:
    known: dict[str, Any] = {"unit": mosha.Example(), "epsilon": 1e9, "delta": 1e-2, "rule": "pure"}
    return mosha.Ledger.memory().account("patients", **(known | how))


def clipped_sum(data: Any, weights: Any, clip: Any) -> Any:
    """By a loop over single examples."""
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights[:6]).view(2, 3))
        layer.bias.copy_(torch.from_numpy(weights[6:]))
    total = np.zeros(8)
    for row, target in zip(*data, strict=True):
        layer.zero_grad()
        LOSS(layer(row[None]), target[None]).sum().backward()
        gradient = torch.cat([p.grad.reshape(-1) for p in layer.parameters()]).double().numpy()
        total += gradient * min(1.0, clip / np.linalg.norm(gradient))
    return total


def test_what_is_opened_is_the_sum_of_clipped_gradients_over_all_silos() -> None:
    """At rate 1, noise a 32nd of the clip: 7 sd of its share in a mean, a false alarm of 3e-12 a coordinate."""
    plan = plan_of(rate=1.0, batch=100.0, noise_multiplier=2.0**-5, clip=0.7)
    federation, weights = silos(plan), np.linspace(-1, 1, 8).astype(np.float32)
    opened = federation.secure_sum(list("abcd"), Ask(1, weights))
    answer = {"steps": opened.total.view(np.int32).astype(np.int64), "survivors": 4, "coordinates": 8}
    found = -100 * plan.decoder()(answer)
    expected = sum(clipped_sum(examples(seed=i), weights, 0.7) for i in range(4))
    assert np.abs(found - expected).max() < 7 * 0.7 * 2.0**-5 * math.sqrt(4 / 3) + 0.02
    assert np.abs(found - expected / 2).max() > 0.5


def test_the_shares_of_the_least_surviving_silos_add_up_to_the_noise_that_is_charged() -> None:
    """A mean of 24,000 squares, 7 sd: a false alarm of 3e-12."""
    plan, width = plan_of(), 24_000
    total = sum(plan.encode(np.zeros(width, np.int64), secure()).view(np.int32).astype(np.int64) for _ in range(3))
    sigma = float(plan.chosen_noise * 2.0 ** plan.grid(width).bits)

    def fits(scale: Any) -> Any:
        return abs(float((total.astype(float) ** 2).mean()) / scale**2 - 1) < 7 * math.sqrt(2 / width)

    assert fits(sigma)
    assert not fits(0.9 * sigma)
    assert not fits(1.1 * sigma)


def test_the_noise_of_silos_that_do_not_collude_is_enough() -> None:
    """Two of three shares make the whole: a mean of 24,000 squares, 7 sd, a false alarm of 3e-12."""
    plan, width = plan_of(colluding=1), 24_000
    total = sum(plan.encode(np.zeros(width, np.int64), secure()).view(np.int32).astype(np.int64) for _ in range(2))
    ratio = float((total.astype(float) ** 2).mean()) / (2.0 ** plan.grid(width).bits) ** 2
    assert abs(ratio - 1) < 7 * math.sqrt(2 / width)
    assert plan.epsilon(1e-5) == plan_of().epsilon(1e-5)


def test_one_example_more_moves_a_sum_by_the_clip_at_most() -> None:
    plan = plan_of(rate=1.0)
    data, far = examples(), (torch.tensor([[1e6, -1e6, 1e6]]), torch.tensor([0]))
    more = tuple(torch.cat(pair) for pair in zip(data, far, strict=True))
    weights = np.zeros(8, np.float32)
    sums = [ExampleSums(plan, nn.Linear(3, 2), LOSS, part)._sums.add_up(weights, secure()) for part in (data, more)]
    moved = math.sqrt(sum(int(step) ** 2 for step in sums[1] - sums[0]))
    assert 0.9 < moved / 2.0 ** plan.grid(8).bits <= 1


def test_examples_are_drawn_by_coins_of_the_silo() -> None:
    """How many of 400 equal examples are in a sum: binomial of 400 and 0.25, within 8 sd (a false alarm of 2e-14)."""
    plan = plan_of(rate=0.25, batch=400)
    data = torch.ones(400, 3), torch.zeros(400, dtype=torch.long)
    sums = ExampleSums(plan, nn.Linear(3, 2), LOSS, data)
    grid, counts = plan.grid(8), []
    for _ in range(3):
        total = sums._sums.add_up(np.zeros(8, np.float32), secure()).astype(float)
        counts.append(np.linalg.norm(total) / 2.0**grid.bits / grid.target)
    assert all(abs(count - 100) < 8 * math.sqrt(75) for count in counts)
    assert len({round(count) for count in counts}) > 1 or counts[0] != counts[1]


def test_a_training_learns_pays_once_and_costs_what_one_training_on_all_data_does() -> None:
    plan = plan_of(rounds=40, noise_multiplier=0.6, delta=1e-4, outer=FedAvg(rate=0.5))
    federation, book = silos(plan), account()
    rounds = list(train(plan, federation, federation.initial(), account=book))
    model, (inputs, targets) = federation.load(rounds[-1].weights), examples(400, seed=9)
    assert float((model(inputs).argmax(1) == targets).float().mean()) > 0.9
    together = DPSGD(steps=40, rate=0.5, clip=1.0, noise_multiplier=0.6)
    assert plan.epsilon() == pytest.approx(together.epsilon(1e-4))
    assert book.spent == pytest.approx(plan.epsilon(), rel=1e-6)


def test_the_noise_of_one_training_is_a_third_of_that_of_nine_silos_on_their_own() -> None:
    """What a mean of nine silos with their own noise has, at the same price: three times as much."""
    shared = plan_of(clients=9, survivors=9, batch=90)
    mine = shared.clip * shared.chosen_noise / shared.batch
    own = DPSGD(steps=3, rate=0.5, clip=1.0, batch=10, noise_multiplier=1.0)
    assert own.noise_deviation / math.sqrt(9) == pytest.approx(3 * mine)


def test_silos_that_vanish_are_left_out_and_too_few_are_not_summed() -> None:
    plan = plan_of(delta=1e-4)
    inputs = {i: plan.encode(np.full(8, i), secure()) for i in (1, 2, 3, 4)}
    session = plan.session(list(inputs), 8, secure())
    expected = np.add.reduce([inputs[i] for i in (1, 2, 3)], dtype=np.uint32)
    assert (securely_summed(session, inputs, secure(), vanished=[4]) == expected).all()
    book, federation = account(), silos(plan, "ab")
    training = train(plan, federation, federation.initial(), account=book)
    spent = book.spent
    with pytest.raises(errors.SourceUnavailable):
        next(training)
    assert book.spent == spent


def test_a_round_of_another_plan_is_refused() -> None:
    plan = plan_of()
    for other in (plan_of(rate=0.4), plan_of(clip=2.0), plan_of(noise_multiplier=0.5), plan_of(batch=70)):
        with pytest.raises(errors.RunError):
            plan.check(other.session([1, 2, 3], 8, secure()))
    with pytest.raises(errors.RunError):
        plan.check(replace(plan.session([1, 2, 3], 8, secure()), survivors=2))


@pytest.mark.parametrize(
    "make",
    [
        lambda: plan_of(survivors=1),
        lambda: plan_of(survivors=5),
        lambda: plan_of(colluding=3),
        lambda: plan_of(colluding=-1),
        lambda: plan_of(rate=1.5),
        lambda: plan_of(clip=-1),
        lambda: plan_of(batch=0),
        lambda: plan_of(batch=100_000),
        lambda: plan_of(noise_multiplier=None).measurement(8),
        lambda: plan_of(coordinates=4).measurement(8),
        lambda: train(plan_of(), Listed({1: np.zeros(8)}), np.zeros(8), account=account()),
        lambda: Silos(nn.Linear(3, 2), LOSS, {}, plan=plan_of()),
        lambda: Silos(nn.Linear(3, 2), nn.CrossEntropyLoss(), {"a": examples()}, plan=plan_of()),
        lambda: Silos(nn.BatchNorm1d(3), LOSS, {"a": examples()}, plan=plan_of()),
        lambda: ExampleSums(plan_of(), nn.Linear(3, 2), LOSS, list(zip(*examples(), strict=True))),
        lambda: ExampleSums(DPSGD(steps=1, rate=0.5, clip=1.0), nn.Linear(3, 2), LOSS, examples()),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_is_paid(make: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        make()


def test_over_flower_a_silo_that_breaks_adds_zeros_and_tells_nobody(tmp_path: Path) -> None:
    pytest.importorskip("flwr")
    from flwr.clientapp import ClientApp

    from mosha.federated import flower, flower_examples
    from tests.federated.flower_grid import Nodes, model

    plan = plan_of(rate=1.0, batch=160.0, noise_multiplier=0.35, rounds=2, delta=1e-3)

    def app(number: Any) -> Any:
        def build(context: Any) -> tuple[Any, ...]:
            if number == 3:
                raise RuntimeError("patient 17")
            return nn.Linear(3, 2), LOSS, examples(seed=number)

        made = ClientApp()
        made.train()(flower_examples(plan, build))
        return made

    nodes = Nodes({number: app(number) for number in range(4)})
    start = {"weight": np.zeros((2, 3), np.float32), "bias": np.zeros(2, np.float32)}
    result = flower(plan, account()).start(grid=nodes, initial_arrays=model(**start), num_rounds=1)
    weights = np.concatenate([result.arrays[name].numpy().reshape(-1) for name in ("weight", "bias")])
    expected = -sum(clipped_sum(examples(seed=i), np.zeros(8, np.float32), 1.0) for i in range(3)) / 160
    assert np.abs(weights - expected).max() < 7 * 0.35 * math.sqrt(4 / 3) / 160 + 0.01
    assert np.abs(expected).max() > 0.1
    assert "patient" not in repr(result)
    refused = flower(replace(plan, clip=9.0), account())  # silos have their own copy of the plan
    with pytest.raises(errors.SourceUnavailable):
        refused.start(grid=nodes, initial_arrays=model(**start))
