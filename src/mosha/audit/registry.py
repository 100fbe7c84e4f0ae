"""Everything that is attacked by `mosha audit all`: a mechanism, its neighbors, its asks."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mosha.audit.attacks.pilot import affordable, search
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.reporting.verdict import Verdict
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Entry", "attack_all", "entries", "missing", "register"]

KINDS: dict[str, tuple[str, ...]] = {
    "mechanisms": (),
    "tables": ("pyarrow",),
    "databases": ("pyarrow",),
    "streams": (),
    "graphs": (),
    "local": (),
    "synth": ("pyarrow",),
    "learning": ("torch",),
    "learning_models": (),
    "federated": ("torch",),
    "models": ("pyarrow",),
}
"""Each kind of data has its entries in `own_<kind>`, and packages without which it cannot be attacked."""


@dataclass(frozen=True)
class Entry:
    """A mechanism to attack. `build` makes it when it is needed; `covers` names the factory it stands for."""

    name: str
    build: Callable[[], Measurement]
    proposals: tuple[Proposal, ...]
    covers: str = ""
    how: dict[str, Any] = field(default_factory=dict)
    kind: str = "yours"

    def attack(self, *, runs: int, confidence: float, seconds: float | None = None) -> Verdict:
        target = self.build()
        if seconds is not None:
            runs = affordable(target, self.proposals, runs=runs, seconds=seconds, **self.how)
        return search(target, self.proposals, runs=runs, confidence=confidence, name=self.name, **self.how)


_ENTRIES: dict[str, Entry] = {}


def register(
    name: str,
    build: Callable[[], Measurement],
    proposals: Sequence[Proposal],
    *,
    covers: str = "",
    **how: object,
) -> None:
    """Have `mosha audit all` attack one more mechanism; `how` goes to `mosha.audit.attack`.

    `build` makes the mechanism, which is listed as `name`; `proposals` are the neighbors it is tried on; `covers`
    names the factory that it stands for.

    >>> from mosha import Row, mechanisms
    >>> from mosha.audit import neighbors
    >>> register(
    ...     "visits", lambda: mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1),
    ...     neighbors.of_numbers(Row(), between=(0, 1)),
    ... )
    >>> "visits" in [entry.name for entry in entries()]
    True
    >>> forget("visits")
    """
    if not name or not proposals:
        raise InvalidParameter("audit.bad_registration")
    if name in _ENTRIES:
        raise InvalidParameter("audit.registered_already", parameter="name", name=name)
    _ENTRIES[name] = Entry(name, build, tuple(proposals), covers, how)


def forget(name: str) -> None:
    """Take an entry out again."""
    _ENTRIES.pop(name, None)


def entries() -> list[Entry]:
    """Mosha's own mechanisms of every kind whose extra is installed, and all that were registered, by name.

    >>> len(entries()) > 50
    True
    """
    absent = missing()
    own = [
        replace(entry, kind=kind)
        for kind in KINDS
        if kind not in absent
        for entry in importlib.import_module(f"mosha.audit.own.{kind}").own_entries()
    ]
    return sorted([*own, *_ENTRIES.values()], key=lambda entry: entry.name)


def missing() -> dict[str, str]:
    """The kinds that are not attacked here, each with the package that is not installed."""
    found = importlib.util.find_spec
    return {kind: package for kind, needs in KINDS.items() for package in needs if found(package) is None}


def attack_all(
    chosen: Sequence[Entry] | None = None,
    *,
    runs: int = 20_000,
    confidence: float = 0.999,
    seconds: float | None = None,
) -> Iterator[Verdict]:
    """Attack every entry, one after the other.

    Guarantee:
        If all keep their claims, P(any is called broken) <= 1 - confidence: each attack gets its share.

    Args:
        chosen: what to attack; `entries()` by default.
        runs: runs a world for each.
        confidence: of all verdicts together.
        seconds: where one entry would take longer than about this, it gets fewer runs.

    >>> verdict = next(attack_all([entry for entry in entries() if entry.name == "gaussian: sum"], runs=200))
    >>> verdict.name
    'gaussian: sum'
    """
    chosen = entries() if chosen is None else list(chosen)
    if not chosen:
        raise InvalidParameter("audit.nothing_to_attack", parameter="chosen")
    each = 1 - (1 - strict_probability("confidence", confidence)) / len(chosen)
    positive_integer("runs", runs)
    for entry in chosen:
        yield entry.attack(runs=runs, confidence=each, seconds=seconds)
