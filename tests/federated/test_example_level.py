"""Clients that hide each of their examples: paid by themselves, post-processed by the server."""

from typing import Any

import numpy as np
import pytest

import mosha
from mosha import errors
from mosha.federated import ExampleLevel, ServerSide, average_rounds, train
from mosha.learning import DPSGD
from tests.federated.parties import purse

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
PLAN = DPSGD(steps=4, rate=0.5, clip=1.0, batch=30).calibrate(epsilon=4, delta=1e-4)


def wallet(epsilon: float = 20.0) -> Any:
    return mosha.Ledger.memory().account("me", unit=mosha.Example(), epsilon=epsilon, delta=1e-2, rule="pure")


def federation(accounts: Any = None) -> Any:
    generator = torch.Generator().manual_seed(2)
    data = {}
    for client in "abc":
        targets = torch.randint(0, 2, (60,), generator=generator)
        inputs = torch.randn(60, 3, generator=generator) + 3.0 * (targets[:, None] - 0.5)
        data[client] = torch.utils.data.TensorDataset(inputs, targets)
    torch.manual_seed(1)
    return ExampleLevel(
        torch.nn.Linear(3, 2),
        torch.nn.CrossEntropyLoss(reduction="none"),
        data,  # type: ignore[arg-type]
        plan=PLAN,
        accounts=accounts or {client: wallet() for client in "abc"},
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.5),
    )


def test_each_client_pays_for_each_round_from_its_own_account() -> None:
    clients = federation()
    weights = list(average_rounds(clients, clients.initial(), rounds=2))
    assert len(weights) == 2
    assert not np.allclose(weights[0], clients.initial())
    for account in clients.accounts.values():
        assert account.spent == pytest.approx(2 * PLAN.epsilon(delta=1e-4), rel=1e-6)


def test_a_client_that_cannot_pay_sends_nothing() -> None:
    accounts = {"a": wallet(1.0), "b": wallet(), "c": wallet()}
    clients = federation(accounts)
    blocks = list(clients.updates(list("abc"), mosha.federated.Ask(1, clients.initial())))
    assert [block.clients for block in blocks] == [["b"], ["c"]]
    assert accounts["a"].spent == 0


def test_both_promises_at_once() -> None:
    clients = federation()
    plan = ServerSide(rounds=1, clients=3, clip=1.0, noise_multiplier=1.0, delta=1e-4)
    account = purse()
    rounds = list(train(plan, clients, clients.initial(), account=account))
    assert len(rounds) == 1
    assert account.spent > 0
    assert all(own.spent > 0 for own in clients.accounts.values())


def test_clients_without_an_account_are_refused() -> None:
    with pytest.raises(errors.InvalidParameter):
        federation({"a": wallet()})
