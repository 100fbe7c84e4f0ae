"""What `private` gives back is what PyTorch expects, and what a loader says about its rows is not dropped."""

import copy
import pickle
from typing import Any, NoReturn

import pytest
import torch
from torch import nn
from torch.utils import data as torch_data
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import InvalidParameter, MoshaError

torch.set_num_threads(1)
PLAN = learning.DPSGD(steps=6, rate=0.5, clip=1.0, batch=20, physical=16, noise_multiplier=30.0, delta=1e-6)
ROWS = 40


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


class Listed(torch_data.Dataset):
    """Rows whose first number says which row it is."""

    def __len__(self) -> Any:
        return ROWS

    def __getitem__(self, place: Any) -> tuple[Any, ...]:
        return torch.tensor([float(place), 1.0]), place % 2


TENSORS = TensorDataset(torch.stack([Listed()[i][0] for i in range(ROWS)]), torch.arange(ROWS) % 2)


def wrapped(loader: Any, account: Any, optimizer: Any = None, plan: Any = PLAN) -> Any:
    model = nn.Linear(2, 2)
    optimizer = (optimizer or torch.optim.SGD)(model.parameters(), lr=1e-4)
    return learning.private(model, optimizer, loader, plan=plan, account=account)


def trained(model: Any, optimizer: Any, loader: Any, each_batch: Any = lambda: None) -> Any:
    """All rows that were seen."""
    seen, criterion = set(), nn.CrossEntropyLoss()
    while loader.taken < PLAN.steps:
        for inputs, targets in loader:
            seen |= set(inputs[:, 0].int().tolist())
            criterion(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
        each_batch()
    return seen


def test_a_private_optimizer_is_an_optimizer(account: Any) -> None:
    model, optimizer, loader = wrapped(DataLoader(TENSORS, batch_size=8), account, torch.optim.Adam)
    assert isinstance(optimizer, torch.optim.Optimizer)
    inside = optimizer.optimizer  # type: ignore[attr-defined]
    assert optimizer.param_groups is inside.param_groups
    assert optimizer.state is inside.state
    assert optimizer.defaults == inside.defaults
    assert "Adam" in repr(optimizer)
    trained(model, optimizer, loader)
    assert optimizer.state_dict()["state"].keys() == inside.state_dict()["state"].keys() == {0, 1}
    before = copy.deepcopy(optimizer.state_dict())
    before["param_groups"][0]["lr"] = 0.25
    optimizer.load_state_dict(before)
    assert optimizer.param_groups is inside.param_groups
    assert inside.param_groups[0]["lr"] == 0.25


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20),
        lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch),
        lambda optimizer: torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [
                torch.optim.lr_scheduler.ConstantLR(optimizer),
                torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
            ],
            [2],
        ),
    ],
)
def test_schedulers_of_pytorch_take_it(make: Any, account: Any) -> None:
    model, optimizer, loader = wrapped(DataLoader(TENSORS, batch_size=8), account)
    scheduler = make(optimizer)
    first = optimizer.param_groups[0]["lr"]
    trained(model, optimizer, loader, scheduler.step)
    assert optimizer.optimizer.param_groups[0]["lr"] != first


def test_hooks_are_called_once_an_update(account: Any) -> None:
    model, optimizer, loader = wrapped(DataLoader(TENSORS, batch_size=8), account)
    called = []
    optimizer.register_step_pre_hook(lambda *_: called.append("before"))
    optimizer.register_step_post_hook(lambda *_: called.append("after"))
    trained(model, optimizer, loader)
    assert called == ["before", "after"] * PLAN.steps


def test_what_a_paid_training_cannot_do_is_refused_in_words(account: Any) -> None:
    model, optimizer, _ = wrapped(DataLoader(TENSORS, batch_size=8), account)
    with pytest.raises(InvalidParameter, match="settled"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    for copied in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="copied"):
            copied(optimizer)
    optimizer.close()
    spent = account.spent
    loss = nn.CrossEntropyLoss(reduction="none")
    with pytest.raises(InvalidParameter, match="private already"):
        PLAN.train(model, TENSORS, loss, optimizer, account=account)
    assert account.spent == spent


class Own(torch_data.Sampler):
    def __init__(self) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(range(10))

    def __len__(self) -> int:
        return 10


class OwnBatches(torch_data.BatchSampler):
    pass


def unfit() -> dict[str, Any]:
    one: dict[str, Any] = {"num_replicas": 2, "rank": 0}
    return {
        "weighted": {"sampler": torch_data.WeightedRandomSampler([1.0] * ROWS, ROWS)},
        "replacement": {"sampler": torch_data.RandomSampler(TENSORS, replacement=True)},
        "some": {"sampler": torch_data.RandomSampler(TENSORS, num_samples=10)},
        "of another set": {"sampler": torch_data.SequentialSampler(range(10))},
        "distributed": {"sampler": torch_data.DistributedSampler(TENSORS, **one)},
        "own": {"sampler": Own()},
        "own batches": {"batch_sampler": OwnBatches(torch_data.SequentialSampler(TENSORS), 4, drop_last=False)},
        "listed batches": {"batch_sampler": [[0, 1], [2, 3]]},
        "weighted batches": {
            "batch_sampler": torch_data.BatchSampler(
                torch_data.WeightedRandomSampler([1.0] * ROWS, ROWS), 4, drop_last=False
            )
        },
        "a row twice": {"sampler": SubsetRandomSampler([1, 2, 2, 3])},
        "no batches": {"batch_size": None},
    }


@pytest.mark.parametrize("how", unfit().values(), ids=unfit())
def test_a_sampler_that_cannot_be_followed_is_refused_unpaid(how: Any, account: Any) -> None:
    with pytest.raises(InvalidParameter, match="Nothing was spent"):
        wrapped(DataLoader(TENSORS, **how), account)
    assert account.spent == 0


