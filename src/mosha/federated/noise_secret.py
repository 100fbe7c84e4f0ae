"""The secret of correlated noise: 32 bytes in a file of their own; a killed run makes its noise again from them."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, StateRefused
from mosha.core.measurement import Rng
from mosha.files.atomic import create_file, is_open_to_others
from mosha.noise import KeyedRandom, secure

__all__ = ["MarkedNoise", "load_secret"]

_SIZE = 32


def load_secret(place: str | os.PathLike[str]) -> bytes:
    """The secret in this file, made if there is none: readable by its owner alone, on disk before it is used.

    Guarantee:
        The bytes come from the operating system's generator. The file appears whole or not at all, and is never
        replaced. One that others may read is refused: who has it and the ledger can take the noise away.
    """
    if not isinstance(place, str | os.PathLike):
        raise InvalidParameter("federated.secret_not_a_path", parameter="secret", spent="nothing")
    path = Path(place)
    try:
        if not path.exists():
            create_file(path, [secure().bytes(_SIZE)])  # where somebody else was first, theirs counts
        with path.open("rb") as file:
            shared = is_open_to_others(file.fileno())
            found = file.read(_SIZE + 1)
    except (OSError, ValueError):
        raise InvalidParameter("federated.secret_unreadable", parameter="secret", spent="nothing") from None
    if shared:
        raise InvalidParameter("federated.secret_open_to_others", parameter="secret", spent="nothing")
    if len(found) != _SIZE:
        raise InvalidParameter("federated.secret_of_other_size", parameter="secret", size=_SIZE, spent="nothing")
    return found


class MarkedNoise:
    """Noise with a public mark, from which whoever has the secret makes it again.

    Guarantee:
        A mark is 16 fresh bytes for each draw, so that no noise is used twice; noise and seal are pseudo-random
        functions of (secret, mark), and for whoever lacks the secret as good as fresh noise and as unrelated bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def source(self, mark: bytes) -> Rng:
        """The randomness that belongs to a mark."""
        return KeyedRandom(self._secret, "noise", mark)

    def seal(self, mark: bytes, noise: NDArray[np.generic]) -> bytes:
        """Bytes that tell this very noise from any other, and nothing about it."""
        key = KeyedRandom(self._secret, "seal", mark).bytes(32)
        return hmac.digest(key, np.ascontiguousarray(noise).tobytes(), "sha256")[:16]

    def check(self, mark: bytes, noise: NDArray[np.generic], seal: bytes) -> None:
        """Refuse noise that is not what was sealed."""
        if not hmac.compare_digest(self.seal(mark, noise), seal):
            raise StateRefused("federated.other_secret", spent="nothing")
