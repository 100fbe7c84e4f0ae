"""Distributed plans on Flower: secure aggregation as four messages to each node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from mosha.core.errors import SourceUnavailable
from mosha.federated.distributed import Distributed, Opened
from mosha.federated.federation import Ask
from mosha.federated.flower_records import STAGE, told
from mosha.federated.keys import PublicKeys
from mosha.federated.rotation import Rotation
from mosha.federated.secure_client import Shares
from mosha.federated.secure_server import SecureServer
from mosha.federated.session import Session
from mosha.noise import secure

__all__ = ["MASKED", "SecureNodes"]

MASKED = "mosha-masked"


class SecureNodes:
    """A `SecureFederation` of connected nodes: the server passes letters on and opens the sum alone."""

    def __init__(self, plan: Distributed, nodes: Any) -> None:
        self.plan, self.nodes = plan, nodes

    def clients(self) -> Sequence[Hashable]:
        found: Sequence[Hashable] = self.nodes.clients()
        return found

    def secure_sum(self, chosen: Sequence[Hashable], ask: Ask) -> Opened:
        if len(chosen) < max(3, self.plan.survivors):
            raise SourceUnavailable("fewer clients are connected than a round needs. Wait for more; a retry is free.")
        member = {node: i for i, node in enumerate(chosen, 1)}
        session = self.plan.session(list(member.values()), Rotation(ask.weights.size, b"").width, secure())
        server = SecureServer(session)
        terms = _terms(session)
        for node, reply in self._tell({node: {STAGE: "keys", "member": i, **terms} for node, i in member.items()}):
            if (keys := _keys(reply)) is not None:
                server.add_keys(member[node], keys)
        node_of = {i: node for node, i in member.items()}
        rosters = {node_of[i]: {STAGE: "letters", **_roster(server, i)} for i in server.roster}
        for node, reply in self._tell(rosters):
            letters = _numbered(reply, "letter")
            server.add_letters(member[node], letters)
        self._inputs(server, node_of, member, ask)
        survivors = server.survivors
        asked = {node_of[i]: {STAGE: "unmask", "survivors": survivors} for i in survivors}
        for node, reply in self._tell(asked):
            server.add_shares(member[node], Shares(_numbered(reply, "seed"), _numbered(reply, "key")))
        return Opened(server.total(), len(survivors), session.label)

    def _tell(self, contents: dict[Hashable, dict[str, Any]]) -> Any:
        replies = self.nodes.exchange({node: told(content) for node, content in contents.items()})
        return [(node, reply.config) for node, reply in replies.items()]

    def _inputs(self, server: SecureServer, node_of: dict[int, Hashable], member: Any, ask: Ask) -> None:
        """The one message with the model: clients train, encode, mask."""
        contents = {}
        for i in server.writers:
            letters = _listed("letter", server.letters_to(i))
            contents[node_of[i]] = self.nodes.asking(ask, **{STAGE: "masked", **letters})
        for node, reply in self.nodes.exchange(contents).items():
            masked = reply.arrays.get(MASKED)
            if isinstance(masked, np.ndarray):
                server.add_masked(member[node], masked)


def _terms(session: Session) -> dict[str, Any]:
    return {
        "label": session.label,
        "order": list(session.order),
        "neighbours": session.neighbours,
        "threshold": session.threshold,
        "survivors": session.survivors,
        "width": session.width,
    }


def _roster(server: SecureServer, member: int) -> dict[str, Any]:
    around = [other for other in server.session.neighbours_of(member) if other in server.roster]
    shown = [server.roster[other] for other in around]
    return {"members": around, "letter-keys": [k.letters for k in shown], "mask-keys": [k.masks for k in shown]}


def _keys(reply: dict[str, Any]) -> PublicKeys | None:
    letters, masks = reply.get("letter-key"), reply.get("mask-key")
    fits = isinstance(letters, bytes) and isinstance(masks, bytes) and len(letters) == len(masks) == 32
    return PublicKeys(letters, masks) if fits else None  # type: ignore[arg-type]


def _listed(name: str, texts: dict[int, bytes]) -> dict[str, Any]:
    """A mapping from members to bytes as two lists, as records take them."""
    return {f"{name}-members": list(texts), f"{name}-texts": list(texts.values())}


def _numbered(reply: dict[str, Any], name: str) -> dict[int, bytes]:
    """What `_listed` listed; anything else is empty."""
    members, texts = reply.get(f"{name}-members", []), reply.get(f"{name}-texts", [])
    if not isinstance(members, list) or not isinstance(texts, list):
        return {}
    pairs = zip(members, texts, strict=False)
    return {m: text for m, text in pairs if isinstance(m, int) and isinstance(text, bytes)}
