"""Ways in which one unit could move more than was paid for, each of them closed."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import DataError, InvalidParameter, RunClosed
from mosha.learning.plan import DPSGD
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
