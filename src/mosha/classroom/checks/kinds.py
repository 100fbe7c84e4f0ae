"""The ways an answer can be judged. Each yields what it found; nothing yielded means nothing was found.

A correct answer is called wrong with probability at most 1e-9: attacks have that confidence, averages are compared at
seven standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mosha.audit import attack
from mosha.audit.reporting.outcome import Outcome
from mosha.core.guarantee import Approx, Pure
from mosha.core.language import say

__all__ = [
    "Finding",
    "Function",
    "attack_answer",
    "compare_mean",
    "compare_numbers",
    "compare_share",
    "compare_values",
    "try_neighbors",
]

Function = Callable[..., Any]
CONFIDENCE = 1 - 1e-9
RUNS = 10_000
ERRORS = 7.0  # standard errors: a correct average is outside with probability below 1e-9
_SHOWN = 160  # letters of an input or an output that a sentence shows


@dataclass(frozen=True)
class Finding:
    """What is wrong with an answer: a `code`, and the numbers (`fields`) that show it.

    >>> Finding("classroom.wrong", {"expected": 1}).to_dict()["code"]
    'classroom.wrong'
    """

    code: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        """The sentence, in the reader's language."""
        return say(f"classroom.found_{self.code}", **self.fields)

    def to_dict(self) -> dict[str, object]:
        """The finding as plain data."""
        return {"code": self.code, "sentence": str(self), **self.fields}


class _AnswerError(Exception):
    """The answer raised an error."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def judge(check: Callable[[Function], Iterator[Finding]], answer: Function) -> tuple[Finding, ...]:
    """Everything that a check finds in an answer; an answer that raises is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check(_watch(answer)))
    except _AnswerError as stopped:
        found.append(stopped.finding)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):  # what came back has another shape
        found.append(Finding("shape"))
    return tuple(found)


def _watch(answer: Function) -> Function:
    def call(*inputs: object) -> Any:
        try:
            result = answer(*inputs)
        except Exception as error:
            raise _AnswerError(
                Finding("error", {"inputs": show(inputs), "kind": type(error).__name__, "message": str(error)})
            ) from error
        if result is None or result is ...:
            raise _AnswerError(Finding("nothing", {"inputs": show(inputs)}))
        return result

    return call


def show(value: object) -> str:
    """A value as a sentence shows it: floats rounded, long ones cut."""
    text = _round(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _round(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray):
        return _round(value.tolist())
    if isinstance(value, list | tuple):
        inner = ", ".join(_round(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def compare_numbers(
    answer: Function, reference: Function, cases: Iterable[Sequence[object]], *, tolerance: float = 1e-6
) -> Iterator[Finding]:
    """Compare numbers, or lists of numbers, with those of the reference; the first that differs is told."""
    for case in cases:
        got, expected = answer(*case), reference(*case)
        try:
            close = bool(
                np.shape(got) == np.shape(expected)
                and np.allclose(
                    np.asarray(got, dtype=float), np.asarray(expected, dtype=float), rtol=tolerance, atol=1e-12
                )
            )
        except (TypeError, ValueError):
            close = False
        if not close:
            yield Finding("number", {"inputs": show(tuple(case)), "got": show(got), "expected": show(expected)})
            return


def compare_values(answer: Function, reference: Function, cases: Iterable[Sequence[object]]) -> Iterator[Finding]:
    """Compare values that are right or wrong with those of the reference; the first that differs is told."""
    for case in cases:
        got, expected = answer(*case), reference(*case)
        if got != expected:
            yield Finding("value", {"inputs": show(tuple(case)), "got": show(got), "expected": show(expected)})
            return


def attack_answer(
    run: Callable[[Any], Any], neighbors: tuple[Any, Any], *, epsilon: float, delta: float = 0.0, runs: int = RUNS
) -> Iterator[Finding]:
    """Attack a mechanism on two neighbors; tell how much it shows at least, and by which event."""
    claim = Approx(epsilon, delta) if delta else Pure(epsilon)
    for data in neighbors:
        run(data)  # an answer that raises is told as such: its error names the data, which would look like a leak
    verdict = attack(run, neighbors=neighbors, claim=claim, runs=runs, confidence=CONFIDENCE)
    if verdict.outcome is Outcome.BROKEN and verdict.witness is not None:
        yield Finding(
            "leak",
            {
                "claimed": show(epsilon),
                "shown": f"{math.floor(verdict.lower * 100) / 100:.2f}",
                "first": show(neighbors[0]),
                "second": show(neighbors[1]),
                "event": verdict.witness.event,
            },
        )


def compare_mean(
    draw: Callable[[], float],
    expected: float,
    *,
    runs: int = 4000,
    slack: float = 0.0,
    what: str = "mean",
    place: str = "",
) -> Iterator[Finding]:
    """Compare the average of many draws with what it should be, at seven standard errors plus `slack`.

    `place` is what is averaged, as code that the reader can try.
    """
    drawn = np.array([float(draw()) for _ in range(runs)])
    average, error = float(drawn.mean()), float(drawn.std(ddof=1)) / math.sqrt(runs)
    if not abs(average - expected) <= ERRORS * error + slack:
        named: dict[str, object] = {"place": place} if place else {}
        yield Finding(what, {**named, "got": show(average), "expected": show(expected), "runs": runs})


def compare_share(
    answer: Function, case: Sequence[object], wanted: object, expected: float, *, runs: int = 4000, slack: float = 0.0
) -> Iterator[Finding]:
    """Compare how often an answer comes with how often it should, at seven standard errors plus `slack`."""
    for found in compare_mean(lambda: float(answer(*case) == wanted), expected, runs=runs, slack=slack, what="share"):
        yield Finding("share", {**found.fields, "inputs": show(tuple(case)), "wanted": show(wanted)})


def try_neighbors(
    statistic: Callable[[Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    allowed: float,
    order: float = 1,
) -> Iterator[Finding]:
    """Measure how far the answer moves between neighbors; the pair that moves it most is told if it is too far."""
    worst, where = 0.0, None
    for first, second in pairs:
        one, two = np.asarray(statistic(first), dtype=float), np.asarray(statistic(second), dtype=float)
        moved = math.inf if one.shape != two.shape else float(np.linalg.norm((one - two).ravel(), order))
        if not moved <= worst:
            worst, where = (math.inf if math.isnan(moved) else moved), (first, second)
    if where is not None and worst > allowed * (1 + 1e-9):
        yield Finding(
            "moves", {"first": show(where[0]), "second": show(where[1]), "moved": show(worst), "allowed": show(allowed)}
        )
