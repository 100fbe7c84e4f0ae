"""Groups by public and private keys at once: the months are known, the wards come from the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mosha.core.event import Event
from mosha.core.measurement import Rng
from mosha.tables.parts.keys import KeySelection
from mosha.tables.parts.part import Frame, Rows, within
from mosha.tables.parts.shown_groups import MOST_KEYS

__all__ = ["MixedKeys"]


@dataclass(frozen=True, eq=False)
class MixedKeys:
    """Which private keys may be shown; each is combined with all public ones.

    Guarantee:
        That of `KeySelection`, asked about the rows whose public keys are listed and grouped by the private keys alone.
        A row has one private key, so a unit is in no more of them than in groups. Combining is post-processing.
    """

    selection: KeySelection

    @property
    def event(self) -> Event:
        return self.selection.event

    def check(self) -> None:
        self.selection.check()

    def select(self, frame: Frame, key: bytes, rng: Rng) -> Rows:
        """All combinations of the public keys with the private ones that are shown."""
        listed = dict(frame.listed)
        private = tuple((name, of) for name, of in frame.keys if name not in listed)
        public = tuple((name, of) for name, of in frame.keys if name in listed)
        combined = tuple(itertools.product(*(listed[name] for name, _ in public)))
        rows = within(Frame(frame.relation, frame.unit, public, combined), frame.relation)
        found = self.selection.select(replace(frame, relation=rows, keys=private, listed=()), key, rng)
        shown = found[: MOST_KEYS // math.prod(len(values) for values in listed.values())]
        places = {name: i for i, (name, _) in enumerate(private)}
        return _combine(frame, listed, shown, places)

    def note(self) -> str:
        return self.selection.note()


def _combine(frame: Frame, listed: Mapping[str, Sequence[object]], shown: Rows, places: Mapping[str, int]) -> Rows:
    """The combinations, sorted by the public keys as they are listed, then by the private ones."""
    names = [name for name, _ in frame.keys]
    public = [name for name in names if name in listed]
    groups = []
    for values in itertools.product(*(listed[name] for name in public)):
        known = dict(zip(public, values, strict=True))
        groups += [tuple(known[n] if n in known else row[places[n]] for n in names) for row in shown]
    return tuple(groups)
