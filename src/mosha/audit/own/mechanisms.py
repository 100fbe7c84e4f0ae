"""Mosha's own mechanisms as the attacker meets them: every factory of `mosha.mechanisms`, on its worst neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mosha import mechanisms as m
from mosha.audit.claims import neighbors
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.unit import Neighbors, Own, Person, Row

__all__ = ["own_entries"]

ADD = Row()
REPLACE = Row(neighbors=Neighbors.REPLACE_ONE)
PERSON = Person("person", at_most=2)
RANGE = (0.0, 8.0)
KEYS = ("a", "b", "c")


def own_entries() -> list[Entry]:
    """One entry or more for each factory."""
    return [*_additive(), *_choices(), *_genomes(), *_others()]


def _entry(name: str, build: Any, proposals: Sequence[Proposal], **how: Any) -> Entry:
    covers = name.partition(":")[0]
    return Entry(name, build, tuple(proposals), covers, how)


def _additive() -> list[Entry]:
    numbers, keys = neighbors.of_numbers, neighbors.of_categories
    total = m.ClippedSum(between=RANGE, grid=2.0**-6)
    named = m.ClippedSum(between=RANGE, column="value", grid=2.0**-6)
    groups = m.Histogram(keys=KEYS)
    return [
        _entry("laplace: count", lambda: m.laplace(m.Count(), unit=ADD, epsilon=1), numbers(ADD, between=RANGE)),
        _entry("laplace: sum", lambda: m.laplace(total, unit=ADD, epsilon=1), numbers(ADD, between=RANGE)),
        _entry(
            "laplace: sum, replaced", lambda: m.laplace(total, unit=REPLACE, epsilon=1), numbers(REPLACE, between=RANGE)
        ),
        _entry(
            "laplace: sum of persons",
            lambda: m.laplace(named, unit=PERSON, epsilon=1),
            numbers(PERSON, between=RANGE),
        ),
        _entry("laplace: histogram", lambda: m.laplace(groups, unit=ADD, epsilon=1), keys(ADD, keys=KEYS)),
        _entry("gaussian: sum", lambda: m.gaussian(total, unit=ADD, mu=1), numbers(ADD, between=RANGE)),
        _entry(
            "gaussian: histogram, replaced",
            lambda: m.gaussian(groups, unit=REPLACE, epsilon=1, delta=1e-5),
            keys(REPLACE, keys=KEYS),
        ),
        _entry(
            "gaussian: vectors",
            lambda: m.gaussian(m.VectorSum(norm=1.0, coordinates=2), unit=ADD, rho=0.5),
            [Proposal("one long vector", [[0.6, -0.8]], []), Proposal("one far too long", [[3e9, 4e9]], [])],
        ),
        _entry(
            "additive: histogram",
            lambda: m.additive(groups, unit=ADD, epsilon=1, delta=1e-6),
            keys(ADD, keys=KEYS),
        ),
        _entry("mean: numbers", lambda: m.mean(between=RANGE, unit=ADD, epsilon=1), numbers(ADD, between=RANGE)),
        _entry(
            "mean: replaced", lambda: m.mean(between=RANGE, unit=REPLACE, epsilon=1), numbers(REPLACE, between=RANGE)
        ),
    ]


def _choices() -> list[Entry]:
    scores = m.Histogram(keys=KEYS)
    pairs, replaced = neighbors.of_categories(ADD, keys=KEYS), neighbors.of_categories(REPLACE, keys=KEYS)
    return [
        _entry("exponential: histogram", lambda: m.exponential(scores, unit=ADD, epsilon=1), pairs),
        _entry("exponential: replaced", lambda: m.exponential(scores, unit=REPLACE, epsilon=1), replaced),
        _entry("permute_and_flip: histogram", lambda: m.permute_and_flip(scores, unit=ADD, epsilon=1), pairs),
        _entry("permute_and_flip: replaced", lambda: m.permute_and_flip(scores, unit=REPLACE, epsilon=1), replaced),
        _entry("report_noisy_max: with gap", lambda: m.report_noisy_max(scores, unit=ADD, epsilon=1), pairs),
        _entry(
            "report_noisy_max: two with gaps", lambda: m.report_noisy_max(scores, unit=ADD, epsilon=1, top=2), pairs
        ),
        _entry("top_k: two of three", lambda: m.top_k(scores, unit=ADD, k=2, epsilon=1), pairs),
    ]


def _genomes() -> list[Entry]:
    places = ("rs1", "rs2")
    others = [[1, 2, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    near = [
        Proposal("a case with all minor alleles", [*others, [1, 2, 2]], others),
        Proposal("the case that makes a place significant", [*others, [1, 2, 0]], others),
        Proposal("a control who takes it away", [*others, [0, 2, 0]], others),
    ]
    scores = m.AssociationScores(snps=places, cases=3, controls=3, threshold=3.0)
    alleles, chi = m.AlleleCounts(snps=places), m.ChiSquares(snps=places, cases=3, controls=3)
    return [
        _entry("laplace: allele counts", lambda: m.laplace(alleles, unit=ADD, epsilon=1), near),
        _entry("laplace: chi-squares", lambda: m.laplace(chi, unit=ADD, epsilon=1), near),
        _entry("report_noisy_max: association", lambda: m.report_noisy_max(scores, unit=ADD, epsilon=1), near),
    ]


def _others() -> list[Entry]:
    median = m.Quantile(at=0.5, between=RANGE)
    numbers = neighbors.of_numbers(ADD, between=RANGE)
    return [
        _entry(
            "above_threshold: count",
            lambda: m.above_threshold(m.Count(), unit=ADD, epsilon=1, threshold=1, horizon=6),
            numbers[:3],
        ),
        _entry(
            "above_threshold: two alarms, a new day each step",
            lambda: m.above_threshold(m.Count(), unit=PERSON, epsilon=1, threshold=2, horizon=6, alarms=2),
            [Proposal("a person who comes every day", [_people(2)] * 6, [_people(1)] * 6)],
            stream=True,
        ),
        _entry(
            "randomized_response: two categories",
            lambda: m.randomized_response(["yes", "no"], unit=Own(), epsilon=1),
            neighbors.of_own_value(["yes", "no", "?"]),
        ),
        _entry(
            "randomized_response: five categories",
            lambda: m.randomized_response(list("abcde"), unit=Own(), epsilon=1),
            neighbors.of_own_value("ab?"),
        ),
        _entry(
            "partition_selection: keys",
            lambda: m.partition_selection(unit=ADD, epsilon=1, delta=1e-2),
            [Proposal(f"number {n} of a key", ["x"] * n, ["x"] * (n - 1)) for n in (1, 3, 5)],
        ),
        _entry(
            "smooth_sensitivity: median",
            lambda: m.smooth_sensitivity(median, unit=ADD, epsilon=1),
            [
                *numbers,
                Proposal("a median that jumps, few rows", [0.0, 8.0], [0.0]),
                Proposal("a median that jumps, many rows", [0.0] * 9 + [8.0] * 9, [0.0] * 9 + [8.0] * 8),
            ],
        ),
        _entry(
            "propose_test_release: median",
            lambda: m.propose_test_release(median, unit=ADD, epsilon=1, delta=1e-3, sensitivity=1),
            [
                *numbers,
                Proposal("a test on the brink", [4.0] * 26, [4.0] * 25),
                Proposal("a median that moves as far as proposed", [3.5] * 20 + [4.5] * 20, [3.5] * 20 + [4.5] * 19),
                Proposal("a median that moves further", [3.0] * 20 + [5.0] * 20, [3.0] * 20 + [5.0] * 19),
            ],
        ),
    ]


def _people(count: int) -> dict[str, list[Any]]:
    return {PERSON.column: [f"p{i}" for i in range(count) for _ in range(2)], "value": [1.0] * 2 * count}
