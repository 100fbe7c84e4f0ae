"""Local hashing: a hash function of one's own, and a noisy hash."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import bytes_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PRIME", "LocalHashing"]

PRIME = (1 << 31) - 1
_BLOCK = 8192  # reports that are decoded at a time, so that they stay near the processor


@dataclass(frozen=True)
class LocalHashing(Protocol):
    """A fresh hash function h(v) = ((A v + B) mod P) g // 2^31 and h(value), told by g-ary randomised response.

    Every report has a seed (A, B) of its own: a small pool of shared ones would put a floor under the error.

    Guarantee:
        The seed does not depend on the value. Given it, the report is g-ary randomised response on h(value) with odds
        a : b (see `KAry`), and two values give two hashes at most: a / b <= e^epsilon.

    Units:
        A report is A and B in four bytes each, then the hash. For two values (A v + B, A v' + B) is uniform on pairs
        below P = 2^31 - 1, so hashes collide with probability 1 / g up to g / P, which the estimate leaves out.

    >>> LocalHashing(1000, 1.0).settings, round(LocalHashing(1000, 1.0).variance, 3)
    ({'hashes': 4, 'prime': 2147483647}, 3.692)
    """

    name = "local-hashing"

    @property
    def hashes(self) -> int:
        return _best_hashes(float(self.odds.ratio))

    @property
    def settings(self) -> dict[str, int]:
        return {"hashes": self.hashes, "prime": PRIME}

    @property
    def truth(self) -> Fraction:
        return Fraction(self.odds.top, self.odds.top + (self.hashes - 1) * self.odds.bottom)

    @property
    def lie(self) -> Fraction:
        return Fraction(1, self.hashes)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return self.truth * self.lie, self.lie**2

    @property
    def width(self) -> int:
        return 8 + bytes_for(self.hashes)

    @property
    def cells(self) -> int:
        return self.size

    @property
    def work_per_report(self) -> int:
        return self.size

    def draw(self, value: int, rng: Rng) -> bytes:
        factor, shift = draw_below(PRIME, rng), draw_below(PRIME, rng)
        hashed = ((factor * value + shift) % PRIME) * self.hashes >> 31
        odds = self.odds
        drawn = draw_below(odds.top + (self.hashes - 1) * odds.bottom, rng) - odds.top
        if drawn >= 0:
            other = drawn // odds.bottom
            hashed = other + (other >= hashed)
        return factor.to_bytes(4, "little") + shift.to_bytes(4, "little") + hashed.to_bytes(self.width - 8, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.local.protocols.k_ary import KAry
        from mosha.noise import uniform

        factor, shift = uniform(PRIME, len(values), rng=rng), uniform(PRIME, len(values), rng=rng)
        hashed = ((factor * values + shift) % PRIME) * self.hashes >> 31
        seeds = np.stack([factor, shift], axis=1).astype("<u4").view(np.uint8)
        return np.hstack([seeds, KAry(self.hashes, self.epsilon).draw_many(hashed, rng)])

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        import numpy as np

        factor, shift, hashed = _parts(reports)
        return np.asarray((factor < PRIME) & (shift < PRIME) & (hashed < self.hashes))

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        found = np.zeros(self.size, np.int64)
        for start in range(0, len(reports), _BLOCK):
            found += self._block(*_parts(reports[start : start + _BLOCK]))
        return found

    def _block(
        self, factor: NDArray[np.uint32], shift: NDArray[np.uint32], hashed: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """A v + B mod P for v = 0, 1, ... by additions; h is y when it lies from ceil(y 2^31 / g) on."""
        import numpy as np

        found = np.zeros(self.size, np.int64)
        starts = -(-(hashed.astype(np.int64) << 31) // self.hashes)
        lengths = (-(-((hashed.astype(np.int64) + 1) << 31) // self.hashes) - starts).astype(np.uint32)
        point, prime = shift.copy(), np.uint32(PRIME)
        first = starts.astype(np.uint32)
        place, smaller = np.empty_like(point), np.empty_like(point)
        inside = np.empty(len(point), np.bool_)
        for value in range(self.size):
            np.subtract(point, first, out=place)
            np.less(place, lengths, out=inside)
            found[value] = np.count_nonzero(inside)
            np.add(point, factor, out=point)
            np.subtract(point, prime, out=smaller)
            np.minimum(point, smaller, out=point)
        return found

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        return counters


def _parts(reports: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    import numpy as np

    from mosha.local.protocols.randomizer import unpack

    seeds = np.ascontiguousarray(reports[:, :8]).view("<u4")
    return seeds[:, 0].astype(np.uint32), seeds[:, 1].astype(np.uint32), unpack(reports[:, 8:])


@lru_cache(maxsize=256)
def _best_hashes(ratio: float) -> int:
    """The number of hashes with the least variance: (E - 1 + g)^2 / ((E - 1)^2 (g - 1))."""
    around = math.floor(ratio) + 1
    candidates = [g for g in range(max(2, around - 1), around + 3) if g <= 1 << 16] or [1 << 16]
    return min(candidates, key=lambda g: (ratio - 1 + g) ** 2 / (g - 1))
