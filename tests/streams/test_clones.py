"""A service that is cloned together with its ledger has noise of its own, or is refused.

Volumes are cloned, containers restored, machines snapshotted. Where both copies went on with one noise, the difference
of what they publish would be the difference of their data, exactly.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import errors, noise
from mosha.federated.plans.correlated_rounds import CorrelatedRounds
from mosha.streams import alarm, counter, histogram, mean, serve
from mosha.streams.noise.tree import SignedTree
from mosha.streams.stream import new_tape
from mosha.streams.w_event import adaptive

EVENT, WINDOW = mosha.Reading(), mosha.Window("who", 4)
HORIZON = 64


def event(**options: Any) -> Any:
    return counter(unit=EVENT, horizon=HORIZON, **options)


MEASUREMENTS = {
    "BLT": lambda: event(rho=0.5, mechanism="BLT"),
    "the planner's choice": lambda: event(rho=0.5),
    "a long horizon": lambda: counter(unit=EVENT, horizon=1 << 20, rho=0.5),
    "bands": lambda: event(rho=0.5, mechanism="Toeplitz"),
    "each step by itself": lambda: event(rho=0.5, mechanism="per-step"),
    "binary tree": lambda: event(rho=0.5, mechanism="binary"),
    "several keys": lambda: histogram(unit=EVENT, horizon=HORIZON, keys=["a", "b"], rho=0.5),
    "means": lambda: mean(unit=EVENT, horizon=HORIZON, between=(0, 10), rho=0.5),
}


def cloned(tmp_path: Path, make: Any, unit: Any = EVENT, steps: int = 3, rows: Any = (1,) * 10) -> tuple[Any, ...]:
    """Two folders with one history of some steps, and what serves each."""

    def serving(folder: Any, **options: Any) -> Any:
        account = mosha.Ledger(str(folder / "book.db")).account("door", unit=unit, rho=9.0)
        return serve(account, make(), name="door", state=folder / "state", **options)

    original, clone = tmp_path / "original", tmp_path / "clone"
    original.mkdir()
    with serving(original) as service:
        for _ in range(steps):
            service.step(list(rows) if unit is EVENT else {"who": list(rows), "value": [1.0] * len(rows)})
    shutil.copytree(original, clone)
    return lambda: serving(original), lambda **options: serving(clone, **options)


@pytest.mark.parametrize("make", MEASUREMENTS.values(), ids=MEASUREMENTS)
def test_a_clone_has_noise_of_its_own_from_its_first_step_on(tmp_path: Path, make: Any) -> None:
    one, other = cloned(tmp_path, make, rows=["a"] * 10 if make is MEASUREMENTS["several keys"] else [1] * 10)
    with one() as first, other() as second:
        rows = ["a", "b"] if make is MEASUREMENTS["several keys"] else [1, 1]
        differences = [np.atleast_1d(first.step(rows).value - second.step(rows).value) for _ in range(6)]
    # each is a difference of two independent draws with more than a thousand steps of deviation: equal with
    # a chance below 1e-3, two of them below 1e-6, four of them below 1e-12
    assert sum(not difference.any() for difference in differences) < 4
    assert len({difference.tobytes() for difference in differences}) > 2


def test_the_difference_of_two_clones_does_not_show_one_event(tmp_path: Path) -> None:
    one, other = cloned(tmp_path, MEASUREMENTS["the planner's choice"])
    with one() as first, other() as second:
        shown = [first.step([1] * (50 + extra)).value - second.step([1] * 50).value for extra in (0, 1, 0, 1)]
    assert np.ptp(shown) > 1e-3
    assert not np.allclose(np.diff([0, *shown]), [0, 1, -1, 1], atol=1e-3)


def test_alarms_and_adaptive_windows_draw_anew_too(tmp_path: Path) -> None:
    """Answers of an alarm say little: what is looked at is where their noise comes from."""
    seen = []

    class Watched:
        secure = True

        def bytes(self, n: Any) -> Any:
            seen.append(n)
            return noise.secure().bytes(n)

    bell = alarm(unit=EVENT, threshold=5, alarms=3, horizon=HORIZON, rho=0.1)
    for measured, data in ((bell, [1] * 4), (adaptive(unit=WINDOW, epsilon=1, method="absorption"), {"who": ["x"]})):
        seen.clear()
        measured.step(measured.init(), data, None, Watched())
        assert seen


def test_a_copy_of_a_tree_is_refused_until_somebody_says_that_it_was_moved(tmp_path: Path) -> None:
    def make() -> Any:
        return event(epsilon=1.0)

    assert isinstance(make().plan.mechanism, SignedTree)
    one, other = cloned(tmp_path, make)
    with one() as first:  # where it was, it goes on
        first.step([1])
    with pytest.raises(errors.StateRefused, match="moved=True"):
        other()
    with other(moved=True) as second:
        second.step([1])
    with other() as again:  # and is at home there from now on
        assert again.taken == 4


@pytest.mark.parametrize("horizon", [500, 1 << 20])
@pytest.mark.parametrize("stops", [[1], [63, 64, 65], [200, 201, 300]])
def test_a_stream_that_is_taken_up_again_goes_on_with_the_past_of_its_noise(horizon: Any, stops: Any) -> None:
    """The noise of all processes together is lifted as if one had drawn it: nothing is forgotten, nothing added."""
    plan = counter(unit=EVENT, horizon=horizon, rho=0.5, mechanism="BLT").plan
    state, lifted, drawn, start = plan.mechanism.start(1), [], [], 0
    for stop in [*stops, 450]:
        tape = new_tape(plan, lambda _: noise.secure())
        for time in range(start, stop):
            _, state = plan.mechanism.step(state, 0, tape)
            lifted.append(state.noise)
            drawn.append(int(tape.block(time // tape.size)[time % tape.size, 0]))
        state, start = plan.mechanism.settle(state, tape), stop
        assert state.since == stop == state.time
    exact, total, _ = plan.mechanism._lifting._lift_exactly(drawn, 0, [0] * len(plan.mechanism.buffers))
    assert max(abs(one - other) for one, other in zip(lifted, exact, strict=True)) <= 1
    assert state.total == total


def test_a_state_of_the_last_version_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise was a function of the key: that of the past is made again once, and the rest is drawn anew."""
    from mosha.streams.service import serving as module

    one, other = cloned(tmp_path, MEASUREMENTS["a long horizon"], steps=5)
    with other() as watched:
        durable = watched._durable
        block = new_tape(durable.measurement.plan, durable._past_source).block(0)
        exact = durable.measurement.plan.mechanism._lifting._lift_exactly(block[:5, 0], 0, [0] * 7)[0]
        assert durable.state.inner.noise == exact[-1]

    saved = module.Checkpoint.save  # type: ignore[attr-defined]
    monkeypatch.setattr(
        module.Checkpoint,  # type: ignore[attr-defined]
        "save",
        lambda self, content: saved(self, {k: v for k, v in content.items() if k != "seed"}),
    )
    with one() as old:
        attach = lambda state, plan, rng: module.replace(state, tape=new_tape(plan, old_source))  # type: ignore[attr-defined, has-type]
        monkeypatch.setattr(old._durable, "_attach_tape", attach)
        old_source = lambda block: noise.KeyedRandom(
            old._durable._checkpoint.noise_key, old._durable.charter, old._durable.payment, "block", block
        )
        old.step([1])
    monkeypatch.undo()
    with one() as new:
        assert new._durable._keyed
        new.step([1])
        assert not new._durable._keyed
        assert new.taken == 7


def test_federated_rounds_mark_fresh_noise_in_a_clone() -> None:
    class Sums:
        width = 3

    one, other = (CorrelatedRounds(Sums(), 4, 1000, b"s" * 32) for _ in range(2))  # type: ignore[arg-type]
    first, second = one._noise(noise.secure()), other._noise(noise.secure())
    assert first[1]["mark"] != second[1]["mark"]
    assert not np.array_equal(first[0], second[0])  # equal with a chance below 1e-9
