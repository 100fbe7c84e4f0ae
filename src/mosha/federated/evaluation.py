"""How a model does on the clients: a question that the model travels with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import real
from mosha.federated.analytics import Analytics, _ask

__all__ = ["accuracy"]


def accuracy(*, clients: int, survivors: int, epsilon: float, delta: float) -> Analytics:
    """How often a model is right on the clients: the mean over clients of each one's own share of right answers.

    A client's value is its share, from 0 to 1; on Flower the model travels with the question (`flower_ask(...,
    arrays=...)`). The answer is {"accuracy": the mean, "clients": how many had a share}, both noisy, with an error bar.

    Guarantee:
        That of `mean`: a client adds a number from -1 to 1 and a one, of squares at most 2 together.

    Args:
        clients: how many are planned with.
        survivors: the least number of honest ones in a sum.
        epsilon: the price, together with
        delta: the probability that goes with it.

    >>> asked = accuracy(clients=1000, survivors=800, epsilon=1, delta=1e-6)
    >>> round(asked.measurement().error(0.95, {"accuracy": 0.9, "clients": 1000.0}), 3)
    0.009
    """

    def encode(value: object, units: int) -> NDArray[np.int64]:
        share = 2 * min(max(real("value", value), 0.0), 1.0) - 1
        return np.array([math.trunc(share * units), units])

    def decode(total: NDArray[np.float64]) -> dict[str, float]:
        count = float(total[1])
        share = min(max(float(total[0]) / max(count, 1.0), -1.0), 1.0)
        return {"accuracy": (share + 1) / 2, "clients": count}

    terms: dict[str, Any] = {"clients": clients, "survivors": survivors, "epsilon": epsilon, "delta": delta}
    return _ask("accuracy", 2, 2, encode, decode, "accuracy", **terms)
