"""Shuffled randomized response is bounded by the blanket: never below a real attack, hardly above it."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha import accounting
from mosha.accounting.measures import blanket, shuffle
from mosha.core.errors import InvalidParameter
from mosha.events import Shuffled, from_json
from tests.accounting.test_shuffle import every_crowd, hockey_stick, randomized_response

GOLDEN = Path(__file__).parents[1] / "local" / "golden.csv"


def reference(name: Any, most: Any) -> Iterator[tuple[Any, ...]]:
    with GOLDEN.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            given = dict(part.split("=") for part in row["params"].split(",") if "=" in part)
            if row["area"] == "shuffle" and row["name"] == name and int(given["n"]) <= most:
                yield float(given["eps0"]), int(given["n"]), float(given["delta"]), float(row["value"])


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("krr_d100", lambda e, n, d: blanket.epsilon(e, n, d, categories=100)),
        ("clones21", shuffle.epsilon),
        ("clones23", lambda e, n, d: shuffle.epsilon(e, n, d, spread=True)),
        ("closed21", shuffle.closed_form),
        ("closed23", shuffle.closed_form_if_spread),
    ],
)
def test_golden_amplification(name: str, price: Any) -> None:
    """Within a thousandth of the shared reference, and never below it (beyond its last digits)."""
    for local, people, delta, expected in reference(name, 10**5 if name == "krr_d100" else 10**6):
        found = price(local, people, delta)
        assert expected * (1 - 1e-8) <= found <= expected * (1 + 1e-3), (local, people)


@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("categories", "others"), [(2, 7), (3, 5), (4, 4), (5, 3)])
def test_no_crowd_is_worse_than_the_bound(local: float, categories: int, others: int) -> None:
    """The exact law of the histogram, for every crowd of so many others."""
    table = randomized_response(local, categories)
    for first, second in every_crowd(table, others):
        for total in (0.0, 0.05 * local, 0.3 * local, 0.8 * local):
            bound = blanket.delta(local, others + 1, total, categories=categories)
            assert hockey_stick(first, second, total) <= bound * (1 + 1e-9) + 1e-15


def tail(count: Any, chance: Any, least: Any) -> Any:
    return np.where(least <= 0, 1.0, binom.sf(np.maximum(least, 1) - 1, count, chance))


def attack(local: Any, people: Any, categories: Any, total: Any) -> Any:
    """The exact delta of telling truth 1 from truth 2 by the counts of 1, 2 and 3, when all others answer 3."""
    grown = math.exp(local)
    each = 1 / (grown + categories - 1)
    thirds = np.arange(people + 1)
    weights = binom.pmf(thirds, people, grown * each)
    found = 0.0
    for third, weight in zip(thirds, weights, strict=True):
        if weight < 1e-16:
            continue
        rest = people - third
        share = each / (1 - grown * each)
        second = np.arange(rest + 1)
        threshold = math.exp(total) * second + math.expm1(total) * (people - third * (1 - 1 / grown)) / (grown - 1)
        left, chance, first = rest - second, share / (1 - share), np.floor(threshold) + 1
        excess = left * chance * tail(np.maximum(left - 1, 0), chance, first - 1) - threshold * tail(
            left, chance, first
        )
        found += weight * (grown - 1) / people * float(binom.pmf(second, rest, share) @ np.maximum(excess, 0.0))
    return found


@pytest.mark.parametrize(("local", "people", "categories"), [(1.0, 300, 10), (3.0, 400, 50)])
def test_an_attack_comes_close_to_the_bound(local: float, people: int, categories: int) -> None:
    """Both signs of the claim: at the bound the attack has no more than delta, two percent below it has more."""
    delta = 1e-6
    bound = blanket.epsilon(local, people, delta, categories=categories)
    assert attack(local, people, categories, bound) <= delta
    assert attack(local, people, categories, 0.98 * bound) > delta


def test_more_reports_and_smaller_local_epsilons_never_cost_more() -> None:
    by_people = [blanket.epsilon(1.0, n, 1e-6, categories=20) for n in (1, 10, 1000, 10**5)]
    assert by_people == sorted(by_people, reverse=True)
    by_local = [blanket.epsilon(local, 1000, 1e-6, categories=20) for local in (0.1, 0.5, 1.0, 2.0, 5.0)]
    assert by_local == sorted(by_local)
    assert blanket.epsilon(1.0, 1, 1e-6, categories=20) <= 1.0


def test_two_categories_are_clones() -> None:
    assert blanket.epsilon(1.0, 5000, 1e-6, categories=2) == pytest.approx(
        shuffle.epsilon(1.0, 5000, 1e-6, spread=True), rel=1e-3
    )


def test_an_event_with_categories_costs_less_and_never_more_than_without() -> None:
    general, told = Shuffled(1.0, 10_000), Shuffled(1.0, 10_000, categories=100)
    assert accounting.epsilon(told, 1e-6) < accounting.epsilon(general, 1e-6) / 7
    assert accounting.epsilon(told * 3, 1e-6) <= accounting.epsilon(general * 3, 1e-6)
    assert from_json(told.to_json()) == told
    assert from_json('{"mosha": 1, "kind": "Shuffled", "epsilon": 1.0, "people": 10000}') == general


@pytest.mark.parametrize("categories", [0, 1, 2.5, True, "x"])
def test_categories_that_mean_nothing_are_refused(categories: Any) -> None:
    with pytest.raises(InvalidParameter):
        blanket.epsilon(1.0, 100, 1e-6, categories=categories)
    with pytest.raises(InvalidParameter):
        Shuffled(1.0, 100, categories=categories)


def test_extreme_crowds_do_not_break() -> None:
    assert blanket.epsilon(50.0, 1000, 1e-6, categories=10) <= 50.0
    assert blanket.epsilon(700.0, 1000, 1e-6, categories=10) <= 700.0
    assert blanket.epsilon(1e-6, 10**5, 1e-6, categories=1000) <= 1e-6
    assert 0 < blanket.delta(1.0, 10, 0.999, categories=1000) < 0.1
    assert blanket.delta(1.0, 10, 1.0, categories=3) == 0.0


def test_counts_are_averaged_from_above() -> None:
    """Weights of `_nodes` are those of a chord: exact for straight lines, above for convex curves."""
    for reports, k in ((50, 3), (4000, 7), (100_000, 100)):
        nodes, weights, _ = blanket._nodes(reports, k)
        exact = np.arange(reports + 1)
        law = binom.pmf(exact, reports, 1 / k)
        assert weights.sum() == pytest.approx(1, rel=1e-6)
        assert float(weights @ nodes) == pytest.approx(reports / k, rel=1e-6)
        bend = reports / k * 1.02
        assert weights @ np.maximum(bend - nodes, 0.0) >= law @ np.maximum(bend - exact, 0.0)
