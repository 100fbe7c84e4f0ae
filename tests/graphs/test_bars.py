"""Bars of counts whose noise is as wide as the graph asks for, worked out exactly over both noises: nothing is drawn.

The one test that draws states its false-alarm rate.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha import Edge, noise
from mosha.graphs import Graph
from mosha.graphs.statistics.ladder import Rungs, ladder
from mosha.graphs.statistics.smooth import smooth
from mosha.graphs.statistics.spread import SPREAD_SHARE
from mosha.graphs.statistics.subgraphs import StarCount, TriangleCount

COUNTS = {"triangles": TriangleCount, "2-stars": lambda n: StarCount(n, 2), "3-stars": lambda n: StarCount(n, 3)}
BUDGETS = [(30, 1.0), (100, 1.0), (200, 0.4), (1000, 3.0)]


def weigh_noise(statistic: Any, epsilon: Any, widths: Any) -> Any:
    """P(|noise| > y) for y = 0, 1, ... by the law of `ladder.md`, integer by integer."""
    rungs = Rungs(statistic, epsilon * (1 - SPREAD_SHARE))
    sizes, decay = [], float(rungs.decay)  # type: ignore[var-annotated]
    while len(sizes) < 4 or sizes[-1] * math.exp(-decay * len(sizes)) > 1e-12 * sizes[0]:
        sizes.append(statistic.reach(rungs.raise_to_floor(widths), len(sizes)))
    weights = np.repeat(np.exp(-decay * np.arange(len(sizes))), sizes)
    left = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    return left / (left[0] + 0.5)


def miss(statistic: Any, epsilon: Any, width: Any, narrower: float = 1.0) -> tuple[Any, ...]:
    """The chance that the bar of an answer at this width does not hold, and the bar where the noisy width is right."""
    measured, left = (
        ladder(statistic, unit=Edge(), epsilon=epsilon),
        weigh_noise(statistic, epsilon, (width,) * statistic.parts),
    )
    share, missed = epsilon * SPREAD_SHARE, 0.0
    for off in range(-width, statistic.cap - width + 1):
        chance = math.exp(-abs(off) * share) * math.tanh(share / 2)
        if off in (-width, statistic.cap - width):  # clamped
            chance = math.exp(-abs(off) * share) / (1 + math.exp(-share))
        bar = measured.error(0.95, {"spread": width + off}) / narrower
        missed += chance * left[min(math.floor(bar), len(left) - 1)]
    return missed, measured.error(0.95, {"spread": width}), np.searchsorted(-left, -0.05)


@pytest.mark.parametrize(("vertices", "epsilon"), BUDGETS)
def test_bars_of_the_ladder_hold_at_every_width_and_are_hardly_wider_than_the_noise(
    vertices: Any, epsilon: Any
) -> None:
    """The bar was up to six times the 95% quantile of the noise; at widths of 6 and 21 among them."""
    statistic = TriangleCount(vertices)
    widths = sorted({0, 6, min(21, statistic.cap), *np.geomspace(1, statistic.cap, 6).astype(int).tolist()})
    found = [miss(statistic, epsilon, width) for width in widths]
    assert max(missed for missed, *_ in found) <= 0.05
    assert max(missed for missed, *_ in found) >= 0.03  # not much wider than it must be
    assert all(bar <= 1.35 * quantile for _, bar, quantile in found)
    assert max(miss(statistic, epsilon, width, 1.5)[0] for width in widths) > 0.05  # a narrower bar would not do


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_noise_at_larger_widths_exceeds_every_bar_more_often(kind: Any, epsilon: float) -> None:
    statistic = COUNTS[kind](40)
    pairs = [(w, v) for w in range(0, 39, 3) for v in {0, w // 2, w}]
    for wide, narrow in pairs:
        if kind == "triangles" and narrow != wide:
            continue
        widths = (wide,) if kind == "triangles" else (wide, narrow)
        larger = (wide + 1,) * len(widths)
        one, two = (weigh_noise(statistic, epsilon, each) for each in (widths, larger))
        length = min(len(one), len(two))
        assert np.all(one[:length] <= two[:length] + 1e-9)


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("delta", [None, 0.0, 1e-6])
def test_drawn_bars_hold(kind: Any, delta: Any) -> None:
    """False alarm: a binomial tail of 1e-10; a third of the bar is rejected."""
    graph = Graph.of([(i, j) for i in range(40) for j in range(i) if (i * j) % 3 == 1], vertices=40)
    statistic, draws, rng = COUNTS[kind](40), 400, noise.secure()
    asked = ladder(statistic, unit=Edge(), epsilon=1.0)
    if delta is not None:
        asked = smooth(statistic, unit=Edge(), epsilon=1.0, delta=delta)
    truth, answers = statistic.evaluate(graph), [asked.step(None, graph, None, rng)[0] for _ in range(draws)]
    errors = np.array([abs(answer["value"] - truth) for answer in answers])
    bars = np.array([asked.error(0.95, answer) for answer in answers])
    least = binom.ppf(1e-10, draws, 0.95)
    assert np.sum(errors <= bars) >= least
    if delta != 0.0:  # Cauchy noise has most of its weight far inside
        assert np.sum(errors <= bars / 3) < least


def test_a_forecast_is_no_narrower_than_any_answer() -> None:
    asked = ladder(TriangleCount(50), unit=Edge(), epsilon=1)
    assert asked.error(0.95, None) == asked.error(0.95, {"width": 48}) >= asked.error(0.95, {"spread": 10})


@pytest.mark.parametrize("delta", [None, 0.0, 1e-6])
def test_confidences_close_to_one_have_a_bar(delta: Any) -> None:
    """The search for it went below what can be taken off from one, and was refused as a confidence of 1."""
    statistic = TriangleCount(5000)
    asked = ladder(statistic, unit=Edge(), epsilon=1)
    if delta is not None:
        asked = smooth(statistic, unit=Edge(), epsilon=1.0, delta=delta)
    bars = [asked.error(confidence, {"spread": 40}) for confidence in (0.95, 1 - 1e-12, 1 - 2**-53)]
    assert bars == sorted(bars)
    assert math.isfinite(bars[-1])
