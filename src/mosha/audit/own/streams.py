"""Mosha's own streams as the attacker meets them: whole runs, on neighbors that differ where the noise is thinnest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosha import streams as s
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.measurement import Measurement, Rng
from mosha.core.options import BanditMethod
from mosha.core.unit import Person, Reading, Window
from mosha.streams.bandit import ArmRule

__all__ = ["own_entries"]

EVENT = Reading()
PERSON = Person("who", at_most=2)
EVERY_STEP = Person("who")
WINDOW = Window("who", 2)
STEPS = 4


def own_entries() -> list[Entry]:
    """One entry or more for each factory of `mosha.streams`."""
    return [*_sums(), *_persons(), *_alarms(), *_bandits()]


def _entry(name: str, build: Any, proposals: Sequence[Proposal]) -> Entry:
    return Entry(f"streams: {name}", build, tuple(proposals), name.partition(":")[0], {"stream": True})


def _rows(*counts: int) -> list[list[float]]:
    return [[1.0] * count for count in counts]


def _events() -> list[Proposal]:
    """One event more at the first step, at the last, and beside a crowd."""
    return [
        Proposal("an event at the first step", _rows(1, 0, 0, 0), _rows(0, 0, 0, 0)),
        Proposal("an event at the last step", _rows(0, 0, 0, 1), _rows(0, 0, 0, 0)),
        Proposal("one of many", _rows(50, 51, 50, 50), _rows(50, 50, 50, 50)),
    ]


def _people(*steps: str) -> list[dict[str, list[Any]]]:
    return [{"who": list(present), "value": [1.0] * len(present)} for present in steps]


def _sums() -> list[Entry]:
    asked: dict[str, Any] = {"unit": EVENT, "horizon": STEPS}
    keyed = [
        Proposal("an event in one key", [["a"], [], [], []], [[], [], [], []]),
        Proposal("beside a crowd", [["a", "b"] * 9, ["b"], [], []], [["a", "b"] * 9, [], [], []]),
    ]
    return [
        _entry("counter: tree", lambda: s.counter(epsilon=1, mechanism="tree", **asked), _events()),
        _entry("counter: binary tree", lambda: s.counter(epsilon=1, mechanism="binary tree, 3", **asked), _events()),
        _entry("counter: Honaker", lambda: s.counter(epsilon=1, mechanism="Honaker", **asked), _events()),
        _entry("counter: Honaker, Gaussian", lambda: s.counter(rho=0.5, mechanism="Honaker", **asked), _events()),
        _entry("counter: square root", lambda: s.counter(rho=0.5, mechanism="square-root", **asked), _events()),
        _entry("counter: per step", lambda: s.counter(epsilon=1, mechanism="per-step Laplace", **asked), _events()),
        _entry("counter: buffers", lambda: s.counter(rho=0.5, mechanism="BLT", **asked), _events()),
        _entry(
            "counter: decayed", lambda: s.counter(rho=0.5, mechanism="BLT", release=s.Decayed(0.5), **asked), _events()
        ),
        _entry("total: buffers", lambda: s.total(rho=0.5, mechanism="BLT", between=(0, 1), **asked), _events()),
        _entry("mean: sliding", lambda: s.mean(rho=0.5, between=(0, 1), release=s.Sliding(2), **asked), _events()),
        _entry("histogram: buffers", lambda: s.histogram(rho=0.5, mechanism="BLT", keys=["a", "b"], **asked), keyed),
        _entry("histogram: tree", lambda: s.histogram(epsilon=1, mechanism="tree", keys=["a", "b"], **asked), keyed),
        _entry(
            "series: buffers",
            lambda: s.series(
                rho=0.5, mechanism="BLT", keys=["a", "b"], key="who", column="value", between=(0, 1), **asked
            ),
            [Proposal("a row of one series", _people("a", "", "", ""), _people("", "", "", ""))],
        ),
    ]


def _persons() -> list[Entry]:
    asked: dict[str, Any] = {"unit": PERSON, "horizon": STEPS}
    twice = [
        Proposal("a person at the first two steps", _people("pp", "p", "", ""), _people("", "", "", "")),
        Proposal("a person who comes too often", _people("xp", "xp", "xp", "xp"), _people("x", "x", "x", "x")),
    ]
    always = [Proposal("a person at every step", _people("p", "p", "p", "p"), _people("", "", "", ""))]
    apart = [Proposal("a person at steps apart", _people("p", "p", "p", "p"), _people("", "", "", ""))]
    return [
        _entry("counter: a person twice", lambda: s.counter(rho=0.5, mechanism="bands", **asked), twice),
        _entry("counter: a person twice, tree", lambda: s.counter(epsilon=1, mechanism="tree", **asked), twice),
        _entry(
            "counter: a person apart",
            lambda: s.counter(rho=0.5, mechanism="bands", unit=PERSON, horizon=STEPS, apart=2),
            apart,
        ),
        _entry(
            "counter: a person always",
            lambda: s.counter(rho=0.5, unit=EVERY_STEP, horizon=STEPS, mechanism="per-step"),
            always,
        ),
        _entry(
            "window: every step",
            lambda: s.window(unit=WINDOW, epsilon=1, horizon=STEPS),
            [Proposal("a person in one window", _people("", "p", "p", ""), _people("", "", "", ""))],
        ),
        _entry(
            "window: absorption",
            lambda: s.window(unit=Window("who", 16), epsilon=1, horizon=STEPS, changes=1),
            [Proposal("a person in one window", _people("p", "p", "p", "p"), _people("", "", "", ""))],
        ),
    ]


def _alarms() -> list[Entry]:
    return [
        _entry(
            "alarm: two alarms with gaps",
            lambda: s.alarm(unit=EVENT, threshold=1, alarms=2, horizon=STEPS, epsilon=1),
            _events()[:2],
        ),
        _entry(
            "alarm: a sliding sum, two thresholds",
            lambda: s.alarm(unit=EVENT, threshold=[1, 3], alarms=2, horizon=STEPS, epsilon=1, release=s.Sliding(2)),
            _events()[:2],
        ),
        _entry(
            "alarm: a person at every step, renewed thresholds",
            lambda: s.alarm(unit=EVERY_STEP, threshold=1, alarms=2, horizon=STEPS, rho=0.5),
            [Proposal("a person at every step", _people("p", "p", "p", "p"), _people("", "", "", ""))],
        ),
    ]


def _bandits() -> list[Entry]:
    """Rewards that differ in one person, who has two arms and others before and after."""
    pairs = [
        Proposal("the first reward", [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        Proposal("a reward in the middle", [0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]),
        Proposal("a reward out of range", [1e9, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]),
    ]
    return [
        _entry("Bandit: upper bounds", lambda: _play("ucb"), pairs),
        _entry("Bandit: Thompson", lambda: _play("thompson"), pairs),
    ]


def _play(method: BanditMethod) -> Measurement:
    """A bandit as whoever sees all of it: the arm that each person was offered, and the sums afterwards."""
    arms = ["a", "b"]
    stream = s.series(
        unit=EVENT, horizon=STEPS, keys=arms, key="arm", column="reward", between=(0, 1), epsilon=1, mechanism="tree"
    )

    def begin() -> tuple[ArmRule, Any]:
        return ArmRule(stream, len(arms), width=1.0, method=method), stream.init()

    def step(state: tuple[ArmRule, Any], reward: object, ask: object, rng: Rng) -> tuple[list[float], Any]:
        rule, inner = state
        arm = rule.choose()
        answer, following = stream.step(inner, {"arm": [arms[arm]], "reward": [reward]}, ask, rng)
        rule.counts[arm] += 1
        rule.sums = np.asarray(answer, np.float64)
        return [float(arm), *rule.sums.tolist()], (rule, following)

    return Measurement(
        unit=EVENT, event=stream.event, init=begin, step=step, horizon=STEPS, name="bandit", delta=stream.delta
    )
