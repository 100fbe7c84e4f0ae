"""What a synthetic table's promise rests on: what may follow the data, and what may not."""

import math
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.mechanisms.residuals.residuals import ResidualNoise
from mosha.noise import SeededRandom, secure
from mosha.synth.modelling import stages
from mosha.tables import Budget
from tests.synth.test_synthesis import WORDS

BUDGET = {"epsilon": 3, "delta": 1e-9}


class Read(Exception):
    """The exact counts were read where they must not be."""


def measure_blindly(seed: Any) -> Any:
    """In place of `measure`: numbers of the right shape that follow the seed and never the counts."""
    generator = np.random.default_rng(seed)

    def measure(self: Any, axes: Any, shares: Any, counts: Any, rng: Any) -> Any:
        del counts, rng
        noisy = {}
        for term in shares:
            shape = [axes[c].nodes(v) for c, v in term]
            noisy[term] = generator.normal(2000 if not term else 0, 100, shape)
        return self.read(axes, self.factors(axes, shares), noisy)

    return measure


def compare_blindly(seed: Any) -> Any:
    """The same for distances."""

    def measure(noise: Any, expected: Any, counts: Any, rng: Any) -> Any:
        del noise, counts, rng
        return np.random.default_rng(seed).normal(500, 300, len(expected))

    return measure


def measure(question: Any, counted: Any, noises: Any) -> Any:
    return stages.measure_stages(question.columns, counted, noises.stages, question.method, secure())


def blind(question: Any, counted: Any, seed: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(ResidualNoise, "measure", measure_blindly(seed))
        patch.setattr(stages, "measure_distances", compare_blindly(seed))
        return stages.measure_stages(
            question.columns, counted, question.noises(Budget(**BUDGET)).stages, question.method, secure()
        )


class Unread:
    """Counts that nobody may look at."""

    def __getattr__(self, name: Any) -> NoReturn:
        raise Read


@pytest.mark.parametrize("method", ["automatic", "independent", "tree", "selected pairs", "all pairs"])
def test_groups_terms_and_methods_follow_from_what_was_released_alone(
    method: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `measure` blind, every stage is designed without a look at the counts."""
    question = mosha.protect(rows, unit=mosha.Row()).synthesize(**WORDS, method=method)
    one, two = (blind(question, Unread(), seed, monkeypatch) for seed in (1, 1))
    assert one["method"] == two["method"]
    for stage in ("distances", "pairs", "fine"):
        assert one["designs"][stage]["terms"] == two["designs"][stage]["terms"]
        assert one["designs"][stage]["shares"] == two["designs"][stage]["shares"]


def test_a_design_that_reads_the_counts_is_found(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: groups by the true counts."""
    question = mosha.protect(rows, unit=mosha.Row()).synthesize(**WORDS)
    honest = stages.design_pairs  # type: ignore[attr-defined]

    def peek(columns: Any, measured: Any, multiplier: Any, **words: Any) -> Any:
        unread.weights.sum()
        return honest(columns, measured, multiplier, **words)  # type: ignore[unreachable]

    unread = Unread()
    monkeypatch.setattr(stages, "design_pairs", peek)
    with pytest.raises(Read):
        blind(question, unread, 1, monkeypatch)


def leave(rows: Any, unit: Any, seed: Any) -> tuple[Any, ...]:
    question = mosha.protect(rows, unit=unit).synthesize(**WORDS)
    noises = question.noises(Budget(**BUDGET))
    value = question.measurement_for(**BUDGET).step(None, None, None, SeededRandom(seed))[0]
    return question, noises, value


@pytest.mark.parametrize("unit", [mosha.Row(), mosha.Person("who")], ids=["rows", "persons"])
def test_neighbors_with_the_same_noise_differ_by_what_one_unit_may_move(unit: Any, rows: Any) -> None:
    """The first stage, replayed: its residuals, each over its deviation, move by at most 1 over the multiplier."""
    person = [name for name in rows["who"].to_pylist() if name != "p3"]
    without = rows.filter(pa.array([name in set(person) for name in rows["who"].to_pylist()]))
    if unit == mosha.Row():
        without = rows.slice(1)
    (question, noises, one), (_, _, two) = leave(rows, unit, 5), leave(without, unit, 5)
    design = stages.design_oneways(question.columns)  # type: ignore[attr-defined]
    deviations = noises["one-ways"].deviations(design.axes, design.shares)
    parts = [stages.unpack(value["one-ways"], design.axes, list(deviations)) for value in (one, two)]  # type: ignore[attr-defined]
    moved = sum(float(((parts[0][t] - parts[1][t]) ** 2).sum()) / d**2 for t, d in deviations.items())
    assert 0 < math.sqrt(moved) <= 1 / noises["one-ways"].multiplier * (1 + 1e-9)


def test_a_person_with_many_rows_counts_for_no_more_than_one(rows: Any) -> None:
    crowd = pa.concat_tables([rows, *[rows.slice(0, 1)] * 500])
    unit = mosha.Person("who")
    (question, noises, one), (_, _, two) = leave(rows, unit, 9), leave(crowd, unit, 9)
    design = stages.design_oneways(question.columns)  # type: ignore[attr-defined]
    deviations = noises["one-ways"].deviations(design.axes, design.shares)
    parts = [stages.unpack(value["one-ways"], design.axes, list(deviations)) for value in (one, two)]  # type: ignore[attr-defined]
    moved = sum(float(((parts[0][t] - parts[1][t]) ** 2).sum()) / d**2 for t, d in deviations.items())
    assert math.sqrt(moved) <= 2 / noises["one-ways"].multiplier * (1 + 1e-9)  # another row of a person: replaced


def guess_members(question: Any, budget: Any, runs: Any) -> Any:
    """How often the released rows tell whether an odd row was there: (hits with it, hits without it)."""
    crowd = pa.table({"g": ["a"] * 30, "x": [1] * 30})
    odd = pa.concat_tables([crowd, pa.table({"g": ["b"], "x": [0]})])
    hits = []
    for rows in (odd, crowd):
        asked = question(rows)
        noises, counted = asked.noises(budget), asked.count(asked.relation)
        made = (asked.read(measure(asked, counted, noises), noises) for _ in range(runs))
        hits.append(sum("b" in one.sample(30)["g"] for one in made))
    return hits


def is_within(hits: Any, runs: Any, epsilon: Any) -> Any:
    """Hoeffding: each share is off by more than 0.33 in 100 runs less than once in 1e9."""
    slack = math.sqrt(math.log(2e9) / (2 * runs))
    return hits[0] / runs - slack <= math.exp(epsilon) * (hits[1] / runs + slack)


def test_membership_cannot_be_read_off_the_rows_beyond_the_promise() -> None:
    """False alarms: below 1e-9."""

    def ask(rows: Any) -> Any:
        table = mosha.protect(rows, unit=mosha.Row())
        return table.synthesize(keys={"g": ["a", "b"], "x": [0, 1]}, nulls=[])

    assert is_within(guess_members(ask, Budget(epsilon=0.5, delta=1e-9), 100), 100, 0.5)


def test_the_attack_finds_rows_that_are_released_as_they_are() -> None:
    """Power: a table that shows its true rows has the odd one always with it, never without."""
    assert not is_within([100, 0], 100, 0.5)
