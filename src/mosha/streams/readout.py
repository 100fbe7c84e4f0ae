"""What is read off a noisy stream of increments: post-processing, so any of these is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Decayed", "Instant", "Readout", "Running", "Sliding"]

Vector = NDArray[np.float64]


class Readout(Protocol):
    """From increments to what is published, and from the response to noise to the error of what is published.

    `step` gives what is published at `state` and after one more `increment`, and the next state; `word` names it all.
    """

    @property
    def word(self) -> str: ...

    def start(self) -> Any:
        """The state before the first step."""
        ...

    def step(self, state: object, increment: object) -> tuple[Any, Any]:
        """What is published at a step, and the next state."""
        ...

    def step_many(self, state: object, increments: Vector) -> tuple[Vector, Any]:
        """The same for many steps (`increments`) of one series at once."""

    def respond(self, sums: Vector) -> Vector:
        """The response of what is published to one unit of noise j steps ago; `sums` is that of running sums."""


@dataclass(frozen=True)
class Running(Readout):
    """The sum of all steps so far.

    >>> running = Running()
    >>> running.step(running.start(), 3)
    (3, 3)
    """

    word: str = "running"

    def start(self) -> Any:
        return 0

    def step(self, state: Any, increment: Any) -> tuple[Any, Any]:
        total = state + increment
        return total, total

    def step_many(self, state: object, increments: Vector) -> tuple[Vector, Any]:
        totals = np.cumsum(np.concatenate([[state], increments]))[1:]  # from left to right, as step by step
        return totals, float(totals[-1])

    def respond(self, sums: Vector) -> Vector:
        return sums


@dataclass(frozen=True)
class Instant(Readout):
    """Each step by itself.

    >>> Instant().step(None, 3)
    (3, None)
    """

    word: str = "instant"

    def start(self) -> Any:
        return None

    def step(self, state: object, increment: object) -> tuple[Any, Any]:
        return increment, state

    def step_many(self, state: object, increments: Vector) -> tuple[Vector, Any]:
        return increments, state

    def respond(self, sums: Vector) -> Vector:
        return np.diff(sums, prepend=0.0)


@explain_wrong_calls
@dataclass(frozen=True)
class Sliding(Readout):
    """The sum of the last `steps` steps; as many numbers are remembered.

    >>> window, state = Sliding(2), Sliding(2).start()
    >>> for x in (1, 10, 100):
    ...     value, state = window.step(state, x)
    >>> value
    110
    """

    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", positive_integer("a sliding window", self.steps))

    @property
    def word(self) -> str:
        return f"sliding over {self.steps} steps"

    def start(self) -> Any:
        return ()

    def step(self, state: Any, increment: Any) -> tuple[Any, Any]:
        kept = (*state, increment)[-self.steps :]
        return sum(kept[1:], kept[0]), kept

    def step_many(self, state: object, increments: Vector) -> tuple[Vector, Any]:
        return _step_one_by_one(self, state, increments)

    def respond(self, sums: Vector) -> Vector:
        late = np.zeros_like(sums)
        late[self.steps :] = sums[: max(0, sums.size - self.steps)]
        return sums - late


@explain_wrong_calls
@dataclass(frozen=True)
class Decayed(Readout):
    """The sum of all steps so far, each `factor` times as heavy as the next.

    >>> Decayed(0.5).step(8.0, 1.0)[0]
    5.0
    """

    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", strict_probability("the factor of decay", self.factor))

    @property
    def word(self) -> str:
        return f"decayed by {self.factor:g} a step"

    def start(self) -> Any:
        return 0.0

    def step(self, state: Any, increment: Any) -> tuple[Any, Any]:
        total = self.factor * state + increment
        return total, total

    def step_many(self, state: object, increments: Vector) -> tuple[Vector, Any]:
        return _step_one_by_one(self, state, increments)

    def respond(self, sums: Vector) -> Vector:
        from scipy.signal import lfilter  # noqa: PLC0415  (planning alone needs it)

        return np.asarray(lfilter([1.0], [1.0, -self.factor], np.diff(sums, prepend=0.0)))


def _step_one_by_one(readout: Readout, state: object, increments: Vector) -> tuple[Vector, Any]:
    found = []
    for increment in increments.tolist():
        value, state = readout.step(state, increment)
        found.append(value)
    return np.array(found), state


def readout_of(release: object) -> Readout:
    """The readout that was asked for by a word or by an object."""
    if isinstance(release, Running | Instant | Sliding | Decayed):
        return release
    if release in ("running", "instant"):
        return Running() if release == "running" else Instant()
    raise InvalidParameter("streams.unknown_readout", parameter="release")
