"""Bounding, clocks, windows, readouts, smoothing, epochs: what a stream keeps of its rows and makes of its answers."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mosha
from mosha import Person, Reading, Window, errors, noise, streams
from mosha.mechanisms import Count
from mosha.streams import Clock, Epochs, group, rising, smooth
from mosha.streams.bounding import exact_step
from mosha.streams.presence import presence_of
from mosha.streams.w_event import _share, adaptive


def counted(unit: Any, steps: Any, *, apart: Any = 1, horizon: Any = 100) -> Any:
    presence, memory, found = presence_of(unit, horizon, apart), {}, []  # type: ignore[var-annotated]
    for time, who in enumerate(steps):
        exact, memory = exact_step(Count(), presence, {"who": list(who), "v": [1] * len(who)}, time, memory)
        found.append(int(exact[0]))
    return found


def test_a_person_counts_once_a_step_and_no_more_than_declared() -> None:
    assert counted(Person("who", at_most=2), ["aab", "a", "ab", "b"]) == [2, 1, 1, 0]
    assert counted(Person("who"), ["aa", "a", "ab"]) == [1, 1, 2]
    assert counted(Window("who", 3), ["aa", "a", "ab"]) == [1, 1, 2]
    assert counted(Person("who", at_most=9), ["a", "a", "a", "ab", "b"], apart=3) == [1, 0, 0, 2, 0]


def test_what_is_kept_of_one_person_does_not_depend_on_others() -> None:
    rng = np.random.default_rng()
    for _ in range(20):
        steps = ["".join(rng.choice(list("abcd"), size=rng.integers(0, 6))) for _ in range(12)]
        without = ["".join(who for who in step if who != "a") for step in steps]
        alone = ["".join(who for who in step if who == "a") for step in steps]
        unit = Person("who", at_most=3)
        parts = [counted(unit, part, apart=2) for part in (steps, without, alone)]
        assert parts[0] == [x + y for x, y in zip(parts[1], parts[2], strict=True)]
        assert sum(parts[2]) <= 3


def test_readings_that_are_no_numbers_add_nothing_and_break_nothing() -> None:
    stream = streams.total(unit=Reading(), horizon=3, between=(0, 10), epsilon=1e6)
    state = stream.init()
    for batch in ([float("nan"), 3.0], [float("inf"), -5], ["x", None, 4]):
        value, state = stream.step(state, batch, None, noise.SeededRandom(1))
    assert value == pytest.approx(3 + 10 + 0 + 4, abs=0.1)


def test_data_frames_arrays_and_lists_are_batches() -> None:
    stream = streams.counter(unit=Reading(), horizon=3, epsilon=1e3, release="instant")
    state = stream.init()
    for batch in ([1, 2], np.arange(2), pd.DataFrame({"v": [1, 2]})):
        value, state = stream.step(state, batch, None, noise.SeededRandom(1))
        assert value == 2


def test_the_same_randomness_gives_the_same_answers_and_other_randomness_others() -> None:
    stream = streams.counter(unit=Reading(), horizon=8, rho=0.5)

    def answers(seed: Any) -> Any:
        state, rng, found = stream.init(), noise.SeededRandom(seed), []
        for _ in range(8):
            value, state = stream.step(state, [1], None, rng)
            found.append(value)
        return found

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_a_run_ends_with_its_horizon_and_survives_an_unreadable_batch(tmp_path: Path) -> None:
    account = mosha.Ledger(str(tmp_path / "book.db")).account("a", unit=Person("who"), rho=1)
    with account.open(streams.counter(unit=Person("who"), horizon=2, rho=0.5)) as run:
        with pytest.raises(errors.DataError):
            run.step({"else": [1]})
        run.step({"who": ["a"], "v": [1]})
        run.step({"who": [], "v": []})
        with pytest.raises(errors.HorizonExceeded):
            run.step({"who": [], "v": []})


def test_means_stay_within_their_range_and_near_the_truth() -> None:
    stream = streams.mean(unit=Reading(), horizon=4, between=(10, 30), rho=1e3)
    state = stream.init()
    for _ in range(4):
        value, state = stream.step(state, [12.0, 18.0, 99.0], None, noise.secure())
    assert value == pytest.approx((12 + 18 + 30) / 3, abs=0.5)
    empty, _ = stream.step(stream.init(), [], None, noise.secure())
    assert 10 <= empty <= 30


def test_a_clock_waits_for_late_rows_drops_later_ones_and_publishes_empty_steps() -> None:
    clock = Clock(start="2026-01-01", every="1h", column="t", lateness="30min")
    at = lambda hour, minute=0: dt.datetime(2026, 1, 1, hour, minute, tzinfo=dt.UTC)
    clock.add(pd.DataFrame({"t": [at(0, 5), at(2, 5)], "id": [1, 2]}))
    assert clock.close_until(at(1, 20)) == []
    clock.add({"t": [at(0, 50)], "id": [3]})
    assert [batch["id"] for batch in clock.close_until(at(3, 30))] == [[1, 3], [], [2]]
    clock.add([{"t": at(0, 7), "id": 4}, {"t": "nonsense", "id": 5}, {"t": at(3, 7), "id": 6}])
    assert clock.close_until(at(0)) == []  # time going backwards closes nothing
    assert clock.close_next()["id"] == [6]


@pytest.mark.parametrize("every", ["soon", "0s", "-1h", 0, float("nan")])
def test_a_step_has_a_length(every: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        Clock(start=0, every=every, column="t")


@pytest.mark.parametrize("method", ["distribution", "absorption"])
def test_no_window_ever_spends_more_than_half_of_epsilon_on_publishing(method: str) -> None:
    rng = np.random.default_rng()
    for steps in (1, 2, 5, 9):
        measured = adaptive(unit=Window("who", steps), epsilon=1, method=method, horizon=200)  # type: ignore[arg-type]
        state, spent = measured.init(), []
        for _ in range(60):
            crowd = np.arange(int(rng.integers(0, 150)) if rng.random() < 0.4 else 5)
            _, state = measured.step(state, {"who": crowd, "v": crowd}, None, noise.secure())
            spent.append(state.spent[-1])
        sums = [sum(spent[i : i + steps]) for i in range(len(spent))]
        assert max(sums) <= 1 << 39
        assert max(sums) > 0
        assert _share(method, measured.init(), steps) <= 1 << 39


def test_adaptive_windows_are_taken_only_where_they_promise_a_gain() -> None:
    unit = Window("who", 48)
    assert streams.window(unit=unit, epsilon=1).name == "window(Count)"
    assert streams.window(unit=unit, epsilon=1, changes=40).name == "window(Count)"
    assert streams.window(unit=unit, epsilon=1, changes=3).name == "absorption(Count)"
    with pytest.raises(errors.InvalidParameter):
        streams.window(unit=Reading(), epsilon=1)  # type: ignore[arg-type]


def test_a_quiet_stream_is_followed_better_by_absorption() -> None:
    """Mean error on a constant crowd over 3,000 steps: 34 against 48, 9 deviations of the difference apart."""
    unit = Window("who", 48)
    crowd = {"who": np.arange(10), "v": np.zeros(10)}

    def error(measured: Any) -> Any:
        state, found = measured.init(), []
        for _ in range(3000):
            value, state = measured.step(state, crowd, None, noise.secure())
            found.append(abs(value - 10))
        return np.mean(found[100:])

    assert error(streams.window(unit=unit, epsilon=1, changes=1)) < error(streams.window(unit=unit, epsilon=1))


def test_smoothing_comes_nearer_to_the_truth_and_its_band_holds() -> None:
    """False alarm below 1e-9: coverage of 2000 correlated steps within [0.85, 1], error half of that of the noise."""
    rng = np.random.default_rng()
    truth = np.cumsum(rng.normal(0, 0.5, 2000))
    seen = truth + rng.normal(0, 10, 2000)
    for online in (True, False):
        band = smooth(seen, 10.0, online=online)
        low, high = band.interval(3.0)
        assert np.mean((truth >= low) & (truth <= high)) > 0.85
        assert np.sqrt(np.mean((band.values - truth) ** 2)) < 5  # noqa: PD011
    assert np.mean(np.abs(group(np.repeat([0.0, 50.0], 200) + rng.normal(0, 1, 400), 1.0).values[:200])) < 0.5  # noqa: PD011


def test_a_running_count_never_falls_after_ordering() -> None:
    rng = np.random.default_rng()
    truth = np.arange(300.0)
    seen = truth + rng.normal(0, 20, 300)
    risen = rising(seen).values  # noqa: PD011
    assert np.all(np.diff(risen) >= 0)
    assert np.sum((risen - truth) ** 2) <= np.sum((seen - truth) ** 2)
    for wrong in ([], [float("nan")], [[1.0]], "abc", None, [1.0, "x"], object(), {"a": 1}, [10**400]):
        for method in (smooth, group, rising):
            with pytest.raises(errors.InvalidParameter):
                method(wrong, 1.0)
    with pytest.raises(errors.InvalidParameter):
        smooth([1.0, 2.0], "wide")


def test_only_public_names_are_offered() -> None:
    assert dir(streams) == sorted(streams.__all__)


def test_epochs_double_are_paid_as_they_start_and_stop_when_nothing_is_left(tmp_path: Path) -> None:
    account = mosha.Ledger(str(tmp_path / "book.db")).account("a", unit=Reading(), epsilon=2)
    door = Epochs(account, lambda steps: streams.counter(unit=Reading(), horizon=steps, epsilon=1), first=2)
    assert account.spent == 0
    values = [door.step([1] * 1000).value for _ in range(6)]
    assert door.epoch == 1
    assert account.spent == pytest.approx(2)
    assert values[-1] == pytest.approx(6000, abs=1000)  # noise of scale below 20: never
    with pytest.raises(errors.BudgetExceeded):
        door.step([1])
    with pytest.raises(errors.InvalidParameter):
        door.step(streams.Batches([[1], [1]]))
