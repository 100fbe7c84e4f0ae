"""Laws of units: who is hidden is fixed, limits are not; both survive JSON."""

import json
from typing import Any

import pytest

from mosha.core import unit as units
from mosha.core.errors import InvalidParameter
from tests.core.every_word import every_unit

UNITS = every_unit()


def test_the_list_of_units_is_complete() -> None:
    assert {type(unit) for unit in UNITS} == set(units.Unit.kinds.values())


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_unit_survives_json(unit: Any) -> None:
    assert units.Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_unit_says_who_and_how_neighbors_differ(unit: Any) -> None:
    assert unit.describe().startswith(unit.noun)
    assert unit.describe().endswith(unit.neighbors.describe())


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_protecting_the_same_is_an_equivalence(unit: Any) -> None:
    assert unit.protects_same(unit)
    for other in UNITS:
        assert unit.protects_same(other) == other.protects_same(unit), other
        assert unit.protects_same(other) == (unit.identity == other.identity), other


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_an_account_covers_its_unit_and_whole_persons_of_its_population(unit: Any) -> None:
    """What is covered is the same unit, perhaps without its population, or a whole person of the population itself."""
    assert unit.covers(unit)
    for other in UNITS:
        if unit.covers(other):
            assert unit.neighbors is other.neighbors, other
            assert other.of in (None, unit.of), other
            named = isinstance(unit, units.Member) and other.whole_person and other.of == unit.of
            assert named or type(unit) is type(other), other
        if unit.covers(other) and other.covers(unit):
            assert unit.protects_same(other), other
        if other.of is not None and other.of != unit.of:
            assert not unit.covers(other), other


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_only_a_unit_that_can_be_all_of_a_person_names_a_population(unit: Any) -> None:
    arguments = unit.to_dict() | {"of": "everybody"}
    if unit.whole_person:
        assert units.Unit.from_dict(arguments).of == "everybody"
    else:
        assert isinstance(unit, units.Reading | units.Window | units.Edge)
        with pytest.raises(InvalidParameter, match="not hide all of a person"):
            units.Unit.from_dict(arguments)


@pytest.mark.parametrize("name", ["", " a", "a ", "a/b", "a\n", 3, "a" * 301])
def test_a_population_has_a_name_that_an_account_can_have(name: Any) -> None:
    with pytest.raises(InvalidParameter, match="names a population"):
        units.Person("pid", of=name)


def test_a_unit_without_population_is_described_as_before_there_were_any() -> None:
    assert "of" not in units.Person("pid").to_dict()
    said = "Person(neighbors=<Neighbors.ADD_REMOVE: 'add-remove'>, column='pid', at_most=2, groups=None, "
    assert repr(units.Person("pid", at_most=2)) == said + "per_group=None, total=None)"  # fingerprints are made of it
    assert "of='staff'" in repr(units.Person("pid", of="staff"))


def test_limits_that_bounding_enforces_are_no_part_of_who_is_hidden() -> None:
    assert units.Person("id", at_most=5).protects_same(units.Person("id", at_most=50, groups=2))
    assert units.Node(max_degree=5).protects_same(units.Node())


def test_what_cannot_be_enforced_is_part_of_the_promise() -> None:
    assert not units.Row(2).protects_same(units.Row(3))


def test_another_column_another_neighbor_and_another_kind_are_somebody_else() -> None:
    person = units.Person("id")
    for other in (units.Person("name"), units.Person("id", neighbors="replace-one"), units.Row(), units.Client()):  # type: ignore[arg-type]
        assert not person.protects_same(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: units.Person(""),
        units.Member,
        lambda: units.Person(3),  # type: ignore[arg-type]
        lambda: units.Person("id", at_most=0),
        lambda: units.Person("id", at_most=2.5),  # type: ignore[arg-type]
        lambda: units.Person("id", total=-1),
        lambda: units.Person("id", total=float("nan")),
        lambda: units.Person("id", groups=True),
        lambda: units.Row(0),
        lambda: units.Row("many"),  # type: ignore[arg-type]
        lambda: units.Row(neighbors="next door"),  # type: ignore[arg-type]
        lambda: units.Node(max_degree=-1),
        lambda: units.Unit.from_dict({}),
        lambda: units.Unit.from_dict({"unit": "Galaxy"}),
        lambda: units.Unit.from_dict({"unit": ["Row"]}),
        lambda: units.Unit.from_dict({"unit": "Row", "surprise": 1}),
        lambda: units.Unit.from_dict({"unit": "Person"}),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
