"""Neighbors, search, and the attack on everything."""

import inspect
import math
from typing import Any

import pytest

from mosha import Edge, Measurement, Node, Person, Row, events, guarantees, mechanisms
from mosha.audit import Outcome, Proposal, attack_all, entries, neighbors, register, registry, search
from mosha.core.errors import InvalidParameter

ADD, REPLACE = Row(), Row(neighbors="replace-one")  # type: ignore[arg-type]


def factories() -> list[Any]:
    """Every public function of mosha.mechanisms that makes a measurement."""
    found = [name for name in mechanisms.__all__ if inspect.isfunction(getattr(mechanisms, name))]
    returns = {name: inspect.signature(getattr(mechanisms, name)).return_annotation for name in found}
    return sorted(name for name, kind in returns.items() if kind in (Measurement, "Measurement"))


def test_every_mechanism_is_registered() -> None:
    assert len(factories()) > 10
    assert set(factories()) <= {entry.covers for entry in entries()}


def test_every_kind_of_data_has_entries_of_its_own() -> None:
    """The other kinds attack theirs in the tests of the kind."""
    found = {entry.kind for entry in entries()} - {"yours"}  # what other tests registered in this process
    assert found == set(registry.KINDS) - set(registry.missing())
    assert len({entry.name for entry in entries()}) == len(entries())


def test_no_mechanism_of_mosha_is_broken() -> None:
    """`mosha audit all` in small: all attacks together have a false-alarm rate of 1e-9."""
    own = [entry for entry in entries() if entry.kind == "mechanisms"]
    verdicts = list(attack_all(own, runs=600, confidence=1 - 1e-9))
    assert [str(v) for v in verdicts if v.outcome is not Outcome.CONSISTENT] == []
    assert len(verdicts) == len(own) > 20


def leaky() -> Any:
    step = lambda state, data, ask, rng: (len(data), state)
    return Measurement(unit=Row(), event=events.Pure(1.0), step=step, name="leaky")


def test_a_registered_mechanism_is_attacked_under_its_name() -> None:
    register("a leak", leaky, neighbors.of_numbers(ADD, between=(0, 1)))
    try:
        entry = next(entry for entry in entries() if entry.name == "a leak")
        (verdict,) = attack_all([entry], runs=400)
        assert (verdict.name, verdict.outcome) == ("a leak", Outcome.BROKEN)
        with pytest.raises(InvalidParameter):
            register("a leak", leaky, neighbors.of_numbers(ADD, between=(0, 1)))
    finally:
        registry.forget("a leak")
    assert "a leak" not in [entry.name for entry in entries()]


def test_a_slow_mechanism_gets_fewer_runs_and_a_quick_one_all_of_them() -> None:
    own = [entry for entry in entries() if entry.name in {"laplace: count", "local: k-ary"}]
    few = list(attack_all(own, runs=300, confidence=1 - 1e-9, seconds=1e-9))
    all_of_them = list(attack_all(own, runs=300, confidence=1 - 1e-9, seconds=1e9))
    assert [verdict.runs for verdict in few] == [100, 100]
    assert [verdict.runs for verdict in all_of_them] == [300, 300]
    with pytest.raises(InvalidParameter):
        list(attack_all(own, seconds=0))


def test_nothing_to_attack_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        list(attack_all([]))
    with pytest.raises(InvalidParameter):
        register("", leaky, [])
    with pytest.raises(InvalidParameter):
        search(leaky(), [])


def test_a_search_finds_the_pair_that_tells() -> None:
    pairs = [Proposal("same", [], []), Proposal("one more", [1], []), Proposal("same again", [1], [1])]
    verdict = search(leaky(), pairs, runs=400)
    assert verdict.broken
    assert verdict.neighbors == ("[1]", "[]")
    assert search(lambda data: 0, pairs, claim=guarantees.Pure(1), runs=400).outcome is Outcome.CONSISTENT


def differs_in_one_unit(unit: Any, first: Any, second: Any) -> tuple[Any, ...]:
    """Whether two data sets are neighbors, as multisets of (person, value)."""

    def rows(data: Any) -> list[Any]:
        pairs = (
            list(zip(data[unit.column], data["value"], strict=True))
            if isinstance(unit, Person)
            else list(enumerate(data))
        )
        return [(person if isinstance(unit, Person) else None, repr(value)) for person, value in pairs]

    more, less = rows(first), rows(second)
    kept = list(less)
    extra = [row for row in more if row not in kept or kept.remove(row)]
    return extra, kept


@pytest.mark.parametrize("unit", [ADD, REPLACE, Row(at_most=3), Person("id", at_most=2)], ids=lambda u: u.describe())
@pytest.mark.parametrize("kind", ["numbers", "keys"])
def test_proposed_neighbors_differ_in_one_unit_alone(unit: Any, kind: str) -> None:
    made = (
        neighbors.of_numbers(unit, between=(0, 10))
        if kind == "numbers"
        else neighbors.of_categories(unit, keys=["a", "b"])
    )
    assert len({proposal.why for proposal in made}) == len(made) >= 5
    for proposal in made:
        extra, missing = differs_in_one_unit(unit, *proposal.pair)
        if isinstance(unit, Person):
            assert {person for person, _ in [*extra, *missing]} <= {"odd"}
        else:
            assert len(extra) <= unit.at_most
            assert len(missing) <= (unit.at_most if unit.neighbors == "replace-one" else 0)


def test_the_proposals_hold_the_hard_cases() -> None:
    values = [value for p in neighbors.of_numbers(ADD, between=(0, 10)) for value in [*p.first, *p.second]]
    assert {0.0, 10.0} <= set(values)
    assert max(v for v in values if math.isfinite(v)) > 1000
    assert any(math.isnan(v) for v in values)
    assert math.inf in values
    assert [] in [p.second for p in neighbors.of_numbers(ADD, between=(0, 10))]
    person = Person("id", at_most=2)
    assert any(p.first["id"].count("odd") > 10 for p in neighbors.of_numbers(person, between=(0, 1)))


def test_streams_differ_in_one_step_or_in_one_person() -> None:
    for proposal in neighbors.of_streams(Row(), horizon=7):
        assert sum(a != b for a, b in zip(*proposal.pair, strict=True)) == 1
    (always,) = neighbors.of_streams(Person("id"), horizon=7)
    assert all(a != b for a, b in zip(*always.pair, strict=True))


def test_graphs_differ_in_one_edge_or_one_vertex() -> None:
    for proposal in neighbors.of_graphs(Edge(), vertices=6):
        (n, more), (m, less) = proposal.pair
        assert n == m
        assert len(set(more) ^ set(less)) == 1
    for proposal in neighbors.of_graphs(Node(), vertices=6):
        (n, more), (m, less) = proposal.pair
        assert n == m + 1
        assert all(m in edge for edge in set(more) ^ set(less))
        assert all(max(edge) < m for edge in less)
    with pytest.raises(InvalidParameter):
        neighbors.of_graphs(Row())


def test_local_values_are_all_compared() -> None:
    assert len(neighbors.of_own_value(["a", "b", "c"])) == 3


@pytest.mark.parametrize("between", [(1, 0), (0, 0), (0, float("nan")), (0, float("inf"))])
def test_wrong_bounds_are_refused(between: Any) -> None:
    with pytest.raises(InvalidParameter):
        neighbors.of_numbers(ADD, between=between)
    with pytest.raises(InvalidParameter):
        neighbors.of_categories(ADD, keys=["a"])