@pytest.mark.parametrize("rows", [TENSORS, Listed()], ids=["tensors", "listed"])
@pytest.mark.parametrize("workers", [0, 2])
def test_rows_that_a_loader_leaves_out_are_never_seen(rows: Any, workers: int, account: Any) -> None:
    half = range(ROWS // 2)
    batches = torch_data.BatchSampler(SubsetRandomSampler(half), 4, drop_last=True)
    loaders = [
        DataLoader(rows, batch_size=8, sampler=SubsetRandomSampler(half), num_workers=workers),
        DataLoader(Subset(rows, half), batch_size=8, shuffle=True, num_workers=workers),
        DataLoader(rows, batch_sampler=batches, num_workers=workers),
    ]
    for loader in loaders if workers == 0 else loaders[:1]:
        seen = trained(*wrapped(loader, account))
        assert seen <= set(half)
        assert len(seen) > 5  # fewer: by chance below 1e-9 (6 coins of one half for each of 20 rows)


@pytest.mark.parametrize(
    "how", [{}, {"shuffle": True}, {"drop_last": True}, {"sampler": torch_data.SequentialSampler(TENSORS)}]
)
def test_a_loader_over_all_rows_sees_rows_of_all_parts(how: Any, account: Any) -> None:
    seen = trained(*wrapped(DataLoader(TENSORS, batch_size=8, **how), account))
    assert min(seen) < ROWS // 2 <= max(seen)  # else: below 1e-9, 120 coins of one half that all fell one way


def test_a_subset_that_names_a_row_twice_is_refused_by_a_training_too(account: Any) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows in (Subset(TENSORS, [0, 1, 1]), Subset(Subset(Listed(), [0, 1, 1]), [0, 1])):
        with pytest.raises(InvalidParameter, match="more than once"):
            PLAN.train(model, rows, nn.CrossEntropyLoss(reduction="none"), optimizer, account=account)
    assert account.spent == 0


def test_batches_that_are_cut_go_on_for_a_loop_that_stops_after_as_many_pieces_as_it_was_told(account: Any) -> None:
    """As Lightning's: a new iterator each epoch, `len` pieces of it, and a closure."""
    model, optimizer, loader = wrapped(DataLoader(TENSORS, batch_size=8), account)
    continued, epochs = loader.continue_batches(), 0
    while optimizer.run.remaining and epochs < 50:
        epochs += 1
        for _, (inputs, targets) in zip(range(len(continued)), continued, strict=False):
            nn.CrossEntropyLoss()(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert optimizer.run.remaining == 0
    assert not loader.has_more()
    assert list(continued) == []
    assert epochs > PLAN.steps / len(continued)  # batches of about 20 in pieces of 16


class Loop:
    """What the Trainer of Hugging Face does with its parts; `benchmarks/learning_loops.py` runs the real one."""

    class Arguments:
        max_steps, gradient_accumulation_steps, max_grad_norm = -1, 8, 1.0

    def __init__(self, model: Any, rows: Any) -> None:
        self.model, self.train_dataset, self.args = model, rows, self.Arguments()
        self.optimizer, self.losses = None, []  # type: ignore[var-annotated]

    def create_optimizer(self) -> Any:
        return torch.optim.SGD(self.model.parameters(), lr=0.1)

    def training_step(self, model: Any, inputs: Any) -> NoReturn:
        raise AssertionError((model, inputs))

    def get_train_dataloader(self) -> NoReturn:
        raise AssertionError

    def train(self) -> None:
        for inputs in self.get_train_dataloader():  # type: ignore[var-annotated]
            self.losses.append(self.training_step(self.model, inputs, 20))  # type: ignore[unreachable]
            self.optimizer.step()
            self.optimizer.zero_grad()


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, values: Any) -> dict[str, Any]:
        return {"logits": self.layer(values)}


def loss_of_logits(out: Any, labels: Any) -> Any:
    return nn.functional.cross_entropy(out["logits"], labels, reduction="none")


def test_a_trainer_takes_one_step_a_batch_and_tells_no_loss(account: Any) -> None:
    rows = [{"values": torch.randn(2), "labels": place % 2} for place in range(ROWS)]
    loop = Loop(Named(), rows)
    before = loop.model.layer.weight.detach().clone()
    made = learning.make_trainer_private(loop, plan=PLAN, account=account, loss=loss_of_logits)
    assert made is loop
    loop.train()
    assert loop.optimizer.run.remaining == 0
    assert len(loop.losses) <= PLAN.steps
    assert not any(map(bool, loop.losses))
    assert not torch.equal(loop.model.layer.weight, before)
    assert (loop.args.max_steps, loop.args.gradient_accumulation_steps, loop.args.max_grad_norm) == (PLAN.steps, 1, 0.0)


def test_a_trainer_is_refused_where_its_loss_mixes_rows_or_it_is_none(account: Any) -> None:
    rows = [{"values": torch.randn(2), "labels": place % 2} for place in range(ROWS)]

    def divided_by_the_batch(out: Any, labels: Any) -> Any:
        return loss_of_logits(out, labels) / (labels > 0).sum().clamp_min(1)

    for trainer, loss in ((Loop(Named(), rows), divided_by_the_batch), (Named(), loss_of_logits)):
        with pytest.raises(MoshaError) as refused:
            learning.make_trainer_private(trainer, plan=PLAN, account=account, loss=loss)
        assert refused.value.spent == "nothing"
    with pytest.raises(InvalidParameter, match="Trainer"):
        learning.make_trainer_private(Loop(Named(), None), plan=PLAN, account=account, loss=loss_of_logits)
    assert account.spent == 0
