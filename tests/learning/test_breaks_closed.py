"""Ways in which one unit could move more than was paid for, each of them closed."""

import itertools
import threading
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import DataError, InvalidParameter, LedgerUnavailable, RunClosed
from mosha.learning import noisy_gradients
from mosha.learning.batches import Sampler
from mosha.learning.checking.probe import probe
from mosha.learning.dropout_randomness import DropoutCoins
from mosha.learning.exact_sum import ExactSum
from mosha.learning.gradients.engine import Engine
from mosha.learning.noisy_gradients import Gradients, clipping_rule
from mosha.learning.plan import DPSGD
from mosha.learning.reading.examples import Examples, group_by_owner
from mosha.noise import SeededRandom, secure
from tests.learning.every_layer import MODELS, losses_of

torch.set_num_threads(1)


def account_of(unit: Any) -> Any:
    return mosha.Ledger.memory().account("a", unit=unit, epsilon=1e6, delta=1e-5)


def plan_of(**changed: Any) -> Any:
    return DPSGD(**({"steps": 1, "rate": 1.0, "clip": 1.0, "noise_multiplier": 0.01, "batch": 1} | changed))


def gradients_of(size: Any, extras: Any) -> Any:
    """The mechanism for a layer with so many weights, and with a private loss where there is an extra."""
    plan = plan_of(noise_multiplier=1.0, loss_at_most=1.0 if extras else None)
    return Gradients(plan, Engine(nn.Linear(size, 1, bias=False)), lambda model, batch: model(batch[0])[:, 0])


def squares(output: Any, target: Any) -> Any:
    return (output[:, 0] - target) ** 2


def times(output: Any, target: Any) -> Any:
    return output[:, 0] * target


