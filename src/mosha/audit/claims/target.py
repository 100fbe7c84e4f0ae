"""What is attacked: a measurement or a plain function, called many times on one data set.

Nothing leaves: no account is opened and nothing is paid, because the data are the attacker's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.audit.claims.answers import Raised
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement, Rng

__all__ = ["Drawn", "Target", "has_failed", "target_of"]

Drawn = Sequence[Any] | NDArray[Any]
"""Answers, one a run."""


@dataclass(frozen=True)
class Target:
    """A name and a way to draw answers: `draw(data, size)` gives `size` independent ones."""

    name: str
    draw: Callable[[Any, int], Drawn]

    def answers(self, data: object, size: int) -> Drawn:
        drawn = self.draw(data, size)
        if len(drawn) != size:
            raise InvalidParameter("audit.batch_of_other_size", target=self.name, size=size, given=len(drawn))
        return drawn


def target_of(
    target: Measurement | Callable[..., object],
    *,
    batch: bool,
    asks: Sequence[object] | None,
    stream: bool,
    rng: Rng | None,
) -> Target:
    """See `mosha.audit.attack` for the arguments."""
    if isinstance(target, Measurement):
        if batch:
            raise InvalidParameter("audit.batch_of_measurement", parameter="batch")
        return _of_measurement(target, asks, stream=stream, rng=rng)
    if not callable(target):
        raise InvalidParameter("audit.not_a_target", parameter="target", kind=type(target).__name__)
    if asks is not None or stream:
        raise InvalidParameter("audit.asks_of_function", parameter="asks")
    name = getattr(target, "__name__", type(target).__name__)
    if batch:
        return Target(name, lambda data, size: _array_or_list(target(data, size)))
    return Target(name, lambda data, size: [_call(target, data) for _ in range(size)])


def _array_or_list(drawn: Any) -> Drawn:
    return drawn if isinstance(drawn, np.ndarray) else list(drawn)


def _call(function: Callable[[object], object], data: object) -> Any:
    try:
        return function(data)
    except Exception as error:  # noqa: BLE001  (an error is an answer: it tells the worlds apart or it does not)
        return Raised(type(error).__name__, str(error))


def _of_measurement(measurement: Measurement, asks: Sequence[Any] | None, *, stream: bool, rng: Rng | None) -> Target:
    if asks is not None and not 1 <= len(asks) <= measurement.horizon:
        raise InvalidParameter(
            "audit.wrong_number_of_asks",
            parameter="asks",
            measurement=measurement.name,
            horizon=measurement.horizon,
            given=len(asks),
        )
    if rng is None:
        from mosha.noise import secure  # noqa: PLC0415  (loaded when it is needed)

        rng = secure()
    steps = measurement.horizon if asks is None else len(asks)
    generator = rng

    def draw(data: Any, size: int) -> list[Any]:
        if stream and len(data) < steps:
            raise InvalidParameter("audit.stream_too_short", parameter="stream", steps=steps)
        feed = list(data)[:steps] if stream else [data] * steps
        wanted = [None] * steps if asks is None else list(asks)
        runs = [_one_run(measurement, feed, wanted, generator) for _ in range(size)]
        return [run[0] for run in runs] if steps == 1 else runs

    return Target(measurement.name, draw)


def _one_run(measurement: Measurement, feed: list[object], asks: list[object], rng: Rng) -> list[Any]:
    """All answers of one run, up to and including the first error."""
    answers: list[Any] = []
    try:
        state = measurement.init()
        for data, ask in zip(feed, asks, strict=True):
            answer, state = measurement.step(state, data, ask, rng)
            answers.append(answer)
    except Exception as error:  # noqa: BLE001  (an error is an answer)
        answers.append(Raised(type(error).__name__, str(error)))
    return answers


def has_failed(answer: object) -> bool:
    """Whether a run ended in an error before it answered anything.

    >>> failed = Raised("KeyError", "days")
    >>> has_failed(failed), has_failed([failed]), has_failed([3, failed])
    (True, True, False)
    """
    first = answer[0] if isinstance(answer, list) and answer else answer
    return isinstance(first, Raised)
