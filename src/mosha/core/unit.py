"""Whose presence is hidden.

A unit says which two data sets count as neighbors. Some fields say *who* is hidden (`identity`):
an account is opened for them and refuses all others. The remaining fields are limits that bounding
enforces on everybody's data; they move the noise and not the promise.

`of` names a population: the people behind the units, who may also be behind other tables, graphs, streams and
trainings. Accounts whose units name one population are charged together with it (see `Ledger.population`). Whoever says
`of="patients of X"` declares that all that the data hold of one patient is one unit of this kind:

    Person(column)     all rows of a patient carry one value of the column
    Row(at_most=m)     a patient owns at most m rows
    Node               a patient is at most one vertex
    Example, Client    a patient is behind at most one example, or at most one client
    Own                a patient has at most one device

Reading, Window and Edge hide a part of what a person does, never all of it: they cannot name a population.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum, nonmember
from typing import Any, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import describe_fields, is_storing, name_as_stored, stored_as
from mosha.core.language import Language, Phrase, phrase, say
from mosha.core.names.calls import explain_wrong_calls, renamed_argument
from mosha.core.names.deprecation import renamed_attribute
from mosha.core.number import positive, positive_integer

__all__ = [
    "Client", "Edge", "Example", "Member", "Neighbors", "Node", "Own", "Person", "Reading", "Row", "Unit", "Window",
]  # fmt: skip

LONGEST = 300  # characters of the name of a population


class Neighbors(StrEnum):
    """How two neighboring data sets differ in one unit.

    >>> Neighbors("replace-one").describe()
    'is replaced by another'
    """

    stored_as = nonmember("Neighbours")

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    def __repr__(self) -> str:
        name = Neighbors.stored_as if is_storing() else "Neighbors"
        return f"<{name}.{self.name}: {self.value!r}>"

    def phrase(self) -> Phrase:
        """How they differ, in words."""
        return phrase("core.added_or_removed" if self is Neighbors.ADD_REMOVE else "core.replaced")

    def describe(self, lang: Language | None = None) -> str:
        """How they differ, in words of the language `lang` (None: the chosen one)."""
        return say(self.phrase().code, lang)


def _limit() -> Any:
    """A field that bounding enforces: it is no part of who is hidden."""
    return field(default=None, metadata={"limit": True})


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The root of all units; `neighbors` is always said, `of` names the population where there is one.

    >>> Person("patient", at_most=3).describe()
    "one person (all rows of one 'patient') is added or removed"
    >>> Unit.from_dict(Row().to_dict()) == Row()
    True
    """

    neighbors: Neighbors = field(default=Neighbors.ADD_REMOVE, metadata=stored_as("neighbours"))
    of: str | None = None
    neighbours: ClassVar = renamed_attribute("neighbours", "neighbors")
    whole_person: ClassVar[bool] = False  # whether one unit can be all that the data hold of a person
    kinds: ClassVar[dict[str, type[Unit]]] = {}

    stored_as: ClassVar[str] = "Unit"  # what books and fingerprints call it, whatever the class is called today

    def __init_subclass__(cls, *, stored_as: str | None = None) -> None:
        cls.stored_as = stored_as or cls.__name__
        Unit.kinds[cls.stored_as] = Unit.kinds[cls.__name__] = cls
        cls.__repr__ = Unit.__repr__  # type: ignore[method-assign]  # before a dataclass makes its own

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        except ValueError:
            kinds = [repr(str(kind)) for kind in Neighbors]
            raise InvalidParameter("core.unknown_option", parameter="neighbors", options=kinds) from None
        if self.of is not None:
            self._check_population()
        for f in fields(self):
            if f.metadata.get("limit") and (value := getattr(self, f.name)) is not None:
                check = positive if f.name == "total" else positive_integer
                object.__setattr__(self, f.name, check(f.name, value))

    def __repr__(self) -> str:
        """All fields, but for a population that is not named: fingerprints of questions are made of this text."""
        said = (f for f in fields(self) if f.name != "of" or self.of is not None)
        name = self.stored_as if is_storing() else type(self).__qualname__
        return f"{name}({describe_fields(said, self)})"

    def summarize(self) -> str:
        """The unit as one would write it: the fields that were said.

        >>> Person("patient_id", at_most=5).summarize()
        "Person('patient_id', at_most=5)"
        """
        said = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        words = [repr(value) if name == "column" else f"{name}={value!r}" for name, value in said]
        words = [word.replace(repr(self.neighbors), repr(str(self.neighbors))) for word in words]
        return f"{type(self).__qualname__}({', '.join(words)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002, FBT001  (as notebooks call it)
        printer.text(self.summarize())

    def _check_population(self) -> None:
        if not is_population_name(self.of):
            raise InvalidParameter("core.bad_population_name", parameter="of", longest=LONGEST)
        if not self.whole_person:
            raise InvalidParameter("core.part_of_a_person", parameter="of", unit=type(self).__name__)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Who is hidden, without the limits that bounding enforces."""
        return (*self._kind, self.of)

    @property
    def _kind(self) -> tuple[Any, ...]:
        hidden = (getattr(self, f.name) for f in fields(self) if not f.metadata.get("limit") and f.name != "of")
        return (self.stored_as, *hidden)

    def protects_same(self, other: Unit) -> bool:
        """Whether a promise for `other` is a promise for this unit."""
        return self.identity == other.identity

    def covers(self, other: Unit) -> bool:
        """Whether an account for this unit may pay for what hides `other`.

        A measurement that names a population is paid by accounts of that population alone. One that names none takes
        the population of its account.

        >>> Person("pid", of="patients").covers(Person("pid")), Person("pid").covers(Person("pid", of="patients"))
        (True, False)
        >>> Member(of="patients").covers(Person("pid", of="patients"))
        True
        """
        return self._kind == other._kind and other.of in (None, self.of)

    def describe(self, lang: Language | None = None) -> str:
        """The unit in words of the language `lang` (None: the chosen one).

        >>> Person("patient_id", at_most=5).describe()
        "one person (all rows of one 'patient_id') is added or removed"
        """
        described = self.phrase()
        return say(described.code, lang, **described.fields)

    def phrase(self) -> Phrase:
        """The unit in words, as a part of a sentence."""
        population = {} if self.of is None else {"population": self.of}
        code = "core.unit" if self.of is None else "core.unit_of_population"
        return phrase(code, noun=self.noun, differs=self.neighbors.phrase(), **population)

    @property
    def noun(self) -> Phrase:
        """What is hidden, in words."""
        return phrase(f"core.noun_{type(self).__name__.lower()}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as books and receipts keep it."""
        described = {"unit": self.stored_as} | {name_as_stored(f): getattr(self, f.name) for f in fields(self)}
        if self.of is None:  # books and receipts from before there were populations read the same
            del described["of"]
        return described

    @staticmethod
    def from_dict(stored: Mapping[str, object]) -> Unit:
        """The unit that `to_dict` described, from what it `stored`.

        >>> Unit.from_dict(Node(max_degree=50).to_dict()) == Node(max_degree=50)
        True
        """
        arguments: dict[str, Any] = dict(stored)
        kind = Unit.kinds.get(str(arguments.pop("unit", "")))
        if kind is None:
            raise InvalidParameter("core.unknown_unit")
        names = {name_as_stored(f): f.name for f in fields(kind)}
        given = {names.get(key, key): value for key, value in arguments.items()}
        if len(given) < len(arguments):  # one thing under its old and its new name
            raise InvalidParameter("core.unknown_unit_fields", kind=kind.__name__)
        try:
            return kind(**given)
        except TypeError:
            raise InvalidParameter("core.unknown_unit_fields", kind=kind.__name__) from None


