"""A training is paid before it starts, learns, and stops exactly at its budget."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mosha
from mosha.core.errors import (
    BudgetExceeded,
    DataError,
    HorizonExceeded,
    InvalidParameter,
    RunClosed,
    Unpriced,
    WrongUnit,
)
from mosha.learning.correlated_plan import DPFTRL
from mosha.learning.plan import DPSGD

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")


def data(rows: int = 200) -> tuple[Any, ...]:
    inputs = torch.randn(rows, 6)
    return inputs, (inputs[:, 0] > 0).long()


def small() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def descent(model: Any, lr: float = 0.5) -> Any:
    return torch.optim.SGD(model.parameters(), lr=lr)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    return mosha.Ledger(str(tmp_path / "privacy.db"))


@pytest.fixture
def account(ledger: Any) -> Any:
    return ledger.account("test", unit=mosha.Example(), epsilon=3, delta=1e-5, rule="pure")


def plan_of(**options: Any) -> Any:
    return DPSGD(**({"steps": 6, "rate": 0.2, "clip": 1.0, "batch": 40, "physical": 16} | options))


PLANS = {
    "flat": plan_of(),
    "per_layer": plan_of(clipping="per_layer"),
    "adaptive": plan_of(clipping="adaptive"),
    "automatic": plan_of(clipping="automatic"),
    "with a loss": plan_of(loss_at_most=3.0),
    "adaptive with a loss": plan_of(clipping="adaptive", loss_at_most=3.0),
    "shuffled": plan_of(sampling="shuffled"),
    "correlated": DPFTRL(steps=6, rate=0.2, clip=1.0, batch=40, bands=3),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_training_spends_what_was_promised_and_stops_there(name: Any, account: Any) -> None:
    plan = PLANS[name].calibrate(epsilon=3, delta=1e-5)
    model = small()
    before = copy.deepcopy(model.state_dict())
    with plan.train(model, data(), LOSS, descent(model), account=account) as training:
        steps = list(training)
        with pytest.raises(HorizonExceeded):
            training.step()
    assert [step.number for step in steps] == list(range(1, plan.steps + 1))
    assert account.spent == pytest.approx(3, rel=1e-4)
    assert account.spent <= 3
    prices = [step.epsilon for step in steps]
    assert prices == sorted(prices)
    assert prices[-1] <= 3
    assert any(not torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all((step.loss is not None) == (plan.loss_at_most is not None) for step in steps)


def test_what_the_account_cannot_pay_reads_nothing_and_leaves_the_model_alone(account: Any) -> None:
    class Untouched(torch.utils.data.Dataset):
        read = 0

        def __len__(self) -> int:
            return 10

        def __getitem__(self, index: Any) -> tuple[Any, ...]:
            Untouched.read += 1
            return torch.zeros(6), torch.tensor(0)

    model = small()
    plan = plan_of().calibrate(epsilon=4, delta=1e-5)
    with pytest.raises(BudgetExceeded):
        plan.train(model, Untouched(), LOSS, descent(model), account=account)
    assert Untouched.read <= 2  # shapes and types are public, and looked up at one example
    assert account.spent == 0
    assert not any("forward" in vars(module) for module in model.modules())


def test_a_model_is_itself_again_after_the_training(account: Any) -> None:
    model = small()
    keys = list(model.state_dict())
    with plan_of().calibrate(epsilon=1, delta=1e-5).train(model, data(), LOSS, descent(model), account=account) as t:
        assert list(model.state_dict()) == keys
        next(iter(t))
    assert not any("forward" in vars(module) for module in model.modules())
    copy.deepcopy(model)


def test_the_least_noise_is_found_and_one_step_more_would_be_too_many() -> None:
    plan = plan_of().calibrate(epsilon=1, delta=1e-5)
    assert plan.epsilon() <= 1 < dataclasses.replace(plan, noise_multiplier=0.999 * plan.noise_multiplier).epsilon()
    most = dataclasses.replace(plan, delta=None).most_steps(epsilon=1, delta=1e-5)
    assert most.epsilon() <= 1 < dataclasses.replace(most, steps=most.steps + 1).epsilon()


def test_a_learner_with_little_noise_learns(account: Any) -> None:
    model, (inputs, labels) = small(), data(400)
    plan = plan_of(steps=40, rate=0.5, batch=200).calibrate(epsilon=3, delta=1e-5)
    with plan.train(model, (inputs, labels), LOSS, descent(model, 2.0), account=account) as training:
        for _ in training:
            pass
    assert float((model(inputs).argmax(1) == labels).float().mean()) > 0.7


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_tiny_data_sets_and_empty_batches_are_answered(rows: int, account: Any) -> None:
    model, plan = small(), plan_of(rate=0.01).calibrate(epsilon=1, delta=1e-5)
    with plan.train(model, data(rows), LOSS, descent(model), account=account) as training:
        assert len(list(training)) == plan.steps


def test_persons_are_clipped_as_a_whole(ledger: Any) -> None:
    person = mosha.Person("patient", at_most=3)
    account = ledger.account("people", unit=person, epsilon=1, delta=1e-5, rule="pure")
    model, plan = small(), plan_of(unit=person).calibrate(epsilon=1, delta=1e-5)
    owners = np.repeat(np.arange(50), 4)  # one example too many each: three of them are taken
    with plan.train(model, data(200), LOSS, descent(model), account=account, owners=owners) as training:
        assert len(list(training)) == plan.steps
    other = ledger.account("examples", unit=mosha.Example(), epsilon=1, delta=1e-5, rule="pure")
    with pytest.raises(WrongUnit):
        plan.train(model, data(200), LOSS, descent(model), account=other, owners=owners)


def test_fixed_sizes_are_priced_for_replaced_examples(ledger: Any) -> None:
    unit = mosha.Example(neighbors="replace-one")  # type: ignore[arg-type]
    account = ledger.account("fixed", unit=unit, epsilon=1, delta=1e-5, rule="pure")
    plan = plan_of(sampling="fixed_size", unit=unit, population=200).calibrate(epsilon=1, delta=1e-5)
    assert plan.noise_multiplier > plan_of().calibrate(epsilon=1, delta=1e-5).noise_multiplier
    model = small()
    with plan.train(model, data(200), LOSS, descent(model), account=account) as training:
        list(training)
    with pytest.raises(InvalidParameter, match="population"):
        plan.train(model, data(199), LOSS, descent(model), account=account)


def test_parameters_that_are_not_finite_are_said_and_the_step_is_paid(account: Any) -> None:
    model = small()
    plan = plan_of().calibrate(epsilon=1, delta=1e-5)
    with plan.train(model, data(), LOSS, descent(model), account=account) as training:
        with torch.no_grad():
            model[0].weight[0, 0] = float("nan")
        step = training.step()
    assert "not finite" in step.skipped
    assert "no update" in str(step)


def test_an_example_with_a_loss_that_is_no_number_counts_as_nothing(account: Any) -> None:
    inputs, labels = data()
    inputs[::2] = float("nan")
    model, plan = small(), plan_of().calibrate(epsilon=1, delta=1e-5)
    with plan.train(model, (inputs, labels), LOSS, descent(model), account=account) as training:
        assert all(step.skipped is None for step in training)
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x - x.mean(dim=0))


class Counting(nn.Module):
    """Keeps a statistic of what passes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.seen += x.detach().sum()
        return self.layer(x)


