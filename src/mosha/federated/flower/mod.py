"""The client's side on Flower: a modifier that lets nothing leave but what the plan allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, MissingExtra, MoshaError, RunError
from mosha.core.language import phrase
from mosha.federated.layout import Layout
from mosha.federated.plans.client_side import ClientSide
from mosha.federated.plans.shared_noise import Distributed
from mosha.federated.secure.keys import Ring
from mosha.noise import secure

try:
    from flwr.app import ConfigRecord

    from mosha.federated.flower.masking import MaskedSteps, answer
    from mosha.federated.flower.records import ARRAYS, arrays_of
    from mosha.federated.flower.reports import REPORT
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["flower_mod"]

_STATE = "mosha"
Call = Callable[[Any, Any], Any]


def flower_mod(
    plan: ClientSide | Distributed,
    account: Account | Callable[[Any], Account] | None = None,
    *,
    key: str | None = None,
) -> Any:
    """What a ClientApp takes as a modifier: `ClientApp(mods=[flower_mod(plan, account)])`.

    The plan that counts is the one given here, on the client: no message of a server changes clip, noise, the number of
    reports or the least number of survivors.

    Args:
        plan: ClientSide (each report is paid from `account`) or Distributed (each round adds a share of the noise).
        account: the client's own, for ClientSide: an account for the unit Self, or a function that makes it from
            Flower's context.
        key: names the training that a ClientSide client pays for; by default each of Flower's runs is a training of its
            own. With a key, a server that was killed and started again is sent the reports that were made already, and
            the client pays nothing more.

    Guarantee:
        That of the plan: the reply of the wrapped app, its metrics and errors included, stays on the client: an app
        that breaks reports zeros, with the usual noise at the usual price. What leaves is a paid
        report, or a masked sum with noise. A Distributed client takes part in no more rounds than the plan pays for.

    >>> from mosha.federated import Distributed
    >>> plan = Distributed(rounds=2, clients=50, survivors=30, clip=1.0, coordinates=4).calibrate(epsilon=5, delta=1e-5)
    >>> callable(flower_mod(plan))
    True
    """
    if not isinstance(plan, ClientSide | Distributed):
        raise InvalidParameter("federated.plan_not_for_clients", parameter="plan")
    if not (account is None or isinstance(account, Account) or callable(account)):
        raise InvalidParameter("federated.not_a_clients_account", parameter="account")
    if isinstance(account, Account) and not account.unit.covers(plan.unit):
        raise InvalidParameter("federated.account_not_for_own_value", parameter="account", spent="nothing")
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidParameter("federated.empty_key", parameter="key")
    if isinstance(plan, ClientSide) == (account is None):
        raise InvalidParameter("federated.account_and_plan_disagree", parameter="account")
    if isinstance(plan, ClientSide):
        return _Reporting(plan, account, key)
    return _Masking(plan)


def _train_locally(message: Any, context: Any, call: Call) -> NDArray[np.float64]:
    """What local training changed; nothing where it broke, or answered with anything but a model of the same shape."""
    sent = arrays_of(message.content.array_records[ARRAYS])
    layout = Layout.of(sent)
    change = None
    try:
        reply = call(message, context)
        if not reply.has_error():
            for record in reply.content.array_records.values():
                change = layout.change(arrays_of(record), layout.flatten(sent))
                break
    except Exception:  # noqa: BLE001  (what the app says in an error, and that it failed, stays on the client)
        change = None
    return np.zeros(layout.coordinates) if change is None else change


class _Reporting:
    """ClientSide: one paid report for each round."""

    def __init__(self, plan: ClientSide, account: Any, key: str | None) -> None:
        self.plan, self.account, self.key = plan, account, key

    def __call__(self, message: Any, context: Any, call: Call) -> Any:
        update = _train_locally(message, context, call)
        account = self._purse(context)
        state = dict(context.state.config_records.get(_STATE, {}))
        done = int(state.get("reports", 0))
        key = self.key or f"federation {message.metadata.run_id}"
        run = account.open(self.plan.device(update.size), key=key)
        for _ in range(done):  # answers of earlier rounds, read from the client's own ledger
            run.step(None)
        report = run.step(update).value["steps"]
        context.state[_STATE] = ConfigRecord({"reports": done + 1})
        return answer(message, {}, {REPORT: report})

    def _purse(self, context: Any) -> Account:
        try:
            found: Account = self.account(context) if callable(self.account) else self.account
        except MoshaError:
            raise
        except Exception:  # noqa: BLE001  (its text would leave with the reply)
            raise RunError("federated.account_not_opened") from None
        return found


class _Masking:
    """Distributed: the client's steps of secure aggregation; what is masked is its update with a share of the noise."""

    def __init__(self, plan: Distributed) -> None:
        self.plan = plan
        self.steps = MaskedSteps(_STATE, plan.check, plan.sampling.participations(plan.rounds))

    def __call__(self, message: Any, context: Any, call: Call) -> Any:
        def encode(label: bytes) -> Ring:
            return self.plan.encode(_train_locally(message, context, call), label, secure())

        return self.steps(message, context, encode)
