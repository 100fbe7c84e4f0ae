"""The engine that answers questions about tables where they live; how it is asked is known in this thread alone.

A question may have to end in time (`stop_at`), or only be looked at (`look_only`): the look before payment runs the
very code that will run afterwards, with one difference. The engine analyses each statement and reads no row, and the
answer is that of an empty table.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sqlglot import exp

from mosha.connect.language.schema import Schema, Type
from mosha.connect.plan.aggregation import NearRanks, Norms, Question
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Array, Field, Source, Totals, integers, object_array
from mosha.connect.sql.dialect import Dialect, Node
from mosha.connect.sql.norms import queries, sql_of
from mosha.connect.sql.rows import write_for_people
from mosha.connect.sql.statement import FEW, Query
from mosha.core.errors import DataError, DeadlineExceeded
from mosha.core.fingerprint import Description

__all__ = [
    "Engine", "Field", "Server", "ServerTable", "Source", "answer", "answer_in_batches", "engine_of", "explain",
    "is_look", "look_only", "seconds_left", "stop_at", "stopping", "too_late", "wait_for",
]  # fmt: skip

BATCH = 2**15
"""So many groups come at once where there may be any number of them."""

Columns = tuple[list[Array], list[Array]]
Use = Callable[[Totals], None]
Result = TypeVar("Result")
AGAIN = 0.25  # seconds

_looking: ContextVar[bool] = ContextVar("looking", default=False)
_end: ContextVar[float | None] = ContextVar("end", default=None)


class Engine(ABC):
    """Where questions are answered. Only exact sums leave it: of groups, or of cells near some ranks of a group.

    Methods take the `question` that is asked, the statements `found` for it, or one `query` of them.

    >>> from mosha.connect import source
    >>> isinstance(source({"x": [1, 2]}).engine, Engine)
    True
    """

    dialect: Dialect

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def run(self, found: list[Query], question: Question) -> list[Columns]:
        """For each query its key columns and its sums, all from one state of the data."""

    def answer(self, question: Question) -> Totals:
        """The exact integers that answer a question."""
        found = queries(question, self.dialect)
        return assemble(question, found, self.run(found, question))

    def answer_in_batches(self, question: Question, use: Use) -> None:
        """Hand the answer to `use`, some groups at a time and each group once, so that nobody holds all of them.

        Where a question takes several statements, or is about cells near ranks, all of their groups are held. Where
        there is no group, `use` gets one batch without any, so that a table without rows goes the way of all others.
        """
        found = queries(question, self.dialect)
        if len(found) > 1 or question.only is not None or isinstance(question, NearRanks):
            use(self.answer(question))
            return
        told = False

        def use_part(part: Columns) -> None:
            nonlocal told
            told = True
            use(assemble(question, found, [part]))

        self.run_in_batches(found[0], question, use_part)
        if not told:
            use_part(plain_columns([], question, found[0]))

    def run_in_batches(self, query: Query, question: Question, use: Callable[[Columns], None]) -> None:
        """Hand the key columns and sums of a query to `use`, some rows at a time."""
        (part,) = self.run([query], question)
        use(part)

    def analyze(self, found: list[Query], question: Question) -> None:  # noqa: B027  (not every engine can)
        """Let the engine look at the statements, without reading a row; raises where it would not run one."""

    def look(self, question: Question) -> Totals:
        """What `answer` gives for a table without rows, after the engine has analysed what it would run."""
        found = queries(question, self.dialect)
        self.analyze(found, question)
        return assemble(question, found, [plain_columns([], question, query) for query in found])


class Server(Engine):
    """A database server: the engine of a URL."""

    _known: ClassVar[Mapping[str, Self]] = {}

    @abstractmethod
    def __init__(self, url: str) -> None:
        """Nothing is opened until something is asked."""

    @abstractmethod
    def read_catalogue(self, *statements: str) -> list[list[Any]]:
        """What the server's catalogue answers: no row of a table is read."""

    @classmethod
    def at(cls, url: str) -> Self:
        """The engine of a URL; tables of one URL can be joined."""
        if url not in cls._known:
            cls._known = {**cls._known, url: cls(url)}
        return cls._known[url]


