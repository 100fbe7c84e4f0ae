"""Lifted noise by the block is what single steps give, looks at the past alone, and keeps its bound for any noise."""

import random
from typing import Any

import numpy as np
import pytest

from mosha import Reading, noise
from mosha.streams import counter, histogram, series
from mosha.streams.noise.blt import design
from mosha.streams.noise.exact_toeplitz import LiftedToeplitz
from mosha.streams.noise.exact_toeplitz_blocks import LIMIT, SPAN, Lifting
from mosha.streams.service.state_text import from_plain, to_plain
from mosha.streams.stream import new_tape

PLANS = [counter(unit=Reading(), horizon=horizon, rho=0.5).plan for horizon in (500, 1 << 20, 1 << 32)]


def lifting(horizon: Any, buffers: Any) -> Any:
    return Lifting(*LiftedToeplitz(design(horizon, buffers), horizon, 1, 1 << 20)._coefficients)


LIFTINGS = [lifting(300, 2), lifting(1 << 20, 7), lifting(1 << 32, 7), lifting(1 << 40, 7)]
LEVELS = {"small": 1 << 10, "usual": 1 << 30, "nearly too large": LIMIT, "too large": LIMIT << 6}


def drawn(level: Any, steps: Any = 4 * SPAN, width: Any = 1) -> Any:
    return np.random.default_rng().integers(1 - level, level, (steps, width))


def exactly(lift: Any, column: Any, total: Any = 0, buffers: Any = None) -> Any:
    count = len(lift._betas)
    return lift._lift_exactly(column, total, list(buffers or [0] * count))


@pytest.mark.parametrize("lift", LIFTINGS)
@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_both_roads_agree_to_one_step_for_noise_of_any_size(lift: Any, level: Any) -> None:
    z = drawn(level)
    lifted, total, buffers = lift.block(z, 0, (0,) * len(lift._betas))
    exact, exact_total, exact_buffers = exactly(lift, z[:, 0])
    assert total == exact_total
    assert np.abs(lifted[:, 0].astype(object) - np.array(exact, object)).max() <= 1
    assert all(abs(one - other) < 1 << 40 for one, other in zip(buffers, exact_buffers, strict=True))  # of 2**60


@pytest.mark.parametrize("lift", LIFTINGS)
@pytest.mark.parametrize("place", [0, 1, SPAN - 1, SPAN, 2 * SPAN + 7])
@pytest.mark.parametrize("sudden", [5, LIMIT - 1, -LIMIT, 1 << 70], ids=["5", "limit - 1", "-limit", "2**70"])
def test_later_noise_changes_no_earlier_step(lift: Any, place: Any, sudden: Any) -> None:
    """Were it not so, the noise would not be explained step by step, and the proof would fail."""
    z = drawn(1 << 30).astype(object)
    changed = z.copy()
    changed[place, 0] = sudden
    start = (0, (0,) * len(lift._betas))
    before, after = (lift.block(noise_, *start)[0][:, 0].astype(object) for noise_ in (z, changed))
    assert list(before[:place]) == list(after[:place])
    assert after[place] - before[place] == changed[place, 0] - z[place, 0]
    exact = exactly(lift, changed[:, 0])[0]
    assert max(abs(int(a) - b) for a, b in zip(after, exact, strict=True)) <= 1


@pytest.mark.parametrize("lift", LIFTINGS)
def test_a_past_that_is_too_large_takes_the_exact_road_at_once(lift: Any) -> None:
    past = tuple((3 + i) << 120 for i in range(len(lift._betas)))
    z = drawn(1 << 30)
    lifted, _, buffers = lift.block(z, 7, past)
    exact, _, ends = exactly(lift, z[:, 0], 7, past)
    assert [int(v) for v in lifted[:, 0]] == exact
    assert list(buffers) == ends


