"""What a run costs: an event is a data-free, frozen description of what was done.

Events are what the ledger stores. They never hold an epsilon that somebody worked out; they hold what an
accountant needs to work it out, today or with tighter mathematics later. Two operations compose them,

    e1 + e2     both were run on the same people's data, the second perhaps chosen after seeing the first
    e * n       the same as e + e + ... + e, n times

and a composition is kept as a multiset, so order and grouping cannot matter:

>>> from mosha.core.events import Gaussian, Laplace
>>> Laplace(10) + Gaussian(5) + Laplace(10) == Gaussian(5) + 2 * Laplace(10)
True
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import WrittenWhole, name_as_stored
from mosha.core.names.calls import renamed_argument
from mosha.core.names.deprecation import renamed_method
from mosha.core.number import positive_integer
from mosha.core.unit import Neighbors

__all__ = ["NOTHING", "Composed", "Event", "check_fields", "compose", "from_dict", "from_json"]

VERSION = 1


@dataclass(frozen=True)
class Event(WrittenWhole):
    """The root of all events. A subclass is a frozen dataclass of public numbers and other events.

    >>> from mosha.core.events import Gaussian
    >>> event = Gaussian(2) * 3
    >>> event.parts(), event.is_nothing()
    (((Gaussian(noise_multiplier=2.0), 3),), False)
    >>> from_dict(event.to_dict()) == event
    True
    """

    kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        Event.kinds[cls.__name__] = cls

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        if self.is_nothing() or other.is_nothing():
            return other if self.is_nothing() else self
        return Composed.later(self, other)

    def __radd__(self, other: object) -> Event:
        return self if other == 0 else NotImplemented  # lets sum(events) work

    def __mul__(self, count: int) -> Event:
        """This event `count` times; zero times costs nothing."""
        if isinstance(count, int) and not isinstance(count, bool) and count == 0:
            return NOTHING
        return compose([(self, positive_integer("count", count))])

    __rmul__ = __mul__

    @renamed_argument(neighbours="neighbors")
    def sample(self, rate: float, *, neighbors: Neighbors | str = Neighbors.ADD_REMOVE) -> Event:
        """This event on a Poisson sample: every unit is drawn with probability `rate`, on its own.

        `neighbors` says whether a unit is added or removed, or replaced.
        """
        return Event.kinds["Sampled"](self, rate, neighbors)  # type: ignore[call-arg]

    sampled = renamed_method("sampled", "sample")

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """The events this one is composed of, each with its count: the only way composition is read."""
        return ((self, 1),)

    def is_nothing(self) -> bool:
        """Whether this is the event of which nothing was run."""
        return False

    def suits(self, neighbors: Neighbors) -> bool:
        """Whether the price of this event is that of telling such `neighbors` apart.

        Most events are: their noise multiplier is over the sensitivity under whatever neighbors the unit has. Some
        amplifications hold for one kind of neighbors only.
        """
        values = [getattr(self, f.name) for f in fields(self)]
        inner = [event for value in values for event in (value if isinstance(value, tuple) else (value,))]
        return all(event.suits(neighbors) for event in inner if isinstance(event, Event))

    def per_step(self, steps: int) -> Event | None:
        """The event e with e * `steps` == self, where there is one."""
        parts = self.parts()
        if any(count % steps for _, count in parts):
            return None
        return compose([(event, count // steps) for event, count in parts])

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data: version, kind and fields."""
        return {"mosha": VERSION, **self._describe()}

    def _describe(self) -> dict[str, Any]:
        return {"kind": type(self).__name__} | {
            name_as_stored(f): _to_plain(getattr(self, f.name)) for f in fields(self)
        }

    def to_json(self) -> str:
        """The event as JSON text that other programs and later versions can read.

        >>> from mosha.core.events import Laplace
        >>> Laplace(2).to_json()
        '{"kind": "Laplace", "mosha": 1, "noise_multiplier": 2.0}'
        """
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)