@dataclass(frozen=True, eq=False, repr=False)
class ServerTable(Source):
    """A table, view or foreign table on a server; `stored` says that it is a table whose rows the server holds."""

    engine: Server
    place: tuple[str, str] = ("", "")
    database: str = ""  # its name, and which server it is on
    stored: bool = False

    @property
    def is_stored(self) -> bool:
        return self.stored

    def public_parts(self) -> Iterable[Description]:
        """Tables of two databases are two tables, whatever their names: a key pays for one of them."""
        return [self.database, *super().public_parts()]

    @property
    def origin_name(self) -> str:
        return ".".join(
            exp.Identifier(this=part, quoted=True).sql(dialect=self.engine.dialect.name) for part in self.place
        )

    def table(self, name: str) -> Node:
        db, this = (exp.Identifier(this=part, quoted=True) for part in self.place)
        return exp.alias_(exp.Table(this=this, db=db), name, table=True, quoted=True, copy=False)


def assemble(question: Question, found: list[Query], results: list[Columns]) -> Totals:
    """One table from the answers of all statements; that of cells near ranks has a row for each of them."""
    if isinstance(question, Norms):
        return _buckets(question, results[0])
    tables = []
    for query, (keys, sums) in zip(found, results, strict=True):
        tables.append(Totals(question.key_schema, tuple(keys), dict(zip(query.names, sums, strict=True))))
    if isinstance(question, NearRanks):
        return tables[0]
    if question.only is not None:
        tables = [table.align(question.only) for table in tables]
    elif len(tables) > 1:
        every = tuple(dict.fromkeys(key for table in tables for key, _ in table.rows()))
        tables = [table.align(every) for table in tables]
    merged = {name: column for table in tables for name, column in table.values.items()}
    names = [name for name, _ in getattr(question, "values", ())] or list(merged)
    total = tables[0]
    return Totals(total.schema, total.keys, {name: merged[name] for name in names})


def _buckets(question: Norms, result: Columns) -> Totals:
    (places,), (counts,) = result
    persons = [0] * (len(question.thresholds) + 1)
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        persons[place] = count
    keys = object_array([*question.thresholds, None])
    return Totals(Schema({"norm": Type.INTEGER}), (keys,), {"persons": integers(persons)})


def plain_columns(rows: Sequence[Sequence[object]], question: Question, query: Query) -> Columns:
    """Rows of an answer as key columns and sums; an engine's decimals become integers."""
    kinds = (Type.INTEGER,) if isinstance(question, Norms) else question.key_types
    columns = list(zip(*rows, strict=True)) if rows else [()] * (len(kinds) + len(query.names))
    keys = [_key_column(column, kind) for column, kind in zip(columns, kinds, strict=False)]
    sums = [integers([0 if item is None else int(item) for item in column]) for column in columns[len(kinds) :]]
    return keys, sums


def _key_column(column: Sequence[object], kind: Type) -> Array:
    if kind.numeric and None not in column:
        return np.array(column, dtype=np.int64 if kind is Type.INTEGER else np.float64)
    return object_array(column)


def engine_of(relation: Relation) -> Engine:
    """The one engine that holds all tables of `relation`.

    >>> from mosha.connect import private, source
    >>> engine_of(private(source({"x": [1, 2]})))
    DuckDB()
    """
    engines = {id(source.engine): source.engine for source in relation.sources}
    if len(engines) > 1:
        raise DataError("connect.different_engines")
    engine = next(iter(engines.values()))
    assert isinstance(engine, Engine)
    return engine


def answer(question: Question) -> Totals:
    """Ask the engine where the data live a `question`. The answer is exact: as private as the data.

    >>> from mosha.connect import Aggregation, Rows, Unbounded, private, source
    >>> visits = private(source({"days": [3, 5, 2]}))
    >>> answer(Aggregation(visits, values={"rows": Rows()}, bound=Unbounded())).to_dict()
    {(): (3,)}
    """
    engine = engine_of(question.relation)
    return engine.look(question) if is_look() else engine.answer(question)


