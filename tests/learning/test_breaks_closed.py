"""Ways in which one unit could move more than was paid for, each of them closed."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import InvalidParameter, RunClosed
from mosha.learning.plan import DPSGD
from mosha.learning.sampling import Sampler, owners_of
from mosha.noise import secure

torch.set_num_threads(1)


def account_of(unit):
    return mosha.Ledger.memory().account("a", unit=unit, epsilon=1e6, delta=1e-5)


def plan_of(**changed):
    return DPSGD(**({"steps": 1, "rate": 1.0, "clip": 1.0, "noise_multiplier": 0.01, "batch": 1} | changed))


def squares(output, target):
    return (output[:, 0] - target) ** 2


def times(output, target):
    return output[:, 0] * target


def moved(plan, inputs, targets, loss=squares, **options):
    """How far one step moves the only weight, in clips."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with plan.train(model, (inputs, targets), loss, optimizer, account=account_of(plan.unit), **options) as training:
        list(training)
    return model.weight.item()


def test_all_rows_of_a_person_with_one_row_at_most_move_one_clip():
    plan = plan_of(unit=mosha.Person("who", at_most=1))
    rows = torch.ones(50, 1), torch.full((50,), 1e3)
    with pytest.raises(InvalidParameter, match="owners"):
        moved(plan, *rows)
    assert abs(moved(plan, *rows, owners=["ann"] * 50)) < 1.2
    assert abs(moved(plan, *rows, owners=range(50))) > 40  # fifty persons are another matter


def test_owners_belong_to_persons_alone():
    with pytest.raises(InvalidParameter, match="owners"):
        moved(plan_of(), torch.ones(2, 1), torch.ones(2), owners=["ann", "bo"])
    person, (model, optimizer, loader) = mosha.Person("who", at_most=1), wrapped_parts()
    with pytest.raises(InvalidParameter, match="persons"):
        learning.private(model, optimizer, loader, plan=plan_of(unit=person), account=account_of(person))


def wrapped_parts(rows=2):
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    loader = DataLoader(TensorDataset(torch.ones(rows, 1), torch.full((rows,), 1e3)))
    return model, torch.optim.SGD(model.parameters(), lr=1.0), loader


def test_an_empty_data_set_trains_on_noise_as_any_other():
    assert abs(moved(plan_of(), torch.ones(0, 1), torch.ones(0))) < 1


def test_nobody_is_in_two_batches_of_an_epoch_whatever_crashes():
    plan = plan_of(steps=10, rate=0.1, sampling="shuffled", noise_multiplier=1.0)
    account = account_of(mosha.Example())

    def begun():
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


def test_bins_of_another_epoch_are_refused_and_those_of_this_one_go_on():
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


def test_an_abandoned_batch_leaves_nothing_in_the_sum():
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
    assert abs(model.weight.item()) < 2.3  # two examples, one clip each
    assert optimizer.run.remaining == 2


def test_two_batches_cannot_be_mixed_in_one_sum():
    plan = plan_of(steps=3, rate=1.0, physical=1)
    _, _, loader = learning.private(*wrapped_parts(), plan=plan, account=account_of(mosha.Example()))
    first, second = loader._batch(), loader._batch()
    next(first)
    next(second)
    with pytest.raises(RunClosed, match="one batch"):
        next(first)


def test_a_score_that_hides_a_smaller_unit_is_refused():
    person = mosha.Person("p", at_most=50)
    candidates = {"a": mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=person, epsilon=0.1)}
    scores = mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=mosha.Row(), epsilon=1.0)
    tuned = learning.best_of_random_runs(
        candidates, score=lambda _name, _answer: scores, score_event=scores.event, mean=1.0
    )
    with pytest.raises(InvalidParameter, match="same unit"):
        tuned.step(None, (([], []), list(range(50))), None, secure())  # there is always a first run


def test_persons_are_told_apart_as_everywhere():
    sizes = {
        2: [[1, "1"], [2**53, 2**53 + 1], ["a", "a\0"], [1, None]],
        1: [[1, 1.0], [float("nan"), None], [True, 1], np.array([7, 7])],
    }
    for expected, columns in sizes.items():
        for owners in columns:
            assert len(owners_of(owners, 2)) == expected
    assert len(owners_of([2**53, 2**53 + 1, 0.5], 3)) == 3
    assert owners_of([], 0) == []
    person = plan_of(unit=mosha.Person("who", at_most=2))
    with_both = moved(person, torch.ones(2, 1), torch.tensor([100.0, -200.0]), times, owners=[1, "1"])
    assert abs(with_both) < 0.3  # two persons, a clip each, in opposite directions
