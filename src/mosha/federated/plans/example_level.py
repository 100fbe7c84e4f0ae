"""Example-level privacy inside each client: local training is DP-SGD, paid from the client's own account."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import BudgetExceeded, InvalidParameter
from mosha.core.names.calls import renamed_argument
from mosha.federated.federation import Ask, Block
from mosha.federated.optimizer import FedAvg, Floats, OuterOptimizer
from mosha.federated.plans.plan import check_count, first_weights
from mosha.learning import DPSGD

if TYPE_CHECKING:
    import torch

__all__ = ["ExampleLevel", "average_rounds"]


@renamed_argument(optimiser="optimizer")
class ExampleLevel:
    """A federation whose clients train with DP-SGD: each example of a client is hidden from everybody but the client.

    Guarantee:
        To each client's examples, that of `plan`, for every round the client takes part in, charged to its own account
        before the round. What the server does with the updates is post-processing. A client whose account cannot pay
        sends nothing. There is no promise for the client as a whole: for both at once, hand this federation to `train`
        with a ServerSide plan.

    Args:
        model: an ordinary torch module.
        loss: as for `DPSGD.train`.
        data: for each client its dataset, as `DPSGD.train` takes it.
        plan: the local training of one round.
        accounts: for each client its account, with the unit of the plan.
        optimizer: makes the local optimizer from the model's parameters.

    >>> import torch
    >>> import mosha
    >>> plan = mosha.learning.DPSGD(steps=1, rate=0.5, clip=1.0, batch=10).calibrate(epsilon=1, delta=1e-5)
    >>> account = mosha.Ledger.memory().account("hospital", unit=mosha.Example(), epsilon=5, delta=1e-5)
    >>> hospitals = ExampleLevel(
    ...     torch.nn.Linear(2, 2), torch.nn.CrossEntropyLoss(reduction="none"),
    ...     {"north": (torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))}, plan=plan, accounts={"north": account},
    ...     optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    ... )  # fmt: skip
    >>> [weights.size for weights in average_rounds(hospitals, hospitals.initial(), rounds=2)]
    [6, 6]
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss: object,
        data: Mapping[Hashable, object],
        *,
        plan: DPSGD,
        accounts: Mapping[Hashable, Account],
        optimizer: Callable[[object], object],
    ) -> None:
        if not (isinstance(data, Mapping) and isinstance(accounts, Mapping) and set(data) == set(accounts) and data):
            raise InvalidParameter("federated.client_without_account", parameter="accounts", spent="nothing")
        if not all(isinstance(account, Account) for account in accounts.values()):
            raise InvalidParameter("federated.not_accounts", parameter="accounts", spent="nothing")
        if not isinstance(plan, DPSGD):
            raise InvalidParameter("federated.plan_not_for_examples", parameter="plan")
        if plan.noise_multiplier is None:
            raise InvalidParameter("federated.plan_without_noise", parameter="plan", spent="nothing")
        if not callable(getattr(model, "parameters", None)) or not callable(loss) or not callable(optimizer):
            raise InvalidParameter("federated.client_without_model")
        self.model, self.loss, self.data, self.plan = model, loss, dict(data), plan
        self.accounts, self.optimizer = dict(accounts), optimizer

    def initial(self) -> NDArray[np.float64]:
        """The weights of the model as it was given, flat."""
        return _flatten(self.model)

    @property
    def coordinates(self) -> int:
        """How many weights are trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def clients(self) -> Sequence[Hashable]:
        """Everybody who has data."""
        return list(self.data)

    def updates(self, chosen: Sequence[Hashable], ask: Ask) -> Iterator[Block]:
        """What each of the `chosen` clients learns from the weights of `ask`; who cannot pay any more is left out."""
        for client in chosen:
            local = load(copy.deepcopy(self.model), ask.weights)
            sent = _flatten(local)
            try:
                training = self.plan.train(
                    local,
                    self.data[client],
                    self.loss,
                    self.optimizer(local.parameters()),
                    account=self.accounts[client],
                )
            except BudgetExceeded:
                continue
            with training:
                for _ in training:
                    pass
            yield Block([client], (_flatten(local) - sent)[None])


def average_rounds(
    federation: ExampleLevel, initial: NDArray[Any], *, rounds: int, outer: OuterOptimizer | None = None
) -> Iterator[Floats]:
    """The weights after each round of plain averaging: the updates are private already, so nothing is paid here.

    `federation` trains from the `initial` weights for so many `rounds`; `outer` makes the next weights of each mean
    update (`FedAvg()` where it is left out). `ExampleLevel` shows both together.

    >>> average_rounds("nobody", np.zeros(2), rounds=1)
    Traceback (most recent call last):
    mosha.core.errors.InvalidParameter: ...
    """
    chosen = FedAvg() if outer is None else outer
    if not isinstance(federation, ExampleLevel) or not callable(getattr(chosen, "advance", None)):
        raise InvalidParameter("federated.averaged_wrongly")
    weights, rounds = first_weights(initial), check_count("rounds", rounds)
    if weights.size != federation.coordinates:
        raise InvalidParameter("federated.initial_of_other_size", parameter="initial", spent="nothing")
    return _run_rounds(federation, weights, rounds, chosen)


def _run_rounds(federation: ExampleLevel, weights: Floats, rounds: int, chosen: OuterOptimizer) -> Iterator[Floats]:
    memory = chosen.begin(weights.size)
    for number in range(1, rounds + 1):
        sent = [block.updates[0] for block in federation.updates(federation.clients(), Ask(number, weights))]
        update = np.mean(sent, axis=0) if sent else np.zeros(weights.size)
        weights, memory = chosen.advance(weights, update, memory)
        yield weights


def load(model: torch.nn.Module, weights: NDArray[np.generic]) -> torch.nn.Module:
    """The model with these weights."""
    import torch  # noqa: PLC0415  (loaded with the model)

    start = 0
    with torch.no_grad():
        for parameter in model.parameters():
            part = np.asarray(weights[start : start + parameter.numel()], np.float32).reshape(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(part.copy()))
            start += parameter.numel()
    return model


def _flatten(model: torch.nn.Module) -> NDArray[np.float64]:
    parts = [parameter.detach().reshape(-1).numpy().astype(np.float64) for parameter in model.parameters()]
    return np.concatenate(parts)
