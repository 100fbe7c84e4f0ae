"""Strategies of Flower behind a plan: the models they make are those that they make on Flower itself."""

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp import strategy as strategies

from mosha import errors
from mosha.federated import DistributedExamples, FedAvg, ServerSide, train, wrap_strategy
from tests.federated.parties import Listed, purse

PLAN = ServerSide(rounds=3, clients=4, clip=10.0, noise_multiplier=0.001, delta=1e-5)
MEANS = [np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.0, 3.0]), np.array([-1.0, 1.0, 1.0])]
KINDS = {
    "FedAvg": {},
    "FedAvgM": {"server_learning_rate": 0.5, "server_momentum": 0.9},
    "FedProx": {"proximal_mu": 0.25},
    "FedAdam": {"eta": 0.1},
    "FedYogi": {"eta": 0.1},
    "FedAdagrad": {"eta": 0.1},
}


class Reply:
    """What comes back from one node, as Flower's strategies read it."""

    def __init__(self, weights: Any) -> None:
        arrays = ArrayRecord({"a": Array(weights[:1].reshape(1, 1)), "b": Array(weights[1:])})
        self.content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 10})})

    def has_error(self) -> bool:
        return False


def made_by_flower(strategy: Any) -> Any:
    """Three rounds of the strategy itself, with two nodes whose mean moves by `MEANS`, in arrays of two shapes."""
    weights = np.zeros(3)
    for number, mean in enumerate(MEANS, 1):
        arrays = ArrayRecord({"a": Array(weights[:1].reshape(1, 1)), "b": Array(weights[1:])})
        strategy.configure_train(number, arrays, ConfigRecord(), None)
        found, _ = strategy.aggregate_train(number, [Reply(weights + mean + off) for off in (-0.5, 0.5)])
        weights = np.concatenate([array.numpy().reshape(-1) for array in found.values()])
    return weights


@pytest.mark.parametrize("name", KINDS)
def test_the_model_is_the_one_that_the_strategy_makes_of_the_means(name: Any) -> None:
    strategy = getattr(strategies, name)(fraction_train=0.0, **KINDS[name])
    outer = wrap_strategy(PLAN, strategy).outer
    weights, memory = np.zeros(3), outer.begin(3)
    for mean in MEANS:
        again, _ = outer.advance(weights, mean, memory)
        weights, memory = outer.advance(weights, mean, memory)
        assert (again == weights).all()  # a pure function: a run can be made again
    assert np.allclose(weights, made_by_flower(copy.deepcopy(strategy)), atol=1e-6)
    assert not np.allclose(weights, 0)


def test_fedprox_tells_clients_its_proximal_term_through_the_plan() -> None:
    assert wrap_strategy(PLAN, strategies.FedProx(proximal_mu=0.25)).proximal == 0.25
    assert wrap_strategy(PLAN, strategies.FedAdam()).proximal == 0


def test_a_wrapped_plan_costs_what_the_plan_costs_and_trains() -> None:
    plan = wrap_strategy(PLAN, strategies.FedAvgM(server_learning_rate=1.0, server_momentum=0.5))
    assert plan.epsilon(1e-5) == PLAN.epsilon(1e-5)
    clients = Listed({i: np.array([1.0, 0.0, 0.0]) for i in range(4)})
    done = list(train(plan, clients, np.zeros(3), account=purse(epsilon=1e12)))
    assert np.allclose(done[-1].weights, [1 + 1.5 + 1.75, 0, 0], atol=0.05)


def test_plans_are_told_apart_by_the_settings_of_a_strategy_and_not_by_its_place_in_memory() -> None:
    same = [repr(wrap_strategy(PLAN, strategies.FedAdam(eta=0.1))) for _ in range(2)]
    assert same[0] == same[1] != repr(wrap_strategy(PLAN, strategies.FedAdam(eta=0.2)))


def test_silos_take_a_strategy_too() -> None:
    terms: dict[str, Any] = {"rounds": 2, "clients": 3, "survivors": 3, "rate": 0.5, "clip": 1.0, "batch": 30}
    wrapped = wrap_strategy(DistributedExamples(**terms), strategies.FedAdam(eta=0.1))
    assert not isinstance(wrapped.outer, FedAvg)


@pytest.mark.parametrize("name", ["Krum", "MultiKrum", "Bulyan", "FedMedian", "FedTrimmedAvg"])
def test_strategies_that_look_at_single_updates_are_refused(name: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=name):
        wrap_strategy(PLAN, getattr(strategies, name)())


def test_noise_of_flowers_own_is_refused() -> None:
    inner = strategies.FedAvg()
    own = strategies.DifferentialPrivacyServerSideFixedClipping(inner, 1.0, 1.0, 2)
    for strange in (own, "FedAvg", None):
        with pytest.raises(errors.InvalidParameter):
            wrap_strategy(PLAN, strange)  # type: ignore[arg-type]
