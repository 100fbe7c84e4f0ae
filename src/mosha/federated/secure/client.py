"""A client's side of secure aggregation: four short answers, each given once, some refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mosha.core.errors import DataError, InvalidParameter, RunError
from mosha.core.measurement import Rng
from mosha.federated.secure.keys import (
    PrivateKey,
    PublicKeys,
    Ring,
    add_mask,
    agree_secret,
    fresh_pair,
    open_letter,
    seal_letter,
)
from mosha.federated.secure.session import Session
from mosha.federated.secure.shamir import SHARE_BYTES, split

__all__ = ["SecureClient", "Shares", "letter_context", "mask_context"]


@dataclass(frozen=True)
class Shares:
    """What a client hands out at the end: of every partner the share of one secret and never of both.

    `seeds` opens the own masks of those whose input arrived, `keys` the mask keys of those who vanished.
    """

    seeds: dict[int, bytes] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)


def letter_context(session: Session, sender: int, receiver: int) -> tuple[bytes, ...]:
    return b"letter", session.label, sender.to_bytes(8), receiver.to_bytes(8)


def mask_context(session: Session, one: int, other: int) -> tuple[bytes, ...]:
    return b"mask", session.label, min(one, other).to_bytes(8), max(one, other).to_bytes(8)


class SecureClient:
    """One client in one round; its keys and its mask are fresh and die with the object.

    Methods take the number of this `member`, a source of randomness `rng`, the `roster` of all keys, the `letters` of
    the others, the `values` to be added, and the `survivors` who are still there.

    Guarantee:
        What leaves is the input plus a mask that is uniform for whoever lacks the seed of the client's own mask or the
        keys of all its surviving honest partners (`secure_aggregation.md`). Each step is answered once. The client
        answers `unmask` only if it is itself among the survivors, they are at least `session.survivors`, all of
        them are members, and at least `threshold` of its partners are; of every partner it gives the share of the
        seed or of the key, never both, because a partner is in the list or not.

    >>> from mosha.federated import Session
    >>> from mosha.noise import secure
    >>> session = Session.begin(range(1, 5), partners=2, survivors=2, width=3, rng=secure())
    >>> client = SecureClient(1, session, secure())
    >>> SecureClient.from_bytes(client.to_bytes(), secure()).keys == client.keys
    True
    """

    def __init__(self, member: int, session: Session, rng: Rng) -> None:
        if not isinstance(session, Session):
            raise InvalidParameter("federated.not_a_session", parameter="session")
        if member not in session.order:
            raise DataError("federated.not_a_member")
        self.member, self.session, self._rng = member, session, rng
        self._letters, letters = fresh_pair(rng)
        self._masks, masks = fresh_pair(rng)
        self.keys = PublicKeys(letters, masks)
        self._seed = rng.bytes(32)
        self._roster: dict[int, PublicKeys] = {}
        self._held: dict[int, bytes] = {}
        self._done = 0

    def to_bytes(self) -> bytes:
        """Everything this client must remember until its next step; secret, for its own device alone."""
        session = self.session
        return json.dumps(
            {
                "member": self.member,
                "terms": [session.partners, session.threshold, session.survivors, session.width, session.agreed],
                "order": session.order,
                "secrets": [
                    part.hex()
                    for part in (
                        session.label,
                        self._letters.private_bytes_raw(),
                        self._masks.private_bytes_raw(),
                        self._seed,
                    )
                ],
                "roster": {m: [k.letters.hex(), k.masks.hex()] for m, k in self._roster.items()},
                "held": {m: text.hex() for m, text in self._held.items()},
                "done": self._done,
            }
        ).encode()

    @staticmethod
    def from_bytes(kept: bytes, rng: Rng) -> SecureClient:
        """The client that `kept` remembers.

        A step is answered once only if the device never sets its own state back: an older `kept` would answer a step
        again, perhaps for another list of survivors. Replace what is kept after every step, and keep it from backups.
        """
        stored = json.loads(kept)
        label, letters, masks, seed = map(bytes.fromhex, stored["secrets"])
        client = SecureClient(stored["member"], Session(label, tuple(stored["order"]), *stored["terms"]), rng)
        client._letters, client._masks = PrivateKey.from_private_bytes(letters), PrivateKey.from_private_bytes(masks)
        client.keys = PublicKeys(
            client._letters.public_key().public_bytes_raw(), client._masks.public_key().public_bytes_raw()
        )
        client._seed, client._done = seed, stored["done"]
        client._roster = {int(m): PublicKeys(*map(bytes.fromhex, keys)) for m, keys in stored["roster"].items()}
        client._held = {int(m): bytes.fromhex(text) for m, text in stored["held"].items()}
        return client

    def _step(self, number: int, name: str) -> None:
        if self._done != number - 1:
            raise RunError("federated.answered_once", step=name)
        self._done = number

    def share(self, roster: Mapping[int, PublicKeys]) -> dict[int, bytes]:
        """Sealed letters to the partners that showed keys: shares of the own seed and of the own mask key."""
        self._step(1, "share")
        around = self.session.partners_of(self.member)
        self._roster = {other: roster[other] for other in around if other in roster}
        shown = [key for pair in (self.keys, *self._roster.values()) for key in (pair.letters, pair.masks)]
        if len(set(shown)) < len(shown):  # its own keys among them: they may be sent back to it as a partner's
            raise RunError("federated.same_key")
        if len(self._roster) < self.session.threshold:
            raise RunError("federated.too_few_partners_take_part")
        points = sorted(self._roster)
        made = {"threshold": self.session.threshold, "points": points, "rng": self._rng}
        seeds, keys = split(self._seed, **made), split(self._masks.private_bytes_raw(), **made)  # type: ignore[arg-type]
        letters = {}
        for other in points:
            context = letter_context(self.session, self.member, other)
            key = agree_secret(self._letters, self._roster[other].letters, *context)
            letters[other] = seal_letter(key, seeds[other] + keys[other], b"".join(context))
        return letters

    def mask(self, values: Ring, letters: Mapping[int, bytes]) -> Ring:
        """The input under all its masks, given the letters of those partners who wrote one."""
        self._step(2, "masked")
        if values.shape != (self.session.width,) or values.dtype != np.uint32:
            raise DataError("federated.input_of_other_size", width=self.session.width)
        for other in sorted(set(letters) & set(self._roster)):
            context = letter_context(self.session, other, self.member)
            key = agree_secret(self._letters, self._roster[other].letters, *context)
            text = open_letter(key, letters[other], b"".join(context))
            if len(text) != 2 * SHARE_BYTES:
                raise DataError("federated.letter_without_shares")
            self._held[other] = text
        if len(self._held) < self.session.threshold:
            raise RunError("federated.too_few_partners_left")
        total = values.copy()
        add_mask(total, self._seed)
        for other in self._held:
            seed = agree_secret(self._masks, self._roster[other].masks, *mask_context(self.session, self.member, other))
            add_mask(total, seed, negative=self.member > other)
        return total

    def unmask(self, survivors: Sequence[int]) -> Shares:
        """Shares that open the sum of the survivors' inputs, and nothing else."""
        self._step(3, "unmask")
        alive = set(survivors)
        enough = len(alive) >= self.session.survivors and len(alive) == len(survivors)
        if self.member not in alive or not enough or not alive <= set(self.session.order):
            raise RunError("federated.too_few_members_survived")
        if len(alive & set(self._held)) < self.session.threshold:
            raise RunError("federated.too_few_partners_survived")
        seeds = {other: text[:SHARE_BYTES] for other, text in self._held.items() if other in alive}
        keys = {other: text[SHARE_BYTES:] for other, text in self._held.items() if other not in alive}
        return Shares(seeds, keys)
