"""Spark: questions about a DataFrame run in its own session."""

from __future__ import annotations

import itertools
import socket
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sqlglot import exp

from mosha.connect.engines.source import (
    BATCH,
    Columns,
    Engine,
    plain_columns,
    seconds_left,
    stopping,
    too_late,
    wait_for,
)
from mosha.connect.engines.tried import warn_if_untried
from mosha.connect.language.schema import LARGEST_INTEGER, LONGEST_TEXT, Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.source import FRAME, Field, Source
from mosha.connect.sql.dialect import Kind, Node, Read, binary, call, cast, choose, column, number, read_within, text
from mosha.connect.sql.spark_dialect import SPARK
from mosha.connect.sql.statement import Query
from mosha.core.errors import DataError, Interrupted, MissingExtra, MoshaError, SourceUnavailable
from mosha.core.language import phrase
from mosha.core.private_log import note_privately

__all__ = ["Spark", "SparkTable"]

T = TypeVar("T")
_views = itertools.count(1)
DAY = 86_400_000_000
PORT = 15002  # of Spark Connect, where an address names none
GRACE = 20.0  # seconds after a deadline in which a server on another machine may say that it has stopped
LOST = frozenset({"Py4JNetworkError", "SparkConnectGrpcException", "RetriesExceeded", "_InactiveRpcError"})
"""What Python raises where the session is gone; troubles with a question have kinds of their own."""


class View:
    """A temporary view of a session: dropped when no table reads it any more."""

    def __init__(self, session: Any, frame: Any) -> None:
        self.name = f"mosha_frame_{next(_views)}"
        frame.createOrReplaceTempView(self.name)
        weakref.finalize(self, _forget, session, self.name)


@dataclass(frozen=True, eq=False, repr=False)
class SparkTable(Source):
    """A DataFrame under the name of a temporary view; tables made of this one, with other types say, share the view."""

    view: View | None = None
    named: str = ""

    @property
    def origin_name(self) -> str:
        """The table of a catalogue; frames have one name, all of them."""
        return self.named or FRAME

    def table(self, name: str) -> Node:
        assert self.view is not None
        this = exp.Table(this=exp.Identifier(this=self.view.name, quoted=True))
        return exp.alias_(this, name, table=True, quoted=True, copy=False)