class Idle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.idle = nn.Linear(6, 2), nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


BAD_MODELS = {
    "batch norm": (lambda: nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2)), "'1'.*without_batch_norm"),
    "mixed examples": (Mixing, "other examples"),
    "a statistic": (Counting, "'seen'"),
    "an idle layer": (Idle, "'idle.bias'"),
    "nothing to train": (Frozen, "no parameters"),
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_models_that_cannot_be_clipped_are_refused_by_name_and_nothing_is_spent(name: Any, account: Any) -> None:
    make, words = BAD_MODELS[name]
    model = make()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1)), *model.parameters()][1:], lr=1)
    plan = plan_of().calibrate(epsilon=1, delta=1e-5)
    with pytest.raises((InvalidParameter, DataError), match=words):
        plan.train(model, data(), LOSS, optimizer, account=account)
    assert account.spent == 0


def test_bad_arguments_of_a_training_are_refused_and_nothing_is_spent(account: Any) -> None:
    model, plan = small(), plan_of().calibrate(epsilon=1, delta=1e-5)
    good = {"model": model, "dataset": data(), "loss": LOSS, "optimizer": descent(model)}
    bad = [
        {"loss": nn.CrossEntropyLoss()},
        {"loss": lambda out, target: LOSS(out, target).mean()},
        {"loss": "cross entropy"},
        {"dataset": iter([1, 2])},
        {"dataset": (torch.zeros(3, 6), torch.zeros(4))},
        {"optimizer": descent(small())},
        {"optimizer": torch.optim.SGD([model[0].weight], lr=1)},
        {"optimizer": torch.optim.LBFGS(model.parameters())},
        {"optimizer": None},
        {"model": lambda x: x},
        {"owners": [1, 2, 3]},
        {"checkpoint": "model.pt"},
        {"account": None},
    ]
    for wrong in bad:
        with pytest.raises((InvalidParameter, DataError)):
            plan.train(**(good | {"account": account} | wrong))  # type: ignore[operator]
    assert account.spent == 0
    with pytest.raises(Unpriced):
        plan_of().train(**good, account=account)


