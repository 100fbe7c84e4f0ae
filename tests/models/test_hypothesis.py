"""Tests reject true hypotheses no more often than they say, at several sizes, and find effects that are there."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import mosha
from mosha import Example, Ledger, Row, noise
from mosha.core.errors import InvalidParameter
from mosha.models import Anova, ChiSquareTest, KolmogorovSmirnovTest, TTest, hypothesis
from mosha.models.null_worlds import NoiseDraw
from mosha.models.paying import noise_deviation

TWO, THREE = ("a", "b"), ("a", "b", "c")
TESTS = {
    "chi-square": lambda **p: ChiSquareTest(categories=("x", "y", "z"), groups=TWO, **p),
    "t": lambda **p: TTest(between=(-5, 5), groups=TWO, **p),
    "ANOVA": lambda **p: Anova(between=(-5, 5), groups=THREE, **p),
    "Kolmogorov-Smirnov": lambda **p: KolmogorovSmirnovTest(between=(-5, 5), groups=TWO, bins=16, **p),
}
RUNS, LEVEL = 120, 0.1
MOST = int(binom.isf(1e-9, RUNS, 0.15))
"""More rejections than a true size of 0.15 shows once in 1e9 (sizes are those of simulated worlds: nearly exact)."""


def sample(name: Any, count: Any, effect: Any) -> tuple[Any, ...]:
    """Values and groups; `effect` moves the first group."""
    drawn = np.random.default_rng()
    groups = drawn.choice(THREE if name == "ANOVA" else TWO, count)
    if name == "chi-square":
        moved = (groups == "a") & (drawn.random(count) < effect)
        return np.where(moved, "x", drawn.choice(["x", "y", "z"], count)), groups
    return drawn.normal(size=count) + effect * (groups == "a"), groups


def rejections(name: Any, count: Any, effect: Any, price: Any, *, deaf: bool = False) -> Any:
    """How often of RUNS; a deaf test leaves the noise out of its worlds."""
    test, found = TESTS[name](**price), 0
    asked = test.measurement()
    deviation = noise_deviation(asked)
    law = NoiseDraw(1e-9 if deaf else deviation, laplace=asked.name.startswith("laplace"))
    for _ in range(RUNS):
        values, groups = sample(name, count, effect)
        noisy, _ = asked.step(None, ([[v] for v in values], groups, None), None, noise.SecureRandom())
        statistic, worlds = test.judge(
            np.asarray(noisy, float), 1e-9 if deaf and name != "chi-square" else deviation, law
        )
        found += (1 + (worlds >= statistic).sum()) / (1 + len(worlds)) <= LEVEL
    return found


@pytest.fixture(autouse=True)
def fewer_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypothesis, "WORLDS", 299)


@pytest.mark.parametrize("count", [60, 1000])
@pytest.mark.parametrize("name", TESTS)
def test_a_true_hypothesis_is_rejected_as_rarely_as_the_level_says(name: Any, count: int) -> None:
    """False-alarm rate 1e-9 each."""
    assert rejections(name, count, 0.0, {"epsilon": 1}) <= MOST


@pytest.mark.parametrize("name", ["chi-square", "Kolmogorov-Smirnov"])
def test_a_test_that_is_deaf_to_noise_is_found(name: str) -> None:
    """At 60 rows and epsilon 0.2 noise alone looks like an effect to whoever leaves it out."""
    assert rejections(name, 60, 0.0, {"epsilon": 0.2}, deaf=True) > MOST


@pytest.mark.parametrize("name", TESTS)
def test_an_effect_is_found(name: Any) -> None:
    """Half a deviation (a third of the rows moved) at 2,000 rows and epsilon 1: nearly always."""
    assert rejections(name, 2000, 0.5, {"epsilon": 1}) > RUNS - MOST


def test_a_table_is_asked_the_same() -> None:
    values, groups = sample("t", 3000, 1.0)
    words, _ = sample("chi-square", 3000, 0.0)
    frame = pd.DataFrame({"v": values, "g": groups, "w": words})
    purse = Ledger.memory().account("tests", unit=Row(), epsilon=100)
    table = mosha.protect(frame, unit=Row(), account=purse)
    for name in ("t", "Kolmogorov-Smirnov"):
        own = TESTS[name](epsilon=10, unit=Row()).run(frame["v"], frame["g"], account=purse)
        asked = TESTS[name](epsilon=10).run(table, columns=("v", "g"))
        assert asked.p_value == own.p_value == pytest.approx(1 / 300)
        assert asked.statistic == pytest.approx(own.statistic, rel=0.1)
    assert 0 < TESTS["chi-square"](epsilon=10).run(table, columns=("w", "g")).p_value <= 1
    with pytest.raises(InvalidParameter):
        TESTS["t"](epsilon=1).run(table)


def test_groups_have_to_be_declared() -> None:
    purse = Ledger.memory().account("tests", unit=Example(), epsilon=100)
    with pytest.raises(InvalidParameter):
        KolmogorovSmirnovTest(between=(0, 1), groups=THREE, epsilon=1).run([0.5], ["a"], account=purse)
    with pytest.raises(InvalidParameter):
        ChiSquareTest(categories=("x",), groups=TWO, epsilon=1).run(["x"], ["a"], account=purse)