def moved(plan: Any, inputs: Any, targets: Any, loss: Any = squares, **options: Any) -> Any:
    """How far one step moves the only weight, in clips."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with plan.train(model, (inputs, targets), loss, optimizer, account=account_of(plan.unit), **options) as training:
        list(training)
    return model.weight.item()


def test_all_rows_of_a_person_with_one_row_at_most_move_one_clip() -> None:
    plan = plan_of(unit=mosha.Person("who", at_most=1))
    rows = torch.ones(50, 1), torch.full((50,), 1e3)
    with pytest.raises(InvalidParameter, match="owners"):
        moved(plan, *rows)
    assert abs(moved(plan, *rows, owners=["ann"] * 50)) < 1.2
    assert abs(moved(plan, *rows, owners=range(50))) > 40  # fifty persons are another matter


def test_owners_belong_to_persons_alone() -> None:
    with pytest.raises(InvalidParameter, match="owners"):
        moved(plan_of(), torch.ones(2, 1), torch.ones(2), owners=["ann", "bo"])
    person, (model, optimizer, loader) = mosha.Person("who", at_most=1), wrapped_parts()
    with pytest.raises(InvalidParameter, match="Persons"):
        learning.private(model, optimizer, loader, plan=plan_of(unit=person), account=account_of(person))


def wrapped_parts(rows: int = 2) -> tuple[Any, ...]:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    loader = DataLoader(TensorDataset(torch.ones(rows, 1), torch.full((rows,), 1e3)))
    return model, torch.optim.SGD(model.parameters(), lr=1.0), loader


def test_an_empty_data_set_trains_on_noise_as_any_other() -> None:
    assert abs(moved(plan_of(), torch.ones(0, 1), torch.ones(0))) < 1


def test_nobody_is_in_two_batches_of_an_epoch_whatever_crashes() -> None:
    plan = plan_of(steps=10, rate=0.1, sampling="shuffled", noise_multiplier=1.0)
    account = account_of(mosha.Example())

    def begun() -> Any:
        model = nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return plan.train(model, (torch.ones(60, 1), torch.ones(60)), squares, optimizer, account=account, key="k")

    first = begun()
    for _ in range(3):
        first.step()
    first._gradients.engine.detach()  # the process is gone, and the bins with it
    again = begun()
    with pytest.raises(RunClosed, match="epoch"):
        list(again)
    again.close()


def test_bins_of_another_epoch_are_refused_and_those_of_this_one_go_on() -> None:
    plan, rng = plan_of(steps=20, rate=0.1, sampling="shuffled"), secure()
    drawing = Sampler(plan, 60)
    early = [drawing.draw(step, rng) for step in range(4)]
    kept = drawing.state()
    resumed = Sampler(plan, 60)
    resumed.restore(kept)
    rest = [resumed.draw(step, rng) for step in range(4, 10)]
    assert sorted(np.concatenate(early + rest)) == list(range(60))
    resumed.restore(kept)
    with pytest.raises(RunClosed):
        resumed.draw(15, rng)
    again = np.concatenate([resumed.draw(step, rng) for step in range(10, 20)])
    assert sorted(again) == list(range(60))


def test_an_abandoned_batch_leaves_nothing_in_the_sum() -> None:
    plan = plan_of(steps=3, physical=1)
    model, optimizer, loader = learning.private(*wrapped_parts(), plan=plan, account=account_of(mosha.Example()))
    for _ in range(2):
        for inputs, targets in loader:
            squares(model(inputs), targets).mean().backward()
            optimizer.step()
            break  # the second piece is never taken
    assert optimizer.run.remaining == 3
    for inputs, targets in loader:
        squares(model(inputs), targets).mean().backward()
        optimizer.step()
    assert abs(model.weight.item()) < 2.3  # type: ignore[operator]  # two examples, one clip each
    assert optimizer.run.remaining == 2


def test_two_batches_cannot_be_mixed_in_one_sum() -> None:
    plan = plan_of(steps=3, rate=1.0, physical=1)
    _, _, loader = learning.private(*wrapped_parts(), plan=plan, account=account_of(mosha.Example()))
    first, second = loader.next_batch(), loader.next_batch()
    next(first)
    next(second)
    with pytest.raises(RunClosed, match="one batch"):
        next(first)


def test_a_score_that_hides_a_smaller_unit_is_refused() -> None:
    person = mosha.Person("p", at_most=50)
    candidates = {"a": mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=person, epsilon=0.1)}
    scores = mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=mosha.Row(), epsilon=1.0)
    tuned = learning.best_of_random_runs(
        candidates, score=lambda _name, _answer: scores, score_event=scores.event, mean=1.0
    )
    with pytest.raises(InvalidParameter, match="same unit"):
        tuned.step(None, (([], []), list(range(50))), None, secure())  # there is always a first run


def test_persons_are_told_apart_as_everywhere() -> None:
    sizes = {
        2: [[1, "1"], [2**53, 2**53 + 1], ["a", "a\0"], [1, None]],
        1: [[1, 1.0], [float("nan"), None], [True, 1], np.array([7, 7])],
    }
    for expected, columns in sizes.items():
        for owners in columns:
            assert len(group_by_owner(owners, 2)) == expected
    assert len(group_by_owner([2**53, 2**53 + 1, 0.5], 3)) == 3
    assert group_by_owner([], 0) == []
    person = plan_of(unit=mosha.Person("who", at_most=2))
    with_both = moved(person, torch.ones(2, 1), torch.tensor([100.0, -200.0]), times, owners=[1, "1"])
    assert abs(with_both) < 0.3  # two persons, a clip each, in opposite directions


class Centred(nn.Module):
    """Takes the mean over the batch in training, and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.mean.mul_(0).add_(x.detach().mean(0))  # type: ignore[operator]
            return x - x.mean(0)
        return x - self.mean


