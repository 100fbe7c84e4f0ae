"""What the server makes of a noisy mean update: post-processing, which costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive, probability

__all__ = ["FedAdagrad", "FedAdam", "FedAvg", "FedYogi", "Floats", "OuterOptimizer"]

Floats = NDArray[np.float64]


class OuterOptimizer(Protocol):
    """Turns the mean update of a round into the next weights; a pure function, so that a run can be made again."""

    def begin(self, coordinates: int) -> Any:
        """The memory before the first round."""
        ...

    def advance(self, weights: Floats, update: Floats, memory: Any) -> tuple[Floats, Any]:
        """The next weights, and the next memory."""
        ...


@dataclass(frozen=True)
class FedAvg(OuterOptimizer):
    """Weights plus `rate` times the mean update, with heavy-ball `momentum` if wanted (McMahan et al. 2017).

    Methods take so many `coordinates`, the `weights`, the noisy `update` and the `memory` of earlier ones.

    >>> FedAvg(rate=0.5).advance(np.zeros(2), np.array([1.0, 2.0]), np.zeros(2))[0].tolist()
    [0.5, 1.0]
    """

    rate: float = 1.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        object.__setattr__(self, "momentum", probability("momentum", self.momentum))

    def begin(self, coordinates: int) -> Floats:
        return np.zeros(coordinates)

    def advance(self, weights: Floats, update: Floats, memory: Floats) -> tuple[Floats, Floats]:
        velocity = self.momentum * memory + update
        return weights + self.rate * velocity, velocity


@dataclass(frozen=True)
class FedAdam(OuterOptimizer):
    """Adam on the server (Reddi et al. 2021), with bias correction.

    `floor` is added to the root of the second moment; with noise, choose it near the noise of one coordinate.

    `rate` is the length of a step; `first` and `second` say how much of the last mean and of the last mean of squares
    stays. Methods take so many `coordinates`, the `weights`, the noisy `update` and the `memory` of earlier ones.

    >>> import numpy as np
    >>> optimizer = FedAdam(rate=0.1, first=0.0, second=0.0, floor=1.0)
    >>> optimizer.advance(np.zeros(1), np.ones(1), optimizer.begin(1))[0].round(3)
    array([0.05])
    """

    rate: float = 0.01
    first: float = 0.9
    second: float = 0.99
    floor: float = 1e-3

    def __post_init__(self) -> None:
        for name, check in (("rate", positive), ("first", probability), ("second", probability), ("floor", positive)):
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def begin(self, coordinates: int) -> tuple[int, Floats, Floats]:
        return 0, np.zeros(coordinates), np.zeros(coordinates)

    def advance(
        self, weights: Floats, update: Floats, memory: tuple[int, Floats, Floats]
    ) -> tuple[Floats, tuple[int, Floats, Floats]]:
        count, mean, square = memory
        count += 1
        mean = self.first * mean + (1 - self.first) * update
        square = self.second * square + (1 - self.second) * update * update
        step = mean / (1 - self.first**count) / (np.sqrt(square / (1 - self.second**count)) + self.floor)
        return weights + self.rate * step, (count, mean, square)


@dataclass(frozen=True)
class FedYogi(OuterOptimizer):
    """Yogi on the server (Reddi et al. 2021): the second moment moves by a bounded step, so one loud round does less.

    `rate` is the length of a step; `first` and `second` say how much of the last mean and of the last mean of squares
    stays, `floor` keeps a step from being endless. Methods take so many `coordinates`, the `weights`, the noisy
    `update` and the `memory` of earlier ones.

    >>> FedYogi(rate=0.1, first=0.0, floor=1.0).advance(np.zeros(1), np.ones(1), (np.zeros(1), np.zeros(1)))[0].round(3)
    array([0.091])
    """

    rate: float = 0.01
    first: float = 0.9
    second: float = 0.99
    floor: float = 1e-3

    def __post_init__(self) -> None:
        for name, check in (("rate", positive), ("first", probability), ("second", probability), ("floor", positive)):
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def begin(self, coordinates: int) -> tuple[Floats, Floats]:
        return np.zeros(coordinates), np.zeros(coordinates)

    def advance(
        self, weights: Floats, update: Floats, memory: tuple[Floats, Floats]
    ) -> tuple[Floats, tuple[Floats, Floats]]:
        mean, square = memory
        mean = self.first * mean + (1 - self.first) * update
        fresh = update * update
        square = square - (1 - self.second) * fresh * np.sign(square - fresh)
        return weights + self.rate * mean / (np.sqrt(square) + self.floor), (mean, square)


@dataclass(frozen=True)
class FedAdagrad(OuterOptimizer):
    """Adagrad on the server (Reddi et al. 2021): steps shorten with the squares of all rounds.

    Methods take so many `coordinates`, the `weights`, the noisy `update` and the `memory` of earlier ones.

    Args:
        rate: the length of a step.
        first: how much of the last mean stays.
        second: how much of the last mean of squares stays.
        floor: what is added to the root, so that a step is never endless.

    >>> FedAdagrad(rate=0.1, floor=1.0).advance(np.zeros(1), np.ones(1), np.zeros(1))[0].round(3)
    array([0.05])
    """

    rate: float = 0.1
    floor: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        object.__setattr__(self, "floor", positive("floor", self.floor))

    def begin(self, coordinates: int) -> Floats:
        return np.zeros(coordinates)

    def advance(self, weights: Floats, update: Floats, memory: Floats) -> tuple[Floats, Floats]:
        square = memory + update * update
        return weights + self.rate * update / (np.sqrt(square) + self.floor), square
