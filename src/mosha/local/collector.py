"""The collector: counters that any number of processes can fill, store and merge."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.local.collect.deliveries import Deliveries
from mosha.local.collect.tickets import Tickets
from mosha.local.protocols.randomizer import FEWEST, Randomizer
from mosha.local.wire import Batch, read_batches, rows_of, tag_of

__all__ = ["REASONS", "Collector", "Counted"]

REASONS = ("malformed", "foreign", "impossible", "replayed")
_BLOCK = 1 << 16  # single reports that are counted at a time
_STATE = 1
_NOT_ENOUGH = {"several": "local.not_enough_of_each", "heavy_hitters": "local.not_enough_of_each_length"}


class Counted(Protocol):
    """A survey, as far as counting its reports needs it."""

    kind: ClassVar[str]
    randomizer: Randomizer

    @property
    def id(self) -> bytes: ...

    @property
    def bytes_per_report(self) -> int: ...

    def decode(self, counters: NDArray[np.int64], reports: int) -> Any: ...

    def count_answers(self, counters: NDArray[np.int64], reports: int) -> int: ...


@explain_wrong_calls
class Collector:
    """Counts the reports of one survey. Its memory depends on the survey and not on the number of reports.

    A report that is not counted is rejected for one of four reasons, and the rejections are counted: `malformed` (not
    the bytes of a report), `foreign` (another survey or version), `impossible` (no device could have made it),
    `replayed` (a batch or a ticket that was seen before).

    `survey` is what was asked, `ticket_bits` how long tickets are. Methods take `reports`, an `other` collector of the
    same survey, or the `data` of one that was saved.

    >>> import mosha
    >>> survey = mosha.local.Frequency(["tea", "coffee"], epsilon=2)
    >>> collector = survey.collector()
    >>> collector.add([survey.report("tea"), b"?", b""])
    1
    >>> collector.accepted, collector.rejected["malformed"]
    (1, 2)
    """

    def __init__(self, survey: Counted, *, ticket_bits: int = 1 << 20) -> None:
        self.survey = survey
        self.counters: NDArray[np.int64] = np.zeros(survey.randomizer.cells, np.int64)
        self.accepted = 0
        self.rejected = dict.fromkeys(REASONS, 0)
        self.deliveries = Deliveries()
        self._batches: set[bytes] = set()
        self._ticket_bits = ticket_bits
        self._tickets: Tickets | None = None

    def add(
        self,
        reports: Batch | bytes | Iterable[bytes],
        *,
        tickets: Sequence[bytes] | None = None,
        delivery: bytes | None = None,
    ) -> int:
        """Count these reports: a batch, the bytes of one report or of batches, or reports one by one.

        Returns how many were counted. `tickets` are random numbers that devices sent beside their reports, in the same
        order: a ticket counts once. `delivery` names a list of reports (the hash of a file): it counts once.
        """
        before = self.accepted
        if delivery is not None and not isinstance(delivery, bytes):
            raise InvalidParameter("local.delivery_not_bytes", parameter="delivery")
        if isinstance(reports, Batch):
            self._add_batch(reports)
        elif isinstance(reports, bytes | bytearray | memoryview):
            self._add_bytes(bytes(reports))
        elif not isinstance(reports, Iterable):
            raise InvalidParameter("local.not_reports", parameter="reports", kind=type(reports).__name__)
        elif delivery is not None and delivery in self._batches:
            self.rejected["replayed"] += sum(1 for _ in reports)
        else:
            self._add_singles(reports, tickets)
            self._batches |= {delivery} if delivery is not None else set()
        return self.accepted - before

    def _add_bytes(self, data: bytes) -> None:
        if len(data) <= self.survey.randomizer.width + 1:
            self._add_singles([data], None)
            return
        for batch in read_batches(data):
            if isinstance(batch, Batch):
                self._add_batch(batch)
            else:
                self.rejected["malformed"] += batch.reports

    def _add_batch(self, batch: Batch) -> None:
        if batch.survey != self.survey.id or batch.rows.shape[1] != self.survey.randomizer.width:
            self.rejected["foreign"] += len(batch)
        elif batch.number in self._batches:
            self.rejected["replayed"] += len(batch)
        else:
            self._batches.add(batch.number)
            self._count(batch.rows)

    def _add_singles(self, reports: Iterable[bytes], tickets: Sequence[bytes] | None) -> None:
        kept: list[bytes] = []
        listed = list(reports) if tickets is not None else reports
        if tickets is not None:
            if not isinstance(tickets, Sequence) or len(tickets) != len(listed):  # type: ignore[arg-type]
                raise InvalidParameter("local.ticket_per_report", parameter="tickets")
            self._tickets = self._tickets or Tickets(self._ticket_bits)
            fresh = self._tickets.take_new(tickets)
            self.rejected["replayed"] += int(len(fresh) - fresh.sum())
            listed = [report for report, new in zip(listed, fresh, strict=True) if new]
        for report in listed:
            if self._is_ours(report):
                kept.append(report)
            if len(kept) == _BLOCK:
                self._count(rows_of(kept, self.survey.randomizer.width))
                kept = []
        if kept:
            self._count(rows_of(kept, self.survey.randomizer.width))

    def _is_ours(self, report: object) -> bool:
        if not isinstance(report, bytes) or len(report) != self.survey.randomizer.width + 1:
            self.rejected["malformed"] += 1
            return False
        if report[0] != tag_of(self.survey.id):
            self.rejected["foreign"] += 1
            return False
        return True

    def _count(self, rows: NDArray[np.uint8]) -> None:
        possible = self.survey.randomizer.find_possible(rows)
        if not possible.all():
            self.rejected["impossible"] += int(len(rows) - possible.sum())
            rows = rows[possible]
        if len(rows):
            self.survey.randomizer.count_into(self.counters, rows)
            self.accepted += len(rows)

    def merge(self, other: Collector) -> None:
        """Add what another collector of the same survey has counted.

        Batches that both have counted cannot be told apart any more: then nothing is merged.
        """
        if not isinstance(other, Collector):
            raise InvalidParameter("local.not_a_collector", parameter="other")
        if other.survey.id != self.survey.id:
            raise DataError("local.collectors_of_two_surveys", parameter="other")
        if other is self or self._batches & other._batches or self.deliveries.overlaps(other.deliveries):
            raise DataError("local.counted_twice", parameter="other")
        if other._tickets is not None:
            if self._tickets is None:
                self._tickets = Tickets(other._tickets.bits)
            self._tickets.merge(other._tickets)
        self.counters = self.counters + other.counters
        self.accepted += other.accepted
        self.rejected = {reason: self.rejected[reason] + other.rejected[reason] for reason in REASONS}
        self._batches |= other._batches
        self.deliveries.merge(other.deliveries)

    def estimate(self) -> Any:
        """What the survey asks, with error bars; free."""
        if not self.has_enough:
            code = _NOT_ENOUGH.get(self.survey.kind, "local.not_enough")
            raise DataError(
                code,
                summary=self.summary,
                accepted=self.accepted,
                rejected=dict(self.rejected),
                needed=FEWEST,
            )
        return self.survey.decode(self.counters, self.accepted)

    @property
    def has_enough(self) -> bool:
        """Whether there are reports enough for an estimate."""
        return self.survey.count_answers(self.counters, self.accepted) >= FEWEST

    @property
    def summary(self) -> str:
        """What was counted and what was not, and why: "3 reports counted, 800 rejected: 800 foreign"."""
        reasons = [say(f"local.rejected_{reason}", count=count) for reason, count in self.rejected.items() if count]
        code = "local.summary_one" if self.accepted == 1 else "local.summary"
        said = say(code, accepted=self.accepted, rejected=sum(self.rejected.values()))
        return say("local.summary_why", said=said, why=", ".join(reasons)) if reasons else said

    def to_bytes(self) -> bytes:
        """The state, to be stored or sent to another process."""
        state = {
            "mosha-collector": _STATE,
            "survey": self.survey.id.hex(),
            "accepted": self.accepted,
            "rejected": self.rejected,
            "counters": _pack(self.counters.astype("<i8").tobytes()),
            "batches": sorted(number.hex() for number in self._batches),
            "files": self.deliveries.to_list(),
            "ticket_bits": self._ticket_bits,
            "tickets": None if self._tickets is None else _pack(self._tickets.seen.tobytes()),
        }
        return json.dumps(state, sort_keys=True).encode()

    @staticmethod
    def from_bytes(survey: Counted, data: bytes) -> Collector:
        """The collector that `to_bytes` stored."""
        try:
            state = json.loads(data)
            if state["mosha-collector"] != _STATE or state["survey"] != survey.id.hex():
                raise DataError("local.state_of_another_survey", parameter="data")
            found = Collector(survey, ticket_bits=int(state["ticket_bits"]))
            counters = np.frombuffer(_unpack(state["counters"]), "<i8").astype(np.int64)
            found.accepted = int(state["accepted"])
            found.rejected = {reason: int(state["rejected"][reason]) for reason in REASONS}
            found._batches = {bytes.fromhex(number) for number in state["batches"]}
            found.deliveries = Deliveries.from_list(state.get("files", []))  # states of before have none
            if state["tickets"] is not None:
                seen = np.frombuffer(_unpack(state["tickets"]), np.uint8).copy()
                found._tickets = Tickets(8 * len(seen), seen)
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
            raise DataError("local.not_a_state", parameter="data") from None
        if counters.shape != found.counters.shape:
            raise DataError("local.not_a_state_of_survey", parameter="data")
        found.counters = counters
        return found

    def __repr__(self) -> str:
        return f"<Collector: {self.summary}>"


def _pack(data: bytes) -> str:
    return base64.b85encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))