class Applied(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Words(nn.Module):
    def __init__(self, function: Any, *, frozen: Any) -> None:
        super().__init__()
        self.table, self.layer, self.function = nn.Embedding(10, 1), nn.Linear(1, 1), function
        self.table.requires_grad_(not frozen)

    def forward(self, x: Any) -> Any:
        return self.layer(self.function(self.table(x).sum(1)))


def swapped_gradients(x: Any) -> Any:
    return x + x.flip(0) - x.flip(0).detach()


MIXES = {
    "largest": lambda z: z * z.max().detach(),
    "cumulative": lambda z: z.cumsum(0),
    "backwards": swapped_gradients,
}


def trained(model: Any, inputs: Any) -> Any:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    plan, account = plan_of(noise_multiplier=1.0), account_of(mosha.Example())
    try:
        with plan.train(model, (inputs, torch.zeros(len(inputs))), squares, optimizer, account=account) as training:
            list(training)
    finally:
        spent = account.spent
    return spent


@pytest.mark.parametrize("kind", MIXES)
def test_models_that_mix_rows_are_refused_for_numbers_and_for_tokens(kind: Any) -> None:
    for _ in range(3):
        with pytest.raises(DataError, match="mixes"):
            trained(nn.Sequential(Applied(MIXES[kind]), nn.Linear(1, 1)), torch.randn(8, 1))
        for frozen in (False, True):
            with pytest.raises(DataError, match="mixes"):
                trained(Words(MIXES[kind], frozen=frozen), torch.randint(0, 10, (8, 3)))
    assert trained(Words(torch.tanh, frozen=False), torch.randint(0, 10, (8, 3))) > 0
    assert trained(nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.Linear(8, 1)), torch.randn(8, 1)) > 0


def test_a_model_that_keeps_statistics_is_refused_in_whatever_mode_it_comes() -> None:
    for mode in (True, False):
        model = nn.Sequential(Centred(), nn.Linear(1, 1)).train(mode)
        with pytest.raises(InvalidParameter, match="buffer"):
            trained(model, torch.tensor([[1.0], [2.0], [123.5]]))
        assert model[0].mean.item() == 0  # type: ignore[operator]
        assert model.training is mode


