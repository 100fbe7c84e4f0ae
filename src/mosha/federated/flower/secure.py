"""Plans with noise in shares on Flower: secure aggregation as four messages to each node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from typing import Any

import numpy as np

from mosha.core.errors import SourceUnavailable
from mosha.federated.federation import Ask
from mosha.federated.flower.records import STAGE, message_of
from mosha.federated.plans.secure_plan import Opened, SecurePlan
from mosha.federated.secure.client import Shares
from mosha.federated.secure.keys import PublicKeys
from mosha.federated.secure.server import SecureServer
from mosha.federated.secure.session import Session
from mosha.noise import secure

__all__ = ["MASKED", "SecureNodes", "opened_sum"]

MASKED = "mosha-masked"
Exchange = Callable[[dict[Hashable, Any]], dict[Hashable, Any]]


class SecureNodes:
    """A `SecureFederation` of connected nodes: the server passes letters on and opens the sum alone."""

    def __init__(self, plan: SecurePlan, nodes: Any) -> None:
        self.plan, self.nodes = plan, nodes

    def clients(self) -> Sequence[Hashable]:
        found: Sequence[Hashable] = self.nodes.clients()
        return found

    def secure_sum(self, chosen: Sequence[Hashable], ask: Ask) -> Opened:
        """The opened sum of the updates of those who survive."""
        width = self.plan.width(ask.weights.size)

        def terms(members: list[int]) -> Session:
            return self.plan.session(members, width, secure())

        def asking(config: dict[str, Any]) -> Any:
            return self.nodes.asking(ask, **config)

        return opened_sum(self.nodes.exchange, chosen, self.plan.survivors, terms, asking)


def opened_sum(
    exchange: Exchange,
    chosen: Sequence[Hashable],
    survivors: int,
    terms: Callable[[list[int]], Session],
    asking: Callable[[dict[str, Any]], Any],
) -> Opened:
    """Secure aggregation among these nodes, in four messages to each; `asking` makes the one that asks for an input.

    Fewer nodes than `survivors` are found out as early as they show: before any input has left, where it can be.
    """
    _enough(chosen, max(3, survivors))
    member = {node: i for i, node in enumerate(chosen, 1)}
    node_of = {i: node for node, i in member.items()}
    session = terms(list(node_of))
    server = SecureServer(session)

    def tell(contents: dict[Hashable, dict[str, object]]) -> list[tuple[int, dict[str, Any]]]:
        replies = exchange({node: message_of(content) for node, content in contents.items()})
        return [(member[node], reply.config) for node, reply in replies.items()]

    for i, reply in tell({node: {STAGE: "keys", "member": i, **_terms(session)} for node, i in member.items()}):
        if (keys := _keys(reply)) is not None:
            server.add_keys(i, keys)
    _enough(server.roster, survivors)
    for i, reply in tell({node_of[i]: {STAGE: "letters", **_roster(server, i)} for i in server.roster}):
        server.add_letters(i, _from_lists(reply, "letter"))
    _enough(server.writers, survivors)
    letters = {i: _to_lists("letter", server.letters_to(i)) for i in server.writers}
    inputs = {node_of[i]: asking({STAGE: "masked", **letters[i]}) for i in server.writers}
    for node, sent in exchange(inputs).items():
        masked = sent.arrays.get(MASKED)
        if isinstance(masked, np.ndarray):
            server.add_masked(member[node], masked)
    alive = server.survivors
    for i, reply in tell({node_of[i]: {STAGE: "unmask", "survivors": alive} for i in alive}):
        server.add_shares(i, Shares(_from_lists(reply, "seed"), _from_lists(reply, "key")))
    return Opened(server.total(), len(alive), session.label)


def _enough(there: Sized, wanted: int) -> None:
    if len(there) < wanted:
        raise SourceUnavailable("federated.too_few_connected")


def _terms(session: Session) -> dict[str, Any]:
    return {
        "label": session.label,
        "order": list(session.order),
        "neighbours": session.partners,
        "threshold": session.threshold,
        "survivors": session.survivors,
        "width": session.width,
        "agreed": session.agreed,
    }


def _roster(server: SecureServer, member: int) -> dict[str, Any]:
    around = [other for other in server.session.partners_of(member) if other in server.roster]
    shown = [server.roster[other] for other in around]
    return {"members": around, "letter-keys": [k.letters for k in shown], "mask-keys": [k.masks for k in shown]}


def _keys(reply: dict[str, object]) -> PublicKeys | None:
    letters, masks = reply.get("letter-key"), reply.get("mask-key")
    fits = isinstance(letters, bytes) and isinstance(masks, bytes) and len(letters) == len(masks) == 32
    return PublicKeys(letters, masks) if fits else None  # type: ignore[arg-type]


def _to_lists(name: str, texts: dict[int, bytes]) -> dict[str, Any]:
    """A mapping from members to bytes as two lists, as records take them."""
    return {f"{name}-members": list(texts), f"{name}-texts": list(texts.values())}


def _from_lists(reply: dict[str, object], name: str) -> dict[int, bytes]:
    """What `_to_lists` listed; anything else is empty."""
    members, texts = reply.get(f"{name}-members", []), reply.get(f"{name}-texts", [])
    if not isinstance(members, list) or not isinstance(texts, list):
        return {}
    pairs = zip(members, texts, strict=False)
    return {m: text for m, text in pairs if isinstance(m, int) and isinstance(text, bytes)}
