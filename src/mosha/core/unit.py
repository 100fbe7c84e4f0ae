"""Whose presence is hidden.

A unit says which two data sets count as neighbours. Some fields say *who* is hidden (`identity`):
an account is opened for them and refuses all others. The remaining fields are limits that bounding
enforces on everybody's data; they move the noise and not the promise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer

__all__ = ["Client", "Edge", "Event", "Example", "Neighbours", "Node", "Person", "Row", "Self", "Unit", "Window"]


class Neighbours(StrEnum):
    """How two neighbouring data sets differ in one unit."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    def describe(self) -> str:
        return "is added or removed" if self is Neighbours.ADD_REMOVE else "is replaced by another"


def _limit() -> Any:
    """A field that bounding enforces: it is no part of who is hidden."""
    return field(default=None, metadata={"limit": True})


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The root of all units; `neighbours` is always said."""

    neighbours: Neighbours = Neighbours.ADD_REMOVE
    noun: ClassVar[str]
    kinds: ClassVar[dict[str, type[Unit]]] = {}

    def __init_subclass__(cls) -> None:
        Unit.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        except ValueError:
            names = ", ".join(repr(str(n)) for n in Neighbours)
            raise InvalidParameter(f"neighbours must be one of {names}.") from None
        for f in fields(self):
            if f.metadata.get("limit") and (value := getattr(self, f.name)) is not None:
                check = positive if f.name == "total" else positive_integer
                object.__setattr__(self, f.name, check(f.name, value))

    @property
    def identity(self) -> tuple[Any, ...]:
        """Who is hidden, without the limits that bounding enforces."""
        hidden = (getattr(self, f.name) for f in fields(self) if not f.metadata.get("limit"))
        return (type(self).__name__, *hidden)

    def protects_same(self, other: Unit) -> bool:
        """Whether a promise for `other` is a promise for this unit."""
        return self.identity == other.identity

    def describe(self) -> str:
        """The unit in words.

        >>> Person("patient_id", at_most=5).describe()
        "one person (all rows of one 'patient_id') is added or removed"
        """
        return f"{self.noun} {self.neighbours.describe()}"

    def to_dict(self) -> dict[str, Any]:
        return {"unit": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}

    @staticmethod
    def from_dict(stored: dict[str, Any]) -> Unit:
        """The unit that `to_dict` described.

        >>> Unit.from_dict(Node(max_degree=50).to_dict()) == Node(max_degree=50)
        True
        """
        arguments = dict(stored)
        kind = Unit.kinds.get(str(arguments.pop("unit", "")))
        if kind is None:
            raise InvalidParameter("this is not the description of a known unit.")
        try:
            return kind(**arguments)
        except TypeError:
            raise InvalidParameter(f"the fields of this {kind.__name__} unit are not the known ones.") from None


@dataclass(frozen=True)
class Row(Unit):
    """One row. `at_most` says that one person may own so many rows, without naming whose they are.

    Nothing in the data says whose a row is, so `at_most` cannot be enforced: it is part of the promise.
    """

    at_most: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", positive_integer("at_most", self.at_most))
        super().__post_init__()

    @property
    def noun(self) -> str:  # type: ignore[override]
        return "one row" if self.at_most == 1 else f"a person with at most {self.at_most} rows"


@dataclass(frozen=True)
class Person(Unit):
    """All rows that share one value of `column`.

    Limits, each enforced on every person's rows alone: `at_most` rows, `groups` groups,
    `per_group` rows in one group, `total` for the norm of all that a person contributes.
    """

    column: str
    at_most: int | None = _limit()
    groups: int | None = _limit()
    per_group: int | None = _limit()
    total: float | None = _limit()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("Person needs the name of the column that says whose a row is.")
        super().__post_init__()

    @property
    def noun(self) -> str:  # type: ignore[override]
        return f"one person (all rows of one {self.column!r})"


@dataclass(frozen=True)
class Event(Unit):
    """One reading of one person at one time (the unit of streams, not a price: see `mosha.events`)."""

    noun: ClassVar[str] = "one event"


@dataclass(frozen=True)
class Window(Unit):
    """All that one person (one value of `column`) does within any `steps` consecutive steps of a stream.

    What a person does in windows that do not overlap is not hidden together: the promise is for each window.
    """

    column: str
    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("Window needs the name of the column that says whose a row is.")
        object.__setattr__(self, "steps", positive_integer("steps", self.steps))
        super().__post_init__()

    @property
    def noun(self) -> str:  # type: ignore[override]
        return f"all that one person (one {self.column!r}) does within any {self.steps} consecutive steps"


@dataclass(frozen=True)
class Edge(Unit):
    """One edge of a graph; the vertices are public."""

    noun: ClassVar[str] = "one edge"


@dataclass(frozen=True)
class Node(Unit):
    """One vertex with all its edges; projection enforces `max_degree`."""

    max_degree: int | None = _limit()
    noun: ClassVar[str] = "one vertex with all its edges"


@dataclass(frozen=True)
class Example(Unit):
    """One training example."""

    noun: ClassVar[str] = "one training example"


@dataclass(frozen=True)
class Client(Unit):
    """One client of a federation with all its data."""

    noun: ClassVar[str] = "one client with all its data"


@dataclass(frozen=True)
class Self(Unit):
    """The owner of the device: any value could have been any other."""

    neighbours: Neighbours = field(default=Neighbours.REPLACE_ONE, kw_only=True)
    noun: ClassVar[str] = "the device's own value"