class Late(nn.Module):
    """Keeps what passes only where it is large, as made-up rows never are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        if float(x.detach().max()) > 1e5:
            self.seen = x.detach().max().reshape(1)
        return x


def test_what_a_model_writes_down_later_is_put_back_and_refused() -> None:
    model = nn.Sequential(Late(), nn.Linear(1, 1))
    with pytest.raises(InvalidParameter, match="buffer"):
        trained(model, torch.full((3, 1), 1e6))
    assert model[0].seen.item() == 0  # type: ignore[operator]
    loader = DataLoader(TensorDataset(torch.full((3, 1), 1e6), torch.zeros(3)))
    model, optimizer, loader = wrapped(model, loader)
    inputs, targets = next(iter(loader))
    squares(model(inputs), targets).mean().backward()
    with pytest.raises(InvalidParameter, match="buffer"):
        optimizer.step()
    assert model[0].seen.item() == 0


def wrapped(model: Any, loader: Any, **options: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return learning.private(model, optimizer, loader, plan=plan_of(), account=account_of(mosha.Example()), **options)


def test_the_wrapping_looks_at_the_model_as_a_training_does() -> None:
    loader = DataLoader(TensorDataset(torch.randn(8, 1), torch.zeros(8)))
    for mixes in MIXES.values():
        with pytest.raises(DataError, match="mixes"):
            wrapped(nn.Sequential(Applied(mixes), nn.Linear(1, 1)), loader)
    with pytest.raises(InvalidParameter, match="buffer"):
        wrapped(nn.Sequential(Centred(), nn.Linear(1, 1)).eval(), loader)
    bytes_only = DataLoader(TensorDataset(torch.zeros(8, 1, dtype=torch.uint8), torch.zeros(8)))
    wrapped(nn.Linear(1, 1), bytes_only, forward=lambda model, batch: model(batch[0].float() / 255))


def test_the_wrapping_refuses_a_collate_function_that_nobody_vouches_for() -> None:
    loader = DataLoader(
        TensorDataset(torch.randn(8, 1), torch.zeros(8)),
        collate_fn=lambda rows: tuple(map(torch.stack, zip(*rows, strict=True))),
    )
    with pytest.raises(InvalidParameter, match="collate_fn"):
        wrapped(nn.Linear(1, 1), loader)
    wrapped(nn.Linear(1, 1), loader, rows_collated_apart=True)


def test_dropout_is_drawn_from_secret_coins_and_the_public_generator_goes_on() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    masks = []
    for _ in range(2):
        torch.manual_seed(5)
        with DropoutCoins(secure()).fresh():
            masks.append(torch.rand(2000))
        assert torch.equal(torch.rand(3), expected)
    assert not torch.equal(*masks)
    assert all(0.3 < float(mask.mean()) < 0.7 for mask in masks)  # fails by chance with a probability below 1e-80
    seen = set()
    model = nn.Sequential(Applied(lambda x: (seen.add(float(torch.rand(()))), x)[1]), nn.Linear(1, 1))
    trained(model, torch.randn(8, 1))
    torch.manual_seed(7)
    public = float(torch.rand(()))
    for _ in range(2):
        torch.manual_seed(7)
        _, _, loader = wrapped(nn.Linear(1, 1), DataLoader(TensorDataset(torch.randn(8, 1), torch.zeros(8))))
        torch.manual_seed(7)
        for _ in loader:
            seen.add(float(torch.rand(())))
            break
    assert public not in seen
    assert len(seen) >= 4  # both loops drew something of their own


@pytest.mark.parametrize("memory", [64 << 20, 0])
def test_norms_do_not_vanish_where_squares_do(memory: Any) -> None:
    rule = clipping_rule("flat", clip=1.0, scale=1.0)
    mixed = torch.full((1, 400, 512), 1e-23)
    mixed[0, 0] = 1.0
    small = torch.full((1, 400, 512), 1e-23)
    cases = [
        (nn.Linear(512, 64, bias=False), small, lambda out: (out * 2e17).sum((1, 2))),
        (nn.Linear(512, 64, bias=False), mixed, lambda out: (out[:, 1:] * 2e17).sum((1, 2)) + out[:, 0].sum(1) * 1e-30),
        (nn.Linear(400, 400, bias=False), torch.full((1, 400), 1e-23), lambda out: (out * 8e17).sum(1)),
        (nn.Conv1d(64, 64, 1, bias=False), torch.full((1, 64, 2000), 1e-23), lambda out: (out * 1e17).sum((1, 2))),
    ]
    for layer, inputs, loss in cases:
        engine = Engine(layer, memory=memory)
        found = engine.clip(lambda model, x=inputs, loss=loss: loss(model(x)), 1, rule)  # type: ignore[misc]
        engine.detach()
        exact = layer.double()
        exact.weight.grad = None
        loss(exact(inputs.double())).sum().backward()
        norm = float(exact.weight.grad.norm())  # type: ignore[attr-defined]
        assert float(found.norms) == pytest.approx(norm, rel=1e-3)
        assert float(found.sums["weight"].norm()) <= 1.001
    engine = Engine(nn.Embedding(5, 300), memory=memory)
    words = torch.zeros(1, 40, dtype=torch.long)
    found = engine.clip(lambda model: (model(words) * 1e-23).sum((1, 2)), 1, rule)
    assert float(found.norms) == pytest.approx(40 * 300**0.5 * 1e-23, rel=1e-3)


def test_how_many_units_were_drawn_decides_nothing_about_the_arithmetic_of_the_others() -> None:
    """Gradients of 112 units of this layer fit into the memory for them, those of 113 do not; terms cancel."""
    positions, width = 64, 256
    inputs, targets = torch.zeros(positions, width), torch.zeros(positions, width)
    inputs[:, 0] = 1.0
    targets[:, 0] = torch.tensor([16.0, -16.0] * (positions // 2))
    targets[0, 0] = 17.0
    plan = DPSGD(steps=1, rate=1.0, clip=1.0, noise_multiplier=2.0, batch=1.0, delta=1e-5)
    losses = lambda model, batch: (model(batch[0]) * batch[1]).sum((1, 2))
    gradients = Gradients(plan, Engine(nn.Linear(width, width, bias=False)), losses)
    totals = []
    for units in range(110, 116):
        examples = Examples((inputs.expand(units, -1, -1), targets.expand(units, -1, -1)))
        totals.append(gradients.sum_batch(gradients.first(), (examples, Sampler(plan, units)), secure()))
    moves = [
        np.linalg.norm((more - less) / 2.0**gradients.grid.bits) for (less, _), (more, _) in itertools.pairwise(totals)
    ]
    assert max(moves) <= 1.0


@pytest.mark.parametrize("kind", MODELS)
def test_models_that_keep_rows_apart_pass_the_look(kind: Any) -> None:
    make, batch = MODELS[kind]
    probe(Engine(make()), losses_of, batch, rows=24)


def test_an_answer_that_waits_for_the_ledger_is_not_overwritten_by_the_next_private_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_of(steps=4, rate=0.9, batch=54, noise_multiplier=1.0)
    inputs = torch.randn(60, 4)
    model = nn.Linear(4, 2)
    loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    _, optimizer, loader = learning.private(model, optimizer, loader, plan=plan, account=account_of(mosha.Example()))  # type: ignore[assignment]
    drawn, used = [], []
    noised, apply = optimizer._gradients.add_noise, optimizer._updates.apply  # type: ignore[attr-defined]

    def noised_and_noted(*arguments: Any, **options: Any) -> tuple[Any, ...]:
        answer, state = noised(*arguments, **options)
        drawn.append(answer.total.tolist())
        return answer, state

    def full(*_: Any) -> NoReturn:
        raise LedgerUnavailable("the disk is full")

    monkeypatch.setattr(optimizer._gradients, "add_noise", noised_and_noted)  # type: ignore[attr-defined]
    monkeypatch.setattr(optimizer._updates, "apply", lambda answer: used.append(answer.total.tolist()) or apply(answer))  # type: ignore[attr-defined]

    criterion = nn.CrossEntropyLoss()
    reservation = type(optimizer.run._reservation)  # type: ignore[attr-defined]
    for broken in (True, False):
        with monkeypatch.context() as patch:
            if broken:
                patch.setattr(reservation, "_resolve", full)
            for rows, targets in loader:
                criterion(model(rows), targets).backward()
                if broken:
                    with pytest.raises(LedgerUnavailable):
                        optimizer.step()
                else:
                    optimizer.step()
                break
    assert len(drawn) == 1
    assert used == drawn


@pytest.mark.parametrize("value", [0.0, 1e-38, 1e-30])
@pytest.mark.parametrize("positions", [1, 3])
def test_a_large_gradient_of_outputs_at_small_inputs_does_not_overflow_when_it_is_weighted(
    value: float, positions: int
) -> None:
    model = nn.Linear(4, 1, bias=False)
    shape = (8, 4) if positions == 1 else (8, positions, 4)
    inputs, factors = torch.randn(shape), torch.ones(8)
    inputs[3], factors[3] = value, 1e33 if positions == 1 else 1e19
    scale = 2.0**21 if positions == 1 else 2.0**31 * 2.0**64
    engine = Engine(model, memory=0)
    sums = []
    for kept in (torch.ones(8), torch.arange(8) != 3):
        batch = engine.clip(
            lambda m, kept=kept: m(inputs).reshape(8, -1).sum(dim=1) * factors * kept,  # type: ignore[misc]
            8,
            clipping_rule("flat", clip=1.0, scale=scale),
        )
        sums.append(batch.sums["weight"].double() / scale)
    assert bool(torch.isfinite(sums[0]).all())
    assert float((sums[0] - sums[1]).norm()) <= 1.0 + 1e-5


@pytest.mark.parametrize("size", [7, 8, 200_001])
@pytest.mark.parametrize("extras", [0, 1])
@pytest.mark.parametrize("batches", [1, 2])
def test_the_memory_of_an_answer_holds_nothing_but_the_answer(size: int, extras: int, batches: int) -> None:
    sums = ExactSum({"weight": torch.Size([size])}, extras)
    sums.begin()
    for _ in range(batches):
        with sums.batch() as land:
            land("weight", 0, size, lambda out: out.fill_(12345.5))
    gradients = gradients_of(size, extras)
    answer, _ = gradients.add_noise(gradients.first(), *sums.give_away(), SeededRandom(1))
    assert answer.total.size == size
    memory = torch.tensor([]).set_(sums._memory.untyped_storage()).numpy()
    assert answer.total.base is not None
    for kind, exact in ((np.float32, 12345.5), (np.int64, 12345 * batches)):
        assert not (memory[: len(memory) // 2 * 2].view(kind) == kind(exact)).any()


def test_sums_that_were_given_away_and_not_taken_are_gone() -> None:
    sums = ExactSum({"weight": torch.Size([9])}, 0)
    sums.begin()
    with sums.batch() as land:
        land("weight", 0, 9, lambda out: out.fill_(12345.5))
    sums.give_away()
    assert sums.give_away()[0].tolist() == [0] * 9


@pytest.mark.parametrize("batches", [1, 2])
def test_a_step_that_fails_leaves_no_exact_sum_in_the_memory_of_answers(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = gradients_of(4, 0)
    gradients.reuse = True
    sums = gradients.sums()
    for _ in range(batches):
        with sums.batch() as land:
            land("weight", 0, 4, lambda out: out.fill_(12345.5))

    def interrupted(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    for name in ("scaled_discrete_gaussian", "add_discrete_gaussian"):
        monkeypatch.setattr(noisy_gradients, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        gradients._release(gradients.first(), sums, SeededRandom(1))
    assert not sums._memory.any()
    with pytest.raises(ZeroDivisionError), sums.batch() as land:
        land("weight", 0, 4, lambda out: out.fill_(1 / 0 if out.fill_(7.0).any() else 0))
    assert not sums._memory.any()


def test_the_last_answer_does_not_show_the_first_batch_of_a_step_that_has_two() -> None:
    sums = ExactSum({"weight": torch.Size([5])}, 0)
    sums.begin()
    with sums.batch() as land:
        land("weight", 0, 5, lambda out: out.fill_(1.5))
    held = sums.give_away()[0]  # as a gradient that somebody keeps
    sums.begin()
    for _ in range(2):
        with sums.batch() as land:
            land("weight", 0, 5, lambda out: out.fill_(12345.5))
    assert sums.finish().tolist() == [2 * 12345] * 5
    assert not held.any()


@pytest.mark.parametrize("positions", [4, 600])
def test_gradients_of_one_token_that_cancel_are_clipped_for_what_rounding_leaves_of_them(positions: int) -> None:
    model = nn.Embedding(5, 1)
    engine = Engine(model)
    factors = torch.zeros(1, positions)
    factors[0, :3] = torch.tensor([1e35, 1.0, -1e35])
    batch = engine.clip(
        lambda m: (m(torch.zeros(1, positions, dtype=torch.int64)).squeeze(2) * factors).sum(dim=1),
        1,
        clipping_rule("flat", clip=1.0, scale=2.0**21),
    )
    assert float(batch.sums["weight"].norm()) <= 2.0**21


def test_a_second_thread_does_not_write_its_sums_over_an_answer_that_is_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_of(steps=2, batch=8, noise_multiplier=1.0)
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    data = (torch.ones(8, 1), torch.ones(8))
    seen, threads = [], []  # type: ignore[var-annotated]
    with plan.train(model, data, squares, optimizer, account=account_of(plan.unit)) as training:
        apply = training._updates.apply

        def apply_slowly(answer: Any) -> Any:
            if not threads:
                threads.append(threading.Thread(target=training.step))
                threads[0].start()
                before = answer.total.tolist()
                threads[0].join(0.3)
                seen.append(answer.total.tolist() == before)
            return apply(answer)

        monkeypatch.setattr(training._updates, "apply", apply_slowly)
        training.step()
        threads[0].join()
        assert training.number == 2
    assert seen == [True]


@pytest.mark.parametrize("layer", ["linear", "by Gram matrices", "by forming", "two rows of a person"])
def test_terms_that_cancel_are_left_out_together_where_one_is_too_large_to_be_weighted(layer: str) -> None:
    """One of two terms would become the largest number there is, and the other would stay as it is: sixteen clips."""
    each = 2 if layer == "two rows of a person" else 1
    steep = layer in ("linear", "by Gram matrices")  # squares of larger gradients would not be finite
    clip, small = (2.0**-64, 2.0**-124) if steep else (1.0, 2.0**-120)
    first, second = torch.tensor([15.9 * small, 15.9 * small * 2.0**24]), torch.tensor([clip / small, 0.0])
    second[1] = -second[0] * 2.0**-24
    if layer == "linear":
        model, x, g = nn.Linear(4, 4, bias=False), torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
        x[0, :, 0], g[0, :, 0] = first, second
    else:
        model = nn.Conv1d(8, 64, 3, stride=3, padding=1, groups=1 if steep else 2, bias=False)  # type: ignore[assignment]
        x, g = torch.zeros(each, 8, 4), torch.zeros(each, 64, 2)
        rows, places = (torch.arange(2), 0) if each == 2 else (0, torch.arange(2))
        x[rows, 0, 3 * places], g[rows, 0, places] = first, second
    engine = Engine(model, memory=0)
    engine.tape.most = 1
    rule = clipping_rule("flat", clip=clip, scale=2.0**21)
    batch = engine.clip(lambda m: (m(x) * g).flatten(1).sum(dim=1), each, rule, each=each)
    assert 0.9 * clip < float(batch.norms) <= clip  # counted as a part of the sum of norms, and not clipped
    assert float(batch.sums["weight"].norm()) <= 2.0**21


def held_by(optimizer: Any, model: Any) -> Any:
    """Gradients as whoever watches an optimiser may keep them."""
    held = []
    optimizer.register_step_pre_hook(lambda *_: held.append(model.weight.grad))
    return held


def is_exact(values: Any) -> Any:
    """Whether they are alike, as exact sums of rows of ones are (or two halves of one), and noisy ones are not."""
    return bool(values.any()) and len(values.unique()) <= 2


@pytest.mark.parametrize("physical", [8, 4])
@pytest.mark.parametrize("broken", ["positions", "_add_extras", "_reduce_sums"])
def test_a_step_that_breaks_between_batches_leaves_no_exact_sum_in_a_gradient_that_was_kept(
    physical: int, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(steps=2, batch=8, noise_multiplier=1.0, physical=physical)
    model = nn.Linear(16, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    held = held_by(optimizer, model)
    data = (torch.ones(8, 16), torch.ones(8))
    with plan.train(model, data, times, optimizer, account=account_of(plan.unit)) as training:
        training.step()
        seen, gradients = [], training._gradients
        owner = training._data[0] if broken == "positions" else gradients
        before = getattr(owner, broken)
        if broken == "_reduce_sums":
            gradients.reduce = lambda total: total

        def interrupted(*arguments: Any) -> Any:
            seen.append(is_exact(gradients._sums._memory[:16]))
            if seen[-1] or broken == "_reduce_sums" or len(seen) == 8 // physical:
                raise KeyboardInterrupt
            return before(*arguments)

        monkeypatch.setattr(owner, broken, interrupted)
        with pytest.raises(KeyboardInterrupt):
            training.step()
        assert not is_exact(held[0])
        assert not is_exact(gradients._sums._memory[:16])


@pytest.mark.parametrize("physical", [8, 4])
def test_a_loop_that_kept_a_gradient_sees_no_exact_sum_in_it_between_pieces_or_after_a_refusal(
    physical: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(steps=3, batch=8, noise_multiplier=1.0, physical=physical)
    model = nn.Linear(16, 1, bias=False)
    inner = torch.optim.SGD(model.parameters(), lr=0.0)
    held = held_by(inner, model)
    data = DataLoader(TensorDataset(torch.ones(8, 16), torch.ones(8)), batch_size=8)
    account = account_of(plan.unit)
    _, optimizer, loader = learning.private(model, inner, data, plan=plan, account=account, reduction="sum")

    def refused(*_: Any) -> NoReturn:
        raise LedgerUnavailable("the ledger is gone.")

    def epoch() -> None:
        for rows, targets in loader:
            times(model(rows), targets).sum().backward()
            optimizer.step()
            assert not any(is_exact(gradient) for gradient in held)

    epoch()
    epoch()
    monkeypatch.setattr(optimizer.run, "step", refused)
    with pytest.raises(LedgerUnavailable):
        epoch()
    assert len(held) == 2
    assert not any(is_exact(gradient) for gradient in held)


def test_neither_extras_that_were_given_away_nor_sums_that_were_forgotten_stay() -> None:
    sums = ExactSum({"weight": torch.Size([9])}, 1)
    for take in (sums.give_away, sums.begin):
        with sums.batch() as land:
            land("weight", 0, 9, lambda out: out.fill_(12345.5))
        sums.extras += 7
        take()
        assert not sums.extras.any()
    assert not sums._memory.any()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Linear(8, 16384, bias=False), (4, 8)),
        (lambda: nn.Linear(512, 4096, bias=False), (4, 512)),
        (lambda: nn.Conv2d(512, 512, 1, bias=False), (512, 4, 1)),
    ],
    ids=["wide", "deep", "convolution"],
)
def test_equal_entries_do_not_round_alike_until_a_unit_counts_more_than_its_clip(layer: Any, shape: Any) -> None:
    """Half of the positions nearly cancel the other half: what Gram matrices round away is large beside what is left.

    In one single-precision sum over all 16384 outputs the first contribution was 1.0028, and 1 + 2^-11 is paid for.
    """
    torch.manual_seed(0)
    model, rule = layer(), clipping_rule("flat", clip=1.0, scale=1.0)
    inputs = torch.ones(1, *shape)
    positions = 2 if isinstance(model, nn.Conv2d) else 1
    for _ in range(12):
        factors = torch.full_like(model(inputs), 100 * float(1 + torch.rand(())))
        factors.narrow(positions, 0, 2).mul_(-(1 - 2 * 0.0645))
        engine = Engine(model)
        with torch.no_grad():
            before = float(
                (factors.double().sum(dim=positions)).norm() / factors.double().norm(dim=3 - positions).sum()
            )
        assert before > 2.0**-5  # not so far that the larger norm counts
        found = engine.clip(lambda m, f=factors: (m(inputs) * f).flatten(1).sum(dim=1), 1, rule)  # type: ignore[misc]
        engine.detach()
        assert float(found.sums["weight"].double().norm()) <= 1 + 2.0**-11


def test_a_row_that_is_not_finite_changes_no_bit_of_the_others_in_recurrent_layers() -> None:
    torch.manual_seed(0)
    model = nn.GRU(5, 5, num_layers=3, batch_first=True)
    inputs = torch.randn(2, 4, 5)
    found = []
    for last in (1.0, float("nan")):
        batch = inputs * torch.tensor([1.0, last]).view(2, 1, 1)
        engine = Engine(model, memory=0)
        losses, first = (lambda m, b=batch: m(b)[0].sum(dim=(1, 2))), (lambda norms: np.array([1.0, 0.0]))
        found.append(engine.clip(losses, 2, first).sums)
        assert not engine.tape.norms._found
        engine.detach()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_biases_alone_of_a_recurrent_layer_are_trained(kind: Any) -> None:
    torch.manual_seed(0)
    layer = kind(3, 4, batch_first=True)
    layer.weight_ih_l0.requires_grad_(False)
    layer.weight_hh_l0.requires_grad_(False)
    inputs = torch.randn(2, 5, 3)
    layer(inputs)[0].sum().backward()
    right = {name: p.grad.clone() for name, p in layer.named_parameters() if p.grad is not None}
    engine = Engine(layer)
    found = engine.clip(lambda m: m(inputs)[0].sum(dim=(1, 2)), 2, lambda norms: np.ones(2)).sums
    engine.detach()
    assert set(found) == set(right)
    assert all(torch.allclose(found[name], right[name], atol=1e-5) for name in right)


def test_groups_of_a_single_number_are_normalised_as_pytorch_does_it() -> None:
    """One by one PyTorch refuses them; in a batch it does not."""
    layer, inputs = nn.GroupNorm(4, 4), torch.randn(3, 4)
    layer(inputs).square().sum().backward()
    right = {name: p.grad.clone() for name, p in layer.named_parameters()}
    engine = Engine(layer)
    found = engine.clip(lambda m: m(inputs).square().sum(dim=1), 3, lambda norms: np.ones(3)).sums
    engine.detach()
    assert all(torch.allclose(found[name], right[name], atol=1e-6) for name in right)
