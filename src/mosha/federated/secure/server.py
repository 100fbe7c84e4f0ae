"""The server's side of secure aggregation: it passes letters on, adds up masked inputs, and opens their sum alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mosha.core.errors import DataError, InvalidParameter, SourceUnavailable
from mosha.federated.secure.client import Shares, mask_context
from mosha.federated.secure.keys import PrivateKey, PublicKeys, Ring, add_mask, agree_secret
from mosha.federated.secure.session import Session
from mosha.federated.secure.shamir import SHARE_BYTES, combine

__all__ = ["SecureServer"]


class SecureServer:
    """One round on the server. Members may vanish after every step; what the others sent still sums up exactly.

    `session` is what all agreed on. Methods take the `member` who sends, and what it sends: `keys`, `letters` to
    others, masked `values`, `shares` of those who left.

    Guarantee:
        If the steps were followed, `total` is the sum modulo 2**32 of the inputs of all survivors, exactly: masks of
        pairs cancel, own masks and masks shared with the vanished are computed and taken away.

    >>> import numpy as np
    >>> from mosha.federated import SecureClient, Session
    >>> from mosha.noise import secure
    >>> session = Session.begin(range(1, 5), partners=2, survivors=2, width=3, rng=secure())
    >>> server = SecureServer(session)
    >>> clients = {member: SecureClient(member, session, secure()) for member in range(1, 5)}
    >>> for member, client in clients.items():
    ...     server.add_keys(member, client.keys)
    >>> for member, client in clients.items():
    ...     server.add_letters(member, client.share(server.roster))
    >>> for member, client in clients.items():
    ...     server.add_masked(member, client.mask(np.full(3, member, np.uint32), server.letters_to(member)))
    >>> for member in server.survivors:
    ...     server.add_shares(member, clients[member].unmask(server.survivors))
    >>> server.total().tolist()
    [10, 10, 10]
    """

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise InvalidParameter("federated.not_a_session", parameter="session")
        self.session = session
        self.roster: dict[int, PublicKeys] = {}
        self._letters: dict[int, dict[int, bytes]] = {}
        self._sum = np.zeros(session.width, np.uint32)
        self._arrived: list[int] = []
        self._shares: dict[int, Shares] = {}

    def add_keys(self, member: int, keys: PublicKeys) -> None:
        """Step 1: a member shows its public keys; a second time it is ignored."""
        if member in self.session.order:
            self.roster.setdefault(member, keys)

    def add_letters(self, member: int, letters: Mapping[int, bytes]) -> None:
        """Step 2: a member's letters to its partners."""
        if member in self.roster and member not in self._letters:
            around = set(self.session.partners_of(member)) & set(self.roster)
            self._letters[member] = {other: letter for other, letter in letters.items() if other in around}

    def letters_to(self, member: int) -> dict[int, bytes]:
        """The letters of those partners who have written one."""
        return {
            other: self._letters[other][member]
            for other in self.session.partners_of(member)
            if member in self._letters.get(other, {})
        }

    @property
    def writers(self) -> list[int]:
        """Who has written letters: from these, masked inputs are awaited."""
        return sorted(self._letters)

    def add_masked(self, member: int, values: Ring) -> None:
        """Step 3: a member's input under its masks; only the sum is kept. Wrong shapes and second ones are ignored."""
        fits = isinstance(values, np.ndarray) and values.shape == (self.session.width,) and values.dtype == np.uint32
        if member in self._letters and member not in self._arrived and fits:
            self._arrived.append(member)
            self._sum += values

    @property
    def survivors(self) -> list[int]:
        """Whose input arrived; refused where they are too few to be opened."""
        if len(self._arrived) < self.session.survivors:
            raise SourceUnavailable("federated.fewer_than_least_survived")
        return sorted(self._arrived)

    def add_shares(self, member: int, shares: Shares) -> None:
        """Step 4: what a survivor hands out to open the sum."""
        if member in self._arrived and member not in self._shares:
            self._shares[member] = shares

    def total(self) -> Ring:
        """The sum of the survivors' inputs."""
        survivors, session = self.survivors, self.session
        opened = self._sum.copy()
        for member in survivors:
            add_mask(opened, self._secret(member, "seeds"), negative=True)
        alive = set(survivors)
        for member in set(self._letters) - alive:
            around = [other for other in session.partners_of(member) if other in alive and self._wrote(member, other)]
            if not around:
                continue
            private = PrivateKey.from_private_bytes(self._secret(member, "keys"))
            for other in around:
                seed = agree_secret(private, self.roster[other].masks, *mask_context(session, member, other))
                add_mask(opened, seed, negative=other < member)
        return opened

    def _wrote(self, member: int, other: int) -> bool:
        """Whether `other` had a letter of `member`, and so a mask with it."""
        return other in self._letters[member]

    def _secret(self, member: int, kind: str) -> bytes:
        held = {
            other: share
            for other in self.session.partners_of(member)
            if other in self._shares
            and len(share := getattr(self._shares[other], kind).get(member, b"")) == SHARE_BYTES
        }
        try:
            return combine(held, threshold=self.session.threshold)
        except DataError:
            raise SourceUnavailable("federated.too_few_to_open") from None
