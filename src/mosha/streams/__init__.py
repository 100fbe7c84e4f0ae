"""Streams: statistics published for ever, at a price that does not grow with time.

counter, total, mean, histogram, series     what is streamed; each a Measurement with a horizon
best                                        the planner behind them: least predicted error, and why
Running, Instant, Sliding, Decayed          what is published of it
"""

from mosha.streams.best import best
from mosha.streams.counter import counter, histogram, mean, series, total
from mosha.streams.readout import Decayed, Instant, Running, Sliding
from mosha.streams.stream import Stream

__all__ = [
    "Decayed",
    "Instant",
    "Running",
    "Sliding",
    "Stream",
    "best",
    "counter",
    "histogram",
    "mean",
    "series",
    "total",
]