class Spark(Engine):
    """One Spark session."""

    dialect = SPARK
    _known: Mapping[int, Spark] = {}

    def __init__(self, session: Any) -> None:
        self._session = session

    @property
    def _is_remote(self) -> bool:
        """Whether the session is one of Spark Connect, which has no context in this process."""
        return ".connect." in type(self._session).__module__

    @classmethod
    def of(cls, frame: Any) -> Spark:
        """The engine of a DataFrame's session; DataFrames of one session can be joined."""
        session = frame.sparkSession
        if id(session) not in cls._known:
            warn_if_untried("Spark", str(session.version))
            cls._known = {**cls._known, id(session): cls(session)}
        return cls._known[id(session)]

    @classmethod
    @cache
    def at(cls, place: str) -> Spark:
        """The engine of a Spark server that is asked over the network (`sc://host:port`)."""
        problem: MoshaError
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415  (an extra)

            _knock(place)
            session = SparkSession.builder.remote(place).create()
            warn_if_untried("Spark", str(session.version))
            return cls(session)
        except ImportError:
            problem = MissingExtra("spark", needed_for=phrase("connect.reading_from", kind="Spark Connect"))
        except Exception as error:  # noqa: BLE001  (of grpc, of pyspark, of an address that is none)
            note_privately("Spark", error)
            problem = SourceUnavailable("connect.spark_no_answer", spent="nothing")
        raise problem

    def catalogue_table(self, name: str) -> SparkTable:
        """A table of the session's catalogue."""
        found = self._run_silently(lambda: self.frame(self._session.table(name)), rows=False)
        return replace(found, named=name)

    def find_location(self, name: str) -> str | None:
        """Where the files of a table of the catalogue lie; None for a view."""
        quoted = ".".join(f"`{part}`" for part in name.replace("`", "").split("."))
        ask = f"DESCRIBE TABLE EXTENDED {quoted}"
        rows = self._run_silently(lambda: self._session.sql(ask).collect(), rows=False)
        return next((str(row[1]) for row in reversed(rows) if row[0] == "Location" and row[1]), None)

    def frame(self, frame: Any) -> SparkTable:
        """The frame as a view whose columns are numbered: Spark would read `${...}` in their names, and fold case."""
        columns = [(field.name, field.dataType) for field in frame.schema.fields]
        if twice := [title for title, count in Counter(title for title, _ in columns).items() if count > 1]:
            raise DataError("connect.same_column_twice", column=twice[0], spent="nothing")
        read = [(title, _number_field(i, _field(title, kind))) for i, (title, kind) in enumerate(columns)]
        fields = tuple(field for _, field in read if field is not None)
        view = View(self._session, frame.toDF(*(f"c{i}" for i in range(len(columns)))))
        return SparkTable(self, fields, tuple(title for title, field in read if field is None), view)

    def run(self, found: list[Query], question: Question) -> list[Columns]:
        def collect() -> list[Columns]:
            rows = [self._session.sql(self.dialect.sql(query.statement)).collect() for query in found]
            return [plain_columns(list(map(tuple, part)), question, q) for part, q in zip(rows, found, strict=True)]

        return self._run_silently(collect, rows=True)

    def run_in_batches(self, query: Query, question: Question, use: Callable[[Columns], None]) -> None:
        """The driver asks for one partition after the other: it never has all groups.

        What `use` raises is no failure of Spark, and goes on as it is.
        """
        raised: list[Exception] = []

        def follow() -> None:
            rows = iter(self._session.sql(self.dialect.sql(query.statement)).toLocalIterator())
            while batch := [tuple(row) for row in itertools.islice(rows, BATCH)]:
                part = plain_columns(batch, question, query)
                try:
                    use(part)
                except Exception as error:  # noqa: BLE001  (raised again below)
                    raised.append(error)
                    return

        self._run_silently(follow, rows=True)
        if raised:
            raise raised[0]

    def analyze(self, found: list[Query], question: Question) -> None:  # noqa: ARG002
        def look() -> None:
            for query in found:
                self._session.sql(self.dialect.sql(query.statement)).schema  # noqa: B018  (asks for the analysed plan)

        self._run_silently(look, rows=False)

    def _mark(self, group: str | None) -> None:
        """Give the jobs of this thread a name by which they can be cancelled, where there is a deadline."""
        if seconds_left() is None:
            return
        with suppress(Exception):  # a session that is gone is told by the question itself
            if self._is_remote:
                self._session.clearTags() if group is None else self._session.addTag(group)
                return
            context = self._session.sparkContext
            context.setLocalProperty("spark.jobGroup.id", group)
            context.setLocalProperty("spark.job.interruptOnCancel", None if group is None else "true")

    def _cancel(self, group: str) -> None:
        with suppress(Exception):
            if self._is_remote:
                self._session.interruptTag(group)
            else:
                self._session.sparkContext.cancelJobGroup(group)

    def _run_marked(self, work: Callable[[], T], group: str) -> T:
        """Run `work` under a name by which it can be cancelled; a server that is gone is not waited for."""

        def run() -> T:
            self._mark(group)
            try:
                return work()
            finally:
                self._mark(None)

        return wait_for(run, GRACE) if self._is_remote and seconds_left() is not None else run()

    def _run_silently(self, work: Callable[[], T], *, rows: bool) -> T:
        """What Spark says when it fails is not passed on; where `rows` are read, every failure may be one's fault."""
        lost = late = False
        group = f"mosha-{uuid.uuid4().hex}"
        with stopping(lambda: self._cancel(group), grace=GRACE if self._is_remote else None) as struck:
            try:
                return self._run_marked(work, group)
            except (OSError, EOFError) as error:
                note_privately("Spark", error)
                lost = True
            except Exception as error:  # py4j and pyspark raise many kinds; none of their words go on
                if isinstance(error, MoshaError) and not rows:  # ours, about names and types
                    raise
                note_privately("Spark", error)
                lost = type(error).__name__ in LOST
            late = struck()
        if late:
            raise too_late()
        if lost and rows:
            raise Interrupted("connect.spark_lost")
        if lost:
            raise SourceUnavailable("connect.spark_no_answer", spent="nothing")
        if not rows:
            raise DataError("connect.spark_refused", spent="nothing")
        raise DataError("connect.spark_failed")