def answer_in_batches(question: Question, use: Use) -> None:
    """Ask the engine where the data live, and hand what it found to `use`, some groups at a time.

    >>> from mosha.connect import private, source
    >>> from mosha.connect.language.expression import col
    >>> from mosha.connect.language.value import Rows
    >>> from mosha.connect.plan.aggregation import Aggregation
    >>> from mosha.connect.plan.bounding import Unbounded
    >>> visits = private(source({"ward": ["a", "a", "b"]}))
    >>> question = Aggregation(visits, (("ward", col("ward")),), (("n", Rows()),), bound=Unbounded())
    >>> found = {}
    >>> answer_in_batches(question, lambda totals: found.update(totals.to_dict()))
    >>> sorted(found.items())
    [(('a',), (2,)), (('b',), (1,))]
    """
    engine = engine_of(question.relation)
    if is_look():
        use(engine.look(question))
    else:
        engine.answer_in_batches(question, use)


def explain(question: Question) -> str:
    """The SQL that answers `question`; many public keys are shown as a table of their own.

    Guarantee:
        A function of the question and of public columns: where a statement is shorter because of what private rows
        hold (a key that never repeats), the longer one is shown.

    >>> from mosha.connect import Aggregation, Rows, Unbounded, private, source
    >>> visits = private(source({"days": [3, 5, 2]}))
    >>> "SELECT" in explain(Aggregation(visits, values={"rows": Rows()}, bound=Unbounded()))
    True
    """
    if question.only is not None and len(question.only) > FEW:
        question = question.list_values(
            lambda _, name: exp.alias_(exp.Table(this=exp.to_identifier("public_keys")), name)
        )
    with write_for_people():
        return sql_of(question, engine_of(question.relation).dialect)


def is_look() -> bool:
    """Whether statements are analysed and not run."""
    return _looking.get()


@contextmanager
def look_only() -> Iterator[None]:
    """Inside, engines analyze statements and answer as an empty table would."""
    token = _looking.set(True)
    try:
        yield
    finally:
        _looking.reset(token)


@contextmanager
def stop_at(seconds: float | None) -> Iterator[None]:
    """Inside, engines break a statement off when so many seconds are over (None: never)."""
    token = _end.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float | None:
    """How long a statement may take from now on, at least a millisecond; None for ever."""
    end = _end.get()
    return None if end is None else max(0.001, end - time.monotonic())


@contextmanager
def stopping(interrupt: Callable[[], object], grace: float | None = None) -> Iterator[Callable[[], bool]]:
    """Inside, `interrupt` is called when the time is over; the value tells whether it was.

    It is called again and again until the block ends, for an engine that is between two statements has nothing to break
    off; and never afterwards, when it would meet the question of somebody else.

    Args:
        interrupt: breaks off what the engine is doing for this question.
        grace: how many seconds to wait for a call of `interrupt` that does not come back (None: for ever). Only where
            it names the question that it breaks off.
    """
    left = seconds_left()
    if left is None:
        yield lambda: False
        return
    ended, struck = Event(), Event()

    def strike() -> None:
        pause = left
        while not ended.wait(pause):
            struck.set()
            interrupt()
            pause = AGAIN

    thread = Thread(target=strike, name="mosha-deadline", daemon=True)
    thread.start()
    try:
        yield struck.is_set
    finally:
        ended.set()
        thread.join(grace)


def wait_for(work: Callable[[], Result], grace: float) -> Result:
    """What `work` returns or raises; TimeoutError where it is not back `grace` seconds after the deadline.

    For engines on another machine, whose client may wait for a server that is gone. `work` is then left to itself.
    """
    found: list[Result] = []
    raised: list[BaseException] = []
    context, left = copy_context(), seconds_left()

    def attempt() -> None:
        try:
            found.append(context.run(work))
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            raised.append(error)

    thread = Thread(target=attempt, name="mosha-waiting", daemon=True)
    thread.start()
    thread.join(None if left is None else left + grace)
    if raised:
        raise raised[0]
    if not found:
        raise TimeoutError
    return found[0]


def too_late() -> DeadlineExceeded:
    """The error of a statement that was broken off; the same on every engine."""
    return DeadlineExceeded("connect.deadline", spent="nothing" if is_look() else None)
