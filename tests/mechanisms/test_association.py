"""Genome studies: sensitivities that are derived hold on neighbors, scores are distances, and Homer's attack works."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from mosha import Person, Row, audit, noise
from mosha.core.errors import DataError, InvalidParameter
from mosha.mechanisms import AlleleCounts, AssociationScores, ChiSquares, additive, report_noisy_max

STUDY: dict[str, Any] = {"snps": ("a", "b", "c"), "cases": 6, "controls": 5}
STATISTICS = [AlleleCounts(snps="abc"), ChiSquares(**STUDY), AssociationScores(**STUDY, threshold=3.84)]
UNITS = [Row(), Row(3), Row(neighbors="replace-one"), Row(2, neighbors="replace-one")]  # type: ignore[arg-type]


def draw_rows(count: Any, rng: Any) -> Any:
    return np.column_stack([rng.integers(0, 2, count), rng.integers(0, 3, (count, 3))]).tolist()


def draw_neighbors(unit: Any, rng: Any) -> tuple[Any, ...]:
    others, added = draw_rows(rng.integers(0, 12), rng), draw_rows(unit.at_most, rng)
    replaced = draw_rows(unit.at_most, rng) if unit.neighbors == "replace-one" else []
    return [*others, *added], [*others, *replaced]


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda found: type(found).__name__)
@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_no_neighbors_move_a_genome_statistic_further_than_is_derived(statistic: Any, unit: Any) -> None:
    rng = np.random.default_rng()
    pairs = [draw_neighbors(unit, rng) for _ in range(150)]
    assert audit.statistic_contract(statistic, unit=unit, neighbors=pairs).kept


def test_sensitivities_are_reached_and_one_less_would_be_found() -> None:
    full, nobody = [[1, 2, 2, 2]], []  # type: ignore[var-annotated]
    counts = AlleleCounts(snps="abc")
    assert np.abs(counts.evaluate(full, Row()) - counts.evaluate(nobody, Row())).sum() == counts.sensitivity(Row()).l1  # type: ignore[operator]
    chi = ChiSquares(snps="a", cases=5, controls=5)
    apart = [[1, 2]] * 5 + [[0, 0]] * 5
    moved = chi.evaluate(apart, Row()) - chi.evaluate(apart[1:], Row())
    assert abs(int(moved[0])) == chi.sensitivity(Row()).l1


@pytest.mark.parametrize("people", [20, 100, 400])
def test_equal_groups_have_the_sensitivity_that_was_found_by_hand(people: int) -> None:
    """From perfect separation a case takes 2 alleles away: 2 N - 2 N (R - 1) / (R + 1) = 8 N / (N + 2), R = N / 2."""
    chi = ChiSquares(snps="a", cases=people // 2, controls=people // 2)
    assert chi.sensitivity(Row()).l1 * chi.grid == pytest.approx(8 * people / (people + 2), abs=2 * chi.grid)


def test_chi_squares_are_those_of_a_table() -> None:
    rng = np.random.default_rng()
    chi = ChiSquares(snps="a", cases=30, controls=20)
    for x, y in rng.integers(1, 39, (20, 2)):
        rows = [[1, 2]] * (x // 2) + [[1, x % 2]] + [[0, 2]] * (y // 2) + [[0, y % 2]]
        expected = chi2_contingency([[x, 60 - x], [y, 40 - y]], correction=False)[0]
        assert chi.evaluate(rows, Row())[0] * chi.grid == pytest.approx(expected, abs=chi.grid)


@pytest.mark.parametrize(("cases", "controls", "threshold"), [(5, 5, 3.84), (4, 7, 6.6), (7, 3, 2.0), (6, 6, 10)])
def test_a_score_is_how_many_people_must_change(cases: int, controls: int, threshold: float) -> None:
    score = AssociationScores(snps="a", cases=cases, controls=controls, threshold=threshold)
    tables = list(itertools.product(range(2 * cases + 1), range(2 * controls + 1)))
    loud = {table: abs(score._signed_root(*np.array(table).reshape(2, 1))[0]) >= threshold**0.5 for table in tables}
    for x, y in tables:
        steps = [(abs(x - u) + 1) // 2 + (abs(y - v) + 1) // 2 for u, v in tables if loud[u, v] != loud[x, y]]
        assert score._score(x, y) == (min(steps) if loud[x, y] else 1 - min(steps))


def test_rows_that_are_no_genotypes_add_nothing_and_rows_of_one_person_are_bounded() -> None:
    counts = AlleleCounts(snps="a")
    assert counts.evaluate([[1, 7], [0, None], ["?", 2], [3, 1], "x"], Row()).tolist() == [2]
    person = Person("who", at_most=1)
    data = (["ann", "ann", "bob"], [[1, 2], [1, 2], [0, 1]])
    assert counts.evaluate(data, person).tolist() == [3]


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="snps"):
        AlleleCounts(snps=["a", "a"])
    with pytest.raises(InvalidParameter, match="4095"):
        ChiSquares(snps="a", cases=5000, controls=5000)
    with pytest.raises(DataError):
        AlleleCounts(snps="ab").evaluate(np.zeros((3, 2)), Row())
    with pytest.raises(InvalidParameter, match="published"):
        audit.score_genomes([[0, 1]], published=[0.5], reference=[0.5])


def test_the_place_that_causes_the_disease_is_found_at_a_small_price() -> None:
    """The score of the cause leads by more than 150 and noise has scale 2: one failure in e^35 runs."""
    rng = np.random.default_rng()
    genes = rng.binomial(2, 0.3, (1000, 3))
    genes[:, 1] = np.where(np.arange(1000) < 500, 2, 0)
    rows = np.column_stack([np.arange(1000) < 500, genes])
    score = AssociationScores(snps="abc", cases=500, controls=500, threshold=30)
    assert (np.diff(np.sort(score.evaluate(rows, Row()))) > 150).any()
    [best] = report_noisy_max(score, unit=Row(), epsilon=1).step(None, rows, None, noise.secure())[0]
    assert best["choice"] == "b"


@pytest.mark.parametrize("method", ["homer", "likelihood"])
def test_homers_attack_finds_members_in_the_open_and_not_behind_noise(method: str) -> None:
    """4,000 places and 50 members: in the open scores lie seven deviations apart. Of 50 blind calls among 100 the right
    ones have deviation 2.5, and an advantage of 0.8 is eight of them: below 1e-14, and epsilon 0.1 changes little."""
    rng = np.random.default_rng()
    frequencies = rng.uniform(0.1, 0.5, 4000)
    people = rng.binomial(2, frequencies, (100, 4000))
    included = np.arange(100) < 50
    counts = AlleleCounts(snps=range(4000))
    rows = np.column_stack([np.zeros(50), people[:50]])
    exact = counts.evaluate(rows, Row())
    noisy, _ = additive(counts, unit=Row(), epsilon=0.1, delta=1e-9).step(None, rows, None, noise.secure())
    found = []
    for released in (exact, np.asarray(noisy)):
        scores = audit.score_genomes(people, published=released / 100, reference=frequencies, method=method)  # type: ignore[arg-type]
        found.append(audit.membership_attack(None, None, included, scores=scores).advantage)
    assert found[0] > 0.8
    assert found[1] < 0.8
