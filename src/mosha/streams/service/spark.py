"""Spark Structured Streaming: each micro-batch is a step of a service, by `foreachBatch`.

Spark tells a batch's number and offers a batch again after a failure. The number is the step, so that a batch that was
published is not published in another way when it is offered again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mosha.core.names.calls import explain_wrong_calls
from mosha.core.release import Release
from mosha.streams.service.serving import Service

__all__ = ["to_spark"]


@explain_wrong_calls
def to_spark(
    service: Service, publish: Callable[[int, Release], None], *, columns: Sequence[str], first: int = 0
) -> Callable[[Any, int], None]:
    """A function for `DataStreamWriter.foreachBatch`.

    Args:
        service: the stream; the batch with number `first` is its step 1.
        publish: called with the number of the step and its release; it may be called again for the last step.
        columns: what the statistic and the unit read; Spark collects these and nothing else.
        first: the number of the first batch.

    A trigger of fixed length makes each micro-batch one step of public length.

    >>> import pathlib, tempfile
    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Reading(), epsilon=1)
    >>> stream = mosha.streams.counter(unit=mosha.Reading(), horizon=10, epsilon=1)
    >>> state = pathlib.Path(tempfile.mkdtemp()) / "visits.state"
    >>> with mosha.streams.serve(account, stream, name="visits", state=state) as service:
    ...     callable(to_spark(service, lambda step, release: None, columns=["days"]))
    True
    """

    def handle(frame: Any, batch: int) -> None:
        number = batch - first + 1
        if number <= service.taken:
            if number == service.taken and service.last is not None:
                publish(number, service.last)
            return
        rows = frame.select(*columns).collect()
        data = {name: [row[name] for row in rows] for name in columns}
        publish(number, service.step(data, number=number))

    return handle
