"""What a newcomer may hand in by mistake: a typed error that says what next, and nothing is spent."""

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha.core.errors import DataError, InvalidParameter
from mosha.learning import DPSGD, Adam, private

torch.set_num_threads(1)
INPUTS, TARGETS = torch.randn(20, 4), torch.randint(0, 2, (20,))
LOSS = nn.CrossEntropyLoss(reduction="none")


def plan() -> Any:
    return DPSGD(steps=2, rate=0.5, clip=1.0, noise_multiplier=1.0, delta=1e-5)


def account() -> Any:
    return mosha.Ledger.memory().account("a", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


def begun(paying: Any, *, model: Any = None, data: Any = (INPUTS, TARGETS), **options: Any) -> Any:
    model = nn.Linear(4, 2) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return plan().train(model, data, LOSS, optimizer, account=paying, **options)


MISTAKES: dict[str, Any] = {
    "a data set by names": {"data": {"x": INPUTS, "y": TARGETS}},
    "a data set of words": {"data": ["a", "b"]},
    "inputs of another width": {"model": nn.Linear(5, 2)},
    "a model in double precision": {"model": nn.Linear(4, 2).double(), "data": (INPUTS.double(), TARGETS)},
    "a model in half precision": {"model": nn.Linear(4, 2).bfloat16(), "data": (INPUTS.bfloat16(), TARGETS)},
    "a model on another device": {"model": nn.Linear(4, 2, device="meta")},
    "a precision by name": {"autocast": "bf16"},
    "an audit that is none": {"audit": 5},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_anything_is_spent(mistake: Any) -> None:
    paying = account()
    with pytest.raises((InvalidParameter, DataError)):
        begun(paying, **MISTAKES[mistake])
    assert paying.spent == 0


def test_what_pytorch_says_of_a_made_up_batch_is_passed_on() -> None:
    with pytest.raises(InvalidParameter, match="mat1 and mat2 shapes cannot be multiplied"):
        begun(account(), model=nn.Linear(5, 2))


ADVICE = {
    "a spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2)), "weight_norm"),
    "a spectral norm, the old way": (lambda: nn.utils.spectral_norm(nn.Linear(4, 2)), "weight_norm"),
    "a bag that changes its table": (lambda: nn.EmbeddingBag(9, 2, max_norm=1.0), "private tokens point. Replace it"),
}


@pytest.mark.parametrize("model", ADVICE)
def test_a_model_that_does_not_fit_is_told_what_next(model: Any) -> None:
    make, said = ADVICE[model]
    paying = account()
    with pytest.raises((InvalidParameter, DataError), match=said):
        begun(paying, model=make())
    assert paying.spent == 0


def test_plan_and_account_of_the_wrapping_and_the_plan_of_adam_are_checked() -> None:
    model, loader = nn.Linear(4, 2), DataLoader(TensorDataset(INPUTS, TARGETS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for options in ({"plan": 5, "account": account()}, {"plan": plan(), "account": 5}):
        with pytest.raises(InvalidParameter, match="Nothing was spent"):
            private(model, optimizer, loader, **options)
    with pytest.raises(InvalidParameter, match="plan must be"):
        Adam(model.parameters(), plan="plan", lr=0.1)  # type: ignore[arg-type]


def test_an_allocator_that_was_set_up_by_its_owner_is_left_alone() -> None:
    code = "from mosha.learning.gradients.allocator import keep_freed_memory; print(keep_freed_memory())"
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "100000"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_model_on_a_device_that_is_not_admitted_is_told_what_to_do() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        begun(account(), model=nn.Linear(4, 2, device="meta"))
    assert refusal.value.code == "learning.device_not_admitted"
    assert "CPU" in refusal.value.render("zh")
