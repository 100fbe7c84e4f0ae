"""The plan: server and clients read the same one, each from its own copy of this file."""

from __future__ import annotations

from typing import Any

import mosha


def plan_for(where: str, rounds: int, wards: int) -> Any:
    """Noise at the server, on the clients, or in shares under secure aggregation."""
    if where == "client":
        return mosha.federated.ClientSide(rounds=rounds, clients=wards, clip=2.0, noise_multiplier=0.05, delta=1e-4)
    if where == "shares":
        made = mosha.federated.Distributed(rounds=rounds, clients=wards, clip=2.0, survivors=max(2, wards - 1))
    else:
        made = mosha.federated.ServerSide(rounds=rounds, clients=wards, clip=2.0)
    return made.calibrate(epsilon=60, delta=1e-4)  # three wards: a demonstration, not a crowd
