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

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.streams.alarms import alarm as alarm
    from mosha.streams.asking import ProtectedSteps as ProtectedSteps
    from mosha.streams.asking import Question as Question
    from mosha.streams.asking import protect as protect
    from mosha.streams.bandit import Bandit as Bandit
    from mosha.streams.batches import Batches as Batches
    from mosha.streams.linear_system import Estimate as Estimate
    from mosha.streams.linear_system import LinearSystem as LinearSystem
    from mosha.streams.planner import best as best
    from mosha.streams.questions import counter as counter
    from mosha.streams.questions import histogram as histogram
    from mosha.streams.questions import mean as mean
    from mosha.streams.questions import series as series
    from mosha.streams.questions import total as total
    from mosha.streams.readout import Decayed as Decayed
    from mosha.streams.readout import Instant as Instant
    from mosha.streams.readout import Running as Running
    from mosha.streams.readout import Sliding as Sliding
    from mosha.streams.service.clock import Clock as Clock
    from mosha.streams.service.epochs import Epochs as Epochs
    from mosha.streams.service.serving import Service as Service
    from mosha.streams.service.serving import serve as serve
    from mosha.streams.service.spark import to_spark as to_spark
    from mosha.streams.smoothing import Band as Band
    from mosha.streams.smoothing import group as group
    from mosha.streams.smoothing import rising as rising
    from mosha.streams.smoothing import smooth as smooth
    from mosha.streams.stream import Stream as Stream
    from mosha.streams.w_event import window as window

_NAMES = {
    "Band": "smoothing",
    "Bandit": "bandit",
    "Batches": "batches",
    "Clock": "service.clock",
    "Decayed": "readout",
    "Epochs": "service.epochs",
    "Estimate": "linear_system",
    "Instant": "readout",
    "LinearSystem": "linear_system",
    "ProtectedSteps": "asking",
    "Question": "asking",
    "Running": "readout",
    "Service": "service.serving",
    "Sliding": "readout",
    "Stream": "stream",
    "alarm": "alarms",
    "best": "planner",
    "counter": "questions",
    "group": "smoothing",
    "histogram": "questions",
    "mean": "questions",
    "protect": "asking",
    "rising": "smoothing",
    "series": "questions",
    "serve": "service.serving",
    "smooth": "smoothing",
    "to_spark": "service.spark",
    "total": "questions",
    "window": "w_event",
}
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
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
