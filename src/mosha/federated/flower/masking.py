"""A client's steps of secure aggregation on Flower, remembered from message to message in the node's own state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mosha.core.errors import MissingExtra, RunError
from mosha.core.language import phrase
from mosha.federated.flower.records import CONFIG, STAGE, message_of, record_of
from mosha.federated.flower.secure import MASKED, _from_lists, _to_lists
from mosha.federated.secure.client import SecureClient
from mosha.federated.secure.keys import PublicKeys, Ring
from mosha.federated.secure.session import Session
from mosha.noise import secure

try:
    from flwr.app import ConfigRecord, Message
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["MaskedSteps", "answer"]


def answer(message: Any, config: dict[str, Any], arrays: dict[str, Any] | None = None) -> Any:
    """A reply with these settings, and arrays where there are any."""
    return Message(message_of(config) if arrays is None else record_of(arrays, config), reply_to=message)


class MaskedSteps:
    """Keys, letters, a masked input, shares: each answered in its turn; at most so many inputs ever leave.

    Args:
        name: under which the node remembers them.
        check: refuses terms of a round that the client did not agree to.
        at_most: how many inputs may leave, opened or not.
    """

    def __init__(self, name: str, check: Callable[[Session], None], at_most: int) -> None:
        self.name, self.check, self.at_most = name, check, at_most

    def __call__(self, message: Any, context: Any, encoded: Callable[[bytes], Ring]) -> Any:
        """The reply to one message; `encoded` makes the input of the round with this label."""
        config = dict(message.content.config_records.get(CONFIG, {}))
        stage = config.get(STAGE)
        if stage == "keys":
            return self._keys(message, context, config)
        if stage not in ("letters", "masked", "unmask") or self._client not in context.state.config_records:
            raise RunError("federated.out_of_turn")
        client = SecureClient.from_bytes(context.state.config_records[self._client]["client"], secure())
        if stage == "letters":
            reply = answer(message, _to_lists("letter", client.share(_roster(config))))
        elif stage == "masked":
            self._count(context)
            masked = client.mask(encoded(client.session.label), _from_lists(config, "letter"))
            reply = answer(message, {}, {MASKED: masked})
        else:
            shares = client.unmask(config.get("survivors", []))
            reply = answer(message, {**_to_lists("seed", shares.seeds), **_to_lists("key", shares.keys)})
        context.state[self._client] = ConfigRecord({"client": client.to_bytes()})
        return reply

    @property
    def _client(self) -> str:
        return f"{self.name}-secure-client"

    def _count(self, context: Any) -> None:
        """One round more in which an input leaves, opened or not."""
        rounds = int(context.state.config_records.get(self.name, {}).get("rounds", 0))
        if rounds >= self.at_most:
            raise RunError("federated.rounds_used_up")
        context.state[self.name] = ConfigRecord({"rounds": rounds + 1})

    def _keys(self, message: object, context: Any, config: dict[str, Any]) -> Any:
        numbers = {name: int(config[name]) for name in ("threshold", "survivors", "width")}
        numbers["partners"] = int(config["neighbours"])
        agreed = str(config.get("agreed", ""))
        session = Session(label=config["label"], order=tuple(config["order"]), agreed=agreed, **numbers)
        self.check(session)
        client = SecureClient(int(config["member"]), session, secure())
        context.state[self._client] = ConfigRecord({"client": client.to_bytes()})
        return answer(message, {"letter-key": client.keys.letters, "mask-key": client.keys.masks})


def _roster(config: dict[str, Any]) -> dict[int, PublicKeys]:
    shown = zip(config["members"], config["letter-keys"], config["mask-keys"], strict=True)
    return {member: PublicKeys(letters, masks) for member, letters, masks in shown}
