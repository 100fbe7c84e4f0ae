"""What server and nodes agree on; so little noise that one can read who counted how much."""

from typing import Any

from mosha import federated

WIDTH, PUSH, CLIP, PLANNED = 3, 0.5, 1.0, 6
QUESTION = federated.histogram(keys=[1, 2, 3], clients=4, survivors=3, epsilon=4000, delta=1e-5)


def plan_for(what: Any, rounds: Any) -> Any:
    if what == "shares":
        terms: dict[str, Any] = {
            "rounds": rounds,
            "clients": 4,
            "survivors": 3,
            "clip": CLIP,
            "noise_multiplier": 0.002,
        }
        return federated.Distributed(**terms, delta=1e-4)
    terms = {"rounds": rounds, "clients": PLANNED, "clip": CLIP, "noise_multiplier": 0.002, "delta": 1e-4}
    return federated.ServerSide(**terms, **({"period": 2, "bands": 2} if what == "turns" else {}))  # type: ignore[arg-type]
