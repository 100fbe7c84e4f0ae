"""What `mosha local collect` counts, and how it tells the estimate."""

from __future__ import annotations

import base64
import binascii
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosha.local import Collector

__all__ = ["Source", "count", "csv_of", "to_plain"]


@dataclass(frozen=True)
class Source:
    """The bytes of a file, or of standard input, which has no name."""

    data: bytes
    name: str | None

    @staticmethod
    def of(path: Path, data: bytes) -> Source:
        return Source(data, str(path.resolve()))


def count(collector: Collector, source: Source, *, goes_on: bool) -> int:
    """Count what is new in this source; returns how many lines of a file that has grown were counted before.

    Batches carry their own number. Lines of a file are counted from where it ended last; standard input is known by
    all of its bytes. If the collection `goes_on`, a last line that is not yet whole is left for the next time.
    """
    data, name = source.data, source.name or ""
    if data.startswith(b"MOSHA"):
        collector.add(data)
        return 0
    if source.name and goes_on:
        data = data[: _find_end(data, collector.survey.bytes_per_report)]
    before = collector.deliveries.count_known(data, name)
    if data and before == len(data):  # the same once more
        collector.rejected["replayed"] += len(_reports(data))
        return 0
    if not source.name:
        before = 0
    collector.add(_reports(data[before:]))
    collector.deliveries.note(data, name)
    return len(_reports(data[:before]))


def _find_end(data: bytes, width: int) -> int:
    """Where the lines end that are whole: a last one without an end is, if it is as long as a report."""
    end = data.rfind(b"\n") + 1
    return len(data) if len(_decode(data[end:])) == width else end


def _reports(data: bytes) -> list[bytes]:
    return [_decode(line) for line in data.splitlines() if line]


def _decode(line: bytes) -> bytes:
    """The report of a line, or nothing, which the collector counts as malformed."""
    try:
        return base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def to_plain(estimate: Any) -> Any:
    """An estimate as plain data."""
    if isinstance(estimate, dict):
        return {name: to_plain(part) for name, part in estimate.items()}
    if hasattr(estimate, "table"):
        return estimate.table()
    if hasattr(estimate, "quantile"):
        shares = (0.05, 0.25, 0.5, 0.75, 0.95)
        return {"mean": estimate.mean} | {f"quantile {share:g}": estimate.quantile(share) for share in shares}
    return {"mean": estimate.value, "error": estimate.error(), "reports": estimate.reports}


def csv_of(estimate: object) -> bytes:
    """The estimate of one question as a table, marked for Excel: shares by value, a mean, or shares by bin."""
    rows = _bins(estimate) if hasattr(estimate, "quantile") else to_plain(estimate)
    rows = rows if isinstance(rows, list) else [rows]
    text = io.StringIO()
    names = list(rows[0]) if rows else ["value", "count", "error"]  # no text stood out
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8-sig")


def _bins(density: Any) -> list[dict[str, float]]:
    """One row a bin: its share, and the share up to its end with the error bar of that."""
    edges, errors = density.edges.tolist(), density.error().tolist()
    below = [density.below(edge) for edge in edges]
    columns = zip(edges, edges[1:], density.shares.tolist(), below[1:], errors[1:], strict=False)
    return [
        {"from": low, "to": high, "share": share, "up to": up_to, "error": error}
        for low, high, share, up_to, error in columns
    ]