def is_population_name(name: object) -> bool:
    """Whether this can name a population, and with it an account at the top of a ledger."""
    if not isinstance(name, str) or not name.isprintable() or "/" in name:
        return False
    return name == name.strip() != "" and len(name) <= LONGEST


@renamed_argument(neighbours="neighbors")
@dataclass(frozen=True)
class Member(Unit):
    """One person of a population, with all that any table, graph, stream or training holds of them.

    The unit of the population's own account: it pays for whatever hides a whole person of that population, provided
    that the neighbors are of the same kind. Nothing is measured at this unit itself.

    >>> Member(of="patients").covers(Person("who", of="patients"))
    True
    """

    whole_person: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.of is None:
            raise InvalidParameter("core.member_without_population", parameter="of")
        super().__post_init__()

    def covers(self, other: Unit) -> bool:
        return other.whole_person and other.of == self.of and other.neighbors is self.neighbors


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Row(Unit):
    """One row. `at_most` says how many rows one person may own, without naming whose they are.

    Nothing in the data identifies the owner of a row, so `at_most` cannot be enforced: it is part of the promise.

    >>> Row().describe()
    'one row is added or removed'
    """

    at_most: int = 1
    whole_person: ClassVar[bool] = True  # of whoever owns no other rows: `of=...` declares that nobody does

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", positive_integer("at_most", self.at_most))
        super().__post_init__()

    @property
    def noun(self) -> Phrase:
        if self.at_most == 1:
            return phrase("core.noun_row" if self.of is None else "core.noun_person_with_one_row")
        return phrase("core.noun_person_with_rows", rows=self.at_most)


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Person(Unit):
    """All rows that share one value of `column`.

    Limits, each enforced on every person's rows alone: `at_most` rows, `groups` groups,
    `per_group` rows in one group, `total` for the norm of all that a person contributes.

    >>> Person("patient").describe()
    "one person (all rows of one 'patient') is added or removed"
    """

    column: str
    at_most: int | None = _limit()
    groups: int | None = _limit()
    per_group: int | None = _limit()
    total: float | None = _limit()
    whole_person: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("core.unit_without_column", parameter="column", unit="Person")
        super().__post_init__()

    @property
    def noun(self) -> Phrase:
        return phrase("core.noun_person", column=self.column)


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Reading(Unit, stored_as="Event"):
    """One reading of one person at one time (the unit of streams, not a price: see `mosha.events`).

    >>> Reading().describe()
    'one reading is added or removed'
    """


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Window(Unit):
    """All that one person (one value of `column`) does within any `steps` consecutive steps of a stream.

    What a person does in windows that do not overlap is not hidden together: the promise is for each window.

    >>> Window("who", steps=7).steps
    7
    """

    column: str
    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("core.unit_without_column", parameter="column", unit="Window")
        object.__setattr__(self, "steps", positive_integer("steps", self.steps))
        super().__post_init__()

    @property
    def noun(self) -> Phrase:
        return phrase("core.noun_window", column=self.column, steps=self.steps)


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Edge(Unit):
    """One edge of a graph; the vertices are public.

    >>> Edge().describe()
    'one edge is added or removed'
    """


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Node(Unit):
    """One vertex with all its edges; projection enforces `max_degree`.

    >>> Node().describe()
    'one vertex with all its edges is added or removed'
    """

    max_degree: int | None = _limit()
    whole_person: ClassVar[bool] = True


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Example(Unit):
    """One training example.

    >>> Example().describe()
    'one training example is added or removed'
    """

    whole_person: ClassVar[bool] = True


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Client(Unit):
    """One client of a federation with all its data.

    >>> Client().describe()
    'one client with all its data is added or removed'
    """

    whole_person: ClassVar[bool] = True


@renamed_argument(neighbours="neighbors")
@explain_wrong_calls
@dataclass(frozen=True)
class Own(Unit, stored_as="Self"):
    """The owner of the device: any value could have been any other.

    >>> Own().describe()
    "the device's own value is replaced by another"
    """

    neighbors: Neighbors = field(default=Neighbors.REPLACE_ONE, kw_only=True, metadata=stored_as("neighbours"))
    whole_person: ClassVar[bool] = True
