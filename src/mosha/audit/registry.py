"""Everything that is attacked by `mosha audit all`: a mechanism, its neighbours, its asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mosha.audit.neighbours import Proposal
from mosha.audit.pilot import search
from mosha.audit.verdict import Verdict
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Entry", "attack_all", "entries", "register"]


@dataclass(frozen=True)
class Entry:
    """A mechanism to attack. `build` makes it when it is needed; `covers` names the factory it stands for."""

    name: str
    build: Callable[[], Measurement]
    proposals: tuple[Proposal, ...]
    covers: str = ""
    how: dict[str, Any] = field(default_factory=dict)

    def attack(self, *, runs: int, confidence: float) -> Verdict:
        return search(self.build(), self.proposals, runs=runs, confidence=confidence, name=self.name, **self.how)


_ENTRIES: dict[str, Entry] = {}


def register(
    name: str,
    build: Callable[[], Measurement],
    proposals: Sequence[Proposal],
    *,
    covers: str = "",
    **how: Any,
) -> None:
    """Have `mosha audit all` attack one more mechanism; `how` goes to `mosha.audit.attack`.

    >>> from mosha import Row, mechanisms
    >>> from mosha.audit import neighbours
    >>> register(
    ...     "visits", lambda: mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1),
    ...     neighbours.of_numbers(Row(), between=(0, 1)),
    ... )
    >>> "visits" in [entry.name for entry in entries()]
    True
    >>> forget("visits")
    """
    if not name or not proposals:
        raise InvalidParameter("register(name, build, proposals) needs a name and at least one pair of neighbours.")
    if name in _ENTRIES:
        raise InvalidParameter(f"{name!r} is registered already: choose another name.")
    _ENTRIES[name] = Entry(name, build, tuple(proposals), covers, how)


def forget(name: str) -> None:
    """Take an entry out again."""
    _ENTRIES.pop(name, None)


def entries() -> list[Entry]:
    """Mosha's own mechanisms and all that were registered, by name."""
    from mosha.audit.own_mechanisms import own_entries  # noqa: PLC0415  (mechanisms are loaded when they are needed)

    return sorted([*own_entries(), *_ENTRIES.values()], key=lambda entry: entry.name)


def attack_all(
    chosen: Sequence[Entry] | None = None, *, runs: int = 20_000, confidence: float = 0.999
) -> Iterator[Verdict]:
    """Attack every entry, one after the other.

    Guarantee:
        If all keep their claims, P(any is called broken) <= 1 - confidence: each attack gets its share.
    """
    chosen = entries() if chosen is None else list(chosen)
    if not chosen:
        raise InvalidParameter("there is nothing to attack.")
    each = 1 - (1 - strict_probability("confidence", confidence)) / len(chosen)
    positive_integer("runs", runs)
    for entry in chosen:
        yield entry.attack(runs=runs, confidence=each)
