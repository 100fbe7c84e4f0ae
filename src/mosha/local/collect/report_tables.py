"""What reports say of each bucket of each level, and what noise alone would say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from mosha.local.collect.prefix_tree import LevelTables
from mosha.local.protocols.prefixes import Prefixes
from mosha.local.protocols.protocol import Protocol

__all__ = ["ReportTables"]


class ReportTables(LevelTables):
    """Supports of buckets by reports; each level and row has reports of its own."""

    def __init__(self, supports: NDArray[np.float64], reports: NDArray[np.float64], protocol: Protocol) -> None:
        self.supports, self.reports = supports, reports
        self.truth, self.lie = float(protocol.truth), float(protocol.lie)
        self.mean = reports * self.lie
        self.variance = self.mean * (1 - self.lie)

    @staticmethod
    def read(prefixes: Prefixes, protocol: Protocol, counters: NDArray[np.int64]) -> ReportTables:
        """From the counters of a collector: the reports of each level and row, then the cells of each."""
        shape = (prefixes.levels, prefixes.rows)
        parts = prefixes.levels * prefixes.rows
        cells = counters[parts:].reshape(*shape, -1)
        supports = np.empty((*shape, prefixes.buckets))
        for level, row in np.ndindex(shape):
            supports[level, row] = protocol.supports(cells[level, row])
        return ReportTables(supports, counters[:parts].reshape(shape).astype(np.float64), protocol)

    def chance(self, supports: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
        """The upper tail of the binomial law: each report supports a value that nobody has with probability `lie`."""
        count = self.sum_levels(self.reports, first, len(self.reports) - 1).sum(axis=0)
        return np.asarray(bdtrc(np.floor(supports.sum(axis=0)) - 1, count.astype(np.int64), self.lie))

    def estimate(
        self, supports: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All rows together; a bucket holds the share 1 / buckets of everybody else."""
        count = self.sum_levels(self.reports, first, len(self.reports) - 1).sum(axis=0)
        support = supports.sum(axis=0) / count
        buckets = self.supports.shape[2]
        factor = self.reports.sum() * buckets / ((self.truth - self.lie) * (buckets - 1))
        share = support - self.lie - (self.truth - self.lie) / buckets
        within = np.clip(support, self.lie, self.truth)
        return factor * share, factor * np.sqrt(within * (1 - within) / count)
