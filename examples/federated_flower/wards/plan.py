"""The plan: server and clients read the same one, each from its own copy of this file."""

from __future__ import annotations

from typing import Any

import mosha


def plan_for(where: str, rounds: int, wards: int) -> Any:
    """Noise at the server (in turns, if you like), on the clients, or in shares under secure aggregation."""
    if where == "client":
        return mosha.federated.ClientSide(rounds=rounds, clients=wards, clip=2.0, noise_multiplier=0.05, delta=1e-4)
    made: Any
    if where == "hospitals":  # every patient is hidden: gradient steps, one noise in shares under secure aggregation
        made = mosha.federated.DistributedExamples(
            rounds=rounds, clients=wards, survivors=max(2, wards - 1), rate=0.5, clip=1.0, batch=200 * wards,
            outer=mosha.federated.FedAvg(rate=5.0),
        )  # fmt: skip
        return made.calibrate(epsilon=4, delta=1e-5)
    if where == "turns":  # wards that cannot be drawn at random take turns; noise is taken back later (DP-FTRL)
        made = mosha.federated.ServerSide(rounds=rounds, clients=wards, clip=2.0, period=2, bands=2)
    elif where == "shares":
        made = mosha.federated.Distributed(rounds=rounds, clients=wards, clip=2.0, survivors=max(2, wards - 1))
    else:
        made = mosha.federated.ServerSide(rounds=rounds, clients=wards, clip=2.0)
    return made.calibrate(epsilon=60, delta=1e-4)  # three wards: a demonstration, not a crowd


def question_for(wards: int) -> Any:
    """Of which kind do most wards see most?"""
    return mosha.federated.histogram(keys=range(4), clients=wards, survivors=max(2, wards - 1), epsilon=40, delta=1e-4)
