"""Strategies of Flower behind a plan: they make the next model of the noisy mean, and see nothing else."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.core.language import phrase
from mosha.federated.optimizer import Floats
from mosha.federated.plans.plan import FederatedPlan
from mosha.federated.plans.shared_noise_of_examples import DistributedExamples

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
    from flwr.serverapp import strategy as strategies
    from flwr.serverapp.strategy import FedAvg
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["WrappedStrategy", "wrap_strategy"]

ARRAY = "weights"
LOOKING = ("Krum", "MultiKrum", "Bulyan", "FedMedian", "FedTrimmedAvg", "QFedAvg", "FedXgbBagging", "FedXgbCyclic")
"""Strategies that look at single updates, or at what clients say of themselves."""

Plan = TypeVar("Plan", bound=FederatedPlan)


def wrap_strategy(plan: Plan, strategy: FedAvg) -> Plan:
    """The same plan, in which a strategy of Flower's makes the next model: `wrap_strategy(plan, FedAdam(eta=0.1))`.

    Who is drawn, clipping, noise and price stay the plan's; of the strategy its `aggregate_train` is used, on one reply
    that holds the model plus the noisy mean update, and `proximal_mu` of FedProx, which becomes `proximal` of the plan.

    Args:
        plan: what to run.
        strategy: FedAvg, FedAvgM, FedProx, FedAdam, FedYogi, FedAdagrad, or a class of your own that is made of one of
            them. It gets all weights as one array; its own numbers of clients and fractions are not used.

    Guarantee:
        That of the plan: what a strategy makes of a noisy mean is post-processing. Strategies that look at single
        updates (Krum, medians, trimmed means, QFedAvg) are refused, for nobody may see those; so is Flower's own noise.

    >>> from flwr.serverapp.strategy import FedAdam
    >>> from mosha.federated import ServerSide
    >>> plan = wrap_strategy(ServerSide(rounds=2, clients=50, clip=1.0), FedAdam(eta=0.1))
    >>> plan.outer.advance(np.zeros(2), np.array([1.0, -1.0]), plan.outer.begin(2))[0].round(2)
    array([ 0.07, -0.07])
    """
    if not isinstance(plan, FederatedPlan):
        raise InvalidParameter("federated.not_a_plan", parameter="plan", spent="nothing")
    looking = tuple(found for name in LOOKING if (found := getattr(strategies, name, None)) is not None)
    if not isinstance(strategy, FedAvg) or isinstance(strategy, looking):
        kind = type(strategy).__name__
        raise InvalidParameter("federated.strategy_looks", parameter="strategy", strategy=kind, spent="nothing")
    fields: dict[str, Any] = {"outer": WrappedStrategy(strategy)}
    if not isinstance(plan, DistributedExamples):
        fields["proximal"] = float(getattr(strategy, "proximal_mu", plan.proximal))
    return replace(plan, **fields)  # type: ignore[type-var]


@dataclass(frozen=True, repr=False)
class WrappedStrategy:
    """A strategy of Flower's as an `OuterOptimizer`: a pure function, for it works on a copy every time."""

    strategy: FedAvg

    def __repr__(self) -> str:
        plain = (bool, int, float, str)
        known = {name: value for name, value in vars(self.strategy).items() if isinstance(value, plain)}
        return f"WrappedStrategy({type(self.strategy).__qualname__}, {known})"

    def begin(self, coordinates: int) -> tuple[int, FedAvg]:
        """The strategy before the first round."""
        del coordinates
        fresh = copy.deepcopy(self.strategy)
        fresh.fraction_train = 0.0  # nobody is asked by it
        return 0, fresh

    def advance(self, weights: Floats, update: Floats, memory: tuple[int, FedAvg]) -> tuple[Floats, tuple[int, FedAvg]]:
        """The model that the strategy makes, and the strategy as it is then."""
        number, strategy = memory[0] + 1, copy.deepcopy(memory[1])
        strategy.configure_train(number, _record(weights), ConfigRecord(), _NoGrid())  # type: ignore[arg-type]
        told = MetricRecord({strategy.weighted_by_key: 1.0})
        reply: Any = _Reply(RecordDict({strategy.arrayrecord_key: _record(weights + update), "metrics": told}))
        arrays, _ = strategy.aggregate_train(number, [reply])
        if arrays is None:
            return weights, (number, strategy)
        found: Floats = np.asarray(next(iter(arrays.values())).numpy(), np.float64)
        return found, (number, strategy)


def _record(weights: Floats) -> ArrayRecord:
    return ArrayRecord({ARRAY: Array(np.ascontiguousarray(weights, np.float64))})


class _NoGrid:
    """A network without nodes: a wrapped strategy sends nothing."""

    def get_node_ids(self) -> list[int]:
        return []


@dataclass(frozen=True)
class _Reply:
    """What a strategy reads of a message."""

    content: RecordDict
    error: None = None

    def has_error(self) -> bool:
        return False
