"""What the server makes of a noisy mean update: post-processing, which costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive, probability

__all__ = ["FedAdam", "FedAvg", "Floats", "OuterOptimizer"]

Floats = NDArray[np.float64]


class OuterOptimizer(Protocol):
    """Turns the mean update of a round into the next weights; a pure function, so that a run can be made again."""

    def begin(self, coordinates: int) -> Any: ...

    def advance(self, weights: Floats, update: Floats, memory: Any) -> tuple[Floats, Any]: ...


@dataclass(frozen=True)
class FedAvg:
    """Weights plus `rate` times the mean update, with heavy-ball `momentum` if wanted (McMahan et al. 2017).

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
class FedAdam:
    """Adam on the server (Reddi et al. 2021), with bias correction.

    `floor` is added to the root of the second moment; with noise, choose it near the noise of one coordinate.
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
