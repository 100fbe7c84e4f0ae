"""The look before paying tries what is run: losses and models in which examples of a batch meet are refused unpaid."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  (as everybody calls it)
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha import learning
from mosha.core.errors import DataError
from mosha.learning.checking import mixing
from mosha.learning.gradients.engine import Engine
from mosha.learning.plan import DPSGD
from mosha.learning.training import make_losses

torch.set_num_threads(1)
PLAN = DPSGD(steps=2, rate=0.2, clip=1.0, batch=20, noise_multiplier=30.0, delta=1e-6)


def separate(output: Any, target: Any) -> Any:
    return F.cross_entropy(output, target, reduction="none")


def by_class_frequency(output: Any, target: Any) -> Any:
    weights = 1.0 / torch.bincount(target, minlength=2).clamp(min=1).float()
    return separate(output, target) * weights[target]


def balanced(output: Any, target: Any) -> Any:
    counts = torch.bincount(target, minlength=2).clamp(min=1).float()
    return separate(output, target) * (len(target) / (2 * counts))[target]


def over_valid_labels(output: Any, target: Any) -> Any:
    valid = target != -100
    return F.cross_entropy(output, target, reduction="none", ignore_index=-100) / valid.sum().clamp(min=1)


def hardest(output: Any, target: Any) -> Any:
    found = separate(output, target)
    return torch.where(found >= found.topk(max(1, len(found) // 2)).values[-1], found, 0.0)


def contrastive(output: Any, target: Any) -> Any:
    return F.cross_entropy(output @ output.T, torch.arange(len(output)), reduction="none") + separate(output, target)


def to_prototypes(output: Any, target: Any) -> Any:
    same = (target[:, None] == target).float()
    return ((output - same @ output / same.sum(1, keepdim=True)) ** 2).sum(1)


def mixed_up(output: Any, target: Any) -> Any:
    return 0.9 * separate(output, target) + 0.1 * separate(output, target.roll(1))


def ranked(output: Any, target: Any) -> Any:
    return separate(output, target) * output[:, 0].argsort().argsort().float()


def same_class_as_neighbor(output: Any, target: Any) -> Any:
    return separate(output, target) * (target == target.roll(1)).float().add(1)


def any_positive(output: Any, target: Any) -> Any:
    return separate(output, target) * (2.0 if bool((target == 1).any()) else 1.0)


def in_batch_softmax(output: Any, target: Any) -> Any:
    near = F.normalize(output) @ F.normalize(output).T
    same = (target[:, None] == target).float()
    return -(same * near.log_softmax(1)).sum(1) / same.sum(1)


def without_outliers(output: Any, target: Any) -> Any:
    found = separate(output, target)
    return torch.where(found <= found.detach().kthvalue(max(1, len(found) * 9 // 10)).values, found, 0.0)


MIXING = [
    in_batch_softmax,
    without_outliers,
    by_class_frequency,
    balanced,
    over_valid_labels,
    hardest,
    contrastive,
    to_prototypes,
    mixed_up,
    ranked,
    same_class_as_neighbor,
    any_positive,
]
SEPARATE = [
    separate,
    lambda o, t: F.cross_entropy(o, t, torch.tensor([1.0, 5.0]), reduction="none"),
    lambda o, t: F.cross_entropy(o, t, reduction="none", label_smoothing=0.1),
    lambda o, t: (1 - torch.exp(-separate(o, t))) ** 2 * separate(o, t),
    lambda o, t: F.binary_cross_entropy_with_logits(o[:, 0], t.float(), reduction="none"),
    lambda o, t: F.cross_entropy(o, t, reduction="none", ignore_index=-100),
]


class FromSomeRows(nn.Module):
    """Statistics of the batch, but only of one that is large enough."""

    def __init__(self, least: Any, statistic: Any) -> None:
        super().__init__()
        self.layer, self.least, self.statistic = nn.Linear(4, 2), least, statistic

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs - self.statistic(inputs) if len(inputs) >= self.least else inputs)


STATISTICS = {
    "mean": lambda x: x.mean(0),
    "largest": lambda x: x.amax(0),
    "neighbor": lambda x: x.roll(1, 0),
    "first": lambda x: x[:1],
    "last of a pair": lambda x: torch.cat([x[-1:], torch.zeros_like(x[1:])]),
}


class Experts(nn.Module):
    """Two experts; each takes the first rows that are sent to it, as many as it has room for."""

    def __init__(self, room: Any) -> None:
        super().__init__()
        self.gate, self.experts, self.room = nn.Linear(4, 2), nn.Linear(4, 4), room

    def forward(self, inputs: Any) -> Any:
        chances = self.gate(inputs).softmax(1)
        sent = F.one_hot(chances.argmax(1), 2)
        taken = sent * (sent.cumsum(0) <= self.room * len(inputs))
        return (self.experts(inputs).view(-1, 2, 2) * (chances * taken)[:, :, None]).sum(1)


class ChosenByExpert(Experts):
    """The expert takes the half of the batch that it likes best."""

    def forward(self, inputs: Any) -> Any:
        liked = self.gate(inputs)[:, 0]
        taken = torch.zeros_like(liked).scatter(0, liked.topk(max(1, int(len(liked) * self.room))).indices, 1.0)
        return self.experts(inputs)[:, :2] * (taken * liked.sigmoid())[:, None]


class WithoutFarRows(nn.Module):
    """Rows that are far from the others of their batch count as zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs: Any) -> Any:
        far = inputs.norm(dim=1)
        return self.layer(inputs * (far <= 3 * far.median())[:, None])