def _knock(place: str) -> None:
    """Raise where nobody listens: Spark's own client would go on asking for ten minutes."""
    address = urlsplit(place)
    socket.create_connection((address.hostname or "", address.port or PORT), timeout=GRACE).close()


def _forget(session: Any, name: str) -> None:
    try:
        session.catalog.dropTempView(name)
    except Exception:  # noqa: BLE001  (the session is gone already, and the view with it)
        return


def _read_as_is(node: Node) -> Node:
    return node


def _as(kind: exp.DType) -> Read:
    return lambda node: cast(node, kind)


def _years(kind: Type) -> Read:
    last = "9999-12-31" if kind is Type.DATE else "9999-12-31 23:59:59.999999"
    return read_within(SPARK.to(kind, text("0001-01-01")), SPARK.to(kind, text(last)), _read_as_is)


def _text(node: Node) -> Node:
    """Text that is too long or no UTF-8 is missing: Spark keeps any bytes, and different ones would read the same."""
    short = binary(exp.LTE, SPARK.byte_length(node), number(LONGEST_TEXT))
    return choose((binary(exp.And, short, call("IS_VALID_UTF8", node.copy())), node.copy()))


def _moment(node: Node) -> Node:
    """A moment by its microseconds since 1970, as a wall clock in UTC whatever the zone of the session."""
    micros = call("UNIX_MICROS", node)

    def wall_clock(_: Node) -> Node:
        days = binary(exp.IntDiv, micros.copy(), number(DAY))
        rest = binary(exp.Mod, micros.copy(), number(DAY))
        seconds = SPARK.real_quotient(cast(rest, Kind.DECIMAL, 18, 6), number(1_000_000))
        midnight = SPARK.to(Type.INSTANT, call("DATE_ADD", cast(text("1970-01-01"), Kind.DATE), cast(days, Kind.INT)))
        interval = call("MAKE_DT_INTERVAL", number(0), number(0), number(0), cast(seconds, Kind.DECIMAL, 18, 6))
        return binary(exp.Add, midnight, interval)

    return read_within(number(-62_135_596_800_000_000), number(253_402_300_799_999_999), wall_clock)(micros)


_WHOLE = read_within(
    SPARK.widen(number(-LARGEST_INTEGER - 1)),
    SPARK.widen(number(LARGEST_INTEGER)),
    lambda node: cast(node, Kind.BIGINT),
)
_FIELDS: Mapping[str, tuple[Type, Read]] = {
    "LongType": (Type.INTEGER, _read_as_is),
    **dict.fromkeys(["ByteType", "ShortType", "IntegerType"], (Type.INTEGER, _as(Kind.BIGINT))),
    "DoubleType": (Type.REAL, _read_as_is),
    "FloatType": (Type.REAL, _as(Kind.DOUBLE)),
    "BooleanType": (Type.BOOLEAN, _read_as_is),
    "StringType": (Type.TEXT, _text),
    "DateType": (Type.DATE, _years(Type.DATE)),
    "TimestampNTZType": (Type.TIMESTAMP, _years(Type.TIMESTAMP)),
    "TimestampType": (Type.INSTANT, _moment),
}


def _number_field(place: int, field: Field | None) -> Field | None:
    """The field, read from the column of that number."""
    return None if field is None else replace(field, read=lambda _: field.read(column(f"c{place}")))


def _field(name: str, kind: Any) -> Field | None:
    """How a column of a Spark type is read; None where the type has no meaning here."""
    family = type(kind).__name__
    if family == "DecimalType":
        whole = kind.scale == 0
        return Field(name, Type.INTEGER, _WHOLE) if whole else Field(name, Type.REAL, _as(Kind.DOUBLE), wild=True)
    if family == "StringType" and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return Field(name, Type.TEXT, lambda node: _text(call("COLLATE", node, text("UTF8_BINARY"))), short=True)
    if family not in _FIELDS:
        return None
    found, read = _FIELDS[family]
    return Field(name, found, read, wild=found is Type.REAL, short=found is Type.TEXT)
