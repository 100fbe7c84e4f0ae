"""Roads of `benchmarks/scale.py` that train: a private step by its examples, a simulated round by clients."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["plain_round", "plain_training_step", "simulated_round", "training_step"]

Work = Callable[[], object]


def training_step(examples: int) -> Work:
    """One step of the benchmark's MLP: norms of every example, clipping, exact sum, noise, update; one thread."""
    import torch
    from torch import nn

    from benchmarks._networks import mlp
    from mosha.learning.gradients.engine import Engine
    from mosha.learning.noisy_gradients import Gradients
    from mosha.learning.plan import DPSGD
    from mosha.learning.training import make_losses
    from mosha.learning.updates import Updates
    from mosha.noise import secure

    torch.set_num_threads(1)
    model, _ = mlp()
    inputs, targets = torch.randn(examples, 784), torch.randint(0, 10, (examples,))
    plan = DPSGD(steps=10_000, rate=0.01, clip=1.0, noise_multiplier=1.0, batch=examples, physical=min(examples, 256))
    gradients = Gradients(plan, Engine(model), make_losses(nn.CrossEntropyLoss(reduction="none")))
    gradients.reuse = True
    updates, optimizer = Updates(gradients), torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = _Given(inputs, targets)

    def step() -> None:
        answer, _ = gradients.step(gradients.first(), (batches, batches), None, secure())  # type: ignore[arg-type]
        updates.apply(answer)
        optimizer.step()

    return step


class _Given:
    """The given examples, all of them, in parts of 256: what is measured is the step."""

    def __init__(self, inputs: object, targets: object) -> None:
        self.inputs, self.targets = inputs, targets

    def draw(self, step: object, rng: object) -> object:
        del step, rng
        import numpy as np

        return np.arange(len(self.inputs))  # type: ignore[arg-type]

    def physical(self, units: object) -> object:
        return [units[begin : begin + 256] for begin in range(0, len(units), 256)]  # type: ignore[arg-type, index]

    def positions(self, units: object, rng: object) -> tuple[object, None]:
        del rng
        return units, None

    def batch(self, positions: object) -> tuple[object, object]:
        return self.inputs[positions], self.targets[positions]  # type: ignore[index]


def plain_training_step(examples: int) -> Work:
    """The same step without privacy."""
    import torch
    from torch.nn import functional

    from benchmarks._networks import mlp

    torch.set_num_threads(1)
    model, _ = mlp()
    inputs, targets = torch.randn(examples, 784), torch.randint(0, 10, (examples,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step


def simulated_round(clients: int) -> Work:
    """One round of clients that train five steps each, clipped and with noise."""
    from benchmarks.federated import simulated

    return simulated(clients)[0]


def plain_round(clients: int) -> Work:
    """The same without privacy."""
    from benchmarks.federated import simulated

    return simulated(clients)[1]
