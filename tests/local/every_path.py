"""The exact law of what a device draws: every path through its choices, each with its probability."""

from fractions import Fraction
from typing import Any, NoReturn

import pytest

PROTOCOLS = ("device", "k_ary", "unary", "hadamard", "hashing", "projective", "window", "numeric")
MODULES = (*(f"protocols.{name}" for name in PROTOCOLS), "several")


class Script:
    """Answers `below` from a list of choices, and notes where more of them are possible."""

    def __init__(self, fixed: Any) -> None:
        self.fixed, self.choices, self.bounds, self.place = fixed, [], [], 0  # type: ignore[var-annotated]

    def below(self, bound: Any, rng: Any) -> Any:
        if bound in self.fixed:
            return self.fixed[bound]
        if self.place == len(self.choices):
            self.choices.append(0)
            self.bounds.append(bound)
        assert self.bounds[self.place] == bound
        self.place += 1
        return self.choices[self.place - 1]

    def advance(self) -> bool:
        """To the next path; False after the last one."""
        del self.choices[self.place :], self.bounds[self.place :]
        self.place = 0
        while self.choices and self.choices[-1] + 1 == self.bounds[-1]:
            self.choices.pop()
            self.bounds.pop()
        if not self.choices:
            return False
        self.choices[-1] += 1
        return True


def law_of(draw: Any, monkeypatch: pytest.MonkeyPatch, *, fixed: Any = (), longest: Any = 64) -> Any:
    """report -> probability; paths that grow longer than `longest` choices are left out."""
    script, law = Script(dict(fixed)), {}  # type: ignore[var-annotated]
    for module in MODULES:
        monkeypatch.setattr(f"mosha.local.{module}.draw_below", script.below, raising=False)
    while True:
        try:
            report = draw(Limited(script, longest))
        except TooLong:
            report = None
        weight = Fraction(1)
        for bound in script.bounds[: script.place]:
            weight /= bound
        if report is not None:
            law[report] = law.get(report, 0) + weight
        if not script.advance():
            return law


class TooLong(Exception):
    pass


class Limited:
    """A generator that is never read: `below` is answered by the script. It only stops what goes on for ever."""

    def __init__(self, script: Any, longest: Any) -> None:
        original = script.below.__func__

        def below(bound: Any, rng: Any) -> Any:
            if script.place >= longest:
                raise TooLong
            return original(script, bound, rng)

        self.below = below
        self.secure = True

    def bytes(self, n: Any) -> NoReturn:
        raise AssertionError("everything is drawn by `below`")
