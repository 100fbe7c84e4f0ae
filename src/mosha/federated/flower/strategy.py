"""The same rounds on Flower: a strategy that owns sampling, clipping, noise and price, and leaves it the network."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.core.language import phrase
from mosha.core.number import non_negative, positive, positive_integer
from mosha.federated.checkpoint import Checkpoint
from mosha.federated.federation import Ask, Block
from mosha.federated.flower.records import arrays_of, record_of
from mosha.federated.layout import Layout
from mosha.federated.plans.client_side import ClientSide
from mosha.federated.plans.secure_plan import SecurePlan
from mosha.federated.plans.server_side import ServerSide
from mosha.federated.training import History, Round, train

try:
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
    from flwr.serverapp.strategy import Result, Strategy

    from mosha.federated.flower.network import Network
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["FlowerStrategy", "flower"]

_RETRIES = 2  # of a round that too few clients survived, or that the network lost
FederatedPlan = ServerSide | ClientSide | SecurePlan


def flower(
    plan: FederatedPlan,
    account: Account | None = None,
    *,
    key: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    wait_for: int = 1,
    patience: float = 600.0,
    on_round: Callable[[Round], None] | None = None,
    secret: str | os.PathLike[str] | None = None,
    shared: Sequence[str] | None = None,
) -> FlowerStrategy:
    """A strategy for a Flower ServerApp: `strategy.start(grid=grid, initial_arrays=arrays)` pays and runs the plan.

    With ServerSide the ClientApp needs no change. With ClientSide and Distributed it gets one modifier,
    `ClientApp(mods=[mosha.federated.flower_mod(plan, ...)])`, because there the promise is kept on the client; with
    DistributedExamples its train function is `mosha.federated.flower_examples(plan, build)`.

    Args:
        plan: what to run; its noise must have been chosen.
        account: who pays, for all plans but ClientSide. With ClientSide every client pays from an account of its own.
        key: makes the payment idempotent: a server that was killed goes on after its last round and pays nothing more.
        checkpoint: a folder for the initial and the latest model; with a key, what a restarted server begins with.
        wait_for: how many nodes to wait for before the first round. Fewer clients than planned are no error: sums are
            divided by the planned number.
        patience: for how many seconds to wait for them.
        on_round: called after each round, for progress.
        secret: a file for the secret of correlated noise, which a restarted server makes it again from; see `train`.
        shared: names of the arrays that travel and are trained together; the others stay on the clients, each with its
            own (personalization). All of them without it.

    Guarantee:
        That of the plan. Clients' metrics are data of theirs: they are not released, logged or used. Evaluation on
        clients is not run, for the same reason; `evaluate_fn` runs on the server, on public data, and is free.

    >>> import mosha
    >>> from mosha.federated import ServerSide
    >>> plan = ServerSide(rounds=2, clients=50, rate=0.5, clip=1.0).calibrate(epsilon=5, delta=1e-5)
    >>> account = mosha.Ledger.memory().account("phones", unit=mosha.Client(), epsilon=5, delta=1e-5)
    >>> type(flower(plan, account)).__name__
    'FlowerStrategy'
    """
    if not isinstance(plan, FederatedPlan):
        raise InvalidParameter("federated.plan_not_for_flower", parameter="plan", spent="nothing")
    if isinstance(plan, ClientSide) != (account is None) or not isinstance(account, Account | None):
        raise InvalidParameter("federated.who_pays", parameter="account")
    wait_for, patience = positive_integer("wait_for", wait_for), non_negative("patience", patience)
    if on_round is not None and not callable(on_round):
        raise InvalidParameter("federated.on_round_not_a_function", parameter="on_round", spent="nothing")
    if shared is not None and (isinstance(shared, str) or not shared or not all(isinstance(n, str) for n in shared)):
        raise InvalidParameter("federated.shared_not_names", parameter="shared", spent="nothing")
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    names = None if shared is None else tuple(shared)
    return FlowerStrategy(plan, account, key, kept, wait_for, patience, on_round, secret, names)


class FlowerStrategy(Strategy):
    """See `flower`."""

    def __init__(
        self,
        plan: FederatedPlan,
        account: Account | None,
        key: str | None,
        checkpoint: Checkpoint | None,
        wait_for: int,
        patience: float,
        on_round: Callable[[Round], None] | None,
        secret: str | os.PathLike[str] | None,
        shared: tuple[str, ...] | None = None,
    ) -> None:
        self.shared = shared
        self.plan, self.account, self.key, self.checkpoint = plan, account, key, checkpoint
        self.wait_for, self.patience, self.on_round, self.secret = wait_for, patience, on_round, secret
        self.history = History(name=type(plan).__name__)

    def start(
        self,
        grid: Any,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Pay for the plan and run it; the arguments are those of Flower's own strategies."""
        del evaluate_config
        rounds = self.plan.rounds if num_rounds is None else positive_integer("num_rounds", num_rounds)
        if rounds > self.plan.rounds:
            raise InvalidParameter(
                "federated.more_rounds_than_planned", parameter="num_rounds", rounds=self.plan.rounds
            )
        _check(grid, initial_arrays, train_config, evaluate_fn)
        timeout = positive("timeout", timeout)
        initial = self._take_shared(arrays_of(initial_arrays))
        if self.checkpoint is not None:
            initial = self.checkpoint.initial(initial)
        layout = Layout.of(initial)
        config = {**dict(train_config or {}), **({"proximal-mu": self.plan.proximal} if self.plan.proximal else {})}
        nodes = _Nodes(grid, layout, initial, timeout, config)
        result = Result()
        if evaluate_fn is not None and (found := evaluate_fn(0, record_of(initial))) is not None:
            result.evaluate_metrics_serverapp[0] = found
        nodes.wait(self.wait_for, self.patience)
        for done in self._rounds(nodes, layout.flatten(initial)):
            arrays = layout.arrays(done.weights, initial)
            self._note(done, arrays, result, evaluate_fn)
            if done.number == rounds:
                break
        return result

    def _take_shared(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The arrays that travel."""
        if self.shared is None:
            return arrays
        if not set(self.shared) <= set(arrays):
            raise InvalidParameter("federated.shared_not_names", parameter="shared", spent="nothing")
        return {name: array for name, array in arrays.items() if name in self.shared}

    def _note(self, done: Round, arrays: dict[str, NDArray[Any]], result: Result, evaluate_fn: Any) -> None:
        result.arrays = record_of(arrays)
        told: dict[str, Any] = {"clip": done.clip} | ({} if done.epsilon is None else {"epsilon": done.epsilon})
        result.train_metrics_clientapp[done.number] = MetricRecord(told)
        if self.checkpoint is not None:
            self.checkpoint.keep(arrays)
        found = None if evaluate_fn is None else evaluate_fn(done.number, result.arrays)
        if found is not None:
            result.evaluate_metrics_serverapp[done.number] = found
        done = replace(done, metrics=None if found is None else dict(found))
        self.history.rounds.append(done)
        if self.on_round is not None:
            self.on_round(done)

    def _rounds(self, nodes: _Nodes, weights: NDArray[np.float64]) -> Iterator[Round]:
        if isinstance(self.plan, ClientSide):
            from mosha.federated.flower.reports import collect_reports  # noqa: PLC0415  (the other half of this module)

            return collect_reports(self.plan, nodes, weights)
        federation: Any = nodes
        if isinstance(self.plan, SecurePlan):
            from mosha.federated.flower.secure import SecureNodes  # noqa: PLC0415  (the other half of this module)

            federation = SecureNodes(self.plan, nodes)
        assert self.account is not None
        how: dict[str, Any] = {"key": self.key, "secret": self.secret, "retries": _RETRIES}
        return train(self.plan, federation, weights, account=self.account, **how)

    def summary(self) -> None:
        """Nothing to say that is not in the plan."""

    def configure_train(self, server_round: int, arrays: object, config: object, grid: object) -> Any:
        del server_round, arrays, config, grid
        raise InvalidParameter("federated.call_start")

    def aggregate_train(self, server_round: int, replies: object) -> Any:
        del server_round, replies
        raise InvalidParameter("federated.call_start")

    def configure_evaluate(self, server_round: int, arrays: object, config: object, grid: object) -> Any:
        del server_round, arrays, config, grid
        return []

    def aggregate_evaluate(self, server_round: int, replies: object) -> Any:
        del server_round, replies


def _check(grid: object, initial: object, config: object, evaluate: object) -> None:
    """Refuse what could not be run, before anything is paid."""
    if not callable(getattr(grid, "send_and_receive", None)):
        raise InvalidParameter("federated.not_a_grid", parameter="grid", spent="nothing")
    if not isinstance(initial, ArrayRecord):
        raise InvalidParameter("federated.not_an_array_record", parameter="initial_arrays", spent="nothing")
    if not isinstance(config, Mapping | None):
        raise InvalidParameter("federated.not_a_config_record", parameter="train_config", spent="nothing")
    if evaluate is not None and not callable(evaluate):
        raise InvalidParameter("federated.evaluate_fn_not_a_function", parameter="evaluate_fn", spent="nothing")


class _Nodes(Network):
    """The connected nodes as a federation: sends the model, receives models, forms differences."""

    def __init__(
        self,
        grid: object,
        layout: Layout,
        initial: dict[str, NDArray[np.generic]],
        timeout: float,
        config: dict[str, Any],
    ) -> None:
        super().__init__(grid, timeout)
        self.layout, self.initial, self.config = layout, initial, config

    def asking(self, ask: Ask, **more: object) -> Any:
        """The records that a round sends: the model and the configuration."""
        arrays = self.layout.arrays(np.asarray(ask.weights, np.float64), self.initial)
        return record_of(arrays, {**self.config, "server-round": ask.number, **more})

    def round_weights(self, ask: Ask) -> NDArray[np.float64]:
        """The weights as clients get them, after rounding to the model's types."""
        return self.layout.flatten(self.layout.arrays(np.asarray(ask.weights, np.float64), self.initial))

    def updates(self, chosen: Sequence[Hashable], ask: Ask) -> Iterable[Block]:
        content = self.asking(ask)
        sent = self.round_weights(ask)
        for node, records in self.exchange(dict.fromkeys(chosen, content)).items():
            change = self.layout.change(records.arrays, sent)
            if change is not None:
                yield Block([node], change[None], [records.weight])
