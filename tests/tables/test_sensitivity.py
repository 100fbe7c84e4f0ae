"""One unit moves the channels of a release by no more than its noise was made for: searched on random tables."""

import random

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.connect.source import answer
from mosha.tables import aggregates as ask
from mosha.tables.budget import Budget
from mosha.tables.joint_noise import BoxNoise
from mosha.tables.table import protect

WARDS = ["A", "B", "C"]
UNITS = [
    mosha.Row(),
    mosha.Row(at_most=3),
    mosha.Row(neighbours="replace-one"),
    mosha.Person("who", at_most=2),
    mosha.Person("who", at_most=2, neighbours="replace-one"),
    mosha.Person("who", groups=2, per_group=3),
    mosha.Person("who", at_most=4, groups=2, per_group=3),
]
BUDGETS = [Budget(epsilon=1), Budget(rho=0.5)]


def rows_of(person, generator):
    """What one person may have: many rows or few, in one group or many, of every kind of value."""
    values = [None, float("nan"), -1e9, 1e9, -3.0, 0.0, 7.5, 30.0, 31.0]
    count = generator.choice([1, 1, 2, 5, 20])
    wards = generator.choice([["A"], WARDS, [None, "Z", "B"]])
    return [(person, generator.choice(wards), generator.choice(values), generator.choice(values)) for _ in range(count)]


def as_table(rows):
    names = ["who", "ward", "days", "cost"]
    types = [pa.int64(), pa.string(), pa.float64(), pa.float64()]
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


def neighbours(unit, generator):
    others = [row for person in range(6) for row in rows_of(person, generator)]
    owned = [rows_of(99, generator) for _ in range(2)]
    if isinstance(unit, mosha.Row):
        others = [(i, *row[1:]) for i, row in enumerate(others)]
        owned = [rows[: unit.at_most] for rows in owned]
    if unit.neighbours == "replace-one":
        if isinstance(unit, mosha.Row):
            owned = [rows[:1] for rows in owned]
        return others + owned[0], others + owned[1]
    return others + owned[0], others


def questions(table):
    grouped = table.group_by("ward", keys=WARDS)
    numbers = {
        "n": ask.count(),
        "d": ask.mean("days", between=(0, 30)),
        "s": ask.sum("days", between=(-5, 30)),
        "v": ask.covariance(["days", "cost"], between=[(0, 30), (-5, 5)]),
    }
    yield grouped.aggregate(**numbers)
    yield table.aggregate(**numbers)
    yield grouped.sum("cost", between=(-10, 5))
    if isinstance(table.unit, mosha.Person):
        yield grouped.persons()


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
def test_one_unit_moves_the_channels_within_their_reach(unit, budget):
    generator = random.Random()
    for _ in range(4):
        pair = neighbours(unit, generator)
        tables = [protect(as_table(rows), unit=unit) for rows in pair]
        key = generator.randbytes(32)
        for first, second in zip(*(questions(table) for table in tables), strict=True):
            for part in first.parts(budget):
                exact = []
                groups = first.frame.groups
                for question in (first, second):
                    totals = answer(part.question(question.frame, part.limits.norm, key)[0])
                    columns = [np.asarray(totals[name]).astype(object) for name in part.values]
                    exact.append(np.array([c if len(c) == groups else [0] * groups for c in columns]))
                reach = part.reach(first.frame, part.limits.norm)
                moved = np.abs(exact[0] - exact[1]).astype(float)
                share = moved / np.array(reach, float)[:, None]
                if isinstance(part.noise, BoxNoise):
                    assert share.max(axis=0).sum() <= 1 + 1e-12
                else:
                    assert ((share**2).sum(axis=1) <= 1 + 1e-12).all()


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=0.3, delta=1e-6), Budget(rho=0.2)], ids=repr)
@pytest.mark.parametrize("unit", [mosha.Person("who", at_most=2), mosha.Person("who")], ids=repr)
def test_a_release_costs_what_was_said(budget, unit):
    table = protect(as_table([]), unit=unit)
    for question in questions(table):
        event = question.measurement(budget).event
        if budget.rho is not None:
            assert mosha.accounting.concentrated.cost_of(event).amount <= budget.rho * (1 + 1e-9)
        else:
            assert mosha.accounting.epsilon(event, budget.delta) <= budget.epsilon * (1 + 1e-9)
