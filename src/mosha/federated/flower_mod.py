"""The client's side on Flower: a modifier that lets nothing leave but what the plan allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, MissingExtra, MoshaError, RunError
from mosha.federated.client_side import ClientSide
from mosha.federated.distributed import Distributed
from mosha.federated.layout import Layout
from mosha.federated.secure_client import SecureClient
from mosha.federated.session import Session
from mosha.noise import secure

try:
    from flwr.app import ConfigRecord, Message, RecordDict
except ImportError:
    raise MissingExtra("federated", needed_for="mosha.federated.flower_mod") from None

from mosha.federated.flower_records import ARRAYS, CONFIG, STAGE, arrays_of, record_of
from mosha.federated.flower_reports import REPORT
from mosha.federated.flower_secure import MASKED, _listed, _numbered
from mosha.federated.keys import PublicKeys

__all__ = ["flower_mod"]

_STATE, _CLIENT = "mosha", "mosha-secure-client"
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
    """
    if isinstance(plan, ClientSide) == (account is None):
        raise InvalidParameter("a ClientSide plan is paid from account=...; a Distributed one takes none here.")
    if isinstance(plan, ClientSide):
        return _Reporting(plan, account, key)
    return _Masking(plan)


def _answer(message: Any, config: dict[str, Any] | None = None, arrays: dict[str, Any] | None = None) -> Any:
    if arrays is None:
        return Message(RecordDict({CONFIG: ConfigRecord(config or {})}), reply_to=message)
    return Message(record_of(arrays, config or {}), reply_to=message)


def _trained(message: Any, context: Any, call: Call) -> NDArray[np.float64]:
    """What local training changed; nothing where it broke, or answered with anything but a model of the same shape."""
    sent = arrays_of(message.content.array_records[ARRAYS])
    layout = Layout.of(sent)
    change = None
    try:
        reply = call(message, context)
        if not reply.has_error():
            for record in reply.content.array_records.values():
                change = layout.change(arrays_of(record), layout.flat(sent))
                break
    except Exception:  # noqa: BLE001  (what the app says in an error, and that it failed, stays on the client)
        change = None
    return np.zeros(layout.coordinates) if change is None else change


class _Reporting:
    """ClientSide: one paid report for each round."""

    def __init__(self, plan: ClientSide, account: Any, key: str | None) -> None:
        self.plan, self.account, self.key = plan, account, key

    def __call__(self, message: Any, context: Any, call: Call) -> Any:
        update = _trained(message, context, call)
        account = self._purse(context)
        state = dict(context.state.config_records.get(_STATE, {}))
        done = int(state.get("reports", 0))
        key = self.key or f"federation {message.metadata.run_id}"
        run = account.open(self.plan.device(update.size), key=key)
        for _ in range(done):  # answers of earlier rounds, read from the client's own ledger
            run.step(None)
        report = run.step(update).value["steps"]
        context.state[_STATE] = ConfigRecord({"reports": done + 1})
        return _answer(message, {}, {REPORT: report})

    def _purse(self, context: Any) -> Account:
        try:
            found: Account = self.account(context) if callable(self.account) else self.account
        except MoshaError:
            raise
        except Exception:  # noqa: BLE001  (its text would leave with the reply)
            raise RunError("client refuses: its account could not be opened.") from None
        return found


class _Masking:
    """Distributed: the client's steps of secure aggregation, kept between messages in the node's own state."""

    def __init__(self, plan: Distributed) -> None:
        self.plan = plan

    def __call__(self, message: Any, context: Any, call: Call) -> Any:
        config = dict(message.content.config_records.get(CONFIG, {}))
        stage = config.get(STAGE)
        if stage == "keys":
            return self._keys(message, context, config)
        if stage not in ("letters", "masked", "unmask"):
            raise RunError("client refuses: this client answers the steps of secure aggregation alone.")
        client = SecureClient.revived(context.state.config_records[_CLIENT]["client"], secure())
        if stage == "letters":
            reply = _answer(message, _listed("letter", client.share(_roster(config))))
        elif stage == "masked":
            self._count(context)
            update = _trained(message, context, call)
            encoded = self.plan.encode(update, client.session.label, secure())
            reply = _answer(message, {}, {MASKED: client.masked(encoded, _numbered(config, "letter"))})
        else:
            shares = client.unmask(config.get("survivors", []))
            reply = _answer(message, {**_listed("seed", shares.seeds), **_listed("key", shares.keys)})
        context.state[_CLIENT] = ConfigRecord({"client": client.kept()})
        return reply

    def _count(self, context: Any) -> None:
        """One round more in which an input leaves, opened or not."""
        rounds = int(context.state.config_records.get(_STATE, {}).get("rounds", 0))
        if rounds >= self.plan.sampling.paid_rounds(self.plan.rounds):
            raise RunError("client refuses: it has taken part in as many rounds as the plan pays for.")
        context.state[_STATE] = ConfigRecord({"rounds": rounds + 1})

    def _keys(self, message: Any, context: Any, config: dict[str, Any]) -> Any:
        numbers = (int(config[name]) for name in ("neighbours", "threshold", "survivors", "width"))
        session = Session(config["label"], tuple(config["order"]), *numbers)
        self.plan.check(session)
        client = SecureClient(int(config["member"]), session, secure())
        context.state[_CLIENT] = ConfigRecord({"client": client.kept()})
        return _answer(message, {"letter-key": client.keys.letters, "mask-key": client.keys.masks})


def _roster(config: dict[str, Any]) -> dict[int, PublicKeys]:
    shown = zip(config["members"], config["letter-keys"], config["mask-keys"], strict=True)
    return {member: PublicKeys(letters, masks) for member, letters, masks in shown}
