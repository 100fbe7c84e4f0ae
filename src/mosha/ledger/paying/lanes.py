"""The lanes of a family of disjoint blocks as rows describe them, and the dearest of them, kept up to date.

What the family counts for is the greatest sum of a lane, part by part. A charge can only raise it; a hand-back may make
another lane the greatest. So each part has a heap of what lanes have reached, in which sums that no longer hold are
passed over: n rows cost n log n, however many lanes there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from mosha.accounting.numerics.price import FREE, Price

__all__ = ["Lanes"]

SPARE = 64  # sums of the past that a heap may hold besides twice the lanes


class Lanes:
    """What was paid in each lane.

    >>> lanes = Lanes()
    >>> lanes.change(["may", "june"], lambda before: before + Price(5))
    >>> lanes.change(["may"], lambda before: before + Price(3))
    >>> lanes.change(["may"], lambda before: before - Price(6))
    >>> lanes.top
    Price(amount=5, delta=0, rho=0, rho_delta=0)
    """

    def __init__(self) -> None:
        self.paid: dict[str, Price] = {}
        self._heaps: tuple[list[tuple[int, str]], ...] = ([], [], [], [])

    def change(self, lanes: list[str] | tuple[str, ...], moved: Callable[[Price], Price]) -> None:
        """Charge these lanes, or hand back to them."""
        for lane in lanes:
            self.paid[lane] = price = moved(self.paid.get(lane, FREE))
            for heap, part in zip(self._heaps, price.parts, strict=True):
                if part:
                    heapq.heappush(heap, (-part, lane))
        for position, heap in enumerate(self._heaps):
            if len(heap) > 2 * len(self.paid) + SPARE:
                heap[:] = [(-price.parts[position], lane) for lane, price in self.paid.items() if price.parts[position]]
                heapq.heapify(heap)

    @property
    def top(self) -> Price:
        """The least price that is at least that of every lane."""
        return Price(*(self._greatest(position) for position in range(len(self._heaps))))

    def _greatest(self, position: int) -> int:
        heap = self._heaps[position]
        while heap and self.paid[heap[0][1]].parts[position] != -heap[0][0]:
            heapq.heappop(heap)
        return -heap[0][0] if heap else 0
