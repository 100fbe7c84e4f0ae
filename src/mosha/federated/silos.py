"""What a silo adds to a round of `DistributedExamples`, and silos that are all in one process (torch)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, SourceUnavailable
from mosha.core.measurement import Rng
from mosha.federated.federation import Ask
from mosha.federated.plans.secure_plan import Opened
from mosha.federated.plans.shared_noise_of_examples import DistributedExamples
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.simulation import securely_summed
from mosha.learning.plan import require_torch
from mosha.noise import secure

if TYPE_CHECKING:
    import torch

__all__ = ["ExampleSums", "Silos"]


class ExampleSums:
    """The examples of one silo, and the model that gradients are taken of; runs in the silo.

    Guarantee:
        `encode` gives the exact sum of clipped gradients of the examples that this silo's own coins drew, as a training
        of `plan.terms` makes it (`mosha.learning.Gradients`), with the silo's share of the noise. It is meant for
        secure aggregation alone: by itself it has less noise than the plan promises.

    Args:
        plan: the silo's own copy.
        model, loss, dataset, collate, target, like: as for `DPSGD.train`; before anything is read but shapes, the model
            is tried with made-up rows.

    >>> import torch
    >>> terms = {"rounds": 1, "clients": 3, "survivors": 3, "rate": 0.5, "clip": 1.0, "batch": 30}
    >>> plan = DistributedExamples(**terms, noise_multiplier=1.0)
    >>> data = (torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))
    >>> loss = torch.nn.CrossEntropyLoss(reduction="none")
    >>> ExampleSums(plan, torch.nn.Linear(2, 2), loss, data).encode(np.zeros(6), secure()).shape
    (6,)
    """

    def __init__(
        self,
        plan: DistributedExamples,
        model: torch.nn.Module,
        loss: Any,
        dataset: object,
        *,
        collate: Callable[[list[object]], object] | None = None,
        target: str | int | Sequence[str] | None = None,
        like: object = None,
    ) -> None:
        if not isinstance(plan, DistributedExamples):
            raise InvalidParameter("federated.plan_not_for_silos", parameter="plan", spent="nothing")
        require_torch()
        from mosha.learning.silo_sums import SiloSums  # noqa: PLC0415  (torch)

        self.plan = plan
        self._sums = SiloSums(plan.terms, model, loss, dataset, collate=collate, target=target, like=like)

    @property
    def names(self) -> list[str]:
        """The names of the trained parameters, in the order of their weights."""
        return list(self._sums.shapes)

    @property
    def coordinates(self) -> int:
        """How many weights are trained."""
        return self._sums.coordinates

    def encode(self, weights: NDArray[np.generic], rng: Rng) -> Ring:
        """What this silo adds at these `weights` (flat): noise from `rng` is in it, and masks are to come."""
        if np.shape(weights) != (self.coordinates,):
            raise InvalidParameter("federated.weights_of_other_size", parameter="weights", size=self.coordinates)
        return self.plan.encode(self._sums.add_up(np.asarray(weights, np.float32), rng), rng)

    def close(self) -> None:
        """Give the model its own forward pass back."""
        self._sums.close()


class Silos:
    """A `SecureFederation` of silos inside one process: every message of secure aggregation is made and read.

    Args:
        model, loss: as for `DPSGD.train`; each silo has a copy of the model.
        data: for each silo its data set, as `DPSGD.train` takes it.
        plan: the plan of the rounds.

    >>> import torch
    >>> import mosha
    >>> plan = DistributedExamples(rounds=2, clients=3, survivors=3, rate=0.5, clip=1.0, batch=30)
    >>> plan = plan.calibrate(epsilon=4, delta=1e-5)
    >>> ward = (torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))
    >>> loss = torch.nn.CrossEntropyLoss(reduction="none")
    >>> silos = Silos(torch.nn.Linear(2, 2), loss, {"north": ward, "south": ward, "west": ward}, plan=plan)
    >>> account = mosha.Ledger.memory().account("patients", unit=mosha.Example(), epsilon=4, delta=1e-5)
    >>> [done.number for done in mosha.federated.train(plan, silos, silos.initial(), account=account)]
    [1, 2]
    """

    def __init__(
        self, model: torch.nn.Module, loss: Any, data: Mapping[Hashable, object], *, plan: DistributedExamples
    ) -> None:
        if not isinstance(data, Mapping) or not data:
            raise InvalidParameter("federated.silos_without_data", parameter="data", spent="nothing")
        self.plan, self.model = plan, model
        self._silos = {name: ExampleSums(plan, copy.deepcopy(model), loss, part) for name, part in data.items()}

    @property
    def coordinates(self) -> int:
        """How many weights are trained."""
        return next(iter(self._silos.values())).coordinates

    def initial(self) -> NDArray[np.float64]:
        """The weights of the model as it was given, flat."""
        parts = [weight.detach().reshape(-1).numpy() for weight in self.model.parameters() if weight.requires_grad]
        return np.concatenate(parts).astype(np.float64)

    def load(self, weights: NDArray[np.generic]) -> torch.nn.Module:
        """The model with these `weights`."""
        from mosha.learning.silo_sums import load_weights  # noqa: PLC0415  (torch)

        trained = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        load_weights(trained, np.asarray(weights, np.float32))
        return self.model

    def clients(self) -> Sequence[Hashable]:
        """The names of all silos."""
        return list(self._silos)

    def secure_sum(self, chosen: Sequence[Hashable], ask: Ask) -> Opened:
        """The opened sum of the silos that were `chosen`, at the weights of `ask`."""
        if len(chosen) < max(3, self.plan.survivors):
            raise SourceUnavailable("federated.too_few_connected")
        rng = secure()
        inputs = {i: self._silos[name].encode(ask.weights, rng) for i, name in enumerate(chosen, 1)}
        session = self.plan.session(list(inputs), self.coordinates, rng)
        return Opened(securely_summed(session, inputs, rng), len(inputs), session.label)
