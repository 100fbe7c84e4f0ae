"""A row that cannot be used counts as nothing: the others go on, and nothing tells that it was there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import mosha
from mosha import learning
from mosha.learning.batches import Sampler
from mosha.learning.plan import DPSGD
from mosha.noise import secure

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
EVERYONE = DPSGD(steps=2, rate=1.0, clip=0.5, batch=24, noise_multiplier=30.0, delta=1e-6, physical=16)


class Rows(Dataset):
    """Rows of numbers; some are spoiled in one of the ways that happen."""

    def __init__(self, count: Any, spoiled: Any = (), how: Any = None) -> None:
        torch.manual_seed(4)
        self.inputs, self.spoiled, self.how = torch.randn(count, 4), set(spoiled), how

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, place: Any) -> Any:
        inputs, label = self.inputs[place], int(self.inputs[place, 0] > 0)
        if place not in self.spoiled:
            return inputs, label
        if self.how == "corrupt":
            raise OSError("cannot identify image file 'patient-17.png'")
        return (inputs, 17) if self.how == "label" else (torch.cat([inputs, inputs]), label)


class Without(Rows):
    """The same rows, without those that are spoiled."""

    def __init__(self, count: Any, spoiled: Any) -> None:
        super().__init__(count)
        self.inputs = self.inputs[[place for place in range(count) if place not in spoiled]]


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


def begun(data: Any, account: Any, plan: Any = EVERYONE, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    return plan.train(model, data, LOSS, torch.optim.SGD(model.parameters(), lr=0.1), account=account, **options)


def sum_of(training: Any) -> Any:
    examples, _ = training._data
    gradients = training._gradients
    found, _ = gradients.sum_batch(gradients.first(), (examples, Sampler(training.plan, examples.units)), secure())
    return found / 2.0**gradients.grid.bits


@pytest.mark.parametrize("how", ["corrupt", "label", "ragged"])
@pytest.mark.parametrize("spoiled", [(23,), (3, 9, 10, 22)], ids=["one", "several"])
def test_the_sum_is_that_of_all_other_rows(how: str, spoiled: Any, account: Any) -> None:
    found = sum_of(begun(Rows(24, spoiled, how), account))
    wanted = sum_of(begun(Without(24, spoiled), account))
    every = sum_of(begun(Rows(24), account))
    assert float(np.linalg.norm(found - wanted)) < 1e-4
    assert float(np.linalg.norm(every - wanted)) > 0.1  # the rows would have counted


def test_a_training_on_rows_of_which_none_can_be_used_is_noise_alone(account: Any) -> None:
    training = begun(Rows(20, range(1, 20), "corrupt"), account, like=(torch.randn(2, 4), torch.zeros(2).long()))
    training._data[0]._dataset.spoiled.add(0)
    assert not sum_of(training).any()
    assert [step.number for step in training] == [1, 2]


def test_why_a_row_was_left_out_is_told_to_the_owner_alone(
    account: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mosha.keep_private_log(tmp_path / "log")
    with begun(Rows(24, [5], "corrupt"), account) as training:
        said = [str(step) for step in training]
    assert "patient-17" in (tmp_path / "log").read_text()
    assert not any("patient" in one for one in [*said, *capfd.readouterr()])


def test_of_a_person_the_other_examples_count(account: Any) -> None:
    paying = mosha.Ledger.memory().account("p", unit=mosha.Person("p", at_most=2), epsilon=100, delta=1e-5, rule="pure")
    plan = DPSGD(
        steps=2, rate=1.0, clip=0.5, batch=9, noise_multiplier=30.0, delta=1e-6, unit=mosha.Person("p", at_most=2)
    )
    owners = [place // 2 for place in range(18)]
    found = sum_of(begun(Rows(18, [5], "label"), paying, plan, owners=owners))
    wanted = sum_of(begun(Without(18, [5]), paying, plan, owners=[o for place, o in enumerate(owners) if place != 5]))
    assert float(np.linalg.norm(found - wanted)) < 1e-4


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_gives_other_rows_in_their_places_which_weigh_nothing(workers: int, account: Any) -> None:
    plan, spoiled = DPSGD(steps=1, rate=1.0, clip=0.5, noise_multiplier=30.0, delta=1e-6, physical=32), (2, 19)
    found = []
    for data in (Rows(24, spoiled, "corrupt"), Without(24, spoiled)):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        loader = DataLoader(data, batch_size=8, num_workers=workers)
        model, optimizer, loader = learning.private(  # type: ignore[assignment]
            model, torch.optim.SGD(model.parameters(), lr=0.1), loader, plan=plan, account=account
        )
        for inputs, labels in loader:
            assert len(inputs) == 32
            optimizer.last_piece = False
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            found.append(optimizer._sums.finish().clone() / 2.0**optimizer._gradients.grid.bits)
            break
        optimizer.close()
    assert float((found[0] - found[1]).norm()) < 1e-4
    assert float(found[1].norm()) > 0.1
