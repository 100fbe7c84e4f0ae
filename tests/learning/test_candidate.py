"""Networks as candidates of a search: trained from the first step to the last, and priced as one."""

from typing import Any

import pytest
import torch
from torch import nn

import mosha
from mosha import accounting
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import Selected
from mosha.learning import DPFTRL, DPSGD, best_of_random_runs, search
from mosha.noise import secure

torch.set_num_threads(1)
LOSS = nn.CrossEntropyLoss(reduction="none")
LIKE = (torch.zeros(1, 4), torch.zeros(1, dtype=torch.long))
PLAN = DPSGD(steps=30, rate=0.2, clip=1.0, batch=200).calibrate(epsilon=1, delta=1e-6)


def data(rows: int = 1000) -> tuple[Any, ...]:
    inputs = torch.randn(rows, 4)
    return inputs, (inputs[:, 0] > 0).long()


def building(rate: Any) -> Any:
    def build() -> tuple[Any, ...]:
        model = nn.Linear(4, 2)
        return model, torch.optim.SGD(model.parameters(), lr=rate)

    return build


def accuracy(weights: Any, examples: Any) -> Any:
    model = nn.Linear(4, 2)
    model.load_state_dict(weights)
    with torch.no_grad():
        return float((model(examples[0]).argmax(dim=1) == examples[1]).float().mean())


def test_the_best_of_some_networks_is_found_and_the_whole_search_is_paid() -> None:
    torch.manual_seed(0)
    public, rates = data(), {"slower": 2.0, "faster": 4.0}
    candidates = {name: PLAN.candidate(building(rate), LOSS, like=LIKE) for name, rate in rates.items()}
    tuned = best_of_random_runs(candidates, score=lambda _, weights: accuracy(weights, public), mean=12, delta=1e-6)
    account = mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=4, delta=1e-5, rule="pure")
    price = accounting.epsilon(Selected(PLAN.event_after(PLAN.steps), mean=12), 1e-6)
    found = search(tuned, data(), account=account)
    assert found.private
    assert found.name in rates
    assert found.score == accuracy(found.answer, public) > 0.8  # chance is 0.5; a run alone reaches 0.96
    assert float(account.spent) == pytest.approx(price, rel=1e-6)
    assert price > PLAN.epsilon(delta=1e-6)


@pytest.mark.parametrize("plan", [PLAN, DPFTRL(steps=30, rate=0.2, clip=1.0, batch=200, bands=3)])
def test_all_steps_are_taken_on_a_new_model_each_time(plan: Any) -> None:
    plan = plan.calibrate(epsilon=1, delta=1e-6)
    taken, built = [], []

    class Counted(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            taken.append(all(p.grad is not None for group in self.param_groups for p in group["params"]))
            return super().step(closure)

    def build() -> tuple[Any, ...]:
        model = nn.Linear(4, 2)
        built.append(model)
        return model, Counted(model.parameters(), lr=0.5)

    candidate = plan.candidate(build, LOSS, like=LIKE)
    assert candidate.event == plan.event_after(plan.steps)
    assert candidate.horizon == 1
    assert taken == []
    first, second = (candidate.step(candidate.init(), data(), None, secure())[0] for _ in range(2))
    assert taken == [True] * 60
    assert len({id(model) for model in built}) == 3
    assert not torch.equal(first["weight"], second["weight"])
    assert all("forward" not in vars(model) for model in built)


def test_a_trained_candidate_carries_the_noise_that_its_event_prices() -> None:
    """Without a gradient one step of size one moves 2050 weights by noise alone: within 8%, five deviations of their
    own deviation (a false alarm in a million runs). Noise of half the deviation, or twice, would be seen."""
    plan = DPSGD(steps=1, rate=0.2, clip=1.0, batch=200, noise_multiplier=40.0, delta=1e-6)
    begin = nn.Linear(40, 50)

    def build() -> tuple[Any, ...]:
        model = nn.Linear(40, 50)
        model.load_state_dict(begin.state_dict())
        return model, torch.optim.SGD(model.parameters(), lr=1.0)

    def nothing(outputs: Any, _: Any) -> Any:
        return 0 * outputs.sum(dim=1)

    candidate = plan.candidate(build, nothing, like=(torch.zeros(1, 40), LIKE[1]))
    examples = (torch.randn(500, 40), torch.zeros(500, dtype=torch.long))
    found = candidate.step(candidate.init(), examples, None, secure())[0]
    moved = torch.cat([(found[name] - values).flatten() for name, values in begin.state_dict().items()])
    assert float(moved.std()) == pytest.approx(plan.noise_deviation, rel=0.08)


def test_one_example_moves_a_candidate_by_its_clip_and_no_further() -> None:
    """Almost without noise, and with everybody in the batch: the example counts, however large it is, for one clip."""
    plan = DPSGD(steps=1, rate=1.0, clip=1.0, batch=20, noise_multiplier=0.002, delta=1e-6)
    begin = nn.Linear(4, 2)

    def build() -> tuple[Any, ...]:
        model = nn.Linear(4, 2)
        model.load_state_dict(begin.state_dict())
        return model, torch.optim.SGD(model.parameters(), lr=1.0)

    candidate = plan.candidate(build, LOSS, like=LIKE)
    inputs, targets = data(20)
    inputs[-1] *= 1000
    targets[-1] = 1 - int(begin(inputs[-1:]).argmax())  # wrong, and sure of it
    with_it, without = (
        torch.cat([v.flatten() for v in candidate.step(candidate.init(), rows, None, secure())[0].values()])
        for rows in ((inputs, targets), (inputs[:-1], targets[:-1]))
    )
    assert 0.95 <= float((with_it - without).norm()) * plan.divisor <= 1.05


def test_persons_bring_their_owners() -> None:
    person = mosha.Person("name", at_most=2)
    plan = DPSGD(steps=5, rate=0.2, clip=1.0, batch=20, unit=person).calibrate(epsilon=1, delta=1e-6)
    candidate = plan.candidate(building(0.5), LOSS, like=LIKE)
    examples, owners = data(60), [row // 3 for row in range(60)]
    assert set(candidate.step(candidate.init(), (examples, owners), None, secure())[0]) == {"weight", "bias"}
    with pytest.raises(DataError, match="owners"):
        candidate.step(candidate.init(), [1, 2, 3], None, secure())


def test_what_is_wrong_is_said_before_anything_is_paid() -> None:
    def mixing() -> tuple[Any, ...]:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
        return model, torch.optim.SGD(model.parameters(), lr=1)

    def foreign() -> tuple[Any, ...]:
        return nn.Linear(4, 2), torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=1)

    wrong = [
        (mixing, LOSS, LIKE),
        (foreign, LOSS, LIKE),
        (building(1), nn.CrossEntropyLoss(), LIKE),
        (building(1), LOSS, torch.zeros(1, 4)),
        (building(1), LOSS, (torch.zeros(1, 5), LIKE[1])),
    ]
    for build, loss, like in wrong:
        with pytest.raises((InvalidParameter, DataError)):
            PLAN.candidate(build, loss, like=like)  # type: ignore[arg-type]
