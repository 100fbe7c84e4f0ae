"""Secure aggregation with all parties in one process: for simulations, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.federated.secure.client import SecureClient
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.server import SecureServer
from mosha.federated.secure.session import Session

__all__ = ["securely_summed"]


def securely_summed(session: Session, inputs: Mapping[int, Ring], rng: Rng, vanished: Collection[int] = ()) -> Ring:
    """The sum of the inputs of all members that have one; `vanished` members disappear before they send it.

    Every message of the protocol is made and read; nothing is skipped.

    `inputs` are by member of `session`; `rng` makes keys and masks.

    >>> import numpy as np
    >>> from mosha.noise import secure
    >>> session = Session.begin([1, 2, 3, 4], partners=3, survivors=2, width=2, rng=secure())
    >>> inputs = {member: np.array([member, 1], np.uint32) for member in (1, 2, 3, 4)}
    >>> securely_summed(session, inputs, secure(), vanished=[4]).tolist()
    [6, 3]
    """
    if not isinstance(session, Session) or not isinstance(inputs, Mapping):
        raise InvalidParameter("federated.simulation_without_numbers", parameter="session")
    server = SecureServer(session)
    clients = {member: SecureClient(member, session, rng) for member in inputs}
    for member, client in clients.items():
        server.add_keys(member, client.keys)
    for member, client in clients.items():
        server.add_letters(member, client.share(server.roster))
    for member in server.writers:
        if member not in vanished:
            server.add_masked(member, clients[member].mask(inputs[member], server.letters_to(member)))
    survivors = server.survivors
    for member in survivors:
        server.add_shares(member, clients[member].unmask(survivors))
    return server.total()