def test_a_model_that_changes_later_is_refused(account: Any) -> None:
    model, plan = small(), plan_of().calibrate(epsilon=1, delta=1e-5)
    with plan.train(model, data(), LOSS, descent(model), account=account) as training:
        with pytest.raises(InvalidParameter, match="wrapped once"):
            plan.train(model, data(), LOSS, descent(model), account=account)
        next(iter(training))
        model[0].bias.requires_grad_(False)
        with pytest.raises(InvalidParameter, match="changed"):
            training.step()


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"steps": 1.5},
        {"rate": 0},
        {"rate": 1.5},
        {"rate": float("nan")},
        {"clip": 0},
        {"clip": -1},
        {"clip": float("inf")},
        {"clip": 1e300},
        {"noise_multiplier": 0},
        {"noise_multiplier": float("nan")},
        {"batch": 0},
        {"physical": 0},
        {"physical": 10**6},
        {"clipping": "none"},
        {"sampling": "all"},
        {"sampling": "fixed_size"},
        {"population": 10},
        {"unit": mosha.Row()},
        {"unit": mosha.Person("who")},
        {"unit": mosha.Example(neighbors="replace-one")},  # type: ignore[arg-type]
        {"loss_at_most": 0},
        {"delta": 0},
        {"delta": 1},
        {"quantile": 1},
    ],
)
def test_bad_plans_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        plan_of(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": float("nan")}, {"delta": 0}, {"delta": 1}, {"delta": -1}]
)
def test_bad_promises_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        plan_of().calibrate(**({"epsilon": 1, "delta": 1e-5} | wrong))


def test_correlated_noise_refuses_a_unit_that_would_come_back_too_soon() -> None:
    with pytest.raises(InvalidParameter, match="bands"):
        DPFTRL(steps=10, rate=0.5, clip=1.0, bands=3)
    with pytest.raises(InvalidParameter):
        DPFTRL(steps=10, rate=0.1, clip=1.0, bands=0)


def test_brain_floats_are_accepted(account: Any) -> None:
    model, plan = small(), plan_of().calibrate(epsilon=1, delta=1e-5)
    how = {"account": account, "autocast": torch.bfloat16}
    with plan.train(model, data(), LOSS, descent(model), **how) as training:
        assert len(list(training)) == plan.steps
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_an_audit_sees_the_training_before_and_after(account: Any) -> None:
    class Watch:
        seen = ()

        def before(self, training: Any) -> None:
            self.seen += (("before", training.number),)  # type: ignore[assignment]

        def after(self, training: Any) -> None:
            self.seen += (("after", training.number),)  # type: ignore[assignment]

    watch, model, plan = Watch(), small(), plan_of().calibrate(epsilon=1, delta=1e-5)
    with plan.train(model, data(), LOSS, descent(model), account=account, audit=watch) as training:
        list(training)
    assert watch.seen == (("before", 0), ("after", 6))  # type: ignore[comparison-overlap]


def test_a_training_that_is_over_gives_the_model_back_and_says_that_it_is_closed(account: Any) -> None:
    model, plan = small(), plan_of().calibrate(epsilon=0.5, delta=1e-6)
    assert len(list(plan.train(model, data(), LOSS, descent(model), account=account))) == plan.steps
    assert "forward" not in vars(model[0])
    with plan.train(model, data(), LOSS, descent(model), account=account) as training:
        training.step()
    with pytest.raises(RunClosed, match="is closed"):
        training.step()
