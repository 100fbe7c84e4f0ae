"""Where a noisy histogram hides how slowly people fall, an answer says that it has no bar to rely on."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.language.value import Rows
from mosha.tables.parts.norm_choice import SHARE_FOR_BOUNDS, NormChoice, thresholds

PEOPLE, DRAWS = 3000, 200
SLOW = {
    "Zipf 3": lambda g: g.zipf(3.0, PEOPLE),
    "Zipf 2": lambda g: np.minimum(g.zipf(2.0, PEOPLE), 10**6),
    "Zipf 1.5": lambda g: np.minimum(g.zipf(1.5, PEOPLE), 10**6),
}


def release(rows: Any, epsilon: float, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether the bar of a count holds, and whether the answer says that there is none."""
    choice = NormChoice(epsilon * SHARE_FOR_BOUNDS, 1, twice=False, share=SHARE_FOR_BOUNDS)
    marks, rest = thresholds(), epsilon * (1 - SHARE_FOR_BOUNDS)
    exact = np.bincount(np.searchsorted(marks, rows), minlength=len(marks) + 1)
    noisy = exact + np.round(generator.laplace(0, float(choice.scale), len(exact)))
    best = choice._best(Rows(), marks, noisy, None, lambda norm: math.sqrt(2) * norm / rest, 1, generator)
    answer = float(np.minimum(rows, best.norm).sum() + generator.laplace(0, best.norm / rest))
    bar = best.norm / rest * math.log(20) + max(best.cut, best.most, 0.0) * abs(answer)
    return abs(answer - float(rows.sum())) <= bar, best.hidden


@pytest.mark.parametrize("name", SLOW)
def test_a_bar_that_does_not_hold_is_not_called_one(name: str) -> None:
    """Bars that are missed without a word: 5% at most, so that more than 32 of 200 come once in 1e9 runs."""
    generator = np.random.default_rng()
    found = [release(np.asarray(SLOW[name](generator), np.int64), 0.2, generator) for _ in range(DRAWS)]
    assert sum(not held and not hidden for held, hidden in found) <= 32
    if name != "Zipf 2":  # the words are needed: bars of these laws are missed in 33 and 50% of all releases
        assert sum(not held for held, _ in found) > 25


@pytest.mark.parametrize(
    "law", [lambda g: np.full(PEOPLE, 4), lambda g: g.geometric(0.2, PEOPLE)], ids=["four", "geometric"]
)
def test_a_bar_that_holds_is_not_called_a_guess(law: Any) -> None:
    generator = np.random.default_rng()
    found = [release(np.asarray(law(generator), np.int64), 1.0, generator) for _ in range(DRAWS)]
    assert not any(hidden for _, hidden in found)
    assert sum(not held for held, _ in found) <= 32


def test_a_guess_is_of_a_size_that_people_can_use() -> None:
    """At epsilon 0.2 bars of 280 times the answer were shown for a study of five years; every third answer had one."""
    generator = np.random.default_rng()
    choice, marks = NormChoice(0.01, 1, twice=False, share=SHARE_FOR_BOUNDS), thresholds()
    rows = generator.integers(1, 6, 5912)
    exact = np.bincount(np.searchsorted(marks, rows), minlength=len(marks) + 1)
    for _ in range(50):
        noisy = exact + np.round(generator.laplace(0, float(choice.scale), len(exact)))
        best = choice._best(Rows(), marks, noisy, None, lambda norm: 8.0 * norm, 1, generator)
        assert not best.hidden or best.most <= 1.0


def test_a_guess_holds_on_tables_that_are_common() -> None:
    """At epsilon 0.2 nobody can see how fast people fall; 1% were missed, and 5% are more than 32 once in 1e9 runs."""
    generator = np.random.default_rng()
    found = [release(generator.geometric(0.2, PEOPLE), 0.2, generator) for _ in range(DRAWS)]
    assert sum(not held for held, _ in found) <= 32
    assert sum(hidden for _, hidden in found) > 100


def test_the_answer_says_it_in_words() -> None:
    """Of 600 people most have one row and some two: at epsilon 0.2 nobody can see the others."""
    who = np.repeat(np.arange(600), np.where(np.arange(600) % 3, 1, 2))
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=100)
    question = mosha.protect(pa.table({"who": who}), unit=mosha.Person("who"), account=account).count()
    said = [" ".join(question.release(epsilon=0.5).notes) for _ in range(20)]
    assert any("without a limit" in notes for notes in said)
    sure = [" ".join(question.release(epsilon=10).notes) for _ in range(2)]
    assert not any("without a limit" in notes for notes in sure)
