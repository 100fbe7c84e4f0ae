"""What a model does on its clients, asked privately; arrays that stay on the clients; Laplace noise at the server."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")
from flwr.clientapp import ClientApp

import mosha
from mosha import accounting, errors
from mosha.federated import (
    AdaptiveClip,
    Ask,
    FedAdagrad,
    FedYogi,
    ServerSide,
    Weights,
    accuracy,
    flower,
    flower_answer,
    flower_ask,
    train,
)
from mosha.federated.clipping import STEPS
from mosha.federated.plans.secure_plan import Opened
from mosha.federated.share_error import ShareError
from mosha.noise import SeededRandom, secure
from tests.federated.flower_grid import Nodes, app, model, towards
from tests.federated.parties import Listed, purse

TERMS: dict[str, Any] = {
    "clients": 8,
    "survivors": 6,
    "epsilon": 2000.0,
    "delta": 1e-5,
}  # so little noise that answers can be read
LAPLACE: dict[str, Any] = {"rounds": 5, "clients": 10, "clip": 1.0, "noise": "laplace", "noise_multiplier": 2.0}


def evaluating(question: Any, right: Any, **how: Any) -> Any:
    made = ClientApp()
    made.query()(flower_answer(question, right, takes_model=True, **how))
    return made


def test_clients_tell_how_the_model_that_travels_does_on_their_data() -> None:
    asked = accuracy(**TERMS)
    right = lambda context, arrays: float(arrays["w"][0]) * (context.node_id - 100) / 7
    nodes = Nodes({100 + i: evaluating(asked, right) for i in range(8)})
    release = flower_ask(asked, purse(epsilon=1e6), nodes, arrays=model(w=[1.0]))
    assert release.value["accuracy"] == pytest.approx(0.5, abs=0.1)
    assert release.value["clients"] == pytest.approx(8, abs=1)
    assert 0 < release.error(0.95) < 0.2
    stages = [config["mosha-stage"] for _, config in nodes.sent]
    assert stages.count("masked") == 8


def test_a_client_that_cannot_evaluate_counts_nowhere_and_nobody_is_told() -> None:
    asked = accuracy(**TERMS)
    broken = lambda context, arrays: 1 / 0 if context.node_id == 100 else 1.0
    nodes = Nodes({100 + i: evaluating(asked, broken) for i in range(8)})
    found = flower_ask(asked, purse(epsilon=1e6), nodes, arrays=model(w=[1.0])).value
    assert found["clients"] == pytest.approx(7, abs=1)
    assert found["accuracy"] == pytest.approx(1.0, abs=0.1)


def test_a_model_that_is_no_record_is_refused_before_anything_is_spent() -> None:
    asked, account = accuracy(**TERMS), purse(epsilon=1e6)
    with pytest.raises(errors.InvalidParameter):
        flower_ask(asked, account, Nodes({1: ClientApp()}), arrays={"w": np.zeros(1)}, wait_for=1)
    assert account.spent == 0


class Opening:
    """Clients whose noisy values are summed without masks: what secure aggregation opens."""

    def __init__(self, question: Any, values: Any) -> None:
        self.question, self.values = question, values

    def clients(self) -> list[Any]:
        return list(range(len(self.values)))

    def secure_sum(self, chosen: Any, ask: Any) -> Any:
        parts = [self.question.encode(self.values[client], secure()) for client in chosen]
        return Opened(np.sum(parts, axis=0, dtype=np.uint32), len(parts), b"")


def test_the_error_bar_of_an_accuracy_holds() -> None:
    """Of 300 answers at most 22 miss a 99% bar: p < 1e-9 at a rate of 0.01, and a bar of 0.3 the width misses more."""
    question = accuracy(clients=20, survivors=20, epsilon=6.0, delta=1e-5)
    asked, clients = question.measurement(), Opening(question, [(i % 4) / 3 for i in range(20)])
    wrong = {1.0: 0, 0.3: 0}
    for _ in range(300):
        answer, _ = asked.step(None, clients, None, secure())
        for part in wrong:
            wrong[part] += abs(answer["accuracy"] - 0.5) > part * asked.error(0.99, answer)
    assert wrong[1.0] <= 22
    assert wrong[0.3] > 30
    assert ShareError(1.0)(0.95, {"accuracy": 0.5, "clients": -3.0}) == 1.0


def test_arrays_that_are_not_shared_never_travel() -> None:
    seen = []

    def local(arrays: Any) -> Any:
        seen.append(set(arrays))
        return towards([1.0])(arrays) | {"head": np.ones(2)}

    plan = ServerSide(rounds=2, clients=3, clip=1.0, noise_multiplier=0.01, delta=1e-5)
    nodes = Nodes({i: app(local) for i in range(3)})
    strategy = flower(plan, purse(epsilon=1e9, unit=plan.unit), shared=["w"])
    result = strategy.start(grid=nodes, initial_arrays=model(w=np.zeros(1), head=np.zeros(2)))
    assert set(map(frozenset, seen)) == {frozenset({"w"})}
    assert set(result.arrays) == {"w"}
    assert result.arrays["w"].numpy()[0] == pytest.approx(2, abs=0.1)
    for wrong in (["other"], [], "w", [3]):
        with pytest.raises(errors.InvalidParameter):
            flower(plan, purse(unit=plan.unit), shared=wrong).start(grid=nodes, initial_arrays=model(w=np.zeros(1)))  # type: ignore[arg-type]


def one_round(plan: Any, federation: Any) -> Any:
    return plan.measurement(3).step(plan.measurement(3).init(), federation, Ask(1, np.zeros(3)), SeededRandom(7))[0]


@pytest.mark.parametrize("weights", [None, Weights(at_most=4.0, typical=2.0)], ids=["alike", "weighted"])
def test_one_client_moves_a_laplace_sum_by_at_most_the_clip_in_absolute_values(weights: Any) -> None:
    plan = ServerSide(**LAPLACE, weights=weights)
    base = {"a": [0.2, 0.2, 0.0], "b": [0.0, 0.0, -1.0]}
    without, furthest = one_round(plan, Listed(base))["steps"], 0
    for new in ([5.0, 5.0, 5.0], [1e30, -1e30, 0], [math.nan, 1, 1], [math.inf, 0, 0], [0.1, 0.2, 0.3], [0, 1, 0]):
        moved = one_round(plan, Listed(base | {"new": new}))["steps"] - without
        furthest = max(furthest, sum(abs(int(step)) for step in moved))
    assert furthest <= STEPS
    assert weights is not None or furthest > 0.99 * STEPS


def test_laplace_rounds_have_a_pure_price() -> None:
    plan = ServerSide(**LAPLACE)
    assert plan.epsilon(0.0) == pytest.approx(2.5)
    sampled = ServerSide(**LAPLACE, rate=0.1)
    once = math.log1p(0.1 * math.expm1(0.5))
    assert once * 5 * 0.999 <= accounting.epsilon(sampled.event_after(5), 0.0) <= once * 5 * 1.001
    planned = ServerSide(**LAPLACE | {"noise_multiplier": None}).calibrate(epsilon=1, delta=0)
    assert planned.noise_multiplier == pytest.approx(5, rel=1e-3)


def test_laplace_noise_is_as_wide_as_it_is_priced() -> None:
    """The mean size of 6,000 noises is the scale, to 1 part in 8: false alarm below 1e-9; half and double are found."""
    plan = ServerSide(**LAPLACE)
    answers = [one_round_secure(plan) for _ in range(2000)]
    scale = np.abs(answers).mean() / (2.0 * STEPS)
    assert 7 / 8 < scale < 9 / 8


def one_round_secure(plan: Any) -> Any:
    asked = plan.measurement(3)
    return asked.step(asked.init(), Listed({}), Ask(1, np.zeros(3)), secure())[0]["steps"]


def test_laplace_refuses_what_it_has_no_proof_for() -> None:
    for changes in ({"clip": AdaptiveClip(start=1.0)}, {"period": 4, "bands": 2}, {"noise": "cauchy"}):
        with pytest.raises(errors.InvalidParameter):
            ServerSide(**LAPLACE | changes)


@pytest.mark.parametrize("kind", [FedYogi, FedAdagrad], ids=lambda kind: kind.__name__)
def test_other_server_optimizers_walk_towards_the_updates(kind: Any) -> None:
    outer = kind(rate=0.5, floor=0.1)
    plan = ServerSide(rounds=6, clients=2, clip=1.0, noise_multiplier=0.01, delta=1e-5, outer=outer)
    sent = Listed({"a": [0.5, 0.0], "b": [0.5, 0.0]})
    account = purse(epsilon=1e9, unit=mosha.Client())
    rounds = list(train(plan, sent, np.zeros(2), account=account))
    assert rounds[-1].weights[0] > 0.5
    assert abs(rounds[-1].weights[1]) < 0.2