@dataclass(frozen=True)
class Composed(Event):
    """A multiset of events, `items` with their counts; made by `+` and `*`, in one canonical order.

    A sum is put in order when somebody looks at its items, and not before: n additions cost what n events cost.

    >>> from mosha.core.events import Gaussian, Laplace
    >>> (Gaussian(2) + Laplace(3) + Gaussian(2)).parts()
    ((Gaussian(noise_multiplier=2.0), 2), (Laplace(noise_multiplier=3.0), 1))
    """

    items: tuple[tuple[Event, int], ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _canonical(self.items))

    @staticmethod
    def later(first: Event, second: Event) -> Composed:
        """Both `first` and `second`, of which neither is NOTHING: `items` are worked out when they are needed.

        Of two sums that wait, one is worked out now. So at most one summand of a sum waits, and what waits is a path:
        e + e, doubled again and again, stays one event with a count.
        """
        if "_summands" in vars(first) and "_summands" in vars(second):
            second.parts()
        made = Composed.__new__(Composed)
        vars(made)["_summands"] = first, second
        return made

    def __getattr__(self, name: str) -> Any:
        """Only what is not there yet comes here: the items of a sum."""
        if name != "items":
            raise AttributeError(name)
        if "_summands" in vars(self):
            vars(self)["items"] = _canonical((event, 1) for event in _leaves(self))
            vars(self).pop("_summands", None)  # another thread may have been here: it found the same
        if "items" not in vars(self):
            raise AttributeError(name)  # in the middle of being made
        return vars(self)["items"]

    def __reduce__(self) -> tuple[Any, ...]:
        return Composed, (self.items,)  # not as a chain of sums, however long

    def is_nothing(self) -> bool:
        return "_summands" not in vars(self) and not self.items

    def parts(self) -> tuple[tuple[Event, int], ...]:
        return self.items

    def suits(self, neighbors: Neighbors) -> bool:
        """Whether each of them suits `neighbors`."""
        return all(event.suits(neighbors) for event, _ in self.items)

    def __repr__(self) -> str:
        return " + ".join(f"{e!r} * {n}" if n > 1 else repr(e) for e, n in self.items) or "NOTHING"

    def _describe(self) -> dict[str, Any]:
        return {"kind": "Composed", "items": [[e._describe(), n] for e, n in self.items]}  # noqa: SLF001


def _leaves(event: Event) -> Iterator[Event]:
    """The events of a sum whose items are known; a loop, for sums of sums may be deeper than calls can be."""
    waiting = [event]
    while waiting:
        found = waiting.pop()
        summands = vars(found).get("_summands")
        if summands is None:
            yield found
        else:
            waiting += summands


def _canonical(items: Iterable[tuple[Event, int]]) -> tuple[tuple[Event, int], ...]:
    counts: Counter[Event] = Counter()
    for event, count in items:
        for part, inner in event.parts():
            counts[part] += inner * positive_integer("count", count)
    if len(counts) == 1:
        return tuple(counts.items())
    return tuple(sorted(counts.items(), key=lambda item: item[0].to_json()))


def compose(items: Iterable[tuple[Event, int]]) -> Event:
    """All events of `items`, each so many times, as one event.

    >>> from mosha.core.events import Laplace
    >>> compose([(Laplace(2), 3)]) == Laplace(2) * 3
    True
    """
    canonical = _canonical(items)
    if len(canonical) == 1 and canonical[0][1] == 1:
        return canonical[0][0]
    return Composed(canonical)


NOTHING = Composed()
"""The event that costs nothing: adding it changes no price."""


def _to_plain(value: object) -> Any:
    if isinstance(value, Event):
        return value._describe()  # noqa: SLF001
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return str(value) if isinstance(value, Neighbors) else value


def _revive(value: object) -> Any:
    if isinstance(value, dict):
        return _event(value)
    return tuple(_revive(item) for item in value) if isinstance(value, list) else value


def _event(described: Mapping[str, object]) -> Event:
    arguments = dict(described)
    name = arguments.pop("kind", None)
    kind = Event.kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidParameter("core.unknown_event", kind=str(name))
    names = {name_as_stored(f): f.name for f in fields(kind)}
    given = {names.get(key, key): value for key, value in arguments.items()}
    if len(given) < len(arguments):  # one thing under its old and its new name
        raise InvalidParameter("core.unknown_event_fields", kind=str(name))
    try:
        event = kind(**{key: _revive(value) for key, value in given.items()})
    except InvalidParameter:
        raise
    except (TypeError, ValueError, AttributeError):
        raise InvalidParameter("core.unknown_event_fields", kind=str(name)) from None
    return compose(event.parts()) if isinstance(event, Composed) else event


def from_dict(described: Mapping[str, object]) -> Event:
    """The event that `to_dict` `described`.

    >>> from mosha.core.events import Laplace
    >>> from_dict(Laplace(2).to_dict()) == Laplace(2)
    True
    """
    if not isinstance(described, dict) or described.get("mosha") != VERSION:
        raise InvalidParameter("core.other_event_version", version=VERSION)
    return _event({key: value for key, value in described.items() if key != "mosha"})


def from_json(text: str | bytes) -> Event:
    """The event that `to_json` wrote as `text`.

    >>> from mosha.core.events import Gaussian
    >>> from_json((Gaussian(1.1).sample(0.01) * 1000).to_json()) == Gaussian(1.1).sample(0.01) * 1000
    True
    """
    try:
        return from_dict(json.loads(text))
    except InvalidParameter:
        raise
    except ValueError:
        raise InvalidParameter("core.not_json") from None
    except RecursionError:
        raise InvalidParameter("core.event_too_deep") from None


def check_fields(event: Event, /, **checks: Any) -> None:
    """Check and replace fields of an event, each by its own function."""
    for name, check in checks.items():
        object.__setattr__(event, name, check(name, getattr(event, name)))
