"""Answers by the thousand."""

from typing import Any

from mosha.noise import secure


def answers(measurement: Any, data: Any, count: Any, *, ask: Any = None) -> list[Any]:
    """`count` first answers of independent runs on the same data."""
    rng = secure()
    return [measurement.step(measurement.init(), data, ask, rng)[0] for _ in range(count)]


def runs(measurement: Any, data: Any, count: Any) -> Any:
    """`count` independent runs, each the tuple of all its answers."""
    rng, found = secure(), []
    for _ in range(count):
        state, run = measurement.init(), []
        for _ in range(measurement.horizon):
            answer, state = measurement.step(state, data, None, rng)
            run.append(answer)
        found.append(tuple(run))
    return found