class MixedUp(WithoutFarRows):
    """A hundredth of another row, in training alone."""

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs + 0.01 * inputs[torch.randperm(len(inputs))] if self.training else inputs)


MODELS = {
    "experts": lambda: Experts(0.5),
    "little room": lambda: Experts(0.25),
    "chosen by the expert": lambda: ChosenByExpert(0.5),
    "without far rows": WithoutFarRows,
    "mixed up": MixedUp,
    "nearest": lambda: FromSomeRows(1, lambda x: x[(torch.cdist(x, x) + 1e9 * torch.eye(len(x))).argmin(1)]),
    "attention over rows": lambda: FromSomeRows(1, lambda x: (x @ x.T / 100).softmax(1) @ x),
}


@pytest.fixture
def account() -> Any:
    return mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=100, delta=1e-5, rule="pure")


def begun(model: Any, loss: Any, account: Any, plan: Any = PLAN) -> Any:
    data = torch.randn(60, 4), torch.randint(2, (60,))
    return plan.train(model, data, loss, torch.optim.SGD(model.parameters(), lr=0.1), account=account)


@pytest.mark.parametrize("loss", MIXING, ids=lambda loss: loss.__name__)
def test_a_loss_that_looks_at_other_examples_is_refused_unpaid(loss: Any, account: Any) -> None:
    with pytest.raises(DataError, match=r"mixes them.*Nothing was spent"):
        begun(nn.Linear(4, 2), loss, account)
    assert account.spent == 0


@pytest.mark.parametrize("loss", SEPARATE)
def test_a_loss_of_each_example_alone_is_taken(loss: Any, account: Any) -> None:
    with begun(nn.Linear(4, 2), loss, account) as training:
        training.step()


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
@pytest.mark.parametrize("least", [4, 8, PLAN.at_once])
def test_a_model_that_mixes_only_large_batches_is_refused_unpaid(least: Any, statistic: Any, account: Any) -> None:
    with pytest.raises(DataError, match="mixes them"):
        begun(FromSomeRows(least, statistic), separate, account)
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.randint(2, (60,))), batch_size=8)
    model = FromSomeRows(least, statistic)
    with pytest.raises(DataError, match="mixes them"):
        learning.private(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, plan=PLAN, account=account)
    assert account.spent == 0
    begun(FromSomeRows(PLAN.at_once + 1, statistic), separate, account).close()  # a size that is never run


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_model_in_which_rows_meet_is_refused_unpaid(make: Any, account: Any) -> None:
    torch.manual_seed(5)  # where rows meet only above some room, so that a look in a thousand would miss it
    with pytest.raises(DataError, match="mixes them"):
        begun(make(), separate, account)
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.randint(2, (60,))), batch_size=8)
    model = make()
    with pytest.raises(DataError, match="mixes them"):
        learning.private(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, plan=PLAN, account=account)
    assert account.spent == 0


@pytest.mark.parametrize("rare", [3, 8])
def test_a_loss_that_counts_one_class_of_many_is_refused_unpaid(rare: int, account: Any) -> None:
    def loss(output: Any, target: Any) -> Any:
        return separate(output, target) * (1 + (target == rare).sum())

    model, data = nn.Linear(4, 9), (torch.randn(60, 4), torch.randint(9, (60,)))
    with pytest.raises(DataError, match="mixes them"):
        PLAN.train(model, data, loss, torch.optim.SGD(model.parameters(), lr=0.1), account=account)
    assert account.spent == 0


