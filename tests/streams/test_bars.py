"""Error bars of streams: worked out from the law of what is published, so neither too narrow nor too wide.

False alarm: every limit is a binomial tail of 1e-10.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import mosha
from mosha import streams
from mosha.core.errors import InvalidParameter
from mosha.streams import Decayed, Sliding
from mosha.streams.noise.blt import design
from mosha.streams.noise.laplace_sums import find_decayed_width, find_width, miss_probability
from mosha.streams.noise.tree import SignedTree
from mosha.streams.plan import StreamState
from mosha.streams.profile import profile_buffers
from mosha.streams.readout import Instant

SERIES, HORIZON = 1500, 60
KEYS = [f"k{i}" for i in range(SERIES)]
LEAST, MOST = binom.ppf(1e-10, SERIES, 0.95), binom.isf(1e-10, SERIES, 0.95)


def release_noise(release: Any, **price: Any) -> Any:
    """What is published about nobody, at every step, for many keys: noise alone, each key by itself."""
    unit = mosha.Reading()
    stream = streams.histogram(keys=KEYS, unit=unit, horizon=HORIZON, release=release, **(price or {"epsilon": 0.05}))
    assert stream.plan.law.noise == ("gaussian" if "rho" in price else "laplace")
    with mosha.Ledger.memory().account("bars", unit=unit, epsilon=8, delta=1e-3).open(stream) as run:
        return stream, [np.abs(run.step([]).value) for _ in range(HORIZON)]


@pytest.mark.parametrize("release", ["running", "instant"])
def test_bars_hold_as_often_as_they_say_at_every_step(release: str) -> None:
    stream, found = release_noise(release)
    for step in (1, 7, 30, HORIZON):
        width = stream.error_at(step, 0.95)
        covered = [np.sum(found[step - 1] <= width * factor) for factor in (0.5, 1, 2)]
        assert covered[0] < LEAST <= covered[1] <= MOST < covered[2]
    assert np.sum(found[-1] <= stream.forecast(0.95)[0]) >= LEAST


@pytest.mark.parametrize("mechanism", ["per-step", "tree"])
@pytest.mark.parametrize("release", ["instant", Sliding(7), Sliding(25)], ids=repr)
def test_bars_of_windows_hold_as_often_as_they_say(release: Any, mechanism: str) -> None:
    """Out of a tree there was one bar for all steps, up to four times too wide."""
    stream, found = release_noise(release, epsilon=0.05, mechanism=mechanism)
    for step in (1, 7, 8, 30, HORIZON):
        width = stream.error_at(step, 0.95)
        covered = [np.sum(found[step - 1] <= width * factor) for factor in (0.5, 1, 2)]
        assert covered[0] < LEAST <= covered[1] <= MOST < covered[2]
    assert np.sum(found[-1] <= stream.forecast(0.95)[0]) >= LEAST


@pytest.mark.parametrize(("base", "levels"), [(3, 4), (5, 3), (15, 2)])
def test_the_nodes_of_a_window_are_those_that_its_ends_do_not_share(base: int, levels: int) -> None:
    tree, most = SignedTree(base, levels), 400

    class Marks:
        def row(self, number: int) -> Any:
            return (np.arange(most) == number).astype(object)

    state, marks = tree.start(most), Marks()
    sums = [np.zeros(most, object)]
    for _ in range(min(tree.reach, 60)):
        change, state = tree.step(state, 0, marks)  # type: ignore[arg-type]
        sums.append(sums[-1] + change)
    table = np.array(sums, np.int64)
    for steps in (1, 2, 7, 20, 60):
        later = np.arange(len(table))
        earlier = np.maximum(later - steps, 0)
        used = np.abs(table[later] - table[earlier])
        assert used.max() <= 1
        assert used.sum(axis=1).tolist() == tree.weigh_between(earlier, later).tolist()


@pytest.mark.parametrize("price", [{"epsilon": 0.5}, {"rho": 0.1}])
def test_a_release_has_the_bar_of_its_own_step(price: Any, tmp_path: Path) -> None:
    """It was the widest of all steps, which held for 98 to 99% of releases."""
    unit, rows = mosha.Reading(), [[1] * 5] * 30
    stream = streams.counter(unit=unit, horizon=30, **price)
    account = mosha.Ledger.memory().account("bars", unit=unit, epsilon=8, delta=1e-3)
    own = [stream.error_at(step) for step in range(1, 31)]
    with account.open(stream) as run:
        single = [run.step(batch).error(0.95) for batch in rows[:20]]
        rest = run.step(streams.Batches(rows[20:])).error(0.95)
    assert [*single, *rest.tolist()] == own
    assert own[0] < stream.forecast()
    with streams.serve(account, stream, name="served", state=tmp_path / "state") as service:
        assert [service.step(batch).error(0.95) for batch in rows[:3]] == own[:3]
        assert service.steps(rows[3:9]).error(0.95).tolist() == own[3:9]
    with streams.serve(account, stream, name="served", state=tmp_path / "state") as service:
        assert service.last is not None
        assert service.last.error(0.95).tolist() == own[3:9]
        assert service.step(rows[9]).map(lambda value: value).error_or_none() is None


@pytest.mark.parametrize("release", ["running", "instant", Sliding(5), Decayed(0.8)], ids=repr)
@pytest.mark.parametrize("price", [{"epsilon": 2.0}, {"rho": 0.2}])
def test_bars_of_means_hold_as_often_as_they_say(release: Any, price: Any) -> None:
    """The last step of many streams about skewed values: noise on the count and on the sum."""
    unit, steps, runs, held, factors = mosha.Reading(), 8, 250, np.zeros(3), np.array([0.4, 1, 3])
    rows = [np.minimum(np.random.default_rng().lognormal(1, 1.2, 60), 50) for _ in range(steps)]
    weights = {"running": np.ones(8), "instant": np.eye(8)[7], repr(Sliding(5)): np.arange(8) > 2}
    weighed = weights.get(release if isinstance(release, str) else repr(release), 0.8 ** np.arange(7, -1, -1.0))
    truth = weighed @ [batch.sum() for batch in rows] / (60 * weighed.sum())
    stream = streams.mean(unit=unit, horizon=steps, between=(0, 50), release=release, **price)
    account = mosha.Ledger.memory().account("bars", unit=unit, epsilon=1000, delta=1e-3)
    for _ in range(runs):
        with account.open(stream) as run:
            for batch in rows:
                answer = run.step(batch)
        held += abs(answer.value - truth) <= answer.error(0.95) * factors
    with pytest.raises(InvalidParameter, match="forecast"):
        stream.error_at(1)
    assert held[0] < binom.ppf(1e-10, runs, 0.94) <= held[1]
    assert binom.isf(1e-10, runs, 0.98) >= held[1]
    assert held[2] > binom.isf(1e-10, runs, 0.8)


@pytest.mark.parametrize(("count", "scale"), [(1, 0.5), (7, 1.0), (30, 1.0), (12, 20.0)])
def test_narrow_bars_are_the_least_that_cover(count: int, scale: float) -> None:
    """The whole law by direct convolution: no bar that is a step narrower holds as often."""
    one = math.tanh(0.5 / scale) * np.exp(-np.abs(np.arange(-400, 401)) / scale)
    law = one
    for _ in range(count - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    for missed in (0.3, 0.05, 0.001):
        width = find_width(count, scale, missed)
        held = law[middle - width : middle + width + 1].sum()
        assert held >= 1 - missed
        assert width == 0 or held - 2 * law[middle + width] < 1 - missed


@pytest.mark.parametrize(
    ("release", "price"),
    [(streams.Decayed(0.9), {}), (streams.Decayed(0.9), {"rho": 0.1}), (streams.Sliding(20), {"rho": 0.1})],
)
def test_bars_of_windows_and_decayed_sums_follow_the_noise_step_by_step(release: Any, price: Any) -> None:
    """It was one bar for all steps: up to 1.6 times too wide at the last one, and 2.2 times for Laplace noise."""
    stream, found = release_noise(release, **price)
    for step in (1, 7, 30, HORIZON):
        width = stream.error_at(step, 0.95)
        covered = [np.sum(found[step - 1] <= width * factor) for factor in (0.6, 1, 2.5)]
        # Bars of decayed Laplace noise are up to 5% wider than its law: 96% of them hold.
        assert covered[0] < LEAST <= covered[1] <= binom.isf(1e-10, SERIES, 0.96) < covered[2]


@pytest.mark.parametrize("factor", [0.1, 0.9, 0.97])
def test_the_law_of_a_decayed_sum_is_that_of_its_draws(factor: float) -> None:
    draws, scale, ratio = 20_000, 4.0, math.exp(-1 / 4.0)
    generator, steps = np.random.default_rng(), 100
    noise = generator.geometric(1 - ratio, (draws, steps)) - generator.geometric(1 - ratio, (draws, steps))
    sums = np.abs(noise @ factor ** np.arange(steps))
    for missed in (0.3, 0.05, 0.001):
        width = find_decayed_width(factor, steps, scale, missed)
        assert np.sum(sums > width) <= binom.isf(1e-10, draws, missed)
        assert np.sum(sums > width * 0.8) > binom.isf(1e-10, draws, missed) or missed < 0.01
    assert find_decayed_width(0.9999, 10**6, scale, 0.05) is None
    assert find_decayed_width(factor, steps, scale, 1e-9) > find_decayed_width(factor, steps, scale, 1e-5)


@pytest.mark.parametrize("count", [1, 2, 9, 200])
def test_the_law_of_a_sum_is_that_of_its_draws(count: int) -> None:
    draws = 20_000
    sums = np.abs(np.random.default_rng().laplace(0, 1, (draws, count)).sum(axis=1))
    for missed in (0.5, 0.05, 0.001):
        width = find_width(count, 1e6, missed) / 1e6
        low, high = binom.ppf(1e-10, draws, missed), binom.isf(1e-10, draws, missed)
        assert low <= np.sum(sums > width) <= high
        assert miss_probability(count, width) <= missed < miss_probability(count, width * 0.99)


def test_one_noise_has_the_bar_of_laplace_noise() -> None:
    assert find_width(1, 10.0, 0.05) == 30
    assert all(find_width(n + 1, 7.0, 0.05) > find_width(n, 7.0, 0.05) for n in range(1, 60))


@pytest.mark.parametrize("readout", [Sliding(30), Sliding(66), Decayed(0.97), Instant()], ids=repr)
def test_bars_of_every_step_are_those_of_the_noise(readout: Any) -> None:
    """Where a window is first full, the deviation turns: steps after it once had bars up to a tenth too narrow."""
    horizon, buffers = 200, design(200, 4)
    told = profile_buffers(buffers, readout, horizon, normalised=True)
    first, betas = buffers.decoder_residues()
    sums = first + np.exp(np.multiply.outer(np.arange(horizon), np.log1p(-np.array(buffers.eta)))) @ betas
    sums[0] = 1.0
    steps, scales = np.diff(sums, prepend=0.0), np.sqrt(buffers.encoder_squares(np.arange(horizon, 0, -1.0)))
    ages = np.subtract.outer(np.arange(horizon), np.arange(horizon))
    noise = np.where(ages >= 0, steps[ages], 0.0) * scales[:, None]
    weights = np.where(ages >= 0, readout.respond(np.ones(horizon))[ages], 0.0)
    exact = np.linalg.norm(weights @ noise, axis=1)
    ratios = np.array([told.at(time) for time in range(1, horizon + 1)]) / exact
    assert 1 <= ratios.min() <= ratios.max() < 1.002


def _reach(thing: Any, seen: set[int]) -> list[Any]:
    """All that a function holds on to, and what that holds."""
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    cells = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    return [thing, *(found for part in cells for found in _reach(part, seen))]


def test_a_release_of_a_mean_holds_on_to_nothing_of_the_state_but_what_was_shown() -> None:
    """A state has exact sums and the randomness of the noise; releases are copied and sent around."""
    stream = streams.mean(unit=mosha.Reading(), horizon=8, between=(0, 50), epsilon=2.0)
    account = mosha.Ledger.memory().account("kept", unit=mosha.Reading(), epsilon=10)
    with account.open(stream) as run:
        answer = run.step(np.arange(50.0))
    assert answer.error() > 0
    assert not any(isinstance(found, StreamState) for found in _reach(answer._error, set()))


def test_a_mean_whose_state_was_saved_without_what_was_shown_has_no_bar() -> None:
    stream = streams.mean(unit=mosha.Reading(), horizon=8, between=(0, 50), epsilon=2.0)
    assert stream.find_error(stream.init()) is None
