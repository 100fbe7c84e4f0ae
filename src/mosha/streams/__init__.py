"""Streams: statistics published for ever, at a price that does not grow with time.

counter, total, mean, histogram, series     what is streamed; each a Measurement with a horizon
protect, ProtectedSteps, Question            steps that are all there, asked like tables: forecast, plan, release, JSON
best                                        the planner behind them: least predicted error, and why
Running, Instant, Sliding, Decayed          what is published of it
alarm                                       told when a threshold is passed, paid by the alarm
window                                      hides any window of so many steps, for as long as you like
serve, Epochs                               a service that survives crashes and pays once; streams without end
Batches                                     several steps at once: one answer, one row in the ledger
Clock                                       time stamps into steps
smooth, group, rising                       post-processing, with error bands
Bandit                                      which arm pays, while each person's reward is hidden
LinearSystem                                Kalman's filter with bands behind noise, and a controller on it
to_spark                                    Spark Structured Streaming, by foreachBatch
"""

from mosha.core.names.lazy import keep_public_names
from mosha.streams.alarms import alarm
from mosha.streams.asking import ProtectedSteps, Question, protect
from mosha.streams.bandit import Bandit
from mosha.streams.batches import Batches
from mosha.streams.linear_system import Estimate, LinearSystem
from mosha.streams.planner import best
from mosha.streams.questions import counter, histogram, mean, series, total
from mosha.streams.readout import Decayed, Instant, Running, Sliding
from mosha.streams.service.clock import Clock
from mosha.streams.service.epochs import Epochs
from mosha.streams.service.serving import Service, serve
from mosha.streams.service.spark import to_spark
from mosha.streams.smoothing import Band, group, rising, smooth
from mosha.streams.stream import Stream
from mosha.streams.w_event import window

__all__ = [
    "Band",
    "Bandit",
    "Batches",
    "Clock",
    "Decayed",
    "Epochs",
    "Estimate",
    "Instant",
    "LinearSystem",
    "ProtectedSteps",
    "Question",
    "Running",
    "Service",
    "Sliding",
    "Stream",
    "alarm",
    "best",
    "counter",
    "group",
    "histogram",
    "mean",
    "protect",
    "rising",
    "series",
    "serve",
    "smooth",
    "to_spark",
    "total",
    "window",
]
keep_public_names(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
