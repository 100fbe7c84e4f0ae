"""Local randomizers as the attacker meets them: every protocol, on values whose reports differ most."""

from __future__ import annotations

from typing import Any

from mosha import local
from mosha.audit.claims.neighbors import Proposal, of_own_value
from mosha.audit.registry import Entry
from mosha.core.measurement import Measurement
from mosha.local.protocols.choice import PROTOCOLS

__all__ = ["own_entries"]

SIZE = 6


def own_entries() -> list[Entry]:
    """One entry or more for each way of reporting."""
    return [*_categories(), *_texts(), *_numbers(), *_places()]


def _bits(measurement: Measurement) -> Measurement:
    """The bits of a report, one number each: a bitmap is told by its bits."""
    return measurement.map(lambda report: tuple(byte >> bit & 1 for byte in report[1:] for bit in range(8)))


def _number(measurement: Measurement) -> Measurement:
    return measurement.map(lambda report: int.from_bytes(report[1:], "little"))


def _entry(name: str, build: Any, proposals: list[Proposal]) -> Entry:
    return Entry(f"local: {name}", build, tuple(proposals), name, {})


def _categories() -> list[Entry]:
    entries = []
    for kind in PROTOCOLS:
        survey = local.Frequency(range(SIZE), epsilon=1, protocol=kind.name)
        bitmap = "unary" in kind.name or "subset" in kind.name
        view = _show_support if kind.name == "local-hashing" else _bits if bitmap else _number
        entries.append(_entry(kind.name, lambda s=survey, v=view: v(s.measurement), of_own_value(range(3))))
    repeated = local.Repeated(["a", "b", "c"], permanent=2, epsilon=1)
    entries.append(
        _entry("permanent answer", lambda: repeated.permanent_measurement.map(lambda r: r[0]), of_own_value("abc"))
    )
    return entries


def _texts() -> list[Entry]:
    """Texts that differ from their first character on, or are one the beginning of the other."""
    survey = local.HeavyHitters(longest=8, alphabet="abc", epsilon=1, buckets=64)
    pairs = [
        Proposal("two texts", "a", "cab"),
        Proposal("a text and how it begins", "abcabc", "abcabcab"),
        Proposal("a text of strange characters", "???", ""),
    ]
    return [_entry("heavy hitters", lambda: _number(survey.measurement), pairs)]


def _show_support(measurement: Measurement) -> Measurement:
    """Which of the first values a hashed report supports."""

    def supports(report: bytes) -> tuple[int, ...]:
        factor, shift = (int.from_bytes(report[i : i + 4], "little") for i in (1, 5))
        hashed = int.from_bytes(report[9:], "little")
        return tuple(int((factor * v + shift) % (2**31 - 1) * 4 >> 31 == hashed) for v in range(3))

    return measurement.map(supports)


def _numbers() -> list[Entry]:
    pairs = [Proposal("one end against the other", 0.0, 1.0), Proposal("the middle against an end", 0.5, 1.0)]
    surveys: dict[str, local.Survey] = {
        method: local.Mean(between=(0, 1), epsilon=1, method=method) for method in ("duchi", "piecewise", "hybrid")
    }
    surveys["square wave"] = local.Distribution(between=(0, 1), epsilon=1)
    return [_entry(name, lambda s=survey: _number(s.measurement), pairs) for name, survey in surveys.items()]


def _places() -> list[Entry]:
    city = local.Location((10.0, 20.0), 100.0, 0.015)  # across its 200 metres: epsilon 3
    north, south = (10.0 + 100.0 / 111_195, 20.0), (10.0 - 100.0 / 111_195, 20.0)

    def nearer(report: tuple[float, float]) -> float:
        """By how many metres a report is nearer to the one place: the loss of planar Laplace noise, over epsilon."""
        return local.distance(report, south) - local.distance(report, north)

    pair = [Proposal("one edge against the other", north, south)]
    return [_entry("location", lambda: city.measurement.map(nearer), pair)]