def test_batches_of_persons_are_tried_with_all_rows_of_everyone(account: Any) -> None:
    persons = mosha.Ledger.memory().account(
        "p", unit=mosha.Person("p", at_most=3), epsilon=100, delta=1e-5, rule="pure"
    )
    plan = DPSGD(
        steps=2, rate=0.2, clip=1.0, batch=20, noise_multiplier=30.0, delta=1e-6, unit=mosha.Person("p", at_most=3)
    )
    model = FromSomeRows(plan.at_once * 3, STATISTICS["mean"])
    data, owners = (torch.randn(60, 4), torch.randint(2, (60,))), [i // 3 for i in range(60)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(DataError, match="mixes them"):
        plan.train(model, data, separate, optimizer, account=persons, owners=owners)
    assert persons.spent == 0


@pytest.mark.parametrize("kept", [True, False])
def test_labels_of_tokens_are_tried_as_well(kept: bool, account: Any) -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(9, 5), nn.Linear(5, 9)

        def forward(self, tokens: Any) -> Any:
            return self.out(self.words(tokens))

    def loss(output: Any, target: Any) -> Any:
        found = F.cross_entropy(output.transpose(1, 2), target, reduction="none", ignore_index=-100)
        count = (target != -100).sum(1) if kept else (target != -100).sum()
        return found.sum(1) / count.clamp(min=1)

    model, tokens = Words(), torch.randint(9, (60, 7))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if kept:
        PLAN.train(model, (tokens, tokens), loss, optimizer, account=account).close()
    else:
        with pytest.raises(DataError, match="mixes them"):
            PLAN.train(model, (tokens, tokens), loss, optimizer, account=account)


@pytest.mark.parametrize("loss", MIXING, ids=lambda loss: loss.__name__)
def test_a_loss_that_is_shown_to_private_is_tried_as_well(loss: Any, account: Any) -> None:
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.randint(2, (60,))), batch_size=8)
    model = nn.Linear(4, 2)
    parts = model, torch.optim.SGD(model.parameters(), lr=0.1), loader
    with pytest.raises(DataError, match="mixes them"):
        learning.private(*parts, plan=PLAN, account=account, loss=loss)
    assert account.spent == 0
    learning.private(*parts, plan=PLAN, account=account, loss=separate)[1].close()


TABLE = {loss.__name__: (lambda: nn.Linear(4, 2), loss) for loss in MIXING}
TABLE |= {name: (make, separate) for name, make in MODELS.items()}  # type: ignore[misc]
TABLE |= {name: (lambda s=s: FromSomeRows(24, s), separate) for name, s in STATISTICS.items()}  # type: ignore[misc]


def look_a_few_times(model: Any, loss: Any, rows: int = 24) -> None:
    batch = torch.randn(rows, 4), torch.zeros(rows, dtype=torch.long)
    mixing.check_rows_apart(Engine(model), make_losses(loss), batch, tries=mixing.LEAST)


@pytest.mark.parametrize(("make", "loss"), TABLE.values(), ids=TABLE)
def test_what_mixes_is_found_by_the_few_tries_that_a_large_model_gets(make: Any, loss: Any) -> None:
    torch.manual_seed(7)  # a search that begins at the same place
    with pytest.raises(DataError, match="mixes them"):
        look_a_few_times(make(), loss)


@pytest.mark.parametrize("loss", SEPARATE)
def test_few_tries_refuse_nothing_that_is_separate(loss: Any) -> None:
    look_a_few_times(nn.Linear(4, 2), loss)
    look_a_few_times(nn.Linear(4, 2), loss, rows=2)


def test_a_large_model_is_asked_a_few_times() -> None:
    """Labels are changed after the model has answered: how often it is asked follows from its size alone."""
    asked = []

    class Counted(nn.Linear):
        def forward(self, inputs: Any) -> Any:
            asked.append(len(inputs))
            return super().forward(inputs)

    look_a_few_times(Counted(4, 2), separate)
    assert asked == [24] * (mixing.LEAST + 2)  # as it is, changed, and once for derivatives
    large = Engine(nn.Linear(4, 2))
    assert mixing.count_tries(large) == mixing.MOST
    large.model.weight = nn.Parameter(torch.zeros(1).expand(2, mixing.SMALL))
    assert mixing.count_tries(large) == mixing.LEAST


def test_a_loss_that_writes_into_what_the_model_gave_is_no_mixing() -> None:
    def loss(output: Any, target: Any) -> Any:
        return F.cross_entropy(output.mul_(2), target, reduction="none")

    look_a_few_times(nn.Linear(4, 2), loss)


class Judge(nn.Module):
    """A model that is given the labels, as those of transformers are, and answers with losses."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.layer, self.loss = nn.Linear(3, 2), loss

    def forward(self, inputs: Any, labels: Any) -> Any:
        return self.loss(self.layer(inputs), labels)


@pytest.mark.parametrize("loss", [by_class_frequency, balanced, separate])
def test_a_model_that_is_given_the_labels_is_asked_again_for_other_labels(loss: Any, account: Any) -> None:
    """Its first answer would hold the frequencies of the first labels, whatever the labels become."""
    model = Judge(loss)
    loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.randint(2, (40,))), batch_size=20)
    parts = (model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    shown = {"plan": PLAN, "account": account, "forward": lambda model, batch: model(*batch)}
    if loss is separate:
        learning.private(*parts, **shown)[1].close()
        return
    with pytest.raises(DataError, match="mixes"):
        learning.private(*parts, **shown)
    assert account.spent == 0
