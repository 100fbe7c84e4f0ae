"""DuckDB: files and frames on this machine, and DuckDB databases, read only."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from sqlglot import exp

from mosha.connect.engines.asking import stopping, too_late
from mosha.connect.engines.comma_separated import cell_columns, header, separator_of
from mosha.connect.engines.compiled_path import Compiled
from mosha.connect.engines.duckdb_fields import by_code_point, field_of, key_array, listed_array
from mosha.connect.engines.duckdb_frames import check_frame, object_columns
from mosha.connect.engines.duckdb_plans import Plans
from mosha.connect.engines.labels import MISSING
from mosha.connect.engines.local_source import LocalSource, files_version, size_of
from mosha.connect.engines.slices import OutOfMemory, in_slices, slices_for
from mosha.connect.engines.source import Engine, Field
from mosha.connect.engines.tried import warn_if_untried
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Norms, Question
from mosha.connect.plan.totals import Array, Totals, integers
from mosha.connect.sql.dialect import DUCKDB, Kind, Listed, Node, binary, call, cast, column, number, text
from mosha.connect.sql.listed_groups import FEW, span_of
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import Query, alias, select
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.private_log import note_privately

__all__ = ["DuckDB", "LocalSource"]

LIMB = 2**62
BATCH = 2**15
UNFINISHED = "the engine could not finish: too little memory or disk, or the table has changed."
UNFIT = (
    "DuckDB does not take this question as it stands: a file went away, or the table has changed since it was opened. "
    "Open it again. No data was read. Nothing was spent."
)


T = TypeVar("T")


def _hide_errors(
    work: Callable[[], T], problem: str, memory: type[DataError] = DataError, statement: str | None = None
) -> T:
    """What an engine says may hold data: one public sentence takes its place, with no trace of the original.

    A failure in the middle may depend on the rows (memory, disk), so it counts as an answer and stays paid. `memory`
    is the error for too little of it.
    """
    kind: type[DataError] = DataError
    try:
        return work()
    except duckdb.OutOfMemoryException as error:
        kind = memory
        note_privately("DuckDB", error, statement=statement)
    except Exception as error:  # noqa: BLE001  (raised below, outside of the handler: no context goes on)
        note_privately("DuckDB", error, statement=statement)
    raise kind(problem)


class DuckDB(Engine):
    """An embedded engine. It spills to `spill` beyond `memory_limit`, reads only, and fetches no extensions.

    Units:
        `memory_limit` is a size such as "2GB"; `threads` a number of processor threads; tables of `compiled_from`
        rows or more are bounded by compiled kernels (None: never), with the same answers.
    """

    dialect = DUCKDB

    def __init__(
        self,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
        compiled_from: int | None = 1_000_000,
    ) -> None:
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,  # a name in SQL never means a Python variable
            "pandas_analyze_sample": 2**40,  # every object decides about the type of its column
        }
        if memory_limit is not None:
            if not isinstance(memory_limit, str) or not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory_limit):
                raise InvalidParameter("connect.memory_limit", parameter="memory_limit")
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = positive_integer("threads", threads)
        if spill is not None:
            config["temp_directory"] = str(spill)
        warn_if_untried("DuckDB", duckdb.__version__)
        self._connection = duckdb.connect(":memory:", config=config)
        # The statistics of a Parquet file leave NaN out, and the optimiser would drop the guards that catch it: one
        # person's NaN could then make a question fail.
        self._connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        with contextlib.suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets: none to silence
            self._connection.execute("SET enable_progress_bar = false")
        # Barriers between layers keep to one thread where rows must stay in order, which no question asks for.
        self._connection.execute("SET preserve_insertion_order = false")
        self._lock = threading.Lock()
        self._frames = 0
        self._plans = Plans(self._connection)
        self._forgotten: deque[str] = deque()
        self._attached: dict[str, str] = {}
        self._listings: Counter[str] = Counter()
        self.compiled_from = compiled_from
        self._memory = self._memory_limit()
        self._compiled = Compiled(self._columns, self._batches, self._memory)

    def _memory_limit(self) -> int:
        [(text_size,)] = self._connection.execute("SELECT current_setting('memory_limit')").fetchall()
        amount, unit = str(text_size).split()
        return int(float(amount) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB").index(unit))

    def file(self, path: str | Path, *, separator: str | None = None, multiline: bool = False) -> LocalSource:
        """A CSV or Parquet file, a folder of Parquet files, or a glob; `separator` and `multiline` are for CSV."""
        place = str(path)
        if Path(place).is_dir():
            place = str(Path(place) / "**" / "*.parquet")
        if re.search(r"\.(csv|tsv|txt)(\.gz|\.zst)?$", place, re.IGNORECASE):
            return self._csv(place, separator, multiline=multiline)
        if separator is not None or multiline:
            raise InvalidParameter("connect.option_for_csv", parameter="separator")
        problem = f"{str(path)!r} is absent or is no readable Parquet file"
        origin = partial(call, "READ_PARQUET", text(place))
        fields, skipped = self._describe(origin(), problem)
        sizes = [exp.Sum(this=column("num_rows")), exp.Count(this=exp.Star())]
        counted = select(sizes, call("PARQUET_FILE_METADATA", text(place)))
        [(rows, files)] = self._ask(self.dialect.sql(counted), problem)
        if files > 1:
            fields, skipped = _left_out(self._differing(place, files, problem), fields, skipped)
        return LocalSource(self, fields, skipped, origin, int(rows), partial(files_version, place))

    def _differing(self, place: str, files: int, problem: str) -> set[str]:
        """Columns that files have with other types or not at all.

        DuckDB casts every file to the types of the first, which may merge two persons, or fail at one row.
        """
        names = ("file_name", "name", "duckdb_type", "num_children")
        listed = select([column(name) for name in names], call("PARQUET_SCHEMA", text(place)))
        ordered = listed.order_by(column("file_name"), column("column_id"), copy=False)
        seen: defaultdict[str, list[str]] = defaultdict(list)
        for _, (_, *rows) in groupby(self._ask(self.dialect.sql(ordered), problem), key=itemgetter(0)):
            nested = 0
            for _, name, kind, children in rows:
                if not nested:
                    seen[name].append(kind)
                nested = max(0, nested - 1) + (children or 0)
        return {name for name, kinds in seen.items() if len(kinds) != files or len(set(kinds)) > 1}

    def _csv(self, place: str, separator: str | None, *, multiline: bool) -> LocalSource:
        """Comma-separated text (see `comma_separated`)."""
        problem = f"{place!r} is absent, empty or no readable CSV file in UTF-8 (another encoding? Say encoding='gbk')"
        separator = separator_of(place, separator)
        names = header(place, separator, problem)
        origin = cell_columns(place, separator, names, multiline=multiline)
        fields = tuple(Field(name, Type.TEXT, loose=True) for name in names)
        self._ask(self.dialect.sql(select([exp.Star()], origin()).limit(0)), problem)
        return LocalSource(self, fields, (), origin)

    def frame(self, frame: Any) -> LocalSource:
        """A pandas, Polars or Arrow table, read in place."""
        problem = f"a {type(frame).__name__} cannot be read as a table"
        with self._lock:
            self._frames += 1
            name = f"frame_{self._frames}"
        check_frame(frame)
        self._run_silently(partial(self._connection.register, name, frame), problem)
        origin = partial(exp.Table, this=exp.Identifier(this=name, quoted=True))
        fields, skipped = self._describe(origin(), problem)
        kind = type(frame)  # what may change in place (pandas) or outside (lazy frames, data sets) is not kept
        frozen = kind.__module__.split(".")[0] in {"polars", "pyarrow"} and kind.__name__ in {"DataFrame", "Table"}
        # moments in seconds or milliseconds are counted in microseconds when they are read, and may be too many
        moments = [field.name for field in fields if frozen and field.type is Type.INSTANT]
        if far := [title for title in moments if not self._is_read(origin(), title)]:
            raise DataError("connect.moments_too_far", column=far[0], spent="nothing")
        mixed = {title for title in object_columns(frame) if not self._is_read(origin(), title)}
        fields, skipped = _left_out(mixed, fields, skipped)
        size = len(frame) if hasattr(frame, "__len__") else None
        source = LocalSource(self, fields, skipped, origin, size, lambda: "frozen" if frozen else None)
        weakref.finalize(source, self._forgotten.append, name)  # takes no lock: it may run amid anything
        return source

    def _is_read(self, node: Node, name: str) -> bool:
        """Whether all objects of a column read as its type: one that does not would fail questions after payment."""
        try:
            self._ask(self.dialect.sql(select([exp.Count(this=column(name))], node)), "objects")
        except DataError:
            return False
        return True

    def _unregister(self) -> None:
        """Let go of frames that nobody holds any more (under the lock)."""
        while self._forgotten:
            with suppress(duckdb.Error):
                self._connection.unregister(self._forgotten.popleft())

    def texts(self, columns: Mapping[str, Array], fields: tuple[Field, ...], place: str) -> LocalSource:
        """Columns of texts in memory, which `fields` read as what they mean; `place` is where they came from."""
        with self._lock:
            self._frames += 1
            name = f"frame_{self._frames}"
        self._run_silently(partial(self._connection.register, name, dict(columns)), "these columns cannot be read")
        source = LocalSource(self, fields, (), partial(_cast_to_text, name, tuple(columns)), place=place)
        weakref.finalize(source, self._forgotten.append, name)
        return source

    def database(self, path: str | Path, table: str) -> LocalSource:
        """A table of a DuckDB database file, attached read only."""
        place = str(Path(path).resolve())
        if place not in self._attached:
            stem = Path(place).stem  # the name under which the file's own views look for their tables
            taken = {"memory", "system", "temp", *(name.lower() for name in self._attached.values())}
            name = f"{stem}_{len(self._attached) + 1}" if stem.lower() in taken else stem
            quoted = self.dialect.sql(exp.Identifier(this=name, quoted=True))
            attach = f"ATTACH {self.dialect.sql(text(place))} AS {quoted} (READ_ONLY)"
            self._ask(attach, f"{str(path)!r} is absent or is no DuckDB database")
            self._attached[place] = name
        *schema, plain = table.split(".", 1)
        parts = [self._attached[place], *(schema or ["main"]), plain]
        catalog, db, this = (exp.Identifier(this=part, quoted=True) for part in parts)
        origin = exp.Table(this=this, db=db, catalog=catalog).copy
        fields, skipped = self._describe(origin(), f"there is no table {table!r} in {str(path)!r}")
        named = f"{table} of {place}"  # the name under which a file is attached depends on those before it
        return LocalSource(self, tuple(map(by_code_point, fields)), skipped, origin, place=named)

    def _run_silently(self, work: Callable[[], T], problem: str) -> T:
        with self._lock:
            self._unregister()
            return _hide_errors(work, f"{problem}. Nothing was spent.")

    def _ask(self, statement: str, problem: str) -> list[Any]:
        return self._run_silently(lambda: list(self._connection.execute(statement).fetchall()), problem)

    def _describe(self, node: Node, problem: str) -> tuple[tuple[Field, ...], tuple[str, ...]]:
        rows = self._ask(f"DESCRIBE {self.dialect.sql(select([exp.Star()], node))}", problem)
        read = [(row[0], field_of(row[0], row[1])) for row in rows]
        fields = tuple(field for _, field in read if field is not None)
        return fields, tuple(name for name, field in read if field is None)

    def answer(self, question: Question) -> Totals:
        with suppress(OutOfMemory):  # which of its troubles the engine had is nobody's business
            return self._list_keys(question, self._answer)
        raise DataError(UNFINISHED)

    def look(self, question: Question) -> Totals:
        return self._list_keys(question, super().look)

    def analyse(self, found: list[Query], question: Question) -> None:
        for query in found:
            statement = self._statement(query, _key_kinds(question))
            self._run_alone(partial(self._plans.make, statement, keep=question.listing is None), UNFIT, statement)

    def _run_alone(self, work: Callable[[], T], problem: str, statement: str, memory: type[DataError] = DataError) -> T:
        """Do something with the connection, alone, and not beyond the deadline."""
        with self._lock, stopping(self._connection.interrupt) as struck:
            try:
                return _hide_errors(work, problem, memory, statement)
            except DataError:
                if not struck():
                    raise
        raise too_late()

    def _list_keys(self, question: Question, answer: Callable[[Question], Totals]) -> Totals:
        if question.only is None or len(question.only) <= FEW or span_of(question) is not None:
            return answer(question)
        name = "keys_" + hashlib.sha256(repr(question.only).encode()).hexdigest()[:32]
        with self._lock:
            self._listings[name] += 1
        try:
            return answer(question.list_values(partial(self._list, name)))
        finally:
            with self._lock:
                self._listings[name] -= 1
                if not self._listings[name]:
                    del self._listings[name]
                    self._forgotten.append(name)
                self._unregister()

    def _list(self, name: str, columns: Sequence[Listed], alias_name: str) -> Node:
        """Public keys as a table of arrays: SQL with so many constants would take longer to read than the data."""
        arrays = {f"c{i}": listed_array(column) for i, column in enumerate(columns)}
        self._run_silently(partial(self._connection.register, name, arrays), "the public keys cannot be listed")
        typed = [alias(self.dialect.to(c.kind, column(f"c{i}")), c.name) for i, c in enumerate(columns)]
        return subquery(select(typed, exp.Table(this=exp.Identifier(this=name, quoted=True))), alias_name)

    def _answer(self, question: Question) -> Totals:
        size = size_of(question.relation)
        if size is not None and self.compiled_from is not None and size >= self.compiled_from:
            versions = [source.version() for source in question.relation.sources if isinstance(source, LocalSource)]
            version = None if None in versions else "\n".join(map(str, versions))
            found = None
            with suppress(OutOfMemory):
                found = self._compiled.answer(question, size, version)
            if found is not None:
                return found
        return in_slices(question, slices_for(question, size, self._memory), super().answer)

    def run(self, found: list[Query], question: Question) -> list[tuple[list[Array], list[Array]]]:
        return [self._fetch(query, _key_kinds(question)) for query in found]

    def _columns(self, statement: str) -> Mapping[str, Any]:
        """The columns of an answer as arrays."""
        return self._run_alone(lambda: self._plans.run(statement), UNFINISHED, statement, OutOfMemory)

    def _batches(self, statement: str) -> Iterator[Mapping[str, Array]]:
        """The columns of an answer in batches, for the compiled kernels, which work in one thread.

        A second thread of the engine would only wait for the first to hand over what it has read.
        """
        with self._lock:
            [(threads,)] = self._connection.execute("SELECT current_setting('threads')").fetchall()
            self._connection.execute("SET threads = 1")
            try:
                yield from self._read_batches(statement)
            finally:
                self._connection.execute(f"SET threads = {int(threads)}")

    def _read_batches(self, statement: str) -> Iterator[Mapping[str, Array]]:
        late = False
        with stopping(self._connection.interrupt) as struck:
            try:
                read = lambda: self._connection.sql(statement).to_arrow_reader(BATCH)
                reader = _hide_errors(read, UNFINISHED, OutOfMemory, statement)
                follow = lambda: next(reader, None)
                while (batch := _hide_errors(follow, UNFINISHED, OutOfMemory, statement)) is not None and not struck():
                    yield {name: _to_array(batch.column(name)) for name in batch.schema.names}
                late = batch is not None
            except DataError:
                if not struck():
                    raise
                late = True
        if late:
            raise too_late()

    def _statement(self, query: Query, kinds: tuple[Type, ...]) -> str:
        """What is run: keys and sums as columns; a wide sum travels as two 64-bit limbs."""
        columns: list[Node] = [column(f"k{i}") for i in range(len(kinds))]
        limb = cast(number(LIMB), Kind.INT128)
        for i in range(len(query.names)):
            total = call("COALESCE", cast(column(f"s{i}"), Kind.INT128), cast(number(0), Kind.INT128))
            columns.append(alias(cast(binary(exp.IntDiv, total, limb.copy()), Kind.BIGINT), f"h{i}"))
            columns.append(alias(cast(binary(exp.Mod, total.copy(), limb.copy()), Kind.BIGINT), f"l{i}"))
        return self.dialect.sql(select(columns, subquery(query.statement, "answer")))

    def _fetch(self, query: Query, kinds: tuple[Type, ...]) -> tuple[list[Array], list[Array]]:
        found = self._columns(self._statement(query, kinds))
        sums = [_join_halves(found[f"h{i}"], found[f"l{i}"]) for i in range(len(query.names))]
        return [key_array(found[f"k{i}"], kind) for i, kind in enumerate(kinds)], sums


def _cast_to_text(name: str, columns: tuple[str, ...]) -> Node:
    """A registered table whose columns are texts, also where no row has a value."""
    texts = [alias(cast(column(title), Kind.TEXT), title) for title in columns]
    return exp.Subquery(this=select(texts, exp.Table(this=exp.Identifier(this=name, quoted=True))))


def _key_kinds(question: Question) -> tuple[Type, ...]:
    return (Type.INTEGER,) if isinstance(question, Norms) else question.key_types


def _to_array(found: Any) -> Array:
    """An Arrow column as an array: NaN for a missing double, MISSING for a missing whole number."""
    if found.null_count and found.type != "double":
        found = found.fill_null(MISSING)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _left_out(
    names: set[str], fields: tuple[Field, ...], skipped: tuple[str, ...]
) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """The fields without those named, which are skipped from now on."""
    more = tuple(field.name for field in fields if field.name in names)
    return tuple(field for field in fields if field.name not in names), skipped + more


def _join_halves(high: Array, low: Array) -> Array:
    high, low = np.asarray(high, dtype=np.int64), np.asarray(low, dtype=np.int64)
    if not high.any():
        return low
    return integers([upper * LIMB + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)])