def test_a_coordinate_is_lifted_by_itself() -> None:
    lift, z = LIFTINGS[1], drawn(1 << 30, width=3).astype(object)
    z[70, 1] = 1 << 80
    zeros = np.zeros(3, object)
    together, totals, _ = lift.block(z, zeros, (zeros,) * len(lift._betas))
    for c in range(3):
        alone, total, _ = lift.block(z[:, c : c + 1], 0, (0,) * len(lift._betas))
        assert list(together[:, c]) == list(alone[:, 0])
        assert totals[c] == total


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.horizon))
def test_chunks_give_the_very_numbers_that_steps_give(plan: Any) -> None:
    seeds = [noise.KeyedRandom(b"k" * 32, "chunks", block) for block in range(4)]
    again = [noise.KeyedRandom(b"k" * 32, "chunks", block) for block in range(4)]
    data = np.random.default_rng().integers(-3, 1 << 20, min(plan.horizon, 9000))
    one, other = new_tape(plan, seeds.__getitem__), new_tape(plan, again.__getitem__)
    state, singles = plan.mechanism.start(1), []
    for count in data.tolist():
        value, state = plan.mechanism.step(state, count, one)
        singles.append(value)
    moving, chunks = plan.mechanism.start(1), []
    for part in np.array_split(data, 7):
        values, moving = plan.mechanism.step_many(moving, part, other)
        chunks += values.tolist()
    assert chunks == singles
    assert moving == state


def test_wide_streams_draw_fewer_steps_ahead() -> None:
    plan = histogram(unit=Reading(), horizon=1 << 20, keys=range(50), rho=0.5).plan
    assert new_tape(plan, lambda _: noise.secure()).size == 320


@pytest.mark.parametrize("size", [2**33, 2**40 - 1, 2**40 + 5])
@pytest.mark.parametrize("width", [1, 3])
def test_the_compiled_spans_give_the_same_whole_numbers(size: Any, width: int) -> None:
    lifting, start = LIFTINGS[1], PLANS[1].mechanism.start(width)
    plainly, quickly = (start.total, start.buffers), (start.total, start.buffers)
    rng = np.random.default_rng()
    for turn in range(6):
        drawn = rng.integers(-size, size, (640, width), endpoint=True) if turn % 3 else np.full((640, width), size)
        lifted, *plainly = lifting.block(drawn, *plainly)
        found, *quickly = lifting.block(drawn, *quickly, hurry=True)
        assert np.array_equal(lifted, found)
        assert repr(plainly) == repr(quickly)


def test_compiled_digits_are_the_number_and_round_like_it() -> None:
    compiled = pytest.importorskip("mosha.streams.noise.exact_toeplitz_compiled")
    for bits in (1, 20, 52, 53, 54, 55, 60, 61, 64, 100, 119, 121, 139):
        for _ in range(60):
            number = random.getrandbits(bits)
            if bits > 54:  # near ties
                number = (number >> (bits - 54) | 1) << (bits - 54)
            for near in (number, -number, number + 1, number - 1):
                digits = np.array(compiled.to_digits(near))
                assert compiled.from_digits(digits) == near
                assert compiled.round_to_float(digits) == float(near)
                decay = random.getrandbits(160)
                compiled.decay(digits, np.array(compiled.decay_digits(decay)), np.empty(16, np.int64))
                assert compiled.from_digits(digits) == near * decay >> 160


@pytest.mark.parametrize("largest", [5, 1 << 30, 1 << 62])
def test_many_series_in_64_bits_are_those_of_whole_numbers_without_end(largest: Any) -> None:
    plan = series(unit=Reading(), horizon=500, keys=range(40), key="k", between=(0, 4), column="v", rho=1).plan
    mechanism, generator = plan.mechanism, np.random.default_rng()
    assert isinstance(mechanism, LiftedToeplitz)
    tape, state = new_tape(plan, lambda _: noise.secure()), mechanism.start(40)
    for step in range(70):
        data = generator.integers(-largest, largest, 40)
        weight, worth = mechanism._weights(step)
        before = state.noise
        estimate, state = mechanism.step(state, data, tape)
        rounded = [(x * weight + (1 << 39)) >> 40 for x in data.tolist()]
        moved = [int(now) - int(past) for now, past in zip(state.noise, before, strict=True)]
        assert estimate.dtype == np.float64
        assert estimate.tolist() == [(r + m) * worth for r, m in zip(rounded, moved, strict=True)]
        state = from_plain(to_plain(state)) if step == 30 else state  # a state on disk keeps every digit
