"""A search is priced as a whole, draws its number of runs exactly, and is not called private otherwise."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from mosha import Example, Ledger, Row, accounting, mechanisms, noise
from mosha.accounting.measures.selection import stopping_probability
from mosha.core.errors import BudgetExceeded, InvalidParameter, Unpriced
from mosha.core.events import NOTHING, Gaussian, Plan, Selected, ZeroConcentrated
from mosha.core.measurement import Measurement
from mosha.learning.choosing.selection import SearchResult, best_of_random_runs, explore, search
from mosha.learning.choosing.selection_runs import number_of_runs
from mosha.learning.linear.models import LogisticRegression

RUN = Gaussian(5.0)


def constant(value: Any, event: Any = RUN, unit: Any = None) -> Any:
    return Measurement(unit=unit or Row(), event=event, step=lambda state, data, ask, rng: (value, state))


def candidates(count: int = 3) -> dict[Any, Any]:
    return {str(k): constant(k) for k in range(count)}


def pmf(event: Any, runs: Any) -> Any:
    """The probability of this number of runs, in floats."""
    if event.distribution == "poisson":
        return math.exp(-event.mean) * event.mean**runs / math.factorial(runs)
    if runs == 0:
        return 0.0
    gamma, shape = stopping_probability(event.mean, event.shape), event.shape
    if shape == 0:
        return (1 - gamma) ** runs / (runs * math.log(1 / gamma))
    weight = math.prod((k + shape) / (k + 1) for k in range(runs))
    return (1 - gamma) ** runs / (gamma**-shape - 1) * weight


def distance(event: Any, samples: Any, planted: Any) -> tuple[Any, ...]:
    """The statistic of Pearson over the cells that are large enough, and how many cells there are."""
    n, seen, total, cells, rest, found = len(samples), Counter(samples), 0.0, 0, 1.0, 0
    for runs in range(80):
        p = pmf(planted, runs)
        if p * n < 20:
            continue
        total += (seen[runs] - n * p) ** 2 / (n * p)
        cells, rest, found = cells + 1, rest - p, found + seen[runs]
    if rest * n >= 20:
        total += (n - found - n * rest) ** 2 / (n * rest)
    return total, cells


def accepted(event: Any, samples: Any, planted: Any) -> Any:
    """By the bound of Laurent and Massart on the tail of chi squared, at 1e-10."""
    total, cells = distance(event, samples, planted)
    x = math.log(1e10)
    return total < 1.2 * (cells + 2 * math.sqrt(cells * x) + 2 * x)


@pytest.mark.parametrize(
    "event",
    [
        Selected(RUN, 4.0), Selected(RUN, 4.0, shape=0.0), Selected(RUN, 3.0, shape=0.5),
        Selected(RUN, 2.0, shape=-0.5), Selected(RUN, 3.0, "poisson"), Selected(RUN, 0.6, "poisson"),
    ],
    ids=str,
)  # fmt: skip
def test_the_number_of_runs_follows_the_law_that_is_priced(event: Any) -> None:
    samples = [number_of_runs(event, rng=noise.secure()) for _ in range(2500)]
    assert accepted(event, samples, event)
    for wrong in (0.5, 4.0):  # each at least 6.7 deviations beyond what is accepted
        planted = max(1.05, event.mean * wrong) if event.distribution != "poisson" else event.mean * wrong
        assert not accepted(event, samples, Selected(RUN, planted, event.distribution, event.shape))


def test_one_run_on_average_is_one_run() -> None:
    assert {number_of_runs(Selected(RUN, 1.0)) for _ in range(50)} == {1}


def test_the_price_is_that_of_the_whole_search() -> None:
    tuned = best_of_random_runs(candidates(), score=lambda name, answer: answer, mean=10)
    assert tuned.event == Selected(RUN, 10.0)
    assert accounting.epsilon(RUN, 1e-6) < accounting.epsilon(tuned.event, 1e-6) < 3.5 * accounting.epsilon(RUN, 1e-6)


def test_candidates_of_different_prices_cost_the_dearest() -> None:
    mixed = {"a": constant(1, Gaussian(5) * 4), "b": constant(2, Gaussian(2))}
    tuned = best_of_random_runs(mixed, score=lambda name, answer: answer, mean=3)
    assert isinstance(tuned.event.event, ZeroConcentrated)  # type: ignore[attr-defined]
    assert tuned.event.event.rho == pytest.approx(1 / 8)  # type: ignore[attr-defined]


def test_a_measured_score_is_paid_for_too() -> None:
    price = mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=0.1)
    tuned = best_of_random_runs(candidates(), score=lambda name, answer: price, score_event=price.event, mean=3)
    assert tuned.event.event == RUN + price.event  # type: ignore[attr-defined]
    name, answer, judged = tuned.step(None, ("training", ["row"] * 50), None, noise.secure())[0]
    assert name == str(answer)
    assert abs(judged - 50) < 400  # 40 scales of the noise: exp(-40)


@pytest.mark.parametrize("score", [lambda name, answer: constant(1.0, Gaussian(9)), lambda name, answer: 3.0])
def test_a_score_of_another_price_is_refused(score: Any) -> None:
    tuned = best_of_random_runs(candidates(), score=score, score_event=Gaussian(7), mean=3)
    with pytest.raises(InvalidParameter, match="score_event"):
        tuned.step(None, (None, None), None, noise.secure())


def test_a_score_measured_for_nothing_is_refused() -> None:
    tuned = best_of_random_runs(candidates(), score=lambda name, answer: constant(1.0), mean=3)
    with pytest.raises(InvalidParameter, match="its price"):
        tuned.step(None, None, None, noise.secure())


def test_ties_are_broken_by_chance() -> None:
    tuned = best_of_random_runs(candidates(2), score=lambda name, answer: 0.0, mean=20)
    names = {tuned.step(None, None, None, noise.secure())[0][0] for _ in range(60)}
    assert names == {"0", "1"}  # missed with probability 2**-59


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": {}}, {"candidates": [constant(1)]}, {"mean": 0}, {"mean": math.nan}, {"shape": -1},
        {"distribution": "geometric"}, {"candidates": {"a": 3}}, {"delta": 0.0}, {"delta": 1.0},
        {"candidates": {"a": constant(1), "b": constant(1, unit=Example())}},
    ],
)  # fmt: skip
def test_wrong_searches_are_refused(wrong: Any) -> None:
    arguments = {"candidates": candidates(), "mean": 3, "score": lambda name, answer: 0.0} | wrong
    with pytest.raises(InvalidParameter):
        best_of_random_runs(arguments.pop("candidates"), **arguments)


def test_candidates_without_a_common_measure_are_refused() -> None:
    from mosha.core.events import Approx

    mixed = {"a": constant(1, Approx(1, 1e-6)), "b": constant(2)}
    with pytest.raises(Unpriced, match="common measure"):
        best_of_random_runs(mixed, score=lambda name, answer: 0.0, mean=3)


def test_a_search_over_models_is_paid_and_private_and_an_exploration_is_not() -> None:
    rows = np.random.default_rng().uniform(-1, 1, (1500, 2))
    labels = (rows.sum(axis=1) > 0).astype(int)
    public = (rows[:200], labels[:200])
    models = {
        f"rate {rate:g}": LogisticRegression(examples=1500, norm=1.5, rho=0.2, learning_rate=rate, steps=10)
        for rate in (1e-6, 10.0)
    }
    judge = lambda name, weights: models[name].with_weights(weights, 2).score(*public)
    tuned = best_of_random_runs({k: m.measurement(2) for k, m in models.items()}, score=judge, mean=8, delta=1e-6)
    assert isinstance(tuned.event, Plan)
    account = Ledger.memory().account("a", unit=Example(), epsilon=20, delta=1e-5, rule="pure")
    found = search(tuned, (rows, labels), account=account)
    assert found.private
    assert found.guarantee(1e-6).epsilon <= account.spent * (1 + 1e-9)
    poor = Ledger.memory().account("a", unit=Example(), epsilon=0.1, delta=1e-5, rule="pure")
    with pytest.raises(BudgetExceeded):
        search(tuned, (rows, labels), account=poor)


def test_an_unpriced_search_is_refused_the_word_private() -> None:
    found = explore({"a": lambda: 1.0, "b": lambda: 2.0}, score=lambda name, answer: answer)
    assert not found.private
    assert found.name == "b"
    assert "NOT PRIVATE" in repr(found)
    with pytest.raises(Unpriced, match="not private"):
        found.guarantee(1e-6)
    with pytest.raises(InvalidParameter):
        explore({}, score=lambda name, answer: 0.0)


def test_no_run_at_all_is_an_answer_of_poisson_numbers() -> None:
    tuned = best_of_random_runs(candidates(), score=lambda name, answer: answer, mean=1e-9, distribution="poisson")
    account = Ledger.memory().account("a", unit=Row(), epsilon=5, delta=1e-5, rule="renyi")
    assert search(tuned, None, account=account) is None  # with probability 1 - 1e-9
    assert tuned.event.event != NOTHING  # type: ignore[attr-defined]
    assert isinstance(SearchResult("a", 1, 0.5), SearchResult)
