"""The bytes that travel: single reports, and batches of them with a seal."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mosha.core.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MAGIC", "VERSION", "Batch", "Broken", "read_batches", "tag_of"]

VERSION = 1
MAGIC = b"MOSHA"
_HEADER = struct.Struct("<5sBH8s16sQ")  # magic, version, width, survey, batch, reports
_SEAL = struct.Struct("<I")
_LONGEST = 1 << 40


def tag_of(survey: bytes) -> int:
    """The first byte of a report: the version in two bits, then six bits of the survey's name.

    >>> hex(tag_of(bytes(8)))
    '0x40'
    """
    return VERSION << 6 | survey[0] >> 2


@dataclass(frozen=True)
class Broken:
    """Bytes that should have been a batch; `reports` is how many it said it held (1 where that cannot be read)."""

    reports: int = 1


@dataclass(frozen=True, eq=False)
class Batch:
    """Many reports of `survey`, one in each of `rows`; `number` is random and found again if the batch is replayed.

    >>> import numpy as np
    >>> Batch(bytes(16), np.zeros((3, 2), np.uint8)).rows.shape
    (3, 2)
    """

    survey: bytes
    rows: NDArray[np.uint8]
    number: bytes = field(default_factory=lambda: os.urandom(16))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[bytes]:
        """The reports one by one, each with its first byte."""
        first = bytes([tag_of(self.survey)])
        return (first + row.tobytes() for row in self.rows)

    def to_bytes(self) -> bytes:
        """The batch with its header and its seal."""
        header = _HEADER.pack(MAGIC, VERSION, self.rows.shape[1], self.survey, self.number, len(self.rows))
        body = header + self.rows.tobytes()
        return body + _SEAL.pack(zlib.crc32(body))


def read_batches(data: bytes) -> Iterator[Batch | Broken]:
    """The batches that stand one after the other; what cannot be read is told, and ends the reading where it must."""
    import numpy as np

    place = 0
    while place < len(data):
        if len(data) - place < _HEADER.size:
            yield Broken()
            return
        magic, version, width, survey, number, count = _HEADER.unpack_from(data, place)
        if magic != MAGIC:
            yield Broken()
            return
        length = _HEADER.size + width * count
        if count * max(width, 1) > _LONGEST or place + length + _SEAL.size > len(data):
            yield Broken()
            return
        body = data[place : place + length]
        (seal,) = _SEAL.unpack_from(data, place + length)
        place += length + _SEAL.size
        if seal != zlib.crc32(body) or version != VERSION or width == 0:
            yield Broken(max(1, min(count, length)))
            continue
        rows = np.frombuffer(body, np.uint8, offset=_HEADER.size).reshape(count, width)
        yield Batch(survey, rows, number)


def rows_of(reports: list[bytes], width: int) -> NDArray[np.uint8]:
    """Reports of equal length, without their first byte, as rows."""
    import numpy as np

    if any(len(report) != width + 1 for report in reports):
        raise DataError("local.report_lengths")
    return np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), width + 1)[:, 1:]
